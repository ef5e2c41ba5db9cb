//! Rule `fragmentation`: memory lost between buffers in whatever order they are packed.

use super::finding::{ChangesResults, Finding};
use super::program_context::ProgramContext;
use crate::analysis::packing::{Block, best_fallback, most_live};
use crate::model::{Bytes, percent};

/// Name of the rule.
pub const NAME: &str = "fragmentation";

/// Least share of the available memory at which it is a cause.
const SHARE: f64 = 0.05;

/// Looks for memory that the compiler's fallback packer leaves unused too.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    // The compiler repacks by size when memory is tight, so waste of packing in program order alone does not count; and
    // no packer needs more than the present heap.
    let blocks = case.memory.families.blocks();
    let live = most_live(&blocks).0;
    let told = findings.len();
    of_all_orders(case, findings, (&blocks, live));
    if findings.len() == told {
        between_buffers(case, findings);
    }
}

/// Tells how much of what is allocated is free at the peak, where another order of packing might need less.
fn between_buffers(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let (allocated, peak) = (case.allocated(), case.at_peak());
    let free = case.space.fragmentation().0;
    if !case.space.peak_is_known() || !case.is_worth(free) || !case.is_share(free, MUCH) {
        return;
    }
    let mut finding = case.remedy(NAME);
    finding.title = format!(
        "{} of what is allocated ({}) is free at the peak, between buffers",
        Bytes(free).short(),
        percent(free, allocated.max(1))
    );
    finding.why = format!(
        "At most {} are in use at once; the compiler packed them so that they need {}. Savings at the peak and savings of what is needed differ by that.",
        Bytes(peak).short(),
        Bytes(allocated).short()
    );
    finding.advice.push(ANEW.to_owned());
    finding.changes_results = ChangesResults::No;
    findings.push(finding);
}

/// What to do about gaps.
const ANEW: &str =
    "any change that moves the peak packs the heap anew: `--edit`, or What if in the window, shows what it takes then";

/// Share of what is allocated from which what is free at the peak is told.
const MUCH: f64 = 0.12;

/// Looks for memory that is lost in whatever order the heap is packed.
fn of_all_orders(case: &ProgramContext<'_>, findings: &mut Vec<Finding>, (blocks, live): (&[Block], u64)) {
    if !case.is_share_of_capacity(case.memory.heap.saturating_sub(live), SHARE) {
        return;
    }
    let Some(packed) = best_fallback(blocks, case.memory.alignment()) else { return };
    let lost = packed.heap.min(case.memory.heap).saturating_sub(live);
    if !case.is_share_of_capacity(lost, SHARE) {
        return;
    }
    let mut finding = case.finding(NAME);
    finding.title = format!("{} are lost between buffers, packed in program order or by size", Bytes(lost).short());
    finding.why = format!(
        "At most {} of temporaries are live at once, but the heap takes {}, and {} when packed by size.",
        Bytes(live).short(),
        Bytes(case.memory.heap).short(),
        Bytes(packed.heap).short()
    );
    finding.at_stake_bytes = Some(Bytes(lost));
    finding.advice.push(
        "make buffers that differ slightly in size the same size, or shorten the live ranges of large ones".to_owned(),
    );
    finding.advice.push(ANEW.to_owned());
    finding.changes_results = ChangesResults::No;
    finding.buffers = case.peak.iter().take(20).map(|t| t.buffer).collect();
    findings.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::Opcode;

    /// Temporaries of so many MiB with first and last step each.
    fn program(blocks: &[(i64, u32, u32)]) -> Vec<Finding> {
        let mut sketch = Sketch::default();
        let rows: Vec<u32> = blocks
            .iter()
            .map(|b| sketch.instruction(Opcode::FUSION, array(&[b.0, 262_144], &[1, 0]), &[], "jit(f)/add"))
            .collect();
        for step in 0..20 {
            for (row, b) in rows.iter().zip(blocks) {
                if b.1 == step {
                    sketch.alloc(*row);
                }
            }
            for (row, b) in rows.iter().zip(blocks) {
                if b.2 == step {
                    sketch.free(*row);
                }
            }
        }
        sketch.findings(64 << 20, run)
    }

    #[test]
    fn what_no_packer_avoids_is_named() {
        // At most 50 MiB live at once; in program order, by size and by span they take 70.
        let awkward = [(10, 5, 8), (30, 4, 6), (30, 9, 10), (10, 3, 7), (10, 2, 3), (20, 7, 9)];
        let found = program(&awkward);
        assert_eq!(found.first().map(Finding::weight), Some(20 << 20));
    }

    #[test]
    fn blocks_that_stack_are_silent() {
        let found = program(&[(10, 0, 5), (10, 1, 4), (10, 2, 3)]);
        assert!(found.iter().all(|finding| finding.is_remedy), "no cause");
    }
}
