//! A buffer's most likely purpose: weight, optimizer state, activation, gradient. The compiler states only whether it
//! is an argument, a result or a temporary; the rest is inferred from names and use, and each class has its evidence.

mod argument;
mod early;
mod from_gradient;
mod keys_and_values;
mod per_sample;
mod reason;
mod unpacked;

use std::cell::LazyCell;

use rayon::prelude::*;

use super::ProgramAnalysis;
use super::flow::argument::entry_parameter;
use super::flow::by_softmax::{LOGITS, OF_LOGITS};
use super::flow::collective::{gathered_from, is_permute};
use super::flow::copied_state::copied_into_loop;
use super::flow::held::{cast_to, is_slice};
use super::flow::loops::{Loops, Role};
use super::flow::other_result::{gradient_beside, own_name};
use super::flow::{Value, computed};
use super::names::lookup::op_name;
use super::names::pass::{Pass, pass_of};
use super::program::category;
use crate::model::{BufferId, Bytes, Category, FastMap, FastSet, InstructionId, Opcode, Program};
use early::Turn;

pub use reason::{Certainty, Reason};
use unpacked::Quantised;

/// The purpose of a buffer, in terms of training and inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Class {
    /// A parameter of the model, or a copy of one.
    Weight,
    /// State that the optimizer keeps for the weights.
    Optimizer,
    /// Data: tokens, images, labels, state passed from call to call.
    Input,
    /// A decoder's keys and values and similar state that is written a part at a time.
    Cache,
    /// A result of the program.
    Output,
    /// Made by the forward pass and kept for the backward pass.
    Activation,
    /// Made by the backward pass.
    Gradient,
    /// Any other temporary.
    #[default]
    Temporary,
    /// A constant.
    Constant,
    /// Memory of a called computation.
    ThreadLocal,
}

impl Class {
    /// All classes, in stacking order.
    pub const ALL: [Self; 10] = [
        Self::Weight,
        Self::Optimizer,
        Self::Input,
        Self::Cache,
        Self::Output,
        Self::Constant,
        Self::ThreadLocal,
        Self::Activation,
        Self::Gradient,
        Self::Temporary,
    ];

    /// Its index in [`Self::ALL`].
    #[must_use]
    pub fn place(self) -> usize {
        Self::ALL.iter().position(|&class| class == self).unwrap_or(0)
    }

    /// Name in legends and reports: `Optimizer state`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Weight => "Weight",
            Self::Optimizer => "Optimizer state",
            Self::Input => "Input",
            Self::Cache => "Cache",
            Self::Output => "Output",
            Self::Activation => "Activation",
            Self::Gradient => "Gradient",
            Self::Temporary => "Temporary",
            Self::Constant => "Constant",
            Self::ThreadLocal => "Thread-local",
        }
    }

    /// The class of a category if nothing more is known.
    #[must_use]
    pub const fn of_category(category: Category) -> Self {
        match category {
            Category::Parameter => Self::Weight,
            Category::Output => Self::Output,
            Category::ThreadLocal => Self::ThreadLocal,
            Category::Constant => Self::Constant,
            Category::Temporary => Self::Temporary,
        }
    }
}

/// The classes of a program's buffers.
#[derive(Debug, Default)]
pub struct Classes {
    of: Vec<(Class, Reason)>,
}

impl Classes {
    /// Classifies all buffers.
    #[must_use]
    pub fn new(program: &Program, analysis: &ProgramAnalysis) -> Self {
        let labels = analysis.labels(program);
        let passes = passes(program, &labels.loops);
        let steps = &labels.steps;
        let arguments = argument::classes(program, analysis.argument_paths(program), &passes, steps);
        let turn = Turn::new(program, analysis.live.as_ref(), &passes);
        let quantised =
            Quantised::new(program, |number| arguments.get(&number).is_some_and(|found| found.0 == Class::Weight));
        let has_cache = arguments.values().any(|found| found.0 == Class::Cache);
        let signs = Signs { arguments: &arguments, has_cache, passes: &passes, turn: &turn };
        let class_of = |row: usize| -> (Class, Reason) {
            let buffer = BufferId::from_index(row);
            match category(program, buffer) {
                Category::Parameter => {
                    let allocation = program.buffers.allocation_of(buffer);
                    let number = allocation.map(|id| program.allocations[id.index()].parameter_number);
                    let found = number.and_then(|number| arguments.get(&number).copied());
                    found.unwrap_or((Class::Weight, Reason::Argument))
                }
                Category::Temporary if quantised.is_unpacked(program, buffer) => (Class::Weight, Reason::Unpacked),
                Category::Temporary => temporary(program, analysis, buffer, &signs),
                other => (Class::of_category(other), Reason::Compiler),
            }
        };
        let mut of: Vec<(Class, Reason)> = (0..program.buffers.len()).into_par_iter().map(class_of).collect();
        if turn.backward.is_some() {
            share(program, analysis, &mut of);
        }
        Self { of }
    }

    /// Class of a buffer.
    #[must_use]
    pub fn of(&self, buffer: BufferId) -> Class {
        self.of.get(buffer.index()).map_or(Class::Temporary, |found| found.0)
    }

    /// Evidence for a buffer's class.
    #[must_use]
    pub fn reason(&self, buffer: BufferId) -> Reason {
        self.of.get(buffer.index()).map_or(Reason::NoSign, |found| found.1)
    }

    /// Bytes and count by class of some buffers, given with the bytes that count for each; largest first.
    #[must_use]
    pub fn sums(&self, rows: impl Iterator<Item = (BufferId, Bytes)>) -> Vec<(Class, Bytes, usize)> {
        let mut sums: Vec<(Class, Bytes, usize)> = Class::ALL.iter().map(|&class| (class, Bytes::ZERO, 0)).collect();
        for (buffer, bytes) in rows {
            let class = self.of(buffer);
            if let Some(sum) = sums.iter_mut().find(|sum| sum.0 == class) {
                sum.1 = Bytes(sum.1.0.saturating_add(bytes.0));
                sum.2 += 1;
            }
        }
        sums.retain(|sum| sum.2 > 0);
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.1));
        sums
    }
}

/// The pass of each instruction, from its name, or that of what starts it on another core; empty if no name shows one.
fn passes(program: &Program, loops: &Loops) -> Vec<Pass> {
    let mut wanted = vec![false; program.instructions.len()];
    for row in 0..program.buffers.len() {
        if let Some(instruction) = program.buffers.instruction_of(BufferId::from_index(row))
            && let Some(is_wanted) = wanted.get_mut(instruction.index())
        {
            *is_wanted = true;
        }
    }
    let passes: Vec<Pass> = wanted
        .into_par_iter()
        .enumerate()
        .map(|(row, is_wanted)| {
            let instruction = InstructionId(row as u32);
            if is_wanted { pass(program, loops, instruction) } else { Pass::Unknown }
        })
        .collect();
    if passes.iter().all(|pass| *pass == Pass::Unknown) { Vec::new() } else { passes }
}

/// The pass of an instruction; a fusion without a name is of the backward pass if anything in it is.
fn pass(program: &Program, loops: &Loops, at: InstructionId) -> Pass {
    let name = loops.op_name(program, at);
    if !name.is_empty() || program.instructions.opcode.get(at.index()) != Some(&Opcode::FUSION) {
        return pass_of(&name);
    }
    if has_backward_inside(program, at) { Pass::Backward } else { Pass::Unknown }
}

/// Whether anything in what an instruction calls, such as a fusion, is of the backward pass. Constants do not tell: equal
/// ones of the whole program are one, with the name of any.
fn has_backward_inside(program: &Program, at: InstructionId) -> bool {
    let called = program.instructions.called_by(at).first().and_then(|called| program.computations.get(called.index()));
    let mut inside = called.map_or(0..0, |computation| computation.start..computation.end);
    inside.any(|row| {
        program.instructions.opcode.get(row as usize) != Some(&Opcode::CONSTANT)
            && pass_of(&program.text.op_name(InstructionId(row))) == Pass::Backward
    })
}

/// What temporaries are told by.
struct Signs<'a> {
    arguments: &'a FastMap<i64, (Class, Reason)>,
    /// Whether an argument is a cache.
    has_cache: bool,
    /// Pass of each instruction.
    passes: &'a [Pass],
    /// Where the backward pass begins.
    turn: &'a Turn,
}

fn temporary(program: &Program, analysis: &ProgramAnalysis, buffer: BufferId, signs: &Signs<'_>) -> (Class, Reason) {
    let &Signs { arguments, has_cache, passes, turn } = signs;
    let backward = turn.backward;
    let nothing = (Class::Temporary, Reason::NoSign);
    let Some(instruction) = program.buffers.instruction_of(buffer) else { return nothing };
    let own = Value { at: instruction, index: program.buffer_index(buffer) };
    let labels = analysis.labels(program);
    let role = labels.role_of(program, &own).map(|part| part.role);
    match role {
        Some(Role::Saved) => return (Class::Activation, Reason::SavedByLoop),
        Some(Role::Gradients) => return (Class::Gradient, Reason::CollectedByLoop),
        _ => {}
    }
    let loops = &labels.loops;
    let class_of = |from: InstructionId| {
        let number = i64::from(*program.instructions.argument.get(from.index())?);
        arguments.get(&number).map(|found| found.0)
    };
    if labels.summed(program, &own).is_some() {
        return (Class::Gradient, Reason::SummedByLoop);
    }
    if let Some(held) = labels.held_by(program, &own, role.is_some())
        && let Some(class) = class_of(held.parameter)
    {
        match (held.is_gathered, is_slice(program, buffer, &held)) {
            (true, _) => return (class, Reason::Gathered),
            // The model's own cast of its inputs is the first of its activations, where it is kept.
            (false, false)
                if class == Class::Input
                    && cast_to(program, buffer, &held).is_some()
                    && is_kept(analysis, buffer, backward)
                    && !starts_after(analysis, buffer, backward) =>
            {
                return (Class::Activation, Reason::KeptForBackward);
            }
            (false, false) => return (class, Reason::CopyOfArgument),
            (false, true) if class == Class::Weight => return (class, Reason::SliceOfArgument),
            (false, true) => {}
        }
    }
    // A copy of the cache that a loop works on, and what is written into either, are the cache.
    if has_cache && copied_into_loop(program, loops, buffer).and_then(class_of) == Some(Class::Cache) {
        return (Class::Cache, Reason::CopyOfArgument);
    }
    // What a loop gathers is one step's part of a stack; in a product whose parts are exchanged while others are computed,
    // devices hand on what they have of a weight.
    let filled_in = labels.pass_filled_in(program, &own);
    let label = LazyCell::new(|| labels.of(program, buffer).unwrap_or_default());
    let is_gradient_of_logits = || {
        !own.index.is_empty()
            && pass_of(&own_name(program, own.clone())) == Pass::Backward
            && label.text.starts_with(OF_LOGITS)
    };
    let is_logits = || {
        let node = program.buffer_node(buffer);
        node.is_some_and(|node| labels.softmaxes.are_like_logits(program, node)) && label.text.starts_with(LOGITS)
    };
    let is_call = program.instructions.opcode.get(instruction.index()) == Some(&Opcode::CUSTOM_CALL);
    let part = labels.has_collectives.then(|| {
        let value = computed(program, own.clone());
        gathered_from(program, value.clone()).or_else(|| is_permute(program, value.at).then_some(value))
    });
    if let Some(class) = part.flatten().and_then(|part| class_of(entry_parameter(program, loops, &part, true)?)) {
        return (class, Reason::Gathered);
    }
    let pass = match passes.get(instruction.index()) {
        Some(Pass::Backward) if turn.is_early(instruction) => Some(Pass::Forward),
        // Memory that a loop fills is what that makes of it.
        Some(Pass::Unknown) if filled_in == Some(Pass::Backward) => filled_in,
        // What is computed on another core has the name that it has when it is back.
        Some(Pass::Unknown) if is_call && pass_of(&label.borrowed) == Pass::Backward => Some(Pass::Backward),
        pass => pass.copied(),
    };
    match pass {
        Some(Pass::Backward) => (Class::Gradient, Reason::Backward),
        Some(Pass::Recomputed) => {
            let name = loops.op_name(program, instruction);
            match gradient_beside(program, buffer, &name) {
                Some(_) => (Class::Gradient, Reason::Backward),
                None => (Class::Activation, Reason::Recomputed),
            }
        }
        // Of a loss's several results one may be the gradient of the logits, whatever the fusion is named for.
        Some(Pass::Forward) if is_gradient_of_logits() => (Class::Gradient, Reason::Backward),
        Some(Pass::Forward) => {
            if backward.is_none() {
                return nothing;
            }
            if is_made_of_nothing(program, analysis, buffer, backward) {
                nothing
            } else if is_kept(analysis, buffer, backward) || (is_logits() && is_read_by_gradient(program, &own)) {
                (Class::Activation, Reason::KeptForBackward)
            } else {
                (Class::Temporary, Reason::DroppedBefore)
            }
        }
        Some(Pass::Unknown) if spans_the_turn(program, analysis, buffer, backward) => {
            (Class::Activation, Reason::KeptForBackward)
        }
        _ => nothing,
    }
}

/// Whether a buffer is live when the backward pass begins, or later; `false` where there is none.
fn is_kept(analysis: &ProgramAnalysis, buffer: BufferId, backward: Option<u32>) -> bool {
    let end = || analysis.live.as_ref().and_then(|live| live.of(buffer)).map(|(_, end)| end);
    backward.is_some_and(|backward| end().is_none_or(|end| end >= backward))
}

/// Instructions after one among which those are that read it.
const MOST_AFTER: u32 = 4096;

/// Whether what makes a gradient reads a value, whatever the fusion that does is named for.
fn is_read_by_gradient(program: &Program, value: &Value) -> bool {
    let end = program.computation_of(value.at).and_then(|own| program.computations.get(own.index()));
    let end = end.map_or(0, |own| own.end.min(value.at.0.saturating_add(MOST_AFTER)));
    let mut meant: FastSet<u32> = FastSet::default();
    meant.insert(value.at.0);
    for row in value.at.0 + 1..end {
        let at = InstructionId(row);
        if !program.instructions.operands_of(at).iter().any(|operand| meant.contains(operand)) {
            continue;
        }
        if program.instructions.opcode.get(at.index()) == Some(&Opcode::GET_TUPLE_ELEMENT) {
            let place = program.instructions.argument.get(at.index()).map(|&place| i64::from(place));
            if place == value.index.first().copied() {
                meant.insert(row);
            }
            continue;
        }
        if pass_of(&program.text.op_name(at)) == Pass::Backward || has_backward_inside(program, at) {
            return true;
        }
    }
    false
}

/// Whether a buffer is made of nothing, as indices are, when the backward pass has begun: nothing of the forward pass is in it.
fn is_made_of_nothing(program: &Program, analysis: &ProgramAnalysis, buffer: BufferId, backward: Option<u32>) -> bool {
    let made = program.buffers.instruction_of(buffer);
    made.is_some_and(|made| program.instructions.operands_of(made).is_empty())
        && starts_after(analysis, buffer, backward)
}

/// Whether a buffer is made when the backward pass has begun.
fn starts_after(analysis: &ProgramAnalysis, buffer: BufferId, backward: Option<u32>) -> bool {
    let start = analysis.live.as_ref().and_then(|live| live.of(buffer)).map(|(start, _)| start);
    backward.zip(start).is_some_and(|(backward, start)| start > backward)
}

/// Whether a buffer holds floats that a fusion without a name has computed before the backward pass begins, and that are
/// read in it.
fn spans_the_turn(program: &Program, analysis: &ProgramAnalysis, buffer: BufferId, backward: Option<u32>) -> bool {
    let lives = || analysis.live.as_ref()?.of(buffer).zip(backward);
    let spans = lives().is_some_and(|((start, end), backward)| start < backward && end > backward);
    let is_nameless = |at: InstructionId| {
        program.instructions.opcode.get(at.index()) == Some(&Opcode::FUSION) && op_name(program, at).is_empty()
    };
    // A copy that runs beside other work is what it copies, which a name of the compiler's own may hide.
    let is_of_forward = |made: InstructionId| match program.instructions.opcode.get(made.index()) {
        Some(&Opcode::COPY_START) => {
            let copied = computed(program, Value { at: made, index: program.buffer_index(buffer) });
            is_nameless(copied.at) || pass_of(&own_name(program, copied)) == Pass::Forward
        }
        _ => is_nameless(made),
    };
    spans
        && program.buffer_node(buffer).is_some_and(|node| node.element_type.is_float())
        && program.buffers.instruction_of(buffer).is_some_and(is_of_forward)
}

/// Gives temporaries the class of the buffer that has the same memory immediately before or after them, such as for an
/// array of zeros that a loop fills with activations.
fn share(program: &Program, analysis: &ProgramAnalysis, of: &mut [(Class, Reason)]) {
    let Some(live) = analysis.live.as_ref() else { return };
    for allocation in &program.allocations {
        if allocation.category() != Category::Temporary {
            continue;
        }
        let mut rows: Vec<(u64, u64, u32, u32, usize)> = program
            .assigned_to(allocation)
            .iter()
            .filter_map(|assigned| {
                let (start, end) = live.of(assigned.buffer)?;
                let size = program.buffers.size_of(assigned.buffer).0;
                Some((assigned.offset, size, start, end, assigned.buffer.index()))
            })
            .collect();
        rows.sort_unstable();
        let mut at = 0;
        while at < rows.len() {
            // A chain: same offset and size, each live when the next begins.
            let (offset, size, _, mut until, _) = rows[at];
            let mut end = at + 1;
            while end < rows.len() && rows[end].0 == offset && rows[end].1 == size && rows[end].2 <= until {
                until = until.max(rows[end].3);
                end += 1;
            }
            let chain = &rows[at..end];
            let told = |row: usize| of.get(row).copied().filter(|found| found.1 != Reason::NoSign);
            let mut classes = chain.iter().filter_map(|row| told(row.4)).map(|found| found.0);
            let class = classes.find(|class| *class != Class::Temporary);
            if let Some(class) = class {
                for &(.., row) in chain {
                    if let Some(own) = of.get_mut(row).filter(|own| own.0 == Class::Temporary) {
                        *own = (class, Reason::SharesMemory);
                    }
                }
            }
            at = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Computation, ComputationId, Metadata, ProgramText, ProgramTextHandle};

    /// The op names of a program's instructions.
    #[derive(Debug)]
    struct OpNames(Vec<&'static str>);

    impl ProgramText for OpNames {
        fn metadata(&self, at: InstructionId) -> Metadata {
            let op_name = self.0.get(at.index()).copied().unwrap_or_default().to_owned();
            Metadata { op_name, ..Metadata::default() }
        }
    }

    #[test]
    fn a_constant_inside_a_fusion_is_no_sign_of_its_pass() {
        let of_fusion_around = |opcode: Opcode| {
            let mut program = Program::default();
            program.instructions.opcode = vec![opcode, Opcode::FUSION];
            program.computations = vec![Computation { start: 0, end: 1, ..Computation::default() }];
            program.instructions.called.begin(1);
            program.instructions.called.items.push(ComputationId(0));
            program.text =
                ProgramTextHandle(Arc::new(OpNames(vec!["jit(step)/transpose(jvp(table))/scatter-add", ""])));
            has_backward_inside(&program, InstructionId(1))
        };
        assert!(of_fusion_around(Opcode::COPY));
        assert!(!of_fusion_around(Opcode::CONSTANT));
    }
}
