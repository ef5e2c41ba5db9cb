//! Two profiles compared: what changed in a sentence, from before to after by class, both curves over one axis, what
//! differs as a map, as a tree and in tables, tiles, findings; further profiles as columns; programs of two folders.

mod card;
mod columns;
mod curves;
mod differences;
mod findings;
mod head;
mod map;
mod padding;
mod programs;
mod state;
mod tiles;
mod tree;
mod waterfall;
mod words;

use egui::{Rect, Ui, Vec2};

use self::state::{Chart, Found, List, State};
use crate::ui::part::{Action, Find, View, ViewContext};
use crate::ui::session::{Document, Locals, Shared};
use crate::ui::widget::controls::{self, link_sized, segmented};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{size, space};

/// The view.
pub const VIEW: View = View {
    applies,
    find: Find::Field(focus),
    section: Some(card::show),
    clear,
    ..View::new("compare", "Compare", show)
};

/// Width from which waterfall and curves stand side by side.
const WIDE: f32 = 860.0;
/// Height of the charts, and the share of the view that they take at most.
const CHARTS: f32 = 330.0;
const SHARE: f32 = 0.42;
const LEAST_CHARTS: f32 = 130.0;

/// Least height of the list with its tools.
const LIST: f32 = 150.0;

fn applies(document: &Document) -> bool {
    document.before.is_some()
}

fn focus(_: &mut Shared, locals: &mut Locals) {
    locals.get::<State>().focus = true;
}

/// Clears the filter of the table, then its chosen row.
fn clear(locals: &mut Locals) -> bool {
    let state = locals.get::<State>();
    let had = !state.wanted.words.is_empty() || state.wanted.change.is_some() || state.chosen.is_some();
    state.wanted.words.clear();
    state.wanted.change = None;
    state.chosen = None;
    had
}

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let Some(before) = context.document.before.clone() else { return };
    let mut state = context.locals.take::<State>();
    state.update(context, &before);
    match state.found() {
        Some(found) => page(ui, context, &mut state, &found, [&before.name, &before.after]),
        None => waiting(ui, context, &state, [&before.name, &before.after]),
    }
    context.locals.put(state);
}

/// While both are compared: what is compared, and a way out.
fn waiting(ui: &mut Ui, context: &mut ViewContext<'_>, state: &State, [before, after]: [&str; 2]) {
    let theme = context.theme;
    egui::Frame::new().inner_margin(24).show(ui, |ui| {
        let failed = state.has_failed();
        let words = if failed { "Could not compare" } else { "Comparing\u{2026}" };
        ui.label(text(words, size::VERDICT_SMALL, Weight::SemiBold, theme.text));
        let words = format!("{before}  \u{2192}  {after}");
        ui.label(text(words, size::LEAD, Weight::Regular, theme.text2));
        ui.add_space(8.0);
        if controls::button(ui, if failed { "Close" } else { "Cancel" }, "", theme).clicked() {
            context.actions.push(Action::EndComparison);
        }
    });
}

fn page(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found, names: [&str; 2]) {
    let full = ui.max_rect();
    let margin = if full.width() < 760.0 { 16.0 } else { space::MARGIN };
    let inner = full.shrink2(Vec2::new(margin, 0.0));
    let mut top = ui.new_child(egui::UiBuilder::new().max_rect(inner).id_salt("compare head"));
    top.add_space(14.0);
    head::show(&mut top, context, state, found, names);
    let mut y = top.min_rect().bottom() + 12.0;
    let Some(space) = found.space() else {
        let rect = Rect::from_min_max(egui::pos2(inner.left(), y), inner.max);
        return without_space(ui, context, state, found, rect);
    };
    if !space.waterfall.is_empty() {
        // The list below keeps room for some rows.
        let room = (full.bottom() - y - LIST).max(LEAST_CHARTS);
        let height = (full.height() * SHARE).clamp(150.0, CHARTS).min(room);
        let both = Rect::from_min_size(egui::pos2(inner.left(), y), Vec2::new(inner.width(), height));
        charts(ui, context, state, found, both);
        y = both.bottom() + 10.0;
    }
    let rest = Rect::from_min_max(egui::pos2(inner.left(), y), egui::pos2(inner.right(), full.bottom() - 8.0));
    lists(ui, context, state, found, rest);
}

/// Profiles without a program in both: tiles as a map, and the numbers that both have beside it.
fn without_space(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found, rect: Rect) {
    let mut numbers = rect;
    if let Some(tiles) = &found.tiles {
        let (map, rest) = if rect.width() >= WIDE {
            rect.split_left_right_at_fraction(0.55)
        } else {
            rect.split_top_bottom_at_fraction(0.6)
        };
        tiles::show(ui, context, state, (tiles, found.number), map.shrink2(Vec2::new(0.0, 4.0)));
        numbers = if rect.width() >= WIDE { rest.with_min_x(rest.left() + 24.0) } else { rest };
    }
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(numbers).id_salt("numbers"));
    head::numbers(&mut child, context, found);
}

/// Waterfall or treemap, and the curves beside it where there is room.
fn charts(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found, both: Rect) {
    // An allocator has no curve over the program beside it.
    let is_wide = both.width() >= WIDE && found.curves.is_some();
    let mut choices = vec![
        (Chart::Classes, found.words().charts[0]),
        (Chart::Scopes, found.words().charts[1]),
        (Chart::Map, "As a map"),
        (Chart::Tree, "As a tree"),
    ];
    if found.sweep.is_some() {
        choices.push((Chart::Columns, "Side by side"));
    }
    if !is_wide && found.curves.is_some() {
        choices.push((Chart::Curves, "Over the program"));
    } else if state.chart == Chart::Curves {
        state.chart = Chart::Classes;
    }
    let left = if is_wide {
        Rect::from_min_size(both.min, Vec2::new((both.width() * 0.54).round(), both.height()))
    } else {
        both
    };
    let bar = Rect::from_min_size(left.min, Vec2::new(left.width(), space::CONTROL));
    let rect = Rect::from_min_max(egui::pos2(left.left(), bar.bottom() + 6.0), left.max);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(bar).id_salt("which chart"));
    child.horizontal(|ui| {
        let words: Vec<&str> = choices.iter().map(|choice| choice.1).collect();
        let chosen = choices.iter().position(|choice| choice.0 == state.chart).unwrap_or(0);
        if let Some(chosen) = segmented(ui, &words, chosen, context.theme) {
            state.chart = choices[chosen].0;
        }
    });
    match state.chart {
        Chart::Classes | Chart::Scopes => waterfall::show(ui, context, state, found, rect),
        Chart::Map => map::show(ui, context, state, found, rect),
        Chart::Tree => tree::show(ui, context, state, found, rect),
        Chart::Columns => columns::bars(ui, context, found, rect),
        Chart::Curves => curves::show(ui, context, state, found, rect),
    }
    if is_wide {
        let right = Rect::from_min_max(egui::pos2(left.right() + 24.0, rect.top()), both.max);
        curves::show(ui, context, state, found, right);
    }
}

/// The table of differences, padding by shape, or the findings.
fn lists(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found, rect: Rect) {
    let theme = context.theme;
    let bar = Rect::from_min_size(rect.min, Vec2::new(rect.width(), space::CONTROL));
    let body = Rect::from_min_max(egui::pos2(rect.left(), bar.bottom() + 6.0), rect.max);
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(bar).id_salt("which list"));
    child.horizontal(|ui| {
        let rows = found.space().map_or(0, |space| space.group_count);
        let listed = state.findings().map(|findings| (findings.gone.len(), findings.new.len(), findings.kept.len()));
        let findings = match listed {
            Some((gone, new, kept)) => format!("Findings: {gone} gone, {new} new, {kept} kept"),
            None => "Findings\u{2026}".to_owned(),
        };
        let padded = found.space().map_or(0, |space| space.padding_by_shape.len());
        let mut choices = vec![
            (List::Differences, format!("Differences: {rows}")),
            (List::Padding, format!("Padding: {padded}")),
            (List::Findings, findings),
        ];
        if found.allocator.is_some() {
            choices.retain(|choice| choice.0 != List::Padding);
            state.list = if state.list == List::Padding { List::Differences } else { state.list };
        }
        if let Some(sweep) = &found.sweep {
            choices.push((List::Columns, format!("Columns: {}", sweep.columns.len())));
        }
        let programs = context.document.before.as_ref().map_or(0, |before| before.programs.len());
        if programs > 0 {
            choices.push((List::Programs, format!("Programs: {programs}")));
        }
        let words: Vec<&str> = choices.iter().map(|choice| choice.1.as_str()).collect();
        let chosen = choices.iter().position(|choice| choice.0 == state.list).unwrap_or(0);
        if let Some(chosen) = segmented(ui, &words, chosen, theme) {
            state.list = choices[chosen].0;
        }
        ui.add_space(8.0);
        if state.list == List::Differences {
            differences::tools(ui, context, state, found);
        }
    });
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body).id_salt("list"));
    child.set_clip_rect(body.intersect(ui.clip_rect()));
    match state.list {
        List::Differences => differences::show(&mut child, context, state, found),
        List::Padding => padding::show(&mut child, context, state, found),
        List::Findings => findings::show(&mut child, context, state),
        List::Columns => columns::table(&mut child, state, found),
        List::Programs => programs::show(&mut child, context, state),
    }
}

/// A link in the size of the lead.
fn lead_link(ui: &mut Ui, context: &ViewContext<'_>, words: &str) -> bool {
    link_sized(ui, words, size::BODY, context.theme).clicked()
}
