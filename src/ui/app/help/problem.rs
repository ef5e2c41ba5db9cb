//! The page that reports a problem: a text about the program and the shape of what is open, which holds no name of it. The
//! user reads and edits it, and copies or saves it; nothing is sent.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use egui::{Role, Ui, WidgetInfo};

use super::state::Help;
use super::{paragraph, scrolled};
use crate::model::{Profile, TpuGeneration, thousands};
use crate::ui::app::App;
use crate::ui::app::files::FileState;
use crate::ui::app::files::dialog::Purpose;
use crate::ui::part::TextFile;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size};

impl App {
    /// The report of a problem: versions, window, and numbers of what is open. It holds no text from any file.
    #[must_use]
    pub fn problem_report(&self) -> String {
        let mut out = String::from("What I did, what I saw, and what I expected:\n\n\n");
        for (name, value) in self.versions() {
            let _ = writeln!(out, "{name}: {value}");
        }
        let screen = self.ctx.content_rect().size();
        let scale = self.ctx.pixels_per_point();
        let _ = writeln!(out, "Window: {:.0} x {:.0} points, {scale:.2} pixels per point", screen.x, screen.y);
        let _ = writeln!(out, "Theme: {}; zoom {:.1}", self.options.theme.name(), self.options.zoom);
        if let Some(open) = self.files.current() {
            let _ = writeln!(out, "View: {}", open.shared.view);
        }
        let entries = self.files.entries.len();
        let followed = self.files.groups.iter().filter(|group| group.following.is_some()).count();
        let _ = writeln!(
            out,
            "Listed: {entries}; folders, archives and traces: {}; followed: {followed}",
            self.files.groups.len()
        );
        for (number, entry) in self.files.entries.iter().enumerate() {
            if let FileState::Open(open) = &entry.state {
                let shown = if self.files.current == Some(number) { ", shown" } else { "" };
                let _ = write!(out, "\nOpen{shown}:\n{}", shape_of(&open.document.profile));
            }
        }
        let unread = self.errors.len();
        if unread > 0 {
            let _ = writeln!(out, "\nCould not be read: {unread}");
        }
        for failed in self.failed_jobs.list() {
            let _ = write!(out, "\nFailed:\n{}", failed.report());
        }
        out
    }

    pub(super) fn problem_page(&mut self, ui: &mut Ui, theme: &Theme, help: &mut Help, height: f32) {
        paragraph(
            ui,
            theme,
            "Nothing is sent. This text holds no names of your profile: read it, change it, then copy it into your report.",
        );
        ui.add_space(6.0);
        scrolled(ui, height - 90.0, |ui| {
            let rows = ((height - 110.0) / 16.0).max(4.0) as usize;
            let edit = egui::TextEdit::multiline(&mut help.report)
                .font(Weight::Mono.at(size::SMALL))
                .desired_width(f32::INFINITY)
                .desired_rows(rows);
            let response = ui.add(edit);
            response.widget_info(|| WidgetInfo::labeled(Role::MultilineTextInput, true, "Report"));
        });
        ui.add_space(6.0);
        ui.horizontal(|ui| {
            if controls::toggle_button(ui, "Copy", "", controls::On(true), theme).clicked() {
                self.ctx.copy_text(help.report.clone());
                self.say("Copied");
            }
            if controls::button(ui, "Save\u{2026}", "", theme).clicked() {
                let report = help.report.clone();
                self.ask(Purpose::Text(TextFile::new("problem.txt".to_owned(), move || report.clone())));
            }
        });
    }
}

/// What a profile is made of, in numbers and in words of ours alone.
fn shape_of(profile: &Profile) -> String {
    let mut out = String::new();
    for source in &profile.sources {
        let state = match (&source.error, source.cut_at) {
            (_, Some(at)) => format!(", cut at byte {}", thousands(at)),
            (Some(_), None) => ", with an error".to_owned(),
            (None, None) => String::new(),
        };
        let _ = writeln!(out, "  {}, {} bytes{state}", source.format, thousands(source.bytes));
    }
    // A device is named by the file, which may say anything.
    let name = profile.device.name.as_deref();
    let known =
        name.and_then(|name| TpuGeneration::by_device_kind(name, None).or_else(|| TpuGeneration::by_name(name)));
    let kind = profile.device.kind.map_or_else(|| "unknown".to_owned(), |kind| format!("{kind:?}"));
    let _ = writeln!(out, "  device: {kind} {}", known.map_or("", |generation| generation.name));
    for program in &profile.programs {
        let count = |count: usize| thousands(count as u64);
        let _ = writeln!(
            out,
            "  program: {} instructions, {} buffers, {} allocations; assignment {}, listing {}",
            count(program.instructions.len()),
            count(program.buffers.len()),
            count(program.allocations.len()),
            program.has_buffer_assignment,
            program.is_listing
        );
    }
    if !profile.modules.is_empty() {
        let _ = writeln!(out, "  modules: {}", profile.modules.len());
    }
    for trace in &profile.runtime {
        let _ = writeln!(out, "  allocator: {} events", thousands(trace.events.len() as u64));
    }
    if let Some(tiles) = &profile.tiles {
        let _ = writeln!(out, "  tiles: {}", thousands(tiles.tile_count() as u64));
    }
    for failure in &profile.failures {
        let _ = writeln!(out, "  message: {:?}", failure.kind);
    }
    let mut notes: BTreeMap<String, usize> = BTreeMap::new();
    for note in &profile.notes {
        *notes.entry(format!("{:?}", note.code)).or_default() += 1;
    }
    for (code, count) in notes {
        let _ = writeln!(out, "  notes {code}: {count}");
    }
    out
}
