//! What is alive at one moment, without time: arrays with the stacks that made them, and the chunks of an allocator.

use super::ids::StringId;
use super::program::SourceLine;
use super::strings::Strings;
use super::units::Bytes;

/// Everything alive at the moment the file was written.
#[derive(Debug, Clone, Default)]
pub struct LiveSet {
    /// Arrays, executables, chunks in use.
    pub entries: Vec<LiveEntry>,
    /// Frames the stacks refer to.
    pub frames: Vec<SourceLine>,
    /// Texts the entries refer to.
    pub strings: Strings,
    /// The allocator's address space, where the file has it.
    pub heap: Option<HeapMap>,
}

impl LiveSet {
    /// The frames of an entry, innermost first.
    pub fn stack(&self, entry: &LiveEntry) -> impl Iterator<Item = &SourceLine> {
        entry.stack.iter().filter_map(|&frame| self.frames.get(frame as usize))
    }
}

/// Equal things that are alive.
#[derive(Debug, Clone, Default)]
pub struct LiveEntry {
    /// Bytes of all of them together.
    pub bytes: Bytes,
    /// How many there are.
    pub count: u64,
    /// `buffer`, `executable`, or the operation that asked for a chunk.
    pub kind: StringId,
    /// Device or allocator; the empty string where it is not known.
    pub device: StringId,
    /// Rows of [`LiveSet::frames`], innermost first.
    pub stack: Vec<u32>,
}

/// The address space of an allocator with bins (TensorFlow's BFC allocator).
#[derive(Debug, Clone, Default)]
pub struct HeapMap {
    /// The allocator's name.
    pub allocator: String,
    /// Chunks in the file's order: by address within a region.
    pub chunks: Vec<Chunk>,
    /// Bins.
    pub bins: Vec<Bin>,
    /// (actions so far, bytes in use) of the allocator's past.
    pub history: Vec<(u64, Bytes)>,
    /// The allocator's own counters.
    pub stats: Option<HeapStats>,
    /// Bytes whose request failed, where the file or a text beside it says.
    pub failed_request: Option<Bytes>,
}

/// A piece of an allocator's memory.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chunk {
    /// First address.
    pub address: u64,
    /// Bytes.
    pub size: Bytes,
    /// Bytes that were asked for.
    pub requested: Bytes,
    /// Bin of a free chunk; -1 in use.
    pub bin: i32,
    /// Operation that asked for it.
    pub op: StringId,
    /// Whether it is in use.
    pub in_use: bool,
    /// Step in which it was taken.
    pub step: u64,
}

/// Chunks of similar size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Bin {
    /// Its number: it holds chunks of 256·2^number bytes and more.
    pub number: i32,
    /// Bytes in use.
    pub bytes_in_use: Bytes,
    /// Bytes.
    pub bytes: Bytes,
    /// Chunks in use.
    pub chunks_in_use: i64,
    /// Chunks.
    pub chunks: i64,
}

/// Counters of an allocator.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HeapStats {
    /// Allocations so far.
    pub allocations: i64,
    /// Bytes in use.
    pub bytes_in_use: Bytes,
    /// Highest number of bytes in use.
    pub peak_bytes: Bytes,
    /// Largest allocation.
    pub largest_allocation: Bytes,
    /// The allocator's own measure of fragmentation, 0..=1.
    pub fragmentation: f32,
}
