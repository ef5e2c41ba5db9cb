//! The operation that makes a value, in one word: `exp`, `silu`.

use super::other_result::in_fusion;
use super::product::is_product;
use super::{Value, computed, opcode};
use crate::analysis::names::lookup;
use crate::analysis::names::plain::{is_number_of, is_plain_part};
use crate::analysis::names::scope::is_einsum;
use crate::model::{Opcode, Program};

/// Operations that move values, or write them where they are kept.
const MOVES: [&str; 10] = [
    "broadcast_in_dim",
    "convert_element_type",
    "copy",
    "dot_general",
    "dynamic_slice",
    "dynamic_update_slice",
    "reshape",
    "slice",
    "squeeze",
    "transpose",
];

/// The operation that makes a value, or the function that it is part of (`silu` of `…/jit(silu)/div`); `None` for products,
/// of which the weight says enough, for what only moves values, and for what has no name.
pub(super) fn operation(program: &Program, value: &Value) -> Option<String> {
    let made = computed(program, value.clone());
    let own = in_fusion(program, &made).unwrap_or(made.at);
    if is_product(program, own) || matches!(opcode(program, own), Opcode::PARAMETER | Opcode::WHILE) {
        return None;
    }
    let name = lookup::op_name(program, own);
    let (before, operation) = name.rsplit_once('/')?;
    if MOVES.contains(&operation) || is_plain_part(operation) || is_number_of(operation) || is_einsum(operation) {
        return None;
    }
    let around = before.rsplit('/').next().and_then(|part| part.strip_prefix("jit(")?.strip_suffix(')'));
    let function = around.filter(|name| !name.starts_with('_') && before.contains('/'));
    let word = function.unwrap_or(operation);
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    is_word.then(|| word.to_owned())
}
