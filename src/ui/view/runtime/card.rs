//! The Details card of an allocator: figures at the peak and of the chosen range, and the lowest use of each step.

use egui::Ui;

use super::state::{State, moment};
use crate::model::{Bytes, Clock, thousands};
use crate::ui::part::ViewContext;
use crate::ui::part::facts::{bytes_fact, fact, title};
use crate::ui::widget::controls::{cut_label, rule};
use crate::ui::widget::fonts::Weight;
use crate::ui::widget::theme::size;

/// Maximum number of steps listed with their lowest use.
const FLOORS: usize = 24;

/// Draws the card in Details.
pub fn show(ui: &mut Ui, context: &mut ViewContext<'_>) {
    let theme = context.theme;
    let document = context.document.clone();
    let mut state = context.locals.take::<State>();
    let width = ui.available_width();
    let units = context.options.units;
    let bytes_of = |ui: &mut Ui, name: &str, bytes: i64| bytes_fact(ui, theme, units, name, Bytes::from_wire(bytes));
    let index = state.allocator.unwrap_or(0);
    if let Some(analysis) = document.analysis.runtime.get(index) {
        let name = if analysis.name.is_empty() { "Allocator" } else { &analysis.name };
        cut_label(ui, name, Weight::SemiBold.at(size::LEAD), theme.text, width);
        ui.add_space(4.0);
        title(ui, theme, "At the peak");
        let stats = &analysis.peak_stats;
        bytes_fact(ui, theme, units, "In use", analysis.peak);
        bytes_of(ui, "Heap", stats.heap);
        bytes_of(ui, "Stack", stats.stack);
        bytes_of(ui, "Free", stats.free);
        if let Some(share) = analysis.fragmentation_at_peak() {
            fact(ui, theme, "Fragmentation", &format!("{:.2}\u{2009}%", share * 100.0));
        }
        let name = if analysis.clock == Clock::Order { "Position" } else { "Time" };
        fact(ui, theme, name, &moment(analysis.clock, analysis.peak_time_ps as f64, 1e3));
        if analysis.peak_step >= 0 {
            fact(ui, theme, "Step", &thousands(analysis.peak_step.unsigned_abs()));
        }
        if let Some(bytes) = analysis.lifetime_peak {
            bytes_fact(ui, theme, units, "Lifetime peak of the heap", bytes);
        }
        fact(ui, theme, "Events", &thousands(analysis.events as u64));
        if let (Some((from, to)), Some(worked)) = (state.range, state.job.as_mut().and_then(|job| job.poll())) {
            rule(ui, theme);
            let range = worked.curve.range(from, to);
            let step = ((to - from) as f64 / 100.0).max(1.0);
            title(ui, theme, "Range");
            fact(ui, theme, "From", &moment(analysis.clock, from as f64, step));
            fact(ui, theme, "To", &moment(analysis.clock, to as f64, step));
            bytes_of(ui, "Highest use", range.highest);
            bytes_of(ui, "Lowest use", range.lowest);
            bytes_of(ui, "Average use", range.mean);
            bytes_of(ui, &format!("Allocated, {} times", thousands(range.allocations)), range.allocated);
            bytes_of(ui, &format!("Freed, {} times", thousands(range.deallocations)), range.freed);
        }
        if !analysis.floors.is_empty() {
            rule(ui, theme);
            title(ui, theme, "Lowest use of each whole step");
            for floor in analysis.floors.iter().rev().take(FLOORS).rev() {
                bytes_of(ui, &format!("step {}", floor.step), floor.bytes);
            }
        }
    }
    context.locals.put(state);
}
