//! The context menu of a buffer or of any other named thing, the same in every view: copy its name, filter to it, hide
//! it, pin it, show it in another view. It opens on a right click, or by key for the item under the keyboard cursor.

use egui::containers::menu::menu_style;
use egui::{Align, Context, Id, Layout, Popup, PopupCloseBehavior, PopupKind, Pos2, Rect, SetOpenCommand, Ui, Vec2};

use crate::analysis::Scene;
use crate::analysis::names::scope;
use crate::model::BufferId;
use crate::ui::part::{Action, ViewContext};
use crate::ui::widget::controls::{self, menu_row};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::keys;
use crate::ui::widget::table::TableResponse;
use crate::ui::widget::theme::size;

/// A named thing other than a buffer: a tile, a variable, an array, a step.
#[derive(Debug, Clone, Default)]
pub struct Thing {
    /// Its name.
    pub name: String,
    /// Other text to copy: menu label and text.
    pub copies: Vec<(&'static str, String)>,
    /// Menu labels of commands of its own view.
    pub own: Vec<&'static str>,
    /// Views that show it.
    pub shows: Vec<Show>,
}

impl Thing {
    /// A thing with this name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Adds a text to copy, unless it is empty.
    #[must_use]
    pub fn copies(mut self, words: &'static str, what: impl Into<String>) -> Self {
        let what = what.into();
        if !what.is_empty() && what != self.name {
            self.copies.push((words, what));
        }
        self
    }

    /// Adds a command of its view.
    #[must_use]
    pub fn does(mut self, words: &'static str) -> Self {
        self.own.push(words);
        self
    }

    /// Adds a view that shows it.
    #[must_use]
    pub fn shown_in(mut self, view: &'static str) -> Self {
        self.shows.push(Show { view, tile: None });
        self
    }

    /// Adds the views that show a tile.
    #[must_use]
    pub fn on_tile(mut self, tile: u32) -> Self {
        self.shows.extend(["tiles", "memory", "liveness"].map(|view| Show { view, tile: Some(tile) }));
        self
    }
}

/// How another view shows something.
#[derive(Debug, Clone, Copy)]
pub struct Show {
    /// The view.
    pub view: &'static str,
    /// The tile to choose there.
    pub tile: Option<u32>,
}

/// Width of a menu; a longer row makes it wider.
const WIDTH: f32 = 220.0;

/// Subject of a menu.
#[derive(Debug, Clone)]
enum What {
    Buffer(BufferId),
    Thing(Thing),
}

/// Subject of the open menu, kept while the pointer moves on.
#[derive(Default)]
struct MenuTarget {
    what: Option<What>,
    /// Position of a menu opened by key.
    at: Option<Pos2>,
    /// Whether its first row takes the focus.
    focus: bool,
    /// Widget that had the focus before.
    back: Option<Id>,
}

/// The buffer under the keyboard cursor, and its rectangle.
#[derive(Default)]
struct Aim(Option<(BufferId, Rect)>);

/// Sets the buffer under the keyboard cursor; call it before the view shows its menu.
pub fn aim(context: &mut ViewContext<'_>, buffer: Option<BufferId>, place: Rect) {
    context.locals.get::<Aim>().0 = buffer.map(|buffer| (buffer, place));
}

/// Opens on a right click in `rect` if `buffer` is under the pointer, and stays until something is chosen. Call it in
/// every frame, also while nothing is under the pointer.
pub fn show(ui: &Ui, context: &mut ViewContext<'_>, rect: Rect, buffer: Option<BufferId>) {
    show_with(ui, context, rect, buffer, &[]);
}

/// As [`show`], with commands of the view first; returns the index of the chosen one.
pub fn show_with(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    rect: Rect,
    buffer: Option<BufferId>,
    own: &[&str],
) -> Option<usize> {
    let aim = context.locals.get::<Aim>().0.take();
    // The selection has a menu even if nothing has the focus.
    let selected = context.shared.selected.filter(|_| !keys::is_in_field(ui.ctx()));
    let by_key = aim.or(selected.map(|buffer| (buffer, Rect::from_min_size(rect.min, Vec2::splat(64.0)))));
    let under = buffer.map(What::Buffer);
    let by_key = by_key.map(|(buffer, place)| (What::Buffer(buffer), place));
    let opened = open(ui, context, rect, under, by_key);
    if opened && let Some(What::Buffer(buffer)) = context.locals.get::<MenuTarget>().what {
        context.shared.select(buffer);
    }
    let what = context.locals.get::<MenuTarget>().what.clone();
    if what.is_none() && own.is_empty() {
        return None;
    }
    popup(ui, context, rect, opened, |ui, context| {
        let chosen = own.iter().position(|words| row(ui, context, words, ""));
        if let Some(What::Buffer(buffer)) = what {
            if !own.is_empty() {
                controls::rule(ui, context.theme);
            }
            rows(ui, context, buffer);
        }
        chosen
    })
}

/// The menu of the rows of a table. Returns the thing and the index of its own command that was chosen.
pub fn of_rows(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    rect: Rect,
    table: &TableResponse,
    thing: impl Fn(usize) -> Thing,
) -> Option<(Thing, usize)> {
    of_thing(ui, context, rect, table.hovered.map(&thing), table.focused.map(|(row, place)| (thing(row), place)))
}

/// The menu of the thing under the pointer in `rect`, or under the keyboard cursor.
pub fn of_thing(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    rect: Rect,
    under: Option<Thing>,
    focused: Option<(Thing, Rect)>,
) -> Option<(Thing, usize)> {
    let by_key = focused.map(|(thing, place)| (What::Thing(thing), place));
    let opened = open(ui, context, rect, under.map(What::Thing), by_key);
    let Some(What::Thing(thing)) = context.locals.get::<MenuTarget>().what.clone() else { return None };
    let chosen = popup(ui, context, rect, opened, |ui, context| thing_rows(ui, context, &thing));
    chosen.map(|chosen| (thing, chosen))
}

/// Records the subject of the menu if it is requested in this frame. Returns whether it is.
fn open(ui: &Ui, context: &mut ViewContext<'_>, rect: Rect, under: Option<What>, by_key: Option<(What, Rect)>) -> bool {
    if ui.rect_contains_pointer(rect) && ui.input(|input| input.pointer.secondary_clicked()) {
        *context.locals.get::<MenuTarget>() = MenuTarget { what: under, ..MenuTarget::default() };
        return true;
    }
    let Some((what, place)) = by_key.filter(|_| keys::take_menu_request(ui.ctx())) else { return false };
    let at = place.intersect(rect);
    let at = if at.is_positive() { at.center() } else { rect.center() };
    let back = ui.memory(egui::Memory::focused);
    *context.locals.get::<MenuTarget>() = MenuTarget { what: Some(what), at: Some(at), focus: true, back };
    true
}

fn popup(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    rect: Rect,
    opened: bool,
    rows: impl FnOnce(&mut Ui, &mut ViewContext<'_>) -> Option<usize>,
) -> Option<usize> {
    let (at, name) = {
        let target = context.locals.get::<MenuTarget>();
        let name = match &target.what {
            Some(What::Thing(thing)) => thing.name.clone(),
            _ => "Buffer".to_owned(),
        };
        (target.at, name)
    };
    let menu = Popup::new(ui.scope_id().with("buffer menu"), ui.ctx().clone(), rect, ui.layer_id())
        .kind(PopupKind::Menu)
        .layout(Layout::top_down_justified(Align::Min))
        .style(menu_style)
        .gap(0.0)
        .open_memory(opened.then_some(SetOpenCommand::Bool(true)))
        .close_behavior(PopupCloseBehavior::CloseOnClick)
        .accessible_name(name);
    let menu = match at {
        Some(at) => menu.at_position(at),
        None => menu.at_pointer_fixed(),
    };
    let shown = menu.show(|ui| {
        ui.set_width(WIDTH);
        rows(ui, context)
    });
    // It may already have been closed, for instance by Esc.
    if context.locals.get::<MenuTarget>().back.is_some() && !opened && !Popup::is_any_open(ui.ctx()) {
        give_back(ui.ctx(), context);
    }
    shown.and_then(|shown| shown.inner)
}

/// Returns the focus to the widget that had it before the menu.
fn give_back(ctx: &Context, context: &mut ViewContext<'_>) {
    if let Some(id) = context.locals.get::<MenuTarget>().back.take() {
        ctx.memory_mut(|memory| memory.request_focus(id));
    }
}

/// A menu row; choosing it by key closes the menu, as a click does.
fn row(ui: &mut Ui, context: &mut ViewContext<'_>, words: &str, keys: &str) -> bool {
    let theme = context.theme;
    let response = menu_row(ui, words, keys, theme);
    if std::mem::take(&mut context.locals.get::<MenuTarget>().focus) {
        response.request_focus();
    }
    if response.clicked() {
        ui.close();
    }
    response.clicked()
}

fn rows(ui: &mut Ui, context: &mut ViewContext<'_>, buffer: BufferId) {
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let name = scene.program.buffer_name(buffer);
    let op = scene.analysis.op_name(scene.program, buffer);
    controls::cut_label(ui, &name, Weight::MonoMedium.at(size::SMALL), theme.text2, WIDTH);
    if row(ui, context, "Copy name", "") {
        context.actions.push(Action::Copy(name.clone()));
    }
    if !op.is_empty() && row(ui, context, "Copy operation", "") {
        context.actions.push(Action::Copy(op.clone()));
    }
    if row(ui, context, "Copy row", "") {
        context.actions.push(Action::Copy(as_row(scene, buffer)));
    }
    if row(ui, context, "Filter to this", "") {
        context.shared.find(name);
    }
    let path = scope::path(&op);
    if path.len() > 1 && row(ui, context, "Filter to its scope", "") {
        context.shared.find(path[..path.len() - 1].join("/"));
    }
    if row(ui, context, "Hide", "") {
        context.shared.hide(buffer);
    }
    if row(ui, context, "Pin with a note", "B") {
        context.pin(buffer);
    }
    controls::rule(ui, context.theme);
    for view in context.views.shown_for(context.document).filter(|view| view.shows_buffers) {
        if view.id != context.shared.view && row(ui, context, &format!("Show in {}", view.title), "") {
            context.shared.select(buffer);
            context.go(view.id);
        }
    }
}

/// A buffer in a line with tabs, as a spreadsheet takes it: name, operation or label, shape, class, bytes, and the steps
/// at which it is live.
fn as_row(scene: Scene<'_>, buffer: BufferId) -> String {
    let Scene { program, analysis, .. } = scene;
    let own = || analysis.labels(program).source_name(program, buffer);
    let label = analysis.label(program, buffer).map(|label| label.text);
    let op = label.unwrap_or_else(|| scope::without_attributes(&own()).into_owned());
    let shape = program.buffer_shape(buffer).map(|(shape, node)| shape.text_of(node)).unwrap_or_default();
    let live = analysis.live.as_ref().and_then(|live| live.of(buffer));
    let (from, to) = live.map(|(from, to)| (from.to_string(), to.to_string())).unwrap_or_default();
    let class = analysis.class_now(program, buffer).name().to_owned();
    let bytes = program.buffers.size_of(buffer).0.to_string();
    [program.buffer_name(buffer), op, shape, class, bytes, from, to].join("\t")
}

fn thing_rows(ui: &mut Ui, context: &mut ViewContext<'_>, thing: &Thing) -> Option<usize> {
    let theme = context.theme;
    controls::cut_label(ui, &thing.name, Weight::MonoMedium.at(size::SMALL), theme.text2, WIDTH);
    if row(ui, context, "Copy name", "") {
        context.actions.push(Action::Copy(thing.name.clone()));
    }
    for (words, what) in &thing.copies {
        if row(ui, context, words, "") {
            context.actions.push(Action::Copy(what.clone()));
        }
    }
    let chosen = thing.own.iter().position(|words| row(ui, context, words, ""));
    let shows: Vec<&Show> = thing.shows.iter().filter(|show| show.view != context.shared.view).collect();
    let shown = |show: &Show| context.views.shown(show.view, context.document);
    let shows: Vec<_> = shows.into_iter().filter_map(|show| Some((show, shown(show)?))).collect();
    if !shows.is_empty() {
        controls::rule(ui, context.theme);
    }
    for (show, view) in shows {
        if row(ui, context, &format!("Show in {}", view.title), "") {
            if let Some(tile) = show.tile {
                context.shared.choose_tiles(vec![tile]);
            }
            context.go(show.view);
        }
    }
    chosen
}
