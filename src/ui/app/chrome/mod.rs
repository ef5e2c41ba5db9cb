//! What stands around the view: bars, side panel, cards, the field to find something, the list of commands.

pub(super) mod cards;
pub(super) mod command_palette;
mod find_bar;
pub(super) mod palette_matches;
pub(super) mod side_panel;
mod status_bar;
pub(super) mod top_bar;
