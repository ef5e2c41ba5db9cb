//! The program as bands over the time axis: passes, layers, and below them the computations called inside it, mostly
//! loop bodies.

use egui::{Align2, Pos2, Rangef, Rect, Ui};

use super::state::{Band, FrameLayout};
use crate::analysis::Scene;
use crate::analysis::phases::Phase;
use crate::model::{ComputationId, InstructionId, Opcode, thousands};
use crate::ui::chart;
use crate::ui::part::ViewContext;
use crate::ui::widget::controls::paint_cut;
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::size;
use crate::ui::work::SpaceData;

/// Maximum number of bands of called computations.
const MAX_ROWS: usize = 2;
/// Computations shorter than this fraction of the program (1 / `LEAST`) are not shown.
const LEAST: u32 = 25;
/// Room in which a name is worth its beginning.
const LEAST_WORDS: f32 = 24.0;
/// Height of one.
const ROW: f32 = 18.0;

/// Height of one.
pub const HEIGHT: f32 = ROW;

/// The bands from the top: passes, layers, called computations by depth.
pub fn bands(context: &ViewContext<'_>, data: &SpaceData) -> Vec<Band> {
    let phases = |title, phases: &[Phase]| Band {
        title,
        spans: phases.iter().map(|phase| (phase.name.clone(), phase.start, phase.end)).collect(),
    };
    let mut bands = vec![phases("Program", &data.phases.passes), phases("Layers", &data.phases.layers)];
    bands.retain(|band| !band.spans.is_empty());
    bands.extend(calls(context));
    bands
}

/// Called computations by depth.
fn calls(context: &ViewContext<'_>) -> Vec<Band> {
    let Some(scene) = context.scene() else { return Vec::new() };
    let Some(live) = &scene.analysis.live else { return Vec::new() };
    let mut all: Vec<(ComputationId, u32, u32)> = live
        .spans()
        .filter(|span| Some(span.0) != scene.program.entry && (span.2 - span.1.min(span.2)) * LEAST >= live.points())
        .collect();
    all.sort_by_key(|&(_, start, end)| (start, std::cmp::Reverse(end)));
    let mut rows: Vec<Band> = Vec::new();
    for (computation, start, end) in all {
        let depth = rows.iter().take_while(|row| row.spans.last().is_some_and(|last| last.2 > start)).count();
        if depth >= MAX_ROWS {
            continue;
        }
        if depth == rows.len() {
            rows.push(Band { title: if depth == 0 { "Calls" } else { "" }, spans: Vec::new() });
        }
        rows[depth].spans.push((called_words(scene, computation), start, end));
    }
    rows
}

/// What the words of a loop of a known number of steps begin with.
const SCAN: &str = "scan over ";

/// What a called computation is: the loop that runs it, in words, or its name.
fn called_words(scene: Scene<'_>, computation: ComputationId) -> String {
    let program = scene.program;
    let labels = scene.analysis.labels(program);
    let is_loop = |at: &InstructionId| program.instructions.opcode[at.index()] == Opcode::WHILE;
    let Some(at) = labels.loops.caller(computation).filter(is_loop) else {
        return program.text.computation_name(computation);
    };
    let stacks = labels.loops.parts.iter().filter(|part| part.at == at);
    match stacks.map(|part| part.layers).max().filter(|&count| count > 0) {
        Some(count) => format!("{SCAN}{} {}", thousands(count.unsigned_abs()), labels.steps.of(at).many()),
        None => "loop".to_owned(),
    }
}

/// Draws the bands from `top` down.
pub fn show(ui: &Ui, context: &ViewContext<'_>, bands: &[Band], layout: &FrameLayout, top: f32) {
    let theme = context.theme;
    let small = Weight::Regular.at(size::SMALL);
    let cursor = layout.x_of(f64::from(context.step()) + 0.5);
    for (depth, band) in bands.iter().enumerate() {
        let top = top + ROW * depth as f32;
        let at = Pos2::new(layout.curve.left() - 10.0, top + ROW / 2.0);
        ui.painter().text(at, Align2::RIGHT_CENTER, band.title, small.clone(), theme.text2);
        for (name, start, end) in &band.spans {
            let left = layout.x_of(f64::from(*start)).max(layout.curve.left());
            let right = layout.x_of(f64::from(*end)).min(layout.curve.right());
            if right - left < 1.0 {
                continue;
            }
            // Neighbours are one point apart.
            let rect = Rect::from_min_max(Pos2::new(left, top + 1.0), Pos2::new(right - 1.0, top + ROW - 1.0));
            ui.painter().rect_filled(rect, 0.0, theme.inset);
            // In a narrow band, the number of a layer is enough.
            let number = name.rsplit(['_', '.', '-']).next().filter(|number| number.parse::<u32>().is_ok());
            let name = number.filter(|_| rect.width() < 54.0).unwrap_or(name);
            if rect.width() > if name.len() <= 2 { 20.0 } else { 30.0 } {
                let inset = if name.len() <= 2 { 3.0 } else { 6.0 };
                let wide =
                    |words: &str| ui.painter().layout_no_wrap(words.to_owned(), small.clone(), theme.text2).size().x;
                // Of a loop how often it runs.
                let count = name.strip_prefix(SCAN).and_then(|rest| rest.split(' ').next());
                let short = count.filter(|_| wide(name) + 2.0 * inset > rect.width()).map(|n| format!("\u{d7}{n}"));
                let name = short.as_deref().unwrap_or(name);
                let width = wide(name);
                let place = chart::aside(Rangef::new(rect.left() + inset, rect.right() - 1.0), width, cursor);
                if place.span() < LEAST_WORDS.min(width) {
                    continue;
                }
                let at = Pos2::new(place.min, rect.center().y);
                paint_cut(ui.painter(), (at, Align2::LEFT_CENTER), name, small.clone(), theme.text2, place.span());
            }
        }
    }
}
