//! Keyboard navigation of the heat map: arrows move between cells, Enter chooses the step and selects the buffer.

use egui::{Response, Ui};

use crate::analysis::heat::HeatGrid;
use crate::ui::widget::keys;

/// A position in the map: program point and address. The cell that contains it depends on the zoom.
pub type Target = (u32, u64);

/// The cell under the keyboard cursor.
pub struct Keyed {
    pub column: usize,
    pub row: usize,
    /// Enter was pressed on it.
    pub enter: bool,
}

/// Handles the keys of this frame; `first` is the initial position of the cursor.
pub fn take(ui: &Ui, at: &mut Option<Target>, grid: &HeatGrid, response: &Response, first: Target) -> Option<Keyed> {
    let pressed = keys::field(ui, response);
    if !pressed.has_focus || grid.columns() == 0 || grid.rows == 0 {
        return None;
    }
    let (point, address) = at.unwrap_or(first);
    let (last_column, last_row) = (grid.columns() - 1, grid.rows - 1);
    // If the cursor is not visible, it restarts in the middle.
    let (mut column, mut row) = grid.place_of(point, address).unwrap_or((last_column / 2, last_row / 2));
    let moved = |from: usize, by: f32, last: usize| from.saturating_add_signed(by as isize).min(last);
    column = moved(column, pressed.by.x, last_column);
    // Addresses grow upwards.
    row = moved(row, -pressed.by.y - pressed.pages * 8.0, last_row);
    if pressed.first {
        column = 0;
    } else if pressed.last {
        column = last_column;
    }
    let (low, high) = grid.addresses_of(row);
    *at = Some((grid.points[column], low + high.saturating_sub(low) / 2));
    Some(Keyed { column, row, enter: pressed.enter })
}
