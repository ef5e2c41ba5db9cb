//! Rule `layout_copy`: whole arguments copied because the program needs them in another layout.

use super::finding::{ChangesResults, Finding};
use super::program_context::{AtPeak, ProgramContext, Total};
use crate::analysis::what_if::Role;
use crate::model::{BufferId, Bytes, InstructionId, NO_ROW, Opcode};

/// Name of the rule.
pub const NAME: &str = "layout_copy";

/// The argument that a plain copy reads, directly or through views.
fn copied_argument(case: &ProgramContext<'_>, buffer: BufferId) -> Option<usize> {
    let program = case.program;
    let mut at = program.buffers.instruction_of(buffer)?;
    if program.instructions.opcode.get(at.index()) != Some(&Opcode::COPY) {
        return None;
    }
    for _ in 0..16 {
        let &row = program.instructions.operands_of(at).first().filter(|&&row| row != NO_ROW)?;
        at = InstructionId(row);
        match *program.instructions.opcode.get(at.index())? {
            Opcode::PARAMETER => break,
            Opcode::BITCAST | Opcode::GET_TUPLE_ELEMENT | Opcode::COPY => {}
            _ => return None,
        }
    }
    case.memory.base.iter().position(|base| {
        matches!(base.role, Role::Argument { .. }) && program.buffers.instruction_of(base.buffer) == Some(at)
    })
}

/// Looks for copies of whole arguments in another layout.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let mut found: Vec<(&AtPeak, usize)> = Vec::new();
    for t in &case.peak {
        let Some(row) = copied_argument(case, t.buffer) else { continue };
        let layout = |buffer| case.node(buffer).and_then(|node| node.layout.as_ref()).map(|l| l.minor_to_major.clone());
        if layout(t.buffer) != layout(case.memory.base[row].buffer) {
            found.push((t, row));
        }
    }
    let bytes: u64 = found.iter().map(|f| f.0.size).total();
    if !case.is_worth(bytes) {
        return;
    }
    let mut finding = case.remedy(NAME);
    let families: Vec<usize> = found.iter().map(|f| f.0.family).collect();
    case.at_stake_without(&mut finding, &families, "at most, if none of the copies is made");
    finding.title = format!("{} of arguments are copied in full to another layout", Bytes(bytes).short());
    let text = |buffer| case.program.buffer_shape(buffer).map(|(shape, node)| shape.text_of(node)).unwrap_or_default();
    finding.why = found
        .first()
        .map(|&(t, row)| {
            let base = &case.memory.base[row];
            let path = match &base.role {
                Role::Argument { path, .. } => path.as_str(),
                _ => "",
            };
            format!(
                "`{path}` arrives as {} and is copied to {}{}.",
                text(base.buffer),
                text(t.buffer),
                match found.len() {
                    0 | 1 => String::new(),
                    2 => "; so is one other".to_owned(),
                    count => format!("; so are {} others", count - 1),
                }
            )
        })
        .unwrap_or_default();
    finding.advice.push("let the compiler choose the layout of these arguments: `jax.jit(f, in_shardings=Format(Layout.AUTO))`, and keep them in that layout between calls".to_owned());
    finding.advice.push("or store the array transposed, so that its default layout is the one needed".to_owned());
    finding.changes_results = ChangesResults::No;
    finding.reference = "tpu-inference issue 1882 of vLLM (whole-weight copies); JAX, layouts of arguments";
    finding.buffers = found.iter().flat_map(|&(t, row)| [t.buffer, case.memory.base[row].buffer]).collect();
    findings.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};

    fn copied(order: &[u32]) -> Vec<Finding> {
        let mut sketch = Sketch::default();
        let w = sketch.argument(array(&[1024, 2048], &[1, 0]), "params['w']");
        let copy = sketch.instruction(Opcode::COPY, array(&[1024, 2048], order), &[w], "");
        sketch.alloc(copy);
        let dot = sketch.instruction(Opcode::FUSION, array(&[16, 16], &[1, 0]), &[copy], "jit(f)/dot_general");
        sketch.alloc(dot);
        sketch.free(copy);
        sketch.free(dot);
        sketch.findings(1 << 30, run)
    }

    #[test]
    fn a_copy_into_another_layout_is_named() {
        let findings = copied(&[0, 1]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].why.contains("params['w']"), "{}", findings[0].why);
        assert_eq!(findings[0].buffers, [BufferId(1), BufferId(0)]);
        assert!(findings[0].weight() > 8_000_000);
    }

    #[test]
    fn a_copy_in_the_same_layout_is_not() {
        assert!(copied(&[1, 0]).is_empty());
    }
}
