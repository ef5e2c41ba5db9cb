//! Whether the queries of a program share heads of keys and values (grouped-query attention).

use std::collections::HashMap;

use super::program_context::ProgramContext;
use crate::model::{InstructionId, NO_ROW, Opcode, Program, ShapeNode};

/// What weights of queries and of keys are called, by libraries.
const QUERY_AND_KEY: [(&str, &str); 7] = [
    ("q_proj", "k_proj"),
    ("query", "key"),
    ("wq", "wk"),
    ("to_q", "to_k"),
    ("q", "k"),
    ("query_dense", "key_dense"),
    ("query_proj", "key_proj"),
];

/// Whether queries share heads of a cache, as the weights beside each other or a kernel that reads it show.
pub fn are_shared(case: &ProgramContext<'_>, cache: Option<&ShapeNode>) -> bool {
    are_by_weights(case) || cache.is_some_and(|cache| is_grouped(case.program, cache))
}

/// Whether some weight of queries has more elements than that of the keys beside it: several queries share a head.
fn are_by_weights(case: &ProgramContext<'_>) -> bool {
    let elements = |row: usize| case.node(case.memory.base[row].buffer).map_or(0, ShapeNode::element_count);
    let by_path: HashMap<&str, u64> = case.arguments().map(|(row, path, ..)| (path, elements(row))).collect();
    let is_of_path = |c: char| !c.is_alphanumeric() && c != '_';
    let is_wider = |(path, &own): (&&str, &u64)| {
        QUERY_AND_KEY.iter().any(|(query, key)| {
            let mut at = path.match_indices(query).map(|found| found.0);
            at.any(|at| {
                let (before, after) = (&path[..at], &path[at + query.len()..]);
                let is_whole = (before.is_empty() || before.ends_with(is_of_path))
                    && (after.is_empty() || after.starts_with(is_of_path));
                let of_key = || by_path.get(format!("{before}{key}{after}").as_str());
                is_whole && of_key().is_some_and(|&keys| own > keys)
            })
        })
    };
    by_path.iter().any(is_wider)
}

/// Whether an instruction is a kernel that reads a paged cache, by its names.
pub fn is_paged_kernel(program: &Program, at: InstructionId) -> bool {
    program.instructions.opcode.get(at.index()) == Some(&Opcode::CUSTOM_CALL)
        && (program.text.op_name(at).contains("paged") || program.text.instruction_name(at).contains("paged"))
}

/// Whether a kernel that reads a paged cache takes more query heads than the cache has heads: they share them already.
fn is_grouped(program: &Program, cache: &ShapeNode) -> bool {
    let heads = |node: &ShapeNode| {
        let mut last = node.dimensions.iter().rev();
        Some((*last.next()?, *last.next()?))
    };
    let Some((size, own)) = heads(cache) else { return false };
    let is_query = |row: &u32| {
        let shape = program.shape_of(InstructionId(*row)).filter(|_| *row != NO_ROW);
        let node = shape.map(|shape| shape.root()).filter(|node| node.dimensions.len() == 3);
        node.and_then(heads).is_some_and(|(of_head, count)| of_head == size && count > own)
    };
    program
        .instructions
        .ids()
        .any(|at| is_paged_kernel(program, at) && program.instructions.operands_of(at).iter().any(is_query))
}
