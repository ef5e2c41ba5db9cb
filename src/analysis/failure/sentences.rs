//! A failure in words: its title, and a sentence for each thing that its message tells.

use super::outside::{Outside, cached, outside};
use super::{Cause, memory};
use crate::model::{Bytes, Failure, FailureKind, PrintedSize, Speaker, UnitSystem, thousands};

/// What ran out, on one line.
pub fn title(failure: &Failure) -> String {
    let memory = memory(failure);
    if !failure.is_error {
        return failure.kind.title().to_owned();
    }
    match failure.kind {
        FailureKind::IpuTile => match failure.count("tile") {
            Some(tile) => format!("Tile {tile} needs more than it has"),
            None => "A tile needs more than it has".to_owned(),
        },
        FailureKind::TpuRuntimeLoad => match failure.text("program") {
            Some(program) => format!("No room in {memory} to load {program}"),
            None => format!("No room in {memory} to load a program"),
        },
        kind if kind.speaker() == Speaker::TpuRuntime => format!("No room in {memory}"),
        FailureKind::TorchMemorySummary | FailureKind::TfUsageReport => failure.kind.title().to_owned(),
        _ => format!("Out of {memory}"),
    }
}

fn short(bytes: Bytes) -> String {
    bytes.short()
}

/// What the message tells, in order: the need, the room, the cause, and what its kind has besides.
pub fn sentences(failure: &Failure, cause: Cause, over_by: Option<Bytes>, is_dump_read: bool) -> Vec<String> {
    let mut out = Vec::new();
    let memory = memory(failure);
    let size = |key: &str| failure.bytes(key);
    let said = |key: &str| failure.size(key).map(PrintedSize::in_words).unwrap_or_default();
    if let (Some(used), Some(capacity)) = (size("used"), size("capacity")) {
        let who = match failure.kind {
            FailureKind::IpuTile => "The tile needs".to_owned(),
            FailureKind::TpuAllocExceeds => "This one array needs".to_owned(),
            FailureKind::TpuScopedVmem => "The kernel's scratch memory needs".to_owned(),
            FailureKind::TpuHbmEarly => "The program, with its arguments and results, needs".to_owned(),
            _ => "The program needs".to_owned(),
        };
        let over = if used > capacity {
            let over = failure.size("exceeded").map_or_else(|| short(used - capacity), PrintedSize::in_words);
            format!(", {over} too much according to the message")
        } else if used == capacity && failure.is_error {
            "; the excess is below what the message prints".to_owned()
        } else {
            String::new()
        };
        // As printed, if that has more digits.
        let printed = said("used");
        let used = if printed == short(used) { UnitSystem::Binary.beside(used, capacity) } else { printed };
        let capacity = UnitSystem::Binary.capacity(capacity);
        out.push(format!("{who} {used} of {capacity} {memory}{over}"));
    }
    if let (Some(tc), Some(sc), Some(capacity)) = (size("tensorcore"), size("sparsecore"), size("capacity")) {
        out.push(format!(
            "TensorCore needs {} and SparseCore {}, together {} of {} HBM",
            said("tensorcore"),
            said("sparsecore"),
            UnitSystem::Binary.beside(tc + sc, capacity),
            UnitSystem::Binary.capacity(capacity)
        ));
    }
    let outside = outside(failure);
    let others_first = outside.is_some_and(|outside| outside.is_most);
    out.extend(outside.filter(|outside| outside.is_most).and_then(|outside| held_outside(failure, &outside)));
    out.extend(others(failure).filter(|_| others_first));
    let requested =
        failure.size("exact_request").or_else(|| failure.size("requested")).or_else(|| failure.size("rounded"));
    if let Some(requested) = requested {
        let requested = requested.in_words();
        let of_program = || failure.text("executable").map(|name| format!(" for the program {name}"));
        let op = failure.text("op").map(|op| format!(" by {op}")).or_else(of_program).unwrap_or_default();
        out.push(match failure.size("total_free").or_else(|| failure.size("free")) {
            Some(free) => format!("{requested} were requested{op} while {} of {memory} were free", free.in_words()),
            None => format!("{requested} of {memory} were requested{op}"),
        });
    }
    if failure.flag("tried_kernels") {
        out.push(
            "It failed while the program was compiled: XLA tries out kernels on arrays of the real sizes (autotuning), \
             beside the arrays that are already there"
                .to_owned(),
        );
    }
    if let Some((missing, over)) = failure.size("missing").zip(over_by).filter(|(size, over)| size.bytes > *over) {
        let more = missing.bytes - over;
        // Two printed sizes, each rounded to a hundredth.
        let reserved = failure.size("top_reserved").filter(|size| size.bytes.0.abs_diff(more.0) < more.0 / 20);
        let why = reserved.map_or_else(
            || format!("it subtracts {} besides", short(more)),
            |size| format!("it subtracts the {} reserved at the top of memory, too", size.in_words()),
        );
        out.push(format!("By the message's own count {} are missing: {why}", missing.in_words()));
    }
    if let Some(largest) = failure.largest_hole().filter(|largest| size("free") != Some(*largest)) {
        out.push(format!("The largest free block is {}", short(largest)));
    }
    match cause {
        Cause::Fragmentation => {
            out.push("Enough is free, but not in one block: this is fragmentation, not a true shortage".to_owned());
        }
        Cause::CachedInPieces => {
            let cached = size("unallocated").or_else(|| cached(failure)).unwrap_or_default();
            out.push(format!(
                "PyTorch holds {} in its cache that no tensor uses, in pieces too small for the request",
                short(cached)
            ));
        }
        Cause::Shortage if failure.kind == FailureKind::TorchCudaLimit && size("limit").is_some() => {
            out.push(format!(
                "The process may use {}, of which tensors take {}: that limit is used up, whatever else is free",
                said("limit"),
                said("allocated")
            ));
        }
        Cause::Shortage if requested.is_some() && size("free").is_some() => {
            out.push("Less is free than was requested: this is a true shortage".to_owned());
        }
        _ => {}
    }
    out.extend(outside.filter(|outside| !outside.is_most).and_then(|outside| held_outside(failure, &outside)));
    more_sentences(failure, is_dump_read, &mut out);
    out.extend(others(failure).filter(|_| !others_first));
    if failure.truncated {
        out.push("The text ends in the middle of the message; the rest is unknown".to_owned());
    }
    out
}

/// Who else holds memory of the device, by the message.
fn others(failure: &Failure) -> Option<String> {
    let (all, process) = (failure.bytes("other_in_use")?, failure.count("other_process")?);
    Some(match failure.count("other_processes").zip(failure.bytes("largest_other")) {
        Some((count, largest)) if count > 1 => {
            format!("{count} other processes use {}, the largest of them ({process}) {}", short(all), short(largest))
        }
        _ => format!("Another process ({process}) uses {}", short(all)),
    })
}

/// What neither PyTorch holds nor is free, where the message leaves it over.
fn held_outside(failure: &Failure, outside: &Outside) -> Option<String> {
    let capacity = failure.bytes("capacity").filter(|_| outside.rest > Bytes::ZERO)?;
    let (rest, all) = (UnitSystem::Binary.beside(outside.rest, capacity), UnitSystem::Binary.capacity(capacity));
    let by = if outside.other_process > Bytes::ZERO {
        "outside the processes that the message lists: the driver, or processes that it cannot see"
    } else if outside.counts_process {
        "outside this process: other processes, or the driver"
    } else {
        "outside PyTorch: other processes, or the driver and libraries of this one"
    };
    let most = if outside.is_most { ", more than PyTorch holds itself" } else { "" };
    Some(format!("{rest} of {all} are held {by}{most}"))
}

fn more_sentences(failure: &Failure, is_dump_read: bool, out: &mut Vec<String>) {
    let size = |key: &str| failure.bytes(key);
    if let (Some(padded), Some(unpadded)) = (size("padded"), size("unpadded"))
        && padded > unpadded
    {
        out.push(format!("{} of the temporaries are padding", short(padded - unpadded)));
    }
    if let Some(fragmentation) = size("fragmentation").filter(|bytes| bytes.0 > 0) {
        out.push(format!("{} are lost to fragmentation", short(fragmentation)));
    }
    if let Some(arguments) = size("arguments").filter(|bytes| bytes.0 > 0)
        && size("program").is_some()
        && size("program") == size("used")
    {
        out.push(format!("Its arguments take {} in addition; the limit is what they leave", short(arguments)));
    }
    match failure.kind {
        FailureKind::VllmStartup => {
            if let (Some(free), Some(capacity)) = (size("free"), size("capacity"))
                && free < capacity
            {
                out.push(format!(
                    "Other processes hold {} of {}",
                    short(capacity - free),
                    UnitSystem::Binary.capacity(capacity)
                ));
            }
        }
        FailureKind::IpuExchange => out.push(format!(
            "Exchange {} sends the tile more data than its whole memory",
            failure.text("exchange").unwrap_or("(name unknown)")
        )),
        FailureKind::IpuCode => {
            out.push("The program's code does not fit in the part of tile memory reserved for code".to_owned());
        }
        FailureKind::IpuAllowOom => {
            out.push(
                "Variables do not fit on one or more tiles; compilation continued in order to write a report"
                    .to_owned(),
            );
        }
        FailureKind::XlaRematWarning => {
            for warning in &failure.warnings {
                out.push(format!(
                    "Rematerialisation reduced memory from {} to {}, not to the target of {}",
                    short(warning.from),
                    short(warning.reached),
                    short(warning.target)
                ));
            }
        }
        FailureKind::BfcSoftWarning => out.push("The caller can continue with less; only speed may suffer".to_owned()),
        FailureKind::TfUsageReport => {
            if let Some(total) = size("total") {
                out.push(format!("{} were in use, most of it by {}", short(total), failure.text("top").unwrap_or("?")));
            }
        }
        FailureKind::TorchMemorySummary => {
            if let (Some(allocated), Some(reserved)) = (size("allocated"), size("reserved")) {
                out.push(format!(
                    "Tensors hold {} of {} that PyTorch reserved; {} are cached",
                    short(allocated),
                    short(reserved),
                    short(reserved.saturating_sub(allocated))
                ));
            }
        }
        FailureKind::BfcDump | FailureKind::BfcStats => {
            if let Some(in_use) = size("in_use") {
                let limit = size("pool_limit").or_else(|| size("limit"));
                let of = limit.map(|limit| format!(" of {}", short(limit))).unwrap_or_default();
                out.push(format!("The allocator has {}{of} in use", short(in_use)));
            }
        }
        _ => {}
    }
    if failure.kind == FailureKind::TpuHbmEarly {
        let elsewhere = if is_dump_read { "" } else { "; a dump of the program has them" };
        out.push(format!("This compiler prints no list of buffers{elsewhere}"));
    }
    if !failure.chunks.is_empty() {
        let free = failure.chunks.iter().filter(|chunk| !chunk.in_use).count();
        out.push(format!(
            "{} chunks are listed, {} of them free",
            thousands(failure.chunks.len() as u64),
            thousands(free as u64)
        ));
    }
}
