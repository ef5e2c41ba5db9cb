//! Whether a sentence reports a failure: not prose about one, not source code, not a diff, not a retry that went well.

use super::found::Found;
use super::pattern::patterns;
use crate::model::FailureKind;

/// What a sentence is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A failure.
    Failure,
    /// A warning: the program goes on.
    Warning,
    /// No report at all.
    Nothing,
}

patterns! {
    /// Words of somebody who explains.
    PROSE = r"(?i)\b(?:if you|when you|you (?:can|may|might|will|should|get|see)|e\.g\.|for example|such as|an error like|errors? like|looks like|similar to|how to|to avoid|avoids?|prevents?|might|should|this means|means that|why it|typically|usually|commonly|in case of|tells? you|see the)\b";
    /// The error as something to talk about: `out of memory errors are common`.
    TOPIC = r"(?i)^[\w ]{0,40}\bmemory (?:errors\b|error (?:is|can|may|often|usually|occurs?|happens?)\b)";
    /// The error as the subject of a sentence: `out of memory is what you see`.
    SUBJECT = r#"^[^\n.;(]{0,60}(?:memory|MEMORY|\w_\w+|\w+Error|\w+Exception)\b[`"')]{0,2},?\s+(?:is|are|was|were|can|may|might|should|will|would|even|because|and|but|if|means?|happens?|occurs?|appears?|which|that|issues?|problems?|conditions?|situations?|handling|exceptions?|twice|again|with batch|after \d+ epochs?)\b"#;
    /// Words of a sentence that somebody wrote: no program speaks of itself, and few begin with an article.
    OWN_WORDS = r"\b(?:I|I'm|I've|[Ww]e|[Mm]y|[Oo]ur|[Mm]ine|[Aa]nyone|[Ss]omeone|[Hh]i|[Hh]ello|[Tt]hanks|me|us)\b";
    STOP_WORDS = r"(?i)^(?:the|an?|this|that|these|it|its|if|when|and|or|but|you|your|to|of|for|with|on|in|is|are|be|been|get|gets|got|has|have|had|do|does|did|not|no|so|as|at|than|then|still|see|add|added|adds|fix|fixed|fixes|handle|avoid|raise|raises|which|who|what|why|how|anything|larger|more|less)$";
    /// The name of an error and then what it means, as a table or a list of constants has it.
    DEFINED = r"^[A-Z][A-Z0-9]*_[A-Z0-9_]+|^(?:cuda|hip)Error\w+";
    /// What stands directly before a message.
    INTRODUCED = r#"(?i)(?:^|[:\]>|)("'\-–»]|\b(?:failed|failure|error|exception|because|due to|with|reason|status|warn(?:ing)?|fatal|raised|got|by|was|is|has been|event\(s\)|detected|to|from|allocator|state|terminated|unit|of this|some of|the|local|cuda|hip|driver|runtime|of|for|an instance of)|[\d=,.]|=\s*\S+|(?:fail|failed|failure|unable|could not|cannot|can't)\s(?:to\s)?[\w\s]{0,40})\s*$"#;
    /// The class of an error, anywhere before the message on its line.
    ERROR_CLASS = r"\b(?:\w+Error|\w+Exception|Exception|ERROR|FATAL)\b";
    /// A word that reports.
    REPORTS = r"(?i)error|exception|fatal|fail|abort|panic|terminate|terminating|kill|exhausted|warn|unable|could not|cannot|out of|insufficient|not enough|oom";
    /// How a report begins: the class of an error, what a runtime says of it.
    REPORT = r#"^\s*(?:[\w:.']*(?:Error|Exception|Failure|bad_alloc)\b[^:\n]{0,40}: |what\(\):|(?:fatal |internal |runtime |system )?(?:error|ERROR|Error|FATAL|panic|Exception)\b[: !]|terminate called|!!! |\*+ ?Error)|[\s>'"=(\[|,:][\w:.]*(?:Error|Exception): [^:;.\n]{0,60}$"#;
    /// The level of a log, in what stands before a line.
    LEVEL = r"\b(?:ERROR|FATAL|CRITICAL|Error|error|fatal)\b|(?:^|\s)[EF]\d{4}\s|(?:^|[\s:])[EF]\s";
    /// What is said of an attempt that is made again, or that does not matter.
    GOES_ON = r"(?i)caller indicates that this is not a failure|retrying|will retry|will be retried|trying again|try again with|falling back|fall(?:s)? back to|fallback to|attempting to (?:free|recover)|attempt(?:ing)? to recover|skipping (?:batch|this|tactic|the)|skip batch|recover(?:ed|ing) from|trying batch size|reducing batch|reduce batch size and|switching to tactic|insufficient to use tactic|continuing with|not be used for|ignored|ignoring|for benchmark choice|during autotuning|may not be an? (?:issue|error|problem)|free cache and retry";
    /// The attempt was the last one.
    ENDS = r"Could not find any implementation|[Ff]ailed (?:building|to build)|[Bb]uild failed";
    HUNK = r"(?m)^@@ -\d+(?:,\d+)? \+\d+";
    CODE = r"^(?:let |fn |pub |use |impl |assert|#\[|///?|/\*|\*/|def |class |import |from \S+ import|return\b|const |static |struct |enum |match |mod |#include|#define|template|namespace|void |auto |throw |raise |self\.|EXPECT_|ASSERT_|TORCH_CHECK|LOG\(|TEST|case |elif |else:|try:|except |with |async |await |print\(|println!|format!|if .*[:{]$|for .*[:{]$|while .*[:{]$)|(?:;|\{|\}|\);|\}\);|=> \{|\),|\],)$";
    ECHOED = r#"^(?:File "|frame #|---|at |\^|~)"#;
    QUOTED_CODE = r#"(?:^|[\s(=,{\[])(?:r?b?f?["'`]|b?r?#")[^"'`]*$"#;
}

/// Lines around a message that tell source code.
const AROUND: usize = 12;
/// Bytes behind a message in which it may say that it goes on.
const BEHIND: usize = 700;

/// Judges the sentence at `hit` of the line `line_start..`, whose message ends at `end`.
pub fn verdict(body: &str, line_start: usize, hit: usize, end: usize, has_numbers: bool) -> Verdict {
    let line_end = body[hit..].find('\n').map_or(body.len(), |at| hit + at);
    let line = &body[line_start..line_end.min(ceil(body, hit + 600))];
    let before = &body[floor(body, hit.saturating_sub(300)).max(line_start)..hit];
    if is_code(body, line_start) || is_diff(body, line_start) {
        return Verdict::Nothing;
    }
    let is_prose = PROSE.is_match(clause(body, line_start, hit));
    let is_introduced = || INTRODUCED.is_match(before.trim_end_matches(is_of_name)) || ERROR_CLASS.is_match(before);
    if has_numbers {
        let is_example = is_prose && !REPORTS.is_match(before.rsplit("  ").next().unwrap_or(before));
        if is_example {
            return Verdict::Nothing;
        }
    } else if is_prose
        || before.trim_end().ends_with('`')
        || TOPIC.is_match(super::head::head_of(&body[hit..line_end], 120))
        || !is_introduced()
        || !REPORTS.is_match(line)
        || line.trim_end().ends_with('?')
        || QUOTED_CODE.is_match(before) && line.trim_start().starts_with(['"', '\'', '`', '|', '*', '-'])
    {
        return Verdict::Nothing;
    }
    let behind = &body[hit..ceil(body, end.max(hit) + BEHIND)];
    if GOES_ON.is_match(behind.split("\n\n\n").next().unwrap_or(behind)) || GOES_ON.is_match(before) {
        return if ENDS.is_match(behind) { Verdict::Failure } else { Verdict::Warning };
    }
    Verdict::Failure
}

/// Whether a line begins as a report of a failure does; `before` is what stands in it before the phrase, `prefix` what a
/// logger put before it.
pub fn is_report(before: &str, prefix: &str) -> bool {
    REPORT.is_match(before) || LEVEL.is_match(prefix)
}

/// Whether a sentence is about the error that it begins with.
pub fn is_subject(rest: &str) -> bool {
    SUBJECT.is_match(rest)
}

/// Whether a phrase that anybody may write stands where a program prints it: behind the name of a function or a class,
/// at the beginning of a line; not in a sentence, in a table, in a list of constants.
pub fn stands_alone(line: &str, hit: usize) -> bool {
    let start = line[..hit]
        .rfind(|c: char| !is_of_name(c))
        .map_or(0, |at| at + line[at..].chars().next().map_or(1, char::len_utf8));
    let (before, rest) = (&line[..start], &line[start..]);
    let is_row = line.trim_start().starts_with('|') && line.trim_end().ends_with('|');
    if is_row || SUBJECT.is_match(rest) || OWN_WORDS.is_match(before) {
        return false;
    }
    if before.trim_matches(|c: char| !c.is_alphanumeric()).is_empty()
        && let Some(name) = DEFINED.find(rest)
    {
        let behind = rest[name.end()..].trim_start_matches([':', ' ', '(', '-']).to_ascii_lowercase();
        return behind.starts_with("out of");
    }
    let clause = before.rsplit([':', ']', '>', ')', '|', '=', '"', '\'', ';', '\t']).next().unwrap_or(before);
    let words = clause.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric));
    words.into_iter().all(|word| !STOP_WORDS.is_match(word.trim_matches(|c: char| !c.is_alphanumeric())))
}

/// Judges a message with lists or tables; whether it is one.
pub fn keep(body: &str, found: &mut Found) -> bool {
    let line = memchr::memrchr(b'\n', &body.as_bytes()[..found.start]).map_or(0, |i| i + 1);
    let before = &body[line..found.start];
    if is_code(body, line) || is_diff(body, line) {
        return false;
    }
    let line_end = body[found.start..].find('\n').map_or(body.len(), |at| found.start + at);
    if found.failure.kind == FailureKind::XlaRuntimeAlloc && super::forms::is_autotuning(&body[line..line_end]) {
        found.failure.kind = FailureKind::XlaAutotuneWarning;
        found.failure.is_error = false;
    }
    !PROSE.is_match(before) || REPORTS.is_match(before)
}

/// Whether a character belongs to a name, the beginning of which may stand before a phrase.
fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of the sentence before the message.
fn clause(body: &str, line_start: usize, hit: usize) -> &str {
    let from = floor(body, hit.saturating_sub(200)).max(line_start);
    &body[from..hit]
}

/// Whether the lines around are source code. Lines that a traceback echoes are not looked at.
fn is_code(body: &str, line_start: usize) -> bool {
    let (mut code, mut all) = (0, 0);
    let mut look = |line: &str| {
        let line = line.trim();
        // Brackets alone are of data as well as of code.
        if line.contains(char::is_alphanumeric) && !ECHOED.is_match(line) {
            all += 1;
            code += usize::from(line.len() < 400 && CODE.is_match(line));
        }
    };
    let before = &body[floor(body, line_start.saturating_sub(4000))..line_start];
    let lines: Vec<&str> = before.lines().rev().take(AROUND).collect();
    let has_traceback = lines.iter().any(|line| line.trim_start().starts_with("File \"") || line.contains("Traceback"));
    if !has_traceback {
        lines.into_iter().for_each(&mut look);
    }
    let behind = &body[line_start..ceil(body, line_start + 4000)];
    behind.lines().take(AROUND).for_each(&mut look);
    all >= 4 && code * 5 > all * 2
}

/// Whether a text as a whole is source code.
pub fn is_source(body: &str) -> bool {
    let lines = || body.lines().map(str::trim).filter(|line| !line.is_empty()).take(400);
    let code = lines().filter(|line| line.len() < 400 && CODE.is_match(line)).count();
    code > 3 && code * 4 > lines().count()
}

/// Whether the line belongs to a diff.
fn is_diff(body: &str, line_start: usize) -> bool {
    if !body[line_start..].starts_with(['+', '-', ' ']) {
        return false;
    }
    let before = &body[floor(body, line_start.saturating_sub(4000))..line_start];
    let Some(hunk) = HUNK.find_iter(before).last() else { return false };
    before[hunk.end()..].lines().skip(1).all(|line| line.is_empty() || line.starts_with(['+', '-', ' ', '\\']))
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
