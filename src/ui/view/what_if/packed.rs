//! The memory map with the changes applied: always-live buffers at the bottom, above them the heap as the compiler
//! would pack it.

use egui::{Pos2, Rect, Ui, Vec2};

use super::plot_in;
use crate::analysis::class::Class;
use crate::analysis::packing::Packer;
use crate::model::{BufferId, Bytes};
use crate::ui::chart::{Chart, Fit, Reach, Spare, Window, XAxis, legend};
use crate::ui::part::colors::slot_of_class;
use crate::ui::part::{BufferNames, ViewContext};
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{CachedRaster, Hatch, Raster};
use crate::ui::widget::theme::{Theme, size};
use crate::ui::work::WhatIfResult;

/// Least height of a box that carries its name.
const LABEL: f32 = 15.0;

/// A block in the picture.
struct Piece {
    block: usize,
    rect: Rect,
}

/// Positions of the blocks.
struct FrameLayout {
    window: Window,
    base: u64,
}

impl FrameLayout {
    fn piece(&self, result: &WhatIfResult, block: usize) -> Option<Piece> {
        let own = result.after.sizes.blocks.get(block).filter(|b| b.size > 0)?;
        let from = self.base.saturating_add(*result.after.placement.offsets.get(block)?);
        let (first, last) = result.axis.points_of(own);
        let time = (f64::from(first), f64::from(last) + 1.0);
        let rect = self.window.rect_of(time, (from as f64, from.saturating_add(own.size) as f64));
        Some(Piece { block, rect })
    }

    /// The block under the pointer.
    fn at(&self, result: &WhatIfResult, pos: Pos2) -> Option<Piece> {
        let time = self.window.x_at(pos.x);
        // A block is at least a pixel wide, even if its live range is shorter.
        let slack = (self.window.x.len() / f64::from(self.window.rect.width().max(1.0))).ceil();
        let (from, to) = ((time - slack).max(0.0) as u32, (time + slack).max(0.0) as u32);
        let near = result.blocks.spans.near(from, to, 1).filter_map(|block| self.piece(result, block as usize));
        near.filter(|piece| piece.rect.contains(pos)).min_by_key(|piece| piece.block)
    }
}

fn buffer_of(result: &WhatIfResult, block: usize) -> Option<BufferId> {
    let family = *result.after.sizes.family.get(block)?;
    Some(result.memory.buffer_of_row(family))
}

/// Draws the map into a rectangle.
pub fn show(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    (raster, names): (&mut CachedRaster, &mut BufferNames),
    (result, number): (&WhatIfResult, u64),
    rect: Rect,
) {
    let theme = context.theme;
    let units = context.options.units;
    let line = Rect::from_min_size(rect.min, Vec2::new(rect.width(), 20.0));
    let mut child = ui.new_child(
        egui::UiBuilder::new()
            .max_rect(line)
            .layout(egui::Layout::left_to_right(egui::Align::Center))
            .id_salt("packed head"),
    );
    child.label(text("Repacked", size::BODY, Weight::SemiBold, theme.text));
    child.add_space(16.0);
    let (how, of_whom) = match result.after.packer {
        Packer::Online => ("in program order", "as the compiler does below 83 % of capacity"),
        Packer::Fallback => ("by size", "as the compiler does above 83 % of capacity"),
    };
    let live = result.after.peak.saturating_sub(result.after.base);
    let lost = Bytes(result.after.placement.heap).saturating_sub(live);
    let heap = format!("{} of heap", units.short(Bytes(result.after.placement.heap)));
    // Unchanged, the other views say what the compiler's own packing loses.
    let sizes = match result.after.edits.as_slice() {
        [] => heap.clone(),
        _ => format!("{heap} for {} live, {} lost", units.short(live), units.short(lost)),
    };
    let wordings = [format!("{sizes}; {how}, {of_whom}"), format!("{sizes}; {how}"), sizes, heap];
    legend::longest(&mut child, theme, &wordings.each_ref().map(String::as_str));
    let limit = result.memory.capacity;
    let plot = plot_in(rect, limit);
    let needs = result.after.expected().0;
    let window = Window {
        rect: plot,
        x: Reach::steps(result.curve_after.len() as u32).whole,
        y: Fit::All.bytes(needs, || needs, limit),
    };
    let layout = FrameLayout { window, base: result.after.base.0 };
    let key = (number, theme.dark);
    // The headline of the unchanged program is the compiler's, this is our packing of it.
    let is_ours = result.after.edits.is_empty() && result.packing_difference() != 0;
    let of_what = if is_ours { " as repacked" } else { "" };
    let spare = limit.filter(|&limit| limit > needs).map(|limit| Spare { of_what, from: needs, to: limit });
    let shown = Chart::new("Memory map with the changes", theme, window, XAxis::Steps(result.axis.unit.unit()), units)
        .drawn(ui, raster, key, |raster, window| draw(raster, theme, result, window))
        .limit(limit)
        .spare(spare)
        .start(f64::from(result.peak_after().1) + 0.5)
        .show(ui);
    let response = shown.response;
    labels(ui, context, names, result, &layout);
    for block in context.shared.selected.into_iter().flat_map(|buffer| result.blocks.of(buffer)) {
        if let Some(piece) = layout.piece(result, block) {
            let outline = egui::Stroke::new(2.5, theme.ink);
            ui.painter().rect_stroke(piece.rect.expand(1.0), 0.0, outline, egui::StrokeKind::Outside);
        }
    }
    let Some(piece) = response.hover_pos().and_then(|pos| layout.at(result, pos)) else { return };
    let Some(buffer) = buffer_of(result, piece.block) else { return };
    context.shared.hover(buffer);
    ui.painter().rect_stroke(piece.rect, 0.0, egui::Stroke::new(1.5, theme.ink), egui::StrokeKind::Inside);
    if response.clicked() {
        context.select(buffer);
    }
    let Some(scene) = context.scene() else { return };
    let family = result.memory.families.list.get(result.after.sizes.family[piece.block] as usize);
    let now = result.after.sizes.blocks[piece.block].size;
    let was = family.map_or_else(|| scene.program.buffers.size_of(buffer).0, |family| family.size);
    response.on_hover_ui_at_pointer(|ui| {
        let added = result.after.sizes.added_as(piece.block).map(str::to_owned);
        let label = || scene.analysis.label(scene.program, buffer).map(|label| label.text);
        let is_added = added.is_some();
        let name = added.or_else(label).unwrap_or_else(|| scene.program.buffer_name(buffer));
        ui.label(text(name, size::BODY, Weight::SemiBold, theme.text));
        if is_added {
            ui.label(text(units.short(Bytes(now)), size::BODY, Weight::Medium, theme.text));
            return;
        }
        if let Some((shape, node)) = scene.program.buffer_shape(buffer) {
            ui.label(text(shape.short_text_of(node), size::SMALL, Weight::Mono, theme.text2));
        }
        let change = if now == was { String::new() } else { format!(", was {}", units.short(Bytes(was))) };
        ui.label(text(format!("{}{change}", units.short(Bytes(now))), size::BODY, Weight::Medium, theme.text));
        ui.label(text(Bytes(now).exact(), size::SMALL, Weight::Regular, theme.text2));
        let name = result.memory.family_name(result.after.sizes.family[piece.block] as usize);
        if !name.is_empty() {
            ui.label(text(name, size::SMALL, Weight::Mono, theme.text2));
        }
    });
}

fn labels(ui: &Ui, context: &ViewContext<'_>, names: &mut BufferNames, result: &WhatIfResult, layout: &FrameLayout) {
    let Some(scene) = context.scene() else { return };
    let painter = ui.painter().with_clip_rect(layout.window.rect.intersect(ui.clip_rect()));
    let font = Weight::Regular.at(size::SMALL);
    // No label under the limit's line.
    let line = result.memory.capacity.map(|limit| layout.window.y_of(limit as f64));
    let is_free = |y: f32| line.is_none_or(|line| (line - y).abs() >= LABEL / 2.0 + 1.0);
    let mut from = 0u64;
    for (class, &bytes) in Class::ALL.iter().zip(&result.base_by_class) {
        let to = from.saturating_add(bytes);
        let band = layout.window.rect_of((0.0, layout.window.x.hi), (from as f64, to as f64));
        if band.height() >= LABEL && is_free(band.center().y) {
            let words = format!("{} {}, reserved throughout", class.name(), context.short(Bytes(to - from)));
            let at = Pos2::new(band.left() + 6.0, band.center().y);
            let color = slot_of_class(*class).text();
            let room = layout.window.rect.width() - 12.0;
            paint_cut(&painter, (at, egui::Align2::LEFT_CENTER), &words, font.clone(), color, room);
        }
        from = to;
    }
    let mut shown = 0;
    for &block in &result.blocks.by_size {
        let block = block as usize;
        let Some(piece) = layout.piece(result, block) else { continue };
        // The rest is lower still.
        if piece.rect.height() < LABEL || shown > 200 {
            break;
        }
        if piece.rect.width() < 90.0 || !is_free(piece.rect.center().y) {
            continue;
        }
        shown += 1;
        let Some(buffer) = buffer_of(result, block) else { continue };
        let name = names.name(context.program_id(), scene, buffer);
        let at = Pos2::new(piece.rect.left().max(layout.window.rect.left()) + 6.0, piece.rect.center().y);
        let color = slot_of_class(result.class_of(block)).text();
        let width = piece.rect.width() - 12.0;
        paint_cut(&painter, (at, egui::Align2::LEFT_CENTER), name, font.clone(), color, width);
    }
}

fn draw(raster: &mut Raster, theme: &Theme, result: &WhatIfResult, window: &Window) {
    let (width, height) = (raster.width() as i64, raster.height() as i64);
    let share = |value: u64| window.y.share(value as f64);
    let pixel = |value: u64| height - (share(value) * height as f64).round().clamp(0.0, height as f64) as i64;
    let column = |point: u32| (window.x.share(f64::from(point)) * width as f64).round() as i64;
    let mut from = 0u64;
    for (class, &bytes) in Class::ALL.iter().zip(&result.base_by_class) {
        let to = from.saturating_add(bytes);
        if to > from {
            raster.fill(0, pixel(to), width, pixel(from), slot_of_class(*class).color());
        }
        from = to;
    }
    let base = result.after.base.0;
    let gap = raster.scale().round().max(1.0) as i64;
    let blocks = result.after.sizes.blocks.iter().enumerate().zip(&result.after.placement.offsets);
    for ((row, block), &offset) in blocks {
        if block.size == 0 {
            continue;
        }
        let start = base.saturating_add(offset);
        let (top, bottom) = (pixel(start.saturating_add(block.size)), pixel(start));
        let (first, last) = result.axis.points_of(block);
        let (left, right) = (column(first), column(last + 1));
        let (top, right) = (top.min(bottom - 1), right.max(left + 1));
        // Adjacent boxes are separated by a line of background if there is room.
        let trim = if bottom - top >= 4 * gap { gap } else { 0 };
        let color = slot_of_class(result.class_of(row)).color();
        raster.fill(left, top + trim, right, bottom, color);
    }
    if let Some(limit) = result.memory.capacity.map(pixel).filter(|&limit| limit > 0) {
        let top = pixel(result.after.expected().0);
        if top < limit {
            raster.hatch(0, top, width, limit, Hatch::beyond_map(theme.over));
        }
    }
}
