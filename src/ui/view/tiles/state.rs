//! State of the tiles view for a document.

use egui::Pos2;

use super::by_tile::{Breakdown, Group};
use super::metric::Metric;
use crate::ui::widget::magnifier::Magnifier;
use crate::ui::widget::raster::CachedRaster;

/// State of this view of one document.
#[derive(Default)]
pub struct State {
    pub of: u64,
    pub metric: Metric,
    pub software_order: bool,
    pub over_only: bool,
    /// The IPU that fills the view; `None` for all.
    pub zoom: Option<usize>,
    /// How much the map is magnified.
    pub magnifier: Magnifier,
    pub breakdown: Breakdown,
    /// Values of the metric by tile.
    pub values: Vec<u64>,
    pub values_of: Option<Metric>,
    /// Bytes by group and tile, for the chart.
    pub groups: Vec<Group>,
    pub groups_of: Option<Breakdown>,
    pub drag_from: Option<Pos2>,
    /// The tile under the keyboard cursor.
    pub at: Option<usize>,
    pub map: CachedRaster,
    pub curve: CachedRaster,
    pub limit: Option<u64>,
    /// Right edge of the controls.
    pub tools_right: f32,
}
