//! What XLA says on GPUs and CPUs: the failed request, the statistics of the buffer assignment, the buffers at the peak.

use super::found::Found;
use super::listing;
use super::pattern::{patterns, size, size_value};
use super::shape;
use crate::model::{Bytes, FailureKind, FailureValue, PeakBuffer, RematWarning};

patterns! {
    TRYING = r"Out of memory while trying to allocate (?:<N> bytes|<H>)";
    REQUEST = r"Failed to allocate request for <H> \(<N>B\) on device ordinal <N>(?:[^\d]|$)";
    ROCM = r"failed to allocate <H> \(<N> bytes\) from device: (\w+)";
    EXECUTABLE = r"\A[^\n]{0,200}\[executable_name='([^'\n]{1,200})'";
    ALLOCATOR = r"\A with allocator (\w{1,100}) on device";
    UNTRIED = r"Failed to get configs for: \d+ out of \d+ instructions[^\n]*\nOut of memory while trying to allocate (\S+) ";
    STATS = r"(?m)\b(parameter allocation|constant allocation|maybe_live_out allocation|preallocated temp allocation|preallocated temp fragmentation|total allocation|total fragmentation):[ \t]*<H>";
    PEAK = r"Peak buffers:";
    BUFFER = r"(?:^|\s)Buffer (\d{1,6}):[ \t]*$";
    SIZE = r"\bSize:[ \t]*<H>[ \t]*$";
    OPERATOR = r"\bOperator:[ \t]*(.*)$";
    PARAMETER = r"\bEntry Parameter Subshape:[ \t]*(.*)$";
    LABEL = r"\bXLA Label:[ \t]*(\S+)[ \t]*$";
    SHAPE = r"\bShape:[ \t]*(.*)$";
    RULE = r"={10,}[ \t]*$";
    REMAT = r"Can't reduce memory use below <H> \(<N> bytes\) by rematerialization; only reduced to <H> \(<N> bytes\), down from <H> \(<N> bytes\)";
}

/// How far the statistics may stand behind the sentence.
const STATS_WITHIN: usize = 8 << 10;
/// More buffers than this are not kept.
const MAX_BUFFERS: usize = 100_000;

/// Every message in a text.
pub fn find(text: &str, found: &mut Vec<Found>) {
    // What the compiler could not allocate to try out kernels, where it gave up for that.
    let untried = UNTRIED.captures(text).and_then(|captures| captures.get(1)).map(|size| size.as_str());
    for captures in TRYING.captures_iter(text) {
        let mut new = Found::new(FailureKind::XlaRuntimeAlloc, &captures);
        new.bytes("requested", &captures, 1).size("requested", &captures, 2);
        let end = captures.get(0).map_or(text.len(), |all| all.end());
        if let Some(executable) = EXECUTABLE.captures(super::head::head_of(&text[end..], 500)) {
            new.text("executable", &executable, 1);
        }
        if let Some(allocator) = ALLOCATOR.captures(super::head::head_of(&text[end..], 200)) {
            new.text("allocator", &allocator, 1);
        }
        let printed = captures.get(2).map(|size| size.as_str());
        new.put("tried_kernels", (untried.is_some() && untried == printed).then_some(FailureValue::Flag(true)));
        found.push(new);
    }
    for captures in REQUEST.captures_iter(text) {
        let mut new = Found::new(FailureKind::XlaRuntimeAlloc, &captures);
        exact_request(&mut new, &captures);
        // A digit that nothing follows may be the first of several.
        if captures.get(0).is_some_and(|all| !all.as_str().ends_with(|c: char| c.is_ascii_digit())) {
            new.text("device", &captures, 3);
        }
        found.push(new);
    }
    for captures in ROCM.captures_iter(text) {
        let is_cuda = captures.get(3).is_some_and(|error| error.as_str().starts_with("CUDA"));
        let kind = if is_cuda { FailureKind::CudaDriverAlloc } else { FailureKind::RocmAlloc };
        let mut new = Found::new(kind, &captures);
        exact_request(&mut new, &captures);
        // A word at the very end of a text may be half a name.
        if captures.get(3).is_some_and(|error| error.end() < text.len()) {
            new.text("driver_error", &captures, 3);
        }
        found.push(new);
    }
    let mut warnings: Option<Found> = None;
    for captures in REMAT.captures_iter(text) {
        let bytes = |group| captures.get(group).and_then(|n: regex::Match<'_>| n.as_str().parse().ok()).map(Bytes);
        let (Some(target), Some(reached), Some(from)) = (bytes(2), bytes(4), bytes(6)) else { continue };
        let warning = warnings.get_or_insert_with(|| Found::new(FailureKind::XlaRematWarning, &captures));
        warning.failure.is_error = false;
        warning.failure.warnings.push(RematWarning { target, reached, from });
    }
    found.extend(warnings);
}

/// The text of the request, with the exact bytes beside it.
fn exact_request(found: &mut Found, captures: &regex::Captures<'_>) {
    let printed = captures.get(1).and_then(|text| size(text.as_str()));
    let exact = captures.get(2).and_then(|n| n.as_str().parse().ok()).map(Bytes);
    if let (Some(mut printed), Some(exact)) = (printed, exact) {
        printed.bytes = exact;
        found.put("requested", Some(FailureValue::Size(printed)));
    }
}

/// Reads statistics and buffers behind the sentence.
pub fn details(found: &mut Found, section: &str, is_cut: bool) {
    if found.failure.kind != FailureKind::XlaRuntimeAlloc {
        return;
    }
    let peak = PEAK.find(section);
    let stats_end = peak.as_ref().map_or_else(|| super::head::head_of(section, STATS_WITHIN).len(), |m| m.start());
    let mut any = false;
    for row in STATS.captures_iter(&section[..stats_end]).take(20) {
        let label = row.get(1).map_or("", |m| m.as_str()).split_whitespace().collect::<Vec<_>>().join(" ");
        let key = match label.as_str() {
            "parameter allocation" => "parameters",
            "constant allocation" => "constants",
            "maybe_live_out allocation" => "maybe_live_out",
            "preallocated temp allocation" => "temporaries",
            "preallocated temp fragmentation" => "temporaries_fragmentation",
            "total allocation" => "total",
            _ => "fragmentation",
        };
        any = true;
        found.put(key, row.get(2).and_then(|m| size_value(m.as_str())));
    }
    if let Some(peak) = peak {
        found.failure.peak_buffers = buffers(&section[peak.end()..], is_cut);
        any = true;
    }
    if any {
        found.failure.kind = FailureKind::XlaGpuPeakBuffers;
    }
}

fn buffers(text: &str, is_cut: bool) -> Vec<PeakBuffer> {
    let mut buffers: Vec<PeakBuffer> = Vec::new();
    let mut open = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        at += line.len();
        let whole = !(is_cut && at == text.len() && !line.ends_with('\n'));
        let line = line.trim_end();
        let capture = |pattern: &regex::Regex| listing::capture(pattern, line, 1);
        if let Some(number) = capture(&BUFFER) {
            let number = number.parse().unwrap_or(0);
            if buffers.len() >= MAX_BUFFERS || buffers.last().is_some_and(|last| number <= last.number) {
                break;
            }
            buffers.push(PeakBuffer { number, ..PeakBuffer::default() });
            open = true;
            continue;
        }
        let Some(buffer) = buffers.last_mut().filter(|_| open) else { continue };
        if RULE.is_match(line) {
            open = false;
        } else if let Some(operator) = capture(&OPERATOR) {
            let (op_name, source) = listing::operator(operator);
            buffer.op_name = op_name;
            buffer.source = source.filter(|_| whole);
        } else if let Some(shape) = capture(&PARAMETER) {
            buffer.entry_parameter = true;
            read_shape(buffer, shape, whole);
        } else if let Some(label) = capture(&LABEL) {
            buffer.label = whole.then(|| label.to_owned());
        } else if let Some(text) = capture(&SIZE) {
            buffer.size = size(text);
        } else if let Some(shape) = capture(&SHAPE) {
            read_shape(buffer, shape, whole);
        }
    }
    buffers.retain(|buffer| buffer.size.is_some());
    buffers
}

fn read_shape(buffer: &mut PeakBuffer, text: &str, whole: bool) {
    if let Some((shape, rest)) = shape::parse(text) {
        if whole {
            buffer.shape_text = Some(text[..text.len() - rest.len()].to_owned());
        }
        buffer.shape = Some(shape);
    }
}
