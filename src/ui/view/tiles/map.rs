//! The heat map of tiles: all IPUs side by side, each tile a cell, drawn as one texture.

use egui::{Key, Painter, PointerButton, Pos2, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::state::State;
use crate::analysis::tiles::FloorPlan;
use crate::model::{Bytes, TileMemory, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::menu::{self, Thing};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::magnifier::Magnifier;
use crate::ui::widget::raster::{Raster, RasterArea};
use crate::ui::widget::theme::{Theme, heat, mix, size};
use crate::ui::widget::{heat_map, keys};

/// Up to this many chosen tiles are outlined; if there are more, the others are dimmed instead.
const OUTLINES: usize = 400;

/// Positions of the cells. Lengths are in points.
struct Layout {
    plan: FloorPlan,
    /// IPU, and the rectangle of its cells.
    panels: Vec<(usize, Rect)>,
    cell: Vec2,
    /// Extra space after each group of four columns of a physical floor plan.
    group_gap: f32,
    cell_to_tile: Vec<Option<u32>>,
    per_ipu: usize,
}

impl Layout {
    fn new(memory: &TileMemory, state: &State, room: Rect) -> Self {
        let per_ipu = memory.target.tiles_per_ipu as usize;
        let shown: Vec<usize> = match state.zoom.filter(|&ipu| ipu < memory.target.ipus as usize) {
            Some(ipu) => vec![ipu],
            None => (0..memory.target.ipus as usize).collect(),
        };
        let plan = if state.software_order {
            FloorPlan::plain(per_ipu)
        } else {
            FloorPlan::new(memory, shown.first().copied().unwrap_or(0))
        };
        let title = if shown.len() > 1 { 16.0 } else { 0.0 };
        // Choose the number of panels per row that gives the largest cells.
        let places = heat_map::panels(room, shown.len(), title, |panel| {
            (panel.x / plan.columns as f32).min(panel.y / plan.rows as f32 * 1.6)
        });
        let panel = places.first().map_or(Vec2::ZERO, Rect::size);
        let group_gap = if plan.is_physical && panel.x / plan.columns as f32 > 6.0 { 4.0 } else { 0.0 };
        let groups = (plan.columns / 4).saturating_sub(1) as f32;
        let cell = Vec2::new(
            (panel.x - groups * group_gap) / plan.columns as f32,
            (panel.y / plan.rows as f32).min(panel.x / plan.columns as f32 * 2.4),
        );
        let height = cell.y * plan.rows as f32;
        let magnifier = state.magnifier;
        let place = |place: Rect| magnifier.place(room, Rect::from_min_size(place.min, Vec2::new(panel.x, height)));
        let (cell, group_gap) = (cell * magnifier.factor, group_gap * magnifier.factor);
        let panels = shown.into_iter().zip(places.into_iter().map(place)).collect();
        let cell_to_tile = plan.tiles();
        Self { plan, panels, cell, group_gap, cell_to_tile, per_ipu }
    }

    /// Rectangle of a tile's cell.
    fn rect(&self, tile: usize) -> Option<Rect> {
        let (ipu, inside) = (tile / self.per_ipu.max(1), tile % self.per_ipu.max(1));
        let (_, panel) = self.panels.iter().find(|panel| panel.0 == ipu)?;
        let cell = *self.plan.cell.get(inside)?;
        let (column, row) = (cell % self.plan.columns, cell / self.plan.columns);
        let x = column as f32 * self.cell.x + (column / 4) as f32 * self.group_gap;
        Some(Rect::from_min_size(panel.min + Vec2::new(x, row as f32 * self.cell.y), self.cell))
    }

    /// The tile at a position.
    fn tile_at(&self, at: Pos2) -> Option<usize> {
        let &(ipu, panel) = self.panels.iter().find(|(_, panel)| panel.contains(at))?;
        let inside = at - panel.min;
        let group_width = self.cell.x * 4.0 + self.group_gap;
        let group = (inside.x / group_width).floor();
        let column = group as u32 * 4 + ((inside.x - group * group_width) / self.cell.x).floor().min(3.0) as u32;
        let row = (inside.y / self.cell.y).floor() as u32;
        if column >= self.plan.columns || row >= self.plan.rows {
            return None;
        }
        let tile = *self.cell_to_tile.get((row * self.plan.columns + column) as usize)?;
        tile.map(|tile| ipu * self.per_ipu + tile as usize)
    }

    fn tiles(&self) -> impl Iterator<Item = usize> + '_ {
        self.panels.iter().flat_map(|&(ipu, _)| ipu * self.per_ipu..(ipu + 1) * self.per_ipu)
    }
}

/// End of the colour scale: the limit for whole tiles, else the largest value.
pub fn scale_end(state: &State) -> u64 {
    let most = state.values.iter().max().copied().unwrap_or(0).max(1);
    if state.metric.is_whole() { state.limit.unwrap_or(most) } else { most }
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, memory: &TileMemory, state: &mut State, room: Rect) {
    let theme = context.theme;
    state.magnifier.take(ui, room);
    if keys::are_free(ui.ctx()) && ui.input(|input| !input.modifiers.any() && input.key_pressed(Key::Num0)) {
        state.magnifier = Magnifier::default();
    }
    let layout = Layout::new(memory, state, room);
    let caption = if state.software_order { "software order, row by row" } else { layout.plan.evidence };
    let font = Weight::Regular.at(size::SMALL);
    let galley = ui.painter().layout_no_wrap(caption.to_owned(), font, theme.text3);
    let at = Pos2::new(room.right() - galley.size().x, room.top() - 8.0 - galley.size().y);
    // In a narrow window the controls above need the room.
    if at.x > state.tools_right + 12.0 {
        ui.painter().galley(at, galley, theme.text3);
    }
    let dims = context.shared.tiles.len() > OUTLINES;
    let key = (
        state.of,
        (state.metric, state.software_order, state.over_only, state.zoom, state.limit),
        (theme.dark, state.magnifier.key()),
        if dims { context.shared.tiles.clone() } else { Vec::new() },
    );
    let chosen: Vec<u32> = if dims { sorted(&context.shared.tiles) } else { Vec::new() };
    let mut raster = std::mem::take(&mut state.map);
    raster.show(ui, RasterArea { rect: room, name: "tile map", ground: theme.canvas }, key, |raster| {
        paint(raster, room, &layout, state, theme, &chosen);
    });
    state.map = raster;
    let response = ui.interact(room, ui.scope_id().with("tile map"), Sense::click_and_drag());
    let mut spoken = format!("{} of {} tiles", state.metric.name(memory), thousands(memory.tile_count() as u64));
    let focused = by_keys(ui, context, state, &layout, &response);
    if let Some((tile, place)) = focused {
        let value = Bytes(state.values.get(tile).copied().unwrap_or(0));
        let (short, exact) = (context.short(value), value.exact());
        spoken = format!("{spoken}; tile {tile} {short}, {exact}");
        keys::ring_at(&ui.painter().with_clip_rect(room.expand(4.0)), place.expand(3.0), theme);
        state.magnifier.reveal(room, place);
        context.shared.hover_tile(tile as u32);
    }
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
    take_input(ui, context, state, &layout, &response);
    titles(ui, context, &layout, room);
    numbers(&ui.painter().with_clip_rect(room.intersect(ui.clip_rect())), context, (&layout, memory), room);
    outlines(&ui.painter().with_clip_rect(room.expand(4.0)), context, &layout);
    let under = response.hover_pos().and_then(|at| layout.tile_at(at)).filter(|_| !response.dragged());
    let thing = |tile: usize| {
        let bytes = state.values.get(tile).copied().unwrap_or(0).to_string();
        Thing::named(format!("tile {tile}")).copies("Copy bytes", bytes).does("Choose").does("Add").on_tile(tile as u32)
    };
    let focused = focused.map(|(tile, place)| (thing(tile), place));
    if let Some((thing, command)) = menu::of_thing(ui, context, room, under.map(thing), focused)
        && let Some(tile) = thing.shows.iter().find_map(|show| show.tile)
    {
        choose(context, tile, command == 1);
    }
    let Some(tile) = under else { return };
    context.shared.hover_tile(tile as u32);
    response.on_hover_ui_at_pointer(|ui| tooltip(ui, context, memory, state, &layout, tile));
}

/// Least size of a cell that has its tile's number in it.
const NUMBERED: Vec2 = Vec2::new(38.0, 18.0);

/// The number of each tile in its cell, where the cells are large enough.
fn numbers(painter: &Painter, context: &ViewContext<'_>, (layout, memory): (&Layout, &TileMemory), room: Rect) {
    if layout.cell.x < NUMBERED.x || layout.cell.y < NUMBERED.y {
        return;
    }
    let theme = context.theme;
    let tiles = layout.tiles().take(memory.tile_count());
    let seen = tiles.filter_map(|tile| Some((tile, layout.rect(tile).filter(|rect| room.contains_rect(*rect))?)));
    for (tile, rect) in seen {
        let font = Weight::Medium.at(size::SMALL);
        let galley = painter.layout_no_wrap(tile.to_string(), font, theme.text);
        let place = Rect::from_center_size(rect.center(), galley.size());
        // On a ground of its own: a cell may have any colour of the scale.
        painter.rect_filled(place.expand2(Vec2::new(3.0, 0.0)), 2.0, theme.panel);
        painter.galley(place.min, galley, theme.text);
    }
}

/// The name of each IPU above its cells; a click chooses all its tiles.
fn titles(ui: &Ui, context: &mut ViewContext<'_>, layout: &Layout, room: Rect) {
    let theme = context.theme;
    if layout.panels.len() < 2 {
        return;
    }
    for &(ipu, panel) in layout.panels.iter().filter(|(_, panel)| room.contains(panel.left_top())) {
        let response = heat_map::panel_title(ui, theme, panel, &format!("IPU {ipu}"), "Choose all tiles of");
        if response.clicked() {
            let adds = ui.input(|input| input.modifiers.shift);
            let mut tiles = if adds { context.shared.tiles.clone() } else { Vec::new() };
            tiles.extend((ipu * layout.per_ipu..(ipu + 1) * layout.per_ipu).map(|tile| tile as u32));
            context.shared.choose_tiles(tiles);
        }
    }
}

/// Keyboard input: arrows move between tiles, Enter chooses one, Shift Enter adds it. Returns the tile and its cell.
fn by_keys(
    ui: &Ui,
    context: &mut ViewContext<'_>,
    state: &mut State,
    layout: &Layout,
    response: &egui::Response,
) -> Option<(usize, Rect)> {
    let pressed = keys::field(ui, response);
    if !pressed.has_focus {
        return None;
    }
    let tiles: Vec<usize> = layout.tiles().filter(|&tile| layout.rect(tile).is_some()).collect();
    let known = |tile: usize| tiles.iter().position(|&other| other == tile);
    let chosen = context.shared.tiles.last().map(|&tile| tile as usize);
    let from = state.at.or(chosen).and_then(known).unwrap_or(0);
    let to = if pressed.first {
        0
    } else if pressed.last {
        tiles.len().saturating_sub(1)
    } else if pressed.by == Vec2::ZERO {
        from
    } else {
        // Cells lie in rows and columns: the next one is a cell's size away, across any gap.
        let start = tiles.get(from).and_then(|&tile| layout.rect(tile))?.center();
        let step = pressed.by * layout.cell;
        let ahead = (1..=3).map(|far| start + step * far as f32).find_map(|at| layout.tile_at(at));
        let beside = || {
            let places: Vec<Rect> = layout.panels.iter().map(|(_, panel)| *panel).collect();
            let own = layout.panels.iter().position(|(_, panel)| panel.contains(start))?;
            let (ipu, panel) = layout.panels[keys::neighbour(&places, own, pressed.by)?];
            let at = start.clamp(panel.min + layout.cell / 2.0, panel.max - layout.cell / 2.0);
            layout.tile_at(at).or(Some(ipu * layout.per_ipu))
        };
        ahead.or_else(beside).and_then(known).unwrap_or(from)
    };
    let tile = *tiles.get(to)?;
    state.at = Some(tile);
    if pressed.enter {
        choose(context, tile as u32, pressed.adds);
    }
    Some((tile, layout.rect(tile)?))
}

/// Chooses a tile alone, or toggles it in the chosen tiles.
fn choose(context: &mut ViewContext<'_>, tile: u32, adds: bool) {
    let mut chosen = context.shared.tiles.clone();
    match chosen.iter().position(|&other| other == tile).filter(|_| adds) {
        Some(at) => {
            chosen.remove(at);
        }
        None if adds => chosen.push(tile),
        None => chosen = vec![tile],
    }
    context.shared.choose_tiles(chosen);
}

/// Draws every tile.
fn paint(raster: &mut Raster, room: Rect, layout: &Layout, state: &State, theme: &Theme, chosen: &[u32]) {
    let scale = raster.scale();
    let end = scale_end(state) as f32;
    let headroom = state.metric == super::metric::Metric::Headroom;
    let pixel = |value: f32| (value * scale).round() as i64;
    let gap = heat_map::gap(layout.cell * scale);
    let tiny = layout.cell.x * scale < 1.5 || layout.cell.y * scale < 1.5;
    let mut order: Vec<usize> = layout.tiles().collect();
    if tiny {
        // If many tiles share a pixel, the fullest is drawn last.
        order.sort_by_key(|&tile| state.values.get(tile).copied().unwrap_or(0));
    }
    let mut over = Vec::new();
    for tile in order {
        let Some(rect) = layout.rect(tile) else { continue };
        let value = state.values.get(tile).copied().unwrap_or(0);
        let is_over = state.metric.is_whole() && state.limit.is_some_and(|limit| value > limit);
        let (x0, y0) = (pixel(rect.left() - room.left()), pixel(rect.top() - room.top()));
        let (x1, y1) = (pixel(rect.right() - room.left()) - gap, pixel(rect.bottom() - room.top()) - gap);
        let (x1, y1) = (x1.max(x0 + 1), y1.max(y0 + 1));
        if is_over {
            over.push((x0, y0, x1, y1));
            continue;
        }
        let share = value as f32 / end;
        let mut color = heat(theme, if headroom { 1.0 - share } else { share });
        let dimmed = !chosen.is_empty() && chosen.binary_search(&(tile as u32)).is_err();
        if state.over_only || dimmed {
            color = mix(color, theme.canvas, 0.62);
        }
        raster.fill(x0, y0, x1, y1, color);
    }
    heat_map::paint_over(raster, theme, &over);
}

fn sorted(tiles: &[u32]) -> Vec<u32> {
    let mut tiles = tiles.to_vec();
    tiles.sort_unstable();
    tiles
}

/// Pointer input: click, shift-click, drag, double click.
fn take_input(ui: &Ui, context: &mut ViewContext<'_>, state: &mut State, layout: &Layout, response: &egui::Response) {
    let theme = context.theme;
    let adds = ui.input(|input| input.modifiers.shift || input.modifiers.command);
    if response.drag_started_by(PointerButton::Primary) {
        state.drag_from = ui.input(|input| input.pointer.press_origin());
    }
    if let (Some(from), Some(to)) = (state.drag_from, response.interact_pointer_pos()) {
        let frame = Rect::from_two_pos(from, to);
        if response.drag_stopped() {
            let mut chosen = if adds { context.shared.tiles.clone() } else { Vec::new() };
            let inside = layout.tiles().filter(|&tile| layout.rect(tile).is_some_and(|cell| frame.intersects(cell)));
            let inside: Vec<u32> = inside.map(|tile| tile as u32).collect();
            chosen.extend(inside);
            chosen.sort_unstable();
            chosen.dedup();
            context.shared.choose_tiles(chosen);
            state.drag_from = None;
        } else {
            ui.painter().rect(
                frame,
                0.0,
                theme.accent.gamma_multiply(0.15),
                Stroke::new(1.5, theme.accent),
                StrokeKind::Inside,
            );
        }
        return;
    }
    let Some(at) = response.interact_pointer_pos() else { return };
    let tile = layout.tile_at(at);
    if response.double_clicked() {
        // Out of the magnified map first, then from one IPU to all of them.
        if state.magnifier.is_whole() {
            state.zoom = match (state.zoom, tile) {
                (None, Some(tile)) => Some(tile / layout.per_ipu.max(1)),
                _ => None,
            };
        }
        state.magnifier = Magnifier::default();
    } else if response.clicked() {
        match tile {
            Some(tile) => choose(context, tile as u32, adds),
            None => context.shared.choose_tiles(Vec::new()),
        }
    }
}

/// Outlines of what is chosen and what is under the pointer.
fn outlines(painter: &Painter, context: &ViewContext<'_>, layout: &Layout) {
    let theme = context.theme;
    if context.shared.tiles.len() <= OUTLINES {
        for &tile in &context.shared.tiles {
            if let Some(rect) = layout.rect(tile as usize) {
                let rect = rect.expand(1.0);
                painter.rect_stroke(rect, 0.0, Stroke::new(2.0, theme.halo), StrokeKind::Outside);
                painter.rect_stroke(rect, 0.0, Stroke::new(2.5, theme.ink), StrokeKind::Middle);
            }
        }
    }
    if let Some(rect) = context.shared.tile_hovered.and_then(|tile| layout.rect(tile as usize)) {
        painter.rect_stroke(rect, 0.0, Stroke::new(1.5, theme.ink), StrokeKind::Outside);
    }
}

fn tooltip(ui: &mut Ui, context: &ViewContext<'_>, memory: &TileMemory, state: &State, layout: &Layout, tile: usize) {
    let theme = context.theme;
    let ipu = memory.ipu_of(tile);
    let where_ = if memory.target.ipus > 1 { format!(" on IPU {ipu}") } else { String::new() };
    ui.label(text(format!("tile {tile}{where_}"), size::BODY, Weight::SemiBold, theme.text));
    if layout.plan.is_physical
        && let Some(cell) = layout.plan.cell.get(tile % layout.per_ipu.max(1))
    {
        let words =
            format!("physical {cell}: row {}, column {}", cell / layout.plan.columns, cell % layout.plan.columns);
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    }
    let value = Bytes(state.values.get(tile).copied().unwrap_or(0));
    let words = format!("{}  {}", state.metric.name(memory), context.short(value));
    ui.label(text(words, size::BODY, Weight::Medium, theme.text));
    ui.label(text(value.exact(), size::SMALL, Weight::Mono, theme.text2));
    let whole = memory.must_fit().and_then(|bytes| bytes.get(tile)).copied();
    if let (Some(bytes), Some(limit)) = (whole, state.limit)
        && bytes > limit
    {
        let words = format!("{} over capacity", context.short(Bytes(bytes - limit)));
        ui.label(text(words, size::SMALL, Weight::Medium, theme.danger));
    }
}
