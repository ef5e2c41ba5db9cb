//! The minimap: the whole program with the visible range, which is dragged or moved by a click.

use std::sync::Arc;

use egui::{Align2, Color32, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::state::{AT_ONCE, FrameLayout, State};
use crate::ui::chart::{Areas, Fit, Peak, Span, Window, paint_limit, paint_peaks, steps_between};
use crate::ui::part::ViewContext;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{mix, size};
use crate::ui::work::{Sheet, SpaceData};

pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    data: &Arc<SpaceData>,
    layout: &FrameLayout,
    rect: Rect,
) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let limit = context.capacity().map(|c| c.bytes.0);
    let peak = scene.space.peak().0;
    let y = Fit::All.bytes(peak, || peak, limit);
    let window = Window { rect, x: layout.whole, y };
    let key = (state.of, context.document.id(), theme.dark, limit);
    let (own, style) = (Arc::clone(data), *theme);
    let at_once = data.map.boxes.len() <= AT_ONCE;
    let sheet = Sheet { window, name: "minimap", ground: theme.panel, at_once };
    state.mini.show(ui, context.work, sheet, key, move |raster| {
        let (stacked, total) = (&own.by_class, &own.by_class.curves.total);
        let highest = |from: f64, to: f64| {
            let (from, to) = steps_between(from, to, own.map.points);
            stacked.highest(from, to)
        };
        let colors: [Color32; 1] = [mix(style.panel, style.text3, 0.55)];
        let group = |_: usize, point: u32| total.at(point);
        Areas { limit, ..Areas::new(&highest, &group, &colors) }.draw(raster, &window, &style);
    });
    let painter = ui.painter();
    let small = Weight::Regular.at(size::SMALL);
    painter.text(Pos2::new(rect.left() - 10.0, rect.center().y), Align2::RIGHT_CENTER, "Range", small, theme.text2);
    paint_limit(painter, theme, &window, limit, 1.0);
    let peak =
        Peak { x: f64::from(scene.space.peak_point()) + 0.5, y: peak as f64, words: String::new(), is_before: false };
    paint_peaks(painter, theme, &window, &[peak]);
    let shown = Rect::from_min_max(
        Pos2::new(window.x_of(layout.x.lo), rect.top()),
        Pos2::new(window.x_of(layout.x.hi), rect.bottom()),
    );
    let shade = theme.canvas.gamma_multiply(0.6);
    painter.rect_filled(Rect::from_min_max(rect.min, Pos2::new(shown.left(), rect.bottom())), 0.0, shade);
    painter.rect_filled(Rect::from_min_max(Pos2::new(shown.right(), rect.top()), rect.max), 0.0, shade);
    painter.rect_stroke(shown, 0.0, Stroke::new(1.5, theme.accent), StrokeKind::Inside);
    for x in [shown.left(), shown.right()] {
        let handle = Rect::from_center_size(Pos2::new(x, rect.center().y), Vec2::new(5.0, 16.0));
        painter.rect_filled(handle, 2.0, theme.accent);
    }
    let response = ui.interact(rect, ui.scope_id().with("minimap"), Sense::click_and_drag());
    response.widget_info(|| WidgetInfo::labeled(Role::Slider, true, "Visible range of the program"));
    if response.double_clicked() {
        context.shared.zoom_to(None);
    } else if response.dragged() {
        let by = f64::from(response.drag_delta().x / rect.width()) * layout.whole.len();
        let from = response.interact_pointer_pos().map_or(0.0, |p| p.x) - response.drag_delta().x;
        let span = if (from - shown.left()).abs() < 8.0 {
            Span::new((layout.x.lo + by).clamp(0.0, layout.x.hi - 4.0), layout.x.hi)
        } else if (from - shown.right()).abs() < 8.0 {
            Span::new(layout.x.lo, (layout.x.hi + by).clamp(layout.x.lo + 4.0, layout.whole.hi))
        } else {
            layout.x.moved(by, layout.whole)
        };
        context.shared.zoom_to((span.lo, span.hi));
    } else if response.clicked()
        && let Some(pos) = response.interact_pointer_pos()
    {
        let middle = window.x_at(pos.x);
        let half = layout.x.len() / 2.0;
        let span = Span::new(middle - half, middle + half).kept_in(layout.whole);
        context.shared.zoom_to((span.lo, span.hi));
    }
}
