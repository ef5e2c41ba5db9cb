//! Whether a program computes in 16 bits by casts of its own, as a mixed policy has them: what is in 32 bits besides is so on
//! purpose.

use super::memory::Memory;
use crate::analysis::flow::collective::holds_gathered;
use crate::analysis::names::pass::Pass;
use crate::analysis::once::once;
use crate::model::{InstructionId, Program, Shape, outline};

/// Casts to 16 bits that the program asks for itself, for each matrix product or convolution, from which it computes in 16
/// bits, whatever stays in 32 bits at the peak: a product has two operands and its result.
const CASTS_OF_ITS_OWN: f64 = 0.5;

impl Memory {
    /// Whether the program casts what its products take to 16 bits. Casts that the compiler makes for itself are named by
    /// the product that they are for. Worked out once.
    #[must_use]
    pub fn casts_to_16_bits(&self, program: &Program) -> bool {
        *once(&self.casts, || {
            let is_narrow = |at: InstructionId| {
                let node = program.shape_of(at).map(Shape::root);
                node.is_some_and(|node| node.element_type.is_narrow_float())
            };
            let (mut casts, mut products) = (0usize, 0usize);
            for at in program.instructions.ids() {
                match program.opcode_name(at) {
                    "dot" | "convolution" => products += 1,
                    "convert" if is_narrow(at) && program.text.op_name(at).ends_with("/convert_element_type") => {
                        casts += 1;
                    }
                    _ => {}
                }
            }
            products > 0 && casts as f64 >= products as f64 * CASTS_OF_ITS_OWN
        })
    }

    /// Whether a family is the new value of a weight, gathered from the devices that update a part of it each: it has the
    /// weight's type, whatever the step computes in.
    pub(super) fn is_gathered_update(&self, program: &Program, family: usize) -> bool {
        let Some(row) = self.families.list.get(family) else { return false };
        self.kept.passes.get(family) == Some(&Pass::Unknown)
            && program.buffer_node(row.root).is_some_and(|node| {
                node.dimensions.len() > 1 && self.weights(program).contains(&outline(&node.dimensions))
            })
            && holds_gathered(program, row.root)
    }
}
