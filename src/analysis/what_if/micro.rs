//! Micro-batches: a step that runs on parts of its batch, one after the other.

use super::base::{Base, Role};
use super::batch::products;
use super::edit::IN_LOOP;
use super::memory::{Memory, Owner};
use super::state::State;
use crate::analysis::names::pass::Pass;
use crate::analysis::once::once;
use crate::model::{FastSet, InstructionId, Opcode, Program, ShapeNode, outline};

/// Share of the bytes of temporaries that must hold a part of the batch.
const MOST: f64 = 0.7;

/// Larger batches have too many divisors to tell which of them is a part.
const LARGEST: i64 = 4096;

/// Shorter samples do not tell that there is one at a time.
const LEAST_LENGTH: i64 = 256;

/// Share of the bytes of temporaries that hold the whole batch, below which none do.
const HARDLY_ANY: f64 = 0.1;

impl Memory {
    /// How many parts of the batch a step runs on already, one after the other; 1 if it runs on all of it at once.
    #[must_use]
    pub fn micro_batches(&self, program: &Program) -> i64 {
        let batch = self.data.first().map_or(1, super::batch::DataArgument::batch);
        self.part_of_batch(program).map_or(1, |part| batch / part.max(1)).max(1)
    }

    /// Whether the step uses only a part of the samples that it is given, as its argument is cut off: no loop goes over the
    /// others, nor are they cut out elsewhere. Worked out once.
    #[must_use]
    pub fn leaves_samples_out(&self, program: &Program) -> bool {
        *once(&self.leaves_samples_out, || self.finds_samples_left_out(program))
    }

    fn finds_samples_left_out(&self, program: &Program) -> bool {
        if self.part_of_batch(program).is_none() || self.parts_of_loop.or(self.parts_beside(program)).is_some() {
            return false;
        }
        let Some(data) = self.data.first() else { return false };
        let given = self.base.get(data.base as usize).and_then(|base| program.buffers.instruction_of(base.buffer));
        let (Some(given), Some(entry)) = (given, program.entry_computation()) else { return false };
        let reads = |at: &InstructionId| program.instructions.operands_of(*at).contains(&given.0);
        let mut readers = (entry.start..entry.end).map(InstructionId).filter(reads).peekable();
        readers.peek().is_some() && readers.all(|reader| cuts_off(program, reader, given))
    }

    /// Whether the batch counts rows of state that the program passes on, such as environments, rather than samples: what is
    /// collected from them is what it learns from.
    #[must_use]
    pub fn is_batch_of_state(&self) -> bool {
        let is_state = |row: u32| self.base.get(row as usize).is_some_and(Base::is_state);
        !self.data.is_empty() && self.data.iter().all(|data| is_state(data.base))
    }

    /// Of how many parts of the batch a step adds up gradients already: those of [`Self::micro_batches`], or those that its
    /// argument is divided into; 1 if it runs on all of it at once.
    #[must_use]
    pub fn summed_parts(&self, program: &Program) -> i64 {
        if self.leaves_samples_out(program) {
            return 1;
        }
        self.micro_batches(program).max(self.parts_of_loop.unwrap_or(1))
    }

    /// The largest family that holds gradients of weights, which names what is added up of them; the last one where none is
    /// known. Worked out once.
    fn gradient(&self, program: &Program) -> Option<u32> {
        *once(&self.gradient, || {
            let weights = self.weights(program);
            let is_gradient = |row: &u32| {
                let node = self.node_of_family(program, *row);
                self.kept.passes.get(*row as usize) == Some(&Pass::Backward)
                    && node.is_some_and(|node| weights.contains(&outline(&node.dimensions)))
            };
            let families = self.families.list.len() as u32;
            let size = |row: &u32| self.families.list[*row as usize].size;
            let known = self.kept.gradients.iter().copied().chain((0..families).filter(is_gradient));
            known.max_by_key(size).or(families.checked_sub(1))
        })
    }

    /// Rows of the weights that the program returns with new values; all that it trains where it returns none, as a program
    /// that returns gradients does. What stays as it is, such as the weights under LoRA, has no gradient.
    fn updated<'a>(&'a self, program: &'a Program) -> impl Iterator<Item = usize> + 'a {
        let result = |base: &'a Base| match base.role {
            Role::Result(_) => base.returned.as_ref().or_else(|| program.buffer_node(base.buffer)),
            _ => None,
        };
        let results: FastSet<&[i64]> =
            self.base.iter().filter_map(result).map(|node| node.dimensions.as_slice()).collect();
        let is_updated = move |row: usize| match self.base[row].role {
            Role::Argument { is_donated: true, .. } => true,
            _ => {
                let node = program.buffer_node(self.base[row].buffer);
                node.is_some_and(|node| results.contains(node.dimensions.as_slice()))
            }
        };
        let is_returned = &self.followers_in(program).is_returned;
        let is_updated = move |row: usize| is_updated(row) && is_returned.get(row) != Some(&true);
        let is_any = self.trained.iter().any(|&row| is_updated(row));
        self.trained.iter().copied().filter(move |&row| !is_any || is_updated(row))
    }

    /// The part of the batch that a step runs on, where it runs on several: the program has a loop, or that over them is
    /// written out, and most temporaries hold such a part of the samples, hardly any all of them.
    pub(super) fn part_of_batch(&self, program: &Program) -> Option<i64> {
        *once(&self.part_of_batch, || {
            let data = self.data.first().filter(|data| data.batch() > 1 && data.batch() <= LARGEST)?;
            let batch = data.batch();
            let beside = self.parts_beside(program);
            if beside.is_none() && !program.instructions.opcode.contains(&Opcode::WHILE) {
                return None;
            }
            let parts: Vec<i64> = (2..=batch / 2).filter(|part| batch % part == 0).collect();
            // A single sample shows in its length alone.
            let length = data.dimensions.get(1).copied().filter(|&length| length >= LEAST_LENGTH);
            let whole = products(&self.data, 1);
            let weights = self.weights(program);
            // Where a loop adds up gradients of so many parts, what has the size of one is no whole batch, though another
            // dimension, such as that of heads, may be as large as that.
            let known = self.parts_of_loop.or(beside).filter(|&parts| parts > 1 && batch % parts == 0);
            let known = known.map(|parts| batch / parts);
            let (mut all, mut of_whole, mut of_one) = (0u64, 0u64, 0u64);
            let mut held = vec![0u64; parts.len()];
            for family in &self.families.list {
                let Some(node) = program.buffer_node(family.root) else { continue };
                if weights.contains(&outline(&node.dimensions)) || !node.element_type.is_float() {
                    continue;
                }
                all = all.saturating_add(family.size);
                let is_part = known.is_some_and(|part| part > 1 && holds(node, part))
                    && (beside.is_none() || !begins_with(node, &whole));
                if !is_part && whole.iter().any(|&size| holds(node, size)) {
                    of_whole = of_whole.saturating_add(family.size);
                }
                if length.is_some_and(|length| holds_one(node, length)) {
                    of_one = of_one.saturating_add(family.size);
                }
                for (&part, held) in parts.iter().zip(&mut held) {
                    if holds(node, part) {
                        *held = held.saturating_add(family.size);
                    }
                }
            }
            let is_held = |held: u64| {
                let is_most = held as f64 >= all as f64 * MOST && of_whole as f64 <= all as f64 * HARDLY_ANY;
                // The gradients tell, too.
                held > 0 && (is_most || known.is_some() && held > of_whole)
            };
            let best = (0..parts.len()).max_by_key(|&i| (Some(parts[i]) == known, held[i], parts[i]));
            let best = best.filter(|&best| is_held(held[best]));
            // A loop over as many parts as there are samples runs on one at a time.
            let is_one = is_held(of_one) || self.parts_of_loop == Some(batch);
            best.map(|best| parts[best]).or_else(|| is_one.then_some(1))
        })
    }
}

/// Whether an instruction takes nothing but fixed parts of what it reads of another, by itself or inside a fusion.
fn cuts_off(program: &Program, reader: InstructionId, from: InstructionId) -> bool {
    if program.opcode_name(reader) == "slice" {
        return true;
    }
    let Some(of) = program.instructions.called_by(reader).first().and_then(|of| program.computations.get(of.index()))
    else {
        return false;
    };
    let operands = program.instructions.operands_of(reader);
    let is_given = |at: InstructionId| {
        let place = program.instructions.argument.get(at.index()).and_then(|&place| operands.get(place as usize));
        program.opcode_name(at) == "parameter" && place == Some(&from.0)
    };
    let rows = || (of.start..of.end).map(InstructionId);
    let given: Vec<u32> = rows().filter(|&at| is_given(at)).map(|at| at.0).collect();
    let reads = |at: &InstructionId| program.instructions.operands_of(*at).iter().any(|row| given.contains(row));
    program.opcode_name(reader) == "fusion" && rows().filter(reads).all(|at| program.opcode_name(at) == "slice")
}

/// Whether an array holds one sample of a length: that dimension comes first, or after one of a single sample.
fn holds_one(node: &ShapeNode, length: i64) -> bool {
    let Some((_, before)) = node.dimensions.split_last() else { return false };
    let mut places = before.iter().enumerate().filter(|place| *place.1 == length);
    places.any(|(at, _)| at.checked_sub(1).is_none_or(|at| before[at] == 1))
}

/// Whether the first dimension of an array is one of some sizes.
fn begins_with(node: &ShapeNode, sizes: &[i64]) -> bool {
    node.dimensions.iter().find(|&&size| size > 1).is_some_and(|size| sizes.contains(size))
}

/// Whether an array has a dimension of a size before its last, which is that of features.
fn holds(node: &ShapeNode, size: i64) -> bool {
    node.dimensions.split_last().is_some_and(|(_, before)| before.contains(&size))
}

impl State<'_> {
    /// Micro-batches: arguments stay, temporaries hold one part of the batch, and the gradients of all weights are kept
    /// from the first part to the last.
    pub(super) fn micro(&mut self, parts: u32) {
        let is_in_loop = parts == IN_LOOP;
        let parts = i64::from(parts);
        let Some(batch) = self.batch_to_change() else { return };
        let memory = self.memory;
        if !memory.has_backward() {
            self.decline("there are no gradients to sum; run on parts of the batch, the program takes what a smaller batch takes (`batch`)".to_owned());
            return;
        }
        match memory.written_out(self.program).filter(|_| !self.is_rolled_up) {
            Some(written_out) if is_in_loop => return self.roll_up(written_out),
            Some(written_out) => return self.divide_further((batch, batch / written_out), parts),
            None if is_in_loop => {
                self.warn("`micro loop` changes nothing: no micro-batches are written out".to_owned());
                return;
            }
            None => {}
        }
        let held = memory.part_of_batch(self.program);
        let now = held.unwrap_or(batch);
        if now == 1 && parts > 1 {
            self.warn(format!("the {batch} samples of each device run one after the other already"));
            return;
        }
        if now % parts != 0 {
            self.decline(match held {
                Some(part) => format!("parts of {part} samples per device cannot be divided by {parts}"),
                None => format!("a batch of {batch} per device cannot be divided by {parts}"),
            });
            return;
        }
        self.decline_folding(now, now / parts);
        let is_temporary = |owner: Owner| matches!(owner, Owner::Family(_));
        self.scale_items((batch, now), now / parts, &is_temporary);
        if held.is_some() || memory.parts_of_loop.is_some() {
            // It adds up gradients already.
            return;
        }
        self.add_sums();
    }

    /// The sums of all gradients, in memory from the first part of the batch to the last.
    pub(super) fn add_sums(&mut self) {
        let memory = self.memory;
        let accumulators =
            memory.updated(self.program).fold(0u64, |sum, row| sum.saturating_add(memory.base[row].size));
        if let Some(family) = memory.gradient(self.program).filter(|_| accumulators > 0) {
            self.sums_of_gradients = Some((accumulators, 0, 2 * memory.families.events, family));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ElementType;

    #[test]
    fn one_sample_shows_in_its_length() {
        let one = |dims: &[i64]| holds_one(&ShapeNode::array(ElementType::BF16, dims.to_vec()), 8192);
        assert!(one(&[1, 8192, 4096]) && one(&[12, 1, 8192, 14336]) && one(&[8192, 128_256]));
        assert!(!one(&[2, 8192, 4096]) && !one(&[12, 2, 8192, 14336]) && !one(&[4096, 8192]));
    }
}
