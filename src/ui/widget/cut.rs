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
        let width = width.max(MIN_WIDTH);
        let key = Shortened::key(painter, words, &font, width);
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
        let cut = Self::measured(words, color, &lay);
        let form = if cut.is_truncated { Form::Shorter(cut.galley.text().into()) } else { Form::Whole };
        Shortened::put(painter, key, form);
        cut
    }

    /// Tries ever shorter forms until one fits.
    fn measured(words: &'a str, color: Color32, lay: &dyn Fn(&str) -> Arc<Galley>) -> Self {
        let whole = lay(words);
        if let Some((lead, name)) = named(words).filter(|_| whole.elided) {
            let first = lead.split(' ').next().unwrap_or_default();
            let path = without_shape(name);
            let candidates =
                [format!("{first} \u{2026}: {name}"), format!("{first} \u{2026}: {path}"), format!("\u{2026} {path}")]
                    .into_iter()
                    .chain(shorter(path).map(|path| format!("\u{2026} {}", path.trim_start_matches("\u{2026}/"))));
            if let Some(galley) = candidates.map(|words| lay(&words)).find(|galley| !galley.elided) {
                return Self { words, color, galley, is_truncated: true };
            }
        }
        if !whole.elided {
            return Self { words, color, galley: whole, is_truncated: false };
        }
        let candidates: Vec<String> = if is_path(words) {
            shorter(words).collect()
        } else if is_name(words) {
            without_middle(words, kept_of(&whole)).collect()
        } else {
            Vec::new()
        };
        let fitting = candidates.iter().map(|words| lay(words)).find(|galley| !galley.elided);
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

    fn key(painter: &Painter, words: &str, font: &FontId, width: f32) -> u64 {
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

/// What leads to a name, and the name that tells it from others: `saved by the scan for 32 layers` and `mlp/wi_1, [4,8]`.
fn named(words: &str) -> Option<(&str, &str)> {
    let (lead, name) = words.split_once(": ")?;
    let path = without_shape(name);
    // A shape at the end says that it is a name, even if it is one of several words: `the input of each layer, [4,8]`.
    let is_name = (path.len() < name.len() || !path.contains([' ', ','])) && path.starts_with(char::is_alphabetic);
    (lead.contains(' ') && is_name).then_some((lead, name))
}

/// A name without the shape at its end: `mlp/wi_1` of `mlp/wi_1, [4,8]`.
fn without_shape(name: &str) -> &str {
    name.rsplit_once(", [").filter(|(_, shape)| shape.ends_with(']')).map_or(name, |(path, _)| path)
}

/// Number of characters of its text that a truncated line shows.
fn kept_of(galley: &Galley) -> usize {
    galley.rows.iter().map(|row| row.glyphs.len()).sum::<usize>().saturating_sub(1)
}

/// Units that a number needs to mean anything.
const UNITS: [&str; 10] = ["B", "KiB", "MiB", "GiB", "TiB", "kB", "MB", "GB", "TB", "%"];

/// Where a number begins that a text truncated after `kept` characters would show in part or without its unit: in bytes.
fn before_number(words: &str, kept: usize) -> Option<usize> {
    let end = words.char_indices().nth(kept).map_or(words.len(), |(at, _)| at);
    let mut number: Option<usize> = None;
    let mut at = 0;
    for token in words.split_inclusive(char::is_whitespace) {
        let bare = token.trim_end().trim_end_matches([',', ';', '.', ':', ')', ']']);
        let last = at + bare.len();
        let begin = number.take();
        if begin.is_some_and(|begin| begin < end) && UNITS.contains(&bare) && end < last {
            return begin;
        }
        let digits = bare.trim_start_matches(['(', '[', '+', '\u{2212}', '\u{d7}']);
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '%' | '/'));
        if is_number {
            if at < end && end < last {
                return Some(at);
            }
            number = Some(at);
        }
        at += token.len();
    }
    None
}

/// Whether a text is a path of scopes or folders rather than a sentence; a count may stand behind it.
fn is_path(words: &str) -> bool {
    let Some(slash) = words.rfind('/') else { return false };
    match words.find(' ') {
        None => true,
        Some(space) => space > slash && words[space..].trim_start().starts_with('\u{d7}'),
    }
}

/// Whether a text is the name of a file, a folder or an operation: its end tells it from its neighbours.
fn is_name(words: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    // A number has no letters.
    let begins = words.starts_with(char::is_alphanumeric) && words.contains(char::is_alphabetic);
    begins && words.contains(['_', '-', '.']) && words.chars().all(is_part)
}

/// A name with ever less of its middle, from `most` characters on down.
fn without_middle(words: &str, most: usize) -> impl Iterator<Item = String> + '_ {
    let letters: Vec<char> = words.chars().collect();
    (SHORTEST..=most.min(letters.len().saturating_sub(1))).rev().map(move |kept| {
        let head = kept / 2;
        let tail = letters.len() - (kept - head);
        letters[..head].iter().chain(&['\u{2026}']).chain(&letters[tail..]).collect()
    })
}

/// Characters that a name keeps at least.
const SHORTEST: usize = 6;

/// A path with ever less of its middle: numbered parts and the last one go last.
fn shorter(words: &str) -> impl Iterator<Item = String> + '_ {
    let parts: Vec<&str> = words.split('/').collect();
    let last = parts.len() - 1;
    let is_numbered = |part: &str| {
        let head = part.trim_end_matches(|c: char| c.is_ascii_digit() || c == '*');
        head.len() < part.len() && (head.is_empty() || head.ends_with(['_', '-', '.']))
    };
    // A folded number, `layer_*`, tells nothing alone.
    let tells_number = parts[..last].iter().any(|part| is_numbered(part) && !part.ends_with('*'));
    // What is left out first: plain parts from the front, then numbered ones.
    let mut order: Vec<usize> = (0..last).filter(|&at| !is_numbered(parts[at])).collect();
    let plain = order.len();
    order.extend((0..last).filter(|&at| is_numbered(parts[at])));
    let left_out = move |count: usize| {
        let gone = &order[..count];
        let mut out = String::new();
        let mut in_gap = false;
        for (at, part) in parts.iter().enumerate() {
            if gone.contains(&at) {
                in_gap = true;
                continue;
            }
            if in_gap {
                out.push_str(if out.is_empty() { "\u{2026}/" } else { "/\u{2026}/" });
            } else if !out.is_empty() {
                out.push('/');
            }
            in_gap = false;
            out.push_str(part);
        }
        out
    };
    let has_number = plain < last;
    // The last part gives way before the number that tells equal layers apart does.
    let squeezed = {
        let shortest = left_out(plain);
        let (head, tail) = shortest.rsplit_once('/').unwrap_or(("", &shortest));
        let head = head.trim_end_matches("/\u{2026}");
        let letters: Vec<char> = tail.chars().collect();
        let lengths =
            [24, 18, 13, 9, 7].into_iter().filter(|_| has_number).filter(|&length| length + 1 < letters.len());
        let squeezed: Vec<String> = lengths
            .filter(|_| !head.is_empty())
            .map(|length| format!("{head}/\u{2026}{}", letters[letters.len() - length..].iter().collect::<String>()))
            .collect();
        squeezed
    };
    // Where there is no room for both, the number alone.
    let numbers =
        left_out(plain).rsplit_once('/').map(|(head, _)| format!("{}/\u{2026}", head.trim_end_matches("/\u{2026}")));
    let rest = left_out.clone();
    let all = last;
    let numbers = numbers.into_iter().filter(move |words| tells_number && words.len() > '\u{2026}'.len_utf8() + 1);
    (1..=plain).map(left_out).chain(squeezed).chain(numbers).chain((plain + 1..=all).map(rest))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_behind_a_colon_stays() {
        let label = "saved by the scan for 32 layers: mlp/wi_1, [4,4096,14336]";
        assert_eq!(named(label), Some(("saved by the scan for 32 layers", "mlp/wi_1, [4,4096,14336]")));
        assert_eq!(named("Attention scores take 24.5 GiB: block by block 23.1 GiB less"), None, "a sentence");
        assert_eq!(named("embed: dot_general"), None, "short before the colon");
        let words = "saved by the scan for 32 layers: the input of each layer, [4,4096,4096]";
        assert_eq!(named(words).map(|(_, name)| without_shape(name)), Some("the input of each layer"));
    }

    #[test]
    fn a_number_is_shown_whole_or_not_at_all() {
        let words = "peak 25.9 GiB of 15.75 GiB, 98.0\u{2009}% used";
        let shown = |kept: usize| before_number(words, kept).map_or(kept, |at| words[..at].chars().count());
        assert_eq!((shown(3), shown(5), shown(13)), (3, 5, 13), "between numbers");
        assert_eq!((shown(6), shown(8), shown(9), shown(10), shown(12)), (5, 5, 5, 5, 5), "in 25.9 GiB");
        assert_eq!((shown(18), shown(25), shown(26), shown(27)), (17, 17, 26, 27), "in 15.75 GiB");
        assert_eq!((shown(30), shown(32), shown(33), shown(34)), (28, 28, 28, 34), "in 98.0 %");
        assert_eq!(before_number("fusion.123", 8), None, "a name is no number");
        assert_eq!(before_number("1.08 GiB", 5), Some(0));
    }

    #[test]
    fn a_name_keeps_its_end() {
        let name = "mt_llama3_8b_v5e16_full_b2";
        assert!(
            is_name(name)
                && !is_name("f32[4,16]")
                && !is_name("2 files")
                && is_name("08_error.txt")
                && !is_name("15.75")
                && !is_name("Activation")
        );
        let forms: Vec<String> = without_middle(name, 12).collect();
        assert_eq!(forms[0], "mt_lla\u{2026}ull_b2");
        assert_eq!(forms.last().map(String::as_str), Some("mt_\u{2026}_b2"));
    }

    #[test]
    fn a_path_keeps_its_number_and_its_end() {
        let forms: Vec<String> = shorter("model/layer_14/attn/bthk,bshk->bhts/dot_general").collect();
        assert_eq!(forms[0], "\u{2026}/layer_14/attn/bthk,bshk->bhts/dot_general");
        assert_eq!(forms[1], "\u{2026}/layer_14/\u{2026}/bthk,bshk->bhts/dot_general");
        assert_eq!(forms[2], "\u{2026}/layer_14/\u{2026}/dot_general");
        assert!(forms[3..forms.len() - 1].iter().all(|form| form.contains("layer_14")), "{forms:?}");
        assert_eq!(forms.last().map(String::as_str), Some("\u{2026}/dot_general"));
        assert_eq!(shorter("attn/dot_general").collect::<Vec<_>>(), ["\u{2026}/dot_general"]);
        assert!(
            is_path("layer_*/attn/mul  \u{d7}24")
                && !is_path("48 of 96 MiB/s")
                && !is_path("1/4 of the batch")
                && !is_path("fusion.12")
        );
    }
}
