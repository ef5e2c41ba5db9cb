//! Snapshots of live memory at one moment: arrays with their allocation stacks, and the chunks of an allocator.

use super::ids::StringId;
use super::program::SourceLine;
use super::strings::Strings;
use super::units::Bytes;

/// Everything live when the file was written.
#[derive(Debug, Clone, Default)]
pub struct LiveSet {
    /// Live arrays, executables and chunks.
    pub entries: Vec<LiveEntry>,
    /// Stack frames, indexed by [`LiveEntry::stack`].
    pub frames: Vec<SourceLine>,
    /// Interned strings of the entries.
    pub strings: Strings,
    /// The allocator's address space, if the file has it.
    pub heap: Option<HeapMap>,
}

impl LiveSet {
    /// Stack frames of an entry, innermost first.
    pub fn stack(&self, entry: &LiveEntry) -> impl Iterator<Item = &SourceLine> {
        entry.stack.iter().filter_map(|&frame| self.frames.get(frame as usize))
    }
}

/// Live objects with the same kind, device and stack.
#[derive(Debug, Clone, Default)]
pub struct LiveEntry {
    /// Total bytes.
    pub bytes: Bytes,
    /// Number of objects.
    pub count: u64,
    /// `buffer`, `executable`, or the op that requested a chunk.
    pub kind: StringId,
    /// Device or allocator; empty if unknown.
    pub device: StringId,
    /// Rows of [`LiveSet::frames`], innermost first.
    pub stack: Vec<u32>,
    /// What tells it from others that the same frame names: `in at::_ops::softmax_int::call`; empty if nothing does.
    pub apart: String,
}

/// Address space of a binned allocator (TensorFlow's BFC allocator).
#[derive(Debug, Clone, Default)]
pub struct HeapMap {
    /// Allocator name.
    pub allocator: String,
    /// Chunks in file order: by address within a region.
    pub chunks: Vec<Chunk>,
    /// Bins.
    pub bins: Vec<Bin>,
    /// History of the allocator: (number of actions, bytes in use).
    pub history: Vec<(u64, Bytes)>,
    /// The allocator's counters.
    pub stats: Option<HeapStats>,
    /// Size of the failed request in bytes; `None` if unknown.
    pub failed_request: Option<Bytes>,
}

/// A contiguous piece of an allocator's memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chunk {
    /// Start address.
    pub address: u64,
    /// Bytes.
    pub size: Bytes,
    /// Requested bytes.
    pub requested: Bytes,
    /// Bin of a free chunk; -1 if in use.
    pub bin: i32,
    /// Op that requested it.
    pub op: StringId,
    /// Whether it is in use.
    pub in_use: bool,
    /// Step in which it was allocated.
    pub step: u64,
}

/// A size class of chunks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bin {
    /// Bin number `n`: chunks of at least 256·2^n bytes.
    pub number: i32,
    /// Bytes in use.
    pub bytes_in_use: Bytes,
    /// Bytes.
    pub bytes: Bytes,
    /// Number of chunks in use.
    pub chunks_in_use: i64,
    /// Number of chunks.
    pub chunks: i64,
}

/// Allocator counters.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HeapStats {
    /// Number of allocations.
    pub allocations: i64,
    /// Bytes in use.
    pub bytes_in_use: Bytes,
    /// Peak bytes in use.
    pub peak_bytes: Bytes,
    /// Largest allocation in bytes.
    pub largest_allocation: Bytes,
    /// Fragmentation as computed by the allocator, 0..=1.
    pub fragmentation: f32,
}
