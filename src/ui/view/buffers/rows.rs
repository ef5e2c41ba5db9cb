//! Which lines are shown, in which order: worked out on a worker whenever what they depend on changes.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::State;
use crate::analysis::Scene;
use crate::analysis::table::{BufferTable, Filter, Order, Shown, arrange};
use crate::model::{BufferId, MemorySpace};
use crate::ui::part::ViewContext;
use crate::ui::session::RowScope;
use crate::ui::work::Job;

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

/// Lines with the table they are of.
#[derive(Default)]
pub struct Arranged {
    /// The table.
    pub table: Option<Arc<BufferTable>>,
    /// The lines.
    pub shown: Shown,
    /// Rows before the filter.
    pub of: usize,
    /// Largest size in them.
    pub largest: u64,
}

pub fn update(context: &mut ViewContext<'_>, scene: Scene<'_>, table: Option<&Arc<BufferTable>>, state: &mut State) {
    let Some(table) = table else { return };
    let scope = context.shared.rows;
    // A filter that cannot be read changes nothing: the last one holds, and the field says what is wrong.
    let filter = match state.field.error(&context.shared.filter) {
        None => context.shared.filter.trim().to_owned(),
        Some(_) => state.arranged.as_ref().map(|(wanted, _)| wanted.filter.clone()).unwrap_or_default(),
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
        let listed = (scope == RowScope::Peak).then(|| scene.space.at_peak.clone());
        let (table, own, peak) = (Arc::clone(table), wanted.clone(), scene.space.peak_point());
        let job = Job::start(context.work, "buffers", move || Arc::new(work(table, &own, listed.as_deref(), peak)));
        // Only other rows begin at the top; opening a group leaves everything where it is.
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

fn work(table: Arc<BufferTable>, wanted: &Wanted, listed: Option<&[BufferId]>, peak: u32) -> Arranged {
    let rows: Vec<u32> = match (wanted.scope, listed) {
        (_, Some(listed)) => listed.iter().filter_map(|&buffer| table.row_of(buffer)).collect(),
        (RowScope::Step, None) => {
            (0..table.len() as u32).filter(|&row| table.lives_at(row as usize, wanted.step)).collect()
        }
        _ => (0..table.len() as u32).collect(),
    };
    let largest = rows.iter().map(|&row| table.size[row as usize]).max().unwrap_or(0);
    let filter = Filter::parse(&wanted.filter).unwrap_or_default();
    let mut kept = filter.keep(&table, &rows, peak);
    if !wanted.hidden.is_empty() {
        kept.retain(|&row| !wanted.hidden.contains(&table.buffers[row as usize]));
    }
    Arranged { shown: arrange(&table, kept, &wanted.order), of: rows.len(), largest, table: Some(table) }
}
