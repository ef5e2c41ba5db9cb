//! What loggers and launchers put before a line, and which process it names.

use std::sync::LazyLock;

use regex::Regex;

use super::super::pattern::{large_pattern, patterns};

/// What stands before a line, a piece at a time.
static PREFIX: LazyLock<Regex> = LazyLock::new(|| {
    large_pattern(concat!(
        "^(?:",
        // Quoting, comments and boxes; never what tables and maps are made of.
        r"(?:>|[#│┃]\s)\s?",
        // mpirun, torchrun, srun: `[1,2]<stderr>:`, `[default0]:`, `3: `.
        r"|\[\d+,[^\]\n]{1,40}\]<std(?:err|out|diag)>:\s?",
        r"|\d{1,5}:\s+|std(?:err|out):\s",
        // The bar of a progress display before what is printed on its line.
        r"|\d{1,3}%\|[^|\n]{0,200}\|\s?\d[^\s\[]*/\d[^\s\[]*\s\[[^\]\n]{0,60}\]\s?",
        // The kernel's level, CloudWatch's instance.
        r"|<\d>|i-[0-9a-f]{3,20}\s",
        // Celery: `[2024-01-01 00:00:00,000: ERROR/ForkPoolWorker-1] `.
        r"|\[\d{4}-\d\d-\d\d\s[\d:.,]+:\s[A-Z]+/[\w-]+\]\s?",
        // Date and time, with what log libraries put around them.
        r"|[\[(]?\d{4}[-/]\d\d[-/]\d\d[T\s]\s?\d\d:\d\d:\d\d(?:[.,]\d+)?\s?(?:Z|[+-]\d\d:?\d\d|UTC)?[\])]?:?\s",
        r"|[\[(]?\d\d:\d\d:\d\d(?:[.,]\d+)?[\])]?:?\s",
        r"|[IWEFD]\s\d{4}-\d\d-\d\d[T\s]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?\s",
        // Neuron: `2024-Oct-15 18:01:17.728750  3882:3882  ERROR  TDRV:name  `.
        r"|\d{4}-[A-Z][a-z]{2}-\d\d\s[\d:.]+\s+\d+:\d+\s+[A-Z]+\s+\w+:\w+\s+",
        // llama.cpp: `1.06.520.077 E `.
        r"|\d+\.\d\d\.\d{3}\.\d{3}\s[DIWE]\s",
        // syslog and journald: `Nov 21 16:01:47 host name[123]: `, `node7 python3[812]: `.
        r"|[A-Z][a-z]{2}\s{1,2}\d{1,2}\s\d\d:\d\d:\d\d\s\S+\s[^\s:]+:\s",
        r"|[\w.-]+\s[\w.@/-]+\[\d+\]:\s",
        // glog and absl: `E0118 22:42:45.7 123 file.cc:1] `, `I0000 00:00:1773083052.386475   70889 file.cc:1] `.
        r"|[IWEFD]\d{4}\s[\d:.]+\s+\d+\s[^\s\]]+:\d+\]\s?",
        // TensorFlow, vLLM: `W tensorflow/core/file.cc:1] `, `engine.py:387] `.
        r"|[IWEFD]\s[^\s\]]+:\d+\]\s?",
        r"|[\w./-]+\.(?:py|cc|cpp|cu|rs|go|ts|h):\d+\]\s?",
        // NCCL: `host:pid:tid [gpu] `.
        r"|[\w.-]+:\d+:\d+\s\[\d+\]\s",
        // Kubernetes: `stderr F `.
        r"|std(?:err|out)\s[FP]\s",
        // Levels and brackets: `ERROR 06-03 01:02:03 [core.py:1] `, `[rank0]:`, `[INFO] `, `(EngineCore pid=1) `.
        r"|(?:DEBUG|INFO|WARNING|ERROR|CRITICAL):[a-z_][\w.]*:",
        r"|(?:TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)[:\s|]\s*(?:\d\d-\d\d\s[\d:.,]+\s)?",
        r"|-\s[\w. /-]{1,40}\s-\s(?:[A-Z]+\s-\s)?",
        r"|\|\s[A-Z]+\s+\|\s(?:[\w.:<>]+\s-\s)?",
        r#"|\[[^\[\]\n="']{1,60}\]:?\s?(?:-\s)?"#,
        r"|\((?:[^()\n=]{1,60}\s)?(?:pid|ip|rank)=[^()\n]{1,60}\)\s?",
        // docker compose and kubectl: `pod/name-1 | `, `worker-0: `.
        r"|[\w./-]{1,60}\s+\|\s",
        r"|\w[\w./-]*[-_/]\d+:\s|[a-z][a-z0-9.-]*\d:\s",
        ")"
    ))
});

patterns! {
    BRACKET_OF_MESSAGE = r"^\[(?:shape|Op:|enforce|metal|METAL)";
    RANK = r"(?i)\brank[\s:=]?\s?(\d+)\b|\[default(\d+)\]|^\s*\[\d+,(?:mpirank:)?(\d+)[^\]\n]*\]<std";
    PROCESS = r"(?i)\(([^()]*\bpid=\d+[^()]*)\)|([a-z][\w./-]*)\s+\|\s|\s([\w.@/-]+\[\d+\]):\s|([\w.-]+:\d+):\d+\s\[\d+\]|(ForkPoolWorker-\d+)|\[((?:pod/|algo-)[^\]]+)\]";
    /// `3: `, as `srun --label` writes it.
    TASK = r"^\s*(\d{1,5}):\s";
}

/// Characters of a line that a prefix may take.
const REACH: usize = 400;

/// The length of everything in front of a line that is not its own.
pub fn len(line: &str) -> usize {
    let mut at = 0;
    for _ in 0..12 {
        let rest = &line[at..];
        let blank = rest.len() - rest.trim_start().len();
        let trimmed = &rest[blank..];
        if !may_have_one(trimmed) || BRACKET_OF_MESSAGE.is_match(trimmed) {
            break;
        }
        match PREFIX.find(super::super::head::head_of(trimmed, REACH)).map(|found| found.end()) {
            Some(len) if len > 0 => at += blank + len,
            _ => break,
        }
    }
    at
}

/// Whether the pattern is worth trying: most lines of a listing begin with a word and have no sign of a prefix.
fn may_have_one(line: &str) -> bool {
    let head = &line.as_bytes()[..line.len().min(120)];
    match head.first() {
        None => false,
        Some(b'>' | b'#' | b'[' | b'(' | b'0'..=b'9' | b'-' | b'|' | b'<') => true,
        Some(first) if first.is_ascii_alphabetic() => {
            head.iter().any(|byte| matches!(byte, b'|' | b']'))
                || head.starts_with(b"std")
                || head.get(1) == Some(&b' ')
                || head.starts_with(b"i-")
                || head.windows(2).any(|pair| pair[1] == b':' && pair[0].is_ascii_digit())
                || [&b"INFO"[..], b"WARN", b"ERR", b"FATAL", b"CRIT", b"DEBUG", b"TRACE"]
                    .iter()
                    .any(|level| head.starts_with(level))
        }
        Some(first) => !first.is_ascii(),
    }
}

/// Who wrote a line, by its prefix.
pub fn process(prefix: &str) -> Option<String> {
    if prefix.len() < 3 {
        return None;
    }
    // Of several the innermost: who starts the others may have a rank of its own.
    let ranks = RANK.captures_iter(prefix).filter_map(|found| found.iter().skip(1).flatten().next());
    if let Some(rank) = ranks.last() {
        return Some(format!("rank {}", rank.as_str()));
    }
    let Some(found) = PROCESS.captures(prefix) else {
        return TASK.captures(prefix).map(|found| format!("task {}", &found[1]));
    };
    let name = found.iter().skip(1).flatten().next();
    name.map(|name| name.as_str().trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_taken_away_and_messages_are_not() {
        for prefix in [
            "> ",
            "> > ",
            "E0118 22:42:45.712345     123 file.cc:1] ",
            "I0000 00:00:1773083052.386475   70889 bfc_allocator.cc:1119] ",
            "2024-05-28 07:02:44.349554: W external/tsl/tsl/framework/bfc_allocator.cc:482] ",
            "2024-05-28T07:02:44.349554Z stderr F ",
            "2024-05-28 07:02:44,349 - trainer - ERROR - ",
            "(EngineCore_DP0 pid=4242) ",
            "(EngineCore pid=1) ERROR 06-03 01:02:03 [core.py:1] ",
            "ERROR 01-28 03:21:01 engine.py:387] ",
            "[rank0]: ",
            "[1,2]<stderr>:",
            "[2059991.491436] ",
            "[2022-12-07 10:11:12.131] [poptorch:cpp] [error] ",
            "[2024-01-01 00:00:00,000: ERROR/ForkPoolWorker-1] ",
            "trainer-0  | ",
            "Nov 21 16:01:47 host python[123]: ",
            "2024-05-28T07:02:44+0000 host unit[1]: ",
            "1.06.520.077 E ",
            "        ",
        ] {
            for message in
                ["1. Size: 16.00G", "Ran out of memory in", "reserved   528.00M", "Bin (256): \tTotal Chunks: 7"]
            {
                let line = format!("{prefix}{message}");
                assert_eq!(line[len(&line)..].trim_start(), message, "{line}");
            }
        }
        assert_eq!(len("[shape = 'u8[1]{0}', space=vmem"), 0);
    }

    #[test]
    fn processes_are_named() {
        for (prefix, name) in [
            ("[rank3]: ", "rank 3"),
            ("(EngineCore_DP0 pid=4242) ", "EngineCore_DP0 pid=4242"),
            ("[1,2]<stderr>:", "rank 2"),
            ("(Worker pid=12) [rank0]: [rank3]:", "rank 3"),
            ("worker-1  | ", "worker-1"),
            ("ng301:30628:66152 [3] ", "ng301:30628"),
            ("3: ", "task 3"),
        ] {
            assert_eq!(process(prefix).as_deref(), Some(name), "{prefix}");
        }
        assert_eq!(process("2024-05-28 07:02:44.349554: "), None);
    }
}
