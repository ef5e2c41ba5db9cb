//! Arguments that come in one tuple, as JAX passes more than 2,000 of them: each array in it is an argument of its own,
//! and what takes it out of the tuple is its parameter.

use crate::decode::reporter::Reporter;
use crate::model::{InstructionId, Opcode, Program, ShardingKind, thousands};

/// Most arguments that JAX passes one by one.
const MOST_IN_JAX: usize = 2000;

/// Makes arguments of the arrays of the entry's only parameter, if that is a tuple of arrays.
pub fn split(program: &mut Program, reporter: &Reporter) {
    let Some(tuple) = tuple_of_arguments(program) else { return };
    let Some(entry) = program.entry_computation() else { return };
    let rows = entry.start..entry.end;
    for row in rows {
        let is_part = program.instructions.opcode.get(row as usize) == Some(&Opcode::GET_TUPLE_ELEMENT)
            && program.instructions.operands_of(InstructionId(row)).first() == Some(&tuple);
        if let Some(opcode) = program.instructions.opcode.get_mut(row as usize).filter(|_| is_part) {
            *opcode = Opcode::PARAMETER;
        }
    }
    let mut count = 0usize;
    for allocation in program.allocations.iter_mut().filter(|allocation| allocation.is_parameter) {
        if let [place] = allocation.parameter_shape_index[..] {
            allocation.parameter_number = place;
            allocation.parameter_shape_index.clear();
            count += 1;
        }
    }
    for donor in &mut program.donors {
        if let [place] = donor.parameter_index[..] {
            donor.parameter = place;
            donor.parameter_index.clear();
        }
    }
    if let [whole] = &mut program.parameter_shardings[..]
        && whole.kind == ShardingKind::Tuple
    {
        program.parameter_shardings = std::mem::take(&mut whole.elements);
    }
    program.are_arguments_in_tuple = true;
    let why = if count > MOST_IN_JAX { ", as JAX passes more than 2,000 of them," } else { "" };
    reporter.info(format!(
        "The {} arguments come in one tuple{why} and have no names: they are called args[0], args[1], \u{2026}; what each is for is told from its use",
        thousands(count as u64)
    ));
}

/// The entry's only parameter, if it is a tuple of arrays.
fn tuple_of_arguments(program: &Program) -> Option<u32> {
    let entry = program.entry_computation()?;
    let is_parameter = |row: &u32| program.instructions.opcode.get(*row as usize) == Some(&Opcode::PARAMETER);
    let mut parameters = (entry.start..entry.end).filter(is_parameter);
    let (tuple, None) = (parameters.next()?, parameters.next()) else { return None };
    let shape = program.shape_of(InstructionId(tuple))?;
    let is_flat = shape.nodes.iter().skip(1).all(|node| !node.is_tuple());
    (shape.root().is_tuple() && shape.nodes.len() > 1 && is_flat).then_some(tuple)
}
