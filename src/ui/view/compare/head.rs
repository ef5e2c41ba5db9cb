//! The answer in words: does it fit now, how much more or less it is, what most of the difference is, how much matched.

use std::cmp::Ordering;

use egui::{Align, Layout, Ui};

use super::lead_link;
use super::state::{Found, State};
use crate::export::diff::{AllocatorDiff, BytesDiff, NEEDED, NumberDiff, SpaceDiff, headline, matched};
use crate::model::{Bytes, capitalised, counted, thousands};
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::controls::{self, cut_label};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Draws the answer.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found, names: [&str; 2]) {
    let theme = context.theme;
    let units = context.options.units;
    ui.horizontal(|ui| {
        let room = (ui.available_width() - 190.0).max(120.0);
        let [was, is] = [&found.pair.before, &found.pair.after];
        let same = was == is || names == [was, is];
        let programs =
            if same { String::new() } else { format!("   {} \u{2192} {}", found.pair.before, found.pair.after) };
        let words = format!("{}{programs}", sides(names[0], names[1]));
        cut_label(ui, &words, Weight::Medium.at(size::BODY), theme.text2, room);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if controls::button(ui, "End", "", theme).on_hover_text("End the comparison").clicked() {
                context.actions.push(Action::EndComparison);
            }
            if controls::button(ui, "Swap", "", theme).on_hover_text("Exchange before and after").clicked() {
                context.actions.push(Action::SwapCompared);
            }
        });
    });
    ui.add_space(4.0);
    if let Some(allocator) = found.allocator() {
        held(ui, context, found, allocator);
        return allocators(ui, context, state, found);
    }
    let Some(space) = found.space() else {
        if found.tiles.is_some() {
            return tiles(ui, context, found);
        }
        let needed = found.pair.numbers.iter().find(|number| number.what == NEEDED).map(|number| number.value);
        if let Some(BytesDiff { after: Some(after), difference: Some(difference), .. }) = needed {
            let change = if difference == 0 { "as before".to_owned() } else { units.signed(difference) };
            ui.label(text(change, size::VERDICT_SMALL, Weight::SemiBold, theme.text));
            let words = format!("{} needed; a message has no buffers to compare", context.short(Bytes(after)));
            ui.add(egui::Label::new(text(words, size::LEAD, Weight::Medium, theme.text)).wrap());
            return;
        }
        let words = "No program in both files";
        ui.label(text(words, size::VERDICT_SMALL, Weight::SemiBold, theme.text));
        return;
    };
    let line = headline(space, units);
    let (verdict, rest) = line.split_once(": ").unwrap_or(("", &line));
    let color = match space.verdict_after {
        Some("over") => theme.danger,
        Some("fits") => theme.ok,
        _ => theme.text,
    };
    let signed = space.allocated.difference.map(|difference| match difference {
        0 => "as before".to_owned(),
        difference => units.signed(difference),
    });
    let is_judged = matches!(space.verdict_after, Some("over" | "fits"));
    ui.horizontal_wrapped(|ui| {
        if is_judged {
            ui.label(text(verdict, size::VERDICT_SMALL, Weight::SemiBold, color));
            ui.add_space(6.0);
        }
        ui.label(text(signed.unwrap_or_default(), size::VERDICT_SMALL, Weight::SemiBold, theme.text));
        if !is_judged {
            ui.add_space(6.0);
            ui.label(text(verdict, size::LEAD, Weight::Medium, theme.text2));
        }
    });
    ui.add(egui::Label::new(text(rest, size::LEAD, Weight::Medium, theme.text)).wrap());
    if let Some(words) = most_of_it(space, context, found.words().block) {
        let room = ui.available_width();
        cut_label(ui, &words, Weight::Regular.at(size::BODY), theme.text2, room);
    }
    if let Some(words) = matched(space) {
        ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text3)).wrap());
    }
    others(ui, context, found);
    allocators(ui, context, state, found);
}

/// The answer for an allocator: whether a request failed, how much more or less it holds, what most of that is.
fn held(ui: &mut Ui, context: &ViewContext<'_>, found: &Found, allocator: &AllocatorDiff) {
    let theme = context.theme;
    let units = context.options.units;
    let change = match allocator.total.difference {
        None => String::new(),
        Some(0) => "as before".to_owned(),
        Some(difference) => units.signed(difference),
    };
    let (verdict, color) = match (allocator.failed_before, allocator.failed_after) {
        (Some(false), Some(true)) => ("Out of memory now", theme.danger),
        (_, Some(true)) => ("Out of memory", theme.danger),
        (Some(true), Some(false)) => ("No request fails now", theme.ok),
        _ => ("", theme.text),
    };
    ui.horizontal_wrapped(|ui| {
        if !verdict.is_empty() {
            ui.label(text(verdict, size::VERDICT_SMALL, Weight::SemiBold, color));
            ui.add_space(6.0);
        }
        ui.label(text(change, size::VERDICT_SMALL, Weight::SemiBold, theme.text));
        // The views and the list of files tell the peak of what is allocated.
        ui.label(text(allocator.total_is, size::LEAD, Weight::Medium, theme.text2));
    });
    ui.add(egui::Label::new(text(allocator.headline(units), size::LEAD, Weight::Medium, theme.text)).wrap());
    if let Some(words) = found.space().and_then(|space| most_of_it(space, context, found.words().block)) {
        let room = ui.available_width();
        cut_label(ui, &words, Weight::Regular.at(size::BODY), theme.text2, room);
    }
}

/// The allocators that are not shown, with what changed in them; each is a link that shows it.
fn allocators(ui: &mut Ui, context: &ViewContext<'_>, state: &mut State, found: &Found) {
    let theme = context.theme;
    let others: Vec<(usize, &AllocatorDiff)> =
        found.pair.allocators.iter().enumerate().filter(|(at, _)| found.allocator != Some(*at)).collect();
    let has_program = found.allocator.is_some() && !found.pair.spaces.is_empty();
    if others.is_empty() && !has_program {
        return;
    }
    ui.horizontal_wrapped(|ui| {
        ui.label(text("Allocators:", size::SMALL, Weight::Regular, theme.text3));
        for (at, allocator) in others {
            let amount = match (allocator.total.before, allocator.total.after, allocator.total.difference) {
                (_, _, Some(0)) => "as before".to_owned(),
                (_, _, Some(difference)) => context.options.units.signed(difference),
                (None, Some(after), _) => format!("new, {}", context.short(Bytes(after))),
                _ => "gone".to_owned(),
            };
            if controls::link(ui, &format!("{} {amount}", allocator.name), theme).clicked() {
                state.allocator = Some(at);
            }
        }
        if has_program && controls::link(ui, "The program's memory", theme).clicked() {
            state.allocator = None;
        }
    });
}

/// Both sides by what tells them apart: of two programs of the same name their folders, with the name behind.
fn sides(before: &str, after: &str) -> String {
    match (before.rsplit_once('/'), after.rsplit_once('/')) {
        (Some((was, name)), Some((is, same))) if name == same && was != is => {
            format!("{was}  \u{2192}  {is}   {name}")
        }
        _ => format!("{before}  \u{2192}  {after}"),
    }
}

/// The other memory spaces with what changed in them; each is a link that compares it.
fn others(ui: &mut Ui, context: &mut ViewContext<'_>, found: &Found) {
    if found.others.is_empty() {
        return;
    }
    let theme = context.theme;
    let mut chosen = None;
    ui.horizontal_wrapped(|ui| {
        ui.label(text("Other memory:", size::SMALL, Weight::Regular, theme.text3));
        let (same, other): (Vec<_>, Vec<_>) = found.others.iter().partition(|row| row.2.difference == Some(0));
        for (color, name, bytes) in other {
            let amount = match (bytes.before, bytes.after, bytes.difference) {
                (_, _, Some(difference)) => context.options.units.signed(difference),
                (None, Some(after), _) => format!("new, {}", context.short(Bytes(after))),
                _ => "gone".to_owned(),
            };
            // What only the program before had cannot be chosen in the one that is open.
            let words = format!("{name} {amount}");
            if bytes.after.is_none() {
                ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
            } else if controls::link(ui, &words, theme).clicked() {
                chosen = Some(*color);
            }
        }
        if !same.is_empty() {
            let names: Vec<&str> = same.iter().map(|row| row.1.as_str()).collect();
            let words = format!("{} as before", counted(same.len() as u64, "space"));
            ui.label(text(words, size::SMALL, Weight::Regular, theme.text3)).on_hover_text(names.join(", "));
        }
    });
    if let Some(color) = chosen {
        context.shared.choose(context.shared.program, color);
    }
}

/// The answer for tiles: what the fullest one takes, and how many do not fit.
fn tiles(ui: &mut Ui, context: &ViewContext<'_>, found: &Found) {
    let theme = context.theme;
    let number = |what: &str| found.pair.numbers.iter().find(|number| number.what == what).map(|number| number.value);
    let Some(BytesDiff { after: Some(fullest), difference: Some(difference), .. }) = number("tiles: the fullest")
    else {
        return;
    };
    let change = match difference {
        0 => "as before".to_owned(),
        difference => context.options.units.signed(difference),
    };
    let over = number("tiles: over their memory").and_then(|over| over.before.zip(over.after));
    ui.horizontal_wrapped(|ui| {
        let (words, color) = match over {
            Some((_, 0)) => ("Fits", theme.ok),
            Some(_) => ("Does not fit", theme.danger),
            None => ("", theme.text),
        };
        if !words.is_empty() {
            ui.label(text(words, size::VERDICT_SMALL, Weight::SemiBold, color));
            ui.add_space(6.0);
        }
        ui.label(text(change, size::VERDICT_SMALL, Weight::SemiBold, theme.text));
    });
    let over = match over {
        Some((before, after)) if before > 0 || after > 0 => {
            format!("; {} over capacity, {} before", counted(after, "tile"), thousands(before))
        }
        _ => String::new(),
    };
    let words = format!("{} in the fullest tile{over}", context.short(Bytes(fullest)));
    ui.add(egui::Label::new(text(words, size::LEAD, Weight::Medium, theme.text)).wrap());
}

/// The row with the largest difference, in words.
fn most_of_it(space: &SpaceDiff, context: &ViewContext<'_>, block: &str) -> Option<String> {
    let units = context.options.units;
    let row = space.groups.first()?;
    let of = match row.count_after.max(row.count_before) {
        1 => String::new(),
        count => format!(", {}", counted(count as u64, block)),
    };
    Some(format!(
        "Largest difference: {} {} ({}{of}), {}",
        row.scope,
        row.change_words,
        row.class,
        units.signed(row.difference)
    ))
}

/// Numbers of profiles without a program: tiles, allocators, messages.
pub fn numbers(ui: &mut Ui, context: &mut ViewContext<'_>, found: &Found) {
    let theme = context.theme;
    egui::ScrollArea::vertical().id_salt("compared numbers").auto_shrink([false, false]).show(ui, |ui| {
        if found.pair.numbers.is_empty() {
            let words = "Neither file has a number that the other one has as well.";
            ui.label(text(words, size::BODY, Weight::Regular, theme.text2));
            if lead_link(ui, context, "Open the report") {
                context.go("report");
            }
        }
        egui::Grid::new("numbers").num_columns(4).spacing([24.0, 6.0]).show(ui, |ui| {
            for head in ["", "Before", "After", "Difference"] {
                ui.label(text(head, size::SMALL, Weight::Medium, theme.text2));
            }
            ui.end_row();
            for number in &found.pair.numbers {
                ui.label(text(capitalised(&number.what), size::SMALL, Weight::Regular, theme.text));
                let [before, after, difference] = cells(number, context);
                for words in [before, after] {
                    ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
                }
                ui.label(text(difference, size::SMALL, Weight::SemiBold, color(theme, number.value)));
                ui.end_row();
            }
        });
    });
}

fn color(theme: &Theme, value: BytesDiff) -> egui::Color32 {
    match value.difference.map(|difference| difference.cmp(&0)) {
        Some(Ordering::Greater) => theme.grew,
        Some(Ordering::Less) => theme.shrank,
        _ => theme.text2,
    }
}

fn cells(number: &NumberDiff, context: &ViewContext<'_>) -> [String; 3] {
    let unknown = || "\u{2013}".to_owned();
    let one = |value: Option<u64>| {
        let is_capacity = number.what.ends_with("capacity");
        let words = |value| match number.is_bytes {
            true if is_capacity => context.options.units.capacity(Bytes(value)),
            true => context.short(Bytes(value)),
            false => thousands(value),
        };
        value.map_or_else(unknown, words)
    };
    let difference = number.value.difference.map_or_else(unknown, |difference| match difference {
        0 => "=".to_owned(),
        _ if number.is_bytes => context.options.units.signed(difference),
        difference if difference < 0 => format!("\u{2212}{}", difference.unsigned_abs()),
        difference => format!("+{difference}"),
    });
    [one(number.value.before), one(number.value.after), difference]
}
