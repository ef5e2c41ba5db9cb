//! Details: everything about the selected buffer in one readable card, or about the step when nothing is selected.

use egui::{Align, Layout, Pos2, Rect, Role, Sense, Ui, Vec2, WidgetInfo};

use super::palette;
use crate::analysis::padding::{by_dimension, in_words};
use crate::analysis::{LifetimeFrom, scope, unpadded};
use crate::model::{BufferId, Bytes, InstructionId, ShapeNode, factor, percent, thousands};
use crate::ui::session::{Action, RowScope, Scene, SpaceData, ViewContext};
use crate::ui::widget::controls::{self, cut_label, link, paint_swatch, rule};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::{Theme, size};

/// Rows of each list.
const ROWS: usize = 8;
/// Readers that are listed before the last.
const READERS: usize = 3;

pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = Theme::of(ui.ctx());
    ui.spacing_mut().interact_size.y = 18.0;
    if context.scene().is_none() && context.document.profile.tiles.is_some() {
        return super::tile_card::show(ui, context, &theme);
    }
    let no_program = context.scene().is_none();
    if super::runtime::has(context.document) && (context.shared.view == "runtime" || no_program) {
        return super::runtime::card(ui, context, &theme);
    }
    if super::allocator::has(context.document) && (context.shared.view == "allocator" || no_program) {
        return super::allocator::card(ui, context, &theme);
    }
    if context.shared.view == "live" || (no_program && super::live::has(context.document)) {
        return super::live::card(ui, context, &theme);
    }
    let Some(scene) = context.scene() else {
        ui.label(text("No memory in this program.", size::BODY, Weight::Regular, theme.text2));
        return;
    };
    let data = context.data();
    match context.shared.selected {
        Some(buffer) if buffer.index() < scene.program.buffers.len() => {
            buffer_card(ui, context, &theme, scene, data.as_deref(), buffer);
        }
        _ => step_card(ui, context, &theme, scene, data.as_deref()),
    }
}

/// A name on the left, a value on the right.
fn fact(ui: &mut Ui, theme: &Theme, name: &str, value: &str) {
    ui.horizontal(|ui| {
        let width = ui.available_width();
        ui.label(text(name, size::SMALL, Weight::Regular, theme.text2));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            cut_label(ui, value, Weight::Medium.at(size::SMALL), theme.text, width * 0.68);
        });
    });
}

fn title(ui: &mut Ui, theme: &Theme, words: &str) {
    ui.label(text(words, size::BODY, Weight::SemiBold, theme.text));
}

fn buffer_card(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    theme: &Theme,
    scene: Scene<'_>,
    data: Option<&SpaceData>,
    buffer: BufferId,
) {
    let Scene { program, analysis, space } = scene;
    let class = analysis.class_now(program, buffer);
    let name = program.buffer_name(buffer);
    let size_bytes = program.buffers.size_of(buffer);
    let instruction = program.buffers.instruction_of(buffer);
    let metadata = instruction.map(|i| program.text.metadata(i)).unwrap_or_default();
    ui.horizontal(|ui| {
        let (rect, _) = ui.allocate_exact_size(Vec2::splat(11.0), Sense::hover());
        paint_swatch(ui.painter(), rect, palette::slot_of_class(class), theme);
        let width = ui.available_width();
        cut_label(ui, &name, Weight::SemiBold.at(size::LEAD), theme.text, width);
    });
    ui.horizontal(|ui| {
        super::class::words(ui, theme, scene, buffer);
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let opcode = instruction.map(|i| program.opcode_name(i)).unwrap_or_default();
            ui.label(text(opcode, size::SMALL, Weight::Regular, theme.text2));
        });
    });
    readout(ui, context, theme, size_bytes, &format!("{} of the peak", percent(size_bytes.0, space.peak().0)));
    rule(ui, theme);
    shape_section(ui, context, theme, scene, buffer);
    rule(ui, theme);
    lifetime_section(ui, context, theme, scene, data, buffer);
    rule(ui, theme);
    neighbours(ui, context, theme, scene, buffer);
    if !metadata.op_name.is_empty() {
        ui.horizontal(|ui| {
            title(ui, theme, "Op");
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if link(ui, "Copy", theme).clicked() {
                    context.actions.push(Action::Copy(metadata.op_name.clone()));
                }
            });
        });
        ui.add(
            egui::Label::new(text(&metadata.op_name, size::SMALL, Weight::Mono, theme.text)).wrap().selectable(true),
        );
        ui.add_space(6.0);
    }
    let mut stack = metadata.stack.clone();
    if stack.is_empty() {
        stack.extend(metadata.source.clone());
    }
    if !stack.is_empty() {
        ui.horizontal(|ui| {
            title(ui, theme, "Source");
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                if link(ui, "Copy", theme).clicked() {
                    let lines: Vec<String> = stack
                        .iter()
                        .map(|s| format!("{}:{} {}", s.file, s.line, s.function).trim().to_owned())
                        .collect();
                    context.actions.push(Action::Copy(lines.join("\n")));
                }
            });
        });
        for frame in stack.iter().take(12) {
            ui.horizontal(|ui| {
                let file = frame.file.rsplit(['/', '\\']).next().unwrap_or(&frame.file);
                let place = format!("{file}:{}", frame.line);
                let width = ui.available_width();
                let shown = cut_label(ui, &place, Weight::Mono.at(size::SMALL), theme.text, width * 0.6);
                shown.on_hover_text(format!("{}:{}", frame.file, frame.line));
                ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                    cut_label(ui, &frame.function, Weight::Mono.at(size::SMALL), theme.text2, width * 0.4);
                });
            });
        }
        if stack.len() > 12 {
            ui.label(text(format!("{} more frames", stack.len() - 12), size::SMALL, Weight::Regular, theme.text3));
        }
    }
    let _ = analysis;
}

/// A large size with its exact bytes and one more remark.
fn readout(ui: &mut Ui, context: &ViewContext<'_>, theme: &Theme, bytes: Bytes, remark: &str) {
    ui.horizontal(|ui| {
        let (number, unit) = context.options.units.split(bytes);
        ui.label(text(number, size::VERDICT_SMALL, Weight::SemiBold, theme.text));
        ui.label(text(unit, size::BODY, Weight::Medium, theme.text2));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            ui.vertical(|ui| {
                ui.with_layout(Layout::top_down(Align::Max), |ui| {
                    ui.label(text(remark, size::SMALL, Weight::Medium, theme.text));
                    ui.label(text(bytes.exact(), size::SMALL, Weight::Mono, theme.text2));
                });
            });
        });
    });
}

fn shape_section(ui: &mut Ui, context: &ViewContext<'_>, theme: &Theme, scene: Scene<'_>, buffer: BufferId) {
    title(ui, theme, "Shape and padding");
    let Some((shape, node_index)) = scene.program.buffer_shape(buffer) else {
        ui.label(text("The file has no shape for it.", size::SMALL, Weight::Regular, theme.text2));
        return;
    };
    let Some(node) = shape.nodes.get(node_index as usize) else { return };
    let width = ui.available_width();
    cut_label(ui, &shape.short_text_of(node_index), Weight::Mono.at(size::SMALL), theme.text, width);
    if let Some(layout) = &node.layout {
        let words = layout.text(node.dimensions.len());
        if !words.is_empty() {
            ui.horizontal(|ui| {
                cut_label(ui, &words, Weight::Mono.at(size::SMALL), theme.text2, width * 0.55);
                ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                    ui.label(text(layout_words(node), size::SMALL, Weight::Regular, theme.text2));
                });
            });
        }
    }
    let rows = by_dimension(node);
    if !rows.is_empty() {
        ui.add_space(4.0);
        dimension_table(ui, context, theme, node);
    }
    let size_bytes = scene.program.buffers.size_of(buffer);
    let useful = unpadded(scene.program, &scene.analysis.traces, buffer);
    ui.add_space(2.0);
    if size_bytes > useful {
        let waste = size_bytes - useful;
        let grown =
            if useful.0 == 0 { String::new() } else { format!(", {}", factor(size_bytes.0 as f64 / useful.0 as f64)) };
        let words = format!("{} of it is padding ({}{grown})", context.short(waste), percent(waste.0, size_bytes.0));
        ui.label(text(words, size::SMALL, Weight::Medium, theme.warn));
        fact(ui, theme, "Useful", &useful.exact());
    }
    ui.add(egui::Label::new(text(in_words(node), size::SMALL, Weight::Regular, theme.text2)).wrap());
}

/// Which dimension varies fastest, and the tile.
fn layout_words(node: &ShapeNode) -> String {
    let tile = node.first_tile();
    if tile.is_empty() {
        return "minor to major; not tiled".to_owned();
    }
    let tile: Vec<String> = tile.iter().map(|t| if *t < 0 { "*".to_owned() } else { t.to_string() }).collect();
    format!("minor to major; tile {}", tile.join(" \u{d7} "))
}

fn dimension_table(ui: &mut Ui, context: &ViewContext<'_>, theme: &Theme, node: &ShapeNode) {
    let width = ui.available_width();
    let columns = [0.0, 0.36, 0.64, 1.0];
    let line = |ui: &mut Ui, cells: [String; 4], colors: [egui::Color32; 4], mono: bool| {
        let (rect, response) = ui.allocate_exact_size(Vec2::new(width, 18.0), Sense::hover());
        let words = cells.join(" ");
        response.widget_info(|| WidgetInfo::labeled(Role::Label, true, &words));
        for (i, cell) in cells.into_iter().enumerate() {
            let align = if i == 0 { egui::Align2::LEFT_CENTER } else { egui::Align2::RIGHT_CENTER };
            let font = if mono && i < 3 { Weight::Mono } else { Weight::Regular };
            let at = Pos2::new(rect.left() + width * columns[i], rect.center().y);
            ui.painter().text(at, align, cell, font.at(size::SMALL), colors[i]);
        }
        controls::hairline(ui, rect, theme.line);
    };
    line(ui, ["dim", "size", "padded", "costs"].map(str::to_owned), [theme.text2; 4], false);
    for row in by_dimension(node).into_iter().take(10) {
        let p = row.padding;
        let (cost, color) = if row.bytes.0 > 0 {
            (context.short(row.bytes), theme.warn)
        } else if p.tile > 1 {
            ("nothing".to_owned(), theme.ok)
        } else {
            ("not tiled".to_owned(), theme.text3)
        };
        line(
            ui,
            [p.dimension.to_string(), thousands(p.size), thousands(p.padded), cost],
            [theme.text, theme.text, theme.text, color],
            true,
        );
    }
}

fn lifetime_section(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    theme: &Theme,
    scene: Scene<'_>,
    data: Option<&SpaceData>,
    buffer: BufferId,
) {
    let Scene { program, analysis, space } = scene;
    let place = data.and_then(|data| data.box_of(buffer));
    let unit = data.map_or("step", |data| data.map.axis.unit());
    ui.horizontal(|ui| {
        title(ui, theme, "Lifetime");
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let words = place.map_or_else(
                || "not known".to_owned(),
                |b| format!("{unit}s {} to {}", thousands(b.start.into()), thousands(b.end.into())),
            );
            ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
        });
    });
    if let (Some(data), Some(place)) = (data, place) {
        let (rect, _) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 14.0), Sense::hover());
        let points = f64::from(data.map.points.max(1));
        let x = |point: f64| rect.left() + rect.width() * (point / points) as f32;
        ui.painter().rect_filled(rect, 0.0, theme.inset);
        let end = x(f64::from(place.end) + 1.0).max(x(f64::from(place.start)) + 1.5);
        let life = Rect::from_min_max(Pos2::new(x(f64::from(place.start)), rect.top()), Pos2::new(end, rect.bottom()));
        ui.painter().rect_filled(life, 0.0, palette::slot_of_class(analysis.class_now(program, buffer)).color());
        let peak = x(f64::from(space.peak_point()) + 0.5);
        ui.painter().vline(peak, rect.y_range(), egui::Stroke::new(1.5, theme.ink));
        ui.add_space(4.0);
        let alive = place.end - place.start + 1;
        let across = if (place.start..=place.end).contains(&space.peak_point()) { ", across the peak" } else { "" };
        let words = format!("{} of {} {unit}s{across}", thousands(alive.into()), thousands(data.map.points.into()));
        fact(ui, theme, "Alive for", &words);
        let region = &data.map.regions[place.region as usize];
        let allocation = &program.allocations[region.allocation.index()];
        let at = format!("0x{:09X} in allocation {}", place.address - region.base, allocation.index);
        fact(ui, theme, "Address", &at);
    }
    let from = match analysis.lifetime_from(program, space, buffer) {
        Some(LifetimeFrom::LiveRange) => "program order",
        Some(LifetimeFrom::HeapTrace) => "the heap trace",
        Some(LifetimeFrom::WholeProgram) => "lives throughout",
        None if program.is_listing => "a message, which does not say",
        None => "inside a called computation",
    };
    fact(ui, theme, "Known from", from);
    if let Some((first, last)) = space.span(buffer) {
        fact(ui, theme, "Heap events", &format!("{} to {}", thousands(first.into()), thousands(last.into())));
    }
    if let Some(instruction) = program.buffers.instruction_of(buffer) {
        let point = analysis.live.as_ref().and_then(|live| live.point_of(instruction.0));
        place_link(ui, context, theme, "Made by", &program.text.instruction_name(instruction), point);
    }
    let Some(around) = context.around_buffer(buffer) else { return };
    let readers = &around.uses.readers;
    for (i, &(point, row)) in readers.iter().enumerate().take(READERS) {
        let name = program.text.instruction_name(InstructionId(row));
        place_link(ui, context, theme, if i == 0 { "Read by" } else { "" }, &name, Some(point));
    }
    if let Some(&(point, row)) = readers.last().filter(|_| readers.len() > READERS) {
        let between = readers.len() - READERS - 1;
        if between > 0 {
            fact(ui, theme, "", &format!("{} more", thousands(between as u64)));
        }
        let name = program.text.instruction_name(InstructionId(row));
        place_link(ui, context, theme, "Last read by", &name, Some(point));
    }
}

/// An instruction; a click goes to its step.
fn place_link(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, words: &str, name: &str, point: Option<u32>) {
    ui.horizontal(|ui| {
        let width = ui.available_width();
        ui.label(text(words, size::SMALL, Weight::Regular, theme.text2));
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let Some(point) = point else {
                cut_label(ui, name, Weight::Medium.at(size::SMALL), theme.text, width * 0.68);
                return;
            };
            if link(ui, &thousands(point.into()), theme).on_hover_text("Go to this step").clicked() {
                context.shared.step = Some(point);
            }
            cut_label(ui, name, Weight::Medium.at(size::SMALL), theme.text, width * 0.56);
        });
    });
}

fn neighbours(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, scene: Scene<'_>, buffer: BufferId) {
    let Some(around) = context.around_buffer(buffer) else { return };
    let sharing = &around.sharing;
    ui.horizontal(|ui| {
        title(ui, theme, "Shares its memory with");
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            let words = if sharing.is_empty() {
                "no other buffer".to_owned()
            } else {
                format!("{} buffers", thousands(sharing.len() as u64))
            };
            ui.label(text(words, size::SMALL, Weight::Medium, theme.text));
        });
    });
    for (item, common) in sharing.iter().take(ROWS) {
        let name = scene.program.buffer_name(item.buffer);
        let words = format!("{name}  {}\u{2013}{}", thousands(item.start.into()), thousands(item.end.into()));
        buffer_row(ui, context, theme, scene, item.buffer, &words, *common);
    }
    if sharing.len() > ROWS {
        let more = format!("{} more over time", thousands((sharing.len() - ROWS) as u64));
        ui.label(text(more, size::SMALL, Weight::Regular, theme.text3));
    }
    ui.add_space(8.0);
}

/// A buffer in a list: a link to it, and a size.
fn buffer_row(
    ui: &mut Ui,
    context: &mut ViewContext<'_>,
    theme: &Theme,
    scene: Scene<'_>,
    buffer: BufferId,
    words: &str,
    bytes: Bytes,
) {
    let (rect, response) = ui.allocate_exact_size(Vec2::new(ui.available_width(), 20.0), Sense::click());
    if response.hovered() || response.has_focus() {
        ui.painter().rect_filled(rect.expand2(Vec2::new(4.0, 0.0)), 2.0, theme.hover);
        context.shared.hovered = Some(buffer);
    }
    let y = rect.center().y;
    let swatch = Rect::from_center_size(Pos2::new(rect.left() + 5.0, y), Vec2::splat(9.0));
    paint_swatch(ui.painter(), swatch, palette::slot_of_class(scene.analysis.class_now(scene.program, buffer)), theme);
    let size_rect = ui.painter().text(
        Pos2::new(rect.right(), y),
        egui::Align2::RIGHT_CENTER,
        context.short(bytes),
        Weight::Medium.at(size::SMALL),
        theme.text,
    );
    let at = Pos2::new(rect.left() + 16.0, y);
    let room = size_rect.left() - at.x - 8.0;
    controls::paint_cut(
        ui.painter(),
        at,
        egui::Align2::LEFT_CENTER,
        words,
        Weight::Regular.at(size::SMALL),
        theme.text,
        room,
    );
    response.widget_info(|| WidgetInfo::labeled(Role::Link, true, words));
    if response.clicked() {
        context.select(buffer);
    }
}

/// The chosen step: what runs, what is live, the largest of it.
fn step_card(ui: &mut Ui, context: &mut ViewContext<'_>, theme: &Theme, scene: Scene<'_>, data: Option<&SpaceData>) {
    let step = context.step();
    let at_peak = context.shared.step.is_none();
    let unit = data.map_or("step", |data| data.map.axis.unit());
    let words = if at_peak {
        format!("The peak, {unit} {}", thousands(step.into()))
    } else {
        format!("{unit} {}", thousands(step.into()))
    };
    let words = words[..1].to_uppercase() + &words[1..];
    let is_listing = scene.program.is_listing;
    let words = if is_listing { "Listed in the message".to_owned() } else { words };
    ui.label(text(words, size::LEAD, Weight::SemiBold, theme.text));
    if let Some(name) = context.instruction_at(step) {
        let width = ui.available_width();
        cut_label(ui, &name, Weight::Mono.at(size::SMALL), theme.text2, width);
    }
    let live = scene.space.occupancy.as_ref().map_or(scene.space.peak(), |o| Bytes(o.reserved.at(step)));
    let remark = if is_listing {
        "together".to_owned()
    } else if at_peak {
        "the highest".to_owned()
    } else {
        format!("{} of the peak", percent(live.0, scene.space.peak().0))
    };
    readout(ui, context, theme, live, &remark);
    rule(ui, theme);
    let Some(data) = data else { return };
    let around = context.around_step();
    let hole = around.as_ref().and_then(|around| around.largest_hole);
    let largest_hole = hole.filter(|_| !is_listing && data.map.height > data.map.heap_base);
    if let Some((_, hole)) = largest_hole {
        fact(ui, theme, "Largest hole in the heap", &context.short(hole));
    }
    if at_peak {
        fact(ui, theme, "Padding", &context.short(scene.space.padding_at_peak));
        // What a message counts beyond its list may be anything.
        let rest = if is_listing { "Not listed" } else { "Fragmentation" };
        fact(ui, theme, rest, &context.short(scene.space.fragmentation()));
    }
    ui.add_space(6.0);
    let shown = ROWS * 2;
    let (count, rows): (usize, Vec<(BufferId, Bytes)>) = if at_peak {
        let at_peak = &scene.space.at_peak;
        (at_peak.len(), at_peak.iter().take(shown).map(|&b| (b, scene.program.buffers.size_of(b))).collect())
    } else {
        let Some(around) = &around else { return };
        (around.live, around.largest.iter().take(shown).map(|item| (item.buffer, Bytes(item.size))).collect())
    };
    ui.horizontal(|ui| {
        title(
            ui,
            theme,
            if is_listing {
                "Largest"
            } else if at_peak {
                "Largest at the peak"
            } else {
                "Largest at this step"
            },
        );
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if link(ui, &format!("all {}", thousands(count as u64)), theme).clicked() {
                context.shared.rows = if at_peak { RowScope::Peak } else { RowScope::Step };
                context.go("buffers");
            }
        });
    });
    for (buffer, bytes) in rows {
        let op =
            scene.program.buffers.instruction_of(buffer).map(|i| scene.program.text.op_name(i)).unwrap_or_default();
        let name = if op.is_empty() { scene.program.buffer_name(buffer) } else { scope::short(&op, 3) };
        // Some traces leave the names out.
        let name =
            if name.is_empty() { format!("buffer {}", scene.program.buffers.number[buffer.index()]) } else { name };
        buffer_row(ui, context, theme, scene, buffer, &name, bytes);
    }
}
