//! The result of a what-if evaluation with everything a view draws: curves by class, blocks, what stands at the peak.

use std::sync::Arc;

use super::axis::{Axis, at_places};
use super::edit::Edit;
use super::memory::Memory;
use super::outcome::Outcome;
use super::peak_rows::PeakRow;
use super::prediction::{Depth, Prediction};
use crate::analysis::Scene;
use crate::analysis::class::Class;
use crate::analysis::contributors::{Contributor, contributors};
use crate::analysis::map::TimeAxis;
use crate::analysis::program::ProgramAnalysis;
use crate::analysis::span_index::SpanIndex;
use crate::model::{BufferId, Bytes, Program, UnitSystem};

/// The predictions without and with a set of changes.
pub struct WhatIfResult {
    /// The memory model the changes were applied to.
    pub memory: Arc<Memory>,
    /// Prediction without the changes.
    pub before: Arc<Prediction>,
    /// Prediction with the changes.
    pub after: Prediction,
    /// The axis of the curves and of the blocks.
    pub axis: Axis,
    /// The compiler's own peak, and its point: that of every other view.
    pub peak: (Bytes, u32),
    /// Live bytes without the changes, by point of the axis.
    pub curve_before: Vec<u64>,
    /// Live bytes with the changes, by point of the axis.
    pub curve_after: Vec<u64>,
    /// `curve_after` split by class, in the order of [`Class::ALL`].
    pub classes: Vec<Vec<u64>>,
    /// Always-live bytes with the changes, in the order of [`Class::ALL`].
    pub base_by_class: Vec<u64>,
    /// Class of each block with the changes.
    class_of: Vec<Class>,
    /// Number of points of the axis over capacity, without and with the changes.
    pub over: (usize, usize),
    /// What stands at the peak with the changes, largest first.
    pub at_peak: Arc<[Contributor]>,
    /// Indexes of the blocks with the changes.
    pub blocks: Blocks,
}

/// Indexes of blocks, so that no frame has to scan them all.
#[derive(Default)]
pub struct Blocks {
    /// Index by time.
    pub spans: SpanIndex,
    /// Block indices, largest block first, without empty blocks.
    pub by_size: Vec<u32>,
    /// (root buffer of the block's family, block index), ascending.
    by_root: Vec<(BufferId, u32)>,
    /// Maximum of each class's curve in bytes.
    pub highest: Vec<u64>,
}

impl Blocks {
    fn new(memory: &Memory, after: &Prediction, axis: &Axis, classes: &[Vec<u64>]) -> Self {
        let blocks = &after.sizes.blocks;
        let mut by_size: Vec<u32> = (0..blocks.len() as u32).filter(|&b| blocks[b as usize].size > 0).collect();
        by_size.sort_by_key(|&block| std::cmp::Reverse(blocks[block as usize].size));
        let families = after.sizes.family.iter().zip(0u32..);
        let mut by_root: Vec<(BufferId, u32)> =
            families.map(|(&family, block)| (memory.buffer_of_row(family), block)).collect();
        by_root.sort_unstable();
        Self {
            spans: SpanIndex::new(blocks.iter().map(|block| axis.points_of(block))),
            by_size,
            by_root,
            highest: classes.iter().map(|curve| curve.iter().copied().max().unwrap_or(0)).collect(),
        }
    }

    /// Indices of the blocks in the family whose root is `buffer`.
    pub fn of(&self, buffer: BufferId) -> impl Iterator<Item = usize> + '_ {
        let first = self.by_root.partition_point(|&(root, _)| root < buffer);
        self.by_root[first..].iter().take_while(move |(root, _)| *root == buffer).map(|&(_, block)| block as usize)
    }
}

impl WhatIfResult {
    /// Evaluates changes on the memory of a program; `before` is the prediction without changes.
    #[must_use]
    pub fn new(scene: Scene<'_>, memory: Arc<Memory>, before: Arc<Prediction>, edits: &[Edit]) -> Self {
        let Scene { program: model, analysis, space, .. } = scene;
        let after = memory.evaluate(model, edits, Depth::Packed);
        let steps = analysis.live.as_ref().map(|live| live.points() + 1);
        let axis = Axis::new(&memory.points, steps, memory.families.events);
        let by_event = (memory.curve(&before), memory.curve(&after));
        let places = axis.highest(&by_event.1);
        let curve_before = at_places(&by_event.0, &axis.highest(&by_event.0));
        let curve_after = at_places(&by_event.1, &places);
        let known = analysis.classes(model);
        let mut base_by_class = vec![0u64; Class::ALL.len()];
        for (base, &size) in memory.base.iter().zip(&after.sizes.base) {
            let sum = &mut base_by_class[known.of(base.buffer).place()];
            *sum = sum.saturating_add(size);
        }
        let class_of: Vec<Class> = after.sizes.family.iter().map(|&row| known.of(memory.buffer_of_row(row))).collect();
        let classes: Vec<Vec<u64>> = Class::ALL
            .iter()
            .zip(&base_by_class)
            .map(|(class, &throughout)| {
                let curve = memory.curve_of(&after, |block| class_of.get(block) == Some(class));
                let mut curve = at_places(&curve, &places);
                for bytes in &mut curve {
                    *bytes = bytes.saturating_add(throughout);
                }
                curve
            })
            .collect();
        let count = |curve: &[u64]| {
            memory.capacity.map_or(0, |capacity| curve.iter().filter(|&&bytes| bytes > capacity).count())
        };
        let over = (count(&curve_before), count(&curve_after));
        let at_peak = match edits {
            [] => Arc::clone(scene.contributors()),
            _ => contributors_after(model, analysis, (&memory, &after)).into(),
        };
        let blocks = Blocks::new(&memory, &after, &axis, &classes);
        Self {
            memory,
            before,
            after,
            axis,
            peak: (space.peak(), space.peak_point()),
            curve_before,
            curve_after,
            classes,
            base_by_class,
            class_of,
            over,
            at_peak,
            blocks,
        }
    }

    /// Class of a block, by its number.
    #[must_use]
    pub fn class_of(&self, block: usize) -> Class {
        self.class_of.get(block).copied().unwrap_or_default()
    }

    /// Change of the peak in bytes.
    #[must_use]
    pub fn change(&self) -> i128 {
        i128::from(self.after.peak.0) - i128::from(self.before.peak.0)
    }

    /// Allocated bytes: the compiler's own if nothing is changed, else those of our packing.
    #[must_use]
    pub fn allocated(&self) -> Bytes {
        if self.after.edits.is_empty() { Bytes(self.memory.allocated) } else { self.after.expected() }
    }

    /// Bytes that our packing of the unchanged program takes beyond the compiler's; 0 if they agree.
    #[must_use]
    pub fn packing_difference(&self) -> i128 {
        i128::from(self.before.expected().0) - i128::from(self.memory.allocated)
    }

    /// (bytes, point of the axis) of the peak with the changes: the compiler's own while nothing is changed.
    #[must_use]
    pub fn peak_after(&self) -> (Bytes, u32) {
        if self.after.edits.is_empty() && self.axis.unit == TimeAxis::ProgramOrder {
            self.peak
        } else {
            (self.after.peak, self.axis.point_of(self.after.peak_event))
        }
    }

    /// The same without the changes.
    #[must_use]
    pub fn peak_before(&self) -> (Bytes, u32) {
        if self.axis.unit == TimeAxis::ProgramOrder { self.peak } else { (self.before.peak, self.before.peak_event) }
    }

    /// What it comes to: the compiler's own verdict while nothing is changed; `None` if there is no prediction, or no
    /// capacity.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        if !self.after.edits.is_empty() {
            return self.after.outcome(self.memory.capacity);
        }
        let (needs, capacity) = (self.allocated().0, self.memory.capacity?);
        Some(match needs.checked_sub(capacity) {
            Some(over) if over > 0 => Outcome::Over(Bytes(over)),
            _ => Outcome::Fits(Bytes(capacity - needs)),
        })
    }

    /// Plain text for the clipboard.
    #[must_use]
    pub fn text(&self, name: &str, units: UnitSystem) -> String {
        use std::fmt::Write as _;
        let mut out = String::new();
        let edits: Vec<String> = self.after.edits.iter().map(|edit| format!("--edit '{edit}'")).collect();
        let _ = writeln!(out, "{name}: {}", self.after.sentence(self.memory.capacity, units));
        if self.after.undecided.is_some() {
            return out;
        }
        for (label, before, after) in [
            ("peak", self.peak_before().0, self.peak_after().0),
            ("allocated", Bytes(self.memory.allocated), self.allocated()),
            ("always live", self.before.base, self.after.base),
        ] {
            let (before, short) = (units.short(before), units.short(after));
            let _ = writeln!(out, "  {label}: {before} -> {short} ({})", after.exact());
        }
        if let Some(band) = &self.after.band {
            let _ = writeln!(out, "  prediction: {band}");
        }
        for warning in &self.after.warnings {
            let _ = writeln!(out, "  caution: {warning}");
        }
        let _ = writeln!(out, "  highwater report FILE {}", edits.join(" "));
        out
    }
}

/// What has memory at the peak of a prediction, folded; what the changes add has rows of its own.
fn contributors_after(
    program: &Program,
    analysis: &ProgramAnalysis,
    (memory, prediction): (&Memory, &Prediction),
) -> Vec<Contributor> {
    let (added, own): (Vec<PeakRow>, Vec<PeakRow>) =
        memory.at_peak(analysis, prediction).into_iter().partition(|row| row.added.is_some());
    let own: Vec<(BufferId, Bytes)> = own.iter().map(|row| (row.buffer, row.bytes)).collect();
    let mut found = contributors(program, analysis, &own);
    for row in &added {
        let words = row.added.unwrap_or_default();
        if let Some(known) = found.iter_mut().find(|known| known.scope == words) {
            known.bytes += row.bytes;
            continue;
        }
        found.extend(
            contributors(program, analysis, &[(row.buffer, row.bytes)]).into_iter().map(|alone| Contributor {
                scope: words.to_owned(),
                padding: Bytes::ZERO,
                ..alone
            }),
        );
    }
    found.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.scope.cmp(&b.scope)));
    found
}
