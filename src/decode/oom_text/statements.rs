//! Sentences by which any program, known or not, says that memory ran out: what they have in common, whoever prints
//! them. Whether one reports a failure of this run is judged elsewhere, by where it stands.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;

use super::pattern::ascii_patterns;

/// How much a sentence says by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// That memory ran out: `out of memory`, the name of such an error.
    Clear,
    /// That somebody was ended because of memory.
    Ended,
    /// That something could not be had, or was too much; memory only where a size stands beside it.
    Measured,
}

/// A sentence that says so.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Where it stands.
    pub range: Range<usize>,
    /// How much it says.
    pub strength: Strength,
}

ascii_patterns! {
    /// Memory ran out, is short, is not enough.
    OUT_OF = concat!(
        r"(?i)\b(?:",
        r"(?:out|short)[ -]of(?: [\w/&,'-]+){0,5}?[ -](?:memory|vram|ram|hbm|dram|heap)\b",
        r"|(?:run(?:ning)?|is|ran|too) low on(?: [\w/-]+){0,3}? (?:memory|vram|ram|hbm)\b",
        r"|(?:insufficient|not (?:have )?enough|no more|no free|too little|lack of|not sufficient|inadequate|unavailable|no available)(?: [\w/-]+){0,3}? (?:memory|vram|ram|hbm|heap)\b",
        r"|(?:memory|vram|hbm|heap)(?: [\w/-]+){0,2} (?:is |was |has been |got )?(?:exhausted|insufficient|used up|depleted)\b",
        r"|exhausted(?: [\w/-]+){0,3}? (?:memory|vram|ram|hbm|heap)\b",
        r"|us(?:ed|ing)(?: up)? all (?:the )?(?:available |of the |gpu |device )*(?:memory|ram|vram)\b",
        r"|allocate more (?:gpu |device )?memory than (?:is |was )?available\b",
        r")"
    );
    /// Names of errors and constants.
    NAMES = concat!(
        r"\b(?:[\w:.]*(?:OUT_?OF_?(?:[A-Z]+_)*MEM(?:ORY)?|OutOf(?:[A-Z][a-z]+)*Memory|OUTOFMEMORY|_NO_?MEM(?:ORY)?|NoMemory|INSUFFICIENT_(?:[A-Z]+_)*MEMORY",
        r"|InsufficientMemory|NotEnoughMemory|MEMORY_EXHAUSTED|MemoryExhausted|MEMORY_ALLOC\w*|MEM_ALLOC_F\w+|ALLOC\w*_FAIL\w*|Alloc(?:ation)?Fail\w*|out_of_(?:[a-z]+_)*memory|MemoryAllocationError|AllocationError|AllocError",
        r"|bad_alloc|BadAlloc|OOMError|OomError|MemoryError)\w*|ENOMEM|OOM|bad allocation)\b"
    );
    /// Somebody was ended because of memory.
    ENDED = concat!(
        r"(?i)\b(?:kill(?:ed|ing|s)?|sig(?:kill|term)|terminat(?:ed|ing)|evict(?:ed|ing)|abort(?:ed|ing)|restart(?:ed|ing)|stopp(?:ed|ing)|removed)\b[^\n;]{0,160}?",
        r"(?:(?:due to|because of|because|for|by|on|after|with|from)[^\n;.]{0,40}?(?:memory pressure|out[ -]of[ -]memory|\boom\b|memory usage|memory limit|memory budget|low memory|h_vmem)",
        r"|(?:due to|because of|because|for|by)[^\n;.]{0,40}?\bmemory\b",
        r"|(?:memory|mem|vmem|rss)(?: [\w/]+){0,3} (?:exceed\w*|over|above|reached))",
        r"|\boom[ -]?kill(?:ed|er|ing)?\b|-oomd?\b[^\n]{0,12} killed\b|MEMLIMIT\b",
        r"|exceed(?:s|ed|ing)?(?: [\w\d%.,]+){0,5}? (?:memory|mem|vmem|rss|ram|vram|h_vmem)(?: [\w]+){0,2} (?:limit|budget|quota|request)\w*",
        r"|(?:memory|mem|vmem|rss|ram|vram)(?: [\w]+){0,2} (?:limit|budget|quota)(?: of [\d.,]+ ?[kmgtib]+)?(?: (?:is|was|has been|been))? (?:exceeded|reached|hit)",
        r"|(?:over|reach(?:ed|ing)|hit|hitting|above|past)(?: (?:the|its|their|a|hard|soft|[\w]+)){0,3}? (?:memory|mem|vmem|ram)(?: usage)? (?:limit|budget|quota)"
    );
    /// What was wanted and could not be had.
    FAILED = concat!(
        r"(?i)(?:\b(?:fail(?:ed|s|ing|ure)?|unable|can ?not|can't|could ?n[o']t|not able|error|impossible)(?: (?:to|while|when|in|at|during|on))?(?: [\w-]+){0,2}? ",
        r"(?:re)?(?:alloc\w*|malloc\w*|mmap\w*|reserv(?:e|ing)|commit|obtain|acquire|create|map|pin|grow|resize)\b",
        r"|\w*(?:alloc|mmap|sbrk|memalign)\w*(?:\(\w*\))?(?:[ :,]+[\w()<>*&/.-]+){0,8}?[ :,]+(?:has |have |was |is )?(?:fail\w*|error|returned? (?:null\w*|0)|denied|refused|rejected|unsuccessful|not possible)\b",
        r"|could not be (?:allocated|reserved|mapped|created)|cannot be (?:allocated|reserved|mapped)",
        r"|\b(?:mem|memory|vmem|rss|vram|allocation|request\w*|buffer|tensor|size)\b[^\n.;]{0,60}? (?:exceed(?:s|ed|ing)?|larger than|greater than|bigger than|(?:is |was )?too (?:large|big))\b",
        r"|exceed(?:s|ed|ing)?(?: [\w/-]+){0,4}? (?:memory|vram|ram|hbm|heap|mem|limit)\b",
        r"|insufficient(?: [\w/-]+){0,2} resources|RESOURCE_?EXHAUSTED|\w+OUT_OF_RESOURCES)"
    );
    /// A garbage collection, and why it began: an allocation that did not fit the youngest generation.
    COLLECTION = r"\[(?:Full )?GC\b|\bGC\(\d+\)|\[gc(?:,\w+)*\s*\]|\bPause (?:Young|Full)\b|\bScavenge\b|\bMark-(?:[Ss]weep|[Cc]ompact)";
    /// What the size of something else is.
    NOT_MEMORY = r"(?i)\b(?:disk|file|inode|cluster|ticket|seat|port|socket|descriptor|tty|thread|lock|quota|partition|volume|swap ?file|body|upload|payload|packet|header|request (?:body|entity)|message|socket)\b";
}

/// Parts of words of which every such sentence has one.
const STEMS: [&str; 22] = [
    "memor",
    "alloc",
    "oom",
    "vram",
    "hbm",
    "heap",
    "nomem",
    " ram",
    "mem ",
    "vmem",
    "rss",
    "mmap",
    "outofmem",
    "of_mem",
    "memlimit",
    "sbrk",
    "reserv",
    "buffer size",
    "resource",
    "insufficient",
    "mem_",
    "memalign",
];

#[expect(clippy::expect_used, reason = "the parts are constants; a test builds them")]
static ANY: LazyLock<AhoCorasick> =
    LazyLock::new(|| AhoCorasick::builder().ascii_case_insensitive(true).build(STEMS).expect("valid parts of words"));

/// The longest line that is looked at; a longer one is no sentence.
const LONGEST: usize = 4000;

/// The first and clearest statement of a line; `None` where there is none.
pub fn of_line(line: &str) -> Option<Statement> {
    if line.len() > LONGEST || !ANY.is_match(line) || COLLECTION.is_match(line.as_bytes()) {
        return None;
    }
    let find = |pattern: &regex::bytes::Regex, strength| {
        let range = pattern.find(line.as_bytes())?.range();
        // An address names pages about memory, and an option what shall be done without; they say nothing of a run.
        let word = line.get(..range.start)?.rsplit(char::is_whitespace).next()?;
        let is_option = word.starts_with("--") || word.starts_with("-X");
        (!word.contains("://") && !is_option).then_some(Statement { range, strength })
    };
    find(&OUT_OF, Strength::Clear)
        .or_else(|| find(&NAMES, Strength::Clear))
        .or_else(|| find(&ENDED, Strength::Ended))
        .or_else(|| find(&FAILED, Strength::Measured).filter(|_| !NOT_MEMORY.is_match(line.as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_of_programs_that_nobody_knows_are_told() {
        for (text, strength) in [
            ("Error: System is out of GPU and shared host memory", Strength::Clear),
            ("[acme] device 3: ran out of on-chip HBM", Strength::Clear),
            ("insufficient device memory for the graph", Strength::Clear),
            ("not enough VRAM to load the checkpoint", Strength::Clear),
            ("acmeMalloc returned ACME_ERROR_OUT_OF_DEVICE_MEMORY", Strength::Clear),
            ("terminate called after throwing an instance of 'acme::OutOfDeviceMemory'", Strength::Clear),
            ("mlx5: create_cq failed: ENOMEM", Strength::Clear),
            (
                "Killed /user.slice/a.scope due to memory pressure for /user.slice being 51.07% > 50.00%",
                Strength::Ended,
            ),
            ("=>> PBS: job killed: mem 38427376kb exceeded limit 33554432kb", Strength::Ended),
            ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", Strength::Ended),
            ("Worker exceeded 95% memory budget. Restarting", Strength::Ended),
            ("Job has gone over memory limit of 2048 megabytes. Peak usage: 2213 megabytes.", Strength::Ended),
            ("Memory limit of 512 MiB exceeded with 523 MiB used.", Strength::Ended),
            ("alloc fail type FlatData dev 2 space Device size 2764800000 bytes", Strength::Measured),
            ("failed to reserve 4 GiB of device address space", Strength::Measured),
            ("requested buffer size 8589934592 exceeds the device limit", Strength::Measured),
        ] {
            assert_eq!(of_line(text).map(|found| found.strength), Some(strength), "{text}");
        }
        for text in [
            "step 3 memory 12.3GiB/15.7GiB",
            "allocating buffers",
            "heap profile written",
            "out of 100 files",
            "ran out of patience: early stopping after 5 epochs without memory of improvement",
            "see https://example.org/debug-out-of-memory-exception.html",
            "12.003: [GC (Allocation Failure) [PSYoungGen: 270626K->42496K(299520K)] 270714K->61883K(984064K), 0.04 secs]",
            "CommandLine flags: -XX:+ExitOnOutOfMemoryError -XX:MaxHeapSize=17179869184",
        ] {
            assert!(of_line(text).is_none(), "{text}");
        }
    }
}
