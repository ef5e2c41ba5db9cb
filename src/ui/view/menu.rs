//! The menu of a buffer, the same in every view: copy its name, filter to it, hide it, pin it, show it elsewhere.

use egui::containers::menu::menu_style;
use egui::{Align, Layout, Popup, PopupCloseBehavior, PopupKind, Rect, SetOpenCommand, Ui};

use crate::analysis::scope;
use crate::model::BufferId;
use crate::ui::session::{Action, ViewContext};
use crate::ui::widget::controls::{self, menu_row};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::{Theme, size};

/// The buffer the menu was opened on: the pointer moves on, the menu stays.
#[derive(Default)]
struct Target(Option<BufferId>);

/// Opens on a right click in `rect` where `buffer` is under the pointer, and stays until something is chosen. Call it in
/// every frame, also while nothing is under the pointer.
pub fn show(ui: &Ui, context: &mut ViewContext<'_>, rect: Rect, buffer: Option<BufferId>) {
    show_with(ui, context, rect, buffer, &[]);
}

/// As [`show`], with commands of the view before the others; returns which of them was chosen.
pub fn show_with(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    rect: Rect,
    buffer: Option<BufferId>,
    own: &[&str],
) -> Option<usize> {
    let clicked = ui.rect_contains_pointer(rect) && ui.input(|input| input.pointer.secondary_clicked());
    if clicked {
        context.locals.get::<Target>().0 = buffer;
        if buffer.is_some() {
            context.shared.selected = buffer;
        }
    }
    let target = context.locals.get::<Target>().0;
    if target.is_none() && own.is_empty() {
        return None;
    }
    let id = ui.scope_id().with("buffer menu");
    let menu = Popup::new(id, ui.ctx().clone(), rect, ui.layer_id())
        .kind(PopupKind::Menu)
        .layout(Layout::top_down_justified(Align::Min))
        .style(menu_style)
        .gap(0.0)
        .open_memory(clicked.then_some(SetOpenCommand::Bool(true)))
        .at_pointer_fixed()
        .close_behavior(PopupCloseBehavior::CloseOnClick)
        .accessible_name("Buffer");
    let shown = menu.show(|ui| {
        ui.set_min_width(240.0);
        let theme = Theme::of(ui.ctx());
        let chosen = own.iter().position(|words| menu_row(ui, words, "", false, &theme).clicked());
        if let Some(buffer) = target {
            if !own.is_empty() {
                controls::rule(ui, &theme);
            }
            rows(ui, context, &theme, buffer);
        }
        chosen
    });
    shown.and_then(|shown| shown.inner)
}

fn rows(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, buffer: BufferId) {
    let Some(scene) = context.scene() else { return };
    let name = scene.program.buffer_name(buffer);
    let instruction = scene.program.buffers.instruction_of(buffer);
    let op = instruction.map(|i| scene.program.text.op_name(i)).unwrap_or_default();
    controls::cut_label(ui, &name, Weight::MonoMedium.at(size::SMALL), theme.text2, 260.0);
    let mut row = |words: &str, keys: &str| menu_row(ui, words, keys, false, theme).clicked();
    if row("Copy name", "") {
        context.actions.push(Action::Copy(name.clone()));
    }
    if !op.is_empty() && row("Copy operation", "") {
        context.actions.push(Action::Copy(op.clone()));
    }
    if row("Filter to this", "") {
        context.shared.filter = name;
        context.shared.finding = true;
    }
    let path = scope::path(&op);
    if path.len() > 1 && row("Filter to its scope", "") {
        context.shared.filter = path[..path.len() - 1].join("/");
        context.shared.finding = true;
    }
    if row("Hide", "") {
        context.shared.hidden.insert(buffer);
        context.shared.selected = None;
    }
    if row("Pin with a note", "B") {
        context.pin(buffer);
    }
    controls::rule(ui, theme);
    for view in super::VIEWS.iter().filter(|view| super::shows_buffers(view.id) && (view.has)(context.document)) {
        if view.id != context.shared.view
            && menu_row(ui, &format!("Show in {}", view.title), "", false, theme).clicked()
        {
            context.shared.selected = Some(buffer);
            context.go(view.id);
        }
    }
}
