//! State of the timeline, and its layout in a frame.

use std::sync::Arc;

use egui::{Pos2, Rect};

use super::groups::Groups;
use super::lifetime_rows::Lifetimes;
use crate::analysis::range_stats::RangeStats;
use crate::analysis::stacked_curves::Grouping;
use crate::model::MemorySpace;
use crate::ui::chart::{Span, Window};
use crate::ui::part::BufferNames;
use crate::ui::work::{DeferredPicture, SpaceData};

/// Maximum number of boxes drawn within the frame; more are drawn on a worker.
pub const AT_ONCE: usize = 3000;

/// Height of the title and its controls above the first lifetime row, in points.
const UNDER_TITLE: f32 = 14.0;

/// Which bands are shown under the curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Bands {
    #[default]
    Map,
    Lifetimes,
    Both,
}

impl Bands {
    pub const ALL: [Self; 3] = [Self::Map, Self::Lifetimes, Self::Both];

    pub const fn has_map(self) -> bool {
        !matches!(self, Self::Lifetimes)
    }

    pub const fn has_lifetimes(self) -> bool {
        !matches!(self, Self::Map)
    }
}

/// A band of the program under the curve.
pub struct Band {
    /// Title at its left, such as `Program`.
    pub title: &'static str,
    /// Name, first step and one past the last of each part.
    pub spans: Vec<(String, u32, u32)>,
}

/// State of this view of one document.
#[derive(Default)]
pub struct State {
    pub grouping: Grouping,
    pub bands: Bands,
    /// Visible addresses; `None` for all.
    pub addresses: Option<Span>,
    pub show_padding: bool,
    pub curve: DeferredPicture<()>,
    pub map: DeferredPicture<Vec<u32>>,
    pub mini: DeferredPicture<()>,
    pub lifetimes: Lifetimes,
    pub measure: Measuring,
    pub labels: BufferNames,
    /// Bands of the program, computed once.
    pub program_bands: Option<Arc<[Band]>>,
    /// Program and memory space that the rest belongs to.
    pub of: Option<(usize, MemorySpace)>,
    pub dragging_map: bool,
    /// Flags of a limit that is out of sight, in this frame.
    pub limit_flags: Vec<Rect>,
    /// The step that the visible range was last moved to show.
    pub followed: Option<u32>,
}

/// Inputs of a range's figures: first and last step, grouping, number of groups.
pub type RangeKey = ((u32, u32), Grouping, usize);

/// A range that is being measured.
#[derive(Default)]
pub struct Measuring {
    /// Step at which the drag began.
    pub from: Option<u32>,
    /// The figures, and the groups they name.
    pub stats: Option<(RangeKey, RangeStats, Groups)>,
}

impl Measuring {
    /// Whether a range is being dragged.
    pub const fn is_dragging(&self) -> bool {
        self.from.is_some()
    }
}

/// Layout of the view in this frame.
#[derive(Clone, Copy)]
pub struct FrameLayout {
    pub curve: Rect,
    /// The memory map; of zero height if hidden.
    pub map: Rect,
    /// The lifetimes; of zero height if hidden.
    pub lifetimes: Rect,
    /// The axis with the step numbers.
    pub axis: Rect,
    /// Visible range of steps.
    pub x: Span,
    /// Whole range of steps.
    pub whole: Span,
}

impl FrameLayout {
    /// The bands that vertical lines cross: the curve with the program bands under it, the map, the lifetime rows.
    pub fn bands(&self) -> [Rect; 3] {
        let curve = Rect::from_min_max(self.curve.min, Pos2::new(self.curve.right(), self.axis.top()));
        [curve, self.map, self.lifetime_rows()]
    }

    /// The rows of lifetimes, below their title.
    pub fn lifetime_rows(&self) -> Rect {
        let band = self.lifetimes;
        Rect::from_min_max(Pos2::new(band.left(), (band.top() + UNDER_TITLE).min(band.bottom())), band.max)
    }

    /// The axis that all bands share.
    pub const fn window(&self) -> Window {
        Window::strip(self.curve, self.x)
    }

    pub fn x_of(&self, point: f64) -> f32 {
        self.window().x_of(point)
    }
}

/// What all bands of a frame are drawn from.
#[derive(Clone, Copy)]
pub struct Drawn<'a> {
    pub data: &'a Arc<SpaceData>,
    pub groups: &'a Groups,
    pub layout: &'a FrameLayout,
}

/// The request of a clicked button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    All,
    Focus,
}
