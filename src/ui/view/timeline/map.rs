//! The memory map: every buffer as a box; x is program order, y is the address.

use std::sync::Arc;

use egui::{Align2, Pos2, Rangef, Rect, Role, Sense, Stroke, StrokeKind, Ui, Vec2, WidgetInfo};

use super::groups::Groups;
use super::state::{AT_ONCE, Drawn, FrameLayout, State};
use super::unwritten::unwritten;
use crate::analysis::live_at::{Residency, argument_before};
use crate::analysis::map::MapBox;
use crate::analysis::names::scope;
use crate::analysis::{Scene, category, unpadded};
use crate::model::{Bytes, UnitSystem, percent, thousands};
use crate::ui::chart::{self, Reach, Span, Window, YAxis};
use crate::ui::part::ViewContext;
use crate::ui::session::Document;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{Hatch, Raster};
use crate::ui::widget::theme::{NO_MATCH, Theme, mix, size};
use crate::ui::work::{Highlight, Sheet, SpaceData};

/// Minimum width and height of a box with a label, in points.
const LABEL: Vec2 = Vec2::new(90.0, 19.0);

/// Maximum number of labelled boxes.
const MAX_NAMES: usize = 600;

/// The range of addresses.
pub fn addresses(context: &ViewContext<'_>, data: &SpaceData) -> Reach {
    Reach::addresses(data.map.height, context.capacity().map(|c| c.bytes.0))
}

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, state: &mut State, drawn: Drawn<'_>) {
    let Drawn { data, groups, layout } = drawn;
    let theme = context.theme;
    let Some(scene) = context.scene() else { return };
    let rect = layout.map;
    let addresses = addresses(context, data);
    let (whole, y) = (addresses.whole, addresses.visible(state.addresses));
    let limit = context.capacity().map(|c| c.bytes.0);
    let key = (
        state.of,
        state.grouping,
        context.document.id(),
        limit,
        (theme.dark, groups.stacked().names.len(), state.show_padding),
        context.find_key(),
    );
    let at_once = data.map.boxes.len() <= AT_ONCE;
    let window = Window { rect, x: layout.x, y };
    let picture = Picture {
        document: Arc::clone(context.document),
        program: context.shared.program,
        data: Arc::clone(data),
        groups: groups.clone(),
        theme: *theme,
        window,
        limit,
        show_padding: state.show_padding,
        lit: context.lit(),
    };
    let sheet = Sheet { window, name: "memory map", ground: theme.panel, at_once };
    let named = state.map.show(ui, context.work, sheet, key, move |raster| picture.paint(raster));
    let named = named.cloned().unwrap_or_default();
    let box_rect = |item: &MapBox| {
        let end = item.address.saturating_add(item.size) as f64;
        window.rect_of((f64::from(item.start), f64::from(item.end) + 1.0), (item.address as f64, end))
    };
    let painter = ui.painter().with_clip_rect(rect.intersect(ui.clip_rect()));
    // No label under the limit line.
    let line = limit.map(|limit| window.y_of(limit as f64));
    let is_crossed = |row: u32| {
        let middle = data.map.boxes.get(row as usize).map(|item| box_rect(item).intersect(rect).center().y);
        line.zip(middle).is_some_and(|(line, middle)| (line - middle).abs() < LABEL.y / 2.0)
    };
    let named: Vec<u32> = named.into_iter().filter(|&row| !is_crossed(row)).collect();
    let cursor = window.x_of(f64::from(context.step()) + 0.5);
    let hole = hole(context, &window);
    // The flag of a limit out of sight moves the words by its height.
    let moves = if limit.is_some_and(|limit| limit as f64 > window.y.hi) { 24.0 } else { 0.0 };
    let words_of = |hole: &Hole| hole.words(&painter, theme).expand2(Vec2::new(0.0, moves));
    let mut taken: Vec<Rect> = hole.as_ref().map(words_of).into_iter().collect();
    labels(
        &painter,
        state,
        &named,
        ((scene, context.program_id()), cursor, context.options.units),
        (drawn, &mut taken),
        &box_rect,
    );
    unwritten(&painter, context, data, &window, &mut taken);
    axis(ui, context, data, &window);
    let flag = chart::limit(ui, theme, &window, limit, context.options.units);
    state.limit_flags.extend(flag);
    if let Some(item) = context.shared.selected.and_then(|buffer| data.box_of(buffer)) {
        let outline = box_rect(item).expand(1.0);
        painter.rect_stroke(outline.expand(2.5), 0.0, Stroke::new(2.0, theme.halo), StrokeKind::Outside);
        painter.rect_stroke(outline, 0.0, Stroke::new(2.5, theme.ink), StrokeKind::Outside);
    }
    neighbourhood(&painter, context, data, layout, &box_rect);
    if let Some(hole) = hole {
        hole.paint(&painter, theme, flag);
    }
    let response = ui.interact(rect, ui.scope_id().with("map"), Sense::click_and_drag());
    let spoken = format!("Memory map, {} buffers", thousands(data.map.boxes.len() as u64));
    response.widget_info(|| WidgetInfo::labeled(Role::Image, true, &spoken));
    state.dragging_map = response.dragged();
    let Some(at) = response.hover_pos() else { return };
    let point = window.step_at(at.x, data.map.points);
    context.shared.hover_step(point);
    let slack = y.len() / f64::from(rect.height().max(1.0));
    let address = window.at(at).1;
    let hit = hit(data, point, address, slack, layout.x.len() / f64::from(rect.width().max(1.0)));
    if response.double_clicked() {
        match hit {
            Some(item) => {
                context.shared.zoom_to(fit_time(&item, layout.whole));
                state.addresses = Some(fit_addresses(&item, whole));
                context.shared.select(item.buffer);
            }
            None => {
                context.shared.zoom_to(None);
                state.addresses = None;
            }
        }
        return;
    }
    if response.clicked() {
        context.shared.select(hit.map(|item| item.buffer));
    }
    let Some(item) = hit else { return };
    context.shared.hover(item.buffer);
    if response.dragged() {
        return;
    }
    painter.rect_stroke(box_rect(&item), 0.0, Stroke::new(1.5, theme.ink), StrokeKind::Inside);
    response.on_hover_ui_at_pointer(|ui| tooltip(ui, context, scene, &item));
}

/// Marks what is related to the selected buffer: buffers that share its memory are outlined, its definition and readers
/// are marked on its lower edge.
fn neighbourhood(
    painter: &egui::Painter,
    context: &mut ViewContext<'_>,
    data: &SpaceData,
    layout: &FrameLayout,
    box_rect: &dyn Fn(&MapBox) -> Rect,
) {
    let theme = context.theme;
    let Some(buffer) = context.shared.selected else { return };
    let Some(item) = data.box_of(buffer).copied() else { return };
    let Some(related) = context.related_to_buffer(buffer) else { return };
    for (other, _) in related.sharing.iter().take(MAX_NAMES) {
        let rect = box_rect(other);
        if rect.intersects(layout.map) {
            let dashes = [rect.left_top(), rect.right_top(), rect.right_bottom(), rect.left_bottom(), rect.left_top()];
            painter.extend(egui::Shape::dashed_line(&dashes, Stroke::new(1.5, theme.ink), 5.0, 4.0));
        }
    }
    let y = box_rect(&item).bottom().clamp(layout.map.top(), layout.map.bottom() - 2.0);
    let mut last = f32::MIN;
    for &(point, _) in &related.uses.readers {
        let x = layout.x_of(f64::from(point) + 0.5);
        if layout.map.x_range().contains(x) && x - last >= 3.0 {
            painter.vline(x, y - 6.0..=y + 5.0, Stroke::new(4.0, theme.halo));
            painter.vline(x, y - 5.0..=y + 4.0, Stroke::new(2.0, theme.ink));
            last = x;
        }
    }
    let x = layout.x_of(f64::from(item.start));
    if layout.map.x_range().contains(x) {
        painter.circle(Pos2::new(x, y), 4.5, theme.ink, Stroke::new(1.5, theme.halo));
    }
}

/// The largest hole in the heap at the chosen step, where it is seen.
struct Hole {
    /// Where its line stands.
    x: f32,
    rows: Rangef,
    words: String,
    /// What its words stay in.
    within: Rect,
}

/// The largest hole in the heap at the chosen step; `None` if it is out of sight.
fn hole(context: &mut ViewContext<'_>, window: &Window) -> Option<Hole> {
    let step = context.step();
    let (address, bytes) = context.related_to_step().and_then(|related| related.largest_hole)?;
    let x = window.x_of(f64::from(step) + 0.5);
    let (top, bottom) = (window.y_of((address + bytes.0) as f64), window.y_of(address as f64));
    let is_seen = window.rect.x_range().contains(x) && bottom >= window.rect.top() && top <= window.rect.bottom();
    // Only where it is: an edge of the picture is not its place.
    (is_seen && bytes > Bytes::ZERO).then(|| Hole {
        x: x + 4.0,
        rows: Rangef::new(top.max(window.rect.top()), bottom.min(window.rect.bottom())),
        words: format!("largest hole {}", context.short(bytes)),
        within: window.rect,
    })
}

impl Hole {
    /// Where its words stand.
    fn words(&self, painter: &egui::Painter, theme: &Theme) -> Rect {
        let size = painter.layout_no_wrap(self.words.clone(), Weight::SemiBold.at(size::SMALL), theme.text).size();
        let y = self.rows.center().clamp(self.within.top() + 10.0, self.within.bottom() - 10.0);
        // On the other side of the step's line where it has no room on its own.
        let right = self.x + 6.0;
        let left = if right + size.x + 6.0 <= self.within.right() { right } else { self.x - 16.0 - size.x };
        Rect::from_min_size(Pos2::new(left, y - size.y / 2.0), size).expand2(Vec2::new(4.0, 1.0))
    }

    /// Marks it; its words give way to the flag of the limit.
    fn paint(&self, painter: &egui::Painter, theme: &Theme, flag: Option<Rect>) {
        painter.vline(self.x, self.rows.min..=self.rows.max.max(self.rows.min + 2.0), Stroke::new(3.0, theme.ink));
        let mut ground = self.words(painter, theme);
        if let Some(flag) = flag.filter(|flag| flag.intersects(ground)) {
            let shift = if flag.center().y < self.within.center().y {
                flag.bottom() + 2.0 - ground.top()
            } else {
                flag.top() - 2.0 - ground.bottom()
            };
            ground = ground.translate(Vec2::new(0.0, shift));
        }
        let galley = painter.layout_no_wrap(self.words.clone(), Weight::SemiBold.at(size::SMALL), theme.text);
        painter.rect_filled(ground, 2.0, theme.canvas.gamma_multiply(0.85));
        painter.galley(ground.min + Vec2::new(4.0, 1.0), galley, theme.text);
    }
}

/// The box under the pointer, with a tolerance of one pixel for boxes thinner than that.
fn hit(data: &SpaceData, point: u32, address: f64, slack: f64, points_per_pixel: f64) -> Option<MapBox> {
    let address = address.max(0.0);
    if let Some(item) = data.map.hit(point, address as u64) {
        return Some(*item);
    }
    let (low, high) = ((address - slack).max(0.0) as u64, (address + slack) as u64);
    let near = (points_per_pixel * 1.5).ceil() as u32;
    let (from, to) = (point.saturating_sub(near), point.saturating_add(near));
    data.map
        .index()
        .near(from, to, 1)
        .map(|row| &data.map.boxes[row as usize])
        .filter(|item| {
            item.start <= to
                && from <= item.end
                && item.address <= high
                && item.address.saturating_add(item.size) >= low
        })
        .min_by_key(|item| point.saturating_sub(item.end).max(item.start.saturating_sub(point)))
        .copied()
}

/// The part of the time axis that shows a box with a margin.
pub fn fit_time(item: &MapBox, whole: Span) -> (f64, f64) {
    let span = Span::around(f64::from(item.start), f64::from(item.end) + 1.0, 0.25, whole, 8.0);
    (span.lo, span.hi)
}

/// The addresses that show a box with a margin.
pub fn fit_addresses(item: &MapBox, whole: Span) -> Span {
    Span::around(item.address as f64, (item.address + item.size) as f64, 1.0, whole, whole.len() * 1e-6)
}

/// Everything the picture depends on, for the worker that draws it.
struct Picture {
    document: Arc<Document>,
    program: usize,
    data: Arc<SpaceData>,
    groups: Groups,
    theme: Theme,
    window: Window,
    limit: Option<u64>,
    show_padding: bool,
    lit: Option<Highlight>,
}

impl Picture {
    /// Draws the boxes; returns the rows of those with room for a label, largest first.
    fn paint(&self, raster: &mut Raster) -> Vec<u32> {
        let Self { data, groups, theme, .. } = self;
        let (x, y) = (self.window.x, self.window.y);
        let Some((program, analysis)) = self.document.program(self.program) else { return Vec::new() };
        let (width, height) = (raster.width() as f64, raster.height() as f64);
        let px = |point: f64| (x.share(point) * width).round().clamp(-2.0, width + 2.0) as i64;
        let py = |address: f64| ((1.0 - y.share(address)) * height).round().clamp(-2.0, height + 2.0) as i64;
        let thick = raster.scale().round().max(1.0) as i64;
        let least = LABEL * raster.scale();
        let mut named = Vec::new();
        // Memory reserved for the whole program is distinct from free space even while it holds no buffer.
        for region in data.map.regions.iter().filter(|region| region.always_live) {
            let ground = mix(theme.panel, theme.line2, 0.35);
            raster.fill(0, py((region.base + region.size) as f64), width as i64, py(region.base as f64), ground);
        }
        let (first, last) = (x.lo.floor().max(0.0) as u32, x.hi.ceil().max(0.0) as u32);
        for row in data.map.rows_in(first, last, 1) {
            let item = &data.map.boxes[row as usize];
            let (start, end) = (f64::from(item.start), f64::from(item.end) + 1.0);
            let (low, high) = (item.address as f64, (item.address + item.size) as f64);
            if end < x.lo || start > x.hi || high < y.lo || low > y.hi {
                continue;
            }
            let (x0, x1) = (px(start), px(end).max(px(start) + 1));
            let (y0, y1) = (py(high).min(py(low) - 1), py(low));
            let is_lit = self.lit.as_ref().is_none_or(|lit| lit.has(item.buffer));
            let color = groups.slot_of(item.buffer).color();
            let color = if is_lit { color } else { mix(color, theme.panel, NO_MATCH) };
            // Adjacent boxes are separated by a pixel of background if there is room.
            let gap_y = if y1 - y0 > 3 * thick { thick } else { 0 };
            let gap_x = if x1 - x0 > 3 * thick { thick } else { 0 };
            if gap_x + gap_y > 0 {
                raster.fill(x0, y0, x1, y1, theme.panel);
            }
            let shown = (x1.min(width as i64) - x0.max(0), y1.min(height as i64) - y0.max(0));
            if is_lit && named.len() < MAX_NAMES && shown.0 as f32 >= least.x && shown.1 as f32 >= least.y {
                named.push(row);
            }
            raster.fill(x0, y0 + gap_y, x1 - gap_x, y1, color);
            if is_lit && self.show_padding && y1 - y0 > 2 {
                let size_bytes = item.size as f64;
                let useful = unpadded(program, &analysis.traces, item.buffer).0.min(item.size) as f64;
                let wasted = py(low + useful) - y0;
                if useful < size_bytes && wasted > 0 {
                    raster.hatch(x0, y0 + gap_y, x1 - gap_x, y0 + wasted.max(1), Hatch::padding(theme.hatch));
                }
            }
        }
        if let Some(limit) = self.limit {
            let top = py(data.map.height as f64).max(0);
            raster.hatch(0, top, width as i64, py(limit as f64), Hatch::beyond_map(theme.over));
        }
        named
    }
}

fn labels(
    painter: &egui::Painter,
    state: &mut State,
    named: &[u32],
    ((scene, of), cursor, units): ((Scene<'_>, (u64, usize)), f32, UnitSystem),
    (Drawn { data, groups, layout }, taken): (Drawn<'_>, &mut Vec<Rect>),
    box_rect: &dyn Fn(&MapBox) -> Rect,
) {
    let bounds = layout.map;
    // Of buffers that share memory at the same time, only the one drawn last is visible and labelled.
    let shown: Vec<Rect> = named
        .iter()
        .map(|&row| data.map.boxes.get(row as usize).map_or(Rect::NOTHING, |item| box_rect(item).intersect(bounds)))
        .collect();
    for (at, &row) in named.iter().enumerate() {
        let Some(item) = data.map.boxes.get(row as usize) else { continue };
        let (shown, above) = (shown[at], &shown[at + 1..]);
        // Words stand where nothing drawn later lies, and no other words.
        let is_free = |place: Rect, taken: &[Rect]| {
            !taken.iter().any(|other| other.intersects(place))
                && !above.iter().any(|other| other.height() >= LABEL.y && other.intersects(place))
        };
        let begin = Pos2::new(shown.left() + 8.0, shown.center().y);
        if above.iter().any(|other| other.height() >= LABEL.y && other.contains(begin)) {
            continue;
        }
        if shown.width() < LABEL.x || shown.height() < LABEL.y {
            continue;
        }
        let name = state.labels.name(of, scene, item.buffer);
        let slot = groups.slot_of(item.buffer);
        let bytes = units.short(Bytes(item.size));
        let y = shown.center().y.round();
        let font = Weight::Medium.at(size::SMALL);
        let mut place = Rangef::new(shown.left() + 6.0, shown.right() - 8.0);
        let number = painter.layout_no_wrap(bytes, font.clone(), slot.text());
        let from = place.max - number.size().x;
        let number_place = Rect::from_min_size(Pos2::new(from, y - number.size().y / 2.0), number.size());
        let is_crossed = Rangef::new(from, place.max).expand(3.0).contains(cursor);
        if shown.width() > 240.0 && !is_crossed && is_free(number_place, taken) {
            taken.push(number_place);
            painter.galley(number_place.min, number, slot.text());
            place.max = from - 12.0;
        }
        let width = painter.layout_no_wrap(name.to_owned(), font.clone(), slot.text()).size().x;
        let place = chart::aside(place, width, cursor);
        let height = painter.fonts_mut(|fonts| fonts.row_height(&font));
        let words_place =
            Rect::from_x_y_ranges(place.min..=(place.min + width).min(place.max), y - height / 2.0..=y + height / 2.0);
        if !is_free(words_place, taken) {
            continue;
        }
        taken.push(words_place);
        let at = Pos2::new(place.min, y);
        paint_cut(painter, (at, Align2::LEFT_CENTER), name, font, slot.text(), place.span());
    }
}

fn axis(ui: &Ui, context: &ViewContext<'_>, data: &SpaceData, window: &Window) {
    let (theme, rect) = (context.theme, window.rect);
    YAxis::Addresses(context.options.units).draw(ui, theme, window);
    let heap = window.y_of(data.map.heap_base as f64);
    if data.map.heap_base > 0 && data.map.heap_base < data.map.height && rect.y_range().contains(heap) {
        ui.painter().hline(rect.left() - 6.0..=rect.left(), heap.round(), Stroke::new(2.0, theme.text2));
        ui.painter().hline(rect.x_range(), heap.round(), Stroke::new(1.0, theme.text3));
    }
}

/// Tooltip of a buffer.
pub fn tooltip(ui: &mut Ui, context: &ViewContext<'_>, scene: Scene<'_>, item: &MapBox) {
    let theme = context.theme;
    let program = scene.program;
    let kind = category(program, item.buffer);
    let bytes = Bytes(item.size);
    let own = program.buffer_name(item.buffer);
    if let Some(label) = scene.analysis.label(program, item.buffer) {
        ui.label(text(label.text, size::BODY, Weight::SemiBold, theme.text));
        ui.label(text(own, size::SMALL, Weight::Mono, theme.text2));
    } else {
        ui.label(text(own, size::BODY, Weight::SemiBold, theme.text));
    }
    let share = percent(item.size, scene.space.peak().0);
    let line = format!("{}   {}   {share} of the peak", context.short(bytes), bytes.exact());
    ui.label(text(line, size::SMALL, Weight::Medium, theme.text));
    let waste = bytes.saturating_sub(unpadded(program, &scene.analysis.traces, item.buffer));
    if waste > Bytes::ZERO {
        let words = format!("{} padding", context.short(waste));
        ui.label(text(words, size::SMALL, Weight::Regular, theme.warn));
    }
    // The class, which gives the box its colour, and then the compiler's category.
    let class = scene.analysis.class_now(program, item.buffer).name();
    let kind = if class == kind.name() { class.to_owned() } else { format!("{class} (compiler: {})", kind.name()) };
    let unit = scene.map().axis.unit();
    let steps = format!("{kind}, {unit}s {} to {}", item.start, item.end);
    ui.label(text(steps, size::SMALL, Weight::Regular, theme.text2));
    let argument = || argument_before(program, scene.analysis, scene.map(), item.buffer);
    if let Some(words) =
        Residency::in_words_of(program, scene.map(), item.buffer).and_then(|spans| spans.note(unit, argument))
    {
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
    }
    if let Some((shape, node)) = program.buffer_shape(item.buffer) {
        ui.label(text(shape.text_of(node), size::SMALL, Weight::Mono, theme.text2));
    }
    let op = program.buffers.instruction_of(item.buffer).map(|i| program.text.op_name(i)).unwrap_or_default();
    if !op.is_empty() {
        ui.label(text(scope::without_attributes(&op), size::SMALL, Weight::Mono, theme.text3));
    }
}
