//! A heat map of addresses over time: occupancy, padding and age of each cell.
//!
//! Cell sizes are powers of two in steps and bytes, and cells are aligned to their size, so they do not shift while the
//! window pans. A column shows the step with the most live bytes, so peaks are never averaged away and the bytes of a
//! column add up to the occupancy at that step.

mod grid;
mod sweep;

pub use grid::{HeatCell, HeatGrid, HeatWindow};
