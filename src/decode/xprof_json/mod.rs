//! What XProf's server answers, saved as JSON: `memory_viewer` and `memory_profile`.

mod memory_profile;
mod memory_viewer;
mod value;

pub use memory_profile::MemoryProfileDecoder;
pub use memory_viewer::MemoryViewerDecoder;
