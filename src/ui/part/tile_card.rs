//! The Details card of the chosen tiles: bytes against the limit and the mean, and their contents.

use egui::{Align, Align2, Layout, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::analysis::tiles::{FloorPlan, MemoryReport, Named, Selection, TileAnalysis, step_changes, variables_at};
use crate::model::{Bytes, TileMemory, TileRows, in_words, thousands};
use crate::ui::part::facts::fact;
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::controls::{self, link, paint_mark, paint_swatch, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Slot, Theme, size};

/// The current report, cached until another tile is chosen.
#[derive(Default)]
struct State {
    of: (u64, Option<Vec<u32>>),
    report: Option<MemoryReport>,
}

/// A row of the report: label, bytes, indent, colour, whether it is bold, and the bytes of all tiles for the mean.
struct Row<'a> {
    words: &'a str,
    bytes: u64,
    whole: Option<u64>,
    indent: f32,
    slot: Option<Slot>,
    strong: bool,
}

/// The tiles shown in the card.
struct Choice<'a> {
    report: &'a MemoryReport,
    tiles: &'a [u32],
    /// Whether none are chosen and this is the fullest tile.
    is_worst: bool,
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let document = context.document.clone();
    let (Some(memory), Some(tiles)) = (&document.profile.tiles, &document.analysis.tiles) else { return };
    let mut state = context.locals.take::<State>();
    let chosen = match &context.shared.tiles[..] {
        [] => tiles.max.map(|(tile, _)| vec![tile]),
        some => Some(some.to_vec()),
    };
    let of = (document.id(), chosen.clone());
    if state.report.is_none() || state.of != of {
        let selection = chosen.clone().map_or(Selection::All, Selection::Tiles);
        state.report = Some(MemoryReport::new(memory, tiles.gaps.as_ref(), &selection, 8));
        state.of = of;
    }
    if let (Some(report), Some(chosen)) = (&state.report, &chosen) {
        let is_worst = context.shared.tiles.is_empty();
        if context.shared.view == "liveness" {
            at_step(ui, context, memory, tiles);
        }
        card(ui, context, memory, tiles, &Choice { report, tiles: chosen, is_worst });
    }
    context.locals.put(state);
}

fn card(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis, choice: &Choice<'_>) {
    let (theme, report) = (context.theme, choice.report);
    let whole = report.including_gaps.or(report.excluding_gaps).unwrap_or(0);
    let limit = tiles.limit.map(|limit| limit.saturating_mul(report.tiles as u64));
    head(ui, theme, memory, tiles, choice);
    let over = limit.filter(|&limit| whole > limit).map(|limit| whole - limit);
    ui.horizontal(|ui| {
        let (number, unit) = context.options.units.split(Bytes(over.unwrap_or(whole)));
        let color = if over.is_some() { theme.danger } else { theme.text };
        ui.label(text(number, size::VERDICT_SMALL, Weight::SemiBold, color));
        let words = match (over, limit) {
            (Some(_), _) => format!("{unit} over capacity"),
            (None, Some(limit)) => format!("{unit} of {}", context.options.units.capacity(Bytes(limit))),
            (None, None) => unit.to_owned(),
        };
        ui.label(text(words, size::BODY, Weight::Medium, color));
    });
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 14.0), Sense::hover());
    let track = Rect::from_min_size(rect.min + Vec2::new(0.0, 2.0), Vec2::new(rect.width(), 9.0));
    controls::paint_gauge(ui.painter(), track, whole as f64, limit.map(|limit| limit as f64), theme);
    ui.add_space(6.0);
    why(ui, context, memory, tiles, (report, limit, whole));
    ui.horizontal(|ui| {
        ui.label(text("Memory report", size::BODY, Weight::SemiBold, theme.text));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if link(ui, "open Memory", theme).clicked() {
                context.go("memory");
            }
        });
    });
    columns_head(ui, theme);
    for row in rows(memory, tiles, report) {
        report_row(ui, theme, memory.tile_count(), report.tiles, &row);
    }
    if report.categories.iter().any(|category| category.overlapped.is_some_and(|bytes| bytes > 0)) {
        ui.label(text("shares addresses over time, so not summed", size::SMALL, Weight::Regular, theme.text3));
    }
    rule(ui, theme);
    list(ui, context, "Vertex types", &memory.vertex_types, &report.vertex_types, report.vertex_bytes);
    list(ui, context, "Exchanges", &memory.exchanges, &report.exchanges, report.exchange_bytes);
    list(ui, context, "Compute sets", &memory.compute_sets, &report.compute_sets, 0);
    if !report.variables.is_empty() {
        let words = format!("Variables ({})", thousands(report.variables.len() as u64));
        ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
        let mut rows = report.variables.clone();
        rows.sort_by_key(|&row| std::cmp::Reverse(memory.variables.bytes[row as usize]));
        for row in rows.into_iter().take(8).map(|row| row as usize) {
            let name = memory.variables.strings.get(memory.variables.name[row]);
            line(ui, theme, name, &context.short(Bytes(memory.variables.bytes[row])));
        }
    }
}

/// Asks the memory report for the variables of the chosen tiles.
#[derive(Default)]
pub struct AskVariables(pub bool);

/// Share above the mean from which a tile is said to hold more than the others.
const UNEVEN: f64 = 0.2;

/// What is free on the tiles, and what makes them fuller than others.
fn why(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    memory: &TileMemory,
    tiles: &TileAnalysis,
    (report, limit, whole): (&MemoryReport, Option<u64>, u64),
) {
    let theme = context.theme;
    let units = context.options.units;
    // A tile that is over has the excess as its headline.
    if let Some(limit) = limit.filter(|&limit| whole <= limit) {
        fact(ui, theme, "Headroom", &units.short(Bytes(limit.saturating_sub(whole))));
    }
    let count = memory.tile_count();
    ui.add_space(2.0);
    let title = if report.tiles == 1 { "Why this tile" } else { "Why these tiles" };
    ui.label(text(title, size::BODY, Weight::SemiBold, theme.text));
    let words = match report.most_above_mean(&tiles.categories, count) {
        Some(most) => {
            let (name, above) = (in_words(&most.category), units.short(Bytes(most.above)));
            let is_uneven = most.above as f64 > (most.bytes - most.above) as f64 * UNEVEN;
            let advice = if is_uneven { " Spread it over tiles with room." } else { "" };
            format!("{name}: {}, {above} above the mean.{advice}", units.short(Bytes(most.bytes)))
        }
        None => "Nothing on it is above the mean of all tiles.".to_owned(),
    };
    ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text2)).wrap());
    if link(ui, "Show variables", theme).clicked() {
        context.locals.get::<AskVariables>().0 = true;
        context.go("memory");
    }
    ui.add_space(6.0);
}

/// The variables that live at the chosen step and not always, where the file lists them; beside another step, how they
/// differ.
fn at_step(ui: &mut Ui, context: &ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis) {
    let theme = context.theme;
    let Some(step) = context.shared.step.or(tiles.peak.map(|peak| peak.step)) else { return };
    let liveness = &memory.liveness;
    let own = |step: u32| {
        let node = liveness.steps.get(step as usize).and_then(|&node| liveness.nodes.get(node as usize));
        node.map_or(0, |node| node.bytes)
    };
    let title = |step: u32| format!("Step {step}  {}", memory.step_name(step as usize));
    let width = ui.available_width();
    controls::cut_label(ui, &title(step), Weight::SemiBold.at(size::LEAD), theme.text, width);
    line(ui, theme, "not always live", &context.short(Bytes(own(step))));
    let here = variables_at(memory, step);
    match context.shared.compared.last() {
        None => {
            for &(_, name, bytes) in here.iter().take(12) {
                line(ui, theme, liveness.strings.get(name), &context.short(Bytes(bytes)));
            }
        }
        Some(&other) => {
            ui.add_space(6.0);
            let words = format!("against {}", title(other).replacen("Step", "step", 1));
            controls::cut_label(ui, &words, Weight::SemiBold.at(size::BODY), theme.accent, width);
            line(ui, theme, "not always live there", &context.short(Bytes(own(other))));
            let change = i128::from(own(other)) - i128::from(own(step));
            line(ui, theme, "difference", &context.options.units.signed(change));
            for change in step_changes(memory, step, other).iter().take(16) {
                let name = liveness.strings.get(change.name);
                let signed = i128::from(change.after) - i128::from(change.before);
                line(ui, theme, name, &context.options.units.signed(signed));
            }
        }
    }
    if here.is_empty() {
        let words = "The file does not list the variables of a step.";
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
    }
    rule(ui, theme);
}

fn head(ui: &mut Ui, theme: &Theme, memory: &TileMemory, tiles: &TileAnalysis, choice: &Choice<'_>) {
    let chosen = choice.tiles;
    let over = chosen.iter().any(|tile| tiles.over.binary_search(tile).is_ok());
    let mark = match (over, tiles.limit) {
        (true, _) => controls::Mark::Over,
        (false, Some(_)) => controls::Mark::Fits,
        (false, None) => controls::Mark::Unknown,
    };
    ui.horizontal(|ui| {
        let (rect, _) = ui.allocate_exact_size(Vec2::new(14.0, 18.0), Sense::hover());
        paint_mark(ui.painter(), rect.center(), mark, theme);
        let words = match chosen {
            [tile] => format!("Tile {tile}"),
            some => format!("{} tiles", thousands(some.len() as u64)),
        };
        ui.label(text(words, size::LEAD, Weight::SemiBold, theme.text));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let [tile] = chosen else { return };
            let ipu = memory.ipu_of(*tile as usize);
            let plan = FloorPlan::new(memory, ipu);
            let inside = *tile as usize % (memory.target.tiles_per_ipu as usize).max(1);
            let mut words = Vec::new();
            if choice.is_worst {
                words.push("the fullest".to_owned());
            }
            if memory.target.ipus > 1 {
                words.push(format!("IPU {ipu}"));
            }
            if let Some(cell) = plan.cell.get(inside).filter(|_| plan.is_physical) {
                words.push(format!("physical {cell}"));
            }
            ui.label(text(words.join(", "), size::SMALL, Weight::Regular, theme.text2));
        });
    });
}

fn rows<'a>(memory: &'a TileMemory, tiles: &'a TileAnalysis, report: &'a MemoryReport) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    let plain = |words: &'a str, bytes: u64, whole: Option<u64>, indent: f32, strong: bool| Row {
        words,
        bytes,
        whole,
        indent,
        slot: None,
        strong,
    };
    if let Some(bytes) = report.including_gaps {
        rows.push(plain("Including gaps", bytes, tiles.total_including_gaps, 0.0, true));
    }
    if let Some(bytes) = report.excluding_gaps {
        rows.push(plain("Excluding gaps", bytes, tiles.total, 0.0, true));
    }
    for ((name, bytes), (_, all)) in report.regions.iter().zip(&tiles.regions) {
        rows.push(plain(name, *bytes, Some(*all), 14.0, false));
    }
    if let Some(gaps) = report.gaps {
        let all = tiles.gaps.as_ref().map(|gaps| gaps.sums());
        rows.push(plain("Gaps", gaps.bytes, all.map(|all| all.bytes), 0.0, false));
        if let (Some(below), Some(rest)) = (gaps.below_interleaved, gaps.fragmentation) {
            rows.push(plain("below the interleaved region", below, all.and_then(|a| a.below_interleaved), 14.0, false));
            rows.push(plain("fragmentation", rest, all.and_then(|a| a.fragmentation), 14.0, false));
        }
    }
    if let Some(bytes) = report.always_live {
        rows.push(plain("Always live", bytes, tiles.always_live, 0.0, false));
    }
    let mut categories: Vec<_> = report.categories.iter().zip(&tiles.categories).collect();
    categories.sort_by_key(|(category, _)| std::cmp::Reverse(category.bytes));
    let sum = |of: &dyn Fn(&crate::analysis::tiles::CategoryBytes) -> u64| {
        (categories.iter().map(|c| of(c.0)).sum::<u64>(), categories.iter().map(|c| of(c.1)).sum::<u64>())
    };
    if !categories.is_empty() {
        let (own, all) = sum(&|category| category.bytes);
        let words = if memory.overlap_known { "Not overlapped" } else { "Variables' sizes" };
        rows.push(plain(words, own, Some(all), 0.0, true));
    }
    for (category, all) in &categories {
        if category.bytes > 0 {
            rows.push(Row {
                words: &category.name,
                bytes: category.bytes,
                whole: Some(all.bytes),
                indent: 14.0,
                slot: Some(colors::tile_slot(&category.name)),
                strong: false,
            });
        }
    }
    let (own, all) = sum(&|category| category.overlapped.unwrap_or(0));
    if own > 0 {
        rows.push(plain("Overlapped", own, Some(all), 0.0, true));
    }
    rows
}

fn columns_head(ui: &mut Ui, theme: &Theme) {
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 16.0), Sense::hover());
    let small = Weight::Regular.at(size::SMALL);
    let y = rect.center().y;
    ui.painter().text(Pos2::new(rect.right() - 62.0, y), Align2::RIGHT_CENTER, "bytes", small.clone(), theme.text2);
    ui.painter().text(Pos2::new(rect.right(), y), Align2::RIGHT_CENTER, "vs mean", small, theme.text2);
    controls::hairline(ui, rect, theme.line2);
}

fn report_row(ui: &mut Ui, theme: &Theme, all_tiles: usize, tiles: usize, row: &Row<'_>) {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 20.0), Sense::hover());
    let y = rect.center().y;
    let mut left = rect.left() + row.indent;
    if let Some(slot) = row.slot {
        let swatch = Rect::from_center_size(Pos2::new(left + 5.0, y), Vec2::splat(9.0));
        paint_swatch(ui.painter(), swatch, slot, theme);
        left += 16.0;
    }
    let weight = if row.strong { Weight::SemiBold } else { Weight::Regular };
    let bytes = thousands(row.bytes);
    let at = Pos2::new(rect.right() - 70.0, y);
    let bytes_rect = ui.painter().text(at, Align2::RIGHT_CENTER, &bytes, weight.at(size::SMALL), theme.text);
    let words = in_words(row.words);
    let room = bytes_rect.left() - left - 8.0;
    let at = Pos2::new(left, y);
    controls::paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), &words, weight.at(size::SMALL), theme.text, room);
    let mean = row.whole.map(|all| all as f64 / all_tiles.max(1) as f64 * tiles as f64).filter(|&mean| mean > 0.0);
    let ratio = mean.map(|mean| row.bytes as f64 / mean);
    let said = ratio.map_or_else(
        || "\u{2013}".to_owned(),
        |ratio| match ratio {
            0.0 => "\u{d7}0".to_owned(),
            ..0.05 => "under \u{d7}0.1".to_owned(),
            ..9.95 => format!("\u{d7}{ratio:.1}"),
            _ => format!("\u{d7}{ratio:.0}"),
        },
    );
    let color = if ratio.is_some_and(|ratio| ratio >= 1.5) { theme.warn } else { theme.text2 };
    let weight = if ratio.is_some_and(|ratio| ratio >= 1.5) { Weight::SemiBold } else { Weight::Regular };
    let at = Pos2::new(rect.right(), y);
    ui.painter().text(at, Align2::RIGHT_CENTER, &said, weight.at(size::SMALL), color);
    controls::hairline(ui, rect, theme.line.gamma_multiply(0.6));
    response
        .widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("{words} {bytes} bytes, {said} of the mean")));
}

/// The largest rows of a table on the chosen tiles.
fn list(ui: &mut Ui, context: &ViewContext<'_>, title: &str, table: &TileRows, rows: &[Named], sum: u64) {
    let theme = context.theme;
    if rows.is_empty() {
        return;
    }
    ui.horizontal(|ui| {
        ui.label(text(title, size::BODY, Weight::SemiBold, theme.text));
        if sum > 0 {
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                let words = format!("{} in total", context.short(Bytes(sum)));
                ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
            });
        }
    });
    for row in rows {
        let name = table.rows.get(row.row as usize).map_or("", |row| row.name.as_str());
        line(ui, theme, name, &context.short(Bytes(row.bytes)));
    }
    ui.add_space(6.0);
}

/// A name on the left, a size on the right.
pub fn line(ui: &mut Ui, theme: &Theme, name: &str, value: &str) {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 19.0), Sense::hover());
    let y = rect.center().y;
    let font = Weight::Medium.at(size::SMALL);
    let drawn = ui.painter().text(Pos2::new(rect.right(), y), Align2::RIGHT_CENTER, value, font, theme.text);
    let room = drawn.left() - rect.left() - 8.0;
    let name = if name.is_empty() { "unnamed" } else { name };
    let at = rect.left_center();
    let font = Weight::Mono.at(size::SMALL);
    controls::paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), name, font, theme.text2, room);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("{name} {value}")));
}
