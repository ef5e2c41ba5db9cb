//! Field numbers of the memory-usage report, by message (`MemoryUsageReportProto` of
//! [XLA](https://github.com/openxla/xla/tree/main/xla)).

/// `MemoryUsageReportProto`.
pub mod report {
    pub const SPACES: u32 = 1;
}

/// `MemoryUsageReportProto.AllocationEntryInMemorySpace`.
pub mod space {
    pub const TOTAL_BYTES: u32 = 1;
    pub const MEMORY_SPACE_COLOR: u32 = 2;
    pub const ENTRIES: u32 = 3;
}

/// `MemoryUsageReportProto.AllocationEntry`.
pub mod entry {
    pub const INDEX: u32 = 1;
    pub const SIZE: u32 = 2;
    pub const CUMULATIVE_SIZE: u32 = 3;
    pub const CUMULATIVE_PERCENTAGE: u32 = 4;
    pub const DEFINING_POSITIONS: u32 = 5;
    pub const HLO_TEXT: u32 = 6;
}
