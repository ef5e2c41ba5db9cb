//! Prints an instruction as a line of HLO text, with its operands. Attributes that the decoder does not keep (windows,
//! dimension numbers, backend configurations) are left out.

use std::fmt::Write as _;

use crate::model::{ComputationId, InstructionId, NO_ROW, Opcode, Program};

/// The instruction with a name, with or without the `%` before it.
#[must_use]
pub fn instruction_named(program: &Program, name: &str) -> Option<InstructionId> {
    let name = name.trim().trim_start_matches('%');
    let rows = (0..program.instructions.len()).map(InstructionId::from_index);
    rows.into_iter().find(|&row| program.text.instruction_name(row) == name)
}

/// The operands of an instruction that are in the file.
#[must_use]
pub fn operands(program: &Program, instruction: InstructionId) -> Vec<InstructionId> {
    let rows = program.instructions.operands_of(instruction).iter();
    rows.filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row)).collect()
}

/// `%fusion.1 = f32[8,128]{1,0} fusion(f32[8,128]{1,0} %p.0), calls=%fused_computation, metadata={op_name="jit(f)/mul"}`
#[must_use]
pub fn instruction_text(program: &Program, instruction: InstructionId) -> String {
    let mut out = String::new();
    let computation = program.computation_of(instruction).and_then(|id| program.computations.get(id.index()));
    if computation.is_some_and(|computation| computation.root == instruction.0) {
        out.push_str("ROOT ");
    }
    let opcode = program.instructions.opcode.get(instruction.index()).copied().unwrap_or_default();
    let name = program.text.instruction_name(instruction);
    // An argument that comes in a tuple is taken out of it.
    let is_part = opcode == Opcode::PARAMETER && !program.instructions.operands_of(instruction).is_empty();
    let word = if is_part { "get-tuple-element" } else { program.opcode_name(instruction) };
    let _ = write!(out, "%{name} = {} {word}(", shape(program, instruction));
    let argument = program.instructions.argument.get(instruction.index()).copied().unwrap_or_default();
    if opcode == Opcode::PARAMETER && !is_part {
        let _ = write!(out, "{argument}");
    }
    for (i, &operand) in program.instructions.operands_of(instruction).iter().enumerate() {
        let separator = if i > 0 { ", " } else { "" };
        if operand == NO_ROW {
            let _ = write!(out, "{separator}?");
            continue;
        }
        let operand = InstructionId(operand);
        let name = program.text.instruction_name(operand);
        let _ = write!(out, "{separator}{} %{name}", shape(program, operand));
    }
    out.push(')');
    if opcode == Opcode::GET_TUPLE_ELEMENT || is_part {
        let _ = write!(out, ", index={argument}");
    }
    called(program, instruction, opcode, &mut out);
    let target = program.text.custom_call_target(instruction);
    if !target.is_empty() {
        let _ = write!(out, ", custom_call_target=\"{target}\"");
    }
    let metadata = program.text.metadata(instruction);
    let mut known = Vec::new();
    if !metadata.op_type.is_empty() {
        known.push(format!("op_type=\"{}\"", metadata.op_type));
    }
    if !metadata.op_name.is_empty() {
        known.push(format!("op_name=\"{}\"", metadata.op_name));
    }
    if let Some(source) = &metadata.source {
        known.push(format!("source_file=\"{}\" source_line={}", source.file, source.line));
    }
    if !known.is_empty() {
        let _ = write!(out, ", metadata={{{}}}", known.join(" "));
    }
    out
}

fn shape(program: &Program, instruction: InstructionId) -> String {
    program.shape_of(instruction).map(ToString::to_string).unwrap_or_default()
}

/// The computations an instruction calls, under the names that XLA gives them.
fn called(program: &Program, instruction: InstructionId, opcode: Opcode, out: &mut String) {
    let names: Vec<String> = program
        .instructions
        .called_by(instruction)
        .iter()
        .filter(|id| id.index() < program.computations.len())
        .map(|&id: &ComputationId| format!("%{}", program.text.computation_name(id)))
        .collect();
    match (opcode, &names[..]) {
        (_, []) => {}
        (Opcode::WHILE, [body, condition]) => {
            let _ = write!(out, ", condition={condition}, body={body}");
        }
        (Opcode::FUSION, [only]) => {
            let _ = write!(out, ", calls={only}");
        }
        (_, [only]) => {
            let _ = write!(out, ", to_apply={only}");
        }
        (_, several) => {
            let _ = write!(out, ", called_computations={{{}}}", several.join(", "));
        }
    }
}
