//! What the views share: open documents, selection, step, range, options, history.

mod context;
mod derived;
mod document;
mod job;
mod locals;
mod options;
mod shared;
mod tried;

pub use context::{Action, Scene, ViewContext};
pub use derived::{Derived, Grouping, SpaceData, Spread};
pub use document::Document;
pub use job::{Job, Work};
pub use locals::Locals;
pub use options::{Options, ThemeChoice};
pub use shared::{Changes, RowScope, Shared, Spot, TreePlace};
pub use tried::{Class, Standing, Tried};
