//! Shape, layout and padding of a buffer, in words and for each dimension.

use egui::{Align, Layout, Pos2, Role, Sense, Ui, Vec2, WidgetInfo};

use crate::analysis::padding::{by_dimension, in_words};
use crate::analysis::{Scene, unpadded};
use crate::model::{BufferId, ShapeNode, factor, percent, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::facts::{fact, title};
use crate::ui::part::links::{self, To};
use crate::ui::widget::controls::{self, cut_label};
use crate::ui::widget::fonts::{Weight, text};
use crate::ui::widget::theme::size;

/// Draws shape, layout and padding.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>, scene: Scene<'_>, buffer: BufferId) {
    let theme = context.theme;
    title(ui, theme, "Shape and padding");
    let Some((shape, node_index)) = scene.program.buffer_shape(buffer) else {
        ui.label(text("The file gives no shape.", size::SMALL, Weight::Regular, theme.text2));
        return;
    };
    let Some(node) = shape.nodes.get(node_index as usize) else { return };
    let width = ui.available_width();
    let short = shape.short_text_of(node_index);
    links::number(ui, context, "Shape", &short, width, To::words("shape", &short));
    if let Some(layout) = &node.layout {
        let words = layout.text(node.dimensions.len());
        if !words.is_empty() {
            let meaning = layout_words(node);
            let wide = |words: &str, weight: Weight| {
                ui.painter().layout_no_wrap(words.to_owned(), weight.at(size::SMALL), theme.text2).size().x
            };
            let beside = wide(&words, Weight::Mono) + wide(&meaning, Weight::Regular) + 12.0 < width;
            ui.horizontal(|ui| {
                cut_label(ui, &words, Weight::Mono.at(size::SMALL), theme.text2, width);
                if beside {
                    ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                        ui.label(text(&meaning, size::SMALL, Weight::Regular, theme.text2));
                    });
                }
            });
            if !beside {
                ui.label(text(&meaning, size::SMALL, Weight::Regular, theme.text2));
            }
        }
    }
    let rows = by_dimension(node);
    if !rows.is_empty() {
        ui.add_space(4.0);
        dimension_table(ui, context, node);
    }
    let size_bytes = scene.program.buffers.size_of(buffer);
    let useful = unpadded(scene.program, &scene.analysis.traces, buffer);
    ui.add_space(2.0);
    if size_bytes > useful {
        let waste = size_bytes - useful;
        let grown =
            if useful.0 == 0 { String::new() } else { format!(", {}", factor(size_bytes.0 as f64 / useful.0 as f64)) };
        let words = format!("{} is padding ({}{grown})", context.short(waste), percent(waste.0, size_bytes.0));
        ui.label(text(words, size::SMALL, Weight::Medium, theme.warn));
        links::fact(ui, context, "Padding", &waste.exact(), To::View("padding"));
        fact(ui, theme, "Useful", &useful.exact());
    }
    ui.add(egui::Label::new(text(in_words(node, size_bytes), size::SMALL, Weight::Regular, theme.text2)).wrap());
}

/// Dimension order and tile in words.
fn layout_words(node: &ShapeNode) -> String {
    let tile = node.first_tile();
    if tile.is_empty() {
        return "minor to major; not tiled".to_owned();
    }
    let tile: Vec<String> = tile.iter().map(|t| if *t < 0 { "*".to_owned() } else { t.to_string() }).collect();
    format!("minor to major; tile {}", tile.join(" \u{d7} "))
}

fn dimension_table(ui: &mut Ui, context: &mut ViewContext<'_>, node: &ShapeNode) {
    let theme = context.theme;
    let width = ui.available_width();
    let columns = [0.0, 0.36, 0.64, 1.0];
    // Each line links to the Padding view.
    let line = |ui: &mut Ui, cells: [String; 4], colors: [egui::Color32; 4], mono: bool| {
        let sense = if mono { Sense::click() } else { Sense::hover() };
        let (rect, response) = ui.allocate_exact_size(Vec2::new(width, 18.0), sense);
        if mono && (response.hovered() || response.has_focus()) {
            ui.painter().rect_filled(rect, 2.0, theme.hover);
        }
        let words = cells.join(" ");
        let role = if mono { Role::Link } else { Role::Label };
        response.widget_info(|| WidgetInfo::labeled(role, true, format!("Dimension {words}")));
        for (i, cell) in cells.into_iter().enumerate() {
            let align = if i == 0 { egui::Align2::LEFT_CENTER } else { egui::Align2::RIGHT_CENTER };
            let font = if mono && i < 3 { Weight::Mono } else { Weight::Regular };
            let at = Pos2::new(rect.left() + width * columns[i], rect.center().y);
            ui.painter().text(at, align, cell, font.at(size::SMALL), colors[i]);
        }
        controls::hairline(ui, rect, theme.line);
        let clicked = response.clicked();
        if mono {
            response.on_hover_text("Show in Padding").on_hover_cursor(egui::CursorIcon::PointingHand);
        }
        clicked
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
        let cells = [p.dimension.to_string(), thousands(p.size), thousands(p.padded), cost];
        if line(ui, cells, [theme.text, theme.text, theme.text, color], true) {
            context.go("padding");
        }
    }
}
