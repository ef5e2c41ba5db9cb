//! Live arrays: memory live when the file was written, as an icicle of the allocating Python stacks, with a table.

mod card;
mod rows;

use egui::{Key, Pos2, Rect, Role, Ui, Vec2, WidgetInfo};

use crate::analysis::caching_allocator::CachingAnalysis;
use crate::analysis::live_set::{GroupBy, LiveAnalysis, is_library, own_frame};
use crate::analysis::stack_tree::StackTree;
use crate::model::{Bytes, LiveSet, percent, thousands};
use crate::ui::part::menu::{self, Thing};
use crate::ui::part::{Find, KeyHelp, View, ViewContext, colors, empty};
use crate::ui::session::{Document, Locals, Shared};
use crate::ui::widget::controls::{self, cut_label, legend, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::icicle::{Icicle, IcicleState, IcicleTree, ROW, crumbs};
use crate::ui::widget::theme::{Slot, size, space};

/// The view.
pub const VIEW: View = View {
    applies,
    card: Some(card::show),
    find: Find::Field(focus_search),
    keys: KEYS,
    ..View::new("live", "Live arrays", show).with_digit(5)
};

/// Width of the field that searches, where there is room.
const SEARCH: f32 = 220.0;

const KEYS: &[KeyHelp] = &[
    ("click, Backspace", "Live arrays: zoom into a frame, out by one frame"),
    ("Ctrl F", "Live arrays: search functions and files"),
];

/// State of this view of one document.
#[derive(Default)]
struct State {
    /// Grouping of the icicle's first row; `None` for stacks alone.
    by: Option<GroupBy>,
    /// Whether library frames are shown.
    libraries: bool,
    of: Option<(u64, Option<GroupBy>, bool)>,
    tree: StackTree,
    slots: Vec<Slot>,
    /// Groups of the legend.
    legend: Vec<(String, Slot)>,
    version: u64,
    icicle: IcicleState,
    hovered: Option<usize>,
    search: String,
    searched: String,
    lit: Vec<bool>,
    found: Bytes,
    focus: bool,
    rows: rows::State,
}

/// The stacks with their colours.
struct Colored<'a>(&'a StackTree, &'a [Slot]);

impl IcicleTree for Colored<'_> {
    fn parent(&self, node: usize) -> usize {
        self.0.nodes[node].parent
    }
    fn children(&self, node: usize) -> &[usize] {
        &self.0.nodes[node].children
    }
    fn bytes(&self, node: usize) -> u64 {
        self.0.nodes[node].bytes.0
    }
    fn name(&self, node: usize) -> &str {
        &self.0.nodes[node].label
    }
    fn slot(&self, node: usize) -> Slot {
        self.1.get(node).copied().unwrap_or(Slot::Temporary)
    }
}

/// Whether there are live entries with stacks; an allocator dump has a view of its own.
fn applies(document: &Document) -> bool {
    let found = document.analysis.live_set(&document.profile);
    found.is_some_and(|(set, _)| set.heap.is_none() && !set.entries.is_empty())
}

/// Moves the focus to the search field.
fn focus_search(shared: &mut Shared, locals: &mut Locals) {
    shared.show_view(VIEW.id);
    locals.get::<State>().focus = true;
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let document = context.document.clone();
    let Some((set, analysis)) = document.analysis.live_set(&document.profile) else {
        return empty::without_memory(ui, context);
    };
    let mut state = context.locals.take::<State>();
    update(set, document.id(), &mut state);
    let full = ui.max_rect();
    let left = full.left() + 16.0;
    let wide = full.width() - 32.0;
    let line = |top: f32, height: f32| Rect::from_min_size(Pos2::new(left, top), Vec2::new(wide, height));
    let tools = line(full.top() + 9.0, 26.0);
    controls::hairline(ui, Rect::from_min_size(full.min, Vec2::new(full.width(), 44.0)), theme.line);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(tools).id_salt("tools"));
    toolbar(&mut child, context, &mut state);
    let head = line(full.top() + 54.0, 50.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(head).id_salt("head"));
    answer(&mut child, context, set, analysis);
    let trail = line(head.bottom() + 4.0, 22.0);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(trail).id_salt("trail"));
    way(&mut child, context, &mut state);
    let room = full.bottom() - trail.bottom() - 6.0;
    if room < 120.0 {
        context.locals.put(state);
        return;
    }
    // A shallow tree leaves more room for the table.
    let height = icicle_height(&mut state, wide).clamp(4.0 * ROW, (room * 0.55).floor());
    let plot = line(trail.bottom() + 6.0, height);
    icicle(ui, context, &mut state, plot);
    let table = Rect::from_min_max(
        Pos2::new(full.left() + 12.0, plot.bottom() + 10.0),
        Pos2::new(full.right() - 8.0, full.bottom() - 6.0),
    );
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(table).id_salt("table"));
    child.set_clip_rect(table.intersect(ui.clip_rect()));
    rows::show(&mut child, context, set, &mut state);
    context.locals.put(state);
}

/// Rebuilds the tree if its inputs changed.
fn update(set: &LiveSet, document: u64, state: &mut State) {
    let of = (document, state.by, state.libraries);
    if state.of != Some(of) {
        state.tree = StackTree::new(set, state.by, !state.libraries);
        state.of = Some(of);
        state.version += 1;
        state.icicle.go(0);
        state.searched.clear();
        state.lit.clear();
        colors(state);
    }
    let search = state.search.trim().to_lowercase();
    if search != state.searched {
        state.lit = if search.is_empty() { Vec::new() } else { state.tree.matches(&search) };
        state.found = state.tree.bytes_of(&state.lit);
        state.searched = search;
    }
}

/// A colour for each group, or for each file if there is no grouping: the eight largest, then "other".
fn colors(state: &mut State) {
    let nodes = &state.tree.nodes;
    state.slots = vec![Slot::Temporary; nodes.len()];
    state.legend.clear();
    if state.by.is_some() {
        for (rank, &child) in nodes[0].children.iter().enumerate() {
            let slot = colors::slot_of_group(rank, "");
            if rank < 8 {
                state.legend.push((rows::short_path(&nodes[child].name), slot));
            }
            let mut open = vec![child];
            while let Some(node) = open.pop() {
                state.slots[node] = slot;
                open.extend(&nodes[node].children);
            }
        }
        return;
    }
    let file = |node: usize| nodes[node].place.rsplit_once(':').map_or("", |(file, _)| file);
    let mut own: std::collections::HashMap<&str, (bool, u64)> = std::collections::HashMap::new();
    for (node, at) in nodes.iter().enumerate().skip(1) {
        own.entry(file(node)).or_insert((is_library(file(node)), 0)).1 += at.bytes.0;
    }
    let mut files: Vec<(&str, (bool, u64))> = own.into_iter().collect();
    // The user's code first: libraries are grey unless colours are left.
    files.sort_by_key(|&(name, (library, bytes))| (library, std::cmp::Reverse(bytes), name));
    let slots: std::collections::HashMap<&str, Slot> =
        files.iter().enumerate().map(|(rank, (name, _))| (*name, colors::slot_of_group(rank, ""))).collect();
    let chosen: Vec<Slot> =
        (0..nodes.len()).map(|node| slots.get(file(node)).copied().unwrap_or(Slot::Temporary)).collect();
    let shown = files.iter().take(8).enumerate();
    state.legend = shown.map(|(rank, (name, _))| (rows::short_path(name), colors::slot_of_group(rank, ""))).collect();
    state.slots = chosen;
}

fn toolbar(ui: &mut Ui, context: &ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        let words: Vec<&str> = std::iter::once("Stack").chain(GroupBy::ALL.iter().map(|by| by.name())).collect();
        let chosen = state.by.and_then(|by| GroupBy::ALL.iter().position(|other| *other == by)).map_or(0, |i| i + 1);
        if let Some(i) = segmented(ui, &words, chosen, theme) {
            state.by = i.checked_sub(1).and_then(|i| GroupBy::ALL.get(i).copied());
        }
        let libraries = controls::toggle_button(ui, "Library frames", "", controls::On(state.libraries), theme);
        if libraries.on_hover_text("Frames of installed packages and of Python itself").clicked() {
            state.libraries = !state.libraries;
        }
        let edit = egui::TextEdit::singleline(&mut state.search)
            .hint_text("Search functions and files")
            .desired_width(SEARCH.min(ui.available_width()))
            .font(Weight::Mono.at(size::SMALL));
        let response = ui.add_sized(Vec2::new(SEARCH.min(ui.available_width()), space::CONTROL), edit);
        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Search functions and files"));
        if std::mem::take(&mut state.focus) {
            response.request_focus();
        }
        if response.has_focus() && ui.input(|i| i.key_pressed(Key::Escape)) {
            state.search.clear();
        }
        if !state.searched.is_empty() {
            let count = state.lit.iter().filter(|&&lit| lit).count() as u64;
            let whole = state.tree.nodes[0].bytes;
            let words = format!(
                "{} of {} frames, {} ({})",
                thousands(count),
                thousands(state.tree.nodes.len() as u64 - 1),
                context.short(state.found),
                percent(state.found.0, whole.0)
            );
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        }
    });
}

/// The headline: live bytes, and where most of them were allocated.
fn answer(ui: &mut Ui, context: &ViewContext<'_>, set: &LiveSet, analysis: &LiveAnalysis) {
    let theme = context.theme;
    let count = |kind: &str| analysis.kinds.iter().find(|group| group.key == kind).map_or(0, |group| group.count);
    let plural = |n: u64, one: &str| if n == 1 { format!("1 {one}") } else { format!("{} {one}s", thousands(n)) };
    let devices = analysis.devices.len() as u64;
    let objects = match moment(context.document) {
        None => plural(count("buffer"), "array"),
        Some(_) => plural(analysis.kinds.iter().map(|group| group.count).sum(), "allocation"),
    };
    let mut words = format!("{} live in {objects}", context.short(analysis.total));
    if devices > 0 {
        words = format!("{words} on {}", plural(devices, "device"));
    }
    if let Some(moment) = moment(context.document) {
        words = format!("{words} {moment}");
    }
    ui.spacing_mut().item_spacing.y = 2.0;
    ui.label(text(words, size::HEADLINE, Weight::SemiBold, theme.text));
    let mut parts = Vec::new();
    let largest = analysis.order.first().map(|&row| &set.entries[row as usize]);
    if let Some(entry) = largest.filter(|entry| entry.bytes > Bytes::ZERO)
        && let Some(frame) = own_frame(set, entry, true)
    {
        let place = format!("{}:{}", rows::short_path(&frame.file), frame.line);
        parts.push(format!(
            "The largest, {} ({}), was allocated in {} at {place}",
            context.short(entry.bytes),
            percent(entry.bytes.0, analysis.total.0),
            frame.function
        ));
    }
    let executables = count("executable");
    if executables > 0 {
        parts.push(format!("{} compiled", plural(executables, "program")));
    }
    let note = format!("{}.", parts.join("; "));
    if !parts.is_empty() {
        let width = ui.available_width();
        cut_label(ui, &note, Weight::Regular.at(size::BODY), theme.text2, width);
    }
}

/// The moment that is shown of a caching allocator; `None` for a snapshot of arrays.
fn moment(document: &Document) -> Option<&'static str> {
    let devices = &document.analysis.caching;
    let device = devices.iter().find(|device| device.failure().is_some()).or(devices.first());
    device.map(CachingAnalysis::main_moment_in_words)
}

/// The current path in the tree, and the legend.
fn way(ui: &mut Ui, context: &ViewContext<'_>, state: &mut State) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        crumbs(ui, &Colored(&state.tree, &state.slots), &mut state.icicle, theme);
        let Some(node) = state.tree.nodes.get(state.icicle.root) else { return };
        let words = format!("{}, \u{d7}{}", context.short(node.bytes), thousands(node.count));
        ui.add_space(6.0);
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        ui.add_space(12.0);
        for (name, slot) in &state.legend {
            if ui.available_width() > 160.0 {
                legend(ui, *slot, name, theme);
            }
        }
    });
}

fn icicle_height(state: &mut State, width: f32) -> f32 {
    let tree = Colored(&state.tree, &state.slots);
    let shown = Icicle { tree: &tree, version: state.version, lit: None, words: &|_| String::new(), name: "" };
    shown.height(&mut state.icicle, width)
}

fn icicle(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, plot: Rect) {
    let theme = context.theme;
    let units = context.options.units;
    let tree = Colored(&state.tree, &state.slots);
    let lit = |node: usize| state.lit.get(node) == Some(&true);
    let mut hash = 0u64;
    for byte in state.searched.bytes() {
        hash = hash.wrapping_mul(1_099_511_628_211).wrapping_add(u64::from(byte) + 1);
    }
    let lit: Option<(&dyn Fn(usize) -> bool, u64)> = if state.searched.is_empty() { None } else { Some((&lit, hash)) };
    let shown = Icicle {
        tree: &tree,
        version: state.version,
        lit,
        words: &|bytes| units.short(Bytes(bytes)),
        name: "Stacks of live objects",
    };
    let out = shown.show(ui, &mut state.icicle, plot);
    state.hovered = out.hovered;
    let thing = |node: usize| {
        let at = &state.tree.nodes[node];
        let thing = Thing::named(at.name.clone()).copies("Copy place", at.place.clone());
        let thing = thing.copies("Copy bytes", at.bytes.0.to_string()).does("Search for this");
        if state.icicle.root == 0 { thing } else { thing.does("Zoom out") }
    };
    let under = out.hovered.filter(|_| out.rest == 0).map(thing);
    let focused = out.focused.map(|(node, place)| (thing(node), place));
    if let Some((thing, command)) = menu::of_thing(ui, context, plot, under, focused) {
        if command == 0 {
            state.search = thing.name;
        } else {
            state.icicle.go(state.tree.nodes[state.icicle.root].parent);
        }
        return;
    }
    let Some(node) = out.hovered else { return };
    let whole = state.tree.nodes[0].bytes;
    let at = &state.tree.nodes[node];
    out.response.on_hover_ui_at_pointer(|ui| {
        if out.rest > 0 {
            let words = format!("{} smaller ones below {}", thousands(out.rest.into()), at.name);
            ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
            return;
        }
        ui.label(text(&at.label, size::BODY, Weight::SemiBold, theme.text));
        if !at.place.is_empty() {
            ui.label(text(&at.place, size::SMALL, Weight::Mono, theme.text2));
        }
        let line = format!("{}   {}   {}", units.short(at.bytes), at.bytes.exact(), percent(at.bytes.0, whole.0));
        ui.label(text(line, size::SMALL, Weight::Medium, theme.text));
        let mut words = format!("\u{d7}{}", thousands(at.count));
        if at.own > Bytes::ZERO && at.own < at.bytes {
            words = format!("{words}, {} allocated in this frame", units.short(at.own));
        }
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        ui.label(text(
            "click zooms in, Backspace zooms out, right click opens a menu",
            size::SMALL,
            Weight::Regular,
            theme.text3,
        ));
    });
}
