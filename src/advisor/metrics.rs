//! Metrics of a training loop, such as Keras' accuracy, that keep what they are computed from.

use super::library::Library;
use super::program_context::{AtPeak, ProgramContext};
use crate::model::{BufferId, FastSet, InstructionId, Opcode, Program};

/// Folder of metrics in Keras' package.
const METRICS: &str = "/metrics/";

/// Whether nothing but metrics reads some temporaries from the peak on: without the metrics they would be gone by then.
pub(super) fn alone_keep(case: &ProgramContext<'_>, held: &[&AtPeak]) -> bool {
    let Some(live) = case.analysis.live.as_ref().filter(|_| Library::of(case) == Library::Keras) else { return false };
    let own: FastSet<BufferId> = held.iter().map(|t| t.buffer).collect();
    let peak = case.space.peak_point();
    let reads = live.reads(case.program);
    let mut later = reads
        .iter()
        .filter(|read| read.1 >= peak && own.contains(&BufferId(read.0)))
        .map(|read| InstructionId(read.2))
        .peekable();
    later.peek().is_some() && later.all(|at| is_of_metric(case.program, at))
}

/// Whether an instruction is computed for a metric, by its source lines or by those of what it calls.
fn is_of_metric(program: &Program, at: InstructionId) -> bool {
    let is_one = |at: InstructionId| {
        let metadata = program.text.metadata(at);
        metadata.source.iter().chain(&metadata.stack).any(|line| line.file.contains(METRICS))
    };
    let called = || program.instructions.called_by(at).iter().filter_map(|c| program.computations.get(c.index()));
    // Constants are shared with whatever else has the same ones.
    let is_own = |&at: &InstructionId| program.instructions.opcode.get(at.index()) != Some(&Opcode::CONSTANT);
    is_one(at) || called().flat_map(|c| (c.start..c.end).map(InstructionId)).filter(is_own).any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::Finding;
    use crate::advisor::sketch::{Sketch, array};

    /// A finding, if metrics alone keep the one temporary that is there before the largest.
    fn probe(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
        let held: Vec<&AtPeak> = case.peak.iter().filter(|t| case.name(t.family).contains("head")).collect();
        assert_eq!(held.len(), 1);
        if alone_keep(case, &held) {
            findings.push(case.finding("kept"));
        }
    }

    /// Logits that are read by a gradient before the peak or behind it, and by a metric at the end.
    fn found(gradient_is_late: bool, file: &str) -> bool {
        let mut sketch = Sketch::default();
        let x = sketch.argument(array(&[1024, 1024], &[1, 0]), "x");
        let small = || array(&[8, 128], &[1, 0]);
        let logits = sketch.instruction(Opcode::FUSION, array(&[1024, 1024], &[1, 0]), &[x], "jit(step)/jvp(head)/add");
        sketch.alloc(logits);
        let gradient = |sketch: &mut Sketch| {
            let row = sketch.instruction(Opcode::FUSION, small(), &[logits], "jit(step)/transpose(jvp(head))/mul");
            sketch.alloc(row);
            sketch.free(row);
        };
        if !gradient_is_late {
            gradient(&mut sketch);
        }
        let large = sketch.instruction(Opcode::FUSION, array(&[4096, 1024], &[1, 0]), &[x], "jit(step)/jvp(body)/add");
        sketch.alloc(large);
        sketch.free(large);
        if gradient_is_late {
            gradient(&mut sketch);
        }
        let metric = sketch.instruction(Opcode::FUSION, small(), &[logits], "jit(step)/reduce");
        sketch.source(metric, file);
        sketch.source(logits, "/env/site-packages/keras/src/layers/core/dense.py");
        sketch.alloc(metric);
        sketch.free(metric);
        sketch.free(logits);
        !sketch.findings(1 << 30, probe).is_empty()
    }

    #[test]
    fn what_metrics_alone_read_from_the_peak_on_is_kept_by_them() {
        let metrics = "/env/site-packages/keras/src/metrics/accuracy_metrics.py";
        assert!(found(false, metrics));
        assert!(!found(true, metrics), "a gradient reads it too");
        assert!(!found(false, "/env/site-packages/keras/src/losses/losses.py"));
    }
}
