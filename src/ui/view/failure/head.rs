//! The headline of a failure: what ran out and by how much, where the message is, and its error code.

use std::fmt::Write as _;

use egui::{Rect, Ui, Vec2};

use crate::analysis::failure::{Cause, Explanation};
use crate::model::{Failure, error_page};
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::controls::page_link;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, failure: &Failure, explained: &Explanation) {
    let theme = context.theme;
    let color = if failure.is_error { theme.danger } else { theme.warn };
    let left = ui.cursor().min;
    let block = ui.horizontal(|ui| {
        ui.add_space(16.0);
        ui.vertical(|ui| {
            ui.horizontal_wrapped(|ui| {
                ui.label(text(explained.title.clone(), size::VERDICT, Weight::SemiBold, color));
                if let Some(over) = explained.over_by {
                    ui.add_space(8.0);
                    let words = if explained.cause == Cause::Fragmentation {
                        format!("{} short in one piece", context.short(over))
                    } else if failure.get("used").is_some() || failure.get("tensorcore").is_some() {
                        format!("{} over, as printed", context.short(over))
                    } else {
                        format!("{} short", context.short(over))
                    };
                    ui.label(text(words, size::VERDICT, Weight::SemiBold, theme.text));
                }
            });
            for (i, sentence) in explained.sentences.iter().enumerate() {
                let (points, weight, color) = match i {
                    0 => (size::LEAD, Weight::Medium, theme.text),
                    _ => (size::BODY, Weight::Regular, theme.text2),
                };
                ui.add(egui::Label::new(text(format!("{sentence}."), points, weight, color)).wrap().selectable(true));
            }
            if explained.sentences.is_empty() {
                ui.label(text(format!("{}.", failure.kind.title()), size::LEAD, Weight::Medium, theme.text));
            }
            ui.add_space(2.0);
            place(ui, context, failure);
        });
    });
    let bar = Rect::from_min_size(left, Vec2::new(3.0, block.response.rect.height()));
    ui.painter().rect_filled(bar, 0.0, color);
}

fn place(ui: &mut Ui, context: &mut ViewContext<'_>, failure: &Failure) {
    let theme = context.theme;
    ui.horizontal_wrapped(|ui| {
        let mut words = failure.kind.title().to_owned();
        if !failure.source.is_empty() {
            let _ = write!(words, "; {}, line {}", failure.source, failure.line);
        }
        if let Some(process) = &failure.process {
            let _ = write!(words, ", {process}");
        }
        let Some(code) = &failure.error_code else {
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
            return;
        };
        let how = if failure.error_code_printed { "error" } else { "described as error" };
        let _ = write!(words, "; {how} {code}");
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text3));
        if let Some(page) = error_page(code)
            && page_link(ui, page, theme)
        {
            context.actions.push(Action::Copy(page.to_owned()));
        }
    });
}
