//! Charts with two axes: a layer over `egui_plot` for frame, axes, limit, peak, cursor, zoom and keys.
//!
//! A view determines the visible range of the axes ([`Reach`], [`Fit`]), draws its data into a picture ([`Areas`]) and
//! passes it to a [`Chart`]. Charts over a common axis share a [`Window`], as do bands that are not charts.

mod areas;
mod axes;
mod between;
mod fit;
mod input;
mod item;
mod keyboard;
pub mod legend;
mod marks;
mod plot;
mod readout;
mod span;
mod ticks;
mod window;

pub use areas::{Areas, highest_step, lowest_step, steps_between};
pub use axes::{BELOW, LEFT, RIGHT, RIGHT_PLAIN, XAxis, YAxis, bytes_above, milliseconds};
pub use between::Between;
pub use fit::Fit;
pub use input::Reach;
pub use item::Picture;
pub use keyboard::{KEYS, steps};
pub use marks::{
    Cursor, Peak, Spare, Strength, aside, flag, flag_beside, flag_place, limit, paint_limit, paint_peaks, range,
};
pub use plot::{Chart, Shown};
pub use readout::{Line, Tone};
pub use span::Span;
pub use ticks::{byte_ticks, decimal_ticks};
pub use window::{Window, step_of};
