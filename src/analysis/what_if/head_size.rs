//! Heads that the kernels of block-wise attention pad: they take rows of 128 elements, and keep queries, keys, values and
//! results of smaller heads with that many for the backward pass (by compiling Keras' Llama, with heads of 64 elements, with
//! splash attention and with JAX's flash attention for a TPU v5e: 34 arrays of `[48,16,1024,64]` of 192 MiB instead of 96).

use super::saved_for_backward::BLOCK;
use crate::analysis::flow::softmax::{multiplies_matrices, repeated};
use crate::model::{InstructionId, NO_ROW, Program, Shape, ShapeNode};

/// What the products take that make attention scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heads {
    /// Elements of one head.
    pub elements: i64,
    /// Bits of one element.
    pub bits: u64,
}

impl Heads {
    /// The heads of which `scores` are, where they are smaller than a row of the kernels; `None` if they are not, or no
    /// product shows it. The larger operand is the queries: there may be fewer keys and values.
    pub fn padded(program: &Program, scores: &ShapeNode) -> Option<Self> {
        let length = repeated(&scores.dimensions)?;
        let count = i64::try_from(scores.element_count()).ok()?;
        let node = |row: u32| program.shape_of(InstructionId(row)).map(Shape::root);
        let of_product = |at| {
            let made = program.shape_of(at)?.root();
            let is_alike =
                i64::try_from(made.element_count()) == Ok(count) && repeated(&made.dimensions) == Some(length);
            if !is_alike || !multiplies_matrices(program, at) {
                return None;
            }
            let operands = program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW);
            let queries = operands.filter_map(|&row| node(row)).max_by_key(|node| node.element_count())?;
            let taken = i64::try_from(queries.element_count()).ok()?.checked_mul(length)?;
            let elements = taken / count.max(1);
            // The gradient of the scores is a product of the same kind.
            (taken % count.max(1) == 0 && queries.dimensions.contains(&elements))
                .then(|| Self { elements, bits: u64::from(queries.element_type.storage_bits()) })
        };
        let found =
            program.instructions.ids().filter_map(of_product).min_by_key(|heads| (heads.elements, heads.bits))?;
        (1 < found.elements && found.elements < BLOCK).then_some(found)
    }

    /// Bytes that queries, keys, values and results of one layer take more than now, with as many elements as a row of the
    /// kernels for each head: `rows` is the number of heads times positions.
    pub fn more(self, rows: u64) -> u64 {
        let missing = (BLOCK - self.elements).unsigned_abs();
        rows.saturating_mul(KEPT).saturating_mul(missing).saturating_mul(self.bits) / 8
    }
}

/// Elements of the widest head among the results of the products that take `scores`: values, keys and queries; `None` if
/// no product takes any.
pub(super) fn widest_head(program: &Program, scores: &ShapeNode) -> Option<u64> {
    let length = repeated(&scores.dimensions)?;
    let count = scores.element_count().max(1);
    let takes_scores = |at| {
        let operands = program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW);
        operands
            .filter_map(|&row| program.shape_of(InstructionId(row)))
            .map(Shape::root)
            .any(|taken| taken.element_count() == count && repeated(&taken.dimensions) == Some(length))
    };
    let found = program.instructions.ids().filter(|&at| multiplies_matrices(program, at) && takes_scores(at));
    let width = |at| Some(program.shape_of(at)?.root().element_count().saturating_mul(length.unsigned_abs()) / count);
    found.filter_map(width).max()
}

/// Arrays of which each layer keeps one: queries, keys, values and results.
const KEPT: u64 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_heads_are_padded_to_a_row_of_the_kernels() {
        let heads = Heads { elements: 64, bits: 16 };
        let rows = 48 * 16 * 1024;
        assert_eq!(heads.more(rows), 4 * (96 << 20), "each of the four takes 192 MiB instead of 96");
        assert_eq!(Heads { elements: BLOCK, bits: 16 }.more(rows), 0);
    }
}
