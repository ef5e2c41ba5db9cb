//! Rule `fetched`: arguments kept on the host of which copies are on the device all at once.

use super::finding::{ChangesResults, Finding};
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use crate::analysis::class::Class;
use crate::analysis::flow::{Value, computed};
use crate::model::{BufferId, Bytes, InstructionId, MemorySpace, NO_ROW, Opcode, ShapeNode, percent};

/// Name of the rule.
pub const NAME: &str = "fetched";

/// Least share of allocated bytes at which such copies are reported.
const SHARE: f64 = 0.10;

/// Looks for copies of arguments that are in host memory.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let held: Vec<&AtPeak> = case.peak.iter().filter(|t| is_fetched(case, t.buffer)).collect();
    let bytes: u64 = held.iter().map(|t| t.size).total();
    if !case.is_share(bytes, SHARE) {
        return;
    }
    let classes = case.analysis.classes(case.program);
    let of_state = held.iter().filter(|t| classes.of(t.buffer) == Class::Optimizer).map(|t| t.size).total();
    let mut finding = case.finding(NAME);
    case.stake(&mut finding, bytes);
    finding.title = format!(
        "What is kept on the host is on the device all at once: {} ({} of the peak)",
        Bytes(bytes).short(),
        percent(bytes, case.at_peak())
    );
    finding.why = format!(
        "{} of arguments in host memory; the largest is {}. {}.",
        counted(held.len(), "temporary at the peak is a copy", "temporaries at the peak are copies"),
        case.describe_first(&held),
        if of_state.saturating_mul(2) > bytes {
            "It is fetched for the update, which reads it leaf by leaf"
        } else {
            "It is fetched before it is used"
        }
    );
    finding.advice.push(
        "fetch and use it part by part: a loop over the layers or leaves (`jax.lax.scan`), or `jax.lax.optimization_barrier` between one part's result and the next one's transfer".to_owned(),
    );
    finding.changes_results = ChangesResults::No;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Whether a temporary is a copy of an argument that is in host memory.
pub fn is_fetched(case: &ProgramContext<'_>, buffer: BufferId) -> bool {
    let program = case.program;
    let Some(at) = program.buffers.instruction_of(buffer) else { return false };
    let is_copy = matches!(program.instructions.opcode.get(at.index()), Some(&(Opcode::COPY | Opcode::COPY_START)));
    let from = program.instructions.operands_of(at).first().copied().filter(|&row| is_copy && row != NO_ROW);
    let Some(from) = from.map(|row| computed(program, Value::whole(InstructionId(row))).at) else { return false };
    let is_host = |node: &ShapeNode| node.layout.as_ref().is_some_and(|own| own.memory_space == MemorySpace::HOST.0);
    program.instructions.opcode.get(from.index()) == Some(&Opcode::PARAMETER)
        && program.is_in_entry(from)
        && program.shape_of(from).is_some_and(|shape| is_host(shape.root()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::{Layout, Shape};

    fn findings(space: i64) -> Vec<Finding> {
        let mut sketch = Sketch::default();
        let on = |space: i64| {
            let mut node = array(&[1024, 1024], &[1, 0]).root().clone();
            node.layout =
                Some(Arc::new(Layout { minor_to_major: vec![1, 0], memory_space: space, ..Layout::default() }));
            Shape::from_array(node)
        };
        let state: Vec<u32> = (0..4).map(|i| sketch.argument(on(space), &format!("opt_state[{i}]"))).collect();
        let copies: Vec<u32> = state.iter().map(|&row| sketch.instruction(Opcode::COPY, on(0), &[row], "")).collect();
        let update = sketch.instruction(Opcode::FUSION, array(&[8, 128], &[1, 0]), &copies, "jit(step)/add");
        for &row in copies.iter().chain([&update]) {
            sketch.alloc(row);
        }
        for &row in copies.iter().chain([&update]) {
            sketch.free(row);
        }
        sketch.findings(1 << 30, run)
    }

    #[test]
    fn state_that_is_fetched_at_once_is_told() {
        let found = findings(MemorySpace::HOST.0);
        assert_eq!(found.len(), 1);
        assert!(found[0].title.contains("16.0 MiB"), "{}", found[0].title);
        assert_eq!(found[0].buffers.len(), 4);
    }

    #[test]
    fn copies_of_what_is_on_the_device_are_something_else() {
        assert!(findings(0).is_empty());
    }
}
