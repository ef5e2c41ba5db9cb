//! Treemap and icicle of the live buffers at the step: area is bytes, the hatched part of a cell is padding, layers are
//! folded.

mod by_keys;
mod cells;
mod forest;
mod list;
mod state;
mod words;

use std::sync::Arc;

use egui::{Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use crate::analysis::Scene;
use crate::analysis::class::Class;
use crate::analysis::tree::{Tree, TreeKind};
use crate::model::{Bytes, counted, percent, thousands};
use crate::ui::chart::legend::{self, Sign};
use crate::ui::part::{Find, View, ViewContext, class_legend, colors, empty, facts, menu};
use crate::ui::session::Document;
use crate::ui::widget::controls::{self, On, segmented, toggle};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::icicle::Icicle;
use crate::ui::widget::keys;
use crate::ui::widget::raster::{Hatch, RasterArea};
use crate::ui::widget::theme::{NO_MATCH, mix, size};
use crate::ui::work::Job;
use cells::{Cell, LayoutInput};
use forest::Forest;
use state::{Form, Of, State};
use words::{caption, holds, tooltip, words_of};

/// Maximum number of parts described for screen readers, largest first.
const SPOKEN: usize = 60;
/// Room for the tools after the first choice.
const OTHER_TOOLS: f32 = 430.0;
/// Where the hairlines between equal buffers of a cell begin, in points below its top, and how far apart they are at
/// least.
const PARTED_BELOW: f32 = 76.0;
const LEAST_PART: f32 = 6.0;

/// The view.
pub const VIEW: View = View {
    applies: Document::has_buffers,
    find: Find::Dim,
    shows_buffers: true,
    ..View::new("treemap", "Treemap", show).with_digit(4)
};

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return empty::without_memory(ui, context) };
    let mut state = context.locals.take::<State>();
    update(context, &mut state);
    let full = ui.max_rect();
    let tools = Rect::from_min_size(full.min + Vec2::new(16.0, 9.0), Vec2::new(full.width() - 32.0, 26.0));
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(tools).id_salt("tools"));
    toolbar(&mut child, context, &mut state);
    controls::hairline(ui, Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0)), theme.line);
    let line = |top: f32, height: f32| {
        Rect::from_min_size(Pos2::new(full.left() + 16.0, top), Vec2::new(full.width() - 32.0, height))
    };
    let head = line(full.top() + 50.0, 26.0);
    let has_head = full.height() >= crate::ui::part::facts::LEAST_WITH_HEADLINE;
    if has_head && let Some((words, remark)) = answer(context, &state) {
        facts::headline(ui, theme, head, &words, &remark);
    }
    let crumbs = line(if has_head { head.top() + facts::HEADLINE } else { head.top() }, 22.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(crumbs).id_salt("crumbs"));
    child.set_clip_rect(crumbs.intersect(ui.clip_rect()));
    trail(&mut child, context, &mut state);
    let plot =
        Rect::from_min_max(Pos2::new(full.left() + 16.0, crumbs.bottom() + 6.0), full.max - Vec2::new(16.0, 14.0));
    if plot.width() > 20.0 && plot.height() > 20.0 && !state.tree.nodes.is_empty() {
        let (plot, below) = list::divide(plot);
        match state.form {
            Form::Treemap => map(ui, context, scene, &mut state, plot),
            Form::Icicle => icicle(ui, context, scene, &mut state, plot),
        }
        if let Some(below) = below {
            let tree = Arc::clone(&state.tree);
            let of = (state.version, state.root);
            list::show(ui, context, scene, (&tree, of), &mut state.list, below);
        }
    }
    context.locals.put(state);
}

/// Bytes with what holds them: `9.00 GiB in layer_*/attn`, `15.0 GiB saved by the scan for 256 steps`.
fn held_in(bytes: &str, name: &str) -> String {
    let says_how = ["saved by ", "collected by ", "carried by "].iter().any(|words| name.starts_with(words));
    format!("{bytes} {}{name}", if says_how { "" } else { "in " })
}

/// The largest part of what is shown, in words, with its share.
fn answer(context: &ViewContext<'_>, state: &State) -> Option<(String, String)> {
    let node = state.tree.nodes.get(state.root)?;
    let name = |node: usize| state.names.get(node).map_or("", String::as_str);
    let Some(largest) = node.children.first().and_then(|&child| Some((child, state.tree.nodes.get(child)?))) else {
        let of = percent(node.bytes.0, state.tree.nodes.first()?.bytes.0);
        return Some((held_in(&context.short(node.bytes), name(state.root)), format!("{of} of everything")));
    };
    let whole = match context.shared.step {
        _ if state.root != 0 => name(state.root).to_owned(),
        _ if !context.document.has_times() => "what is listed".to_owned(),
        None => "the peak".to_owned(),
        Some(step) => format!("what is reserved at step {step}"),
    };
    let (child, largest) = largest;
    let held = state.tree.holds_most(state.root);
    let Some((&deepest, above)) = held.split_last().filter(|(_, above)| !above.is_empty()) else {
        let words = held_in(&context.short(largest.bytes), name(child));
        return Some((words, format!("{} of {whole}", percent(largest.bytes.0, node.bytes.0))));
    };
    // A scope around everything tells nothing: the last names do, with the number of equal layers.
    let own = |node: &usize| state.tree.nodes.get(*node).map_or("", |node| node.name.as_str());
    let path: Vec<&str> = above[above.len().saturating_sub(2)..].iter().chain([&deepest]).map(own).collect();
    let folded = held.iter().filter_map(|&node| state.tree.nodes.get(node)).map(|node| node.folded).max().unwrap_or(1);
    let times = if folded > 1 { format!("  \u{d7}{}", thousands(folded as u64)) } else { String::new() };
    let bytes = state.tree.nodes.get(deepest).map_or(Bytes::ZERO, |node| node.bytes);
    let words = format!("{}{times}", held_in(&context.short(bytes), &path.join("/")));
    Some((words, format!("{} of {whole}", percent(bytes.0, node.bytes.0))))
}

/// Starts building the tree of live buffers on a worker, and takes it once it is built.
fn update(context: &mut ViewContext<'_>, state: &mut State) {
    let (program, kind, fold) = (context.shared.program, context.shared.tree.kind, state.fold);
    let of: Of = (program, context.shared.color, context.shared.step, kind, fold);
    let is_wanted = state.of != Some(of) && state.building.as_ref().is_none_or(|(building, _)| *building != of);
    if is_wanted {
        let (color, step) = (context.shared.color, context.shared.step);
        let document = Arc::clone(context.document);
        let job = Job::start(context.work, "tree", move || {
            let scene = document.scene(program, color);
            let tree = scene.map(|scene| Tree::new(scene.program, scene.analysis, &scene.live(step), kind, fold));
            Arc::new(tree.unwrap_or_default())
        });
        state.building = Some((of, job));
    }
    if let Some((of, job)) = &mut state.building
        && let Some(tree) = job.poll()
    {
        state.tree = Arc::clone(tree);
        state.of = Some(*of);
        state.classes = [0; Class::ALL.len()];
        for node in state.tree.nodes.iter().filter(|node| !node.buffers.is_empty()) {
            state.classes[node.class as usize] += node.bytes.0;
        }
        state.at = None;
        state.names = (0..tree.nodes.len()).map(|node| cells::name_of(tree, node)).collect();
        if let Some(name) = state.names.first_mut() {
            "everything".clone_into(name);
        }
        state.version += 1;
        state.building = None;
    }
    state.root = state.tree.find(&context.shared.tree.path);
}

/// Zooms to a node. The history stores it by name, so back and forward find it again.
fn go(context: &mut ViewContext<'_>, state: &mut State, node: usize) {
    context.shared.go_in_tree(state.tree.path(node));
    state.root = node;
}

/// Updates which nodes contain a match.
fn light(context: &ViewContext<'_>, state: &mut State) {
    let key = Some((state.version, context.find_key()));
    if state.lit.0 == key {
        return;
    }
    let nodes = &state.tree.nodes;
    let mut lit: Vec<bool> = nodes.iter().map(|node| node.buffers.iter().any(|&b| context.matches(b))).collect();
    // A node comes after its parent.
    for at in (1..nodes.len()).rev() {
        if lit[at] {
            lit[nodes[at].parent] = true;
        }
    }
    state.lit = (key, lit);
    state.lights += 1;
}

/// Whether a cell is or contains a match.
fn is_lit(context: &ViewContext<'_>, state: &State, cell: &Cell) -> bool {
    !context.is_finding()
        || cell.buffer.map_or_else(
            || state.lit.1.get(cell.node).copied().unwrap_or(true),
            |buffer| context.matches(buffer) || (cell.equal > 1 && matches_one(context, state, cell)),
        )
}

/// Whether one of the equal buffers of a cell is a match.
fn matches_one(context: &ViewContext<'_>, state: &State, cell: &Cell) -> bool {
    let Some(scene) = context.scene() else { return true };
    let mut matching = state.tree.nodes[cell.node].buffers.iter().filter(|&&buffer| context.matches(buffer));
    matching.any(|&buffer| holds(scene, state, cell, buffer))
}

fn toolbar(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        let words: Vec<&str> = TreeKind::ALL.iter().map(|kind| kind.name()).collect();
        let chosen = TreeKind::ALL.iter().position(|kind| *kind == context.shared.tree.kind).unwrap_or(0);
        let room = ui.available_width() - OTHER_TOOLS;
        if let Some(i) = controls::choice(ui, "Group", &words, chosen, room, theme) {
            context.shared.divide_tree(TreeKind::ALL[i]);
        }
        ui.add_space(8.0);
        if toggle(ui, On(state.fold), "Fold layers", theme) {
            state.fold = !state.fold;
        }
        ui.label(text("Fold layers", size::SMALL, Weight::Medium, theme.text2))
            .on_hover_text("layer_0, layer_1, \u{2026} as one layer_*");
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let forms = ["Treemap", "Icicle"];
            if let Some(i) = segmented(ui, &forms, usize::from(state.form == Form::Icicle), theme) {
                state.form = if i == 0 { Form::Treemap } else { Form::Icicle };
            }
            if ui.available_width() > 190.0 && context.document.has_times() {
                let place = if context.shared.step.is_some() { "at" } else { "at the peak," };
                let words = format!("{place} step {}", context.step());
                ui.add_space(8.0);
                ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
            }
        });
    });
}

/// Number of names at the end of the trail; those before are left out.
const TRAIL: usize = 4;

/// The path to the current node; each part is a link.
fn trail(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    let mut to = None;
    ui.horizontal(|ui| {
        let trail = state.tree.trail(state.root);
        let cut = trail.len().saturating_sub(TRAIL);
        for (i, &node) in trail.iter().enumerate() {
            if i > 0 && i <= cut {
                if i == 1 {
                    ui.label(text("\u{2026} /", size::LEAD, Weight::Regular, theme.text3));
                }
                continue;
            }
            let name = state.names.get(node).map_or("", String::as_str);
            if i + 1 == trail.len() {
                let width = (ui.available_width() * 0.6).max(80.0);
                controls::cut_label(ui, name, Weight::SemiBold.at(size::LEAD), theme.text, width);
            } else {
                if controls::link_sized(ui, name, size::LEAD, theme).clicked() {
                    to = Some(node);
                }
                ui.label(text("/", size::LEAD, Weight::Regular, theme.text3));
            }
        }
        let Some(node) = state.tree.nodes.get(state.root) else { return };
        let words = format!("{}, {}", context.short(node.bytes), counted(node.count as u64, "buffer"));
        ui.add_space(6.0);
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        ui.add_space(12.0);
        if node.padding.0.saturating_mul(100) >= node.bytes.0.max(1) {
            let words = format!("{} padding", percent(node.padding.0, node.bytes.0));
            legend::entry(ui, theme, Sign::Padding, &words);
            ui.add_space(6.0);
        }
        class_legend::legends(ui, theme, &|class| state.classes[class as usize]);
    });
    if let Some(node) = to {
        go(context, state, node);
    }
}

fn icicle(ui: &Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, state: &mut State, plot: Rect) {
    if state.icicle.root != state.root {
        state.icicle.go(state.root);
    }
    let finding = context.is_finding();
    if finding {
        light(context, state);
    }
    let (found, lights) = (std::mem::take(&mut state.lit.1), state.lights);
    let is_lit = |node: usize| found.get(node).copied().unwrap_or(true);
    let tree = Arc::clone(&state.tree);
    let forest = Forest::new(&tree, &state.names);
    let units = context.options.units;
    let words = |bytes: u64| units.short(Bytes(bytes));
    let lit = finding.then_some((&is_lit as &dyn Fn(usize) -> bool, lights));
    let shown = Icicle { tree: &forest, version: state.version, lit, words: &words, name: "Icicle of buffers" };
    let answer = shown.show(ui, &mut state.icicle, plot);
    state.lit.1 = found;
    let target = answer.hovered.filter(|_| answer.rest == 0).and_then(|node| tree.largest(scene.program, node));
    let out: &[&str] = if state.root == 0 { &[] } else { &["Zoom out"] };
    let (node, place) = answer.focused.map_or((None, plot), |(node, place)| (Some(node), place));
    menu::aim(context, node.and_then(|node| tree.largest(scene.program, node)), place);
    if menu::show_with(ui, context, plot, target, out).is_some() {
        go(context, state, by_keys::outside(&tree, state.root));
        return;
    }
    if let Some(node) = answer.hovered.filter(|_| answer.rest == 0) {
        context.shared.hover(tree.largest(scene.program, node));
        let whole = tree.nodes.first().map_or(Bytes::ZERO, |node| node.bytes);
        let cell = cell_of(&tree, node, plot);
        answer.response.on_hover_ui_at_pointer(|ui| tooltip(ui, context, scene, state, &cell, whole));
    } else if answer.rest > 0 {
        let words = format!("{} more, too narrow to show", thousands(answer.rest.into()));
        answer.response.on_hover_text_at_pointer(words);
    }
    if answer.went {
        let node = state.icicle.root;
        // A leaf cannot be zoomed into: it is selected instead.
        if tree.nodes.get(node).is_some_and(|node| node.children.is_empty()) {
            state.icicle.go(state.root);
            context.shared.select(tree.largest(scene.program, node));
        } else {
            go(context, state, node);
            context.shared.select(None);
        }
    }
}

/// A node as a cell, for its tooltip and description.
fn cell_of(tree: &Tree, node: usize, rect: Rect) -> Cell {
    let own = &tree.nodes[node];
    let buffer = if own.children.is_empty() && own.buffers.len() == 1 { own.buffers.first().copied() } else { None };
    let padding_share = cells::share(own.padding, own.bytes);
    Cell {
        node,
        from: node,
        buffer,
        rect,
        class: own.class,
        depth: 0,
        equal: 1,
        leaf: own.children.is_empty(),
        bytes: own.bytes,
        padding_share,
    }
}

fn map(ui: &Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, state: &mut State, plot: Rect) {
    let theme = context.theme;
    let placed_for =
        (state.version, state.root, [plot.left(), plot.top(), plot.width(), plot.height()].map(f32::to_bits));
    if state.placed_for != Some(placed_for) {
        let place = LayoutInput { tree: &state.tree, program: scene.program, analysis: scene.analysis };
        state.placed = place.below(state.root, plot);
        state.placed_for = Some(placed_for);
    }
    if context.is_finding() {
        light(context, state);
    }
    let placed = std::mem::take(&mut state.placed);
    let lit: Vec<bool> = placed.iter().map(|cell| is_lit(context, state, cell)).collect();
    let key = (placed_for, theme.dark, context.find_key());
    let origin = plot.min;
    state.raster.show(ui, RasterArea { rect: plot, name: "treemap", ground: theme.canvas }, key, |raster| {
        let scale = raster.scale();
        let pixel = |v: f32| (v * scale).round() as i64;
        for (cell, &lit) in placed.iter().zip(&lit) {
            let rect = cell.rect.translate(-origin.to_vec2());
            let (x0, y0, x1, y1) = (pixel(rect.left()), pixel(rect.top()), pixel(rect.right()), pixel(rect.bottom()));
            let gap = i64::from(x1 - x0 > 3 && y1 - y0 > 3);
            if cell.leaf {
                let color = colors::slot_of_class(cell.class).color();
                let color = if lit { color } else { mix(color, theme.canvas, NO_MATCH) };
                raster.fill(x0, y0, x1 - gap, y1 - gap, color);
                let wasted = ((y1 - y0) as f64 * cell.padding_share).round() as i64;
                if wasted > 0 && lit {
                    raster.hatch(x0, y1 - gap - wasted, x1 - gap, y1 - gap, Hatch::padding(theme.hatch));
                }
                // Equal buffers in one cell are parted by hairlines below its words.
                let (parts, top) = (cell.equal as i64, y0 + pixel(PARTED_BELOW));
                if parts > 1 && top < y1 - gap && (x1 - x0) / parts >= pixel(LEAST_PART) {
                    for part in 1..parts {
                        let x = x0 + (x1 - x0) * part / parts;
                        raster.fill(x, top, x + 1, y1 - gap, mix(color, theme.canvas, 0.5));
                    }
                }
            } else {
                raster.fill(x0, y0, x1 - gap, y1 - gap, theme.inset);
            }
        }
    });
    let painter = ui.painter().with_clip_rect(plot.intersect(ui.clip_rect()));
    for (cell, _) in placed.iter().zip(&lit).filter(|(_, lit)| **lit) {
        caption(&painter, context, scene, state, cell);
    }
    let response = ui.interact(plot, ui.scope_id().with("treemap"), Sense::click());
    let keyed = by_keys::take(ui, state, &response, &placed, context.shared.selected);
    let whole = state.tree.nodes.first().map_or(Bytes::ZERO, |node| node.bytes);
    let mut spoken =
        format!("Treemap of {}", counted(state.tree.nodes.first().map_or(0, |node| node.count as u64), "buffer"));
    for (i, cell) in placed.iter().enumerate().filter(|(_, cell)| cell.depth == 0).take(SPOKEN) {
        let part = ui.interact(cell.rect, ui.scope_id().with(("part", i)), Sense::hover());
        part.widget_info(|| WidgetInfo::labeled(Role::TreeItem, true, words_of(context, scene, state, cell, whole)));
    }
    if let Some(cell) = &keyed.cell {
        spoken = format!("{spoken}; {}", words_of(context, scene, state, cell, whole));
        keys::ring_at(&painter, cell.rect, theme);
        context.shared.hover(cell.buffer.or_else(|| state.tree.largest(scene.program, cell.node)));
    }
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
    if let Some(selected) = context.shared.selected
        && let Some(cell) = placed.iter().filter(|cell| cell.leaf).find(|cell| holds(scene, state, cell, selected))
    {
        painter.rect_stroke(cell.rect, 0.0, Stroke::new(2.5, theme.ink), StrokeKind::Inside);
    }
    let under = response.hover_pos().and_then(|at| placed.iter().rev().find(|cell| cell.rect.contains(at)).copied());
    state.placed = placed;
    let target = under.as_ref().and_then(|cell| cell.buffer.or_else(|| state.tree.largest(scene.program, cell.node)));
    let out: &[&str] = if state.root == 0 { &[] } else { &["Zoom out"] };
    let aimed = keyed.cell.and_then(|cell| cell.buffer.or_else(|| state.tree.largest(scene.program, cell.node)));
    menu::aim(context, aimed, keyed.cell.map_or(plot, |cell| cell.rect));
    if menu::show_with(ui, context, plot, target, out).is_some() || (keyed.back && state.root != 0) {
        let (left, to) = (state.root, by_keys::outside(&state.tree, state.root));
        state.at = Some((left, None));
        go(context, state, to);
        return;
    }
    if let Some(cell) = keyed.cell.filter(|_| keyed.enter) {
        return enter(context, scene, state, &cell);
    }
    let Some(cell) = under else { return };
    painter.rect_stroke(cell.rect, 0.0, Stroke::new(1.5, theme.ink), StrokeKind::Inside);
    let largest = cell.buffer.or_else(|| state.tree.largest(scene.program, cell.node));
    context.shared.hover(largest);
    if response.double_clicked() {
        if let Some(buffer) = cell.buffer {
            context.shared.select(buffer);
            context.go("timeline");
        }
    } else if response.clicked_by(egui::PointerButton::Primary) {
        enter(context, scene, state, &cell);
    }
    response.on_hover_ui_at_pointer(|ui| tooltip(ui, context, scene, state, &cell, whole));
}

/// Zooms into a part, or selects it if it is a buffer.
fn enter(context: &mut ViewContext<'_>, scene: Scene<'_>, state: &mut State, cell: &Cell) {
    if cell.buffer.is_some() || state.tree.nodes[cell.node].children.is_empty() && state.root == cell.node {
        context.shared.select(cell.buffer.or_else(|| state.tree.largest(scene.program, cell.node)));
    } else {
        state.at = None;
        go(context, state, cell.node);
        context.shared.select(None);
    }
}
