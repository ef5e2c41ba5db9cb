//! In-place operations: which operand's memory an instruction's result reuses.

use crate::model::{InstructionId, NO_ROW, Opcode, Program};

/// (operand number, shape index in the operand, shape index in the result)
pub type Pair = (usize, u32, u32);

/// In-place pairs of an instruction.
pub fn pairs(program: &Program, instruction: InstructionId, out: &mut Vec<Pair>) {
    out.clear();
    let opcode = program.instructions.opcode[instruction.index()];
    if !may_lead_to_pair(opcode)
        && !matches!(opcode, Opcode::ASYNC_START | Opcode::ASYNC_UPDATE | Opcode::COLLECTIVE_PERMUTE_START)
    {
        return;
    }
    let operands = program.instructions.operands_of(instruction).len();
    let Some(shape) = program.shape_of(instruction) else { return };
    match opcode {
        Opcode::DYNAMIC_UPDATE_SLICE | Opcode::SET_DIMENSION_SIZE => out.push((0, 0, 0)),
        Opcode::RAGGED_ALL_TO_ALL => out.push((1, 0, 0)),
        Opcode::SCATTER | Opcode::ALL_REDUCE_START => {
            let children = &shape.root().children;
            if children.is_empty() {
                out.push((0, 0, 0));
            } else {
                out.extend(children.iter().enumerate().map(|(k, &child)| (k, 0, child)));
            }
        }
        Opcode::COLLECTIVE_PERMUTE if operands == 4 => in_place_permute(program, instruction, 0, out),
        Opcode::COLLECTIVE_PERMUTE_START if operands == 4 => {
            if let Some(&output) = shape.root().children.get(1) {
                in_place_permute(program, instruction, output, out);
            }
        }
        Opcode::CUSTOM_CALL | Opcode::ASYNC_START | Opcode::ASYNC_UPDATE => declared(program, instruction, out),
        Opcode::FUSION => {
            declared(program, instruction, out);
            derived(program, instruction, out);
        }
        _ => {}
    }
}

/// Pairs of a collective permute into a given buffer (operand 1): the whole buffer or its elements.
fn in_place_permute(program: &Program, instruction: InstructionId, output: u32, out: &mut Vec<Pair>) {
    let target = program.instructions.operands_of(instruction).get(1).copied().unwrap_or(NO_ROW);
    let nodes = program.shape_of(InstructionId(target)).map_or(1, |shape| shape.nodes.len() as u32);
    out.extend((0..nodes).map(|node| (1, node, output + node)));
}

/// Pairs listed by the instruction itself.
fn declared(program: &Program, instruction: InstructionId, out: &mut Vec<Pair>) {
    let operands = program.instructions.operands_of(instruction);
    let Some(shape) = program.shape_of(instruction) else { return };
    for alias in program.instructions.output_aliases.of(instruction.0) {
        let Ok(operand) = usize::try_from(alias.operand) else { continue };
        let Some(operand_shape) = operands.get(operand).and_then(|&row| program.shape_of(InstructionId(row))) else {
            continue;
        };
        if let (Some(from), Some(to)) = (operand_shape.find(&alias.operand_index), shape.find(&alias.output_index)) {
            out.push((operand, from, to));
        }
    }
}

/// Pairs of a fusion that follow from in-place ops at the root of its fused computation.
fn derived(program: &Program, instruction: InstructionId, out: &mut Vec<Pair>) {
    let Some(&fused) = program.instructions.called_by(instruction).first() else { return };
    let Some(root) = program.computations.get(fused.index()).map(|c| c.root).filter(|&root| root != NO_ROW) else {
        return;
    };
    // Most fusions end in plain arithmetic; the root's opcode rules them out quickly.
    if !may_lead_to_pair(program.instructions.opcode[root as usize]) {
        return;
    }
    let Some(shape) = program.shape_of(instruction) else { return };
    for (node, leaf) in shape.nodes.iter().enumerate() {
        if leaf.is_tuple() {
            continue;
        }
        if let Some((parameter, parameter_node)) = source_parameter(program, root, node as u32) {
            out.push((parameter, parameter_node, node as u32));
        }
    }
}

fn may_lead_to_pair(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::TUPLE
            | Opcode::GET_TUPLE_ELEMENT
            | Opcode::BITCAST
            | Opcode::DYNAMIC_UPDATE_SLICE
            | Opcode::SCATTER
            | Opcode::SET_DIMENSION_SIZE
            | Opcode::CUSTOM_CALL
            | Opcode::FUSION
            | Opcode::RAGGED_ALL_TO_ALL
            | Opcode::ALL_REDUCE_START
            | Opcode::COLLECTIVE_PERMUTE
    )
}

/// The parameter of the fused computation whose memory a leaf of the root reuses, and the shape index in it.
fn source_parameter(program: &Program, root: u32, node: u32) -> Option<(usize, u32)> {
    let (at, node) = back(program, root, node)?;
    let (operand, operand_node) = step_through(program, at, node)?;
    let (mut at, mut node) = back(program, operand, operand_node)?;
    if program.instructions.opcode[at as usize] == Opcode::FUSION {
        let (operand, operand_node) = step_through(program, at, node)?;
        (at, node) = back(program, operand, operand_node)?;
    }
    (program.instructions.opcode[at as usize] == Opcode::PARAMETER)
        .then(|| (program.instructions.argument[at as usize] as usize, node))
}

/// The operand that is paired with a shape index of an instruction's result.
fn step_through(program: &Program, row: u32, node: u32) -> Option<(u32, u32)> {
    let mut found = Vec::new();
    match program.instructions.opcode[row as usize] {
        // A nested fusion lists its own pairs; only one level is followed.
        Opcode::FUSION => {
            declared(program, InstructionId(row), &mut found);
            if found.is_empty() {
                derived_once(program, InstructionId(row), &mut found);
            }
        }
        _ => pairs(program, InstructionId(row), &mut found),
    }
    let &(operand, operand_node, _) = found.iter().find(|&&(_, _, output)| output == node)?;
    let row = *program.instructions.operands_of(InstructionId(row)).get(operand)?;
    (row != NO_ROW).then_some((row, operand_node))
}

/// Pairs of a fusion nested in a fusion: its root must itself be in place.
fn derived_once(program: &Program, instruction: InstructionId, out: &mut Vec<Pair>) {
    let Some(&fused) = program.instructions.called_by(instruction).first() else { return };
    let Some(root) = program.computations.get(fused.index()).map(|c| c.root).filter(|&root| root != NO_ROW) else {
        return;
    };
    let Some(shape) = program.shape_of(instruction) else { return };
    for (node, leaf) in shape.nodes.iter().enumerate() {
        if leaf.is_tuple() {
            continue;
        }
        let Some((at, at_node)) = back(program, root, node as u32) else { continue };
        if program.instructions.opcode[at as usize] == Opcode::FUSION {
            continue;
        }
        let Some((operand, operand_node)) = step_through(program, at, at_node) else { continue };
        let Some((end, end_node)) = back(program, operand, operand_node) else { continue };
        if program.instructions.opcode[end as usize] == Opcode::PARAMETER {
            out.push((program.instructions.argument[end as usize] as usize, end_node, node as u32));
        }
    }
}

/// Traces back through tuples by index, then get-tuple-elements, then bitcasts of whole arrays.
fn back(program: &Program, mut row: u32, mut node: u32) -> Option<(u32, u32)> {
    for _ in 0..256 {
        let operands = program.instructions.operands_of(InstructionId(row));
        let next = match *program.instructions.opcode.get(row as usize)? {
            Opcode::TUPLE if node != 0 => {
                let shape = program.shape_of(InstructionId(row))?;
                let k = shape.root().children.iter().rposition(|&child| child <= node)?;
                let child = shape.root().children[k];
                (*operands.get(k)?, node - child)
            }
            Opcode::GET_TUPLE_ELEMENT => {
                let operand = *operands.first()?;
                let element = program.instructions.argument[row as usize] as usize;
                let child = *program.shape_of(InstructionId(operand))?.root().children.get(element)?;
                (operand, child + node)
            }
            Opcode::BITCAST if node == 0 => (*operands.first()?, 0),
            _ => return Some((row, node)),
        };
        if next.0 == NO_ROW {
            return None;
        }
        (row, node) = next;
    }
    None
}
