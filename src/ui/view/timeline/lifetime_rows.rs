//! The rows of the lifetime chart: buffers of a step, of the peak or of the whole program, sorted, optionally folded.

use std::sync::Arc;

use rayon::slice::ParallelSliceMut as _;

use super::groups::Groups;
use crate::analysis::Scene;
use crate::analysis::contributors::contributors;
use crate::analysis::pyramid::MaxPyramid;
use crate::analysis::steps::Steps;
use crate::model::{BufferId, Bytes, MemorySpace};
use crate::ui::part::{BufferNames, ViewContext};
use crate::ui::session::{Document, RowScope};
use crate::ui::widget::theme::Slot;
use crate::ui::work::{DeferredPicture, Job, SpaceData};

/// Order of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Sort {
    #[default]
    Size,
    Start,
    Length,
    Name,
}

impl Sort {
    pub const ALL: [Self; 4] = [Self::Size, Self::Start, Self::Length, Self::Name];
}

/// Buffers that differ only in their layer.
pub struct Group {
    pub name: String,
    pub slot: Slot,
    /// The largest buffer.
    pub largest: BufferId,
    pub count: usize,
    /// Sum of their sizes in bytes.
    pub bytes: u64,
    pub start: u32,
    pub end: u32,
    /// Their sizes over time.
    pub curve: Steps,
    pub pyramid: MaxPyramid,
    pub highest: u64,
}

/// The listed rows in order.
#[derive(Default)]
pub struct Rows {
    /// Indices into the map's boxes, or into `groups` if there are any.
    pub lines: Vec<u32>,
    pub groups: Vec<Group>,
}

/// What the rows depend on.
#[derive(Clone, PartialEq, Eq)]
struct Key {
    of: (usize, MemorySpace),
    scope: RowScope,
    step: u32,
    sort: Sort,
    fold: bool,
}

/// Options and rows of the lifetime chart of a document.
#[derive(Default)]
pub struct Lifetimes {
    pub sort: Sort,
    pub fold: bool,
    /// First visible row, with fraction.
    pub top: f64,
    rows: Option<(Key, Job<Arc<Rows>>)>,
    pub shown: Arc<Rows>,
    /// Counts them, so that a picture of other rows is not taken for theirs.
    pub version: u64,
    pub picture: DeferredPicture<()>,
    pub names: BufferNames,
    pub last_selected: Option<BufferId>,
}

impl Lifetimes {
    /// Whether the rows are still being computed.
    pub fn is_listing(&self) -> bool {
        self.rows.as_ref().is_some_and(|(_, job)| job.is_running())
    }

    /// Recomputes the rows on a worker if their inputs changed.
    pub fn update(&mut self, context: &ViewContext<'_>, data: &Arc<SpaceData>, groups: &Groups) {
        let scope = context.shared.rows;
        let key = Key {
            of: (context.shared.program, context.shared.color),
            scope,
            step: if scope == RowScope::Step { context.step() } else { 0 },
            sort: self.sort,
            fold: self.fold,
        };
        if self.rows.as_ref().is_none_or(|(of, _)| *of != key) {
            let (document, data, groups, own) =
                (Arc::clone(context.document), Arc::clone(data), groups.clone(), key.clone());
            let job = Job::start(context.work, "lifetimes", move || Arc::new(rows(&document, &data, &groups, &own)));
            self.rows = Some((key, job));
        }
        if let Some(rows) = self.rows.as_mut().and_then(|(_, job)| job.poll())
            && !Arc::ptr_eq(rows, &self.shown)
        {
            self.shown = Arc::clone(rows);
            self.version += 1;
            self.last_selected = None;
        }
    }
}

fn rows(document: &Document, data: &SpaceData, groups: &Groups, key: &Key) -> Rows {
    let Some(scene) = document.scene(key.of.0, key.of.1) else { return Rows::default() };
    let Scene { program, analysis, .. } = scene;
    let boxes = &data.map.boxes;
    let live = |step| scene.live(step).into_iter().filter_map(|(buffer, _)| data.map.row_of(buffer)).collect();
    let mut lines: Vec<u32> = match key.scope {
        RowScope::Peak => live(None),
        RowScope::Step => live(Some(key.step)),
        RowScope::All => (0..boxes.len() as u32).collect(),
    };
    lines.retain(|&row| (row as usize) < boxes.len());
    if key.fold {
        let rows = lines.iter().map(|&row| &boxes[row as usize]);
        let buffers: Vec<(BufferId, Bytes)> = rows.map(|item| (item.buffer, Bytes(item.size))).collect();
        let mut folded: Vec<Group> = contributors(program, analysis, &buffers)
            .into_iter()
            .filter_map(|row| group(data, groups, row.name().to_owned(), &row.buffers))
            .collect();
        match key.sort {
            Sort::Size => folded.sort_by_key(|g| std::cmp::Reverse(g.bytes)),
            Sort::Start => folded.sort_by_key(|g| (g.start, g.end)),
            Sort::Length => folded.sort_by_key(|g| std::cmp::Reverse(g.end - g.start)),
            Sort::Name => folded.sort_by(|a, b| a.name.cmp(&b.name)),
        }
        return Rows { lines: (0..folded.len() as u32).collect(), groups: folded };
    }
    let item = |row: u32| &boxes[row as usize];
    match key.sort {
        // The boxes are sorted by size.
        Sort::Size => lines.par_sort_unstable(),
        Sort::Start => lines.par_sort_unstable_by_key(|&row| (item(row).start, row)),
        Sort::Length => {
            lines.par_sort_unstable_by_key(|&row| (std::cmp::Reverse(item(row).end - item(row).start), row));
        }
        Sort::Name => {
            let mut named: Vec<(String, u32)> =
                lines.iter().map(|&row| (program.buffer_name(item(row).buffer), row)).collect();
            named.par_sort_unstable();
            lines = named.into_iter().map(|(_, row)| row).collect();
        }
    }
    Rows { lines, groups: Vec::new() }
}

/// Folds buffers into one row; their sizes over time are summed.
fn group(data: &SpaceData, groups: &Groups, name: String, buffers: &[BufferId]) -> Option<Group> {
    let largest = *buffers.first()?;
    let items: Vec<_> = buffers.iter().filter_map(|&buffer| data.box_of(buffer)).collect();
    let (start, end) = (items.iter().map(|b| b.start).min()?, items.iter().map(|b| b.end).max()?);
    let mut changes: Vec<(u32, i64)> =
        items.iter().flat_map(|b| [(b.start, b.size as i64), (b.end.saturating_add(1), -(b.size as i64))]).collect();
    changes.sort_unstable();
    let mut curve = Steps::default();
    let (mut live, mut highest) = (0i64, 0);
    for (i, &(point, change)) in changes.iter().enumerate() {
        live += change;
        if changes.get(i + 1).is_none_or(|next| next.0 != point) {
            highest = highest.max(live);
            curve.push(point, live.max(0) as u64);
        }
    }
    let pyramid = MaxPyramid::new(&curve);
    Some(Group {
        name,
        slot: groups.slot_of(largest),
        largest,
        count: items.len(),
        bytes: items.iter().map(|b| b.size).sum(),
        start,
        end,
        curve,
        pyramid,
        highest: highest.max(1) as u64,
    })
}
