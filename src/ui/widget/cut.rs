//! Truncated text: the only place that shortens text with an ellipsis. A path loses its middle, so that its numbered
//! scopes and its last part stay, and so does a name; any other text loses its end. Hovering over truncated text shows it in full.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, PoisonError};

use egui::text::{LayoutJob, TextWrapping};
use egui::{
    Align2, Color32, Context, CursorIcon, FontId, Galley, Id, LayerId, Order, Painter, Pos2, Rect, Response, Role,
    Sense, Tooltip, Ui, Vec2, WidgetInfo,
};

use super::controls::hairline;
use super::fonts::{Weight, text};
use super::shorter::{before_number, forms_of};
use super::telling;
use super::theme::{Theme, size};

/// Minimum width of a text in points.
const MIN_WIDTH: f32 = 8.0;

/// A text laid out in one line of limited width.
pub struct Cut<'a> {
    words: &'a str,
    color: Color32,
    galley: Arc<Galley>,
    is_truncated: bool,
}

impl<'a> Cut<'a> {
    /// Lays text out in `width` points, truncated with an ellipsis if it does not fit.
    #[must_use]
    pub fn new(painter: &Painter, words: &'a str, font: FontId, color: Color32, width: f32) -> Self {
        Self::telling(painter, (words, &[]), font, color, width)
    }

    /// As [`Self::new`], of a text some of whose parts tell it from its neighbours ([`Telling`](super::telling::Telling)).
    #[must_use]
    pub fn telling(
        painter: &Painter,
        (words, told): (&'a str, &[usize]),
        font: FontId,
        color: Color32,
        width: f32,
    ) -> Self {
        let width = width.max(MIN_WIDTH);
        let key = Shortened::key(painter, (words, told), &font, width);
        let lay = move |words: &str| {
            let mut job = LayoutJob::simple_singleline(words.to_owned(), font.clone(), color);
            job.wrap = TextWrapping::truncate_at_width(width);
            painter.layout_job(job)
        };
        match Shortened::get(painter, key) {
            Some(Form::Whole) => return Self { words, color, galley: lay(words), is_truncated: false },
            Some(Form::Shorter(form)) => return Self { words, color, galley: lay(&form), is_truncated: true },
            None => {}
        }
        let cut = Self::measured((words, told), color, &lay);
        let form = if cut.is_truncated { Form::Shorter(cut.galley.text().into()) } else { Form::Whole };
        Shortened::put(painter, key, form);
        cut
    }

    /// Tries ever shorter forms until one fits.
    fn measured((words, told): (&'a str, &[usize]), color: Color32, lay: &dyn Fn(&str) -> Arc<Galley>) -> Self {
        let whole = lay(words);
        if !whole.elided {
            return Self { words, color, galley: whole, is_truncated: false };
        }
        let candidates = telling::forms(words, told).chain(forms_of(words, kept_of(&whole)));
        let fitting = candidates.map(|words| lay(&words)).find(|galley| !galley.elided);
        let galley = fitting.unwrap_or_else(|| match before_number(words, kept_of(&whole)) {
            Some(begin) => lay(&format!("{}\u{2026}", &words[..begin])),
            None => whole,
        });
        Self { words, color, galley, is_truncated: true }
    }

    /// Size in points.
    #[must_use]
    pub fn size(&self) -> Vec2 {
        self.galley.size()
    }

    /// Paints it with its upper left corner at `at`; returns whether it is truncated.
    #[expect(clippy::must_use_candidate, reason = "most callers only need the painting")]
    pub fn paint(self, painter: &Painter, at: Pos2) -> bool {
        if self.is_truncated {
            record(painter, Rect::from_min_size(at, self.size()), self.words);
        }
        painter.galley(at, self.galley, self.color);
        self.is_truncated
    }
}

/// The form of a text that fits.
#[derive(Clone)]
enum Form {
    Whole,
    Shorter(Arc<str>),
}

/// Which form of a text fits: finding it lays out many, which no frame but the first should do.
#[derive(Clone, Default)]
struct Shortened(Arc<Mutex<HashMap<u64, Form>>>);

impl Shortened {
    /// Forms that are kept.
    const MOST: usize = 8192;

    fn of(painter: &Painter) -> Self {
        let id = Id::unique("shortened texts");
        painter.ctx().data_mut(|data| data.get_temp_mut_or_default::<Self>(id).clone())
    }

    fn key(painter: &Painter, words: (&str, &[usize]), font: &FontId, width: f32) -> u64 {
        let mut hasher = DefaultHasher::new();
        (words, font, width.to_bits(), painter.pixels_per_point().to_bits()).hash(&mut hasher);
        hasher.finish()
    }

    fn get(painter: &Painter, key: u64) -> Option<Form> {
        Self::of(painter).0.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()
    }

    fn put(painter: &Painter, key: u64, form: Form) {
        let known = Self::of(painter);
        let mut known = known.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= Self::MOST {
            known.clear();
        }
        known.insert(key, form);
    }
}

/// Number of characters of its text that a truncated line shows.
fn kept_of(galley: &Galley) -> usize {
    galley.rows.iter().map(|row| row.glyphs.len()).sum::<usize>().saturating_sub(1)
}

/// Paints text truncated to `width` points, aligned to the point `at`; returns its rectangle and whether it is truncated.
#[expect(clippy::must_use_candidate, reason = "most callers only need the painting")]
pub fn paint_cut(
    painter: &Painter,
    (at, align): (Pos2, Align2),
    words: &str,
    font: FontId,
    color: Color32,
    width: f32,
) -> (Rect, bool) {
    let cut = Cut::new(painter, words, font, color, width);
    let rect = align.anchor_size(at, cut.size());
    (rect, cut.paint(painter, rect.min))
}

/// Adds a label truncated to `width` points.
pub fn cut_label(ui: &mut Ui, words: &str, font: FontId, color: Color32, width: f32) -> Response {
    let height = ui.fonts_mut(|fonts| fonts.row_height(&font));
    let cut = Cut::new(ui.painter(), words, font, color, width);
    let (rect, response) = ui.allocate_exact_size(Vec2::new(cut.size().x.min(width), height), Sense::hover());
    cut.paint(ui.painter(), rect.min);
    response.widget_info(|| WidgetInfo::labeled(Role::Label, true, words));
    response
}

/// Adds a text link truncated to `width` points.
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

/// The truncated text under the pointer.
#[derive(Clone)]
struct Hovered {
    pass: u64,
    layer: LayerId,
    place: Rect,
    words: String,
}

const HOVERED: &str = "truncated text under the pointer";

/// Records a truncated text if the pointer is over it.
fn record(painter: &Painter, place: Rect, words: &str) {
    let (ctx, layer) = (painter.ctx(), painter.layer_id());
    let place = place.intersect(painter.clip_rect());
    if layer.order == Order::Tooltip || !ctx.rect_contains_pointer(layer, place) {
        return;
    }
    let hovered = Hovered { pass: ctx.cumulative_pass_nr(), layer, place, words: words.to_owned() };
    ctx.data_mut(|data| data.insert_temp(Id::unique(HOVERED), hovered));
}

/// Shows the truncated text under the pointer in full, unless another tooltip is open. Call once, at the end of a frame.
pub fn show(ctx: &Context, theme: &Theme) {
    let pass = ctx.cumulative_pass_nr();
    let hovered = ctx.data(|data| data.get_temp::<Hovered>(Id::unique(HOVERED)));
    let Some(hovered) = hovered.filter(|hovered| hovered.pass == pass) else { return };
    let own = Tooltip::tooltip_id(Id::unique(HOVERED), 0);
    let is_other = |layer: &LayerId| layer.order == Order::Tooltip && layer.id != own;
    let others = ctx.memory(|memory| memory.areas().visible_layer_ids().iter().any(is_other));
    if others || ctx.input(|input| input.pointer.any_down()) {
        return;
    }
    Tooltip::always_open(ctx.clone(), hovered.layer, Id::unique(HOVERED), hovered.place).gap(6.0).show(|ui| {
        ui.label(text(&hovered.words, size::SMALL, Weight::Regular, theme.text));
    });
}
