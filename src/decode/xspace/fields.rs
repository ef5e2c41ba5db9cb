//! Field numbers of XSpace, by message, as
//! [`xplane.proto`](https://github.com/openxla/xla/blob/main/third_party/tsl/tsl/profiler/protobuf/xplane.proto) names
//! them.

/// `XSpace`.
pub mod space {
    pub const PLANES: u32 = 1;
    pub const ERRORS: u32 = 2;
    pub const WARNINGS: u32 = 3;
    pub const HOSTNAMES: u32 = 4;
}

/// `XPlane`.
pub mod plane {
    pub const ID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const LINES: u32 = 3;
    pub const EVENT_METADATA: u32 = 4;
    pub const STAT_METADATA: u32 = 5;
    pub const STATS: u32 = 6;
}

/// An entry of `XPlane.event_metadata` or `XPlane.stat_metadata`, which are maps.
pub mod metadata_entry {
    pub const KEY: u32 = 1;
    pub const VALUE: u32 = 2;
}

/// `XEventMetadata` and `XStatMetadata`.
pub mod metadata {
    pub const ID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const STATS: u32 = 5;
}

/// `XLine`.
pub mod line {
    pub const NAME: u32 = 2;
    pub const EVENTS: u32 = 4;
}

/// `XEvent`.
pub mod event {
    pub const METADATA_ID: u32 = 1;
    pub const OFFSET_PS: u32 = 2;
    pub const DURATION_PS: u32 = 3;
    pub const STATS: u32 = 4;
}

/// `XStat`.
pub mod stat {
    pub const METADATA_ID: u32 = 1;
    pub const DOUBLE_VALUE: u32 = 2;
    pub const UINT64_VALUE: u32 = 3;
    pub const INT64_VALUE: u32 = 4;
    pub const STR_VALUE: u32 = 5;
    pub const BYTES_VALUE: u32 = 6;
    pub const REF_VALUE: u32 = 7;
}
