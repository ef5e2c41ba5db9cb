//! From bytes to the model: one folder per format, and what they share.

pub mod hlo;
mod reporter;
pub mod wire;

pub use reporter::Reporter;
