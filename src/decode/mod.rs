//! From bytes to the model: one folder per format, and what they share.

mod decoder;
pub mod hlo;
mod open;
mod registry;
mod reporter;
pub mod wire;
pub mod xla_dump;
pub mod xspace;

pub use decoder::{Context, DecodeError, Decoder};
pub use open::{open_input, open_path};
pub use registry::{DECODERS, decode};
pub use reporter::Reporter;
