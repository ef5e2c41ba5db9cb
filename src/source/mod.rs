//! Input: files, compressed files, folders, archives and standard input. Nothing here writes.

mod archive;
mod bytes;
mod error;
mod input;
mod progress;
mod siblings;
mod stages;
mod tree;
mod unpack;

pub use archive::{Archive, ArchiveKind, ArchiveMember, MAX_CLAIMED, MAX_MEMBERS, MAX_UNPACKED, is_archive_name};
pub use bytes::SharedBytes;
pub use error::{SourceError, without_code};
pub use input::{HEAD_BYTES, Input, MAX_IN_MEMORY, Packing};
pub use progress::{Cancelled, Progress, Stage};
pub use siblings::{DumpName, is_run_file, siblings_of, unpacked_name};
pub use stages::Spent;
pub use tree::{Member, Tree};
