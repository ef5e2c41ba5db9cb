//! The lines of the table and their order, computed on a worker whenever their inputs change.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::State;
use super::cells::op_words;
use crate::analysis::Scene;
use crate::analysis::table::{BufferTable, Counted, Filter, Line, Order, Shown, arrange, is_unfinished};
use crate::model::{BufferId, MemorySpace};
use crate::ui::part::ViewContext;
use crate::ui::session::RowScope;
use crate::ui::widget::telling::Telling;
use crate::ui::work::Job;

/// Padding is nothing if the largest buffer is so many times as large.
const NOTHING: u64 = 20_000;

/// What the lines depend on.
#[derive(Clone, PartialEq)]
pub struct Wanted {
    of: (usize, MemorySpace),
    scope: RowScope,
    step: u32,
    filter: String,
    hidden: BTreeSet<BufferId>,
    order: Order,
}

/// Lines and the table they refer to.
#[derive(Default)]
pub struct Arranged {
    /// The table.
    pub table: Option<Arc<BufferTable>>,
    /// The lines.
    pub shown: Shown,
    /// Rows before the filter.
    pub of: usize,
    /// Largest size in the lines.
    pub largest: u64,
    /// Whether some of them share memory, which the sums count once.
    pub shares: bool,
    /// Whether some of them have padding that is more than nothing.
    pub pads: bool,
    /// What tells their operations apart.
    pub telling: Telling,
}

pub fn update(context: &mut ViewContext<'_>, scene: Scene<'_>, table: Option<&Arc<BufferTable>>, state: &mut State) {
    let Some(table) = table else { return };
    let scope = context.shared.rows;
    // While a term is being typed, the previous filter applies; an invalid one lists nothing, and the field says why.
    let typed = context.shared.filter.trim();
    let filter = match state.field.error(&context.shared.filter) {
        Some(_) if is_unfinished(typed) => {
            state.arranged.as_ref().map(|(wanted, _)| wanted.filter.clone()).unwrap_or_default()
        }
        _ => typed.to_owned(),
    };
    let wanted = Wanted {
        of: (context.shared.program, context.shared.color),
        scope,
        step: if scope == RowScope::Step { context.step() } else { 0 },
        filter,
        hidden: context.shared.hidden.clone(),
        order: state.order.clone(),
    };
    if state.arranged.as_ref().is_none_or(|(of, _)| *of != wanted) {
        let (table, own, peak) = (Arc::clone(table), wanted.clone(), scene.space.peak_point());
        let document = Arc::clone(context.document);
        let job = Job::start(context.work, "buffers", move || {
            let scene = document.scene(own.of.0, own.of.1);
            Arc::new(scene.map(|scene| work(table, &own, scene, peak)).unwrap_or_default())
        });
        // Scroll to the top only for different rows; expanding a group keeps the position.
        let same = state.arranged.as_ref().is_some_and(|(of, _)| {
            of.of == wanted.of && of.filter == wanted.filter && of.order.keys == wanted.order.keys && of.scope == scope
        });
        if !same {
            state.table.top = 0.0;
        }
        state.arranged = Some((wanted, job));
    }
    if let Some(arranged) = state.arranged.as_mut().and_then(|(_, job)| job.poll())
        && !Arc::ptr_eq(arranged, &state.shown)
    {
        state.shown = Arc::clone(arranged);
        state.cells.clear();
        state.last_selected = None;
    }
}

fn work(table: Arc<BufferTable>, wanted: &Wanted, scene: Scene<'_>, peak: u32) -> Arranged {
    let step = match wanted.scope {
        RowScope::All => None,
        RowScope::Peak => Some(None),
        RowScope::Step => Some(Some(wanted.step)),
    };
    let (rows, counted) = match step {
        Some(step) => {
            let live = scene.live(step);
            let rows = live.iter().filter_map(|&(buffer, _)| table.row_of(buffer)).collect();
            (rows, Counted::new(scene.program, scene.analysis, &table, &live))
        }
        None => ((0..table.len() as u32).collect::<Vec<u32>>(), Counted::default()),
    };
    let largest = rows.iter().map(|&row| table.size[row as usize]).max().unwrap_or(0);
    let mut kept = Filter::parse(&wanted.filter).map(|filter| filter.keep(&table, &rows, peak)).unwrap_or_default();
    if !wanted.hidden.is_empty() {
        kept.retain(|&row| !wanted.hidden.contains(&table.buffers[row as usize]));
    }
    // Less than this is written as 0 beside the largest.
    let least = (largest / NOTHING).max(1);
    let pads = kept.iter().any(|&row| table.padding[row as usize].unsigned_abs() >= least);
    let shown = arrange(&table, kept, &wanted.order, &counted);
    let listed = shown.lines.iter().filter_map(|line| if let Line::Row(row) = line { Some(*row) } else { None });
    let telling = Telling::of(listed.map(|row| op_words(&table, row)));
    Arranged { shown, of: rows.len(), largest, shares: !counted.is_plain(), pads, telling, table: Some(table) }
}
