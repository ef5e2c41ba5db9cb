//! The overview of an IPU profile: whether it fits, the fullest tiles, all tiles as a histogram, and what to change.

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::ipu_lists;
use crate::advisor::{Finding, Severity, advise};
use crate::analysis::Verdict;
use crate::analysis::tiles::{TileAnalysis, histogram, vertex_state};
use crate::model::{Bytes, TileMemory, factor, percent, thousands};
use crate::ui::part::facts::Answer;
use crate::ui::part::{ViewContext, colors};
use crate::ui::widget::controls::{self, legend, link, paint_cut};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::table::TableState;
use crate::ui::widget::theme::{Slot, size, space};

/// Number of fullest tiles shown as bars.
const WORST: usize = 8;

#[derive(Default)]
struct State {
    of: u64,
    findings: Vec<Finding>,
    worst: Vec<(u32, u64)>,
    ipus: TableState,
    categories: TableState,
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let document = context.document.clone();
    let (Some(memory), Some(tiles)) = (&document.profile.tiles, &document.analysis.tiles) else { return };
    let mut state = context.locals.take::<State>();
    let of = document.id();
    if state.of != of {
        state = State {
            of,
            findings: advise(&document.profile, &document.analysis).findings,
            worst: TileAnalysis::worst_tiles(memory, WORST),
            ..State::default()
        };
    }
    keys::scrolled_by_keys(
        egui::ScrollArea::vertical().id_salt("ipu overview").auto_shrink([false, false]),
        ui,
        |ui| {
            let margin = if ui.available_width() < 760.0 { 16.0 } else { space::MARGIN };
            egui::Frame::new().inner_margin(egui::Margin::symmetric(margin as i8, 18)).show(ui, |ui| {
                ui.set_width(ui.available_width());
                verdict(ui, context, memory, tiles);
                ui.add_space(12.0);
                made_of(ui, context, memory, tiles);
                ui.add_space(10.0);
                readouts(ui, context, memory, tiles);
                ui.add_space(12.0);
                notes(ui, context);
                worst(ui, context, tiles, &state.worst);
                ui.add_space(12.0);
                findings(ui, context, &state.findings);
                if tiles.ipus.len() > 1 {
                    ipu_lists::ipus(ui, context, tiles, &mut state.ipus);
                }
                ipu_lists::categories(ui, context, tiles, &mut state.categories);
            });
        },
    );
    context.locals.put(state);
}

fn verdict(ui: &mut Ui, context: &ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis) {
    let theme = context.theme;
    let units = context.options.units;
    let limit = tiles.limit.map(|limit| units.capacity(Bytes(limit))).unwrap_or_default();
    let worst = tiles.max.map_or_else(String::new, |(tile, bytes)| {
        let bytes = Bytes(bytes);
        let held = tiles.limit.map_or_else(|| units.short(bytes), |limit| units.beside(bytes, Bytes(limit)));
        format!("The fullest, tile {tile}, holds {held} of {limit}.")
    });
    let (color, answer, amount) = match tiles.verdict() {
        Verdict::Over { by } => {
            let of = thousands(memory.tile_count() as u64);
            let count = format!("{} of {of} tiles over", thousands(tiles.over.len() as u64));
            (theme.danger, "Does not fit", format!("{count}, the worst by {}", units.short(by)))
        }
        Verdict::Fits { spare } => (theme.ok, "Fits", format!("{} to spare on the fullest tile", units.short(spare))),
        Verdict::Unknown => (theme.text, "Unknown", "whether it fits".to_owned()),
    };
    let evidence = memory.target.evidence.as_ref().map(|words| format!("Memory of a tile: {words}"));
    Answer { color, verdict: answer, amount: &amount, sentence: &worst, evidence: evidence.as_deref() }.show(ui, theme);
}

/// One bar of the bytes of all tiles, by group.
fn made_of(ui: &mut Ui, context: &ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis) {
    let theme = context.theme;
    let mut groups: Vec<(&str, Slot, u64)> = colors::TILE_GROUPS.iter().map(|&(name, slot)| (name, slot, 0)).collect();
    for category in &tiles.categories {
        groups[colors::tile_group(&category.name)].2 += category.bytes;
    }
    let sum: u64 = groups.iter().map(|group| group.2).sum();
    if sum == 0 {
        return;
    }
    ui.horizontal(|ui| {
        ui.label(text("What the tiles hold", size::BODY, Weight::SemiBold, theme.text));
        let words = if memory.overlap_known { "not overlapped" } else { "sizes of variables" };
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
        ui.add_space(6.0);
        for (name, slot, _) in groups.iter().filter(|group| group.2 > 0) {
            if ui.available_width() > 120.0 {
                legend(ui, *slot, name, theme);
                ui.add_space(4.0);
            }
        }
    });
    let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 44.0), Sense::hover());
    let mut left = rect.left();
    for (name, slot, bytes) in groups.iter().filter(|group| group.2 > 0) {
        let width = rect.width() * (*bytes as f64 / sum as f64) as f32;
        let part = Rect::from_min_size(Pos2::new(left, rect.top()), Vec2::new((width - 1.0).max(1.0), rect.height()));
        let response = ui.interact(part, ui.scope_id().with(("made of", *name)), Sense::hover());
        ui.painter().rect_filled(part, 0.0, slot.color());
        let words = context.short(Bytes(*bytes));
        if width > 56.0 {
            let font = Weight::SemiBold.at(size::SMALL);
            let at = Pos2::new(part.left() + 6.0, part.center().y - 8.0);
            paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), name, font, slot.text(), width - 10.0);
            let at = Pos2::new(part.left() + 6.0, part.center().y + 8.0);
            let font = Weight::Medium.at(size::SMALL);
            paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), &words, font, slot.text(), width - 10.0);
        }
        let hover = format!("{name}  {words}  {}", percent(*bytes, sum));
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &hover));
        response.on_hover_text_at_pointer(hover);
        left += width;
    }
}

fn readouts(ui: &mut Ui, context: &ViewContext<'_>, memory: &TileMemory, tiles: &TileAnalysis) {
    let theme = context.theme;
    let units = context.options.units;
    let short = |bytes: u64| units.short(Bytes(bytes));
    let unknown = || "\u{2013}".to_owned();
    let gaps = tiles.gaps.as_ref().map(|gaps| gaps.sums());
    // The total that must fit includes gaps; the bytes used do not.
    let (all, used) = (tiles.total_including_gaps.or(tiles.total), tiles.bytes().unwrap_or(0));
    let basis = if tiles.total_including_gaps.is_some() { "gaps included" } else { "without gaps" };
    let peak_words = tiles.peak.map_or_else(
        || "no liveness in the file".to_owned(),
        |peak| format!("step {} {}", peak.step, memory.step_name(peak.step as usize)),
    );
    let cells = [
        (
            "All tiles",
            all.map_or_else(unknown, short),
            format!("{} tiles, {basis}", thousands(memory.tile_count() as u64)),
        ),
        (
            "Mean tile",
            short(tiles.mean as u64),
            tiles.imbalance().map_or_else(String::new, |i| format!("fullest: {} the mean", factor(i))),
        ),
        (
            "Gaps",
            gaps.map_or_else(unknown, |gaps| short(gaps.bytes)),
            gaps.and_then(|gaps| gaps.fragmentation)
                .map_or_else(String::new, |rest| format!("{} of it fragmentation", short(rest))),
        ),
        (
            "Always live",
            tiles.always_live.map_or_else(unknown, short),
            tiles.always_live.map_or_else(String::new, |b| format!("{} of {} used", percent(b, used), short(used))),
        ),
        ("Peak live", tiles.peak_live().map_or_else(unknown, short), peak_words),
        (
            "Vertex state",
            short(vertex_state(&tiles.categories)),
            format!("{} of {} used", percent(vertex_state(&tiles.categories), used), short(used)),
        ),
    ];
    let columns = if ui.available_width() < 760.0 { 3 } else { 6 };
    for row in cells.chunks(columns) {
        let remark_room = ui.available_width() / columns as f32 - 22.0;
        let small = Weight::Regular.at(size::SMALL);
        let lay = |remark: &str, room: f32| {
            let mut job = egui::text::LayoutJob::simple(remark.to_owned(), small.clone(), theme.text2, room);
            job.wrap.max_rows = 2;
            ui.painter().layout_job(job)
        };
        let remarks: Vec<_> = row.iter().map(|cell| lay(&cell.2, remark_room)).collect();
        // As high as the longest remark.
        let more = remarks.iter().map(|remark| remark.size().y - 15.0).fold(0.0, f32::max);
        let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 68.0 + more), Sense::hover());
        controls::hairline(ui, Rect::from_min_max(rect.min, Pos2::new(rect.right(), rect.top() + 1.0)), theme.line);
        let width = rect.width() / columns as f32;
        for (i, ((title, value, remark), laid)) in row.iter().zip(remarks).enumerate() {
            let left = rect.left() + width * i as f32 + if i > 0 { 14.0 } else { 0.0 };
            if i > 0 {
                controls::vline(ui, left - 15.0, rect.top() + 10.0, rect.bottom() - 8.0, theme.line);
            }
            let painter = ui.painter();
            let small = Weight::Regular.at(size::SMALL);
            let room = width - 22.0;
            let top = Align2::LEFT_TOP;
            paint_cut(painter, (Pos2::new(left, rect.top() + 8.0), top), title, small.clone(), theme.text2, room);
            let (number, unit) = value.split_once(' ').unwrap_or((value, ""));
            let at = Pos2::new(left, rect.top() + 22.0);
            let drawn = painter.text(at, top, number, Weight::SemiBold.at(size::READOUT), theme.text);
            let at = Pos2::new(drawn.right() + 5.0, drawn.bottom() - 4.0);
            painter.text(at, Align2::LEFT_BOTTOM, unit, Weight::Medium.at(size::BODY), theme.text2);
            painter.galley(Pos2::new(left, rect.top() + 49.0), laid, theme.text2);
            let cell = Rect::from_min_size(Pos2::new(left, rect.top()), Vec2::new(room, rect.height() - 2.0));
            let response = ui.interact(cell, ui.scope_id().with(("tile readout", *title)), Sense::hover());
            let words = format!("{title} {value} {remark}");
            response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &words));
            response.on_hover_text(remark);
        }
        controls::hairline(ui, rect, theme.line);
    }
}

fn notes(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    for note in context.document.profile.notes.iter().take(6) {
        let is_info = note.level == crate::model::NoteLevel::Info;
        let color = if is_info { theme.text3 } else { theme.warn };
        ui.horizontal(|ui| {
            if !is_info {
                let (rect, _) = ui.allocate_exact_size(Vec2::new(3.0, 16.0), Sense::hover());
                ui.painter().rect_filled(rect, 0.0, theme.warn);
            }
            ui.add(egui::Label::new(text(note.to_string(), size::SMALL, Weight::Regular, color)).wrap());
        });
    }
}

/// The fullest tiles as bars, and all tiles as a histogram beside them.
fn worst(ui: &mut Ui, context: &mut ViewContext<'_>, tiles: &TileAnalysis, worst: &[(u32, u64)]) {
    let theme = context.theme;
    ui.horizontal(|ui| {
        ui.label(text("Fullest tiles", size::BODY, Weight::SemiBold, theme.text));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            if link(ui, "open Tiles", theme).clicked() {
                context.go("tiles");
            }
        });
    });
    let document = context.document.clone();
    let Some(memory) = &document.profile.tiles else { return };
    let (outer, _) =
        ui.allocate_exact_size(Vec2::new(ui.available_width(), worst.len() as f32 * 20.0 + 4.0), Sense::hover());
    let split = outer.left() + outer.width() * 0.55;
    let limit = tiles.limit.unwrap_or(0);
    let most = worst.first().map_or(1, |tile| tile.1).max(limit).max(1);
    let bar_left = outer.left() + 130.0;
    let bar_right = split - 90.0;
    let at = |bytes: u64| bar_left + (bar_right - bar_left) * (bytes as f64 / most as f64) as f32;
    for (i, &(tile, bytes)) in worst.iter().enumerate() {
        let row =
            Rect::from_min_size(outer.min + Vec2::new(0.0, i as f32 * 20.0), Vec2::new(split - outer.left(), 20.0));
        let response = ui.interact(row, ui.scope_id().with(("worst", tile)), Sense::click());
        if response.hovered() {
            ui.painter().rect_filled(row, 0.0, theme.hover);
        }
        let y = row.center().y;
        let ipu =
            if memory.target.ipus > 1 { format!("  IPU {}", memory.ipu_of(tile as usize)) } else { String::new() };
        let name = format!("tile {tile}{ipu}");
        let small = Weight::Medium.at(size::SMALL);
        ui.painter().text(Pos2::new(row.left(), y), Align2::LEFT_CENTER, &name, small.clone(), theme.text);
        let fits = if limit > 0 { bytes.min(limit) } else { bytes };
        let bar = |from: f32, to: f32| Rect::from_min_max(Pos2::new(from, y - 4.0), Pos2::new(to, y + 4.0));
        ui.painter().rect_filled(bar(bar_left, at(fits)), 0.0, theme.text2);
        if bytes > fits {
            ui.painter().rect_filled(bar(at(fits), at(bytes)), 0.0, theme.over);
        }
        let color = if bytes > fits { theme.danger } else { theme.text };
        let words = context.short(Bytes(bytes));
        ui.painter().text(Pos2::new(split - 12.0, y), Align2::RIGHT_CENTER, &words, small, color);
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("{name} {words}")));
        if response.clicked() {
            context.shared.choose_tiles(vec![tile]);
            context.go("tiles");
        }
    }
    if limit > 0 {
        let line =
            Rect::from_min_max(Pos2::new(at(limit) - 1.0, outer.top()), Pos2::new(at(limit) + 1.0, outer.bottom()));
        ui.painter().rect_filled(line, 0.0, theme.over);
    }
    let room =
        Rect::from_min_max(Pos2::new(split + 16.0, outer.top()), Pos2::new(outer.right(), outer.bottom() - 16.0));
    bars(ui, context, memory, limit.max(1), room);
}

/// Tiles by bytes.
fn bars(ui: &Ui, context: &ViewContext<'_>, memory: &TileMemory, limit: u64, room: Rect) {
    let theme = context.theme;
    let Some(values) = memory.must_fit() else { return };
    let bars = histogram(values, limit, 48);
    let whole = bars.step.saturating_mul(bars.counts.len() as u64).max(1);
    let highest = bars.counts.iter().max().copied().unwrap_or(1).max(1);
    let at = |bytes: u64| room.left() + room.width() * (bytes as f64 / whole as f64) as f32;
    for (i, &count) in bars.counts.iter().enumerate().filter(|bar| *bar.1 > 0) {
        let height = (count as f32 / highest as f32).sqrt() * (room.height() - 16.0);
        let from = bars.step * i as u64;
        let color = if from >= limit { theme.over } else { theme.text2 };
        let bar = Rect::from_min_max(
            Pos2::new(at(from), room.bottom() - height.max(1.5)),
            Pos2::new((at(from + bars.step) - 1.0).max(at(from) + 1.0), room.bottom()),
        );
        ui.painter().rect_filled(bar, 0.0, color);
    }
    controls::hairline(ui, room, theme.line2);
    let small = Weight::Regular.at(size::SMALL);
    let at_limit = at(limit).min(room.right() - 1.0);
    ui.painter().vline(at_limit, room.y_range(), egui::Stroke::new(2.0, theme.over));
    let y = room.bottom() + 2.0;
    ui.painter().text(Pos2::new(room.left(), y), Align2::LEFT_TOP, "0", small.clone(), theme.text2);
    let words = format!("capacity {}", context.options.units.capacity(Bytes(limit)));
    let place = Pos2::new(at_limit.min(room.right() - 2.0), y);
    ui.painter().text(place, Align2::RIGHT_TOP, words, Weight::SemiBold.at(size::SMALL), theme.danger);
    // The line of the capacity goes through no words.
    let left_of_line = at_limit - room.left() - 8.0;
    for words in ["tiles by bytes; height: square root of count", "tiles by bytes"] {
        let galley = ui.painter().layout_no_wrap(words.to_owned(), small.clone(), theme.text3);
        if galley.size().x <= left_of_line {
            ui.painter().galley(room.left_top(), galley, theme.text3);
            break;
        }
    }
}

fn findings(ui: &mut Ui, context: &mut ViewContext<'_>, findings: &[Finding]) {
    let theme = context.theme;
    ui.label(text("Findings", size::BODY, Weight::SemiBold, theme.text));
    if findings.is_empty() {
        ui.label(text("No findings.", size::SMALL, Weight::Regular, theme.text2));
    }
    for finding in findings {
        let color = match finding.severity {
            Severity::Critical => theme.danger,
            Severity::Warning => theme.warn,
            Severity::Hint => theme.accent,
        };
        ui.horizontal(|ui| {
            let (bar, _) = ui.allocate_exact_size(Vec2::new(3.0, 18.0), Sense::hover());
            ui.painter().rect_filled(bar, 0.0, color);
            ui.label(text(context.said(&finding.title), size::BODY, Weight::SemiBold, theme.text));
            let severity = if finding.is_guess {
                format!("{}, a guess", finding.severity.name())
            } else {
                finding.severity.name().to_owned()
            };
            ui.label(text(severity, size::SMALL, Weight::Regular, theme.text2));
            if !finding.tiles.is_empty() && link(ui, "show tiles", theme).clicked() {
                context.shared.choose_tiles(finding.tiles.clone());
                context.go("tiles");
            }
        });
        ui.indent(("finding", finding.rule), |ui| {
            ui.add(
                egui::Label::new(text(context.said(&finding.why), size::SMALL, Weight::Regular, theme.text2)).wrap(),
            );
            for advice in &finding.advice {
                let words = format!("\u{2022}  {}", advice.replace('`', ""));
                ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text)).wrap());
            }
        });
        ui.add_space(4.0);
    }
    ui.add_space(8.0);
}
