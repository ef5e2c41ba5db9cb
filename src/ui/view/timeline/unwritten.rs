//! Memory set aside for results before they are written: it is no free memory, and the map says so.

use egui::{Align2, Painter, Pos2, Rect, Vec2};

use crate::model::{Bytes, Category};
use crate::ui::chart::Window;
use crate::ui::part::ViewContext;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::size;
use crate::ui::work::SpaceData;

/// Space around the words.
const AROUND: Vec2 = Vec2::new(8.0, 3.0);

/// Names results that are reserved but not written yet, where there is room before the first of them is, and nothing of
/// `taken` stands there.
pub fn unwritten(
    painter: &Painter,
    context: &ViewContext<'_>,
    data: &SpaceData,
    window: &Window,
    taken: &mut Vec<Rect>,
) {
    for region in data.map.regions.iter().filter(|region| region.always_live && region.category == Category::Output) {
        let end = region.base.saturating_add(region.size);
        let first = region.first.unwrap_or(data.map.points);
        let area = window.rect_of((0.0, f64::from(first)), (region.base as f64, end as f64)).intersect(window.rect);
        if area.height() < size::SMALL {
            continue;
        }
        let words = format!("reserved for results, {}", context.short(Bytes(region.size)));
        let font = Weight::Medium.at(size::SMALL);
        let galley = painter.layout_no_wrap(words, font, context.theme.text2);
        let needed = galley.size() + 2.0 * AROUND;
        if area.width() < needed.x || area.height() < needed.y {
            continue;
        }
        let at = Pos2::new(area.left() + AROUND.x, area.center().y);
        let place = Align2::LEFT_CENTER.anchor_size(at, galley.size());
        if taken.iter().any(|other| other.intersects(place.expand2(AROUND))) {
            continue;
        }
        taken.push(place);
        painter.galley(place.min, galley, context.theme.text2);
    }
}
