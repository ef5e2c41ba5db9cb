//! From bytes to the model: one folder per format, and what they share.

mod decoder;
pub mod hlo;
pub mod oom_text;
mod open;
pub mod poplar;
mod registry;
mod reporter;
pub mod wire;
pub mod xla_dump;

pub use decoder::{Context, DecodeError, Decoder};
pub use open::{open_input, open_path};
pub use registry::{DECODERS, decode};
pub use reporter::Reporter;
