//! The whole program small, with the visible range: drag it, or click to go there.

use std::sync::Arc;

use egui::{Align2, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::{AT_ONCE, Places, State};
use crate::ui::part::ViewContext;
use crate::ui::widget::axis::Span;
use crate::ui::widget::controls::paint_peak;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::stack::Stack;
use crate::ui::widget::theme::size;
use crate::ui::work::{SpaceData, Window};

pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    data: &Arc<SpaceData>,
    places: &Places,
    rect: Rect,
) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let limit = context.capacity().map(|c| c.bytes.0 as f64);
    let y = Span::new(0.0, (scene.space.peak().0 as f64).max(limit.unwrap_or(0.0)).max(1.0) * 1.1);
    let key = (state.of, Arc::as_ptr(context.document) as usize, theme.dark);
    let (own, style) = (Arc::clone(data), *theme);
    let at_once = data.map.boxes.len() <= AT_ONCE;
    let window = Window { rect, x: places.whole, y };
    state.mini.show(ui, context.work, window, "minimap", key, theme.panel, at_once, move |raster| {
        let stacked = &own.by_class;
        let stack = Stack {
            points: own.map.points,
            highest: &|from, to| stacked.pyramid.max_in(&stacked.curves.total, from, to),
            group: &|_, _| 0,
            slots: &[],
            line: None,
            limit: None,
        };
        stack.draw_silhouette(raster, y, &style);
    });
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    painter.text(Pos2::new(rect.left() - 10.0, rect.center().y), Align2::RIGHT_CENTER, "Range", small, theme.text2);
    let at = |point: f64| rect.left() + (places.whole.share(point) * f64::from(rect.width())) as f32;
    if let Some(limit) = limit {
        let line = rect.bottom() - (y.share(limit) * f64::from(rect.height())) as f32;
        painter.hline(rect.x_range(), line.round(), Stroke::new(1.0, theme.over));
    }
    let peak = at(f64::from(scene.space.peak_point()) + 0.5);
    let top = rect.bottom() - (y.share(scene.space.peak().0 as f64) * f64::from(rect.height())) as f32;
    paint_peak(painter, Pos2::new(peak, top.max(rect.top() + 9.0)), theme.ink);
    let window = Rect::from_min_max(Pos2::new(at(places.x.lo), rect.top()), Pos2::new(at(places.x.hi), rect.bottom()));
    let shade = theme.canvas.gamma_multiply(0.6);
    painter.rect_filled(Rect::from_min_max(rect.min, Pos2::new(window.left(), rect.bottom())), 0.0, shade);
    painter.rect_filled(Rect::from_min_max(Pos2::new(window.right(), rect.top()), rect.max), 0.0, shade);
    painter.rect_stroke(window, 0.0, Stroke::new(1.5, theme.accent), StrokeKind::Inside);
    for x in [window.left(), window.right()] {
        let handle = Rect::from_center_size(Pos2::new(x, rect.center().y), Vec2::new(5.0, 16.0));
        painter.rect_filled(handle, 2.0, theme.accent);
    }
    let response = ui.interact(rect, ui.scope_id().with("minimap"), Sense::click_and_drag());
    response.widget_info(|| WidgetInfo::labeled(Role::Slider, true, "Visible range of the program"));
    let point_at = |x: f32| places.whole.at(f64::from((x - rect.left()) / rect.width()));
    if response.double_clicked() {
        context.shared.zoom_to(None);
    } else if response.dragged() {
        let by = f64::from(response.drag_delta().x / rect.width()) * places.whole.len();
        let from = response.interact_pointer_pos().map_or(0.0, |p| p.x) - response.drag_delta().x;
        let span = if (from - window.left()).abs() < 8.0 {
            Span::new((places.x.lo + by).clamp(0.0, places.x.hi - 4.0), places.x.hi)
        } else if (from - window.right()).abs() < 8.0 {
            Span::new(places.x.lo, (places.x.hi + by).clamp(places.x.lo + 4.0, places.whole.hi))
        } else {
            places.x.moved(by, places.whole)
        };
        context.shared.zoom_to((span.lo, span.hi));
    } else if response.clicked()
        && let Some(pos) = response.interact_pointer_pos()
    {
        let middle = point_at(pos.x);
        let half = places.x.len() / 2.0;
        let span = Span::new(middle - half, middle + half).kept_in(places.whole);
        context.shared.zoom_to((span.lo, span.hi));
    }
}
