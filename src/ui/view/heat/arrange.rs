//! Where the panels of memory spaces stand: the chosen one large, the others in a strip below it, and tiny ones as names.

use egui::{Pos2, Rect, Ui, Vec2};

use super::{Space, TITLE};
use crate::model::{Bytes, MemorySpace};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::heat_map::GAP;
use crate::ui::widget::theme::size;

/// A space with less than this is tiny: its addresses say nothing about memory that matters.
const TINY: Bytes = Bytes(1 << 20);
/// Share of the height that the strip takes, its least height, and the least width of a panel in it.
const STRIP: (f32, f32, f32) = (0.28, 110.0, 260.0);
/// Least height of the large panel above a strip.
const LARGE: f32 = 150.0;
/// Height of the line with the names of the others.
const NAMES: f32 = 24.0;

/// The spaces with panels, each with its rectangle below its title, and those that are named.
pub struct Places<'a> {
    pub panels: Vec<(&'a Space, Rect)>,
    pub named: Vec<&'a Space>,
    /// The line of their names.
    pub names: Rect,
}

/// Arranges the spaces in `room` with `main` large.
pub fn arrange<'a>(room: Rect, spaces: &[&'a Space], main: MemorySpace) -> Places<'a> {
    let large =
        spaces.iter().find(|space| space.color == main).or_else(|| spaces.iter().max_by_key(|space| space.bytes));
    let Some(&large) = large else { return Places { panels: Vec::new(), named: Vec::new(), names: room } };
    let others = spaces.iter().copied().filter(|space| space.color != large.color);
    let (mut strip, mut named): (Vec<&Space>, Vec<&Space>) = others.partition(|space| space.bytes >= TINY);
    strip.sort_by_key(|space| std::cmp::Reverse(space.bytes));
    let height = (room.height() * STRIP.0).max(STRIP.1);
    let has_strip = room.height() - height - NAMES - 2.0 * TITLE - GAP >= LARGE;
    let most = if has_strip { ((room.width() + GAP) / (STRIP.2 + GAP)).floor().max(1.0) as usize } else { 0 };
    named.extend(strip.drain(most.min(strip.len())..));
    let mut bottom = room.bottom();
    if !named.is_empty() {
        bottom -= NAMES;
    }
    let names = Rect::from_min_max(Pos2::new(room.left(), bottom), room.max);
    let mut panels = Vec::new();
    if !strip.is_empty() {
        let count = strip.len() as f32;
        let width = (room.width() - GAP * (count - 1.0)) / count;
        for (at, space) in strip.iter().enumerate() {
            let left = room.left() + at as f32 * (width + GAP);
            let top = bottom - height + TITLE;
            panels.push((*space, Rect::from_min_size(Pos2::new(left, top), Vec2::new(width, height - TITLE))));
        }
        bottom -= height + GAP;
    }
    let top = room.top() + TITLE;
    panels.insert(0, (large, Rect::from_min_max(Pos2::new(room.left(), top), Pos2::new(room.right(), bottom))));
    Places { panels, named, names }
}

/// Draws the names of spaces without panels; returns the one that was clicked.
pub fn names(ui: &mut Ui, context: &ViewContext<'_>, places: &Places<'_>) -> Option<MemorySpace> {
    if places.named.is_empty() {
        return None;
    }
    let theme = context.theme;
    let mut chosen = None;
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(places.names).id_salt("other spaces"));
    child.horizontal(|ui| {
        ui.label(text("Other spaces:", size::SMALL, Weight::Regular, theme.text2));
        for (at, space) in places.named.iter().enumerate() {
            let words = format!("{} {}", space.name, context.short(space.bytes));
            let more = format!("and {} more", places.named.len() - at);
            let wide = |words: &str, weight: Weight| {
                ui.painter().layout_no_wrap(words.to_owned(), weight.at(size::SMALL), theme.text2).size().x
            };
            let left = if at + 1 < places.named.len() { wide(&more, Weight::Regular) + GAP } else { 0.0 };
            if wide(&words, Weight::Medium) + left > ui.available_width() {
                // The list of memories in the bar at the top has them all.
                ui.label(text(more, size::SMALL, Weight::Regular, theme.text2));
                break;
            }
            let link = controls::link(ui, &words, theme);
            link.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Link, true, format!("Zoom into {}", space.name)));
            if link.clicked() {
                chosen = Some(space.color);
            }
        }
    });
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chosen_space_is_large_and_tiny_ones_are_names() {
        let space =
            |color: MemorySpace, name: &str, bytes: u64| Space { color, name: name.to_owned(), bytes: Bytes(bytes) };
        let own = [
            space(MemorySpace::HBM, "HBM", 16 << 30),
            space(MemorySpace::VMEM, "VMEM", 100 << 20),
            space(MemorySpace::SMEM, "SMEM", 48),
        ];
        let all: Vec<&Space> = own.iter().collect();
        let room = Rect::from_min_size(Pos2::new(10.0, 10.0), Vec2::new(800.0, 440.0));
        let places = arrange(room, &all, MemorySpace::HBM);
        assert_eq!(places.named.iter().map(|space| space.name.as_str()).collect::<Vec<_>>(), ["SMEM"]);
        let (first, large) = &places.panels[0];
        assert_eq!(first.name, "HBM");
        assert!(large.height() > 0.5 * room.height() && large.width() > 790.0, "{large:?}");
        assert!(places.panels.iter().all(|(_, rect)| room.contains_rect(*rect)));
        // Without room for a strip all others are names.
        let places = arrange(room.with_max_y(200.0), &all, MemorySpace::VMEM);
        assert_eq!((places.panels.len(), places.panels[0].0.name.as_str(), places.named.len()), (1, "VMEM", 2));
    }
}
