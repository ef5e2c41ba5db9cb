//! Whether a sentence reports a failure: not prose about one, not source code, not a diff, not a retry that went well.

use super::found::Found;
use super::pattern::{ascii_patterns, patterns};
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
    CLOSING = r"(?i)\bautotun|_autotune|_tuner\.py|select_algorithm|best \w+ (?:convolution )?algorithm|conv_algorithm_picker|gemm_algorithm|algorithm picker";
    /// Words of somebody who explains.
    PROSE = r"(?i)\b(?:if you|when you|you (?:can|may|might|will|should|get|see)|for example|such as|an error like|errors? like|looks like|similar to|how to|to avoid|avoids?|prevents?|might|should|this means|means that|why it|may (?:cause|lead|result|also)|can (?:cause|lead)|could (?:cause|lead)|typically|usually|commonly|in case of|tells? you|see the)\b|\be\.g\.";
    /// The error as something to talk about: `out of memory errors are common`.
    TOPIC = r"(?i)^[\w ]{0,40}\bmemory (?:errors\b|error (?:is|can|may|often|usually|occurs?|happens?)\b)";
    /// The error as the subject of a sentence: `out of memory is what you see`.
    SUBJECT = r#"^(?:[^\n.;(:]|: ?[a-z]){0,60}(?:memory|MEMORY|\w_\w+|\w+Error|\w+Exception|OOMKilled)\b[`"')]{0,2},?\s+(?:is|are|was|were|does|do|did|has|had|can|may|might|should|will|would|even|because|and|but|if|means?|happens?|occurs?|appears?|which|that|issues?|problems?|conditions?|situations?|handling|exceptions?|twice|again|with batch|after \d+ epochs?)\b"#;
    /// Words of a sentence that somebody wrote: no program speaks of itself, and few begin with an article.
    OWN_WORDS = r"\b(?:I|I'm|I've|[Ww]e|[Mm]y|[Oo]ur|[Mm]ine|[Aa]nyone|[Ss]omeone|[Hh]i|[Hh]ello|[Tt]hanks|me)\b";
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
    REPORT = r#"^\s*(?:[\w:.']*(?:Error|Exception|EXCEPTION|Failure|bad_alloc)\b[^:\n]{0,40}: |what\(\):|(?:fatal |internal |runtime |system )?(?:error|ERROR|Error|FATAL|panic|Exception)\b[: !]|terminate called|!!! |\*+ ?(?:Error|ERROR))|^\s*(?:[\w.-]+ ){1,2}(?:ERROR|FATAL)\b[: ]|(?i:\b(?:error|fatal|failure|panic|exception|critical)\b[\])]?: ?)$|panicked at [^\n]{0,120}: ?$|[\s>'"=(\[|,:][\w:.]*(?:Error|Exception): [^:;.\n]{0,60}$"#;
    /// The level of a log, in what stands before a line.
    LEVEL = r"\b(?:ERROR|FATAL|CRITICAL|Error|error|fatal)\b|(?:^|\s)[EF]\d{4}\s|(?:^|[\s:])[EF]\s|\[[EF]\]";
    /// What is said of an attempt that is made again, or that does not matter.
    GOES_ON = r"(?i)caller indicates that this is not a failure|retracted_reqs|retrying|will retry|will be retried|trying again|try again with|try(?:ing)? (?:the )?(?:next|another|other|smaller)|next config|falling back|fall(?:s)? back to|fallback to|attempting to (?:free|recover)|attempt(?:ing)? to recover|skipping (?:batch|this|tactic|the)|skip batch|recover(?:ed|ing) from|trying batch size|reducing batch|reduce batch size and|switching to tactic|insufficient to use tactic|continuing with|not be used for|ignored|ignoring|for benchmark choice|during autotuning|AUTOTUNE benchmarking|may not be an? (?:issue|error|problem)|free cache and retry";
    /// What is said before a traceback of an error that was caught.
    CAUGHT = r"(?i)falling back|fall(?:s)? back to|fallback to|continuing (?:with|on)|not a big deal|\bskipping\b|non-fatal";
    /// The attempt was the last one.
    ENDS = r"Could not find any implementation|[Ff]ailed (?:building|to build)|[Bb]uild failed";
    HUNK = r"(?m)^@@ -\d+(?:,\d+)? \+\d+";
    CODE = r"^(?:let |fn |pub |use |impl |assert|#\[|///?|/\*|\*/|message\(|endif\(|option\(|def |class |import |from \S+ import|return\b|const |static |struct |enum |match |mod |#include|#define|template|namespace|void |auto |throw |raise |self\.|EXPECT_|ASSERT_|TORCH_CHECK|LOG\(|TEST|case |elif |else:|try:|except |with |async |await |print\(|println!|format!|if .*[:{]$|for .*[:{]$|while .*[:{]$)|(?:;|\{|\}|\);|\}\);|=> \{|\),|\],)$";
    /// A line that no program prints: an attribute of HTML, a value in code, a row of a `match`.
    CODE_LINE = r#"^\d{0,6}\s*(?:pub |static |const |let |fn |use |impl |struct |enum |except |raise |throw |class |def |#define |#\[|///?)|<(?:section|details|div|span|code|h[1-6]|li|td|tr|a|p)\b[^<>]*\b(?:class|id|href)=|^[\w.:]+(?:\[[^\]\n]*\])? \+?= ?["']|\w => |\w\)\)[,;]$|^[\w.]+ = [\w.]+\([^()\n]*\)$|^\|.*\|$|^[A-Z][A-Z0-9]*_[A-Z0-9_]+\s+(?:=\s*)?-?\d+(?:\s|,|$)|<(?:p|q|h[1-6]|section)>.*</(?:p|q|h[1-6]|section)>"#;
    /// A line of a chat: the time without seconds, a name, a sentence.
    CHAT = r"^\s*\[?\d{1,2}:\d\d(?: ?[AP]M)?\]?\s+[^\W\d_][\w .]{0,24}:\s+\S";
    /// The rule below the heads of a table in Markdown.
    TABLE = r"(?m)^\s*\|(?:\s*:?-{2,}:?\s*\|){2,}\s*$";
    ECHOED = r#"^(?:File "|frame #|---|at |\^|~)"#;
    QUOTED_CODE = r#"(?:^|[\s(=,{\[])(?:r?b?f?["'`]|b?r?#")[^"'`]*$"#;
}

ascii_patterns! {
    /// Places that a program fills in: `%d`, `{{ $labels.pod }}`, `${NAME}`.
    TEMPLATE = r"(?:^|[^\d%\w])%(?:\(\w+\))?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t|L)?[diuxXfgGsp](?:\b|[A-Z]|kB)|\{\{-?\s*[.$][\w.$]|\{\{\s*\w+(?:\.\w+)+\s*[|}]|\$\{\w+\}|\$labels|[\s\x22'(]\{\d\}|%\d\$s|<%=";
    /// What stands around a translation.
    CATALOGUE = r#"(?m)^\s*(?:msgid|msgstr)(?:_plural|\[\d\])?\s+""#;
    /// What stands under a heading.
    UNDERLINE = r"^\n(?:={4,}|-{4,}|~{4,}|\^{4,})\s*\n\s*\n";
    /// What stands around an alert's condition.
    RULE = r"(?m)^\s*(?:-\s+)?\x22?(?:alert|expr)\x22?\s*:\s|^\s*annotations:\s*$|\bincrease\(\w+[{\[]|\brate\(\w+[{\[]";
    /// A comment behind code or a setting.
    COMMENTED = r"\S\s+(?:#|//|/\*|<!--)\s";
    /// A line of a test's result.
    TEST = r"(?:\s\.\.\.\s(?:ok|ignored)|\b(?:PASSED|SKIPPED|XFAIL|XPASS)\b(?:\s*\[\s*\d+%\])?)\s*$|^\s*\[\s*(?:RUN|OK|PASSED)\s*\]|\((?:\d+ ms total|\d+ ms)\)\s*$";
    /// An item of a list.
    ENTRY = r"^\s*(?:(?:[*+-]|\xE2\x80\xA2)|\d{1,3}[.)])\s+\S";
    /// What a change is said to do.
    CHANGE = r"(?i)^\s*(?:(?:[*+-]|\xE2\x80\xA2)\s+|\d{1,3}[.)]\s+)?(?:\[[\w /.-]{1,24}\]\s*)?(?:[\w./ -]{1,24}(?:\([\w./-]+\))?!?:\s+)?(?:fix(?:e[sd]|ing)?|add(?:s|ed|ing)?|remov(?:e[sd]?|ing)|catch(?:es)?|handl(?:e[sd]?|ing)|avoid(?:s|ed|ing)?|prevent(?:s|ed|ing)?|revert(?:s|ed)?|improv(?:e[sd]?|ing)|reduc(?:e[sd]?|ing)|updat(?:e[sd]?|ing)|support(?:s|ed)?|implement(?:s|ed)?|document(?:s|ed)?|explain(?:s|ed)?|rework(?:s|ed)?|refactor(?:s|ed)?|bump(?:s|ed)?|merge[sd]?|introduc(?:e[sd]?|ing)|mitigat(?:e[sd]?|ing)|workaround|resolv(?:e[sd]?|ing)|clarif(?:y|ies|ied)|mention(?:s|ed)?)[\s:]";
    /// An entry of a history that names its subject: `fix(loader): …`, `[CI] …`, and ends with its number.
    SCOPED_CHANGE = r"^\s*(?:(?:fix|feat|docs?|test|perf|chore|refactor|ci|build)(?:\([\w ./-]+\))?!?:\s)|\(#\d+\)\s*$";
    /// A commit's name and subject.
    COMMIT = r"^\s*(?:\*\s+)?(?:[0-9]+[a-f]+|[a-f]+[0-9]+)[0-9a-f]{3,38}\s+(?:\([^)\n]*\)\s+)?[A-Za-z]";
    /// The heading of a version.
    VERSION = r"(?im)^\s*(?:#{1,4}\s+|={2,}\s+)?(?:v|version\s|release\s)?\[?\d+\.\d+(?:\.\d+)?\w*\]?(?:\s*[^\w\s][^\n]{0,40})?\s*$|^\s*(?:#{1,4}\s+)?(?:unreleased|changelog|release notes|what's changed)\s*$";
    /// What did not happen, or does not happen any more.
    NEGATED = r"(?i)\b(?:no longer|never|without|instead of|avoid(?:s|ing)?|prevent(?:s|ing)?|not|isn't|wasn't|don't|doesn't|didn't|won't|unlike|until|unless|whenever|whether|rather than)(?:\s+[\w-]+){0,3}\s*$";
    /// A setting that names the message that it looks for.
    CONFIGURED = r#"(?i)(?:\b|_)(?:pattern|regexp?|match(?:es)?|filter|expr|query|rule|grep(?:\s+-\w+)*|on_error|keywords?|hint|help|description|summary|title|label|tooltip|comment|usage|example)["']?\s*(?:[:=]\s*)?["'/]?[^"']{0,40}$"#;
    /// What a logger puts before a line: time, level, or program with the number of its process.
    LOGGED = r"\d\d:\d\d:\d\d|\[\s*\d+\.\d{6}\]|[\w-]\[\d+\]:|\b(?:INFO|WARN|WARNING|ERROR|FATAL|CRITICAL)\b|^<\d>|[IWEF]\d{4}\s";
    QUIET = r"\b(?:DEBUG|TRACE|INFO|debug|info)\b|(?:^|\s)[ID]\d{4}\s";
    TROUBLE = r"\b(?:WARN|WARNING|Warning|SEVERE|ALERT|EMERG)\b|(?:^|\s)W\d{4}\s|(?:^|\s)W\s|\[W\]";
    /// A frame of a traceback.
    FRAME = r#"^\s*(?:File ".+", line \d+|at [\w.$<>/]+[(\[]|\d+: 0x[0-9a-f]+|\d+: \w+::\w+|#\d+\s+(?:0x)?\w+|frame #\d+|\[bt\]|Traceback \(most recent|[\w./-]+\.(?:jl|go|rs|cpp|cc|py):\d+(?:\s|$))"#;
    /// What is said of a process that ends.
    ENDING = r"(?i)\b(?:aborted|abort|core dumped|segmentation fault|killed|terminated|terminate called|traceback \(|stack ?trace|stack backtrace|backtrace|exit(?:ed|ing)?(?: with)?(?: exit)?(?: code| status| non-zero)|exit code|panicked|signal \(?\d|giving up|crashed|shutting down|job failed|failed with|returned non-zero|process finished)\b|^\s*quit\s*$|make(?:\[\d+\])?: \*\*\*";
}

/// Lines around a message that tell source code.
const AROUND: usize = 12;
/// Bytes around a line in which a catalogue or a rule shows itself, and before it in which the heading of a version does.
const NEARBY: usize = 400;
const HISTORY: usize = 3500;
/// Bytes before a message in which its traceback begins.
const TRACEBACK: usize = 6000;
/// Bytes behind a message in which it may say that it goes on.
const BEHIND: usize = 700;

/// What a sentence rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// Sizes stand beside it.
    Numbers,
    /// A phrase that a vendor uses.
    Phrase,
    /// Words that anybody may use; where they stand is judged apart.
    Words,
}

/// Judges the sentence at `hit` of the line `line_start..`, whose message ends at `end`.
pub fn verdict(body: &str, line_start: usize, hit: usize, end: usize, evidence: Evidence) -> Verdict {
    let line_end = body[hit..].find('\n').map_or(body.len(), |at| hit + at);
    let line = &body[line_start..line_end.min(body.ceil_char_boundary(hit + 600))];
    let before = &body[body.floor_char_boundary(hit.saturating_sub(300)).max(line_start)..hit];
    if is_code(body, line_start) || is_diff(body, line_start) {
        return Verdict::Nothing;
    }
    let is_prose = PROSE.is_match(clause(body, line_start, hit));
    let is_introduced = || INTRODUCED.is_match(before.trim_end_matches(is_of_name)) || ERROR_CLASS.is_match(before);
    if evidence == Evidence::Numbers {
        let is_example = is_prose && !REPORTS.is_match(before.rsplit("  ").next().unwrap_or(before));
        if is_example {
            return Verdict::Nothing;
        }
    } else if is_prose
        || before.trim_end().ends_with('`')
        || TOPIC.is_match(super::head::head_of(&body[hit..line_end], 120))
        || evidence == Evidence::Phrase && !(is_introduced() && REPORTS.is_match(line))
        || line.trim_end().ends_with('?')
        || QUOTED_CODE.is_match(before) && line.trim_start().starts_with(['"', '\'', '`', '|', '*', '-'])
    {
        return Verdict::Nothing;
    }
    let behind = &body[hit..body.ceil_char_boundary(end.max(hit) + BEHIND)];
    if GOES_ON.is_match(behind.split("\n\n\n").next().unwrap_or(behind)) || GOES_ON.is_match(before) {
        return if ENDS.is_match(behind) { Verdict::Failure } else { Verdict::Warning };
    }
    if is_caught(&body[..line_start], &body[end.max(hit)..]) { Verdict::Warning } else { Verdict::Failure }
}

/// Whether the traceback that ends with a message was printed by a program that goes on: it says so before, and behind
/// stand other lines than those of a process that ends.
fn is_caught(before: &str, behind: &str) -> bool {
    let before = &before[before.ceil_char_boundary(before.len().saturating_sub(TRACEBACK))..];
    let Some(traceback) = before.rfind("Traceback (most recent call last)") else { return false };
    let mut next = behind.lines().filter(|line| !line.trim().is_empty()).take(6).peekable();
    before[..traceback].lines().rev().take(3).any(|line| CAUGHT.is_match(line))
        && next.peek().is_some()
        && !next.any(|line| ENDING.is_match(line.as_bytes()) || FRAME.is_match(line.as_bytes()))
}

/// Whether a line tells of messages instead of being one: a template with places to fill, a catalogue of translations, an
/// alert's rule, a comment, an entry of a history, the name of a test.
pub fn is_text_about_messages(body: &str, line_start: usize, hit: usize, has_request: bool) -> bool {
    let line_end = body[hit..].find('\n').map_or(body.len(), |at| hit + at);
    let line = &body[line_start..line_end.min(body.ceil_char_boundary(hit + 600))];
    let before = &body[line_start..hit];
    let around =
        &body[body.floor_char_boundary(line_start.saturating_sub(NEARBY))..body.ceil_char_boundary(line_end + NEARBY)];
    if TEMPLATE.is_match(line.as_bytes()) || TEST.is_match(line.as_bytes()) || COMMENTED.is_match(before.as_bytes()) {
        return true;
    }
    let is_heading = line.len() < 80 && UNDERLINE.is_match(&body.as_bytes()[line_end..]);
    if is_heading || CATALOGUE.is_match(around.as_bytes()) || RULE.is_match(around.as_bytes()) {
        return true;
    }
    let is_entry = ENTRY.is_match(line.as_bytes());
    let is_history = || {
        let above = &body[body.floor_char_boundary(line_start.saturating_sub(HISTORY))..line_start];
        VERSION.is_match(above.as_bytes())
    };
    let is_quoted = || before.ends_with(['"', '\'', '`', '\u{201c}']);
    if has_request && !CHANGE.is_match(line.as_bytes()) && !(is_entry && is_quoted() && is_history()) {
        return false;
    }
    NEGATED.is_match(before.as_bytes())
        || CONFIGURED.is_match(before.as_bytes())
        || is_entry && (CHANGE.is_match(line.as_bytes()) || line.contains('`') || is_history())
        || SCOPED_CHANGE.is_match(line.as_bytes())
        || COMMIT.is_match(line.as_bytes())
}

/// Whether a logger wrote a line.
pub fn is_logged(prefix: &str) -> bool {
    LOGGED.is_match(prefix.as_bytes()) && !QUIET.is_match(prefix.as_bytes())
}

/// Whether a logger wrote a line as an error or a warning.
pub fn is_logged_as_trouble(prefix: &str) -> bool {
    LEVEL.is_match(prefix) || TROUBLE.is_match(prefix.as_bytes())
}

/// Whether the program ends where a message stands: a traceback before it, the end of a process behind it.
pub fn is_crash(before: &str, behind: &str) -> bool {
    let last: Vec<&str> = before.lines().rev().take(8).collect();
    // The end of a process is said in a short line.
    let next: Vec<&str> = behind.lines().take(10).filter(|line| line.len() < 110).collect();
    last.iter().any(|line| FRAME.is_match(line.as_bytes()))
        || next.iter().any(|line| ENDING.is_match(line.as_bytes()) || FRAME.is_match(line.as_bytes()))
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
    if is_code(body, line) || is_diff(body, line) || is_text_about_messages(body, line, found.start, true) {
        return false;
    }
    let line_end = body[found.start..].find('\n').map_or(body.len(), |at| found.start + at);
    if found.failure.kind == FailureKind::XlaRuntimeAlloc && super::guard::is_autotuning(&body[line..line_end]) {
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
    let from = body.floor_char_boundary(hit.saturating_sub(200)).max(line_start);
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
    let before = &body[body.floor_char_boundary(line_start.saturating_sub(4000))..line_start];
    let lines: Vec<&str> = before.lines().rev().take(AROUND).collect();
    let has_traceback = lines.iter().any(|line| line.trim_start().starts_with("File \"") || line.contains("Traceback"));
    if !has_traceback {
        lines.into_iter().for_each(&mut look);
    }
    let behind = &body[line_start..body.ceil_char_boundary(line_start + 4000)];
    behind.lines().take(AROUND).for_each(&mut look);
    all >= 4 && code * 5 > all * 2
}

/// Whether a line by itself is source code or the markup of a page.
pub fn is_code_line(line: &str) -> bool {
    CODE_LINE.is_match(line.trim())
}

/// Whether a text has a chat of three lines or a table of Markdown in it. Programs draw their tables with other rules.
pub fn has_chat_or_table(body: &str) -> bool {
    TABLE.is_match(body) || body.lines().filter(|line| CHAT.is_match(line)).nth(2).is_some()
}

/// Whether a line is what somebody wrote in a chat, or a row of a table; `prefix` is what was taken away before it.
pub fn is_chat_or_row(line: &str, prefix: &str) -> bool {
    CHAT.is_match(&format!("{prefix}{line}")) || prefix.trim_end().ends_with('|') && line.trim_end().ends_with('|')
}

/// Whether a text as a whole is source code.
pub fn is_source(body: &str) -> bool {
    let lines = || body.lines().map(str::trim).filter(|line| !line.is_empty()).take(400);
    let code = lines().filter(|line| line.len() < 400 && CODE.is_match(line)).count();
    code > 3 && code * 4 > lines().count()
}

/// Whether a text is the history of a program or a catalogue of its messages: items under headings of versions.
pub fn is_history(body: &str) -> bool {
    let items = || body.lines().filter(|line| ENTRY.is_match(line.as_bytes())).count();
    CATALOGUE.is_match(body.as_bytes()) || VERSION.is_match(body.as_bytes()) && items() > 1
}

/// Whether a text has a diff in it.
pub fn has_diff(body: &str) -> bool {
    HUNK.is_match(body)
}

/// Whether the line belongs to a diff.
fn is_diff(body: &str, line_start: usize) -> bool {
    if !body[line_start..].starts_with(['+', '-', ' ']) {
        return false;
    }
    let before = &body[body.floor_char_boundary(line_start.saturating_sub(4000))..line_start];
    let Some(hunk) = HUNK.find_iter(before).last() else { return false };
    before[hunk.end()..].lines().skip(1).all(|line| line.is_empty() || line.starts_with(['+', '-', ' ', '\\']))
}

/// Whether a line is about the choice of an algorithm, which goes on without the one that did not fit.
pub fn is_autotuning(line: &str) -> bool {
    CLOSING.is_match(line)
}
