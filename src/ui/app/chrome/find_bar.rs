//! The find bar for buffers, over every view that shows them: matches stay highlighted, the rest is dimmed, Enter goes
//! to the next match.

use egui::{Align, Area, Frame, Key, Layout, Margin, Order, Pos2, Rect, Role, Stroke, Ui, WidgetInfo};

use crate::analysis::table::Filter;
use crate::model::thousands;
use crate::ui::app::App;
use crate::ui::part::Find;
use crate::ui::view::VIEWS;
use crate::ui::widget::controls::{self, link};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size, space};
use crate::ui::work::Direction;

impl App {
    /// Opens the find bar, or gives it the focus.
    pub(in crate::ui::app) fn find(&mut self) {
        let Some(open) = self.files.current_mut() else { return };
        let shown = VIEWS.shown_or_first(open.shared.view, &open.document);
        let field = match shown.find {
            Find::Field(focus) => Some(focus),
            Find::Dim if open.document.has_buffers() => None,
            // The first view with a search field of its own.
            _ => VIEWS.shown_for(&open.document).find_map(|view| match view.find {
                Find::Field(focus) => Some(focus),
                _ => None,
            }),
        };
        if let Some(focus) = field {
            return focus(&mut open.shared, &mut open.locals);
        }
        open.shared.open_find();
        self.focus_find = true;
    }

    /// Selects the next or previous match.
    pub(in crate::ui::app) fn next_hit(&mut self, direction: Direction) {
        let work = self.work();
        let Some(open) = self.files.current_mut() else { return };
        let shared = &mut open.shared;
        let hits = open.derived.hits(&work, &open.document, shared.program, shared.color, &shared.filter);
        if let Some(next) = hits.and_then(|hits| hits.next(shared.selected, direction)) {
            shared.select(next);
        }
    }

    /// Draws the find bar in the lower right corner of the view, if it is open: at the top it would cover the
    /// view's switches.
    pub(in crate::ui::app) fn find_bar(&mut self, ui: &Ui, theme: &Theme, body: Rect) {
        let work = self.work();
        let focus = std::mem::take(&mut self.focus_find);
        let Some(open) = self.files.current_mut() else { return };
        let (shared, document) = (&mut open.shared, &open.document);
        let is_asked = shared.finding || !shared.filter.trim().is_empty() || !shared.hidden.is_empty();
        let dims = VIEWS.by_id(shared.view).is_some_and(|view| matches!(view.find, Find::Dim));
        if !is_asked || !dims {
            return;
        }
        let hits = open.derived.hits(&work, document, shared.program, shared.color, &shared.filter);
        let mut step = None;
        Area::new(egui::Id::unique("find bar"))
            .order(Order::Middle)
            .pivot(egui::Align2::RIGHT_BOTTOM)
            .fixed_pos(Pos2::new(body.right() - 12.0, body.bottom() - 8.0))
            .show(ui.ctx(), |ui| {
                let edge = Stroke::new(theme.outline, theme.line2);
                let frame = Frame::new().fill(theme.panel).stroke(edge).corner_radius(space::RADIUS);
                frame.inner_margin(Margin::symmetric(8, 5)).show(ui, |ui| {
                    ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                        let mut filter = shared.filter.clone();
                        let edit = egui::TextEdit::singleline(&mut filter)
                            .hint_text("Find by name, op, shape, category")
                            .font(Weight::Mono.at(size::SMALL));
                        let response = ui.add_sized(egui::Vec2::new(230.0, space::CONTROL), edit);
                        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Find"));
                        if response.changed() {
                            shared.set_filter(filter);
                        }
                        if focus {
                            response.request_focus();
                        }
                        if response.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter)) {
                            let back = ui.input(|i| i.modifiers.shift);
                            step = Some(if back { Direction::Back } else { Direction::Forward });
                            response.request_focus();
                        }
                        let words = match &hits {
                            Some(hits) => {
                                let at = shared.selected.and_then(|b| hits.list.iter().position(|hit| *hit == b));
                                let at = at.map(|at| format!("{} of ", thousands(at as u64 + 1))).unwrap_or_default();
                                let found = thousands(hits.list.len() as u64);
                                if at.is_empty() {
                                    format!("{found} of {} match", thousands(hits.of as u64))
                                } else {
                                    format!("{at}{found}")
                                }
                            }
                            None => String::new(),
                        };
                        match Filter::parse(&shared.filter) {
                            Ok(_) => ui.label(text(words, size::SMALL, Weight::Medium, theme.text2)),
                            Err(error) => ui.label(text(error.to_string(), size::SMALL, Weight::Regular, theme.danger)),
                        };
                        for (name, arrow, direction) in [
                            ("Previous match", "\u{2039}", Direction::Back),
                            ("Next match", "\u{203a}", Direction::Forward),
                        ] {
                            let response = controls::button(ui, arrow, "", theme);
                            response.widget_info(|| WidgetInfo::labeled(Role::Button, true, name));
                            if response.clicked() {
                                step = Some(direction);
                            }
                        }
                        if !shared.hidden.is_empty() {
                            let words = format!("show {} hidden", thousands(shared.hidden.len() as u64));
                            if link(ui, &words, theme).clicked() {
                                shared.show_hidden();
                            }
                        }
                        if link(ui, "Close", theme).clicked() {
                            shared.close_find();
                            shared.show_hidden();
                        }
                    });
                });
            });
        if let Some(direction) = step {
            self.next_hit(direction);
        }
    }
}
