//! Background work: jobs, pictures drawn by workers, and results derived from a document.

mod deferred;
mod derived;
mod job;
mod related;
mod search;
mod tile_variables;
mod times;

pub use crate::analysis::what_if::WhatIfResult;
pub use deferred::{DeferredPicture, Sheet};
pub use derived::{Derived, SpaceData};
pub use job::{FailedJob, FailedJobs, Job, Work};
pub use related::{Related, RelatedToBuffer, RelatedToStep};
pub use search::{Direction, Highlight, SearchResults};
pub use tile_variables::{TileVariables, read_tile_variables};
pub use times::{JobTime, JobTimes};
