//! The panel on the right with details of the selection; folds to a rail.

use egui::epaint::TextShape;
use egui::{Align2, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::model::BufferId;
use crate::ui::part::{View, ViewContext};
use crate::ui::session::Locals;
use crate::ui::view::PANELS;
use crate::ui::widget::controls::{hairline, vline};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::keys;
use crate::ui::widget::theme::{size, space};

/// The panel of what is selected.
const DETAILS: &str = "details";

/// Which panel is shown, by name, and the buffer that was selected when it was drawn last.
#[derive(Default)]
struct Chosen {
    panel: &'static str,
    selected: Option<BufferId>,
}

/// Chooses a panel.
pub fn choose(locals: &mut Locals, panel: &'static str) {
    locals.get::<Chosen>().panel = panel;
}

/// How much of the panel is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// The whole panel.
    Whole,
    /// A rail at the edge, with the arrow that unfolds it.
    Rail,
}

/// The title of a panel, with the number of pins on theirs.
fn title_of(panel: &View, context: &ViewContext<'_>) -> String {
    let pins = context.shared.pins.len();
    if panel.id == "pins" && pins > 0 { format!("{} {pins}", panel.title) } else { panel.title.to_owned() }
}

/// The names of the panels down a rail; returns the one that was clicked.
fn rail(ui: &Ui, context: &ViewContext<'_>, rect: Rect, panels: &[&View]) -> Option<&'static str> {
    let theme = context.theme;
    let mut top = rect.top() + 16.0;
    let mut chosen = None;
    for panel in panels {
        let font = Weight::Medium.at(size::SMALL);
        let galley = ui.painter().layout_no_wrap(title_of(panel, context), font, theme.text2);
        let place = Rect::from_min_size(Pos2::new(rect.left(), top), Vec2::new(rect.width(), galley.size().x + 16.0));
        if place.bottom() > rect.bottom() {
            break;
        }
        let response = ui.interact(place, ui.scope_id().with(("rail", panel.id)), Sense::click());
        response.widget_info(|| WidgetInfo::labeled(Role::Button, true, format!("Open {}", title_of(panel, context))));
        let color = if response.hovered() || response.has_focus() { theme.accent } else { theme.text2 };
        // Turned by a right angle, read from above.
        let at = Pos2::new(place.center().x + galley.size().y / 2.0, place.top() + 8.0);
        let words = TextShape::new(at, galley, color).with_override_text_color(color);
        ui.painter().add(words.with_angle(std::f32::consts::FRAC_PI_2));
        if response.clicked() {
            chosen = Some(panel.id);
        }
        top = place.bottom() + 8.0;
    }
    chosen
}

/// Brings Details forward where a buffer has been selected anywhere but in the panel itself: another panel would not tell
/// that anything happened.
fn bring_details(ui: &Ui, context: &mut ViewContext<'_>, rect: Rect) {
    let selected = context.shared.selected;
    let chosen = context.locals.get::<Chosen>();
    let is_new = selected.is_some() && selected != chosen.selected;
    chosen.selected = selected;
    if is_new && !ui.input(|input| input.pointer.interact_pos().is_some_and(|at| rect.contains(at))) {
        chosen.panel = DETAILS;
    }
}

/// Shows the panel, or its rail; returns whether it is to be folded or unfolded.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, rect: Rect, shown: Shown) -> bool {
    let (theme, open) = (context.theme, shown == Shown::Whole);
    ui.painter().rect_filled(rect, 0.0, theme.panel);
    vline(ui, rect.left(), rect.top(), rect.bottom(), theme.line);
    let head = Rect::from_min_size(rect.min, Vec2::new(rect.width(), space::TABS));
    let fold = if open { Rect::from_min_max(Pos2::new(rect.right() - 36.0, head.top()), head.max) } else { head };
    let response = ui.interact(fold, ui.scope_id().with("fold panel"), Sense::click());
    let words = if open { "Hide details" } else { "Show details" };
    response.widget_info(|| WidgetInfo::labeled(Role::Button, true, words));
    let color = if response.hovered() || response.has_focus() { theme.accent } else { theme.text2 };
    let arrow = if open { "\u{203a}" } else { "\u{2039}" };
    ui.painter().text(fold.center(), Align2::CENTER_CENTER, arrow, Weight::Medium.at(size::HEADLINE), color);
    let toggled = response.clicked();
    hairline(ui, head, theme.line);
    let shown: Vec<_> = PANELS.shown_for(context.document).collect();
    if !open {
        let chosen = rail(ui, context, Rect::from_min_max(head.left_bottom(), rect.max), &shown);
        if let Some(panel) = chosen {
            context.locals.get::<Chosen>().panel = panel;
        }
        return toggled || chosen.is_some();
    }
    bring_details(ui, context, rect);
    let chosen = context.locals.get::<Chosen>().panel;
    let chosen = shown.iter().position(|panel| panel.id == chosen).unwrap_or(0);
    let mut x = rect.left() + 14.0;
    for (i, panel) in shown.iter().enumerate() {
        let active = i == chosen;
        let color = if active { theme.text } else { theme.text2 };
        let weight = if active { Weight::SemiBold } else { Weight::Medium };
        let galley = ui.painter().layout_no_wrap(title_of(panel, context), weight.at(size::BODY), color);
        let tab = Rect::from_min_size(Pos2::new(x, head.top()), Vec2::new(galley.size().x + 12.0, head.height()));
        let response = ui.interact(tab, ui.scope_id().with(("panel", panel.id)), Sense::click());
        response.widget_info(|| WidgetInfo::selected(Role::Tab, true, active, panel.title));
        ui.painter().galley(Pos2::new(x + 6.0, tab.center().y - galley.size().y / 2.0), galley, color);
        if active || response.has_focus() {
            let line = Rect::from_min_max(Pos2::new(tab.left(), tab.bottom() - 3.0), tab.max);
            ui.painter().rect_filled(line, 0.0, theme.accent);
        }
        if response.clicked() {
            context.locals.get::<Chosen>().panel = panel.id;
        }
        x = tab.right() + 8.0;
    }
    let body = Rect::from_min_max(Pos2::new(rect.left() + 1.0, head.bottom()), rect.max);
    let Some(panel) = shown.get(chosen) else { return toggled };
    let mut child = ui.new_child(egui::UiBuilder::new().max_rect(body).id_salt((panel.id, "panel")));
    child.set_clip_rect(body.intersect(ui.clip_rect()));
    keys::scrolled(egui::ScrollArea::vertical().id_salt(panel.id).auto_shrink([false, false]), &mut child, |ui| {
        egui::Frame::new().inner_margin(egui::Margin::symmetric(16, 14)).show(ui, |ui| {
            ui.set_width(body.width() - 32.0);
            (panel.show)(ui, context);
        });
    });
    toggled
}
