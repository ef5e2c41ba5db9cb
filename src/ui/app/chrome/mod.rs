//! Everything around the view: top and status bars, tabs, side panel, cards, find bar, command palette.

pub(super) mod cards;
pub(super) mod command_palette;
mod find_bar;
pub(super) mod palette_matches;
pub(super) mod performance;
pub(super) mod side_panel;
mod status_bar;
mod tabs;
pub(super) mod top_bar;
