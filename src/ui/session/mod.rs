//! State that views share: open documents, selection, step, range, pins, options, settings.

mod changes;
mod document;
mod locals;
mod location;
pub mod number;
mod options;
pub mod pins;
pub mod settings;
mod shared;

pub use changes::Changes;
pub use document::{Before, Beside, Document, ListedProgram, PairedProgram};
pub use locals::Locals;
pub use location::{Lit, Location, RowScope, TreePosition};
pub use options::{Options, ThemeChoice};
pub use pins::{Pin, PinOn};
pub use settings::Settings;
pub use shared::{Shared, SharedState};
