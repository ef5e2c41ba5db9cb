//! What the cells are coloured by.

use crate::analysis::heat::{HeatCell, HeatGrid};

/// A value for each cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Metric {
    /// The share of the cell that something lies in.
    #[default]
    Occupancy,
    /// The share of padding in it.
    Padding,
    /// Steps since it was placed.
    Age,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Occupancy, Self::Padding, Self::Age];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Occupancy => "Occupancy",
            Self::Padding => "Padding",
            Self::Age => "Age",
        }
    }

    /// What the bars over the scale count.
    pub const fn counted(self) -> &'static str {
        match self {
            Self::Occupancy => "cells by share filled",
            Self::Padding => "cells by share of padding",
            Self::Age => "cells by steps since placed",
        }
    }

    /// Where on the theme's scale the colours begin: nothing at all must look different from no padding, or from what
    /// has just come.
    pub const fn floor(self) -> f32 {
        match self {
            Self::Occupancy => 0.0,
            Self::Padding | Self::Age => 0.14,
        }
    }

    /// Whether what is over the capacity has a colour of its own; it would hide the value of the others.
    pub const fn shows_over(self) -> bool {
        matches!(self, Self::Occupancy)
    }

    /// Place on the colour scale, 0 to 1; `points` is how many steps there are.
    pub fn share(self, grid: &HeatGrid, cell: &HeatCell, points: u32) -> f32 {
        match self {
            Self::Occupancy => (cell.occupied as f64 / grid.row_bytes.max(1) as f64) as f32,
            Self::Padding => cell.padding,
            Self::Age => age_share(f64::from(cell.age), points),
        }
    }
}

/// Ages are shown on a logarithmic scale: what lives for ten steps and for a hundred differ as much as a hundred and a
/// thousand.
pub fn age_share(age: f64, points: u32) -> f32 {
    (age.max(0.0).ln_1p() / f64::from(points.max(2)).ln_1p()) as f32
}
