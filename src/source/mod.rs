//! Bytes in: files, compressed files, standard input. Input files are only ever read.

mod bytes;
mod error;
mod input;
mod progress;
mod siblings;

pub use bytes::SharedBytes;
pub use error::SourceError;
pub use input::{HEAD_BYTES, Input, MAX_IN_MEMORY, Packing};
pub use progress::{Cancelled, Progress, Stage};
pub use siblings::{DumpName, siblings_of};
