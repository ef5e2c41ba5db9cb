//! The glossary: a page of terms with a search, and the way there from a term on the screen. Whatever text is under the
//! pointer, or in the widget that has the focus, is looked up in what has just been painted, so that no view needs to
//! know of it.

use egui::{Context, Id, LayerId, Order, Rect, Role, Shape, Tooltip, Ui, WidgetInfo};

use super::state::Help;
use super::terms::{self, Term};
use super::{paragraph, scrolled};
use crate::ui::widget::controls;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// How long the pointer rests on a term until its meaning is shown, in seconds.
const REST: f64 = 0.7;

/// The terms, those that match the search only.
pub fn page(ui: &mut Ui, theme: &Theme, help: &mut Help, height: f32) {
    ui.horizontal(|ui| {
        let field = egui::TextEdit::singleline(&mut help.search)
            .hint_text("Search terms")
            .font(Weight::Regular.at(size::BODY))
            .desired_width((ui.available_width() - 120.0).clamp(120.0, 420.0));
        let response = ui.add(field);
        response.widget_info(|| WidgetInfo::labeled(Role::TextInput, true, "Search terms"));
        if std::mem::take(&mut help.focus_search) {
            response.request_focus();
        }
        if !help.search.is_empty() && controls::link(ui, "Show all", theme).clicked() {
            help.search.clear();
        }
    });
    ui.add_space(8.0);
    let found = terms::matching(&help.search);
    scrolled(ui, height - 60.0, |ui| {
        if found.is_empty() {
            ui.label(text("No term matches", size::BODY, Weight::Regular, theme.text2));
        }
        for term in found {
            ui.label(text(term.name, size::BODY, Weight::SemiBold, theme.text));
            paragraph(ui, theme, term.meaning);
            ui.add_space(8.0);
        }
    });
    let words = "F1 with the pointer on a word of the screen, or the focus on it, opens the glossary at that word";
    ui.add(egui::Label::new(text(words, size::SMALL, Weight::Regular, theme.text3)).wrap());
}

/// The term under the pointer, else that of the widget that has the focus.
pub fn pointed_at(ctx: &Context) -> Option<&'static Term> {
    let kept = ctx.data(|data| data.get_temp::<Pointed>(Id::unique(POINTED))).unwrap_or_default();
    let term = |words: Option<String>| words.and_then(|words| terms::within(&words));
    term(kept.words).or_else(|| term(kept.focused))
}

/// What the pointer and the focus were on in the last frame.
#[derive(Clone, Default)]
struct Pointed {
    /// The words under the pointer, and those of the widget that has the focus.
    words: Option<String>,
    focused: Option<String>,
    place: Option<Rect>,
    since: f64,
    /// Where the pointer was pressed and has been since: what a click opened is not to be covered.
    clicked: Option<Rect>,
}

/// How far the pointer goes from where it was pressed until meanings are shown again, in points.
const CLICKED: f32 = 16.0;

const POINTED: &str = "term under the pointer";

/// Notes which term the pointer is on, and shows its meaning once it rests there, unless another tooltip is open. Call it
/// once, at the end of a frame.
pub fn show(ctx: &Context, theme: &Theme) {
    let now = ctx.input(|input| input.time);
    let pointer = ctx.pointer_hover_pos().filter(|_| !ctx.input(|input| input.pointer.any_down()));
    let under = pointer.and_then(|at| Some((at, ctx.layer_id_at(at)?)));
    let found = under.and_then(|(at, layer)| text_at(ctx, layer, Rect::from_min_max(at, at)));
    let focused = ctx.memory(egui::Memory::focused).and_then(|id| ctx.read_response(id));
    let focused = focused.and_then(|widget| text_at(ctx, widget.layer_id, widget.rect));
    let before = ctx.data(|data| data.get_temp::<Pointed>(Id::unique(POINTED))).unwrap_or_default();
    let place = found.as_ref().map(|(_, place)| *place);
    let is_same = place == before.place;
    let since = if is_same { before.since } else { now };
    let label = found.as_ref().and_then(|(words, _)| terms::of_label(words));
    // Which term they have is looked up once somebody asks.
    let (words, focused) = (found.map(|(words, _)| words), focused.map(|(words, _)| words));
    let clicked = clicked(ctx, before.clicked);
    ctx.data_mut(|data| data.insert_temp(Id::unique(POINTED), Pointed { words, focused, place, since, clicked }));
    if clicked.is_some() {
        return;
    }
    let (Some(term), Some(place), Some((_, layer))) = (label, place, under) else { return };
    let left = REST - (now - since);
    if left > 0.0 {
        return ctx.request_repaint_after(std::time::Duration::from_secs_f64(left));
    }
    let own = Tooltip::tooltip_id(Id::unique(POINTED), 0);
    let is_other = |layer: &LayerId| layer.order == Order::Tooltip && layer.id != own;
    if ctx.memory(|memory| memory.areas().visible_layer_ids().iter().any(is_other)) {
        return;
    }
    Tooltip::always_open(ctx.clone(), layer, Id::unique(POINTED), place).gap(6.0).show(|ui| {
        ui.label(text(term.name, size::SMALL, Weight::SemiBold, theme.text));
        ui.label(text(term.meaning, size::SMALL, Weight::Regular, theme.text2));
        ui.label(text("F1: glossary", size::SMALL, Weight::Regular, theme.text3));
    });
}

/// Where the pointer was pressed, until it has left: with the text there, such as the title of a tab.
fn clicked(ctx: &Context, before: Option<Rect>) -> Option<Rect> {
    let at = ctx.pointer_hover_pos()?;
    if !ctx.input(|input| input.pointer.any_pressed()) {
        return before.filter(|place| place.contains(at));
    }
    let point = Rect::from_min_max(at, at);
    let words = ctx.layer_id_at(at).and_then(|layer| text_at(ctx, layer, point)).map(|(_, place)| place);
    Some(words.unwrap_or(point).expand(CLICKED))
}

/// The text that is painted last in a layer where it touches a place, and where it stands.
fn text_at(ctx: &Context, layer: LayerId, place: Rect) -> Option<(String, Rect)> {
    ctx.graphics(|graphics| {
        let mut found = None;
        for painted in graphics.get(layer)?.all_entries() {
            if painted.clip_rect.intersects(place) {
                touched(&painted.shape, painted.clip_rect, place, &mut found);
            }
        }
        found
    })
}

fn touched(shape: &Shape, clip: Rect, place: Rect, found: &mut Option<(String, Rect)>) {
    match shape {
        Shape::Vec(shapes) => shapes.iter().for_each(|shape| touched(shape, clip, place, found)),
        Shape::Text(text) => {
            let rect = Rect::from_min_size(text.pos, text.galley.size()).intersect(clip);
            // An empty place is a point; what only touches a widget's edge is not its text.
            let is_it = if place.is_positive() { place.contains(rect.center()) } else { rect.contains(place.min) };
            if is_it && rect.is_positive() {
                *found = Some((text.galley.job.text.clone(), rect));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use egui::Pos2;

    use super::*;

    #[test]
    fn a_text_is_found_where_it_is_painted() {
        let ctx = Context::default();
        let mut places = Vec::new();
        let output = ctx.run_ui(egui::RawInput::default(), |ui| {
            let response = ui.label("Fragmentation");
            let at = |pos: Pos2| text_at(ui.ctx(), ui.layer_id(), Rect::from_min_max(pos, pos)).map(|found| found.0);
            places = vec![at(response.rect.center()), at(response.rect.right_bottom() + egui::vec2(40.0, 40.0))];
        });
        output.drop_without_applying_deltas();
        assert_eq!(places.pop(), Some(None));
        assert_eq!(
            places.pop().flatten().and_then(|words| terms::of_label(&words)).map(|term| term.name),
            Some("Fragmentation")
        );
    }
}
