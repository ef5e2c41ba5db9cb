//! Highwater: where the memory of an accelerator program went.
pub mod advisor;
pub mod analysis;
pub mod decode;
pub mod export;
pub mod model;
pub mod open;
pub mod source;
#[cfg(feature = "window")]
pub mod ui;
