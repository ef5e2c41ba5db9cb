//! The one way in, for the window and the command alike: what a person names is recognised, listed where it is a
//! folder, an archive or a trace with many programs, decoded on demand, and joined with the files that belong to it.

mod collection;
mod cross_check;
mod file;
mod modules;
mod target;
mod worst;

pub use collection::{Collection, Entry};
pub use file::{join_messages, open_input, open_path, open_with};
pub use target::{Found, Opened, Target};
pub use worst::{load_worst, open_worst};
