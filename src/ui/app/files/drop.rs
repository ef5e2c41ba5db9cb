//! Files dragged over the window: how each will be opened when it is dropped.

use std::path::Path;

use egui::{Align2, Order, Pos2, Rect, Role, Sense, Stroke, Ui, Vec2, WidgetInfo};

use crate::decode;
use crate::model::counted;
use crate::source::is_archive_name;
use crate::ui::app::App;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size};

/// Maximum number of files that are listed.
const NAMED: usize = 8;

/// The type of a file, by name only: nothing is read before the drop.
fn kind_of(path: &Path, is_folder: bool) -> &'static str {
    if is_folder {
        return "folder: every profile in it";
    }
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    if is_archive_name(path) {
        return "archive: every profile in it";
    }
    decode::reads_by_name(&name).map_or("the type is detected from the contents", |reads| reads.words)
}

impl App {
    /// Says what will happen to the files that are dragged over the window.
    pub(in crate::ui::app) fn drop_overlay(&self, ui: &Ui, theme: &Theme) {
        let hovered = ui.input(|i| i.raw.hovered_files.clone());
        if hovered.is_empty() {
            return;
        }
        let rect = ui.ctx().content_rect();
        let painter = ui.ctx().layer_painter(egui::LayerId::new(Order::Debug, egui::Id::unique("drop overlay")));
        painter.rect_filled(rect, 0.0, theme.canvas.gamma_multiply(0.94));
        let inner = rect.shrink(24.0);
        let corners =
            [inner.left_top(), inner.right_top(), inner.right_bottom(), inner.left_bottom(), inner.left_top()];
        let edge = Stroke::new(2.0, theme.accent);
        painter.extend(egui::Shape::dashed_line(&corners, edge, 10.0, 6.0));
        let words = match hovered.len() {
            1 => "Drop to open".to_owned(),
            count => {
                let is_folder = |file: &egui::HoveredFile| file.path.as_deref().is_some_and(Path::is_dir);
                let folders = hovered.iter().filter(|file| is_folder(file)).count();
                match count - folders {
                    0 => format!("Drop to open {folders} folders"),
                    files if folders == 0 => format!("Drop to open {files} files"),
                    files => format!(
                        "Drop to open {} and {}",
                        counted(files as u64, "file"),
                        counted(folders as u64, "folder")
                    ),
                }
            }
        };
        let shown = hovered.len().min(NAMED);
        let top = rect.center().y - f32::midpoint(60.0, 24.0 * shown as f32);
        let at = Pos2::new(rect.center().x, top);
        painter.text(at, Align2::CENTER_CENTER, &words, Weight::SemiBold.at(size::VERDICT), theme.text);
        let mut spoken = words;
        for (i, file) in hovered.iter().take(NAMED).enumerate() {
            let path = file.path.clone().unwrap_or_default();
            let (name, _) = self.words_of_path(&path);
            let is_open = self.files.entries.iter().any(|entry| entry.target.path() == Some(path.as_path()));
            let kind = if is_open { "already open: it will be shown" } else { kind_of(&path, path.is_dir()) };
            let y = top + 52.0 + 24.0 * i as f32;
            let middle = rect.center().x;
            let half = inner.width() / 2.0 - 24.0;
            let (left, right) = (Pos2::new(middle - 10.0, y), Pos2::new(middle + 10.0, y));
            paint_cut(&painter, (left, Align2::RIGHT_CENTER), &name, Weight::Mono.at(size::BODY), theme.text, half);
            paint_cut(&painter, (right, Align2::LEFT_CENTER), kind, Weight::Regular.at(size::BODY), theme.text2, half);
            spoken = format!("{spoken}; {name}: {kind}");
        }
        if hovered.len() > NAMED {
            let at = Pos2::new(rect.center().x, top + 52.0 + 24.0 * NAMED as f32);
            let words = format!("and {} more", hovered.len() - NAMED);
            painter.text(at, Align2::CENTER_CENTER, words, Weight::Regular.at(size::BODY), theme.text2);
        }
        let at = Pos2::new(rect.center().x, inner.bottom() - 24.0);
        let compares = hovered.len() == 1 && self.files.current().is_some();
        let stays =
            if compares { "What is open stays open, and can be compared with it." } else { "What is open stays open." };
        let promise = format!("{stays} Highwater never changes your files, and nothing leaves this machine.");
        painter.text(at, Align2::CENTER_CENTER, promise, Weight::Regular.at(size::BODY), theme.text3);
        let place = Rect::from_center_size(rect.center(), Vec2::splat(4.0));
        let response = ui.interact(place, egui::Id::unique("drop words"), Sense::hover());
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &spoken));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_told_by_their_names() {
        let of = |name: &str| kind_of(Path::new(name), false);
        assert!(of("m.after_optimizations.hlo.pb.gz").starts_with("XLA dump"));
        assert!(of("m-buffer-assignment.txt").starts_with("XLA's buffer"));
        assert!(of("train.log").starts_with("text"));
        assert!(of("run.tar.gz").starts_with("archive"));
        assert!(of("core").starts_with("the type is"));
        assert!(kind_of(Path::new("dump.zip"), true).starts_with("folder"));
    }
}
