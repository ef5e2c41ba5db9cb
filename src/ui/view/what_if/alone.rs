//! What one change does alone, for changes that no finding has evaluated: own ones, some of the layers, micro-batches.

use std::collections::HashMap;

use crate::advisor::Finding;
use crate::analysis::what_if::{Depth, Edit, Outcome, UNTOLD};
use crate::model::{Bytes, MemorySpace};
use crate::ui::part::ViewContext;
use crate::ui::work::Job;

/// The effect of a change alone.
#[derive(Debug, Clone, Default)]
pub struct Figures {
    /// Bytes by which the peak falls; negative if it rises.
    pub saves: i128,
    /// Bytes allocated afterwards; `None` if unknown.
    pub needs: Option<Bytes>,
    /// What it comes to; `None` if unknown.
    pub outcome: Option<Outcome>,
    /// Whether the saving is an upper bound.
    pub is_most: bool,
    /// Why there is no prediction.
    pub undecided: Option<String>,
}

impl Figures {
    /// Those of a finding.
    pub fn of(finding: &Finding) -> Self {
        Self {
            saves: finding.saves_bytes().map_or(0, |bytes| i128::from(bytes.0)),
            needs: finding.allocated_after_bytes(),
            outcome: finding.outcome(),
            is_most: finding.saves_at_most(),
            undecided: (!finding.is_told()).then(|| UNTOLD.to_owned()),
        }
    }
}

/// Program, capacity in bytes and the change as written.
type Key = (usize, Option<u64>, String);

/// Effects of changes alone, worked out when first shown.
#[derive(Default)]
pub struct Alone(HashMap<Key, Job<Option<Figures>>>);

impl Alone {
    /// The effect of a change; `None` until it is known.
    pub fn of(&mut self, context: &ViewContext<'_>, edit: &Edit) -> Option<Figures> {
        let program = context.shared.program;
        let capacity = context.shared.capacity.get(&MemorySpace::HBM).map(|capacity| capacity.bytes);
        let key = (program, capacity.map(|bytes| bytes.0), edit.to_string());
        let job = self.0.entry(key).or_insert_with(|| {
            let (document, edits) = (std::sync::Arc::clone(context.document), vec![edit.clone()]);
            Job::start(context.work, "change alone", move || {
                let scene = document.scene(program, MemorySpace::HBM)?;
                let memory = scene.memory_against(capacity);
                let before = scene.unchanged(&memory);
                let after = memory.evaluate(scene.program, &edits, Depth::Verdict);
                Some(Figures {
                    saves: i128::from(before.peak.0) - i128::from(after.peak.0),
                    needs: Some(after.expected()),
                    outcome: after.outcome(memory.capacity),
                    is_most: after.is_bound,
                    undecided: if after.undecided.is_none() && !after.is_told() {
                        Some(UNTOLD.to_owned())
                    } else {
                        after.undecided.filter(|_| !after.is_bound)
                    },
                })
            })
        });
        job.poll().cloned().flatten()
    }
}
