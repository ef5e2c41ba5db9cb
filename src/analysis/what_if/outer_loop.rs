//! A checkpoint around each step of the outer of two loops, where the loop in it saves for the backward pass: such as around
//! a step of an environment that simulates several frames of physics.

use super::saved_for_backward::Stack;

/// A checkpoint around each step of the outer of two loops.
#[derive(Debug, Clone, Copy)]
pub(super) struct AroundOuter {
    /// Steps of the outer loop.
    pub steps: u64,
    /// Steps of the loop in each of them.
    pub inner: u64,
    /// Bytes of inputs that are kept already.
    pub kept: u64,
    /// Bytes of the inputs that are kept besides, of all steps.
    pub inputs: u64,
    /// Bytes that one step computes again.
    pub again: u64,
}

impl AroundOuter {
    /// Bytes in all.
    pub(super) fn all(&self) -> u64 {
        self.kept.saturating_add(self.inputs).saturating_add(self.again)
    }
}

/// What a checkpoint around the steps of the outer loop keeps and computes again, where the loop saves what a loop in each
/// of its steps saves; `None` for layers, which are checkpointed one by one. `carry` are the bytes that each step passes on.
pub(super) fn around_outer(stacks: &[Stack], carry: Option<u64>, size: impl Fn(&Stack) -> u64) -> Option<AroundOuter> {
    let carry = carry.filter(|&carry| carry > 0)?;
    let inner = stacks.iter().map(|stack| stack.inner).max().filter(|&inner| inner > 1)?.unsigned_abs();
    let steps = stacks.iter().map(|stack| stack.layers).max()?.max(1).unsigned_abs();
    if stacks.iter().any(|stack| stack.steps.are_layers()) {
        return None;
    }
    let sum = |accept: &dyn Fn(&Stack) -> bool| {
        stacks.iter().filter(|stack| accept(stack)).fold(0u64, |sum, stack| sum.saturating_add(size(stack)))
    };
    let kept = sum(&|stack| stack.is_input && stack.inner <= 1);
    let again = sum(&|stack| !stack.is_input || stack.inner > 1) / steps;
    Some(AroundOuter { steps, inner, kept, inputs: carry.saturating_mul(steps).saturating_sub(kept), again })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::flow::steps::Steps;
    use crate::model::InstructionId;

    fn stack(family: u32, inner: i64, is_input: bool, steps: Steps) -> Stack {
        let of_loop = InstructionId(0);
        Stack { family, of_loop, layers: 32, inner, steps, is_input, carry: 10, is_in_layer: false }
    }

    #[test]
    fn the_inputs_of_outer_steps_are_kept_and_one_step_is_computed_again() {
        let stacks = |steps| [stack(0, 10, false, steps), stack(1, 10, false, steps), stack(2, 1, true, steps)];
        let size = |stack: &Stack| [3200, 6400, 64][stack.family as usize];
        let outer = around_outer(&stacks(Steps::Other), Some(10), size).expect("a loop in a loop");
        assert_eq!((outer.steps, outer.inner), (32, 10));
        assert_eq!((outer.kept, outer.inputs), (64, 320 - 64));
        assert_eq!(outer.again, (3200 + 6400) / 32);
        assert!(around_outer(&stacks(Steps::Layers), Some(10), size).is_none(), "layers are checkpointed one by one");
        assert!(around_outer(&stacks(Steps::Other), None, size).is_none(), "it is not known what a step passes on");
    }
}
