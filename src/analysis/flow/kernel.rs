//! Kernels in a program, such as flash attention in Pallas, and what is a part of their results.

use super::{Value, computed, operand};
use crate::analysis::names::plain;
use crate::model::{Opcode, Program};

/// Slices one after the other that are looked through.
const MOST_SLICES: usize = 4;

/// The function around the kernel that makes a value, or that makes what the value is a slice of: `flash_attention`. Slices
/// are what its backward pass reads of the sums and maxima of each row, which a kernel writes into all lanes.
pub(super) fn kernel_behind(program: &Program, value: &Value) -> Option<String> {
    let mut value = computed(program, value.clone());
    for _ in 0..=MOST_SLICES {
        let name = program.text.op_name(value.at);
        if let Some(kernel) = plain::kernel(&name) {
            return Some(kernel.to_owned());
        }
        let is_fused_slice = super::opcode(program, value.at) == Opcode::FUSION && name.ends_with("/slice");
        if !is_fused_slice && program.opcode_name(value.at) != "slice" {
            return None;
        }
        value = computed(program, Value::whole(operand(program, value.at, 0)?));
    }
    None
}
