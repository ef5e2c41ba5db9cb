//! Treemap of what lives at the step: area is bytes, the hatched part of each cell is padding, layers are folded.

mod cells;

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::{menu, palette};
use crate::analysis::scope;
use crate::analysis::tree::{Tree, TreeKind};
use crate::model::{BufferId, Bytes, percent, thousands};
use crate::ui::session::{FindKey, Scene, ViewContext};
use crate::ui::widget::controls::{self, legend, paint_cut, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{CachedRaster, Hatch};
use crate::ui::widget::theme::{NO_MATCH, Slot, Theme, mix, size};
use cells::Cell;

#[derive(Default)]
struct State {
    kind: TreeKind,
    of: Option<(usize, i64, Option<u32>, TreeKind)>,
    tree: Tree,
    /// The node that fills the view.
    root: usize,
    raster: CachedRaster,
    /// Counts changes of the tree, for the picture's key.
    version: u32,
    /// Whether something that is found is below a node, by node, and what that depends on.
    lit: (Option<(u32, FindKey)>, Vec<bool>),
}

/// Draws the view.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = Theme::of(ui.ctx());
    let Some(scene) = context.scene() else { return super::empty::without_memory(ui, context, &theme) };
    let mut state = context.locals.take::<State>();
    update(context, scene, &mut state);
    let full = ui.max_rect();
    let tools = Rect::from_min_size(full.min + Vec2::new(16.0, 9.0), Vec2::new(full.width() - 32.0, 26.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(tools).id_salt("tools"));
    toolbar(&mut child, context, &theme, &mut state);
    controls::hairline(ui, Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0)), theme.line);
    let crumbs =
        Rect::from_min_size(Pos2::new(full.left() + 16.0, full.top() + 50.0), Vec2::new(full.width() - 32.0, 22.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(crumbs).id_salt("crumbs"));
    trail(&mut child, context, &theme, &mut state);
    let plot =
        Rect::from_min_max(Pos2::new(full.left() + 16.0, crumbs.bottom() + 6.0), full.max - Vec2::new(16.0, 14.0));
    if plot.width() > 20.0 && plot.height() > 20.0 {
        map(ui, context, &theme, scene, &mut state, plot);
    }
    context.locals.put(state);
}

fn update(context: &mut ViewContext<'_>, scene: Scene<'_>, state: &mut State) {
    let of = (context.shared.program, context.shared.color, context.shared.step, state.kind);
    if state.of == Some(of) {
        return;
    }
    let buffers: Vec<BufferId> = match context.shared.step {
        None => scene.space.at_peak.clone(),
        Some(step) => {
            let Some(data) = context.data() else { return };
            data.map.live_at(step).iter().map(|item| item.buffer).collect()
        }
    };
    state.tree = Tree::new(scene.program, scene.analysis, &buffers, state.kind);
    state.root = 0;
    state.version += 1;
    state.of = Some(of);
}

/// Which nodes have something below them that is found.
fn light(context: &ViewContext<'_>, state: &mut State) {
    let key = Some((state.version, context.find_key()));
    if state.lit.0 == key {
        return;
    }
    let nodes = &state.tree.nodes;
    let mut lit: Vec<bool> = nodes.iter().map(|node| node.buffers.iter().any(|&b| context.matches(b))).collect();
    // A node stands behind its parent.
    for at in (1..nodes.len()).rev() {
        if lit[at] {
            lit[nodes[at].parent] = true;
        }
    }
    state.lit = (key, lit);
}

/// Whether a cell is or has something that is found.
fn is_lit(context: &ViewContext<'_>, state: &State, cell: &Cell) -> bool {
    !context.is_finding()
        || cell
            .buffer
            .map_or_else(|| state.lit.1.get(cell.node).copied().unwrap_or(true), |buffer| context.matches(buffer))
}

fn toolbar(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, state: &mut State) {
    ui.horizontal(|ui| {
        let words: Vec<&str> = TreeKind::ALL.iter().map(|kind| kind.name()).collect();
        let chosen = TreeKind::ALL.iter().position(|kind| *kind == state.kind).unwrap_or(0);
        if let Some(i) = segmented(ui, &words, chosen, theme) {
            state.kind = TreeKind::ALL[i];
        }
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let whole = state.tree.nodes.first().map(|node| node.bytes).unwrap_or_default();
            let place = if context.shared.step.is_some() { "at the step" } else { "at the peak" };
            let words =
                format!("{} {place}, {} {}", context.short(whole), context.document.profile.name, unit(context));
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        });
    });
}

fn unit(context: &ViewContext<'_>) -> String {
    format!("step {}", thousands(context.step().into()))
}

/// Where one is in the tree; each part leads back there.
fn trail(ui: &mut Ui, context: &ViewContext<'_>, theme: &Theme, state: &mut State) {
    ui.horizontal(|ui| {
        let trail = state.tree.trail(state.root);
        for (i, &node) in trail.iter().enumerate() {
            let name = if node == 0 { "everything".to_owned() } else { state.tree.nodes[node].name.clone() };
            if i + 1 == trail.len() {
                ui.label(text(name, size::LEAD, Weight::SemiBold, theme.text));
            } else {
                if controls::link_sized(ui, &name, size::LEAD, theme).clicked() {
                    state.root = node;
                }
                ui.label(text("/", size::LEAD, Weight::Regular, theme.text3));
            }
        }
        let Some(node) = state.tree.nodes.get(state.root) else { return };
        let mut words = format!("{}, {} buffers", context.short(node.bytes), thousands(node.count as u64));
        if node.padding > Bytes::ZERO {
            words = format!("{words}, {} padding", percent(node.padding.0, node.bytes.0));
        }
        ui.add_space(6.0);
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        ui.add_space(12.0);
        for (rank, &child) in node.children.iter().take(8).enumerate() {
            let child = &state.tree.nodes[child];
            if ui.available_width() > 130.0 {
                legend(ui, slot_of(rank, node.children.len()), &child.name, theme);
            }
        }
    });
}

/// Colour of the parts of what fills the view, by their rank.
fn slot_of(rank: usize, count: usize) -> Slot {
    let name = if rank >= 8 && count > 8 { "other" } else { "" };
    palette::slot_of_group(rank, name)
}

fn map(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, scene: Scene<'_>, state: &mut State, plot: Rect) {
    if context.is_finding() {
        light(context, state);
    }
    let placed = cells::place(&state.tree, scene.program, state.root, plot);
    let lit: Vec<bool> = placed.iter().map(|cell| is_lit(context, state, cell)).collect();
    let key = (state.version, state.root, theme.dark, state.kind, context.find_key());
    let origin = plot.min;
    state.raster.show(ui, plot, "treemap", key, theme.canvas, |raster| {
        let scale = raster.scale();
        let pixel = |v: f32| (v * scale).round() as i64;
        for (cell, &lit) in placed.iter().zip(&lit) {
            let rect = cell.rect.translate(-origin.to_vec2());
            let (x0, y0, x1, y1) = (pixel(rect.left()), pixel(rect.top()), pixel(rect.right()), pixel(rect.bottom()));
            let gap = i64::from(x1 - x0 > 3 && y1 - y0 > 3);
            if cell.leaf {
                let color = slot_of(cell.rank, cell.ranks).color();
                let color = if lit { color } else { mix(color, theme.canvas, NO_MATCH) };
                raster.fill(x0, y0, x1 - gap, y1 - gap, color);
                let wasted = ((y1 - y0) as f64 * cell.padding_share).round() as i64;
                if wasted > 0 && lit {
                    raster.hatch(x0, y1 - gap - wasted, x1 - gap, y1 - gap, Hatch::padding(theme.hatch));
                }
            } else {
                raster.fill(x0, y0, x1 - gap, y1 - gap, theme.inset);
            }
        }
    });
    let painter = ui.painter().with_clip_rect(plot);
    for (cell, _) in placed.iter().zip(&lit).filter(|(_, lit)| **lit) {
        caption(&painter, context, theme, scene, cell);
    }
    let response = ui.interact(plot, ui.scope_id().with("treemap"), Sense::click());
    let spoken =
        format!("Treemap of {} buffers", thousands(state.tree.nodes.first().map_or(0, |node| node.count as u64)));
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
    if let Some(selected) = context.shared.selected
        && let Some(cell) = placed.iter().filter(|cell| cell.leaf).find(|cell| holds(state, cell, selected))
    {
        painter.rect_stroke(cell.rect, 0.0, Stroke::new(2.5, theme.ink), StrokeKind::Inside);
    }
    let under = response.hover_pos().and_then(|at| placed.iter().rev().find(|cell| cell.rect.contains(at)));
    let target = under.and_then(|cell| cell.buffer.or_else(|| state.tree.largest(scene.program, cell.node)));
    let out: &[&str] = if state.root == 0 { &[] } else { &["Go out"] };
    if menu::show_with(ui, context, plot, target, out).is_some() {
        state.root = state.tree.nodes[state.root].parent;
        return;
    }
    let Some(cell) = under else { return };
    painter.rect_stroke(cell.rect, 0.0, Stroke::new(1.5, theme.ink), StrokeKind::Inside);
    let largest = cell.buffer.or_else(|| state.tree.largest(scene.program, cell.node));
    context.shared.hovered = largest;
    if response.double_clicked() {
        if let Some(buffer) = cell.buffer {
            context.shared.selected = Some(buffer);
            context.go("timeline");
        }
    } else if response.clicked() {
        if cell.buffer.is_some() || state.tree.nodes[cell.node].children.is_empty() && state.root == cell.node {
            context.shared.selected = largest;
        } else {
            state.root = cell.node;
            context.shared.selected = None;
        }
    }
    let cell = *cell;
    let whole = state.tree.nodes.first().map_or(Bytes::ZERO, |node| node.bytes);
    response.on_hover_ui_at_pointer(|ui| tooltip(ui, context, theme, scene, state, &cell, whole));
}

fn holds(state: &State, cell: &Cell, buffer: BufferId) -> bool {
    cell.buffer.map_or_else(|| state.tree.nodes[cell.node].buffers.contains(&buffer), |own| own == buffer)
}

/// A buffer by its own unfolded scope, a node by its name.
fn name_of(scene: Scene<'_>, cell: &Cell) -> String {
    let instruction = cell.buffer.and_then(|buffer| scene.program.buffers.instruction_of(buffer));
    let op = instruction.map(|i| scene.program.text.op_name(i)).unwrap_or_default();
    if op.is_empty() { cell.name() } else { scope::short(&op, 3) }
}

fn caption(painter: &egui::Painter, context: &ViewContext<'_>, theme: &Theme, scene: Scene<'_>, cell: &Cell) {
    if cell.rect.width() < 46.0 || cell.rect.height() < 18.0 {
        return;
    }
    let color = if cell.leaf { slot_of(cell.rank, cell.ranks).text() } else { theme.text };
    let room = cell.rect.width() - 10.0;
    let large = cell.leaf && cell.rect.width() > 260.0 && cell.rect.height() > 120.0;
    let points = if large { size::HEADLINE } else { size::SMALL };
    let at = cell.rect.min + Vec2::new(6.0, if cell.leaf { 4.0 } else { 2.0 });
    let (drawn, _) =
        paint_cut(painter, at, Align2::LEFT_TOP, &name_of(scene, cell), Weight::SemiBold.at(points), color, room);
    if cell.leaf && cell.rect.height() > drawn.height() + 20.0 {
        let at = Pos2::new(at.x, drawn.bottom() + 1.0);
        let weight = Weight::Medium.at(if large { size::LEAD } else { size::SMALL });
        paint_cut(painter, at, Align2::LEFT_TOP, &context.short(cell.bytes), weight, color, room);
    } else if !cell.leaf {
        let right = Pos2::new(cell.rect.right() - 6.0, at.y);
        let words = context.short(cell.bytes);
        if drawn.right() + 70.0 < right.x {
            painter.text(right, Align2::RIGHT_TOP, words, Weight::Medium.at(size::SMALL), theme.text2);
        }
    }
}

fn tooltip(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    theme: &Theme,
    scene: Scene<'_>,
    state: &State,
    cell: &Cell,
    whole: Bytes,
) {
    let names: Vec<&str> =
        state.tree.trail(cell.node).into_iter().skip(1).map(|n| state.tree.nodes[n].name.as_str()).collect();
    ui.label(text(names.join("/"), size::BODY, Weight::SemiBold, theme.text));
    if let Some(buffer) = cell.buffer {
        ui.label(text(scene.program.buffer_name(buffer), size::SMALL, Weight::Mono, theme.text2));
    }
    let line = format!("{}   {}   {}", context.short(cell.bytes), cell.bytes.exact(), percent(cell.bytes.0, whole.0));
    ui.label(text(line, size::SMALL, Weight::Medium, theme.text));
    let node = &state.tree.nodes[cell.node];
    if cell.buffer.is_none() {
        let folded =
            if node.folded > 1 { format!(", {} names folded", thousands(node.folded as u64)) } else { String::new() };
        let words = format!("{} buffers{folded}", thousands(node.count as u64));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    }
    if cell.padding_share > 0.0 {
        let wasted = Bytes((cell.bytes.0 as f64 * cell.padding_share) as u64);
        let words = format!("{} of it padding", context.short(wasted));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.warn));
    }
    if let Some((shape, node)) = cell.buffer.and_then(|buffer| scene.program.buffer_shape(buffer)) {
        ui.label(text(shape.text_of(node), size::SMALL, Weight::Mono, theme.text2));
    }
    let hint = if cell.buffer.is_some() {
        "click selects, double click shows it in time, right click opens a menu"
    } else {
        "click goes in, right click opens a menu"
    };
    ui.label(text(hint, size::SMALL, Weight::Regular, theme.text3));
}
