//! Opens files, folders, archives and traces for both the window and the command: detects the format, lists programs,
//! decodes them on demand and joins the files that belong together.

mod collection;
mod cross_check;
mod file;
mod follow;
mod modules;
pub mod session;
mod target;
mod torch_message;
mod watch;

pub use collection::{Collection, Entry};
pub use file::{join_messages, open_input, open_path, open_with};
pub use follow::{Follow, Followed};
pub use target::{Found, Opened, Target};
pub use torch_message::tells_of_snapshot;
pub use watch::{Looking, Stamp, Watch, ends_well};
