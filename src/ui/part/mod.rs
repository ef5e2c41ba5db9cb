//! Building blocks of views that depend on the model: context, menus, links, legends, cards.

mod buffer_names;
pub(super) mod caching;
pub(super) mod class_legend;
pub(super) mod colors;
mod context;
pub(super) mod empty;
pub(super) mod facts;
pub(super) mod links;
pub(super) mod menu;
pub(super) mod outcome;
mod text_file;
pub(super) mod tile_card;
mod view;

pub use buffer_names::BufferNames;
pub use context::{Action, FindKey, ViewContext};
pub use text_file::TextFile;
pub use view::{Find, KeyHelp, View, Views};
