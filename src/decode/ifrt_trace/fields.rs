//! Field numbers of IFRT's memory trace, by message, as
//! [`program_memory_trace.proto`](https://github.com/openxla/xla/blob/main/xla/python/ifrt/ir/program_memory_trace.proto)
//! names them.

/// `ProgramMemoryTrace`.
pub mod trace {
    pub const PROGRAM_NAME: u32 = 1;
    pub const EVENTS: u32 = 2;
}

/// `Event`.
pub mod event {
    pub const ALLOCATION_ID: u32 = 1;
    pub const KIND: u32 = 2;
    pub const CREATED_BY: u32 = 3;
    pub const PADDED_SIZE_IN_BYTES: u32 = 4;
    pub const DEVICE_IDS: u32 = 5;
}
