//! What views show when a profile has nothing for them.

use egui::Ui;

use crate::model::{NoteLevel, thousands};
use crate::ui::part::ViewContext;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// For a program without memory: says which file of the same dump has it.
pub fn without_memory(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    egui::Frame::new().inner_margin(24).show(ui, |ui| {
        let name =
            context.document.profile.programs.get(context.shared.program).map(|p| p.name.clone()).unwrap_or_default();
        let cut = context.document.profile.sources.iter().find_map(|source| source.cut_at);
        ui.label(text(
            match cut {
                Some(end) => format!("This file is truncated at byte {}: no memory assignment", thousands(end)),
                None if name.is_empty() => "No memory in this file".to_owned(),
                None => format!("{name}: no memory assignment"),
            },
            size::VERDICT_SMALL,
            Weight::SemiBold,
            theme.text,
        ));
        ui.add_space(8.0);
        facts(ui, context);
        // What to do first; where exactly it ends is for whoever looks into the file.
        let (places, answers): (Vec<_>, Vec<_>) =
            context.document.profile.notes.iter().partition(|note| cut.is_some() && note.offset.is_some());
        for note in answers {
            let color = if note.level == NoteLevel::Info { theme.text2 } else { theme.warn };
            ui.add(
                egui::Label::new(text(note.to_string(), size::LEAD, Weight::Regular, color)).wrap().selectable(true),
            );
        }
        for note in places {
            let words = text(note.to_string(), size::SMALL, Weight::Regular, theme.text2);
            ui.add(egui::Label::new(words).wrap().selectable(true));
        }
    });
}

/// Facts in the files that are not about memory.
pub fn facts(ui: &mut Ui, context: &ViewContext<'_>) {
    let theme = context.theme;
    egui::ScrollArea::vertical().id_salt("facts").max_height((ui.available_height() - 60.0).max(80.0)).show(ui, |ui| {
        for fact in context.document.profile.facts.iter().take(500) {
            let words = format!("{}  {}  {}", fact.group, fact.key, fact.value);
            ui.label(text(words, size::SMALL, Weight::Mono, theme.text2));
        }
    });
}
