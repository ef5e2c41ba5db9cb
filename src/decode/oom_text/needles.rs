//! The strings that the scan of a file looks for, and the search for them: one pass with the vector instructions of the
//! processor.
//!
//! A search for this many strings would stop at every other word. Instead it looks for the few rare fragments that they
//! have in common, the anchors, and compares whole needles around an anchor only. Around the commonest of them it looks
//! for words of trouble as well, so that sentences are found that no vendor is known for.

use std::sync::LazyLock;

use aho_corasick::packed::{Config, MatchKind, Searcher};
use aho_corasick::{AhoCorasick, PatternID, Span};

/// Strings that an ordinary log has not; each message of any kind has one, most have two, so that a line break inside a
/// sentence hides one of them at most.
#[rustfmt::skip]
pub const NEEDLES: &[&str] = &[
    "ut of memor", "ut Of Memor", "OUT OF MEMOR", "out_of_memor", "OF_MEMORY", "OF_DEVICE_MEMOR", "OF_HOST_MEMOR",
    "OutOfMemor", "OutOfDeviceMemor", "OutOfHostMemor", "ALLOC_FAILED", "ALLOCATION_FAIL", "OF_RESOURC",
    "n memory space ", "capacity by ", "Aborting compil", "would exceed ", "was not possible", "ould not allocate ",
    "ould not be allocated", "annot be allocated", "ailed to alloc", "ailed to CUDA ", "ailed to cudaMalloc",
    "nable to allocate", "annot allocate", "nable to mmap", "OOM when alloc", "usage from device", "Peak buffers:",
    "Largest program alloc", "bm usage", "Chunks in use: ", "InUse at ", "Chunk at 0x", "MaxInUse: ",
    "_poplar_start", "in exchange '", "all variable data", "memory_allocation_e", "host buffer memor",
    "memory summary", "memory use below", "the cache blocks", "d in KV cache", "KV cache is n", "on startup is less",
    "out of resource:", "ried to allocate", "failed for size::", "oom-kill", "oom_kill", "OOMKilled", "OOM killer",
    "nsufficient memor", "nsufficient GPU memor", "nsufficient Memor", "nsufficient shared memor", "ot enough memor",
    "low on memor", "StoreFull", "store is full", "it is full", "much shared data", "memory size limit",
    "available shared memor", "ut of shared memor", "bad_alloc", "BadAlloc", "paging file", "owed buffer size",
    "nvalid buffer size", "ceeded memory lim", "ceeded job memor", "ceeded step memor", "memory limits. ",
    "physical memory limits", "slurmstepd: err", "more system memor", "too large for system", "'s memory pool",
    "pool size exceeded", "Dst tensor is", "MemoryAllocation", "ut of GPU memor", "GPU video memor",
    "device memory on current", "status_memory_err", "EXHAUSTED; ", "ested bytes of", "user allocatable",
    "llocation on device", "to memory pressure", "llocation failed", "llocation Failure", "emory allocation of",
    "emory allocation err", "device memory failed", "llocation of size ", "allocator error alloc", "EL0004",
    "8007000E", "posix_memalign(", "ut of GPU", "ut of VRAM", "ut of HBM", "ut of RAM", "ut of vram", "ut of device",
    "ut of video", "ut of host", "ut of system", "ut of heap", "ut of shared", "xceeded limit ", "MEMLIMIT", "OOM-kill",
    "OOM kill", "OOM Kill", "MemoryError", "DUE TO MEMOR", "nsufficient system", "nsufficient resour", "nsufficient device", "OOM encountered", "oomd killed", "xceeds job hard limit", "not reserve ", "to reserve ",
    "ENOMEM", "bad allocation",
    "WinError 8]", "WinError 1455", "os error 1455", "[Errno 12]", "(os error 12)",
];

/// Fragments of needles, of four bytes or more, which the search tells apart best; no one begins another. Of the anchors in a needle the first of this list is looked for.
#[rustfmt::skip]
const ANCHORS: &[&str] = &[
    "emor", "lloc", "MEMO", "ALLO", "OURC", "source:", "kill", "OOMK", "acity by", "xceed", "ot pos", "Abort", "o CUD",
    "m dev", "buff", "bm us", "hunk", "nUse", "_popl", "n exc", "riable d", "cache b", "KV ca", "startup", "d for s",
    "eFul", "shared d", "paging", "slurm", "Dst t", "XHAU", "sted b", "for sys", "to mmap", "is full", "EL0004",
    "8007000E", "posix_mema", "ror 8]", "ror 1455", "rno 12]", "ror 12)", "ut of ", "MEMLI", "OOM ", "NOMEM", "VRAM",
    "reserve ", "ufficient ",
];

/// Anchors that make a line worth reading where one of [`BESIDE`] stands near, whatever the words between.
const COMMON: &[&str] = &["emor", "MEMO", "lloc", "ALLO", "VRAM"];

/// What stands beside a word of memory where somebody says that there was none.
const BESIDE: &[&str] = &[
    "ut of ",
    "ut-of-",
    "nough",
    "ufficient",
    "xceed",
    "xhaust",
    "fail",
    "Fail",
    "FAIL",
    "nable to",
    "annot",
    "ould not",
    "an't ",
    "kill",
    "Kill",
    "terminat",
    "pressure",
    "low on",
    "ow memory",
    "over ",
    "reach",
    "OUT",
    "NO_",
    "INSUFF",
    "null",
    "NULL",
    "deplet",
    "used up",
    "rror",
];
/// How far from the anchor, before and behind.
const NEAR: usize = 56;

/// Looks for any of the anchors.
enum Search {
    /// With vector instructions.
    Packed(Box<Searcher>),
    /// Where the processor has none that fit.
    Automaton(Box<AhoCorasick>),
}

impl Search {
    fn new(anchors: &[&str]) -> Self {
        let packed = Config::new().match_kind(MatchKind::LeftmostFirst).builder().extend(anchors).build();
        #[expect(clippy::expect_used, reason = "the anchors are constants; a test builds them")]
        packed.map_or_else(
            || Self::Automaton(Box::new(AhoCorasick::new(anchors).expect("valid anchors"))),
            |searcher| Self::Packed(Box::new(searcher)),
        )
    }

    /// (place, anchor) of the first anchor from a place on.
    fn find(&self, bytes: &[u8], from: usize) -> Option<(usize, PatternID)> {
        match self {
            Self::Packed(searcher) => {
                let found = searcher.find_in(bytes, Span { start: from, end: bytes.len() })?;
                Some((found.start(), found.pattern()))
            }
            Self::Automaton(automaton) => {
                let found = automaton.find(&bytes[from..])?;
                Some((from + found.start(), found.pattern()))
            }
        }
    }
}

struct Needles {
    search: Search,
    /// For each anchor the needles around it.
    around: Vec<AnchorNeedles>,
}

/// How far before an anchor a byte tells whether any of the longer needles can be there.
const TELLING: usize = 3;

/// The needles around an anchor: (bytes before the anchor, needle).
#[derive(Clone)]
struct AnchorNeedles {
    /// Whether a word of [`BESIDE`] near the anchor is enough.
    is_common: bool,
    /// Those that reach back to the byte that tells.
    long: Vec<(usize, &'static [u8])>,
    /// The others.
    short: Vec<(usize, &'static [u8])>,
    /// The bytes that tell.
    tells: [bool; 256],
}

impl AnchorNeedles {
    const NONE: Self = Self { is_common: false, long: Vec::new(), short: Vec::new(), tells: [false; 256] };

    fn add(&mut self, before: usize, needle: &'static [u8]) {
        match before.checked_sub(TELLING) {
            Some(at) => {
                self.tells[usize::from(needle[at])] = true;
                self.long.push((before, needle));
            }
            None => self.short.push((before, needle)),
        }
    }

    /// Where a needle begins that lies behind `from`, around an anchor.
    fn find(&self, bytes: &[u8], from: usize, anchor: usize) -> Option<usize> {
        let tells = anchor.checked_sub(TELLING).is_some_and(|at| self.tells[usize::from(bytes[at])]);
        let long = if tells { self.long.as_slice() } else { &[] };
        let needle = long.iter().chain(&self.short).find_map(|&(before, needle)| {
            let start = anchor.checked_sub(before).filter(|&start| start >= from)?;
            bytes[start..].starts_with(needle).then_some(start)
        });
        needle.or_else(|| (self.is_common && is_beside(bytes, from, anchor)).then_some(anchor))
    }
}

static BESIDE_SEARCH: LazyLock<Search> = LazyLock::new(|| Search::new(BESIDE));

/// Whether a word of [`BESIDE`] stands near an anchor, in its line.
fn is_beside(bytes: &[u8], from: usize, anchor: usize) -> bool {
    let before = &bytes[anchor.saturating_sub(NEAR).max(from)..anchor];
    let start = anchor - before.len() + memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let behind = &bytes[anchor..bytes.len().min(anchor + NEAR)];
    let end = anchor + memchr::memchr(b'\n', behind).unwrap_or(behind.len());
    BESIDE_SEARCH.find(&bytes[..end], start).is_some()
}

static ALL: LazyLock<Needles> = LazyLock::new(|| {
    let mut anchors = ANCHORS.to_vec();
    let mut around = vec![AnchorNeedles::NONE; anchors.len()];
    for needle in NEEDLES {
        let known = anchors.iter().enumerate().find_map(|(i, anchor)| Some((i, needle.find(anchor)?)));
        let (anchor, before) = known.unwrap_or_else(|| {
            anchors.push(needle);
            around.push(AnchorNeedles::NONE);
            (anchors.len() - 1, 0)
        });
        around[anchor].add(before, needle.as_bytes());
    }
    for (anchor, around) in anchors.iter().zip(&mut around) {
        around.is_common = COMMON.contains(anchor);
    }
    Needles { search: Search::new(&anchors), around }
});

/// Where the first needle begins that lies behind `from`.
pub fn find(bytes: &[u8], from: usize) -> Option<usize> {
    let all = &*ALL;
    let mut at = from;
    while let Some((anchor, id)) = all.search.find(bytes, at) {
        let found = all.around[id.as_usize()].find(bytes, from, anchor);
        if found.is_some() {
            return found;
        }
        at = anchor + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_needle_is_found_wherever_it_stands() {
        for needle in NEEDLES {
            for before in [0, 1, 31, 70] {
                let text = format!("{}{needle}{}", "x".repeat(before), "y".repeat(before));
                let found = find(text.as_bytes(), 0);
                assert!(found.is_some_and(|at| at <= before + needle.len()), "{needle}");
            }
        }
        assert_eq!(find("memory of allocating buffers, cache, startup".repeat(40).as_bytes(), 0), None);
    }

    #[test]
    fn no_anchor_hides_another() {
        for (i, a) in ANCHORS.iter().enumerate() {
            let is_used = NEEDLES.iter().any(|needle| needle.contains(a)) || COMMON.contains(a);
            assert!(is_used, "{a} is in no needle");
            assert!(a.len() >= 4, "{a} is short");
            for (j, b) in ANCHORS.iter().enumerate() {
                assert!(i == j || !b.starts_with(a), "{a} begins {b}");
            }
        }
        assert!(ALL.around.len() <= 64, "{} anchors are too many for one pass", ALL.around.len());
        assert_eq!(ALL.around.len(), ANCHORS.len(), "some needle has no anchor");
    }
}
