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
