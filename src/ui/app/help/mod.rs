//! Help: keys, how to get a dump, the glossary, a report of a problem, versions. One sheet with a page for each.

mod about;
mod dump;
mod glossary;
mod keys;
mod problem;
mod recipes;
pub mod state;
pub mod terms;

use egui::{Id, Ui};

pub use glossary::show as note_term;
use state::Help;
pub use state::HelpPage;

use crate::ui::app::App;
use crate::ui::app::chrome::cards::sheet_frame;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Widest sheet, in points.
const WIDTH: f32 = 820.0;

/// Height of what stands above and below a page, in points.
const AROUND: f32 = 200.0;

impl App {
    /// Opens a page of the help, or closes it if it is shown.
    pub(in crate::ui::app) fn toggle_help(&mut self, page: HelpPage) {
        if self.help.as_ref().is_some_and(|help| help.page == page) {
            self.help = None;
            return;
        }
        let search = match page {
            HelpPage::Glossary => glossary::pointed_at(&self.ctx).map(|term| term.name.to_owned()),
            _ => None,
        };
        let report = if page == HelpPage::Problem { self.problem_report() } else { String::new() };
        let search = search.unwrap_or_default();
        self.help = Some(Help { page, recipe: 0, search, focus_search: page == HelpPage::Glossary, report });
    }

    /// Draws the sheet if it is open.
    pub(in crate::ui::app) fn help_sheet(&mut self, ui: &Ui, theme: &Theme) {
        let Some(mut help) = self.help.take() else { return };
        let screen = ui.ctx().content_rect();
        let mut page = help.page;
        let modal = egui::Modal::new(Id::unique("help")).frame(sheet_frame(theme)).show(ui.ctx(), |ui| {
            ui.set_width(WIDTH.min(screen.width() - 80.0));
            let titles = HelpPage::ALL.map(HelpPage::title);
            let chosen = HelpPage::ALL.iter().position(|page| *page == help.page).unwrap_or(0);
            if let Some(row) = controls::choice(ui, "Help", &titles, chosen, ui.available_width(), theme) {
                page = HelpPage::ALL[row];
            }
            ui.add_space(10.0);
            let height = (screen.height() - AROUND).max(160.0);
            match help.page {
                HelpPage::Keys => self.keys_page(ui, theme, height),
                HelpPage::Dump => self.dump_page(ui, theme, &mut help, height),
                HelpPage::Glossary => glossary::page(ui, theme, &mut help, height),
                HelpPage::Problem => self.problem_page(ui, theme, &mut help, height),
                HelpPage::About => self.about_page(ui, theme),
            }
            ui.add_space(6.0);
            controls::button(ui, "Close", "Esc", theme).clicked()
        });
        if modal.inner || modal.should_close() {
            return;
        }
        if page != help.page {
            self.toggle_help(page);
        } else if self.help.is_none() {
            self.help = Some(help);
        }
    }
}

/// A paragraph.
fn paragraph(ui: &mut Ui, theme: &Theme, words: &str) {
    ui.add(egui::Label::new(text(words, size::BODY, Weight::Regular, theme.text2)).wrap());
}

/// Room for the scroll bar, which lies over the page, in points.
const SCROLL_BAR: f32 = 14.0;

/// A page that scrolls, with the keys too.
fn scrolled(ui: &mut Ui, height: f32, show: impl FnOnce(&mut Ui)) {
    let area = egui::ScrollArea::vertical().max_height(height).min_scrolled_height(height).auto_shrink([false, true]);
    crate::ui::widget::keys::scrolled(area, ui, |ui| {
        ui.set_max_width(ui.available_width() - SCROLL_BAR);
        show(ui);
    });
}
