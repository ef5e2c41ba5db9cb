//! Changes tried out: the outcome with everything its view draws, computed on a worker.

use std::collections::HashMap;
use std::sync::Arc;

use crate::analysis::class::{Class, Classes};
use crate::analysis::names::scope;
use crate::analysis::packing;
use crate::analysis::span_index::SpanIndex;
use crate::analysis::what_if::{Depth, Edit, Memory, Outcome, Role};
use crate::model::{BufferId, Bytes, Program};
use crate::ui::session::Document;

/// What stands at a peak, equal things of all layers as one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeakGroup {
    /// Framework's name, numbered scopes folded.
    pub name: String,
    /// Bytes of all.
    pub bytes: Bytes,
    /// How many.
    pub count: usize,
    /// What they are for.
    pub class: Class,
    /// The largest of them.
    pub buffer: BufferId,
    /// Its bytes.
    largest: u64,
}

/// The outcome of some changes.
pub struct WhatIfResult {
    /// The memory they were tried on.
    pub memory: Arc<Memory>,
    /// Without them.
    pub before: Outcome,
    /// With them.
    pub after: Outcome,
    /// Live bytes without them, by heap event.
    pub curve_before: Vec<u64>,
    /// Live bytes with them.
    pub curve_after: Vec<u64>,
    /// The same by class, in the order of [`Class::ALL`].
    pub classes: Vec<Vec<u64>>,
    /// What lives throughout, with the changes, by class.
    pub base_by_class: Vec<u64>,
    /// Classes by family.
    class_of: Vec<Class>,
    /// Events above the capacity, without and with the changes.
    pub over: (usize, usize),
    /// What stands at the peak with them, most bytes first.
    pub at_peak: Vec<PeakGroup>,
    /// The blocks with the changes, to look up.
    pub blocks: Blocks,
}

/// Blocks by what is asked of them, so that a frame need not walk through all.
#[derive(Default)]
pub struct Blocks {
    /// By time.
    pub spans: SpanIndex,
    /// The largest first.
    pub by_size: Vec<u32>,
    /// (largest buffer of the block's family, block), ascending.
    by_root: Vec<(BufferId, u32)>,
    /// Highest value of each class's curve.
    pub highest: Vec<u64>,
}

impl Blocks {
    fn new(memory: &Memory, after: &Outcome, classes: &[Vec<u64>]) -> Self {
        let blocks = &after.sizes.blocks;
        let mut by_size: Vec<u32> = (0..blocks.len() as u32).filter(|&b| blocks[b as usize].size > 0).collect();
        by_size.sort_by_key(|&block| std::cmp::Reverse(blocks[block as usize].size));
        let root = |family: u32| memory.families.list.get(family as usize).map(|family| family.root);
        let families = after.sizes.family.iter().zip(0u32..);
        let mut by_root: Vec<(BufferId, u32)> =
            families.filter_map(|(&family, block)| Some((root(family)?, block))).collect();
        by_root.sort_unstable();
        Self {
            spans: SpanIndex::new(blocks.iter().map(|block| (block.start, block.end))),
            by_size,
            by_root,
            highest: classes.iter().map(|curve| curve.iter().copied().max().unwrap_or(0)).collect(),
        }
    }

    /// Blocks of a buffer's family.
    pub fn of(&self, buffer: BufferId) -> impl Iterator<Item = usize> + '_ {
        let first = self.by_root.partition_point(|&(root, _)| root < buffer);
        self.by_root[first..].iter().take_while(move |(root, _)| *root == buffer).map(|&(_, block)| block as usize)
    }
}

impl WhatIfResult {
    /// Tries changes out; `None` where the document has no such program.
    #[must_use]
    pub fn new(document: &Document, program: usize, memory: Arc<Memory>, edits: &[Edit]) -> Option<Self> {
        let (model, analysis) = document.program(program)?;
        let before = memory.evaluate(model, &[], Depth::Verdict);
        let after = memory.evaluate(model, edits, Depth::Packed);
        let curve_before = memory.curve(&before);
        let curve_after = memory.curve(&after);
        let known = analysis.classes(model);
        let mut base_by_class = vec![0u64; Class::ALL.len()];
        for (base, &size) in memory.base.iter().zip(&after.sizes.base) {
            let sum = &mut base_by_class[known.of(base.buffer).place()];
            *sum = sum.saturating_add(size);
        }
        let class_of: Vec<Class> = memory.families.list.iter().map(|family| known.of(family.root)).collect();
        let classes: Vec<Vec<u64>> = Class::ALL
            .iter()
            .zip(&base_by_class)
            .map(|(class, &throughout)| {
                let mut curve = memory.curve_of(&after, |family| class_of.get(family) == Some(class));
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
        let at_peak = groups_at_peak(model, known, &memory, &after);
        let blocks = Blocks::new(&memory, &after, &classes);
        Some(Self {
            memory,
            before,
            after,
            curve_before,
            curve_after,
            classes,
            base_by_class,
            class_of,
            over,
            at_peak,
            blocks,
        })
    }

    /// What a family is for.
    #[must_use]
    pub fn class_of(&self, family: usize) -> Class {
        self.class_of.get(family).copied().unwrap_or_default()
    }

    /// Bytes by which the peak changes.
    #[must_use]
    pub fn change(&self) -> i128 {
        i128::from(self.after.peak.0) - i128::from(self.before.peak.0)
    }

    /// What is left of the capacity, or how much is missing.
    #[must_use]
    pub fn spare(&self) -> Option<(bool, Bytes)> {
        let capacity = self.memory.capacity?;
        let needs = self.after.expected().0;
        Some(if needs > capacity { (false, Bytes(needs - capacity)) } else { (true, Bytes(capacity - needs)) })
    }

    /// Everything in words, for the clipboard.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        use std::fmt::Write as _;
        let mut out = String::new();
        let edits: Vec<String> = self.after.edits.iter().map(|edit| format!("--edit '{edit}'")).collect();
        let _ = writeln!(out, "{name}: {}", self.after.sentence(self.memory.capacity));
        for (label, before, after) in [
            ("peak", self.before.peak, self.after.peak),
            ("allocated", Bytes(self.memory.allocated), self.after.expected()),
            ("always live", self.before.base, self.after.base),
        ] {
            let _ = writeln!(out, "  {label}: {} -> {} ({})", before.short(), after.short(), after.exact());
        }
        if let Some(band) = &self.after.band {
            let _ = writeln!(out, "  prediction: {band}");
        }
        for warning in &self.after.warnings {
            let _ = writeln!(out, "  careful: {warning}");
        }
        let _ = writeln!(out, "  highwater report FILE {}", edits.join(" "));
        out
    }
}

/// What stands at the peak of an outcome.
fn groups_at_peak(program: &Program, known: &Classes, memory: &Memory, outcome: &Outcome) -> Vec<PeakGroup> {
    let mut rows: HashMap<String, PeakGroup> = HashMap::new();
    let mut add = |name: String, bytes: u64, class: Class, buffer: BufferId| {
        if bytes == 0 {
            return;
        }
        let row = rows.entry(name).or_insert_with_key(|name| PeakGroup {
            name: name.clone(),
            bytes: Bytes::ZERO,
            count: 0,
            class,
            buffer,
            largest: 0,
        });
        row.bytes = Bytes(row.bytes.0.saturating_add(bytes));
        row.count += 1;
        if bytes > row.largest {
            (row.largest, row.buffer) = (bytes, buffer);
        }
    };
    let called = |op_name: &str, buffer: BufferId| {
        let folded = scope::folded(op_name);
        if folded.is_empty() { program.buffer_name(buffer) } else { folded }
    };
    for (base, &bytes) in memory.base.iter().zip(&outcome.sizes.base) {
        let op_name = || program.buffers.instruction_of(base.buffer).map(|i| program.text.op_name(i));
        let name = match &base.role {
            Role::Argument { path, .. } => called(path, base.buffer),
            Role::Result(_) => "results".to_owned(),
            Role::Other => called(&op_name().unwrap_or_default(), base.buffer),
        };
        add(name, bytes, known.of(base.buffer), base.buffer);
    }
    let (_, at) = packing::most_live(&outcome.sizes.blocks);
    for (block, &family) in outcome.sizes.blocks.iter().zip(&outcome.sizes.family) {
        if block.start <= at && at <= block.end {
            let Some(family_row) = memory.families.list.get(family as usize) else { continue };
            let name = memory.family_name(family as usize);
            add(called(name, family_row.root), block.size, known.of(family_row.root), family_row.root);
        }
    }
    let mut rows: Vec<PeakGroup> = rows.into_values().collect();
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
    rows
}
