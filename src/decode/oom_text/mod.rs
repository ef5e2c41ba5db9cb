//! Out-of-memory messages in any text: a log, a traceback, a chat message, hundreds of megabytes around them.
//!
//! A scan finds the places that may hold a message. Of these excerpts layers are taken away (escapes, quoting,
//! prefixes) and processes told apart. Messages with lists and tables have a file for each family; all others are read
//! by one table of phrases and by the words beside their sizes. A number that the end of the text may have cut is left
//! out.

mod bfc;
mod details;
mod forms;
mod found;
mod guard;
mod head;
mod ipu;
mod layers;
mod listing;
mod merge;
mod needles;
mod pattern;
mod program;
mod roles;
mod scan;
mod shape;
mod size;
mod statements;
mod tensorflow;
mod torch;
mod tpu_compile;
mod tpu_runtime;
mod triggers;
mod xla_gpu;

use forms::Trust;
use found::Found;
use layers::{Encoding, Joining, Text, Utf16Reader, detect, streams, to_text};
use merge::Sameness;
use pattern::patterns;
use rayon::prelude::*;
use scan::{Excerpt, scan};

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{
    Capacity, Device, DeviceKind, Failure, FailureKind, MemorySpace, NoteCode, Profile, Speaker, counted,
};
use crate::source::{Input, Packing, Progress, Stage};

/// More messages than this are counted, not kept.
const MAX_FAILURES: usize = 500;

/// Texts with out-of-memory messages.
pub struct OomTextDecoder;

/// Whether part of an out-of-memory message may be among these bytes: a quick search for the words that such messages
/// have, which decides what of a long text is kept.
#[must_use]
pub fn may_hold_message(bytes: &[u8]) -> bool {
    needles::find(bytes, 0).is_some()
}

impl Decoder for OomTextDecoder {
    fn format(&self) -> &'static str {
        "out-of-memory text"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::Text,
            words: "text: out-of-memory messages in it",
            patterns: &["*.log", "*.txt", "*.out", "*.err"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        is_text(input.head())
    }

    fn is_fallback(&self) -> bool {
        true
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        // Packed, nobody knows how much there will be.
        context.progress.begin(Stage::Reading, if input.packing() == Packing::None { input.size() } else { 0 });
        let mut reading = Reading::new(context.progress);
        let reader = input.reader_to_cut()?;
        let scanned = match detect(input.head()) {
            Encoding::Bytes => scan(reader, context.progress, |excerpt| reading.take(excerpt)),
            encoding => {
                let reader = Utf16Reader::new(reader, encoding == Encoding::Utf16Be);
                scan(reader, context.progress, |excerpt| reading.take(excerpt))
            }
        };
        let (mut failures, dropped) = reading.finish();
        context.progress.check()?;
        match scanned {
            Err(error) if error.is_cancelled() || failures.is_empty() => return Err(error),
            Err(error) => context.reporter.warn(format!("the text could not be read to its end: {error}"), None),
            Ok(scanned) if failures.is_empty() => {
                let text = nothing_found(scanned.bytes, scanned.lines);
                context.reporter.info_about(NoteCode::NoFailureFound, text);
            }
            Ok(_) => {}
        }
        if dropped > 0 {
            context
                .reporter
                .warn(format!("{dropped} more messages are in the text; the first {MAX_FAILURES} are shown"), None);
        }
        for failure in &mut failures {
            input.file_name().clone_into(&mut failure.source);
        }
        Ok(profile_of(failures, input.file_name()))
    }
}

/// Bytes of excerpts that wait to be read together, on all processors.
const BATCH: usize = 16 << 20;

/// Excerpts that wait, and the failures of those before them.
struct Reading<'p> {
    progress: &'p Progress,
    waiting: Vec<Excerpt>,
    bytes: usize,
    failures: Vec<Failure>,
    sameness: Sameness,
    dropped: usize,
}

impl<'p> Reading<'p> {
    fn new(progress: &'p Progress) -> Self {
        let (waiting, failures) = (Vec::new(), Vec::new());
        Self { progress, waiting, bytes: 0, failures, sameness: Sameness::default(), dropped: 0 }
    }

    fn take(&mut self, excerpt: Excerpt) {
        self.bytes += excerpt.bytes.len();
        self.waiting.push(excerpt);
        if self.bytes >= BATCH {
            self.read();
        }
    }

    fn read(&mut self) {
        let found: Vec<Vec<Failure>> = self.waiting.par_iter().map(|excerpt| read(excerpt, self.progress)).collect();
        self.waiting.clear();
        self.bytes = 0;
        for failure in found.into_iter().flatten() {
            if self.progress.check().is_err() {
                return;
            }
            let before = self.failures.len();
            let is_new = self.sameness.add(&mut self.failures, failure, MAX_FAILURES);
            self.dropped += usize::from(is_new && self.failures.len() == before);
        }
    }

    /// The failures, and how many more there are.
    fn finish(mut self) -> (Vec<Failure>, usize) {
        self.read();
        (self.failures, self.dropped)
    }
}

/// What was looked for, in a sentence.
fn nothing_found(bytes: u64, lines: u64) -> String {
    format!(
        "No out-of-memory message in {} ({}). Looked for those of the TPU compiler and runtime, XLA, TensorFlow, \
         PyTorch, CUDA and its libraries, ROCm, vLLM and other servers, ggml, ONNX Runtime, Triton, Neuron, \
         Poplar, and of the host's kernel and schedulers",
        // The last line need not end with a line break.
        counted(lines.max(u64::from(bytes > 0)), "line"),
        counted(bytes, "byte")
    )
}

/// Whether bytes are the beginning of a text.
fn is_text(head: &[u8]) -> bool {
    let looked_at = &head[..head.len().min(16 << 10)];
    if detect(looked_at) != Encoding::Bytes {
        return true;
    }
    let odd =
        looked_at.iter().filter(|&&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b | 0x08)).count();
    // Letters of Latin-1 are invalid UTF-8; a text has few of them.
    let invalid = looked_at.utf8_chunks().map(|chunk| chunk.invalid().len()).sum::<usize>();
    !looked_at.is_empty()
        && !looked_at.contains(&0)
        && odd * 100 <= looked_at.len()
        && invalid * 20 <= looked_at.len() + 60
}

patterns! {
    FRAMEWORK = r"(?:^|[^\w/])(?:(jaxlib|jax)[./_]|(tensorflow)[./]|(torch_xla)\b|(Reactant)\b)";
    /// The lowest level of a log.
    INFORMATION = r"(?:^|\s)I(?:\d{4}\s[\d:.]+\s+\d+)?\s[^\s\]]+:\d+\]|\bINFO\b";
    /// Said in the message itself, not by a launcher.
    RANK = r"(?i)\[rank:? ?(\d+)\]";
    CODE = r"\bE(\d{4}): ?(\w+)?";
    SAVED = r"(?:Profile saved to|profile written to|Dumped (?:HLO|module)[^\n]{0,80}? to|dumped to|xla_dump_to[=:]|Writing (?:dump|report) to):?\s*['`]?([^\s'`,;]+)";
}

/// Every message of an excerpt; once it was cancelled, not all of them.
fn read(excerpt: &Excerpt, progress: &Progress) -> Vec<Failure> {
    if progress.check().is_err() {
        return Vec::new();
    }
    let texts = streams(excerpt, Joining::Lines, progress);
    let mut best = read_streams(&texts, Trust::All, progress);
    if excerpt.bytes.len() > MAX_JOINED {
        return best;
    }
    // Lines of source code, of a diff, a history, a chat or a table, put together, look like anything.
    let is_other =
        |text: &Text| guard::is_source(&text.text) || guard::has_diff(&text.text) || guard::is_history(&text.text);
    if best.is_empty() && (texts.iter().any(is_other) || guard::has_chat_or_table(&to_text(&excerpt.bytes))) {
        return best;
    }
    // Of a wrapped sentence the first line may be a message already, but it says less.
    for joining in [Joining::Words, Joining::Width] {
        let texts = streams(excerpt, joining, progress);
        if texts.iter().any(|text| text.joined > 0) {
            let found =
                read_streams(&texts, if joining == Joining::Words { Trust::All } else { Trust::Sizes }, progress);
            let is_better = best.is_empty() || found.len() <= best.len();
            // A word that was cut in two may have been read as another one: as much is said, in a longer sentence.
            let words = |failures: &[Failure]| failures.iter().map(|failure| failure.message.len()).sum::<usize>();
            let is_longer = joining == Joining::Width && words(&found) > words(&best);
            if is_better && (told(&found) > told(&best) || is_longer && told(&found) == told(&best)) {
                best = found;
            }
        }
    }
    // A wrapped sentence behind an unknown prefix, or wrapped within words, needs the lines put together otherwise.
    for joining in [Joining::SharedPrefix, Joining::Wrapped] {
        if best.is_empty() {
            best = read_streams(&streams(excerpt, joining, progress), Trust::Requests, progress);
        }
    }
    best
}

/// Every message of streams, in the order of the text.
fn read_streams(texts: &[Text], trust: Trust, progress: &Progress) -> Vec<Failure> {
    let found = texts.iter().flat_map(|text| read_text(text, trust, progress));
    let mut failures: Vec<Failure> = found.map(|found| found.failure).collect();
    failures.sort_by_key(|failure| failure.offset);
    merge::across(failures)
}

/// How much messages say.
fn told(failures: &[Failure]) -> usize {
    let of_one = |failure: &Failure| {
        failure.fields.len() * 2 + failure.allocations.len() + usize::from(failure.kind != FailureKind::Unknown)
    };
    failures.iter().map(of_one).sum()
}

/// A longer excerpt is not put together otherwise.
const MAX_JOINED: usize = 64 << 10;

/// Every message of a stream; of one that was put together anyhow only those with numbers.
fn read_text(text: &Text, trust: Trust, progress: &Progress) -> Vec<Found> {
    let body = text.text.as_str();
    let mut found = Vec::new();
    for find in [tpu_compile::find, tpu_runtime::find, xla_gpu::find, tensorflow::find, torch::find, ipu::find] {
        if progress.check().is_err() {
            return Vec::new();
        }
        find(body, &mut found);
    }
    bfc::find(body, progress, &mut found);
    found.sort_by_key(|found| (found.start, found.end));
    let starts: Vec<usize> = found.iter().map(|found| found.start).chain([body.len()]).collect();
    for (i, one) in found.iter_mut().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(body.len());
        let section = body.get(one.end..end.max(one.end)).unwrap_or("");
        if progress.check().is_err() {
            return Vec::new();
        }
        let is_cut = text.is_cut && end == body.len();
        tpu_compile::details(one, section, is_cut);
        tpu_runtime::details(one, section, is_cut);
        xla_gpu::details(one, section, is_cut);
        tensorflow::details(one, section);
        torch::details(one, section);
        ipu::details(one, section);
    }
    found.retain_mut(|one| guard::keep(body, one));
    if progress.check().is_err() {
        return Vec::new();
    }
    forms::find(text, trust, &mut found);
    found.sort_by_key(|found| (found.start, found.end));
    let starts: Vec<usize> = found.iter().map(|found| found.start).chain([body.len()]).collect();
    for (i, one) in found.iter_mut().enumerate() {
        if progress.check().is_err() {
            return Vec::new();
        }
        let end = starts.get(i + 1).copied().unwrap_or(body.len());
        place(one, text, body.get(one.end..end.max(one.end)).unwrap_or(""));
    }
    merge::merge(found)
}

/// Where the message stands, its code, and the files it names.
fn place(found: &mut Found, text: &Text, section: &str) {
    if let Some(place) = text.place(found.start) {
        found.failure.offset = place.offset;
        found.failure.line = place.line;
        found.failure.process.clone_from(&place.process);
    }
    // A driver that grows its pool tries smaller and smaller pieces, and logs that for information only.
    let is_driver = matches!(
        found.failure.kind,
        FailureKind::CudaDriverAlloc | FailureKind::CudaHostAlloc | FailureKind::RocmAlloc
    );
    if is_driver && text.place(found.start).is_some_and(|place| INFORMATION.is_match(&place.prefix)) {
        found.failure.is_error = false;
    }
    let body = text.text.as_str();
    let line_start = body[..found.start].rfind('\n').map_or(0, |i| i + 1);
    let near = body.get(line_start..found.end).unwrap_or("");
    let rank = found.failure.process.as_deref().and_then(|name| name.strip_prefix("rank "));
    let rank = rank.or_else(|| Some(RANK.captures(near)?.get(1)?.as_str()));
    found.put("rank", rank.and_then(pattern::count_value));
    if matches!(found.failure.kind.speaker(), Speaker::Xla | Speaker::Bfc | Speaker::Rocm) {
        let prefix = text.place(found.start).map_or("", |place| place.prefix.as_str());
        let named = FRAMEWORK.captures(near).or_else(|| FRAMEWORK.captures(prefix));
        let name = named.and_then(|groups| groups.iter().skip(1).flatten().next()).map(|name| name.as_str());
        found.put("framework", name.map(|name| pattern::text_value(if name == "jaxlib" { "jax" } else { name })));
    }
    let code = CODE.captures_iter(near).filter_map(|c| c.get(1)).last().map(|code| format!("E{}", code.as_str()));
    found.failure.error_code_printed = code.is_some();
    found.failure.error_code = code.or_else(|| found.failure.kind.error_code().map(ToOwned::to_owned));
    let behind = head::head_of(section, 4000);
    for saved in SAVED.captures_iter(near).chain(SAVED.captures_iter(behind)) {
        let Some(path) = saved.get(1).map(|m| m.as_str().trim_end_matches(['.', ')', '"'])) else { continue };
        // The last word of a cut text may be half a path.
        let is_whole = !text.is_cut || !body.ends_with(path);
        if is_whole && !path.is_empty() && !found.failure.paths.iter().any(|known| known == path) {
            found.failure.paths.push(path.to_owned());
        }
    }
}

/// The profile of the messages of a text: the device as far as they name it, and the listings as programs.
fn profile_of(failures: Vec<Failure>, file: &str) -> Profile {
    let device = device_of(&failures, file);
    let programs = failures.iter().enumerate().filter_map(|(i, failure)| program::of(failure, i)).collect();
    Profile { device, programs, failures, ..Profile::default() }
}

fn device_of(failures: &[Failure], file: &str) -> Device {
    let mut device = Device::default();
    for failure in failures {
        let kind = match failure.kind.speaker() {
            Speaker::TpuCompiler | Speaker::TpuRuntime => Some(DeviceKind::Tpu),
            Speaker::Poplar => Some(DeviceKind::Ipu),
            Speaker::Torch
                if matches!(failure.kind, FailureKind::TorchCpu | FailureKind::TorchHpu | FailureKind::TorchNpu) =>
            {
                None
            }
            Speaker::Torch | Speaker::Rocm | Speaker::Cuda | Speaker::Serving | Speaker::Kernel => {
                Some(DeviceKind::Gpu)
            }
            _ if failure.text("allocator").is_some_and(|name| name.starts_with("GPU")) => Some(DeviceKind::Gpu),
            _ => None,
        };
        if device.kind.is_none() {
            device.kind = kind;
        }
        let Some((color, key)) = capacity_key(failure) else { continue };
        let Some(size) = failure.size(key) else { continue };
        if device.capacity(color).is_none() {
            // The message's own words, in which a unit may be a letter.
            let printed = size.text.as_ref().map(|text| format!("\u{201c}{text}\u{201d}"));
            let printed = printed.unwrap_or_else(|| size.bytes.exact());
            let evidence = format!("{printed}, from the out-of-memory message in {file}, line {}", failure.line);
            device.capacities.push(Capacity { color, bytes: size.bytes, evidence });
        }
    }
    device
}

/// The memory space whose capacity a message gives, and its key. `None` where the limit is not the device's: what is
/// left for a program beside its arguments, a share that a process may use.
fn capacity_key(failure: &Failure) -> Option<(MemorySpace, &'static str)> {
    let color = match failure.text("space") {
        None | Some("hbm") => MemorySpace::HBM,
        Some("vmem") => MemorySpace::VMEM,
        Some("cmem") => MemorySpace::CMEM,
        Some("smem") => MemorySpace::SMEM,
        Some(_) => return None,
    };
    match failure.kind {
        FailureKind::TpuHbmListing | FailureKind::TpuHbmUsage => {
            // The limit of a program beside its arguments is what they leave.
            let beside = failure.bytes("program").is_some_and(|program| Some(program) == failure.bytes("used"))
                && failure.bytes("arguments").is_some_and(|arguments| arguments.0 > 0);
            (!beside).then_some((color, "capacity"))
        }
        FailureKind::TpuHbmOneline
        | FailureKind::TpuHbmEarly
        | FailureKind::TpuVmemOneline
        | FailureKind::TpuSmemOneline
        | FailureKind::TpuAllocExceeds
        | FailureKind::TpuCompileAbort
        | FailureKind::TpuTcScHbm
        | FailureKind::TpuRuntimeReserve
        | FailureKind::TorchCuda
        | FailureKind::TorchCudaLimit
        | FailureKind::TorchHip
        | FailureKind::TorchXpu => Some((color, "capacity")),
        FailureKind::BfcDump | FailureKind::BfcStats | FailureKind::BfcOom => Some((MemorySpace::HBM, "limit")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
