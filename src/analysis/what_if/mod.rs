//! What-if: predicts the effect of a change on a program's memory from the dump of the unchanged program.
//!
//! The predictions were measured against the compiler on 102 pairs of programs that differ by one change; each prediction
//! states the error seen for its kind of change. Nothing here reads files or compiles anything.

mod again;
mod applied;
mod at_once;
mod axis;
mod base;
pub mod batch;
mod batch_behind;
mod batch_by_shape;
mod begin;
mod between;
mod borrowed;
mod by_size;
mod by_width;
mod delayed;
mod dimension;
mod divide;
mod edit;
mod evicted;
mod follow;
mod followed;
mod followers;
mod follows;
mod global_batch;
mod head_size;
mod in_loops;
mod in_parts;
mod lent;
mod lodgers;
mod memory;
mod micro;
mod outcome;
mod outlook;
mod pairs;
mod postponed;
mod prediction;
mod put_off;
mod random_bits;
mod recompute;
mod recomputed;
mod resize;
mod result;
mod rounds;
pub mod saved_for_backward;
mod scale;
mod segments;
mod sets;
mod shapes;
mod sorted_rows;
mod state;
mod trial;
mod turn;

pub use axis::Axis;
pub use base::{Base, Role};
pub use edit::{Arguments, Edit, EditError, LOGITS, SCAN};
pub use memory::{Item, Memory, Owner};
pub use outcome::{Outcome, UNTOLD};
pub use prediction::{DependsOn, Depth, Prediction, TryVerdict};
pub use resize::set_dimension;
pub use result::WhatIfResult;
pub use segments::EVERY;
pub use sets::{EditSet, SetsError};
pub use state::Sizes;
pub use trial::Trial;
