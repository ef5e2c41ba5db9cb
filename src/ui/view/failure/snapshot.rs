//! A failed request of PyTorch's caching allocator: why it failed, what was free, where, and what to change.

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::section::section;
use super::segments::{self, Lines};
use super::words::copyable;
use crate::analysis::caching_allocator::{CachingAnalysis, FailedRequest, Pin, SegmentUse, own_frame};
use crate::model::{Bytes, CachingSnapshot, capitalised, thousands};
use crate::ui::part::ViewContext;
use crate::ui::session::Document;
use crate::ui::widget::controls::{cut_label, link, paint_cut, paint_pin};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::theme::{Slot, size};

/// Blocks that hold back the most free memory: so many are looked at, and listed with those that are equal together.
const PINS: usize = 40;
const LISTED: usize = 6;
/// Findings listed with what to change.
const FINDINGS: usize = 3;
/// Height of a bar with its words.
const BAR: f32 = 20.0;

/// State of this part of the view.
#[derive(Default)]
pub struct State {
    of: u64,
    pub(super) segments: Vec<SegmentUse>,
    /// Those in equal segments and from the same line together.
    pub(super) pins: Vec<Vec<Pin>>,
    pub(super) lines: Option<Lines>,
    pub(super) raster: CachedRaster,
}

/// The device whose last request failed, and the request; of several, the one whose request was the largest.
fn failed(document: &Document) -> Option<(&CachingSnapshot, &CachingAnalysis, &FailedRequest)> {
    let devices = document.analysis.caching.iter().filter_map(|device| Some((device, device.failure()?)));
    let (device, failure) = devices.max_by_key(|(_, failure)| failure.requested)?;
    Some((document.profile.caching.as_ref()?, device, failure))
}

/// Whether a request of the document's snapshot failed.
pub fn applies(document: &Document) -> bool {
    failed(document).is_some()
}

/// Draws the failed request; nothing where none failed.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State) {
    let document = context.document.clone();
    let Some((snapshot, device, failure)) = failed(&document) else { return };
    let of = document.id();
    if state.of != of {
        let (_, segments) = device.fragmentation(snapshot);
        let pins = device.alike(&device.pins(&segments, PINS), LISTED);
        *state = State { of, segments, pins, ..State::default() };
    }
    head(ui, context, (snapshot, device, failure));
    ui.add_space(14.0);
    amounts(ui, context, failure);
    ui.add_space(12.0);
    segments::show(ui, context, (snapshot, device, failure), state);
    ui.add_space(12.0);
    pins(ui, context, (snapshot, device), state);
    advice(ui, context);
}

fn head(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    (snapshot, device, failure): (&CachingSnapshot, &CachingAnalysis, &FailedRequest),
) {
    let theme = context.theme;
    let left = ui.cursor().min;
    let block = ui.horizontal(|ui| {
        ui.add_space(16.0);
        ui.vertical(|ui| {
            let title = format!("Out of memory: {}", failure.cause.words());
            ui.label(text(title, size::VERDICT, Weight::SemiBold, theme.danger));
            let sentence = format!("{}.", failure.sentence());
            let sentence = text(context.said(&sentence), size::LEAD, Weight::Medium, theme.text);
            ui.add(egui::Label::new(sentence).wrap().selectable(true));
            let mut words =
                format!("cuda:{}, event {}", device.device.index, thousands(failure.event().unsigned_abs()));
            if let Some(frame) = own_frame(snapshot, failure.stack) {
                words = format!("{words}, asked in {}", snapshot.frame_words(frame));
            }
            ui.horizontal_wrapped(|ui| {
                ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
                if link(ui, "open Allocator", theme).clicked() {
                    context.go("allocator");
                }
            });
        });
    });
    let bar = Rect::from_min_size(left, Vec2::new(3.0, block.response.rect.height()));
    ui.painter().rect_filled(bar, 0.0, theme.danger);
}

/// What was asked beside what was free, in one scale.
fn amounts(ui: &mut Ui, context: &ViewContext<'_>, failure: &FailedRequest) {
    let theme = context.theme;
    section(ui, theme, "What was asked, and what was free", "");
    let mut rows = vec![
        ("asked of the driver", failure.segment, true),
        ("free in the driver", failure.device_free, false),
        ("free, same pool, in all", failure.free_same_pool, false),
        ("the largest hole of it", failure.largest_free_same_pool, false),
    ];
    for (name, bytes) in
        [("free, other streams or pools", failure.free_other_pool), ("free, other sizes", failure.free_other_class)]
    {
        if bytes > 0 {
            rows.push((name, bytes, false));
        }
    }
    if failure.requested != failure.segment {
        rows.insert(0, ("requested", failure.requested, true));
    }
    let most = rows.iter().map(|row| row.1).max().unwrap_or(1).max(1) as f32;
    for (name, bytes, is_asked) in rows {
        let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), BAR), Sense::hover());
        let words = context.short(Bytes(bytes));
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, format!("{name} {words}")));
        let small = Weight::Regular.at(size::SMALL);
        let at = (Pos2::new(rect.left(), rect.center().y), Align2::LEFT_CENTER);
        paint_cut(ui.painter(), at, name, small, theme.text2, 170.0);
        let room = (rect.width() - 180.0 - 80.0).max(20.0);
        let width = (room * bytes as f32 / most).max(if bytes > 0 { 1.5 } else { 0.0 });
        let bar = Rect::from_min_size(Pos2::new(rect.left() + 180.0, rect.top() + 4.0), Vec2::new(width, BAR - 8.0));
        if is_asked {
            ui.painter().rect_filled(bar, 0.0, theme.over);
        } else {
            let edge = egui::Stroke::new(1.0, theme.text3);
            ui.painter().rect(bar, 0.0, theme.inset, edge, egui::StrokeKind::Inside);
        }
        let at = Pos2::new(bar.right() + 8.0, rect.center().y);
        ui.painter().text(at, Align2::LEFT_CENTER, words, Weight::Medium.at(size::SMALL), theme.text);
    }
}

/// The blocks that hold back the most free memory, numbered as in the map.
fn pins(
    ui: &mut Ui,
    context: &ViewContext<'_>,
    (snapshot, device): (&CachingSnapshot, &CachingAnalysis),
    state: &State,
) {
    let theme = context.theme;
    if state.pins.is_empty() {
        return;
    }
    section(ui, theme, "Blocks that hold back free memory", "a segment with a block in it cannot be returned");
    for (number, pins) in state.pins.iter().enumerate() {
        let Some(pin) = pins.first() else { continue };
        let lifetime = &device.replay.lifetimes[pin.lifetime];
        let place = own_frame(snapshot, lifetime.stack)
            .map_or_else(|| "no Python frames".to_owned(), |frame| snapshot.frame_words(frame));
        let words = pin.words(lifetime.size, pins.len(), context.options.units);
        ui.horizontal_top(|ui| {
            let (mark, _) = ui.allocate_exact_size(Vec2::new(20.0, 18.0), Sense::hover());
            paint_pin(ui.painter(), mark.center(), number + 1, theme);
            let room = ui.available_width();
            let (bold, mono) = (Weight::Medium.at(size::SMALL), Weight::Mono.at(size::SMALL));
            let wide = |words: &str, font: &egui::FontId| {
                ui.painter().layout_no_wrap(words.to_owned(), font.clone(), theme.text).size().x
            };
            // Where there is no room for both beside each other, the place is below.
            let is_narrow = wide(&words, &bold) + wide(&place, &mono) + ui.spacing().item_spacing.x > room;
            let both = |ui: &mut Ui| {
                cut_label(ui, &words, bold, theme.text, room);
                let room = ui.available_width();
                cut_label(ui, &place, mono, theme.text2, room);
            };
            if is_narrow {
                ui.vertical(both);
            } else {
                both(ui);
            }
        });
    }
    ui.add_space(12.0);
}

/// What to change: the advisor's first findings, with settings to copy.
fn advice(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let Some(advice) = context.advice() else { return };
    // The remedies of a message are below, with the message.
    let findings: Vec<_> = advice.findings.iter().filter(|finding| finding.failure.is_none()).take(FINDINGS).collect();
    if findings.is_empty() {
        return;
    }
    section(ui, theme, "What to change", "");
    for finding in findings {
        let title = context.said(&capitalised(&finding.title));
        ui.add(egui::Label::new(text(title, size::BODY, Weight::Medium, theme.text)).wrap());
        for words in &finding.advice {
            let said = context.said(&format!("{}.", words.replace('`', "")));
            ui.add(egui::Label::new(text(said, size::SMALL, Weight::Regular, theme.text2)).wrap().selectable(true));
            if let Some(setting) = setting(words) {
                copyable(ui, context, setting);
            }
        }
        if let Some(bytes) = finding.at_stake_bytes.filter(|bytes| bytes.0 > 0) {
            let at_most = finding.at_most.as_deref().unwrap_or_default();
            let words = format!("{} at stake; {at_most}", context.short(bytes));
            let words = words.trim_end_matches("; ");
            ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text3)).wrap());
        }
        ui.add_space(6.0);
    }
    if link(ui, "open Advisor", theme).clicked() {
        context.go("advisor");
    }
    ui.add_space(12.0);
}

/// A setting of the environment in a piece of advice: code of the form `NAME=value`.
fn setting(advice: &str) -> Option<&str> {
    let is_setting = |code: &&str| {
        let name = code.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    };
    advice.split('`').skip(1).step_by(2).find(is_setting)
}

/// Colour of a block by its category.
pub(super) fn slot_of(device: &CachingAnalysis, lifetime: usize) -> Slot {
    device.categories.get(lifetime).map_or(Slot::Temporary, |row| crate::ui::part::caching::slot_of(row.0))
}

#[cfg(test)]
mod tests {
    use super::setting;

    #[test]
    fn a_setting_is_code_with_a_name_and_a_value() {
        assert_eq!(setting("Set `A_B=c:True` (`D_E` from 2.9 on)"), Some("A_B=c:True"));
        assert_eq!(setting("Call `zero_grad(set_to_none=True)`"), None);
        assert_eq!(setting("nothing"), None);
    }
}
