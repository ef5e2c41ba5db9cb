//! Field numbers of the BFC allocator's dump, by message, as
//! [`bfc_memory_map.proto`](https://github.com/openxla/xla/blob/main/xla/tsl/protobuf/bfc_memory_map.proto) names them.

/// `MemoryDump`.
pub mod dump {
    pub const ALLOCATOR_NAME: u32 = 1;
    pub const BIN_SUMMARY: u32 = 2;
    pub const CHUNK: u32 = 3;
    pub const SNAP_SHOT: u32 = 4;
    pub const STATS: u32 = 5;
}

/// `BinSummary`.
pub mod bin {
    pub const BIN: u32 = 1;
    pub const TOTAL_BYTES_IN_USE: u32 = 2;
    pub const TOTAL_BYTES_IN_BIN: u32 = 3;
    pub const TOTAL_CHUNKS_IN_USE: u32 = 4;
    pub const TOTAL_CHUNKS_IN_BIN: u32 = 5;
}

/// `MemChunk`.
pub mod chunk {
    pub const ADDRESS: u32 = 1;
    pub const SIZE: u32 = 2;
    pub const REQUESTED_SIZE: u32 = 3;
    pub const BIN: u32 = 4;
    pub const OP_NAME: u32 = 5;
    pub const IN_USE: u32 = 8;
    pub const STEP_ID: u32 = 9;
}

/// `SnapShot`.
pub mod snapshot {
    pub const ACTION_COUNT: u32 = 1;
    pub const SIZE: u32 = 2;
}

/// `MemAllocatorStats`.
pub mod stats {
    pub const NUM_ALLOCS: u32 = 1;
    pub const BYTES_IN_USE: u32 = 2;
    pub const PEAK_BYTES_IN_USE: u32 = 3;
    pub const LARGEST_ALLOC_SIZE: u32 = 4;
    pub const FRAGMENTATION_METRIC: u32 = 5;
}
