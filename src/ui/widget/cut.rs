//! Text cut to the room there is: the only place that leaves words out. What is cut shows itself whole while the pointer
//! is over it, whoever painted it.

use std::sync::Arc;

use egui::text::{LayoutJob, TextWrapping};
use egui::{
    Align2, Color32, Context, CursorIcon, FontId, Galley, Id, LayerId, Order, Painter, Pos2, Rect, Response, Role,
    Sense, Tooltip, Ui, Vec2, WidgetInfo,
};

use super::controls::hairline;
use super::fonts::{Weight, text};
use super::theme::{Theme, size};

/// Least room for a text, in points.
const LEAST: f32 = 8.0;

/// A text laid out in the room there is.
pub struct Cut<'a> {
    words: &'a str,
    color: Color32,
    galley: Arc<Galley>,
}

impl<'a> Cut<'a> {
    /// Lays words out in a width; what does not fit is left out.
    #[must_use]
    pub fn new(painter: &Painter, words: &'a str, font: FontId, color: Color32, width: f32) -> Self {
        let mut job = LayoutJob::simple_singleline(words.to_owned(), font, color);
        job.wrap = TextWrapping::truncate_at_width(width.max(LEAST));
        Self { words, color, galley: painter.layout_job(job) }
    }

    /// Its size, in points.
    #[must_use]
    pub fn size(&self) -> Vec2 {
        self.galley.size()
    }

    /// Paints it at its upper left corner; returns whether something is left out.
    #[expect(clippy::must_use_candidate, reason = "painting is the point; whether it is cut is a bonus")]
    pub fn paint(self, painter: &Painter, at: Pos2) -> bool {
        let cut = self.galley.elided;
        if cut {
            note(painter, Rect::from_min_size(at, self.size()), self.words);
        }
        painter.galley(at, self.galley, self.color);
        cut
    }
}

/// Paints text cut to a width with an ellipsis; returns where it stands and whether something was cut.
#[expect(clippy::must_use_candidate, reason = "painting is the point; where it stands is a bonus")]
pub fn paint_cut(
    painter: &Painter,
    at: Pos2,
    align: Align2,
    words: &str,
    font: FontId,
    color: Color32,
    width: f32,
) -> (Rect, bool) {
    let cut = Cut::new(painter, words, font, color, width);
    let rect = align.anchor_size(at, cut.size());
    (rect, cut.paint(painter, rect.min))
}

/// A label whose text is cut to the width there is.
pub fn cut_label(ui: &mut Ui, words: &str, font: FontId, color: Color32, width: f32) -> Response {
    let height = ui.fonts_mut(|fonts| fonts.row_height(&font));
    let cut = Cut::new(ui.painter(), words, font, color, width);
    let (rect, response) = ui.allocate_exact_size(Vec2::new(cut.size().x.min(width), height), Sense::hover());
    cut.paint(ui.painter(), rect.min);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, words));
    response
}

/// Words that can be clicked, cut to the width there is.
pub fn cut_link(ui: &mut Ui, words: &str, font: FontId, width: f32, theme: &Theme) -> Response {
    let cut = Cut::new(ui.painter(), words, font, theme.accent, width);
    let (rect, response) = ui.allocate_exact_size(cut.size(), Sense::click());
    cut.paint(ui.painter(), rect.min);
    if response.hovered() || response.has_focus() {
        hairline(ui, rect, theme.accent);
    }
    response.widget_info(|| WidgetInfo::labeled(Role::Link, true, words));
    response.on_hover_cursor(CursorIcon::PointingHand)
}

/// The cut text under the pointer.
#[derive(Clone)]
struct Under {
    pass: u64,
    layer: LayerId,
    place: Rect,
    words: String,
}

const UNDER: &str = "cut text under the pointer";

/// Notes a text that is cut, where the pointer is over it.
fn note(painter: &Painter, place: Rect, words: &str) {
    let (ctx, layer) = (painter.ctx(), painter.layer_id());
    let place = place.intersect(painter.clip_rect());
    if layer.order == Order::Tooltip || !ctx.rect_contains_pointer(layer, place) {
        return;
    }
    let under = Under { pass: ctx.cumulative_pass_nr(), layer, place, words: words.to_owned() };
    ctx.data_mut(|data| data.insert_temp(Id::unique(UNDER), under));
}

/// Shows the cut text under the pointer whole, unless something else is said there. Call it once, after everything else.
pub fn show(ctx: &Context, theme: &Theme) {
    let pass = ctx.cumulative_pass_nr();
    let under = ctx.data(|data| data.get_temp::<Under>(Id::unique(UNDER)));
    let Some(under) = under.filter(|under| under.pass == pass) else { return };
    let own = Tooltip::tooltip_id(Id::unique(UNDER), 0);
    let is_other = |layer: &LayerId| layer.order == Order::Tooltip && layer.id != own;
    let others = ctx.memory(|memory| memory.areas().visible_layer_ids().iter().any(is_other));
    if others || ctx.input(|input| input.pointer.any_down()) {
        return;
    }
    Tooltip::always_open(ctx.clone(), under.layer, Id::unique(UNDER), under.place).gap(6.0).show(|ui| {
        ui.label(text(&under.words, size::SMALL, Weight::Regular, theme.text));
    });
}
