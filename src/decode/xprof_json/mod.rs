//! Saved JSON responses of XProf's server: `memory_viewer` and `memory_profile`.

mod memory_profile;
mod memory_viewer;
mod value;

pub use memory_profile::MemoryProfileDecoder;
pub use memory_viewer::MemoryViewerDecoder;
