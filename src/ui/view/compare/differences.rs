//! The table of what differs at the two peaks, equal layers folded, with its filter.

use egui::{Role, Ui, Vec2, WidgetInfo};

use super::state::{By, Found, State, Wanted};
use super::words::{Words, slot_of_kind};
use crate::analysis::compare::Change;
use crate::export::diff::{GroupDiff, shapes};
use crate::model::{Bytes, UnitSystem, counted, thousands};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::table::{Cell, Column, Table};
use crate::ui::widget::theme::{Slot, size, space};

const CHANGES: [Change; 4] = [Change::Appeared, Change::Gone, Change::Grew, Change::Shrank];
const COLUMNS: [By; 8] =
    [By::Change, By::Scope, By::Class, By::Before, By::After, By::Difference, By::Count, By::Shape];

/// The filter: what became of a row, and words that it contains.
pub fn tools(ui: &mut Ui, context: &ViewContext<'_>, state: &mut State, found: &Found) {
    let theme = context.theme;
    let Some(space) = found.space() else { return };
    let mut words = vec!["All".to_owned()];
    let count = |change: Change| space.groups.iter().filter(|row| row.change == change.name()).count();
    words.extend(
        CHANGES.map(|change| format!("{} {}", thousands(count(change) as u64), (found.words().change)(change))),
    );
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let chosen = CHANGES.iter().position(|change| state.wanted.change == Some(*change)).map_or(0, |at| at + 1);
    let room = ui.available_width() - 170.0;
    if let Some(at) = controls::choice(ui, "Rows", &words, chosen, room, theme) {
        state.wanted.change = at.checked_sub(1).map(|at| CHANGES[at]);
    }
    let width = ui.available_width().clamp(60.0, 260.0);
    let hint = text(found.words().find, size::SMALL, Weight::Regular, theme.text3);
    let edit = egui::TextEdit::singleline(&mut state.wanted.words)
        .hint_text(hint)
        .font(Weight::Mono.at(size::SMALL))
        .align(egui::Align2::LEFT_CENTER);
    let response = ui.add_sized(Vec2::new(width, space::CONTROL), edit);
    response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Find a difference"));
    if std::mem::take(&mut state.focus) {
        response.request_focus();
    }
}

/// Which rows are listed, in order.
fn listed(rows: &[GroupDiff], wanted: &Wanted) -> Vec<u32> {
    let words = wanted.words.to_lowercase();
    let words: Vec<&str> = words.split_whitespace().collect();
    let is_listed = |row: &GroupDiff| {
        let has_words = words.is_empty() || {
            let all =
                format!("{} {} {} {} {}", row.scope, row.class, row.change_words, row.shape_before, row.shape_after);
            let all = all.to_lowercase();
            words.iter().all(|word| all.contains(word))
        };
        has_words && wanted.change.is_none_or(|change| row.change == change.name())
    };
    let mut list: Vec<u32> =
        (0..rows.len()).filter(|&row| is_listed(&rows[row])).filter_map(|row| u32::try_from(row).ok()).collect();
    let row = |at: &u32| &rows[*at as usize];
    let down = std::cmp::Reverse::<u128>;
    match wanted.by {
        By::Change => list.sort_by_key(|at| row(at).change),
        By::Scope => list.sort_by(|a, b| row(a).scope.cmp(&row(b).scope)),
        By::Class => list.sort_by(|a, b| row(a).class.cmp(&row(b).class)),
        By::Before => list.sort_by_key(|at| down(row(at).before.into())),
        By::After => list.sort_by_key(|at| down(row(at).after.into())),
        By::Difference => list.sort_by_key(|at| down(row(at).difference.unsigned_abs())),
        By::Count => list.sort_by_key(|at| down(row(at).count_after.max(row(at).count_before) as u128)),
        By::Shape => list.sort_by_key(|at| shapes(row(at))),
    }
    if wanted.is_reversed {
        list.reverse();
    }
    list
}

/// Columns that leave where there is no room, the first one first: what differs and the difference stay.
const LEAVING: [By; 5] = [By::Count, By::Before, By::After, By::Change, By::Class];

/// Points that the name of what differs has before another column leaves.
const NAMED: f32 = 300.0;

/// The columns that there is room for, with what each sorts by.
fn columns(unit: &str, largest: &str, words: &Words, width: f32) -> (Vec<Column>, Vec<By>) {
    let column = |title: &str, at: usize| Column::text(title, words.widths[at].0, words.widths[at].1);
    let all = [
        Column::text("Change", words.change_width, 0.0),
        column(words.what, 0),
        column(words.class, 1),
        Column::number(&format!("Before, {unit}"), 96.0),
        Column::number(&format!("After, {unit}"), 96.0),
        Column::number(&format!("Difference, {unit} (bar \u{b1}{largest})"), 206.0),
        Column::number(words.blocks, 72.0),
        column(words.detail, 2),
    ];
    let mut shown: Vec<(Column, By)> = all.into_iter().zip(COLUMNS).collect();
    let least = |shown: &[(Column, By)]| -> f32 {
        let wide = |(column, by): &(Column, By)| if *by == By::Scope { column.width.max(NAMED) } else { column.width };
        shown.iter().map(wide).sum()
    };
    // A stack stays beside what it called.
    let first = (words.widths[2].1 < words.widths[0].1).then_some(By::Shape);
    for by in first.into_iter().chain(LEAVING) {
        if least(&shown) > width {
            shown.retain(|column| column.1 != by);
        }
    }
    shown.into_iter().unzip()
}

/// Draws the table; choosing a row selects its largest buffer in the open program.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found) {
    let theme = context.theme;
    let Some(space) = found.space() else { return };
    if space.groups.is_empty() {
        ui.add_space(16.0);
        let words = format!("Nothing differs at the peak: {} as before.", counted(space.groups_equal as u64, "row"));
        ui.label(text(words, size::LEAD, Weight::Medium, theme.text));
        return;
    }
    if state.listed.as_ref().is_none_or(|(wanted, _)| *wanted != state.wanted) {
        state.listed = Some((state.wanted.clone(), listed(&space.groups, &state.wanted)));
    }
    let Some((_, rows)) = &state.listed else { return };
    if rows.is_empty() {
        ui.add_space(16.0);
        let words = format!("0 of {} match", thousands(space.groups.len() as u64));
        ui.label(text(words, size::LEAD, Weight::SemiBold, theme.text));
        if controls::link_sized(ui, "Show all", size::BODY, theme).clicked() {
            state.wanted.words.clear();
            state.wanted.change = None;
        }
        return;
    }
    let units = context.options.units;
    let largest = Bytes(u64::try_from(found.largest).unwrap_or(u64::MAX));
    let (unit, unit_name) = units.unit_for(if largest.0 >= 1 << 30 { Bytes(1 << 20) } else { largest });
    let (columns, shown) = columns(unit_name, &units.short(largest), found.words(), ui.available_width());
    let down = !state.wanted.is_reversed ^ matches!(state.wanted.by, By::Change | By::Scope | By::Class | By::Shape);
    let sort = shown.iter().position(|by| *by == state.wanted.by).map(|at| (at, down));
    let selected = state.chosen.and_then(|chosen| rows.iter().position(|row| *row == chosen));
    let table = Table { selected, sort, keys: true, ..Table::new(&columns, rows.len(), "differences") };
    let row = |line: usize| &space.groups[rows[line] as usize];
    let label = |line: usize| {
        let row = row(line);
        format!("{} {} {}", row.scope, row.change_words, units.signed(row.difference))
    };
    let share = |difference: i128| (difference as f64 / found.largest.max(1) as f64) as f32;
    let response = table.show(ui, &mut state.table, label, |line, column| {
        cell(row(line), shown[column], unit, share(row(line).difference))
    });
    if let Some(line) = response.chosen {
        state.chosen = Some(rows[line]);
        context.shared.select(row(line).largest_after);
    }
    if let Some(line) = response.hovered {
        context.shared.hover(row(line).largest_after);
    }
    let opened = response.opened.is_some_and(|line| row(line).largest_after.is_some());
    if let Some(by) = response.sorted.and_then(|column| shown.get(column).copied()) {
        state.wanted.is_reversed = state.wanted.by == by && !state.wanted.is_reversed;
        state.wanted.by = by;
    }
    if opened {
        context.go("timeline");
    }
}

fn cell(row: &GroupDiff, by: By, unit: u64, share: f32) -> Cell {
    let slot = slot_of_kind(&row.class).unwrap_or(Slot::Temporary);
    let bytes = |bytes: u64| if bytes == 0 { Cell::text("0").quiet() } else { Cell::text(in_unit(bytes, unit)) };
    match by {
        By::Change => Cell::text(row.change_words),
        By::Scope => Cell::text(row.scope.clone()).swatch(slot),
        By::Class => Cell::text(row.class.as_ref()),
        By::Before => bytes(row.before),
        By::After => bytes(row.after),
        By::Difference => {
            let amount = in_unit(u64::try_from(row.difference.unsigned_abs()).unwrap_or(u64::MAX), unit);
            let sign = if row.difference < 0 { "\u{2212}" } else { "+" };
            Cell::text(format!("{sign}{amount}")).strong().difference(share)
        }
        By::Count if row.count_before == row.count_after => Cell::text(thousands(row.count_after as u64)),
        By::Count => Cell::text(format!("{} \u{2192} {}", row.count_before, row.count_after)),
        By::Shape => Cell::mono(shapes(row)).quiet(),
    }
}

/// A size in the column's unit; one above zero is never `0.0`.
fn in_unit(bytes: u64, unit: u64) -> String {
    let words = UnitSystem::in_unit(Bytes(bytes), unit);
    if words == "0.0" && bytes > 0 { "under 0.1".to_owned() } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_keeps_the_name_and_the_difference() {
        let shown = |width: f32| columns("MiB", "1.2 GiB", &super::super::words::PROGRAM, width).1;
        assert_eq!(shown(1100.0), COLUMNS);
        assert_eq!(shown(720.0), [By::Change, By::Scope, By::Class, By::Difference]);
        assert_eq!(shown(400.0), [By::Scope, By::Difference]);
    }

    #[test]
    fn rows_are_found_by_words_and_by_what_became_of_them() {
        let rows = [
            GroupDiff::of("Activation", "layer_*/attn", 10, 0),
            GroupDiff::of("Activation", "layer_*/mlp", 0, 30),
            GroupDiff::of("Activation", "embed", 20, 40),
        ];
        let list = |words: &str, change, by, is_reversed| {
            listed(&rows, &Wanted { words: words.to_owned(), change, by, is_reversed })
        };
        assert_eq!(list("", None, By::Difference, false), [1, 2, 0]);
        assert_eq!(list("", None, By::Difference, true), [0, 2, 1]);
        assert_eq!(list("LAYER activation", None, By::Difference, false), [1, 0]);
        assert_eq!(list("", Some(Change::Gone), By::Difference, false), [0]);
        assert_eq!(list("", None, By::Scope, false), [2, 0, 1]);
    }
}
