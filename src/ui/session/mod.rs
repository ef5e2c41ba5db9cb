//! State that views share: open documents, selection, step, range, pins, options, settings.

mod document;
mod locals;
mod options;
pub mod pins;
pub mod settings;
mod shared;

pub use document::Document;
pub use locals::Locals;
pub use options::{Options, ThemeChoice};
pub use pins::{Pin, PinOn};
pub use settings::Settings;
pub use shared::{Changes, Lit, Location, RowScope, Shared, SharedState, TreePosition};
