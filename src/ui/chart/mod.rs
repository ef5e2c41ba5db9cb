//! Every chart with two axes: one layer over `egui_plot` for frame, numbers, limit, peak, cursor, zoom and keys.
//!
//! A view says what part of the axes is visible ([`Reach`], [`Fit`]), draws its data into a picture ([`Areas`]) and hands
//! it to a [`Chart`]. Charts over one axis share a [`Window`]; bands that are no charts draw by it as well.

mod areas;
mod axes;
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
pub use fit::Fit;
pub use input::Reach;
pub use item::Picture;
pub use keyboard::{KEYS, steps};
pub use marks::{Cursor, Peak, Spare, Strength, aside, flag, flag_place, limit, paint_limit, paint_peaks, range};
pub use plot::{Chart, Shown};
pub use readout::{Line, Tone};
pub use span::Span;
pub use ticks::{byte_ticks, decimal_ticks};
pub use window::{Window, step_of};
