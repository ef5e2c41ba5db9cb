//! What a value was made from: the weight in the nearest product before it, else the nearest argument.

use std::borrow::Cow;
use std::collections::VecDeque;

use super::argument;
use super::collective::is_exchange;
use super::copied_state::copied_state;
use super::label::{Arguments, Labels, OF_FIRST_LAYER, OF_LAST_LAYER};
use super::like_weights::has_dimensions_of;
use super::loops::Role;
use super::other_result::in_fusion;
use super::product::is_product;
use super::{Value, computed, handed_on, node_at, opcode, operand};
use crate::analysis::names::argument::Hint;
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::names::plain::is_plain_part;
use crate::analysis::names::scope;
use crate::model::{FastSet, InstructionId, NO_ROW, Opcode, Program, Shape};

/// Most instructions visited when tracing what a value was made from.
const MOST_LOOKED_AT: usize = 96;

/// Most instructions of a fusion that are visited for one of its results.
const MOST_IN_FUSION: usize = 512;

/// What a value was made from.
pub(super) struct Origin {
    /// The argument's short name, or which end of a loop over layers it is.
    pub(super) name: String,
    /// The product, or the loop that computes one, that the argument is a side of.
    product: Option<InstructionId>,
}

impl Origin {
    /// The label of what the backward pass makes behind a product with a weight: the gradient of the other side of that
    /// product, or of what comes before it. The name is at the end, where it is folded.
    pub(super) fn gradient_before(&self, program: &Program, value: &Value, op_name: &str) -> Option<String> {
        let is_backward = |name: &str| pass_of(name) == Pass::Backward;
        let product = self.product.filter(|_| is_backward(op_name))?;
        if !is_backward(&program.text.op_name(product)) {
            return None;
        }
        let own = computed(program, value.clone()).at;
        let operation = scope::path(op_name).last().map(|&last| last.to_owned()).filter(|last| !is_plain_part(last));
        Some(match operation.filter(|_| own != product) {
            Some(operation) => format!("{operation}, gradient before {}", self.name),
            None => format!("gradient of what is multiplied by {}", self.name),
        })
    }
}

impl Labels {
    /// Whether a value, or each slice of the stack that it is, is made by a product with a part of an argument that holds no
    /// samples; inside a fusion, another result of which may be.
    #[must_use]
    pub fn is_of_argument(&self, program: &Program, value: &Value) -> bool {
        let written = self.role_of(program, value).and_then(|part| part.written.clone());
        let made = computed(program, written.unwrap_or_else(|| value.clone()));
        let (operands, is_product) = made_of_operands(program, &made);
        let is_of_argument = |at: InstructionId| {
            let argument = argument::entry_parameter(program, &self.loops, &Value::whole(at), true);
            let node = argument.and_then(|argument| program.shape_of(argument)).map(Shape::root);
            node.is_some_and(|node| node.element_type.is_float() && node.element_count() > 1)
                && !self.holds_samples(program, at)
        };
        is_product && operands.iter().filter(|&&row| row != NO_ROW).any(|&row| is_of_argument(InstructionId(row)))
    }

    /// Short name of the weight a value was made from: the argument in the nearest product, else the nearest argument.
    pub(super) fn made_from(&self, program: &Program, value: &Value, known: &mut Arguments) -> Option<String> {
        self.origin(program, value, known).map(|origin| origin.name)
    }

    /// What a value was made from, and by which product.
    pub(super) fn origin(&self, program: &Program, value: &Value, known: &mut Arguments) -> Option<Origin> {
        // Part of an argument that is updated in place, such as one layer's of a cache, is what it was.
        let made = opcode(program, computed(program, value.clone()).at);
        let may_be = matches!(
            made,
            Opcode::FUSION | Opcode::SCATTER | Opcode::DYNAMIC_UPDATE_SLICE | Opcode::CUSTOM_CALL | Opcode::WHILE
        );
        let begun = may_be.then(|| super::beginning_of_part(program, value.clone())).flatten();
        let begun = begun.filter(|begun| begun.is_updated);
        let begun = begun.map(|begun| Value { at: begun.parameter, index: begun.index });
        let updated = begun.and_then(|begun| self.argument_of(program, &begun, true));
        if let Some(name) = updated {
            return Some(Origin { name, product: None });
        }
        let mut waiting = VecDeque::from([value.clone()]);
        let mut seen: Vec<Value> = Vec::new();
        let mut nearest: Option<String> = None;
        while let Some(value) = waiting.pop_front() {
            if seen.len() >= MOST_LOOKED_AT {
                break;
            }
            if seen.contains(&value) {
                continue;
            }
            seen.push(value.clone());
            if let Some(next) = handed_on(program, &value) {
                waiting.push_front(next);
                continue;
            }
            if is_exchange(program, value.at) {
                // What arrives from other devices is not what this one made.
                continue;
            }
            if opcode(program, value.at) == Opcode::PARAMETER {
                waiting.extend(self.loops.given(program, value.at));
                waiting.extend(self.saved_before(program, &value));
                continue;
            }
            if opcode(program, value.at) == Opcode::WHILE {
                let part = self.loops.part(value.at, &value.index);
                if let Some(argument) = copied_state(program, &self.loops, value.at, &value.index) {
                    nearest = nearest.or_else(|| Some(program.text.op_name(argument)));
                    continue;
                }
                if self.steps.of(value.at).are_layers() && part.is_some_and(|part| part.role == Role::Carry) {
                    // What layers pass on is of all their weights.
                    let is_backward = program.text.op_name(value.at).contains("transpose(");
                    let end = if is_backward { OF_FIRST_LAYER } else { OF_LAST_LAYER };
                    nearest = nearest.or_else(|| Some(end.to_owned()));
                    continue;
                }
                // A product computed by a loop: the weight is in the loop's state.
                let state = operand(program, value.at, 0)?;
                let parts = program.instructions.operands_of(state).len() as i64;
                let found = (0..parts.min(16)).find_map(|place| {
                    let argument = self.argument(program, &Value { at: state, index: smallvec::smallvec![place] })?;
                    is_matrix(program, state, place).then_some(argument)
                });
                if part.is_none_or(|part| part.layers == 0)
                    && let Some(name) = found
                {
                    return Some(Origin { name, product: Some(value.at) });
                }
                continue;
            }
            // One of several results of a fusion may have nothing to do with what others are made of.
            let (operands, is_product) = made_of_operands(program, &value);
            let arguments: Vec<(u32, String)> = operands
                .iter()
                .filter(|&&row| row != NO_ROW)
                .filter_map(|&row| {
                    Some((row, known.of(row, || self.argument(program, &Value::whole(InstructionId(row))))?))
                })
                .collect();
            // In a product, samples are what the weight is applied to, and a bias may have been added to one side of it.
            let is_of_operand = |(row, name): &(u32, String)| {
                let at = InstructionId(*row);
                let is_bias = name.rsplit('/').next() == Some("bias");
                self.holds_samples(program, at) || (is_bias && !has_dimensions_of(program, value.at, at))
            };
            let arguments: Vec<(u32, String)> =
                arguments.into_iter().filter(|found| !is_product || !is_of_operand(found)).collect();
            // The largest of several is the matrix; the others scale or shift. In a product a weight comes before data.
            let size = |row: u32| program.shape_of(InstructionId(row)).map_or(0, |shape| shape.root().element_count());
            let is_weight = |row: u32| is_product && self.holds_weight(program, InstructionId(row));
            let largest =
                arguments.into_iter().max_by_key(|found| (is_weight(found.0), size(found.0))).map(|found| found.1);
            if is_product {
                if let Some(name) = largest {
                    return Some(Origin { name, product: Some(value.at) });
                }
                // The inputs of a product whose weight is not found do not characterise its output.
                continue;
            }
            nearest = nearest.or(largest);
            waiting.extend(operands.iter().filter(|&&row| row != NO_ROW).map(|&row| Value::whole(InstructionId(row))));
        }
        nearest.map(|name| Origin { name, product: None })
    }

    /// What the forward pass writes to a stack that it saves, of which a loop of the backward pass is given the whole.
    fn saved_before(&self, program: &Program, value: &Value) -> Option<Value> {
        let part = self.role_of(program, value).filter(|part| part.role == Role::Saved)?;
        let own = self.loops.caller(program.computation_of(value.at)?)?;
        part.written.clone().filter(|_| part.at != own)
    }

    /// Whether a value is a part of an argument with the name of a weight.
    fn holds_weight(&self, program: &Program, at: InstructionId) -> bool {
        let argument = argument::entry_parameter(program, &self.loops, &Value::whole(at), true);
        argument.is_some_and(|argument| matches!(Hint::of(&program.text.op_name(argument)), Hint::Weight))
    }

    /// Whether a value is a part of an argument that holds samples: by its name, or as a loop that is not one over layers
    /// takes it slice by slice.
    fn holds_samples(&self, program: &Program, at: InstructionId) -> bool {
        let Some(argument) = argument::entry_parameter(program, &self.loops, &Value::whole(at), true) else {
            return false;
        };
        let number = program.instructions.argument.get(argument.index()).copied().map(i64::from);
        number.and_then(|number| self.steps.of_argument(number)).is_some_and(|steps| !steps.are_layers())
            || matches!(Hint::of(&program.text.op_name(argument)), Hint::Samples)
    }
}

fn is_matrix(program: &Program, state: InstructionId, place: i64) -> bool {
    node_at(program, state, &[place]).is_some_and(|node| node.dimensions.iter().filter(|&&d| d > 1).count() >= 2)
}

/// The operands that a value is made of, and whether by a product: one of several results of a fusion by its own.
fn made_of_operands<'p>(program: &'p Program, value: &Value) -> (Cow<'p, [u32]>, bool) {
    own_operands(program, value).map_or_else(
        || (Cow::Borrowed(program.instructions.operands_of(value.at)), is_product(program, value.at)),
        |(operands, is_product)| (Cow::Owned(operands), is_product),
    )
}

/// What a fusion computes one of its several results from, as operands of the fusion, and whether a product is in between;
/// `None` for all else.
fn own_operands(program: &Program, value: &Value) -> Option<(Vec<u32>, bool)> {
    let mut waiting = vec![in_fusion(program, value)?];
    let mut seen: FastSet<InstructionId> = FastSet::default();
    let (mut operands, mut has_product) = (Vec::new(), false);
    while let Some(at) = waiting.pop() {
        if seen.len() >= MOST_IN_FUSION {
            return None;
        }
        if !seen.insert(at) {
            continue;
        }
        has_product |= is_product(program, at);
        if opcode(program, at) == Opcode::PARAMETER {
            let place = usize::try_from(*program.instructions.argument.get(at.index())?).ok()?;
            operands.push(operand(program, value.at, place)?.0);
        }
        let rows = program.instructions.operands_of(at).iter();
        waiting.extend(rows.filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row)));
    }
    operands.sort_unstable();
    Some((operands, has_product))
}
