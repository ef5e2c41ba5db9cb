//! Pure functions from the model to results: lifetimes, curves and peaks, padding, fragmentation.

pub mod address_union;
pub mod alternatives;
pub mod class;
pub mod contributors;
pub mod events;
pub mod failure;
pub mod grouping;
pub mod heat;
pub mod live_range;
pub mod live_set;
pub mod map;
pub mod names;
pub mod occupancy;
pub mod packing;
pub mod padding;
mod profile;
mod program;
pub mod pyramid;
pub mod range_stats;
pub mod runtime;
pub mod runtime_breakdown;
pub mod runtime_curve;
pub mod scene;
pub mod shape_groups;
pub mod span_index;
pub mod stack_tree;
pub mod stacked_curves;
pub mod steps;
pub mod table;
pub mod tiles;
pub mod tree;
pub mod what_if;
pub mod xprof;

pub use profile::ProfileAnalysis;
pub use program::{LifetimeFrom, ProgramAnalysis, SpaceAnalysis, Verdict, category, has_no_shape, unpadded};
pub use scene::{ProgramParts, Scene};
