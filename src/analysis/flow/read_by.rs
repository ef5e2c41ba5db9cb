//! What has no name and is made from nothing that has one is named by who reads it next.

use super::words::Label;
use super::{Value, handed_on, opcode};
use crate::analysis::names::plain::is_plain;
use crate::analysis::names::scope;
use crate::model::{InstructionId, Opcode, Program};

/// Most instructions after one among which its reader is looked for.
const MOST_AFTER: u32 = 2048;

/// The label of what has no name and is made from nothing that has one: who reads it next, or where that only hands it on, as
/// a reshape does of what another core has computed, its name.
pub(super) fn read_by(program: &Program, at: InstructionId) -> Option<Label> {
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
        let is_handed_on = handed_on(program, &Value::whole(row)).is_some();
        if !is_plain(&name) {
            return Some(if is_handed_on && is_from_another_core(program, at) {
                Label::borrowed(name)
            } else {
                Label::plain(format!("read by {}", scope::short(&name, 3)))
            });
        }
        if is_handed_on || program.opcode_name(row).starts_with("async-") {
            meant.push(row);
        }
    }
    None
}

/// Whether an instruction starts what runs beside others, or is in it: its name is where its result is read.
fn is_from_another_core(program: &Program, at: InstructionId) -> bool {
    matches!(opcode(program, at), Opcode::ASYNC_START | Opcode::CUSTOM_CALL)
}
