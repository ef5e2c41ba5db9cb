//! Explains an out-of-memory message: what ran out, by how much, and whether it is a true shortage.

mod groups;
mod outside;
mod readouts;
mod sentences;

use groups::groups;
use outside::cached;
pub use outside::{Outside, outside};
pub use readouts::{Readout, Role};
use sentences::{sentences, title};

use crate::model::{Bytes, Failure, FailureKind, Shortage, Speaker, UnitSystem};

/// Why an allocation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// More is needed than the capacity, or than is free.
    Shortage,
    /// Enough is free, but not in one piece.
    Fragmentation,
    /// Enough is held by the framework's own cache, but fragmented.
    CachedInPieces,
    /// The message does not show the cause.
    Unknown,
}

impl Cause {
    /// The word in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Shortage => "shortage",
            Self::Fragmentation => "fragmentation",
            Self::CachedInPieces => "cached_in_pieces",
            Self::Unknown => "unknown",
        }
    }
}

/// A segment of the bar that shows used memory against capacity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is: `reserved`, `arguments`, `temporaries`.
    pub name: &'static str,
    /// Bytes.
    pub bytes: Bytes,
}

impl Explanation {
    /// Whether the bar shows one total against the capacity, because the message has no parts of it.
    #[must_use]
    pub fn is_one_total(&self) -> bool {
        matches!(self.parts.as_slice(), [part] if part.name == NEEDED) && self.limit_at.is_some()
    }

    /// A size in words: with the digits that the message printed of it, where it is one of its sizes.
    #[must_use]
    pub fn words_of(&self, bytes: Bytes, units: UnitSystem) -> String {
        let printed = self.readouts.iter().flat_map(|(_, sizes)| sizes).find(|readout| readout.size.bytes == bytes);
        match printed {
            Some(readout) if units == UnitSystem::Binary => readout.in_words(),
            _ => units.short(bytes),
        }
    }

    /// Whether the sizes say more than the bar of a total does.
    #[must_use]
    pub fn has_further_sizes(&self) -> bool {
        let known = [self.needed, self.capacity, self.over_by];
        let mut sizes = self.readouts.iter().flat_map(|(_, group)| group);
        !self.is_one_total() || sizes.any(|readout| !known.contains(&Some(readout.size.bytes)))
    }
}

impl Part {
    /// Whether this part is free memory.
    #[must_use]
    pub fn is_free(&self) -> bool {
        matches!(self.name, "free" | "largest free block" | "free in smaller pieces")
    }
}

/// A row of the listing, equal rows grouped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListingGroup {
    /// Number of arrays of this shape.
    pub count: usize,
    /// Bytes of each.
    pub bytes: Bytes,
    /// Shape, where one is known.
    pub shape: Option<String>,
    /// What it is: the first one's instruction or operation.
    pub name: String,
    /// Framework op name, with `*` for the numbers in which the rows differ.
    pub op_name: Option<String>,
    /// Number of the first.
    pub first: u32,
}

/// Everything said about a failure.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// What ran out and by how much, on one line.
    pub title: String,
    /// Sentences, in order.
    pub sentences: Vec<String>,
    /// Whether it is a true shortage, and of what.
    pub cause: Cause,
    /// Memory: `HBM`, `VMEM`, `tile memory`.
    pub memory: &'static str,
    /// Bytes needed, or requested on top of those in use.
    pub needed: Option<Bytes>,
    /// Capacity in bytes.
    pub capacity: Option<Bytes>,
    /// Excess: bytes needed minus capacity, or requested minus available.
    pub over_by: Option<Bytes>,
    /// The bar; its sum need not be the capacity.
    pub parts: Vec<Part>,
    /// Position of the capacity on the bar in bytes; includes reserved memory and arguments that the limit excludes.
    pub limit_at: Option<Bytes>,
    /// Every size of the message in groups, equal ones once.
    pub readouts: Vec<(Role, Vec<Readout>)>,
    /// The listing, largest first, equal rows grouped.
    pub groups: Vec<ListingGroup>,
    /// What the message counts but does not list.
    pub not_listed: Option<Bytes>,
}

/// The memory a failure is about.
#[must_use]
pub fn memory(failure: &Failure) -> &'static str {
    match failure.text("space") {
        Some("hbm") => return "HBM",
        Some("vmem") => return "VMEM",
        Some("smem") => return "SMEM",
        Some("cmem") => return "CMEM",
        Some("spmem" | "tile_spmem" | "sync_flags") => return "SparseCore memory",
        Some("host") => return "host memory",
        Some("tensor memory") => return "tensor memory",
        _ => {}
    }
    let allocator = failure.text("allocator").unwrap_or("");
    match failure.kind {
        FailureKind::IpuStream | FailureKind::IpuHostBuffer => "host buffer memory",
        kind if kind.speaker() == Speaker::Poplar => "tile memory",
        kind if matches!(kind.speaker(), Speaker::TpuCompiler | Speaker::TpuRuntime) => "HBM",
        _ if allocator.contains("host") || allocator == "cpu" => "host memory",
        FailureKind::TorchCpu | FailureKind::CudaHostAlloc => "host memory",
        FailureKind::TorchNpu => "NPU memory",
        FailureKind::TorchHpu => "HPU memory",
        FailureKind::TorchMps => "memory shared with the host",
        FailureKind::NeuronAlloc => "NeuronCore memory",
        FailureKind::Unknown => "memory",
        kind if matches!(kind.speaker(), Speaker::Host) => "host memory",
        kind if matches!(kind.speaker(), Speaker::Kernel) => "shared memory",
        FailureKind::VllmKvCache => "memory for the KV cache",
        kind if matches!(kind.speaker(), Speaker::Torch | Speaker::Rocm | Speaker::Cuda | Speaker::Serving) => {
            "GPU memory"
        }
        _ if allocator.starts_with("GPU") => "GPU memory",
        _ => "device memory",
    }
}

/// Why it failed.
#[must_use]
pub fn cause(failure: &Failure) -> Cause {
    if failure.flag("fragmented") {
        return Cause::Fragmentation;
    }
    let requested =
        failure.bytes("exact_request").or_else(|| failure.bytes("requested")).or_else(|| failure.bytes("rounded"));
    // A limit on the process takes precedence over free memory of the device.
    if let (Some(limit), Some(requested)) = (failure.bytes("limit"), requested) {
        let held = failure.bytes("allocated").unwrap_or_default() + failure.bytes("other").unwrap_or_default();
        // What is left of a limit that is all but used up is no piece of any use.
        if held + requested > limit - Bytes(limit.0 / LAST_OF_LIMIT) {
            return Cause::Shortage;
        }
        let cached = failure.bytes("unallocated").unwrap_or_default();
        if failure.kind == FailureKind::TorchCudaLimit && cached > requested {
            return Cause::CachedInPieces;
        }
    }
    let free = failure.bytes("total_free").or_else(|| failure.bytes("free"));
    let largest = failure.bytes("largest_free").or_else(|| failure.largest_hole());
    match (requested, free, largest) {
        (Some(requested), Some(free), Some(largest)) if largest < requested && requested <= free => {
            return Cause::Fragmentation;
        }
        (Some(requested), Some(free), _) if free < requested => {
            let cached = failure.bytes("unallocated").or_else(|| cached(failure)).unwrap_or_default();
            return if failure.kind.speaker() == Speaker::Torch && cached + free >= requested {
                Cause::CachedInPieces
            } else {
                Cause::Shortage
            };
        }
        _ => {}
    }
    // Only a caching allocator can fail while more is free than requested.
    let is_caching = failure.kind.speaker() == Speaker::Torch && failure.get("allocated").is_some();
    if is_caching && requested.zip(free).is_some_and(|(requested, free)| requested <= free) {
        return Cause::Fragmentation;
    }
    let (used, capacity) = (failure.bytes("used"), failure.bytes("capacity"));
    match used.zip(capacity) {
        Some((used, capacity)) if used > capacity => Cause::Shortage,
        _ if failure.bytes("exceeded").is_some()
            || matches!(failure.kind, FailureKind::TpuTcScHbm | FailureKind::IpuExchange | FailureKind::IpuCode) =>
        {
            Cause::Shortage
        }
        _ => Cause::Unknown,
    }
}

/// The last part of a limit, as its divisor: a twentieth.
const LAST_OF_LIMIT: u64 = 20;

/// The name of the part that is all that the message counts.
pub const NEEDED: &str = "needed";

/// Explains a failure of a profile; `is_dump_read`: whether a dump of its program is there beside the message
/// ([`crate::model::Profile::shows_buffers`]).
#[must_use]
pub fn explain(failure: &Failure, is_dump_read: bool) -> Explanation {
    let cause = cause(failure);
    let Shortage { needed, capacity, over_by, .. } = failure.shortage();
    let (groups, not_listed) = groups(failure);
    Explanation {
        title: title(failure),
        sentences: sentences(failure, cause, over_by, is_dump_read),
        cause,
        memory: memory(failure),
        needed,
        capacity,
        over_by,
        readouts: readouts::readouts(failure),
        limit_at: capacity.map(|capacity| capacity + beside(failure)),
        parts: parts(failure),
        groups,
        not_listed,
    }
}

/// Bytes that the message counts, but not against its capacity.
fn beside(failure: &Failure) -> Bytes {
    if !matches!(failure.kind, FailureKind::TpuHbmListing | FailureKind::TpuHbmUsage) {
        return Bytes::ZERO;
    }
    let reserved = failure.bytes("reserved").unwrap_or_default();
    let own = failure.bytes("program").is_some_and(|program| Some(program) == failure.bytes("used"));
    reserved + failure.bytes("arguments").filter(|_| own).unwrap_or_default()
}

/// The bar of used memory by part.
fn parts(failure: &Failure) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |name: &'static str, bytes: Option<Bytes>| {
        if let Some(bytes) = bytes.filter(|bytes| bytes.0 > 0) {
            parts.push(Part { name, bytes });
        }
    };
    let size = |key: &str| failure.bytes(key);
    match failure.kind {
        FailureKind::TpuHbmListing | FailureKind::TpuHbmUsage => {
            add("reserved", size("reserved"));
            add("arguments", size("arguments"));
            let temporaries = size("temporaries");
            add("temporaries", temporaries);
            let other = size("program").and_then(|p| temporaries.map(|t| p.saturating_sub(t)).or(Some(p)));
            add("rest of the program", other);
            // Results are left out: the compiler's total does not count them separately from arguments and program.
        }
        FailureKind::TpuRuntimeReserve => {
            add("in use", size("allocated").or_else(|| size("heap_allocations")));
            add("free", size("free"));
        }
        FailureKind::TpuTcScHbm => {
            add("TensorCore", size("tensorcore"));
            add("SparseCore", size("sparsecore"));
        }
        FailureKind::XlaGpuPeakBuffers => {
            add("arguments", size("parameters"));
            add("constants", size("constants"));
            add("outputs", size("maybe_live_out"));
            add("temporaries", size("temporaries"));
        }
        kind if kind.speaker() == Speaker::Torch => {
            let allocated = size("allocated");
            add("tensors", allocated);
            let cached = size("unallocated").or_else(|| cached(failure));
            add("cached by PyTorch", cached);
            let outside = outside(failure);
            add("outside PyTorch, this process", outside.map(|outside| outside.this_process));
            let is_one = failure.count("other_processes").is_none_or(|count| count <= 1);
            add(if is_one { "another process" } else { "other processes" }, size("other_in_use"));
            if let Some(outside) = outside {
                add(outside.rest_name(), Some(outside.rest));
            }
            add("free", size("free"));
        }
        kind if kind.speaker() == Speaker::Bfc => {
            add("in use", size("in_use"));
            add("free", size("total_free").or_else(|| size("free")));
        }
        FailureKind::TpuRuntimeAlloc | FailureKind::TpuRuntimeLoad => match (size("free"), size("largest_free")) {
            (Some(free), Some(largest)) if largest < free => {
                add("largest free block", Some(largest));
                add("free in smaller pieces", Some(free - largest));
            }
            (free, _) => {
                add("free", free);
                add("reserved", size("reserved_now"));
            }
        },
        kind => match (size("used"), size("capacity").zip(size("free"))) {
            // The request is not in use yet: it comes on top of what others hold.
            (None, Some((capacity, free))) if free <= capacity => {
                let name = if kind == FailureKind::VllmStartup { "other processes" } else { "in use" };
                add(name, Some(capacity - free));
                add("free", Some(free));
            }
            (used, _) => add(NEEDED, used.or_else(|| size("requested"))),
        },
    }
    parts
}

#[cfg(test)]
mod tests;
