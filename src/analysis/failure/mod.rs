//! Explains an out-of-memory message: what ran out, by how much, and whether it is a true shortage.

use crate::model::{Bytes, Failure, FailureKind, Speaker, UnitSystem, thousands};

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
        if held + requested > limit {
            return Cause::Shortage;
        }
    }
    let free = failure.bytes("total_free").or_else(|| failure.bytes("free"));
    let largest = failure.bytes("largest_free").or_else(|| largest_hole(failure));
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

/// PyTorch's cache in older messages: reserved (cached) minus allocated bytes.
fn cached(failure: &Failure) -> Option<Bytes> {
    let reserved = failure.bytes("reserved").or_else(|| failure.bytes("cached"))?;
    Some(reserved.saturating_sub(failure.bytes("allocated")?))
}

/// The largest free chunk of a BFC dump.
#[must_use]
pub fn largest_hole(failure: &Failure) -> Option<Bytes> {
    let printed = failure.bytes("largest_free").or_else(|| failure.bytes("largest_free_block"));
    // A list of chunks without its summary may be truncated.
    let whole = failure.get("free").is_some() && !failure.chunks.is_empty();
    printed.or_else(|| {
        whole.then(|| {
            failure.chunks.iter().filter(|chunk| !chunk.in_use).map(|chunk| chunk.size).max().unwrap_or_default()
        })
    })
}

/// Explains a failure.
#[must_use]
pub fn explain(failure: &Failure) -> Explanation {
    let cause = cause(failure);
    let needed = failure
        .bytes("used")
        .or_else(|| sum(failure.bytes("tensorcore"), failure.bytes("sparsecore")))
        .or_else(|| failure.bytes("exact_request"))
        .or_else(|| failure.bytes("requested"))
        .or_else(|| failure.bytes("rounded"));
    let capacity = failure.bytes("capacity").or_else(|| failure.bytes("pool_limit")).or_else(|| failure.bytes("limit"));
    let (groups, not_listed) = groups(failure);
    Explanation {
        title: title(failure),
        sentences: sentences(failure, cause),
        cause,
        memory: memory(failure),
        needed,
        capacity,
        over_by: over_by(failure, needed, capacity),
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

fn sum(a: Option<Bytes>, b: Option<Bytes>) -> Option<Bytes> {
    Some(a? + b?)
}

fn over_by(failure: &Failure, needed: Option<Bytes>, capacity: Option<Bytes>) -> Option<Bytes> {
    let difference = |need: Option<Bytes>, has: Option<Bytes>| {
        need.zip(has).filter(|(need, has)| need > has).map(|(need, has)| need - has)
    };
    if let Some(printed) = failure.bytes("exceeded") {
        return Some(printed);
    }
    if failure.get("used").is_some() || failure.kind == FailureKind::TpuTcScHbm {
        return difference(needed, capacity);
    }
    let largest = failure.bytes("largest_free").or_else(|| largest_hole(failure));
    difference(needed, largest.or_else(|| failure.bytes("total_free")).or_else(|| failure.bytes("free")))
}

fn title(failure: &Failure) -> String {
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

fn sentences(failure: &Failure, cause: Cause) -> Vec<String> {
    let mut out = Vec::new();
    let memory = memory(failure);
    let size = |key: &str| failure.bytes(key);
    if let (Some(used), Some(capacity)) = (size("used"), size("capacity")) {
        let who = match failure.kind {
            FailureKind::IpuTile => "The tile needs".to_owned(),
            FailureKind::TpuAllocExceeds => "This one array needs".to_owned(),
            FailureKind::TpuScopedVmem => "The kernel's scratch memory needs".to_owned(),
            FailureKind::TpuHbmEarly => "The program, with its arguments and results, needs".to_owned(),
            _ => "The program needs".to_owned(),
        };
        let over = if used > capacity {
            format!(", {} too much according to the message", short(size("exceeded").unwrap_or(used - capacity)))
        } else {
            String::new()
        };
        let capacity = UnitSystem::Binary.capacity(capacity);
        out.push(format!("{who} {} of {capacity} {memory}{over}", short(used)));
    }
    if let (Some(tc), Some(sc), Some(capacity)) = (size("tensorcore"), size("sparsecore"), size("capacity")) {
        out.push(format!(
            "TensorCore needs {} and SparseCore {}, together {} of {} HBM",
            short(tc),
            short(sc),
            short(tc + sc),
            UnitSystem::Binary.capacity(capacity)
        ));
    }
    let requested = size("exact_request").or_else(|| size("requested")).or_else(|| size("rounded"));
    if let Some(requested) = requested {
        let op = failure.text("op").map(|op| format!(" by {op}")).unwrap_or_default();
        out.push(match size("total_free").or_else(|| size("free")) {
            Some(free) => {
                format!("{} were requested{op} while {} of {memory} were free", short(requested), short(free))
            }
            None => format!("{} of {memory} were requested{op}", short(requested)),
        });
    }
    if let Some(largest) = largest_hole(failure) {
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
        Cause::Shortage if requested.is_some() && size("free").is_some() => {
            out.push("Less is free than was requested: this is a true shortage".to_owned());
        }
        _ => {}
    }
    more_sentences(failure, &mut out);
    if failure.truncated {
        out.push("The text ends in the middle of the message; the rest is unknown".to_owned());
    }
    out
}

fn more_sentences(failure: &Failure, out: &mut Vec<String>) {
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
                    "Rematerialization reduced memory from {} to {}, not to the target of {}",
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
    if let (Some(others), Some(process)) = (size("other_in_use"), failure.count("other_process")) {
        out.push(format!("Another process ({process}) uses {}", short(others)));
    }
    if failure.kind == FailureKind::TpuHbmEarly {
        out.push("This compiler prints no list of buffers; a dump of the program has them".to_owned());
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
            let others =
                size("in_use").zip(allocated).map(|(all, own)| all.saturating_sub(own + cached.unwrap_or_default()));
            add("outside PyTorch, this process", others);
            add("another process", size("other_in_use"));
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
        _ => add("needed", size("used").or_else(|| size("requested"))),
    }
    parts
}

/// A name with `*` for each number in it.
fn folded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('*') {
            out.push('*');
        }
    }
    out
}

/// The listing with equal rows grouped, and the bytes counted but not listed.
fn groups(failure: &Failure) -> (Vec<ListingGroup>, Option<Bytes>) {
    let mut groups: Vec<ListingGroup> = Vec::new();
    let mut listed = Bytes::ZERO;
    let mut add = |number: u32, bytes: Bytes, shape: Option<&str>, name: &str, op: Option<&str>| {
        listed += bytes;
        // Same size, shape and operation: one line. Numbers differ from layer to layer and from instruction to
        // instruction.
        let same = groups.iter_mut().find(|g| {
            g.bytes == bytes
                && g.shape.as_deref() == shape
                && g.op_name.as_deref().map(folded) == op.map(folded)
                && (op.is_some() || folded(&g.name) == folded(name))
        });
        match same {
            Some(group) => {
                group.count += 1;
                if group.op_name.as_deref() != op {
                    group.op_name = op.map(folded);
                }
            }
            None => groups.push(ListingGroup {
                count: 1,
                bytes,
                shape: shape.map(ToOwned::to_owned),
                name: name.to_owned(),
                op_name: op.map(ToOwned::to_owned),
                first: number,
            }),
        }
    };
    for entry in failure.allocations.iter().take(5000) {
        let Some(size) = &entry.size else { continue };
        let name = entry.label_head.as_deref().unwrap_or("");
        add(entry.number, size.bytes, entry.shape_text.as_deref(), name, entry.op_name.as_deref());
    }
    for buffer in failure.peak_buffers.iter().take(5000) {
        let Some(size) = &buffer.size else { continue };
        let name = if buffer.entry_parameter { "argument" } else { buffer.label.as_deref().unwrap_or("") };
        add(buffer.number, size.bytes, buffer.shape_text.as_deref(), name, buffer.op_name.as_deref());
    }
    for (i, (size, op)) in failure.usage_rows.iter().enumerate() {
        add(i as u32 + 1, size.bytes, None, op, Some(op));
    }
    if groups.is_empty() {
        return (groups, None);
    }
    groups.sort_by_key(|group| (std::cmp::Reverse(u128::from(group.bytes.0) * group.count as u128), group.first));
    let counted = match failure.kind {
        FailureKind::XlaGpuPeakBuffers | FailureKind::TfUsageReport => failure.bytes("total"),
        FailureKind::TpuRuntimeReserve => failure.bytes("program_requirement"),
        _ => failure.bytes("used"),
    };
    let not_listed = counted.filter(|&counted| counted > listed).map(|counted| counted - listed);
    (groups, not_listed)
}

#[cfg(test)]
mod tests;
