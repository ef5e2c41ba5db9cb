//! What has no name and is made from nothing that has one is named by who reads it next.

use super::{Value, handed_on};
use crate::analysis::names::plain::is_plain;
use crate::analysis::names::scope;
use crate::model::{InstructionId, Program};

/// Most instructions after one among which its reader is looked for.
const MOST_AFTER: u32 = 2048;

/// The label of what has no name and is made from nothing that has one: who reads it next.
pub(super) fn read_by(program: &Program, at: InstructionId) -> Option<String> {
    let computation = program.computations.get(program.computation_of(at)?.index())?;
    let end = computation.end.min(at.0.saturating_add(MOST_AFTER));
    let mut meant = vec![at];
    for row in (at.0 + 1..end).map(InstructionId) {
        let is_read =
            program.instructions.operands_of(row).iter().any(|&operand| meant.iter().any(|at| at.0 == operand));
        if !is_read {
            continue;
        }
        let name = program.text.op_name(row);
        if !is_plain(&name) {
            return Some(format!("read by {}", scope::short(&name, 3)));
        }
        if handed_on(program, &Value::whole(row)).is_some() || program.opcode_name(row).starts_with("async-") {
            meant.push(row);
        }
    }
    None
}
