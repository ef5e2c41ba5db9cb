//! Field numbers of pprof, by message, as
//! [`profile.proto`](https://github.com/google/pprof/blob/main/proto/profile.proto) names them.

/// `Profile`.
pub mod profile {
    pub const SAMPLE_TYPE: u32 = 1;
    pub const SAMPLE: u32 = 2;
    pub const MAPPING: u32 = 3;
    pub const LOCATION: u32 = 4;
    pub const FUNCTION: u32 = 5;
    pub const STRING_TABLE: u32 = 6;
}

/// Messages that are read as two numbers: `ValueType` (type, unit), `Label` (key, str), `Line` (function_id, line).
pub mod pair {
    pub const FIRST: u32 = 1;
    pub const SECOND: u32 = 2;
}

/// `Sample`.
pub mod sample {
    pub const LOCATION_ID: u32 = 1;
    pub const VALUE: u32 = 2;
    pub const LABEL: u32 = 3;
}

/// `Location`.
pub mod location {
    pub const ID: u32 = 1;
    pub const LINE: u32 = 4;
}

/// `Function`.
pub mod function {
    pub const ID: u32 = 1;
    pub const NAME: u32 = 2;
    pub const FILENAME: u32 = 4;
}
