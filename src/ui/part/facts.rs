//! Building blocks of cards: section titles, facts, the large verdict.

use std::sync::Arc;

use egui::{Align, Align2, Color32, FontId, Galley, Layout, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::model::{Bytes, UnitSystem};
use crate::ui::widget::controls::{cut_label, paint_cut};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Height in points from which a view has its headline: what is left in presenter mode at 1000x640, and less.
pub const LEAST_WITH_HEADLINE: f32 = 320.0;

/// The title of a section.
pub fn title(ui: &mut Ui, theme: &Theme, words: &str) {
    ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
}

/// A name on the left, a value on the right.
pub fn fact(ui: &mut Ui, theme: &Theme, name: &str, value: &str) {
    ui.horizontal(|ui| {
        let width = ui.available_width();
        ui.label(text(name, size::SMALL, Weight::Regular, theme.text2));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            cut_label(ui, value, Weight::Medium.at(size::SMALL), theme.text, width * 0.68);
        });
    });
}

/// Height of a fact about bytes.
const FACT: f32 = 20.0;
/// Room for all digits of a number of bytes, in which those of several facts stand below each other.
const DIGITS: f32 = 106.0;

/// A name on the left, a number of bytes on the right: as it is read out, and behind it with all of its digits where there
/// is room, else on hover.
pub fn bytes_fact(ui: &mut Ui, theme: &Theme, units: UnitSystem, name: &str, bytes: Bytes) {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), FACT), Sense::hover());
    let (short, exact) = (units.short(bytes), bytes.exact());
    let small = Weight::Regular.at(size::SMALL);
    let laid = |words: &str, font: FontId, color| ui.painter().layout_no_wrap(words.to_owned(), font, color);
    let name_galley = laid(name, small.clone(), theme.text2);
    let short_galley = laid(&short, Weight::Medium.at(size::SMALL), theme.text);
    let exact_galley = laid(&exact, small, theme.text3);
    let digits = DIGITS.max(exact_galley.size().x + 10.0);
    let has_room = name_galley.size().x + short_galley.size().x + digits + 10.0 <= rect.width();
    let y = rect.center().y;
    let paint = |x: f32, align: Align2, galley: Arc<Galley>, color| {
        let place = align.anchor_size(Pos2::new(x, y), galley.size());
        ui.painter().galley(place.min, galley, color);
    };
    // Fewer than 1024 bytes are exact as they are read out.
    let is_exact = short == exact;
    let shows_digits = has_room && !is_exact;
    paint(rect.left(), Align2::LEFT_CENTER, name_galley, theme.text2);
    let right = if has_room { rect.right() - digits } else { rect.right() };
    paint(right, Align2::RIGHT_CENTER, short_galley, theme.text);
    if shows_digits {
        paint(rect.right(), Align2::RIGHT_CENTER, exact_galley, theme.text3);
    }
    let spoken = if is_exact { format!("{name} {short}") } else { format!("{name} {short}, {exact}") };
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &spoken));
    if !shows_digits && !is_exact {
        response.on_hover_text(exact);
    }
}

/// Height of a view's headline, with the space below it.
pub const HEADLINE: f32 = 32.0;

/// The answer of a view in one line of large type, with a remark behind it where there is room.
pub fn headline(ui: &Ui, theme: &Theme, rect: Rect, words: &str, remark: &str) {
    let at = rect.left_center();
    let large = Weight::SemiBold.at(size::HEADLINE);
    let (drawn, _) = paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), words, large, theme.text, rect.width());
    let small = ui.painter().layout_no_wrap(remark.to_owned(), Weight::Regular.at(size::BODY), theme.text2);
    let left = drawn.right() + 12.0;
    let has_room = left + small.size().x <= rect.right();
    if has_room {
        ui.painter().galley(Pos2::new(left, drawn.bottom() - small.size().y - 2.0), small, theme.text2);
    }
    let spoken = format!("{words} {remark}");
    let response = ui.interact(rect, ui.scope_id().with("headline"), Sense::hover());
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, spoken.trim()));
    if !has_room && !remark.is_empty() {
        response.on_hover_text(remark);
    }
}

/// A verdict in large type, with its evidence.
pub struct Answer<'a> {
    /// Colour of the verdict, and of the bar beside it.
    pub color: Color32,
    /// A word or two: `Does not fit`.
    pub verdict: &'a str,
    /// By how much.
    pub amount: &'a str,
    /// The verdict in a sentence.
    pub sentence: &'a str,
    /// How it is known.
    pub evidence: Option<&'a str>,
}

impl Answer<'_> {
    /// Draws the verdict.
    pub fn show(&self, ui: &mut Ui, theme: &Theme) {
        ui.horizontal(|ui| {
            let (bar, _) = ui.allocate_exact_size(Vec2::new(3.0, 76.0), Sense::hover());
            ui.painter().rect_filled(bar, 0.0, self.color);
            ui.add_space(8.0);
            ui.vertical(|ui| {
                ui.horizontal_wrapped(|ui| {
                    ui.label(text(self.verdict, size::VERDICT, Weight::SemiBold, self.color));
                    ui.add_space(8.0);
                    ui.label(text(self.amount, size::VERDICT, Weight::SemiBold, theme.text));
                });
                ui.label(text(self.sentence, size::LEAD, Weight::Medium, theme.text));
                if let Some(words) = self.evidence {
                    let room = ui.available_width();
                    cut_label(ui, words, Weight::Regular.at(size::SMALL), theme.text3, room);
                }
            });
        });
    }
}
