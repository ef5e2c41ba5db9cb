//! Input and output of packing: blocks of memory with live ranges, and their offsets.

/// Alignment of blocks on TPUs in bytes.
pub const ALIGNMENT: u64 = 16384;

/// Alignment of blocks on GPUs in bytes: every offset of the dumps seen is a multiple of it.
pub const GPU_ALIGNMENT: u64 = 256;

/// Memory needed during a live range. Times are twice the heap event, so that changes can fall between events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Block {
    /// Size in bytes; empty blocks are not placed.
    pub size: u64,
    /// First time: twice the heap event.
    pub start: u32,
    /// Last time, inclusive.
    pub end: u32,
}

/// The result of packing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Placement {
    /// Heap size in bytes: the highest end of a block.
    pub heap: u64,
    /// Offset by block in bytes; 0 for empty blocks.
    pub offsets: Vec<u64>,
}
