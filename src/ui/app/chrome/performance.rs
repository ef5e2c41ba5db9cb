//! The performance panel: what each frame costs, what opening the file took, how long the last jobs ran.

use std::time::Duration;

use egui::{Align2, Order, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::cards::sheet_frame;
use crate::model::Bytes;
use crate::source::Spent;
use crate::ui::app::App;
use crate::ui::app::frame_times::FRAMES;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size, space};
use crate::ui::work::JobTime;

/// Height of the frame graph in points.
const GRAPH: f32 = 56.0;
/// A frame of a screen that is drawn 60 times a second, in milliseconds; the top of the graph unless frames take longer.
const FRAME: f32 = 1000.0 / 60.0;

impl App {
    /// The panel, where it is open.
    pub(in crate::ui::app) fn performance_panel(&mut self, ui: &Ui, theme: &Theme) {
        if !self.performance.is_open {
            return;
        }
        let stages = self.files.current().map(|open| open.stages.clone()).unwrap_or_default();
        let jobs = self.job_times.list();
        let offset = Vec2::new(-12.0, -space::STATUS - 12.0);
        let area = egui::Area::new(egui::Id::unique("performance")).order(Order::Foreground);
        area.anchor(Align2::RIGHT_BOTTOM, offset).show(ui.ctx(), |ui| {
            sheet_frame(theme).inner_margin(12.0).show(ui, |ui| {
                ui.set_width(FRAMES as f32);
                ui.spacing_mut().item_spacing.y = 2.0;
                self.frame_graph(ui, theme);
                rows(ui, theme, "Opening this file", &stage_rows(&stages));
                rows(ui, theme, "Last jobs", &job_rows(&jobs));
                ui.add_space(6.0);
                ui.label(text("F12 closes this", size::SMALL, Weight::Regular, theme.text3));
            });
        });
    }

    fn frame_graph(&self, ui: &mut Ui, theme: &Theme) {
        ui.label(text("Frames", size::BODY, Weight::SemiBold, theme.text));
        let Some(cost) = self.performance.cost() else { return };
        let words =
            format!("median {:.2} ms, longest {:.2} ms of {}", cost.median, cost.most, self.performance.frames().len());
        ui.label(text(&words, size::SMALL, Weight::Mono, theme.text2));
        let (rect, response) = ui.allocate_exact_size(Vec2::new(FRAMES as f32, GRAPH), Sense::hover());
        response.widget_info(|| WidgetInfo::labeled(Role::Image, true, format!("Processor time of frames: {words}")));
        let painter = ui.painter_at(rect);
        painter.rect_filled(rect, 0.0, theme.canvas);
        let top = cost.most.max(FRAME);
        for (at, time) in self.performance.frames().iter().enumerate() {
            let (x, height) = (rect.left() + at as f32, rect.height() * time / top);
            let color = if *time > FRAME { theme.over } else { theme.accent };
            painter.rect_filled(
                Rect::from_min_max((x, rect.bottom() - height).into(), (x + 1.0, rect.bottom()).into()),
                0.0,
                color,
            );
        }
        let note = format!("full height {top:.1} ms; without drawing");
        ui.label(text(&note, size::SMALL, Weight::Regular, theme.text3));
    }
}

fn milliseconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

/// Name, time and memory of each stage.
fn stage_rows(stages: &[Spent]) -> Vec<[String; 3]> {
    let memory = |spent: &Spent| spent.memory.map(|bytes| Bytes(bytes).short()).unwrap_or_default();
    stages.iter().map(|spent| [spent.stage.text().to_owned(), milliseconds(spent.time), memory(spent)]).collect()
}

fn job_rows(jobs: &[JobTime]) -> Vec<[String; 3]> {
    jobs.iter().map(|job| [job.job.clone(), milliseconds(job.time), String::new()]).collect()
}

/// A small table; nothing without rows.
fn rows(ui: &mut Ui, theme: &Theme, title: &str, rows: &[[String; 3]]) {
    if rows.is_empty() {
        return;
    }
    ui.add_space(8.0);
    ui.label(text(title, size::BODY, Weight::SemiBold, theme.text));
    egui::Grid::new(title).num_columns(3).min_row_height(18.0).show(ui, |ui| {
        for [name, time, memory] in rows {
            ui.label(text(name, size::SMALL, Weight::Regular, theme.text2));
            for number in [time, memory] {
                ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                    ui.label(text(number, size::SMALL, Weight::Mono, theme.text));
                });
            }
            ui.end_row();
        }
    });
}
