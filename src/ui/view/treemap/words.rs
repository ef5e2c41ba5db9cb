//! What is written on and about a part of the treemap: its name, its caption, its tooltip.

use egui::{Align2, Pos2, Ui, Vec2};

use super::cells::{self, Cell};
use super::state::{Form, State};
use crate::analysis::Scene;
use crate::analysis::names::scope;
use crate::model::{BufferId, Bytes, counted, percent, thousands};
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// Description of a part for screen readers: name, bytes, share, number of buffers.
pub fn words_of(context: &ViewContext<'_>, scene: Scene<'_>, state: &State, cell: &Cell, whole: Bytes) -> String {
    let count = match cell.buffer {
        Some(_) if cell.equal > 1 => counted(cell.equal as u64, "buffer"),
        Some(_) => "a buffer".to_owned(),
        None => counted(state.tree.nodes[cell.node].count as u64, "buffer"),
    };
    let (short, exact) = (context.short(cell.bytes), cell.bytes.exact());
    format!("{} {short}, {exact}, {}, {count}", name_of(scene, state, cell), percent(cell.bytes.0, whole.0))
}

/// Whether a cell stands for a buffer.
pub fn holds(scene: Scene<'_>, state: &State, cell: &Cell, buffer: BufferId) -> bool {
    let is_in_node = || state.tree.nodes[cell.node].buffers.contains(&buffer);
    let key = |buffer| (state.tree.bytes_of(scene.program, buffer), scene.analysis.class_now(scene.program, buffer));
    match cell.buffer {
        None => is_in_node(),
        Some(own) => own == buffer || (cell.equal > 1 && is_in_node() && key(own) == key(buffer)),
    }
}

/// A buffer by its own unfolded scope, a node by its name; with the number of equal buffers that it stands for.
pub fn name_of(scene: Scene<'_>, state: &State, cell: &Cell) -> String {
    let name = plain_name(scene, state, cell);
    if cell.buffer.is_some() && cell.equal > 1 {
        return format!("{name}  \u{d7}{}", thousands(cell.equal as u64));
    }
    name
}

/// As [`buffer_name`]; of equal buffers of several layers, with the layers folded as in the tree.
fn plain_name(scene: Scene<'_>, state: &State, cell: &Cell) -> String {
    let name = buffer_name(scene, state, cell);
    let is_folded = || state.tree.trail(cell.node).into_iter().any(|node| state.tree.nodes[node].name.ends_with('*'));
    if cell.buffer.is_some() && cell.equal > 1 && is_folded() {
        return name.split('/').map(scope::fold).collect::<Vec<_>>().join("/");
    }
    name
}

fn buffer_name(scene: Scene<'_>, state: &State, cell: &Cell) -> String {
    // Of several, the layer of one is none of the others'.
    let label_of = |buffer| match cell.equal {
        0 | 1 => scene.analysis.label(scene.program, buffer),
        _ => scene.analysis.labels(scene.program).of(scene.program, buffer),
    };
    if let Some(label) = cell.buffer.and_then(label_of) {
        return label.of_several().filter(|_| cell.equal > 1).unwrap_or(label.text);
    }
    let instruction = cell.buffer.and_then(|buffer| scene.program.buffers.instruction_of(buffer));
    let op = instruction.map(|i| scene.program.text.op_name(i)).unwrap_or_default();
    if cell.buffer.is_none() && cell.equal > 1 {
        let title = cells::title_of(&state.tree, &state.names, cell);
        let count = format!("  \u{d7}{}", thousands(cell.equal as u64));
        // A folded name has its own count, which may be the same.
        return if title.ends_with(&count) { title } else { title + &count };
    }
    if op.is_empty() { cells::title_of(&state.tree, &state.names, cell) } else { scope::short(&op, 3) }
}

pub fn caption(painter: &egui::Painter, context: &ViewContext<'_>, scene: Scene<'_>, state: &State, cell: &Cell) {
    let theme = context.theme;
    if cell.rect.width() < 46.0 || cell.rect.height() < 18.0 {
        return;
    }
    let color = if cell.leaf { colors::slot_of_class(cell.class).text() } else { theme.text };
    let room = cell.rect.width() - 10.0;
    let large = cell.leaf && cell.rect.width() > 260.0 && cell.rect.height() > 120.0;
    let points = if large { size::HEADLINE } else { size::SMALL };
    let at = cell.rect.min + Vec2::new(6.0, if cell.leaf { 4.0 } else { 2.0 });
    let words = name_of(scene, state, cell);
    // The frame around it says what leads to its name.
    let parent = state.tree.trail(cell.node).into_iter().rev().find_map(|node| {
        let lead = format!("{}: ", state.tree.nodes[node].name);
        words.strip_prefix(&lead).map(ToOwned::to_owned)
    });
    let words = parent.unwrap_or(words);
    let (drawn, _) = paint_cut(painter, (at, Align2::LEFT_TOP), &words, Weight::SemiBold.at(points), color, room);
    if cell.leaf && cell.rect.height() > drawn.height() + 20.0 {
        let at = Pos2::new(at.x, drawn.bottom() + 1.0);
        let weight = Weight::Medium.at(if large { size::LEAD } else { size::SMALL });
        let galley = painter.layout_no_wrap(context.short(cell.bytes), weight, color);
        // A number is shown whole or not at all.
        if galley.size().x <= room {
            painter.galley(at, galley, color);
        }
    } else if !cell.leaf {
        let right = Pos2::new(cell.rect.right() - 6.0, at.y);
        let words = context.short(cell.bytes);
        if drawn.right() + 70.0 < right.x {
            painter.text(right, Align2::RIGHT_TOP, words, Weight::Medium.at(size::SMALL), theme.text2);
        }
    }
}

pub fn tooltip(ui: &mut Ui, context: &ViewContext<'_>, scene: Scene<'_>, state: &State, cell: &Cell, whole: Bytes) {
    let theme = context.theme;
    let names: Vec<&str> =
        state.tree.trail(cell.node).into_iter().skip(1).map(|n| state.tree.nodes[n].name.as_str()).collect();
    let whole_name = if names.is_empty() { "everything".to_owned() } else { names.join("/") };
    // First the label of the cell in full, then its path in the tree.
    let title = name_of(scene, state, cell);
    if title != whole_name {
        ui.label(text(title, size::BODY, Weight::SemiBold, theme.text));
        ui.label(text(whole_name, size::SMALL, Weight::Regular, theme.text2));
    } else {
        ui.label(text(whole_name, size::BODY, Weight::SemiBold, theme.text));
    }
    if let Some(buffer) = cell.buffer {
        ui.label(text(scene.program.buffer_name(buffer), size::SMALL, Weight::Mono, theme.text2));
    }
    let line = format!("{}   {}   {}", context.short(cell.bytes), cell.bytes.exact(), percent(cell.bytes.0, whole.0));
    ui.label(text(line, size::SMALL, Weight::Medium, theme.text));
    let node = &state.tree.nodes[cell.node];
    if cell.buffer.is_none() {
        let folded =
            if node.folded > 1 { format!(", {} names folded", thousands(node.folded as u64)) } else { String::new() };
        let words = format!("{}{folded}", counted(node.count as u64, "buffer"));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    }
    if cell.padding_share > 0.0 {
        let wasted = Bytes((cell.bytes.0 as f64 * cell.padding_share) as u64);
        let words = format!("{} padding", context.short(wasted));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.warn));
    }
    if let Some((shape, node)) = cell.buffer.and_then(|buffer| scene.program.buffer_shape(buffer)) {
        ui.label(text(shape.text_of(node), size::SMALL, Weight::Mono, theme.text2));
    }
    let hint = match (state.form, cell.buffer.is_some()) {
        (Form::Treemap, true) => "click selects, double click opens it in Timeline, right click opens a menu",
        (Form::Icicle, true) => "click selects, right click opens a menu",
        _ => "click zooms in, right click opens a menu",
    };
    ui.label(text(hint, size::SMALL, Weight::Regular, theme.text3));
}
