//! From bytes to the model: one folder per format, and what they share.

pub mod bfc;
mod decoder;
pub mod hlo;
pub mod ifrt_trace;
pub mod oom_text;
pub mod poplar;
pub mod pprof;
mod registry;
mod reporter;
pub mod wire;
pub mod xla_dump;
pub mod xla_report;
pub mod xprof_json;
pub mod xspace;

pub use decoder::{Context, DecodeError, Decoder, Family, Reads};
pub use registry::{DECODERS, decode, inputs, reads_by_name};
pub use reporter::Reporter;
