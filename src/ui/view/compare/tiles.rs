//! Tiles of two IPU profiles: the difference of each tile as a heat map.

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::map::fill;
use super::state::{State, TileDifference};
use crate::model::{Bytes, counted, thousands};
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::heat_map;
use crate::ui::widget::raster::RasterArea;
use crate::ui::widget::theme::size;

/// Height of the title with its legend.
const TITLE: f32 = 44.0;
/// Height of the name of an IPU.
const NAME: f32 = 16.0;

/// Draws the tiles into a rectangle.
pub fn show(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    (tiles, number): (&TileDifference, u64),
    rect: Rect,
) {
    let theme = context.theme;
    let units = context.options.units;
    let most = tiles.values.iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
    let (grew, shrank) = (
        tiles.values.iter().filter(|value| **value > 0).count(),
        tiles.values.iter().filter(|value| **value < 0).count(),
    );
    let head = if most == 0 {
        format!("Every one of {} as before", counted(tiles.values.len() as u64, "tile"))
    } else {
        let words = |count: usize| thousands(count as u64);
        format!("Tiles: {} grew, {} shrank, at most by {}", words(grew), words(shrank), units.short(Bytes(most)))
    };
    let at = (Pos2::new(rect.left(), rect.top() + 8.0), Align2::LEFT_CENTER);
    paint_cut(ui.painter(), at, &head, Weight::SemiBold.at(size::BODY), theme.text, rect.width());
    scale(ui, context, most, Pos2::new(rect.left(), rect.top() + 28.0));
    let room = Rect::from_min_max(rect.min + Vec2::new(0.0, TITLE), rect.max);
    let plan = &tiles.plan;
    let name = if tiles.ipus > 1 { NAME } else { 0.0 };
    let panels = heat_map::panels(room, tiles.ipus, name, |panel| {
        (panel.x / plan.columns as f32).min(panel.y / plan.rows as f32 * 1.6)
    });
    let per_ipu = tiles.per_ipu.max(1);
    let cell = panels.first().map_or(Vec2::ZERO, |panel| {
        let width = panel.width() / plan.columns as f32;
        Vec2::new(width, (panel.height() / plan.rows as f32).min(width * 2.4))
    });
    let place = |tile: usize| -> Option<Rect> {
        let panel = panels.get(tile / per_ipu)?;
        let at = *plan.cell.get(tile % per_ipu)?;
        let (column, row) = (at % plan.columns, at / plan.columns);
        Some(Rect::from_min_size(panel.min + Vec2::new(column as f32 * cell.x, row as f32 * cell.y), cell))
    };
    let key = (number, theme.dark, rect.min.x.to_bits(), rect.min.y.to_bits());
    let area = RasterArea { rect: room, name: "difference of tiles", ground: theme.canvas };
    state.raster.show(ui, area, key, |raster| {
        let scale = raster.scale();
        let pixel = |v: f32| (v * scale).round() as i64;
        let gap = heat_map::gap(cell * scale);
        for (tile, &value) in tiles.values.iter().enumerate() {
            let Some(place) = place(tile).map(|place| place.translate(-room.min.to_vec2())) else { continue };
            let share = (value as f64 / most.max(1) as f64) as f32;
            let (right, bottom) = (pixel(place.right()) - gap, pixel(place.bottom()) - gap);
            raster.fill(pixel(place.left()), pixel(place.top()), right, bottom, fill(theme, share));
        }
    });
    if tiles.ipus > 1 {
        for (ipu, panel) in panels.iter().enumerate() {
            let at = (Pos2::new(panel.left(), panel.top() - 2.0), Align2::LEFT_BOTTOM);
            let font = Weight::Medium.at(size::SMALL);
            paint_cut(ui.painter(), at, &format!("IPU {ipu}"), font, theme.text2, panel.width());
        }
    }
    let response = ui.interact(room, ui.scope_id().with("difference of tiles"), Sense::click());
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &head));
    let under = response.hover_pos().and_then(|at| {
        let ipu = panels.iter().position(|panel| panel.contains(at))?;
        let inside = at - panels[ipu].min;
        let (column, row) = ((inside.x / cell.x) as u32, (inside.y / cell.y) as u32);
        let at = (row < plan.rows && column < plan.columns).then_some(row * plan.columns + column)?;
        let tile = plan.cell.iter().position(|cell| *cell == at)?;
        Some(ipu * per_ipu + tile)
    });
    let Some((tile, place)) = under.and_then(|tile| Some((tile, place(tile)?))) else { return };
    ui.painter().rect_stroke(place.expand(1.0), 0.0, Stroke::new(1.5, theme.ink), StrokeKind::Outside);
    context.shared.hover_tile(tile as u32);
    if response.clicked() {
        context.shared.choose_tiles(vec![tile as u32]);
    }
    response.on_hover_ui_at_pointer(|ui| {
        ui.label(text(format!("Tile {}", thousands(tile as u64)), size::BODY, Weight::SemiBold, theme.text));
        let [before, after] = [&tiles.before, &tiles.after].map(|values| values.get(tile).copied().unwrap_or(0));
        let difference = i128::from(after) - i128::from(before);
        let amount = if difference == 0 { "=".to_owned() } else { units.signed(difference) };
        let words = format!("{} \u{2192} {}, {amount}", units.short(Bytes(before)), units.short(Bytes(after)));
        ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
    });
}

/// The colours of the largest differences on both sides of none.
fn scale(ui: &Ui, context: &ViewContext<'_>, most: u64, at: Pos2) {
    const STEPS: usize = 9;
    const WIDE: f32 = 18.0;
    let theme = context.theme;
    let small = Weight::Regular.at(size::SMALL);
    let end = if most == 0 { "0".to_owned() } else { context.options.units.short(Bytes(most)) };
    let less = if most == 0 { end.clone() } else { format!("\u{2212}{end}") };
    let (drawn, _) = paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), &less, small.clone(), theme.text2, 100.0);
    let mut x = drawn.right() + 6.0;
    for step in 0..STEPS {
        let share = step as f32 / (STEPS - 1) as f32 * 2.0 - 1.0;
        let swatch = Rect::from_min_size(Pos2::new(x, at.y - 6.0), Vec2::new(WIDE, 12.0));
        ui.painter().rect_filled(swatch, 0.0, fill(theme, share));
        x += WIDE;
    }
    let more = if most == 0 { end } else { format!("+{end}") };
    paint_cut(ui.painter(), (Pos2::new(x + 6.0, at.y), Align2::LEFT_CENTER), &more, small, theme.text2, 100.0);
}
