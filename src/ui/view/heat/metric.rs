//! The metrics that colour the heat map's cells.

use crate::analysis::heat::{HeatCell, HeatGrid};

/// The metric shown by colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Metric {
    /// Share of the cell that is allocated.
    #[default]
    Occupancy,
    /// Share of padding in the cell.
    Padding,
    /// Steps since allocation.
    Age,
}

impl Metric {
    /// All metrics.
    pub const ALL: [Self; 3] = [Self::Occupancy, Self::Padding, Self::Age];

    /// Display name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Occupancy => "Occupancy",
            Self::Padding => "Padding",
            Self::Age => "Age",
        }
    }

    /// Caption of the histogram over the scale.
    pub const fn counted(self) -> &'static str {
        match self {
            Self::Occupancy => "cells by share filled",
            Self::Padding => "cells by share of padding",
            Self::Age => "cells by steps since allocation",
        }
    }

    /// Where on the theme's scale the colours begin: an empty cell must look different from one without padding, or one
    /// that was just allocated.
    pub const fn floor(self) -> f32 {
        match self {
            Self::Occupancy => 0.0,
            Self::Padding | Self::Age => 0.14,
        }
    }

    /// Whether cells over the capacity have a colour of their own, which would hide the value of other metrics.
    pub const fn shows_over(self) -> bool {
        matches!(self, Self::Occupancy)
    }

    /// Position on the colour scale, 0 to 1; `points` is the number of steps.
    pub fn share(self, grid: &HeatGrid, cell: &HeatCell, points: u32) -> f32 {
        match self {
            Self::Occupancy => (cell.occupied as f64 / grid.row_bytes.max(1) as f64) as f32,
            Self::Padding => cell.padding,
            Self::Age => age_share(f64::from(cell.age), points),
        }
    }
}

/// Ages on a logarithmic scale, 0 to 1: ten and a hundred steps are as far apart as a hundred and a thousand.
pub fn age_share(age: f64, points: u32) -> f32 {
    (age.max(0.0).ln_1p() / f64::from(points.max(2)).ln_1p()) as f32
}
