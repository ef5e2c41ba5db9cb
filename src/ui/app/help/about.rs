//! The page about the program: versions of the program, of what it writes, and of what it runs on.

use std::fmt::Write as _;

use egui::{Sense, Ui, Vec2};

use super::paragraph;
use crate::export::{dataset, report};
use crate::open::session;
use crate::ui::app::App;
use crate::ui::part::facts::fact;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Version of the program, and how it was compiled.
#[must_use]
pub fn version() -> String {
    let build = if cfg!(debug_assertions) { ", debug build" } else { "" };
    format!("{}{build}", env!("CARGO_PKG_VERSION"))
}

/// What it runs on.
#[must_use]
pub fn system() -> String {
    format!("{} {}", std::env::consts::OS, std::env::consts::ARCH)
}

impl App {
    /// Names and versions.
    pub(super) fn versions(&self) -> Vec<(&'static str, String)> {
        let graphics = self.graphics.clone().unwrap_or_else(|| "drawn on the CPU, without a display".to_owned());
        vec![
            ("Highwater", version()),
            ("System", system()),
            ("Graphics", graphics),
            ("Report", report::SCHEMA.to_owned()),
            ("Tables", dataset::SCHEMA.to_owned()),
            ("Session files", session::SCHEMA.to_owned()),
        ]
    }

    pub(super) fn about_page(&mut self, ui: &mut Ui, theme: &Theme) {
        ui.horizontal(|ui| {
            let (sign, _) = ui.allocate_exact_size(Vec2::splat(28.0), Sense::hover());
            controls::paint_sign(ui.painter(), sign, theme);
            ui.label(text("Highwater", size::HEADLINE, Weight::SemiBold, theme.text));
        });
        paragraph(ui, theme, env!("CARGO_PKG_DESCRIPTION"));
        ui.add_space(8.0);
        let versions = self.versions();
        ui.scope(|ui| {
            ui.set_max_width(ui.available_width().min(520.0));
            for (name, value) in &versions {
                fact(ui, theme, name, value);
            }
        });
        ui.add_space(8.0);
        paragraph(
            ui,
            theme,
            "MIT or Apache-2.0, at your option. Inter and JetBrains Mono are under the SIL Open Font License 1.1. \
             Nothing leaves this machine: Highwater has no network access and never changes the files that it reads.",
        );
        ui.add_space(6.0);
        if controls::button(ui, "Copy versions", "", theme).clicked() {
            let mut words = String::new();
            for (name, value) in &versions {
                let _ = writeln!(words, "{name}: {value}");
            }
            self.ctx.copy_text(words);
            self.say("Copied");
        }
    }
}
