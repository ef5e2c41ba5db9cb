//! Messages of one or a few sentences: the table of phrases names the kind, the words beside each size its role, and the
//! words around them whether it is a failure at all.

use std::ops::Range;

use super::details::refine;
use super::found::Found;
use super::guard::{self, Evidence, Verdict};
use super::layers::Text;
use super::pattern::patterns;
use super::roles::{Role, Told, told};
use super::size::Unit;
use super::statements::{self, Strength};
use super::triggers::{self, ANY_VENDOR, FORMS, Form, Need};
use crate::model::{FailureKind as Kind, FailureValue, Speaker};

patterns! {
    CLASS = r"^[\w:.]*(?:Error|Exception|ERROR|EXCEPTION)(?:: |\()";
    WHO = r"(?i)\b(?:process(?:es)?|pid|job|container|task|worker|pod|scope|service|unit|replica|session|notebook|executor|node|program|application|app|instance|step|python\d?|h_vmem|MEMLIMIT)\b|/\S+\.(?:scope|slice)";
    PLACEHOLDER = r"(?:^|[\s(;,])(?:[XYN]{1,3}(?:\.X+)?|<\w+>|\?+|\.\.\.|…|_+|\{\w*\}|%\w)\s?(?:[KMGT]i?B|[Bb]ytes)\b";
    OPEN_RESERVED = r"(?:is|are) reserved[\w\s]*$";
    KILLED_BY = r#"^OOMKilled(?:[ \t]*(?:$|\n|[,}\])\d(])|["'](?:\s*:\s*true|[^:=]|$)|\s*[:=]\s*true)"#;
    /// A row of a table of exit codes.
    EXIT_CODE = r"[{,]\s*\d+:\s*$";
    TORCH_GOES_ON = r"^(?:\w+ )?(?:backend )?out of memory(?:\s*[.(;]|$)|^Invalid|^Allocation on device|EL0004|current platform";
    /// The level of a log that is no error.
    WARNS = r"\bWARN(?:ING)?\b|(?:^|[\s:])W\d{4}\s|(?:^|[\s:\]])W\s";
}

/// Bytes before a phrase that can belong to its message.
const BEFORE: usize = 400;
/// The longest message.
const LONGEST: usize = 2600;
/// Bytes of a phrase that tell it from the others of its row.
const PHRASE: usize = 12;
/// Messages of one line that are looked at.
const GLUED: usize = 16;
/// Bytes around a message that may tell of a crash.
const AROUND: usize = 1200;

/// Words of sentences that have rules of their own, which give every number its name: half of such a sentence gives none.
const RULED: [&str; 11] = [
    "memory space ",
    "the total memory required for",
    "Aborting compilation early",
    "Scoped allocation with size",
    "would exceed ",
    "allocatable offset",
    "TensorCore Hbm usage",
    "Attempting to reserve",
    "Could not allocate ",
    "on tile ",
    "ran out of memory trying to allocate",
];

/// What is believed of lines, by how they were put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Everything: they are as they were written, or wrapped between words.
    All,
    /// Messages with sizes: they were wrapped at a width.
    Sizes,
    /// Messages with the size that was asked for: nobody knows how they were wrapped.
    Requests,
}

/// Every message of the table in a text, beside those that were found already; only those with sizes where the
/// lines are not as they were written.
pub fn find(text: &Text, trust: Trust, found: &mut Vec<Found>) {
    let body = text.text.as_str();
    let claimed: Vec<Range<usize>> =
        found.iter().map(|one| line_start(body, one.start)..line_end(body, one.end)).collect();
    let hits = triggers::hits(body);
    let known = found.len();
    let mut i = 0;
    while i < hits.len() {
        let (start, end) = (line_start(body, hits[i].0), line_end(body, hits[i].0));
        let count = hits[i..].iter().take_while(|hit| hit.0 < end).count().max(1);
        let mut of_line: Vec<(usize, usize)> = hits[i..i + count].to_vec();
        i += count;
        // The most specific row first; a line may hold several messages only where it is a whole log.
        of_line.sort_unstable_by_key(|&(at, row)| (row, at));
        if claimed.iter().any(|range| of_line.iter().any(|hit| range.contains(&hit.0))) {
            continue;
        }
        let message_at = |at: usize, row: usize, line: usize, ahead: &[(usize, usize)]| {
            let strength = Strength::Clear;
            let one = message(text, &Hit { form: &FORMS[row], row: Some(row), at, line, ahead, strength })?;
            let is_sure = match trust {
                Trust::All => true,
                Trust::Sizes => FORMS[row].need == Need::Requested || has_size(&one),
                Trust::Requests => FORMS[row].need == Need::Requested,
            };
            is_sure.then_some(one)
        };
        let ahead = &hits[i..];
        let of_row = |&(at, row): &(usize, usize)| Some((message_at(at, row, start, ahead)?, at, row));
        let Some((one, at, row)) = of_line.iter().find_map(of_row) else { continue };
        // Two processes may write their messages into one line, without a line end between them.
        let again = glued(body, &of_line, (at, row));
        let Some(&(next, _)) = again.first() else {
            found.push(one);
            continue;
        };
        let ahead = [&again[..], ahead].concat();
        let second = message_at(next, row, next, &ahead[1..]);
        let Some(second) = second.filter(|second| second.failure.fields != one.failure.fields) else {
            found.push(one);
            continue;
        };
        found.push(message_at(at, row, start, &ahead).unwrap_or(one));
        found.push(second);
        let further = again.iter().enumerate().skip(1);
        found.extend(further.filter_map(|(n, &(at, _))| message_at(at, row, at, &ahead[n + 1..])));
    }
    let of_forms = found[known..].iter().map(|one| line_start(body, one.start)..one.end);
    let mut claimed: Vec<Range<usize>> = claimed.into_iter().chain(of_forms).collect();
    claimed.sort_unstable_by_key(|range| range.start);
    of_any_vendor(text, trust, &claimed, found);
}

/// The same phrase further on in a line, where it is that of a message with a request.
fn glued(body: &str, of_line: &[(usize, usize)], (at, row): (usize, usize)) -> Vec<(usize, usize)> {
    let phrase = |at: usize| body.as_bytes().get(at..at + PHRASE);
    let is_same = |hit: &&(usize, usize)| hit.1 == row && hit.0 > at && phrase(hit.0) == phrase(at);
    let mut same: Vec<(usize, usize)> = of_line.iter().filter(is_same).copied().collect();
    same.retain(|_| FORMS[row].need == Need::Requested);
    same.truncate(GLUED);
    same
}

/// What other lines say, whoever wrote them.
fn of_any_vendor(text: &Text, trust: Trust, claimed: &[Range<usize>], found: &mut Vec<Found>) {
    let body = text.text.as_str();
    let (mut start, mut next) = (0, 0);
    while start < body.len() {
        let end = line_end(body, start);
        while next < claimed.len() && claimed[next].end <= start {
            next += 1;
        }
        let is_claimed = claimed[next..].iter().take_while(|range| range.start < end).any(|range| range.end > start);
        if !is_claimed && let Some(said) = statements::of_line(&body[start..end]) {
            let at = start + said.range.start;
            let hit = Hit { form: &ANY_VENDOR, row: None, at, line: start, ahead: &[], strength: said.strength };
            let one = message(text, &hit);
            let is_sure = |one: &Found| trust == Trust::All || one.failure.get("requested").is_some();
            if let Some(one) = one.filter(is_sure) {
                start = one.end.max(end) + 1;
                found.push(one);
                continue;
            }
        }
        start = end + 1;
    }
}

/// Whether a message gives any size: lines put together by chance have none beside the right words.
fn has_size(found: &Found) -> bool {
    found.failure.fields.iter().any(|(_, value)| matches!(value, FailureValue::Size(_)))
}

fn line_start(body: &str, at: usize) -> usize {
    memchr::memrchr(b'\n', &body.as_bytes()[..at]).map_or(0, |i| i + 1)
}

fn line_end(body: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &body.as_bytes()[at..]).map_or(body.len(), |i| at + i)
}

/// A phrase, or a statement of any vendor, in a text.
struct Hit<'t> {
    form: &'static Form,
    /// Row of the form; none of a statement.
    row: Option<usize>,
    /// Where it begins, and its line.
    at: usize,
    line: usize,
    /// Phrases in the lines behind.
    ahead: &'t [(usize, usize)],
    strength: Strength,
}

/// The message of a form at a place, where it is one.
fn message(text: &Text, of: &Hit) -> Option<Found> {
    let Hit { form, at: hit, line, .. } = *of;
    let body = text.text.as_str();
    let from = body.floor_char_boundary(hit.saturating_sub(BEFORE)).max(line);
    let mut to = hit;
    for n in 0..form.lines {
        to = line_end(body, (to + usize::from(n > 0)).min(body.len()));
        // The next message of the same form is another one.
        let next = of.ahead.iter().take_while(|next| next.0 < to).find(|next| Some(next.1) == of.row);
        if let Some(next) = next {
            let is_glued = line_start(body, next.0) <= hit;
            to = if is_glued { next.0 } else { line_start(body, next.0).saturating_sub(1).max(line_end(body, hit)) };
            break;
        }
    }
    let to = body.floor_char_boundary(to.min(hit + LONGEST));
    let window = &body[from..to];
    if !window.contains(form.with) || (form.kind == Kind::Unknown && RULED.iter().any(|words| window.contains(words))) {
        return None;
    }
    let mut sizes = told(window);
    // A number at the very end of a cut text may have lost its end.
    if text.is_cut && to == body.len() {
        let whole = window.trim_end_matches(|c: char| c.is_alphanumeric() || c == '.').len();
        let window = window[..whole].trim_end_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ' '));
        sizes = told(window);
        // `is reserved` may go on with `by PyTorch but unallocated`, which is another number.
        let is_open = OPEN_RESERVED.find(window).is_some_and(|open| !open.as_str().contains("unallocated"));
        if is_open && sizes.last().is_some_and(|last| last.role == Role::Reserved) {
            sizes.pop();
        }
    }
    // A bare number before the phrase counts only where none behind it has its role.
    let roles_behind: Vec<Role> = sizes.iter().filter(|told| told.at >= hit - from).map(|told| told.role).collect();
    sizes.retain(|told| told.unit != Unit::Bare || told.at >= hit - from || !roles_behind.contains(&told.role));
    let has_request = sizes.iter().any(|told| told.role == Role::Requested);
    let fits = match form.need {
        Need::Requested => has_request,
        Need::Size => !sizes.is_empty(),
        Need::Words | Need::Report => true,
    };
    // A sentence that should give the request and does not has a placeholder in its place.
    let is_placeholder =
        PLACEHOLDER.is_match(window) || (!has_request && !text.is_cut && window.contains("ried to allocate"));
    if !fits || is_placeholder {
        return None;
    }
    let prefix = text.place(from).map_or("", |place| place.prefix.as_str());
    let spot = Spot {
        line: &body[line..line_end(body, hit)],
        at: hit - line,
        rest: &body[hit..to],
        prefix,
        around: (
            &body[body.floor_char_boundary(line.saturating_sub(AROUND))..line],
            &body[to..body.ceil_char_boundary(to + AROUND)],
        ),
        strength: of.strength,
    };
    let evidence = match () {
        () if !sizes.is_empty() => Evidence::Numbers,
        () if matches!(form.kind, Kind::Unknown | Kind::JobMemoryKill) => Evidence::Words,
        () if form.kind.speaker() == Speaker::Host && guard::is_logged(prefix) => Evidence::Words,
        () if form.kind == Kind::KubernetesOomKill && !window.contains("OOMKilled") => Evidence::Words,
        () => Evidence::Phrase,
    };
    let verdict = guard::verdict(body, line, hit, to, evidence);
    // Of no known kind and no failure either: nothing to say.
    let is_idle = verdict == Verdict::Warning && form.kind == Kind::Unknown;
    let is_told_elsewhere = guard::is_text_about_messages(body, line, hit, has_request);
    if verdict == Verdict::Nothing || is_told_elsewhere || is_idle || !is_said(form, &spot, &sizes) {
        return None;
    }
    let first_line_end = line_end(body, hit).min(to).max(hit);
    let mut found = Found::at(form.kind, &body[from..first_line_end], from, to);
    // A kernel that was only tried, to see which is the fastest.
    let is_tried = form.kind.speaker() == Speaker::Kernel && guard::is_autotuning(prefix);
    found.failure.is_error = verdict == Verdict::Failure && !is_tried;
    refine(&mut found, window, prefix, &sizes);
    Some(found)
}

/// A phrase where it stands.
struct Spot<'t> {
    /// Its line.
    line: &'t str,
    /// Where it begins in the line.
    at: usize,
    /// From the phrase to the end of the message.
    rest: &'t str,
    /// What a logger put before the line.
    prefix: &'t str,
    /// What stands before its line and behind its message.
    around: (&'t str, &'t str),
    strength: Strength,
}

/// Whether a phrase stands as its form has it.
fn is_said(form: &Form, spot: &Spot, sizes: &[Told]) -> bool {
    let is_report = guard::is_report(&spot.line[..spot.at], spot.prefix);
    match form.kind {
        _ if form.need == Need::Report && !is_report => false,
        Kind::Unknown | Kind::CudaErrorOom | Kind::HipErrorOom | Kind::KubernetesOomKill
            if guard::is_subject(spot.rest) =>
        {
            false
        }
        Kind::Unknown | Kind::HostBadAlloc | Kind::WindowsCommit if guard::is_code_line(spot.line) => false,
        Kind::Unknown if guard::is_chat_or_row(spot.line, spot.prefix) => false,
        // Python says no more than the name of the class.
        Kind::HostBadAlloc if spot.rest.starts_with("MemoryError") => {
            spot.line.trim_start().starts_with("MemoryError")
                && (spot.rest.starts_with("MemoryError: ") || guard::is_crash(spot.around.0, spot.around.1))
        }
        Kind::KubernetesOomKill => {
            !spot.rest.starts_with("OOMK")
                || KILLED_BY.is_match(spot.rest)
                    && !EXIT_CODE.is_match(&spot.line[..spot.at])
                    && !spot.line[..spot.at].ends_with(char::is_alphanumeric)
        }
        Kind::TritonSharedMemory => {
            !spot.rest.contains("resource: threads") && !spot.rest.contains("resource: registers")
        }
        // The sentence goes on with its numbers.
        Kind::TorchMps | Kind::TorchNpu | Kind::TorchXpu | Kind::TorchHip | Kind::TorchCuda => {
            TORCH_GOES_ON.is_match(spot.rest)
        }
        Kind::Unknown => is_failure_of_any_vendor(spot, sizes, is_report),
        Kind::CudaErrorOom
        | Kind::HipErrorOom
        | Kind::VulkanAlloc
        | Kind::SyclAlloc
        | Kind::CudaLibraryAlloc
        | Kind::HostBadAlloc => is_report || guard::stands_alone(spot.line, spot.at),
        _ => true,
    }
}

/// Whether a statement of nobody known is the report of a failure: by its sizes, by how its line begins, or because the
/// program ends there.
fn is_failure_of_any_vendor(spot: &Spot, sizes: &[Told], is_report: bool) -> bool {
    let is_measured = sizes.iter().any(|told| {
        let is_of_request = spot.strength != Strength::Measured || matches!(told.role, Role::Requested | Role::InUse);
        let is_large = told.unit != Unit::Bare || told.printed.bytes.0 >= 4096;
        !matches!(told.role, Role::Limit | Role::Free) && is_large && is_of_request
    });
    if is_measured {
        return is_report || guard::stands_alone(spot.line, spot.at);
    }
    let head = format!("{}{}", spot.prefix, &spot.line[..spot.at]);
    // A warning without a size may be cut off before it says that the program goes on.
    if spot.strength == Strength::Clear && WARNS.is_match(&head) {
        return false;
    }
    // The class of an error, and what it says.
    if spot.strength == Strength::Clear && CLASS.is_match(spot.rest) && guard::stands_alone(spot.line, spot.at) {
        return true;
    }
    let is_logged = guard::is_logged(&head);
    match spot.strength {
        Strength::Measured => false,
        _ if is_report => true,
        // Caches are emptied and tables dropped for want of memory too.
        Strength::Ended if !WHO.is_match(spot.line) => false,
        Strength::Ended => is_logged || guard::stands_alone(spot.line, spot.at),
        Strength::Clear => {
            guard::stands_alone(spot.line, spot.at)
                && (guard::is_logged_as_trouble(&head) || guard::is_crash(spot.around.0, spot.around.1))
        }
    }
}
