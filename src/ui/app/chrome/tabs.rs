//! The tabs of the views; those without room are in a menu at the end.

use egui::{EventFilter, Key, Modifiers, Popup, Pos2, Rect, Response, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::ui::app::App;
use crate::ui::part::View;
use crate::ui::view::VIEWS;
use crate::ui::widget::controls::{self, hairline};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size, space};

/// Points between two tabs.
const TAB_GAP: f32 = 4.0;

impl App {
    /// The tabs, each with its digit; their widths do not depend on which one is active. Tabs that do not fit go into a
    /// menu at the end.
    pub(in crate::ui::app) fn tabs(&mut self, ui: &mut Ui, theme: &Theme, rect: Rect) {
        hairline(ui, rect, theme.line);
        let Some(open) = self.files.current_mut() else { return };
        let shown: Vec<&View> = VIEWS.shown_for(&open.document).collect();
        // A file without the view that was asked for shows its first one.
        let shown_id = VIEWS.shown_or_first(open.shared.view, &open.document).id;
        let wide = |words: &str, weight: Weight, points: f32| {
            ui.painter().layout_no_wrap(words.to_owned(), weight.at(points), theme.text).size().x
        };
        let digits: Vec<String> = shown.iter().map(|view| VIEWS.digit_of(view, &open.document)).collect();
        let digit_room = wide("0", Weight::Mono, size::SMALL) + 7.0;
        let width_of = |at: usize| {
            let digit = if digits[at].is_empty() { 0.0 } else { digit_room };
            wide(shown[at].title, Weight::SemiBold, size::BODY) + digit + 16.0
        };
        let widths: Vec<f32> = (0..shown.len()).map(width_of).collect();
        let start = rect.left() + if rect.width() < 900.0 { 8.0 } else { 20.0 };
        let (visible, hidden) =
            fitting(&widths, rect.right() - start - 8.0, wide("More", Weight::Medium, size::BODY) + 36.0, {
                shown.iter().position(|view| view.id == shown_id)
            });
        let mut x = start;
        let mut chosen = None;
        let mut focused = None;
        for at in visible {
            let (entry, width) = (shown[at], widths[at]);
            let active = entry.id == shown_id;
            let color = if active { theme.text } else { theme.text2 };
            let weight = if active { Weight::SemiBold } else { Weight::Medium };
            let galley = ui.painter().layout_no_wrap(entry.title.to_owned(), weight.at(size::BODY), color);
            let digit = ui.painter().layout_no_wrap(digits[at].clone(), Weight::Mono.at(size::SMALL), theme.text3);
            let gap = if digits[at].is_empty() { 0.0 } else { digit_room };
            let tab = Rect::from_min_size(Pos2::new(x, rect.top()), Vec2::new(width, rect.height()));
            // One stop for Tab; the arrows go on from there.
            let sense = if active { Sense::click() } else { Sense::CLICK };
            let response = ui.interact(tab, ui.scope_id().with(("tab", entry.id)), sense);
            if active && let Some(next) = moved_to(ui, &response, at, shown.len()) {
                chosen = Some(shown[next].id);
                focused = Some(ui.scope_id().with(("tab", shown[next].id)));
            }
            response.widget_info(|| WidgetInfo::selected(Role::Tab, true, active, entry.title));
            if response.hovered() && !active {
                ui.painter().rect_filled(tab.shrink2(Vec2::new(0.0, 4.0)), space::RADIUS, theme.hover);
            }
            let y = tab.center().y;
            ui.painter().galley(Pos2::new(x + 8.0, y - digit.size().y / 2.0), digit, theme.text3);
            ui.painter().galley(Pos2::new(x + 8.0 + gap, y - galley.size().y / 2.0), galley, color);
            if active || response.has_focus() {
                let line = Rect::from_min_max(Pos2::new(tab.left(), tab.bottom() - 3.0), tab.max);
                ui.painter().rect_filled(line, 0.0, theme.accent);
            }
            if response.clicked() {
                chosen = Some(entry.id);
            }
            x = tab.right() + TAB_GAP;
        }
        if !hidden.is_empty() {
            let place =
                Rect::from_min_max(Pos2::new(x, rect.top() + 4.0), Pos2::new(rect.right(), rect.bottom() - 4.0));
            let mut child = ui.new_child(egui::UiBuilder::new().max_rect(place).id_salt("more tabs"));
            let response = controls::button(&mut child, "More", "", theme);
            response.widget_info(|| WidgetInfo::labeled(Role::Button, true, "More views"));
            Popup::menu(&response).show(|ui| {
                ui.set_min_width(180.0);
                for at in hidden {
                    if controls::menu_row(ui, shown[at].title, &digits[at], theme).clicked() {
                        chosen = Some(shown[at].id);
                    }
                }
            });
        }
        // Only now: a tab that takes no focus in this frame gives it up as it is drawn.
        if let Some(focused) = focused {
            ui.memory_mut(|memory| memory.request_focus(focused));
        }
        if let Some(id) = chosen {
            open.shared.show_view(id);
        }
    }
}

/// The tab that the arrow keys, Home and End lead to from one that has the focus.
fn moved_to(ui: &Ui, response: &Response, at: usize, count: usize) -> Option<usize> {
    if !response.has_focus() {
        return None;
    }
    let filter = EventFilter { horizontal_arrows: true, ..EventFilter::default() };
    ui.memory_mut(|memory| memory.set_focus_lock_filter(response.id, filter));
    let last = count.checked_sub(1)?;
    let next = ui.input_mut(|input| {
        let mut taken = |key| input.consume_key(Modifiers::NONE, key);
        let (right, left) = (taken(Key::ArrowRight), taken(Key::ArrowLeft));
        let (first, end) = (taken(Key::Home), taken(Key::End));
        match (right, left, first, end) {
            (true, ..) => {
                if at == last {
                    0
                } else {
                    at + 1
                }
            }
            (_, true, ..) => at.checked_sub(1).unwrap_or(last),
            (_, _, true, _) => 0,
            (.., true) => last,
            _ => at,
        }
    });
    (next != at).then_some(next)
}

/// Splits tabs into those that fit in a row and those that do not, in order; the active one is always among the first.
fn fitting(widths: &[f32], room: f32, more: f32, active: Option<usize>) -> (Vec<usize>, Vec<usize>) {
    let sum = |rows: &[usize]| rows.iter().map(|&at| widths[at] + TAB_GAP).sum::<f32>();
    let mut visible: Vec<usize> = (0..widths.len()).collect();
    let mut hidden = Vec::new();
    if sum(&visible) <= room {
        return (visible, hidden);
    }
    while sum(&visible) + more > room && visible.len() > 1 {
        let last = visible.iter().rposition(|&at| Some(at) != active).unwrap_or(0);
        hidden.insert(0, visible.remove(last));
    }
    (visible, hidden)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_without_room_go_to_the_menu_but_never_the_active_one() {
        let widths = [80.0; 6];
        assert_eq!(fitting(&widths, 600.0, 60.0, Some(0)).1, [] as [usize; 0]);
        assert_eq!(fitting(&widths, 400.0, 60.0, Some(0)), (vec![0, 1, 2, 3], vec![4, 5]));
        assert_eq!(fitting(&widths, 400.0, 60.0, Some(5)), (vec![0, 1, 2, 5], vec![3, 4]));
        assert_eq!(fitting(&widths, 10.0, 60.0, Some(3)).0, [3]);
    }
}
