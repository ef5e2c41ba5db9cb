//! Padding: how much of the peak holds no data, which shapes waste it, why, and what they could look like.

mod card;
mod drawing;

use egui::{Pos2, Rect, Sense, Ui, Vec2};

use super::{menu, palette};
use crate::analysis::category;
use crate::analysis::shape_groups::{ShapeGroup, shape_groups};
use crate::model::{Bytes, UnitSystem, factor, percent, thousands};
use crate::ui::session::{FindKey, Scene, ViewContext};
use crate::ui::widget::controls::segmented;
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::raster::{CachedRaster, Hatch};
use crate::ui::widget::table::{Cell, Column, Table, TableState};
use crate::ui::widget::theme::{Slot, Theme, size};

#[derive(Default)]
struct State {
    of: Option<(usize, i64, Option<u32>)>,
    groups: Vec<ShapeGroup>,
    chosen: usize,
    table: TableState,
    bar: CachedRaster,
    tiles: CachedRaster,
    /// Which groups have something that is found, and what that depends on.
    lit: (Option<(usize, FindKey)>, Vec<bool>),
    /// Counts changes of the groups.
    version: usize,
}

/// Draws the view.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = Theme::of(ui.ctx());
    let Some(scene) = context.scene() else { return super::empty::without_memory(ui, context, &theme) };
    let mut state = context.locals.take::<State>();
    let data = context.data();
    let of = (context.shared.program, context.shared.color, context.shared.step);
    if state.of != Some(of)
        && let Some(data) = &data
    {
        let buffers: Vec<_> = match context.shared.step {
            None => scene.space.at_peak.clone(),
            Some(step) => data.map.live_at(step).iter().map(|item| item.buffer).collect(),
        };
        state.groups = shape_groups(scene.program, scene.analysis, &buffers);
        state.of = Some(of);
        state.version += 1;
        state.chosen = 0;
    }
    follow_selection(context, &mut state);
    egui::Frame::new().inner_margin(egui::Margin::symmetric(24, 18)).show(ui, |ui| {
        ui.set_width(ui.available_width());
        headline(ui, context, &theme, scene, &mut state);
        ui.add_space(10.0);
        let body = ui.available_rect_before_wrap();
        let least = 170.0f32.min(body.height() * 0.4);
        let card_height = (body.height() - least - 12.0).min(430.0).max(body.height() * 0.5);
        if let (Some(data), Some(group)) = (&data, state.groups.get(state.chosen)) {
            let rect = Rect::from_min_size(body.min, Vec2::new(body.width(), card_height));
            card::show(ui, context, &theme, data, group, rect, &mut state.tiles);
        }
        let rest = Rect::from_min_max(Pos2::new(body.left(), body.top() + card_height + 12.0), body.max);
        let mut child = ui.new_child(egui::UiBuilder::new().max_rect(rest).id_salt("groups"));
        table(&mut child, context, scene, &mut state);
    });
    context.locals.put(state);
}

/// A buffer selected elsewhere chooses its shape here.
fn follow_selection(context: &ViewContext<'_>, state: &mut State) {
    if let Some(buffer) = context.shared.selected
        && !state.groups.get(state.chosen).is_some_and(|group| group.buffers.contains(&buffer))
        && let Some(row) = state.groups.iter().position(|group| group.buffers.contains(&buffer))
    {
        state.chosen = row;
        state.table.reveal = Some(row);
    }
}

fn headline(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, scene: Scene<'_>, state: &mut State) {
    let at_peak = context.shared.step.is_none();
    let step = context.step();
    let total: Bytes = state.groups.iter().map(ShapeGroup::bytes).sum();
    let waste = if at_peak { scene.space.padding_at_peak } else { state.groups.iter().map(ShapeGroup::waste).sum() };
    let whole = if at_peak { scene.space.peak() } else { total };
    ui.horizontal(|ui| {
        ui.label(text(percent(waste.0, whole.0), size::VERDICT, Weight::SemiBold, theme.text));
        let of = if at_peak { "of the peak is padding" } else { "of what lives here is padding" };
        ui.label(text(of, size::HEADLINE, Weight::Medium, theme.text));
        ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
            let words = ["At the peak".to_owned(), format!("At step {}", thousands(step.into()))];
            if !at_peak && let Some(0) = segmented(ui, &[words[0].as_str(), words[1].as_str()], 1, theme) {
                context.shared.step = None;
            }
        });
    });
    let wasting = state.groups.iter().filter(|group| group.waste() > Bytes::ZERO);
    let (shapes, buffers) = wasting.fold((0usize, 0usize), |(s, b), group| (s + 1, b + group.buffers.len()));
    let place = if at_peak {
        format!("at the peak, step {}", thousands(step.into()))
    } else {
        format!("at step {}", thousands(step.into()))
    };
    let sentence = format!(
        "{} of {} {place} hold no data: {} buffers of {} shapes waste something.",
        context.short(waste),
        context.short(whole),
        thousands(buffers as u64),
        thousands(shapes as u64)
    );
    ui.label(text(sentence, size::LEAD, Weight::Regular, theme.text2));
    ui.add_space(6.0);
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 16.0), Sense::hover());
    let useful = rect.width() * (1.0 - (waste.0 as f64 / whole.0.max(1) as f64).clamp(0.0, 1.0)) as f32;
    state.bar.show(ui, rect, "padding bar", (waste.0, whole.0, theme.dark), theme.inset, |raster| {
        let edge = (useful * raster.scale()) as i64;
        let (width, height) = (raster.width() as i64, raster.height() as i64);
        raster.fill(0, 0, edge, height, theme.text2);
        raster.hatch(edge, 0, width, height, Hatch { period: 7.0, width: 1.2, color: theme.text3 });
    });
    let words = format!("useful {}, padding {}", context.short(whole.saturating_sub(waste)), context.short(waste));
    response.widget_info(|| egui::WidgetInfo::labeled(egui::Role::Label, true, &words));
    response.on_hover_text(words);
}

fn table(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, state: &mut State) {
    let theme = Theme::of(ui.ctx());
    if state.groups.is_empty() {
        ui.label(text("Nothing lives here.", size::BODY, Weight::Regular, theme.text2));
        return;
    }
    let largest = state.groups.iter().map(|group| group.bytes().0).max().unwrap_or(0);
    let (unit, unit_name) = context.options.units.unit_for(Bytes(if largest >= 1 << 30 { 1 << 20 } else { largest }));
    let columns = [
        Column::text("Shape", 170.0, 2.0).fixed(),
        Column::text("Layout", 120.0, 1.0).fixed(),
        Column::number("Count", 64.0).fixed(),
        Column::number(&format!("Size, {unit_name}"), 110.0).fixed(),
        Column::number(&format!("Padding, {unit_name}"), 180.0).fixed(),
        Column::number("Expansion", 90.0).fixed(),
    ];
    let key = Some((state.version, context.find_key()));
    if state.lit.0 != key {
        let found = state.groups.iter().map(|group| group.buffers.iter().any(|&b| context.matches(b)));
        state.lit = (key, found.collect());
    }
    let lit = &state.lit.1;
    let most = state.groups.first().map_or(0, |group| group.waste().0).max(1);
    let groups = &state.groups;
    let units = context.options.units;
    let show = |bytes: Bytes| match UnitSystem::in_unit(bytes, unit) {
        text if text == "0.0" && bytes > Bytes::ZERO => "under 0.1".to_owned(),
        text => text,
    };
    let table = Table {
        columns: &columns,
        rows: groups.len(),
        selected: Some(state.chosen),
        lit: None,
        sort: Some((4, true)),
        name: "shapes",
        keys: true,
    };
    let response = table.show(
        ui,
        &mut state.table,
        |row| {
            format!(
                "{} \u{d7}{} wastes {}",
                groups[row].shape,
                groups[row].buffers.len(),
                units.short(groups[row].waste())
            )
        },
        |row, column| {
            let group = &groups[row];
            let slot = group.buffers.first().map_or(Slot::Temporary, |b| palette::slot(category(scene.program, *b)));
            let is_lit = lit.get(row).copied().unwrap_or(true);
            match column {
                0 if !is_lit => Cell::mono(group.shape.clone()).quiet(),
                3 if !is_lit => Cell::text(show(group.bytes())).quiet(),
                4 if !is_lit => Cell::text(show(group.waste())).quiet(),
                0 => Cell::mono(group.shape.clone()).swatch(slot),
                1 => Cell::mono(group.layout.clone()).quiet(),
                2 => Cell::text(format!("\u{d7}{}", thousands(group.buffers.len() as u64))).quiet(),
                3 => Cell::text(show(group.bytes())),
                4 if group.waste() == Bytes::ZERO => Cell::text("0").quiet(),
                4 => Cell::text(show(group.waste())).strong().bar((group.waste().0 as f64 / most as f64) as f32, slot),
                _ if group.useful.0 == 0 => Cell::text("\u{2013}").quiet(),
                _ => Cell::text(factor(group.each.0 as f64 / group.useful.0 as f64)),
            }
        },
    );
    let under = response.hovered.and_then(|row| groups[row].buffers.first().copied());
    menu::show(ui, context, ui.max_rect(), under);
    if let Some(row) = response.chosen {
        state.chosen = row;
        context.shared.selected = groups[row].buffers.first().copied();
    }
    if let Some(row) = response.hovered {
        context.shared.hovered = groups[row].buffers.first().copied();
    }
}
