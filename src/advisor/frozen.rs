//! Rule `frozen`: 32-bit weights that a training step reads but does not change, such as those under LoRA.

use std::collections::BTreeMap;

use super::finding::{ChangesResults, Finding};
use super::precision::computes_in_16_bits;
use super::program_context::{ProgramContext, Total, counted, listed};
use crate::analysis::class::Class;
use crate::analysis::flow::{Value, computed};
use crate::analysis::what_if::{Arguments, Edit, Role};
use crate::model::{Bytes, ElementType, FastSet, InstructionId, NO_ROW, Opcode, Program};

/// Name of the rule.
pub const NAME: &str = "frozen";

/// Least share of allocated bytes at which such weights are reported.
const SHARE: f64 = 0.10;

/// The arguments that the program hands on as results.
fn handed_on(program: &Program) -> FastSet<InstructionId> {
    let root = program.entry_computation().map(|entry| entry.root).filter(|&root| root != NO_ROW).map(InstructionId);
    let Some(root) = root else { return FastSet::default() };
    let results = 0..program.instructions.operands_of(root).len() as i64;
    let from = results.map(|place| computed(program, Value { at: root, index: smallvec::smallvec![place] }).at);
    from.filter(|&at| program.instructions.opcode.get(at.index()) == Some(&Opcode::PARAMETER)).collect()
}

/// The weights in 32-bit floats that are handed on as they are, or are neither donated nor have a result of their shape,
/// largest first: rows of the base.
fn unchanged(case: &ProgramContext<'_>) -> Vec<usize> {
    let classes = case.analysis.classes(case.program);
    let handed_on = handed_on(case.program);
    let is_handed_on = |buffer| case.program.buffers.instruction_of(buffer).is_some_and(|at| handed_on.contains(&at));
    let mut results: BTreeMap<(ElementType, &[i64]), usize> = BTreeMap::new();
    for base in case.memory.base.iter().filter(|base| matches!(base.role, Role::Result(_))) {
        if let Some(node) = base.returned.as_ref().or_else(|| case.node(base.buffer)) {
            *results.entry((node.element_type, node.dimensions.as_slice())).or_default() += 1;
        }
    }
    let mut rows = Vec::new();
    for (row, _, _, is_donated) in case.arguments() {
        let buffer = case.memory.base[row].buffer;
        let Some(node) = case.node(buffer).filter(|_| classes.of(buffer) == Class::Weight) else { continue };
        if is_handed_on(buffer) {
            rows.extend(node.element_type.is_wide_float().then_some(row));
            continue;
        }
        if is_donated {
            continue;
        }
        let left = results.get_mut(&(node.element_type, node.dimensions.as_slice())).filter(|left| **left > 0);
        match left {
            Some(left) => *left -= 1,
            None if node.element_type.is_wide_float() => rows.push(row),
            None => {}
        }
    }
    rows.sort_by_key(|&row| (std::cmp::Reverse(case.memory.base[row].size), row));
    rows
}

/// Looks for frozen weights that are wider than what is computed with them.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    // Where nothing is trained, all weights are only read.
    if !case.memory.has_backward() || !computes_in_16_bits(case) {
        return;
    }
    let rows = unchanged(case);
    let bytes: u64 = rows.iter().map(|&row| case.memory.base[row].size).total();
    if !case.is_share(bytes, SHARE) {
        return;
    }
    let names = case.names_of_wide(&rows);
    let mut finding = case.remedy(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Dtype(Arguments(names.clone()), ElementType::BF16)]);
    if !case.is_worth(saved) {
        return;
    }
    finding.title =
        format!("{} of frozen weights are 32-bit floats: {}", Bytes(bytes).short(), finding.less(" in bfloat16"));
    finding.why = format!(
        "The step reads {} ({}) but does not change them, and it computes in 16 bits. The largest is {}.",
        counted(rows.len(), "weight", "weights"),
        listed(&names, 3),
        rows.first().map(|&row| case.describe(case.memory.base[row].buffer)).unwrap_or_default()
    );
    finding.advice.push(
        "store them in bfloat16: no update of them can be lost, and where they are cast before use the results stay the same; in 8 bits (int8 with scales) they take half of that"
            .to_owned(),
    );
    finding.changes_results = ChangesResults::Maybe;
    finding.buffers = rows.iter().map(|&row| case.memory.base[row].buffer).collect();
    findings.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::Shape;

    /// Findings about a weight that a step reads, where the last instruction returns `returned`.
    fn of_step(is_returned: bool) -> Vec<Finding> {
        let half = |dimensions: &[i64]| {
            let mut node = array(dimensions, &[1, 0]).root().clone();
            node.element_type = ElementType::BF16;
            Shape::from_array(node)
        };
        let mut sketch = Sketch::default();
        let frozen = sketch.argument(array(&[1024, 1024], &[1, 0]), "params['base']['kernel']");
        let x = sketch.argument(half(&[64, 1024]), "x");
        let forward =
            sketch.instruction(Opcode::FUSION, half(&[1024, 1024]), &[x, frozen], "jit(f)/jvp(m)/dot_general");
        let name = "jit(f)/transpose(jvp(m))/dot_general";
        let backward = sketch.instruction(Opcode::FUSION, half(&[64, 1024]), &[forward], name);
        let root = if is_returned { frozen } else { backward };
        sketch.instruction(Opcode::TUPLE, array(&[], &[]), &[root], "");
        sketch.alloc(forward);
        sketch.alloc(backward);
        sketch.free(forward);
        sketch.free(backward);
        sketch.findings(1 << 30, run)
    }

    #[test]
    fn weights_that_are_read_alone_are_frozen() {
        for found in [of_step(false), of_step(true)] {
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].title.starts_with("4.00 MiB of frozen weights"), "{}", found[0].title);
            assert_eq!(found[0].buffers.len(), 1);
        }
    }
}
