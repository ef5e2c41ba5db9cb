//! The full report as text, and as a page to save.

use std::sync::Arc;

use egui::Ui;

use crate::analysis::what_if::{Edit, EditSet};
use crate::export::{report, wrapped};
use crate::ui::part::{Action, TextFile, View, ViewContext};
use crate::ui::session::Document;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;
use crate::ui::widget::{controls, keys};
use crate::ui::work::Job;

/// Rows in its lists, as the command has them.
const TOP: usize = 20;
/// Least width of its lines in characters.
const NARROWEST: usize = 40;

#[derive(Default)]
struct State {
    /// The changes that the report includes.
    of: (Vec<Edit>, Vec<EditSet>),
    words: Option<Job<Arc<str>>>,
    /// The words, the width in characters that they were wrapped to, and the result.
    wrapped: Option<(Arc<str>, usize, String)>,
}

/// Room for the scroll bar.
const BAR: f32 = 14.0;

/// The view.
pub const VIEW: View = View::new("report", "Report", show);

fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let mut state = context.locals.take::<State>();
    let document = context.document.clone();
    let work = context.work.clone();
    let changes = &context.shared.changes;
    if state.of.0 != changes.on || state.of.1 != changes.saved {
        state.of = (changes.on.clone(), changes.saved.clone());
        state.words = None;
    }
    let (edits, sets) = state.of.clone();
    let start = || Job::start(&work, "report", move || written(&document, edits, sets, report::Format::Text));
    let words = state.words.get_or_insert_with(start).poll().cloned();
    egui::Frame::new().inner_margin(egui::Margin::symmetric(20, 12)).show(ui, |ui| {
        ui.horizontal(|ui| {
            ui.label(text("Report", size::HEADLINE, Weight::SemiBold, theme.text));
            if let Some(words) = &words
                && controls::button(ui, "Copy", "", theme).clicked()
            {
                context.actions.push(Action::Copy(words.to_string()));
            }
            let hint = "A page with pictures, for reading and handing on";
            if controls::button(ui, "Save as HTML\u{2026}", "", theme).on_hover_text(hint).clicked() {
                let document = context.document.clone();
                let (edits, sets) = state.of.clone();
                let page = move || written(&document, edits.clone(), sets.clone(), report::Format::Html);
                let name = format!("{}.report.html", context.document.profile.name);
                context.actions.push(Action::Save(TextFile::new(name, move || page().to_string())));
            }
            ui.label(text(
                if state.of.0.is_empty() && state.of.1.is_empty() {
                    "the same as highwater report"
                } else {
                    "the same as highwater report, with the changes of What if"
                },
                size::SMALL,
                Weight::Regular,
                theme.text3,
            ));
        });
        ui.add_space(6.0);
        let Some(words) = words else { return };
        let character = ui.fonts_mut(|fonts| fonts.glyph_width(&Weight::Mono.at(size::SMALL), '0'));
        let width = (((ui.available_width() - BAR) / character) as usize).max(NARROWEST);
        if state.wrapped.as_ref().is_none_or(|(of, at, _)| *at != width || !Arc::ptr_eq(of, &words)) {
            let lines: Vec<String> = words.lines().flat_map(|line| wrapped::wrap(line, width)).collect();
            state.wrapped = Some((Arc::clone(&words), width, lines.join("\n")));
        }
        let shown = state.wrapped.as_ref().map_or("", |(_, _, shown)| shown);
        keys::scrolled_by_keys(egui::ScrollArea::both().id_salt("report").auto_shrink([false, false]), ui, |ui| {
            let label = egui::Label::new(text(shown, size::SMALL, Weight::Mono, theme.text));
            ui.add(label.selectable(true).extend());
        });
    });
    context.locals.put(state);
}

fn written(document: &Document, edits: Vec<Edit>, sets: Vec<EditSet>, format: report::Format) -> Arc<str> {
    let pictures = format == report::Format::Html;
    let options = report::Options { top: TOP, edits, sets, pictures, ..report::Options::default() };
    let report = report::build(&[(&document.profile, &document.analysis)], &[], &options);
    report::write(&report, format).into()
}
