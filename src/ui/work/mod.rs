//! Work off the window's thread: jobs, pictures that workers draw, what is derived from a document for the screen.

mod deferred;
mod derived;
mod finding;
mod job;
mod related;
mod tile_variables;
mod what_if_result;

pub use deferred::{DeferredPicture, Sheet};
pub use derived::{Derived, SpaceData};
pub use finding::{Hits, Lit};
pub use job::{Job, Work};
pub use related::{Related, RelatedToBuffer, RelatedToStep};
pub use tile_variables::{TileVariables, read_tile_variables};
pub use what_if_result::{PeakGroup, WhatIfResult};
