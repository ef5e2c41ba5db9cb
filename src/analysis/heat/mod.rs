//! Addresses by time as a grid of cells: how much of each is filled, padded, and for how long.
//!
//! Cells are powers of two, in steps and in bytes, and begin at multiples of their size, so that they stand still while
//! the window moves. A column stands for the fullest of its steps: no peak is ever averaged away, and the bytes of a
//! column add up to what is occupied at that step.

mod grid;
mod sweep;

pub use grid::{HeatCell, HeatGrid, HeatWindow};
