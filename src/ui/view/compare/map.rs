//! Treemap of the difference: classes divided into scopes, each as large as the larger of before and after, coloured by
//! how much of it is more or less than before.

use egui::{Align2, Color32, Pos2, Rect, Role, Sense, Shape, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::state::{Found, State};
use crate::export::diff::{GroupDiff, SpaceDiff};
use crate::model::{Bytes, UnitSystem, counted};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::keys;
use crate::ui::widget::theme::{Theme, mix, size};
use crate::ui::widget::treemap::squarify;

/// Height of the title and of the legend below it, and of a class's name.
const TITLE: f32 = 22.0;
const LEGEND: f32 = 18.0;
const HEAD: f32 = 17.0;
/// A class smaller than this has no name above it.
const LEAST: Vec2 = Vec2::new(60.0, 44.0);
/// Cells of a class that are drawn singly; the rest are one cell.
const MOST: usize = 200;
/// Cells smaller than this (square points) are left out.
const LEAST_AREA: f32 = 3.0;
/// Cells that are named for a screen reader, the largest.
const SPOKEN: usize = 40;
/// Share of the colour from which the words on it are light on dark, or dark on light.
pub const STRONG: f32 = 0.55;

/// Part of a class: a scope, what did not change, or what is too small.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its name.
    pub name: String,
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
    /// Place among the rows that differ.
    pub row: Option<u32>,
}

impl Part {
    /// The larger of both sides.
    pub fn largest(&self) -> u64 {
        self.before.max(self.after)
    }

    /// After less before.
    pub fn difference(&self) -> i128 {
        i128::from(self.after) - i128::from(self.before)
    }

    /// Difference as a share of the larger side: 1 for what appeared, −1 for what is gone.
    pub fn share(&self) -> f32 {
        (self.difference() as f64 / self.largest().max(1) as f64) as f32
    }
}

/// The parts of every class, the largest first; those of a class add up to its bytes before and after.
pub fn classes(space: &SpaceDiff) -> Vec<(&str, Vec<Part>)> {
    let mut found: Vec<(&str, Vec<Part>)> = Vec::new();
    for step in &space.waterfall {
        let class = step.name.text();
        let of_class = |row: &&GroupDiff| row.class == class;
        let mut parts: Vec<Part> = Vec::new();
        for (at, row) in space.groups.iter().enumerate().filter(|(_, row)| of_class(row)) {
            let row_at = u32::try_from(at).ok();
            parts.push(Part { name: row.scope.clone(), before: row.before, after: row.after, row: row_at });
        }
        let rest = |whole: i128, of: fn(&Part) -> u64| {
            let held: i128 = parts.iter().map(|part| i128::from(of(part))).sum();
            u64::try_from(whole - held).unwrap_or(0)
        };
        let (before, after) = (rest(step.before, |part| part.before), rest(step.after, |part| part.after));
        let name = if parts.is_empty() { class } else { "unchanged" };
        parts.push(Part { name: name.to_owned(), before, after, row: None });
        parts.sort_by_key(|part| std::cmp::Reverse(part.largest()));
        if parts.len() > MOST {
            let rest = parts.split_off(MOST - 1);
            let name = format!("{} others", rest.len());
            let (before, after) = rest.iter().fold((0, 0), |(b, a), part| (b + part.before, a + part.after));
            parts.push(Part { name, before, after, row: None });
        }
        parts.retain(|part| part.largest() > 0);
        if !parts.is_empty() {
            found.push((class, parts));
        }
    }
    found.sort_by_key(|(_, parts)| std::cmp::Reverse(parts.iter().map(Part::largest).sum::<u64>()));
    found
}

/// The map as it is placed: frames of classes with their names, and cells.
pub struct Map {
    rect: Rect,
    found: u64,
    frames: Vec<(Rect, String)>,
    cells: Vec<(Rect, String, Part)>,
}

impl Map {
    fn new(found: &Found, space: &SpaceDiff, rect: Rect) -> Self {
        let classes = classes(space);
        let sums = |parts: &[Part]| parts.iter().map(|part| part.largest() as f64).sum::<f64>();
        let values: Vec<f64> = classes.iter().map(|(_, parts)| sums(parts)).collect();
        let (mut frames, mut cells) = (Vec::new(), Vec::new());
        for ((class, parts), frame) in classes.into_iter().zip(squarify(&values, rect)) {
            if frame.area() < LEAST_AREA {
                continue;
            }
            let has_head = frame.width() >= LEAST.x && frame.height() >= LEAST.y;
            let inner = if has_head {
                frames.push((frame, class.to_owned()));
                Rect::from_min_max(frame.min + Vec2::new(0.0, HEAD), frame.max)
            } else {
                frame
            };
            let values: Vec<f64> = parts.iter().map(|part| part.largest() as f64).collect();
            let placed = parts.into_iter().zip(squarify(&values, inner.shrink2(Vec2::splat(1.0))));
            cells.extend(
                placed
                    .filter(|(_, cell)| cell.area() >= LEAST_AREA)
                    .map(|(part, cell)| (cell.shrink(0.5), class.to_owned(), part)),
            );
        }
        cells.sort_by(|one, other| other.0.area().total_cmp(&one.0.area()));
        Self { rect, found: found.number, frames, cells }
    }
}

/// Draws the map; a click on a scope chooses its row.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, found: &Found, rect: Rect) {
    let Some(space) = found.space() else { return };
    let theme = context.theme;
    let units = context.options.units;
    let at = (Pos2::new(rect.left(), rect.top() + 8.0), Align2::LEFT_CENTER);
    let words = found.words().whole;
    paint_cut(ui.painter(), at, words, Weight::SemiBold.at(size::BODY), theme.text, rect.width());
    legend(ui, theme, Pos2::new(rect.left(), rect.top() + TITLE + LEGEND / 2.0 - 2.0), rect.width());
    let plot = Rect::from_min_max(rect.min + Vec2::new(0.0, TITLE + LEGEND), rect.max);
    let is_placed = |map: &Map| map.rect == plot && map.found == found.number;
    let map = state.map.take().filter(is_placed).unwrap_or_else(|| Map::new(found, space, plot));
    let ground = ui.interact(plot, ui.scope_id().with("map of differences"), Sense::click());
    let pressed = keys::field(ui, &ground);
    let keyed = by_keys(&map, state.map_at, &pressed);
    if pressed.has_focus {
        state.map_at = keyed;
    }
    ground.widget_info(|| {
        let here = keyed.filter(|_| pressed.has_focus).and_then(|at| map.cells.get(at));
        let here = here
            .map_or_else(String::new, |(_, class, part)| format!(": {class}, {} {}", part.name, amount(units, part)));
        WidgetInfo::labeled(Role::Image, true, format!("Map of differences{here}"))
    });
    for (frame, class) in &map.frames {
        let at = (Pos2::new(frame.left() + 2.0, frame.top() + HEAD / 2.0), Align2::LEFT_CENTER);
        let room = frame.width() - 4.0;
        paint_cut(ui.painter(), at, class, Weight::Medium.at(size::SMALL), theme.text2, room);
    }
    for (place, (cell, class, part)) in map.cells.iter().enumerate() {
        paint(ui, theme, units, *cell, part);
        let is_chosen = part.row.is_some() && state.chosen == part.row;
        if is_chosen {
            ui.painter().rect_stroke(*cell, 0.0, Stroke::new(2.5, theme.ink), StrokeKind::Inside);
        }
        let response = ui.interact(*cell, ui.scope_id().with(("difference", place)), Sense::CLICK);
        if place < SPOKEN {
            let words = format!("{class}, {} {}", part.name, amount(units, part));
            response.widget_info(|| WidgetInfo::labeled(Role::Button, part.row.is_some(), &words));
        }
        if response.hovered() {
            ui.painter().rect_stroke(*cell, 0.0, Stroke::new(1.5, theme.ink), StrokeKind::Inside);
        }
        let is_at = pressed.has_focus && keyed == Some(place);
        if is_at {
            keys::ring_at(ui.painter(), *cell, theme);
        }
        if (response.clicked() || (is_at && pressed.enter))
            && let Some(row) = part.row
        {
            state.choose(row);
            context.shared.select(space.groups.get(row as usize).and_then(|row| row.largest_after));
        }
        response.on_hover_ui_at_pointer(|ui| tooltip(ui, (theme, units), class, part, (space, found.words().block)));
    }
    state.map = Some(map);
}

/// The cell that the keys reach from another one; the largest to begin with.
fn by_keys(map: &Map, at: Option<usize>, pressed: &keys::Pressed) -> Option<usize> {
    let Some(at) = at.filter(|&at| at < map.cells.len()) else { return (!map.cells.is_empty()).then_some(0) };
    if pressed.first {
        return Some(0);
    }
    if pressed.last {
        return map.cells.len().checked_sub(1);
    }
    let places: Vec<Rect> = map.cells.iter().map(|cell| cell.0).collect();
    let moved = if pressed.moves() { keys::neighbour(&places, at, pressed.by) } else { None };
    moved.or(Some(at))
}

/// A difference with its sign; for none, what stands as before.
pub fn amount(units: UnitSystem, part: &Part) -> String {
    if part.difference() == 0 {
        format!("= {}", units.short(Bytes(part.after)))
    } else {
        units.signed(part.difference())
    }
}

/// The fill of a share of difference, −1 to 1.
pub fn fill(theme: &Theme, share: f32) -> Color32 {
    let full = if share > 0.0 { theme.grew } else { theme.shrank };
    // What differs a little is still told from what does not.
    let strength = if share == 0.0 { 0.0 } else { 0.15 + 0.85 * share.abs().min(1.0) };
    mix(theme.inset, full, strength)
}

fn paint(ui: &Ui, theme: &Theme, units: UnitSystem, cell: Rect, part: &Part) {
    let painter = ui.painter().with_clip_rect(cell.intersect(ui.clip_rect()));
    let share = part.share();
    painter.rect_filled(cell, 0.0, fill(theme, share));
    if part.after < part.before {
        // What is gone of it is hatched from below.
        let gone = (part.before - part.after) as f64 / part.before.max(1) as f64;
        let top = cell.bottom() - (f64::from(cell.height()) * gone) as f32;
        hatch(&painter, Rect::from_min_max(Pos2::new(cell.left(), top), cell.max), theme.hatch);
    }
    let edge = Stroke::new(1.5, if share > 0.0 { theme.grew } else { theme.shrank });
    if part.before == 0 {
        painter.rect_stroke(cell, 0.0, edge, StrokeKind::Inside);
    } else if part.after == 0 {
        let inner = cell.shrink(1.0);
        let corners =
            [inner.left_top(), inner.right_top(), inner.right_bottom(), inner.left_bottom(), inner.left_top()];
        painter.extend(Shape::dashed_line(&corners, Stroke::new(1.5, theme.halo), 5.0, 3.0));
    }
    if cell.width() < 46.0 || cell.height() < 18.0 {
        return;
    }
    let (color, second) = if share.abs() > STRONG { (theme.halo, theme.halo) } else { (theme.text, theme.text2) };
    let room = cell.width() - 8.0;
    let sign = match (part.before, part.after) {
        (0, _) => "+ ",
        (_, 0) => "\u{2212} ",
        _ => "",
    };
    // The last two parts of a scope; what does not fit is cut, and whole in the tooltip.
    let short = part.name.rmatch_indices('/').nth(1).map_or(&*part.name, |(at, _)| &part.name[at + 1..]);
    let mut y = cell.top() + 10.0;
    for (words, color) in [(format!("{sign}{short}"), color), (amount(units, part), second)] {
        if y + 7.0 > cell.bottom() {
            return;
        }
        let at = (Pos2::new(cell.left() + 4.0, y), Align2::LEFT_CENTER);
        let backed = painter.layout_no_wrap(words.clone(), Weight::Medium.at(size::SMALL), color);
        let ground = Rect::from_min_size(
            Pos2::new(cell.left() + 3.0, y - 7.0),
            Vec2::new(backed.size().x.min(room) + 2.0, 14.0),
        );
        if part.after < part.before {
            // Hatching under words is hard to read.
            painter.rect_filled(ground, 0.0, fill(theme, share));
        }
        paint_cut(&painter, at, &words, Weight::Medium.at(size::SMALL), color, room);
        y += 15.0;
    }
}

/// Lines at 45° over a rectangle, fixed to the screen.
fn hatch(painter: &egui::Painter, rect: Rect, color: Color32) {
    const PERIOD: f32 = 7.0;
    if rect.height() < 2.0 {
        return;
    }
    let painter = painter.with_clip_rect(rect.intersect(painter.clip_rect()));
    let first = ((rect.left() + rect.top()) / PERIOD).floor() as i64;
    let last = ((rect.right() + rect.bottom()) / PERIOD).ceil() as i64;
    for line in first..=last {
        let sum = line as f32 * PERIOD;
        let ends = [Pos2::new(sum - rect.top(), rect.top()), Pos2::new(sum - rect.bottom(), rect.bottom())];
        painter.line_segment(ends, Stroke::new(1.2, color));
    }
}

/// What the colours mean, from gone to appeared.
pub fn legend(ui: &Ui, theme: &Theme, at: Pos2, room: f32) {
    let small = Weight::Regular.at(size::SMALL);
    let mut x = at.x;
    for (share, words) in [(-1.0, "gone"), (-0.4, "less"), (0.0, "unchanged"), (0.4, "more"), (1.0, "appeared")] {
        if x + 80.0 > at.x + room {
            return;
        }
        let swatch = Rect::from_center_size(Pos2::new(x + 6.0, at.y), Vec2::splat(11.0));
        ui.painter().rect_filled(swatch, 0.0, fill(theme, share));
        if share < 0.0 {
            let top = if share <= -1.0 { swatch.top() } else { swatch.center().y };
            let gone = Rect::from_min_max(Pos2::new(swatch.left(), top), swatch.max);
            hatch(ui.painter(), gone, theme.hatch);
        }
        let place = (Pos2::new(x + 16.0, at.y), Align2::LEFT_CENTER);
        let (drawn, _) = paint_cut(ui.painter(), place, words, small.clone(), theme.text2, 80.0);
        x = drawn.right() + 12.0;
    }
}

fn tooltip(
    ui: &mut Ui,
    (theme, units): (&Theme, UnitSystem),
    class: &str,
    part: &Part,
    (space, block): (&SpaceDiff, &str),
) {
    ui.label(text(&part.name, size::BODY, Weight::SemiBold, theme.text));
    let short = |bytes: u64| units.short(Bytes(bytes));
    let words = format!("{} \u{2192} {}, {}", short(part.before), short(part.after), amount(units, part));
    ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
    let row = part.row.and_then(|row| space.groups.get(row as usize));
    let words = row.map_or_else(
        || class.to_owned(),
        |row| format!("{class}, {}, {}", row.change, counted(row.count_before.max(row.count_after) as u64, block)),
    );
    ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::diff::{StepDiff, StepName};

    #[test]
    fn the_parts_of_a_class_add_up_to_it() {
        let step = |class, before: i128, after: i128| StepDiff {
            name: StepName::Class(class),
            before,
            after,
            difference: after - before,
            appeared: 0,
            gone: 0,
            resized: 0,
            came: 0,
            left: 0,
        };
        let mut groups: Vec<GroupDiff> =
            (0..500).map(|n| GroupDiff::of("Activation", &format!("s{n}"), 2 * n, n)).collect();
        groups.push(GroupDiff::of("Weight", "w", 0, 7));
        let sum: i128 = (0..500).sum();
        let waterfall = vec![
            step("Activation", 2 * sum + 100, sum + 100),
            step("Weight", 50, 57),
            step("unused at the peak", 9, 3),
        ];
        let space = SpaceDiff { waterfall, groups, ..SpaceDiff::default() };
        let found = classes(&space);
        assert_eq!(
            found.iter().map(|(class, _)| *class).collect::<Vec<_>>(),
            ["Activation", "Weight", "unused at the peak"]
        );
        for (class, parts) in &found {
            let step = space.waterfall.iter().find(|step| step.name.text() == *class).expect("its step");
            let sums = parts.iter().fold((0, 0), |(b, a), part| (b + part.before, a + part.after));
            assert_eq!((i128::from(sums.0), i128::from(sums.1)), (step.before, step.after), "{class}");
            assert!(parts.len() <= MOST, "{class}");
        }
        assert_eq!(found[1].1.iter().map(|part| part.share()).collect::<Vec<_>>(), [0.0, 1.0]);
    }
}
