//! Out-of-memory messages in any text: a log, a traceback, a chat message, hundreds of megabytes around them.
//!
//! A scan finds the places that may hold a message; these excerpts are cleaned of prefixes and searched by one file
//! per family of messages. A number that the end of the text may have cut is left out.

mod bfc;
mod clean;
mod found;
mod ipu;
mod listing;
mod merge;
mod pattern;
mod program;
mod scan;
mod shape;
mod tensorflow;
mod torch;
mod tpu_compile;
mod tpu_runtime;
mod xla_gpu;

use clean::{Joining, Text, clean};
use found::Found;
use pattern::patterns;
pub use scan::NEEDLES;
use scan::{Excerpt, scan};

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{Capacity, Device, DeviceKind, Failure, FailureKind, MemorySpace, NoteCode, Profile, Speaker};
use crate::source::{Input, Packing, Stage};

/// More messages than this are counted, not kept.
const MAX_FAILURES: usize = 500;

/// Texts with out-of-memory messages.
pub struct OomTextDecoder;

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
        let packed = (input.packing() == Packing::Gzip).then_some("gzip");
        // Packed, nobody knows how much there will be.
        context.progress.begin(Stage::Reading, if packed.is_some() { 0 } else { input.size() });
        let mut failures = Vec::new();
        let mut dropped = 0usize;
        let scanned = scan(input.reader()?, packed, context.progress, |excerpt| {
            for failure in read(&excerpt) {
                if failures.len() < MAX_FAILURES {
                    failures.push(failure);
                } else {
                    dropped += 1;
                }
            }
        });
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

/// What was looked for, in a sentence.
fn nothing_found(bytes: u64, lines: u64) -> String {
    format!(
        "no out-of-memory message in this text ({lines} lines, {bytes} bytes); looked for messages of the TPU compiler \
         and runtime, XLA on GPU and CPU, the BFC allocator, TensorFlow, PyTorch (CUDA, HIP, XPU) and Poplar"
    )
}

/// Whether bytes are the beginning of a text.
fn is_text(head: &[u8]) -> bool {
    let looked_at = &head[..head.len().min(16 << 10)];
    let odd =
        looked_at.iter().filter(|&&b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r' | 0x0c | 0x1b | 0x08)).count();
    let invalid = looked_at.utf8_chunks().map(|chunk| chunk.invalid().len()).sum::<usize>();
    !looked_at.is_empty()
        && !looked_at.contains(&0)
        && odd * 100 <= looked_at.len()
        && invalid * 20 <= looked_at.len() + 60
}

patterns! {
    CODE = r"\bE(\d{4}): ?(\w+)?";
    SAVED = r"(?:Profile saved to|profile written to|Dumped (?:HLO|module)[^\n]{0,80}? to|dumped to|xla_dump_to[=:]|Writing (?:dump|report) to):?\s*['`]?([^\s'`,;]+)";
}

/// The first bytes of a text, whole characters.
fn head_of(text: &str, mut len: usize) -> &str {
    len = len.min(text.len());
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    &text[..len]
}

/// Every message of an excerpt.
fn read(excerpt: &Excerpt) -> Vec<Failure> {
    // A wrapped sentence behind an unknown prefix, or wrapped within words, needs the lines put together otherwise.
    for joining in [Joining::Lines, Joining::SharedPrefix, Joining::Wrapped] {
        if joining != Joining::Lines && excerpt.bytes.len() > 1 << 20 {
            break;
        }
        let text = clean(excerpt, joining);
        let failures = read_text(&text);
        if !failures.is_empty() {
            return failures;
        }
    }
    Vec::new()
}

fn read_text(text: &Text) -> Vec<Failure> {
    let body = text.text.as_str();
    let mut found = Vec::new();
    tpu_compile::find(body, &mut found);
    tpu_runtime::find(body, &mut found);
    xla_gpu::find(body, &mut found);
    tensorflow::find(body, &mut found);
    torch::find(body, &mut found);
    ipu::find(body, &mut found);
    bfc::find(body, &mut found);
    found.sort_by_key(|found| (found.start, found.end));
    let starts: Vec<usize> = found.iter().map(|found| found.start).chain([body.len()]).collect();
    for (i, one) in found.iter_mut().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(body.len());
        let section = body.get(one.end..end.max(one.end)).unwrap_or("");
        let is_cut = text.is_cut && end == body.len();
        tpu_compile::details(one, section, is_cut);
        tpu_runtime::details(one, section, is_cut);
        xla_gpu::details(one, section, is_cut);
        tensorflow::details(one, section);
        torch::details(one, section);
        ipu::details(one, section);
        place(one, text, section);
    }
    merge::merge(found)
}

/// Where the message stands, its code, and the files it names.
fn place(found: &mut Found, text: &Text, section: &str) {
    let (offset, line, prefix) = text.place(found.start);
    found.failure.offset = offset;
    found.failure.line = line;
    found.failure.process = clean::process(prefix);
    let body = text.text.as_str();
    let line_start = body[..found.start].rfind('\n').map_or(0, |i| i + 1);
    let near = body.get(line_start..found.end).unwrap_or("");
    let code = CODE.captures_iter(near).filter_map(|c| c.get(1)).last().map(|code| format!("E{}", code.as_str()));
    found.failure.error_code_printed = code.is_some();
    found.failure.error_code = code.or_else(|| found.failure.kind.error_code().map(ToOwned::to_owned));
    let behind = head_of(section, 4000);
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
            Speaker::Torch | Speaker::Rocm => Some(DeviceKind::Gpu),
            _ if failure.text("allocator").is_some_and(|name| name.starts_with("GPU")) => Some(DeviceKind::Gpu),
            _ => None,
        };
        if device.kind.is_none() {
            device.kind = kind;
        }
        let Some((color, key)) = capacity_key(failure) else { continue };
        let Some(size) = failure.size(key) else { continue };
        if device.capacity(color).is_none() {
            let printed = size.text.clone().unwrap_or_else(|| size.bytes.exact());
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
        | FailureKind::TorchHip
        | FailureKind::TorchXpu
        | FailureKind::TorchAllowedMemory => Some((color, "capacity")),
        FailureKind::BfcDump | FailureKind::BfcStats | FailureKind::BfcOom => Some((MemorySpace::HBM, "limit")),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
