//! List of files on the left: verdict, program, need against the limit, files being read.

use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::files::FileState;
use super::top_bar::mark_of;
use super::{App, Command};
use crate::analysis::Verdict;
use crate::model::{Bytes, thousands};
use crate::ui::widget::controls::{self, hairline, paint_cut, paint_gauge, paint_mark};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

const ROW: f32 = 64.0;

impl App {
    pub(super) fn session_list(&mut self, ui: &mut Ui, theme: &Theme, rail: bool) {
        let full = ui.max_rect();
        controls::vline(ui, full.right() - 1.0, full.top(), full.bottom(), theme.line);
        let head = Rect::from_min_size(full.min, Vec2::new(full.width(), 36.0));
        if !rail {
            let count = self.files.entries.len();
            let words = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
            let y = head.center().y;
            let small = Weight::Medium.at(size::SMALL);
            ui.painter().text(
                Pos2::new(head.left() + 16.0, y),
                Align2::LEFT_CENTER,
                "Session",
                small.clone(),
                theme.text2,
            );
            ui.painter().text(Pos2::new(head.right() - 16.0, y), Align2::RIGHT_CENTER, words, small, theme.text2);
        }
        hairline(ui, head, theme.line);
        let foot = Rect::from_min_max(Pos2::new(full.left(), full.bottom() - 64.0), full.max);
        let list = Rect::from_min_max(Pos2::new(full.left(), head.bottom()), Pos2::new(full.right() - 1.0, foot.top()));
        let mut chosen = None;
        let mut closed = None;
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(list));
        egui::ScrollArea::vertical().id_salt("session list").show(&mut child, |ui| {
            ui.spacing_mut().item_spacing.y = 0.0;
            for index in 0..self.files.entries.len() {
                let (rect, response) = ui.allocate_exact_size(Vec2::new(list.width(), ROW), Sense::click());
                let current = self.files.current == Some(index);
                if current {
                    ui.painter().rect_filled(rect, 0.0, theme.accent_bg);
                    ui.painter().rect_filled(Rect::from_min_size(rect.min, Vec2::new(3.0, ROW)), 0.0, theme.accent);
                } else if response.hovered() || response.has_focus() {
                    ui.painter().rect_filled(rect, 0.0, theme.hover);
                }
                if self.row(ui, theme, rect, index, rail) {
                    closed = Some(index);
                }
                let name = self.name_of(&self.files.entries[index]);
                response.widget_info(|| WidgetInfo::selected(Role::ListItem, true, current, format!("File {name}")));
                if response.clicked() {
                    chosen = Some(index);
                }
                if response.middle_clicked() {
                    closed = Some(index);
                }
                let path = self.files.entries[index].source.path().map(|path| self.words_of_path(path).1);
                if let Some(path) = path {
                    response.on_hover_text(path);
                }
            }
        });
        if let Some(index) = chosen
            && matches!(self.files.entries[index].state, FileState::Open(_))
        {
            self.files.current = Some(index);
        }
        if let Some(index) = closed {
            self.files.close(index);
        }
        hairline(ui, Rect::from_min_max(full.min, Pos2::new(full.right(), foot.top())), theme.line);
        let mut child =
            ui.new_child(egui::UiBuilder::new().max_rect(foot.shrink2(Vec2::new(if rail { 4.0 } else { 16.0 }, 10.0))));
        if rail {
            if controls::link(&mut child, "Open", theme).clicked() {
                self.run(Command::Open);
            }
            return;
        }
        child.horizontal(|ui| {
            if controls::link_sized(ui, "Open\u{2026}", size::BODY, theme).clicked() {
                self.run(Command::Open);
            }
            ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                ui.label(text("Ctrl O", size::SMALL, Weight::Mono, theme.text3));
            });
        });
        child.label(text("or drop files anywhere", size::SMALL, Weight::Regular, theme.text2));
    }

    /// One file; returns whether it is to be closed.
    fn row(&self, ui: &mut Ui, theme: &Theme, rect: Rect, index: usize, rail: bool) -> bool {
        let entry = &self.files.entries[index];
        let entry_name = self.name_of(entry);
        let mark_at = Pos2::new(if rail { rect.center().x } else { rect.left() + 19.0 }, rect.top() + 17.0);
        let left = rect.left() + 34.0;
        let right = rect.right() - 16.0;
        let painter = ui.painter().clone();
        let small = Weight::Regular.at(size::SMALL);
        match &entry.state {
            FileState::Loading(loading) => {
                paint_mark(&painter, mark_at, controls::Mark::Unknown, theme);
                if rail {
                    return false;
                }
                let name = Pos2::new(left, rect.top() + 17.0);
                paint_cut(
                    &painter,
                    name,
                    Align2::LEFT_CENTER,
                    &entry_name,
                    Weight::Medium.at(size::BODY),
                    theme.text2,
                    right - left,
                );
                let (stage, share) = loading.state();
                let track = Rect::from_min_max(Pos2::new(left, rect.top() + 31.0), Pos2::new(right, rect.top() + 34.0));
                painter.rect_filled(track, 0.0, theme.inset);
                let done = Rect::from_min_size(track.min, Vec2::new(track.width() * share, track.height()));
                painter.rect_filled(done, 0.0, theme.accent);
                let words = format!("{}, {:.0}\u{2009}%", stage.text(), share * 100.0);
                painter.text(Pos2::new(left, rect.top() + 48.0), Align2::LEFT_CENTER, words, small, theme.text2);
                let cancel =
                    Rect::from_min_max(Pos2::new(right - 50.0, rect.top() + 40.0), Pos2::new(right, rect.top() + 58.0));
                let response = ui.interact(cancel, ui.scope_id().with(("cancel", index)), Sense::click());
                painter.text(
                    cancel.right_center(),
                    Align2::RIGHT_CENTER,
                    "Cancel",
                    Weight::Medium.at(size::SMALL),
                    theme.accent,
                );
                response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Cancel {entry_name}")));
                if response.clicked() {
                    loading.cancel();
                    return true;
                }
            }
            FileState::Open(open) => {
                let document = &open.document;
                let (program, color) = document.main();
                let space = document.space(program, color);
                let capacity =
                    open.shared.capacity.get(&color).or(space.and_then(|s| s.capacity.as_ref())).map(|c| c.bytes);
                let tiles = document.analysis.tiles.as_ref().filter(|_| space.is_none());
                let verdict = match (space, tiles) {
                    (Some(space), _) => space.verdict_against(capacity),
                    (None, Some(tiles)) => tiles.verdict(),
                    (None, None) => Verdict::Unknown,
                };
                // A message says that memory ran out, even where it does not say how much there is.
                let failed = tiles.is_none()
                    && document.profile.failures.iter().any(|failure| failure.is_error)
                    && document.profile.programs.iter().all(|program| program.is_listing);
                paint_mark(&painter, mark_at, if failed { controls::Mark::Over } else { mark_of(verdict) }, theme);
                if rail {
                    return false;
                }
                let name = Pos2::new(left, rect.top() + 17.0);
                paint_cut(
                    &painter,
                    name,
                    Align2::LEFT_CENTER,
                    &entry_name,
                    Weight::Medium.at(size::BODY),
                    theme.text,
                    right - left,
                );
                let device = document.profile.device.name.clone().unwrap_or_default();
                let y = rect.top() + 33.0;
                let device =
                    painter.text(Pos2::new(right, y), Align2::RIGHT_CENTER, device, small.clone(), theme.text2);
                let name = document.program(program).filter(|_| !self.is_veiled(open));
                let name = name.map(|(program, _)| program.name.clone()).unwrap_or_default();
                let more = document.profile.programs.len();
                let ipus = document
                    .profile
                    .tiles
                    .as_ref()
                    .map(|tiles| format!("{} tiles", thousands(tiles.tile_count() as u64)));
                let name = if name.is_empty() { ipus.unwrap_or_default() } else { name };
                let name = if more > 1 { format!("{more} programs") } else { name };
                paint_cut(
                    &painter,
                    Pos2::new(left, y),
                    Align2::LEFT_CENTER,
                    &name,
                    small,
                    theme.text2,
                    device.left() - left - 8.0,
                );
                let need =
                    space.map(|space| space.xprof.allocated).or(tiles.and_then(|tiles| Some(Bytes(tiles.max?.1))));
                let capacity = capacity.or(tiles.and_then(|tiles| tiles.limit.map(Bytes)));
                if let Some(need) = need {
                    let color = if matches!(verdict, Verdict::Over { .. }) { theme.danger } else { theme.text };
                    let y = rect.top() + 50.0;
                    painter.text(
                        Pos2::new(right, y),
                        Align2::RIGHT_CENTER,
                        self.options.units.short(need),
                        Weight::Medium.at(size::BODY),
                        color,
                    );
                    let track = Rect::from_min_max(Pos2::new(left, y - 2.5), Pos2::new(right - 74.0, y + 2.5));
                    paint_gauge(&painter, track, need.0 as f64, capacity.map(|c| c.0 as f64), theme);
                }
            }
            FileState::Failed(_) => {}
        }
        false
    }
}
