//! What the views share: open documents, selection, step, range, options, history.

mod around;
mod context;
mod derived;
mod document;
mod finding;
mod job;
mod later;
mod locals;
mod options;
pub mod pins;
pub mod settings;
mod shared;
mod text_file;
mod tried;

pub use crate::analysis::Scene;
pub use crate::analysis::spread::{Grouping, Spread};
pub use around::{Around, AroundBuffer, AroundStep};
pub use context::{Action, FindKey, ViewContext};
pub use derived::{Derived, SpaceData};
pub use document::Document;
pub use finding::{Hits, Lit};
pub use job::{Job, Work};
pub use later::{LaterRaster, Window};
pub use locals::Locals;
pub use options::{Options, ThemeChoice};
pub use pins::{Pin, PinOn};
pub use settings::Settings;
pub use shared::{Changes, RowScope, Shared, Spot, TreePlace};
pub use text_file::TextFile;
pub use tried::{Standing, Tried};
