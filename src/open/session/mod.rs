//! Session files (`.highwater`): what was open and where the user looked, as JSON, or packed with the profiles in a zip.

mod format;
mod hash;
mod read;
mod write;

pub use format::{SCHEMA, SavedProfile, SavedSet, Session, parse_zoom, zoom_words};
pub use hash::content_hash;
pub use read::{OpenedSession, SessionError};
pub use write::{PackOptions, pack, write};
