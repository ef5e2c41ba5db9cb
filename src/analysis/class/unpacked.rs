//! Temporaries that quantised weights are unpacked into: their values in a wider type, and what is made on the way.

use crate::analysis::flow::Value;
use crate::analysis::flow::made_of::made_of;
use crate::model::{BufferId, FastMap, InstructionId, Opcode, Program, ShapeNode};

/// Most bits of an element that is quantised.
const FEW_BITS: u32 = 8;

/// Most elements of a scale, or of a table of what numbers stand for, as a fraction (1/8) of those of the weight.
const SCALES: u64 = 8;

/// The weights of a program that are stored in few bits.
#[derive(Debug, Default)]
pub struct Quantised {
    /// Elements, by the entry's parameter.
    elements: FastMap<InstructionId, u64>,
}

impl Quantised {
    /// Finds them among the arguments, by whether one is a weight, as its number tells.
    #[must_use]
    pub fn new(program: &Program, is_weight: impl Fn(i64) -> bool) -> Self {
        let Some(entry) = program.entry_computation() else { return Self::default() };
        let is_meant = |at: &InstructionId| {
            program.instructions.opcode.get(at.index()) == Some(&Opcode::PARAMETER)
                && program.instructions.argument.get(at.index()).is_some_and(|&number| is_weight(i64::from(number)))
        };
        let rows = (entry.start..entry.end).map(InstructionId).filter(is_meant);
        let elements = rows.filter_map(|at| {
            let node = program.shape_of(at)?.root();
            let is_narrow = node.element_type.is_array() && node.element_type.storage_bits() <= FEW_BITS;
            (is_narrow && node.element_count() > 1).then(|| (at, node.element_count()))
        });
        Self { elements: elements.collect() }
    }

    /// Whether a temporary holds what one of them is unpacked into: it has as many elements, or those of several devices,
    /// and is made of that weight and of scales alone, element by element.
    #[must_use]
    pub fn is_unpacked(&self, program: &Program, buffer: BufferId) -> bool {
        if self.elements.is_empty() {
            return false;
        }
        let own = program.buffer_node(buffer).filter(|node| !node.is_tuple()).map(ShapeNode::element_count);
        let made_of = || self.made_of(program, Value::of_buffer(program, buffer)?);
        own.zip(made_of()).is_some_and(|(own, elements)| {
            own.is_multiple_of(elements) && own / elements <= u64::from(program.devices().max(1))
        })
    }

    /// Elements of the one weight that a value is made of besides scales; `None` where it is made of anything else.
    fn made_of(&self, program: &Program, value: Value) -> Option<u64> {
        let made_of = made_of(program, value);
        let (weights, scales): (Vec<_>, Vec<_>) =
            made_of.arguments.into_iter().partition(|at| self.elements.contains_key(at));
        let [weight] = weights[..] else { return None };
        let &elements = self.elements.get(&weight).filter(|_| made_of.is_all)?;
        let count = |at: InstructionId| program.shape_of(at).map_or(0, |shape| shape.root().element_count());
        scales.into_iter().all(|at| count(at) <= elements / SCALES).then_some(elements)
    }
}
