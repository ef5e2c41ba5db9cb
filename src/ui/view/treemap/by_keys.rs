//! Keyboard navigation of the treemap: arrows move between parts, Enter zooms in, Backspace zooms out.

use egui::{Rect, Response, Ui};

use super::cells::Cell;
use super::state::State;
use crate::analysis::tree::Tree;
use crate::model::BufferId;
use crate::ui::widget::keys;

/// Position of the keyboard cursor: a node, or a buffer in it.
pub type Target = (usize, Option<BufferId>);

/// What the keys of a frame ask for.
#[derive(Default)]
pub struct Keyed {
    /// The part under the keyboard cursor.
    pub cell: Option<Cell>,
    /// Enter was pressed on it.
    pub enter: bool,
    /// Backspace was pressed.
    pub back: bool,
}

/// Handles the keys of this frame.
pub fn take(ui: &Ui, state: &mut State, response: &Response, placed: &[Cell], selected: Option<BufferId>) -> Keyed {
    let pressed = keys::field(ui, response);
    let free = keys::are_free(ui.ctx()) && !pressed.has_focus;
    let back = pressed.back || (free && ui.input(|input| input.key_pressed(egui::Key::Backspace)));
    if !pressed.has_focus {
        return Keyed { back, ..Keyed::default() };
    }
    let parts: Vec<&Cell> = placed.iter().filter(|cell| cell.depth == 0).collect();
    let is_at = |cell: &&Cell, at: Target| (cell.node, cell.buffer) == at;
    let encloses = |cell: &&Cell, node: usize| state.tree.trail(node).contains(&cell.node);
    let known = state.at.and_then(|at| {
        let exactly = parts.iter().position(|cell| is_at(cell, at));
        exactly.or_else(|| parts.iter().position(|cell| cell.buffer.is_none() && encloses(cell, at.0)))
    });
    let chosen = || selected.and_then(|buffer| parts.iter().position(|cell| cell.buffer == Some(buffer)));
    let from = known.or_else(chosen).unwrap_or(0);
    let to = if pressed.first {
        0
    } else if pressed.last {
        parts.len().saturating_sub(1)
    } else if known.is_some() && pressed.moves() {
        let places: Vec<Rect> = parts.iter().map(|cell| cell.rect).collect();
        keys::neighbour(&places, from, pressed.by).unwrap_or(from)
    } else {
        from
    };
    let cell = parts.get(to).map(|cell| **cell);
    state.at = cell.map(|cell| (cell.node, cell.buffer));
    Keyed { cell, enter: pressed.enter, back }
}

/// The node to zoom out to: nodes with a single child and no buffers are skipped.
pub fn outside(tree: &Tree, node: usize) -> usize {
    let mut at = tree.nodes.get(node).map_or(0, |node| node.parent);
    while at != 0 && tree.nodes[at].children.len() == 1 && tree.nodes[at].buffers.is_empty() {
        at = tree.nodes[at].parent;
    }
    at
}
