//! State of the runtime view for a document, its layout in a frame, and conversions of times.

use std::sync::Arc;

use egui::{Pos2, Rect};

use super::band::Lanes;
use crate::analysis::runtime_breakdown::BreakdownRow;
use crate::analysis::runtime_curve::RuntimeCurve;
use crate::model::{Bytes, Clock, thousands};
use crate::ui::chart::{Reach, Span, Window, XAxis, milliseconds};
use crate::ui::widget::table::TableState;
use crate::ui::widget::theme::Slot;
use crate::ui::work::{DeferredPicture, Job};

/// Free memory is drawn by default if the peak is at least one `SEEN`-th of the capacity.
const SEEN: u64 = 6;

/// Histories of fewer events are computed and drawn within the frame.
pub const AT_ONCE: usize = 20_000;

/// Colour of heap memory in use.
pub const HEAP: Slot = Slot::Activation;

/// Colour of stack memory in use.
pub const STACK: Slot = Slot::Thread;

/// Results for one allocator.
pub struct Worked {
    pub curve: RuntimeCurve,
    pub rows: Vec<BreakdownRow>,
}

/// State of this view of one document.
#[derive(Default)]
pub struct State {
    /// Chosen allocator; `None` before the first frame.
    pub allocator: Option<usize>,
    pub of: Option<(u64, usize)>,
    pub job: Option<Job<Arc<Worked>>>,
    /// Whether free memory is drawn above the memory in use; `None` draws it if the memory in use remains visible.
    pub free: Option<bool>,
    /// Visible time range in picoseconds; `None` for all.
    pub x: Option<Span>,
    /// Chosen range in picoseconds.
    pub range: Option<(i64, i64)>,
    /// Start of the drag that chooses a range.
    pub from: Option<f64>,
    /// Time under the pointer.
    pub cursor: Option<i64>,
    pub curve: DeferredPicture<()>,
    pub fragmentation: DeferredPicture<()>,
    pub runs: DeferredPicture<()>,
    pub lanes: Option<Job<Arc<Lanes>>>,
    /// The document that the lanes belong to.
    pub lanes_of: Option<u64>,
    pub table: TableState,
}

/// Layout of the view in this frame.
pub struct FrameLayout {
    pub curve: Rect,
    pub fragmentation: Rect,
    pub runs: Rect,
    pub x: Span,
    pub reach: Reach,
}

impl State {
    pub fn shows_free(&self, curve: &RuntimeCurve, peak: Bytes) -> bool {
        curve.has_free && self.free.unwrap_or(peak.0.saturating_mul(SEEN) >= curve.capacity)
    }
}

impl FrameLayout {
    /// The axis that all bands share.
    pub const fn window(&self) -> Window {
        Window::strip(self.curve, self.x)
    }

    pub fn x_of(&self, time: f64) -> f32 {
        self.window().x_of(time)
    }

    pub fn all(&self) -> Rect {
        Rect::from_min_max(self.curve.min, Pos2::new(self.curve.right(), self.runs.bottom()))
    }
}

/// The x axis of a history.
pub const fn axis_of(clock: Clock) -> XAxis<'static> {
    match clock {
        Clock::Picoseconds => XAxis::Milliseconds,
        Clock::Order => XAxis::Moments("event"),
    }
}

/// A position in a history in words: a time, or an event number if there are no times.
pub fn moment(clock: Clock, at: f64, step_ps: f64) -> String {
    match clock {
        Clock::Picoseconds => format!("{} ms", milliseconds(at, step_ps)),
        Clock::Order => format!("event {}", thousands(at.max(0.0).round() as u64)),
    }
}

/// The times covered by a pixel column.
pub fn times_of(x: Span, column: i64, width: i64) -> (i64, i64) {
    let at = |column: i64| x.at(column as f64 / width as f64);
    times_between(at(column), at(column + 1))
}

/// The times, in picoseconds, between two positions on the axis: `from..to`, never empty.
pub fn times_between(from: f64, to: f64) -> (i64, i64) {
    let from = from.floor() as i64;
    (from, (to.ceil() as i64).max(from.saturating_add(1)))
}
