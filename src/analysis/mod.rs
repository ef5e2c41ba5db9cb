//! Pure functions from the model to results: lifetimes, curves and peaks, padding, fragmentation.

pub mod events;
pub mod live_range;
pub mod occupancy;
mod profile;
mod program;
pub mod steps;
pub mod xprof;

pub use profile::ProfileAnalysis;
pub use program::{LifetimeFrom, ProgramAnalysis, SpaceAnalysis, Verdict, category, unpadded};
