//! What an allocation is for: parameters, gradients, activations, optimizer state …, from its stack, its lifetime and
//! the phases that the program was in.

use std::collections::HashMap;

use super::failure::FailedRequest;
use super::makers::{Maker, stack_signs};
use super::replay::Lifetime;
use super::steps::Span;
use super::tail::{self, KeptGraphs, Tail};
use crate::model::{CachingSnapshot, NO_ROW, StackId};

/// What an allocation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllocationCategory {
    /// Weights of the model.
    Parameter,
    /// Made by the backward pass, read by the optimizer.
    Gradient,
    /// Made by the forward pass and kept for the backward pass.
    Activation,
    /// Made by the optimizer and kept.
    OptimizerState,
    /// Made and freed by the optimizer.
    OptimizerTemp,
    /// Made and freed by the forward pass.
    ForwardTemp,
    /// Made and freed by the backward pass.
    BackwardTemp,
    /// Keys and values that inference keeps from one forward pass to the next.
    Cache,
    /// What a library such as cuBLAS works in, and keeps.
    Workspace,
    /// Buffers of collective operations.
    Communication,
    /// Older than the history.
    Before,
    /// Anything else.
    Other,
}

impl AllocationCategory {
    /// Every category.
    pub const ALL: [Self; 12] = [
        Self::Parameter,
        Self::Gradient,
        Self::Activation,
        Self::OptimizerState,
        Self::OptimizerTemp,
        Self::ForwardTemp,
        Self::BackwardTemp,
        Self::Cache,
        Self::Workspace,
        Self::Communication,
        Self::Before,
        Self::Other,
    ];

    /// The word in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parameter => "parameter",
            Self::Gradient => "gradient",
            Self::Activation => "activation",
            Self::OptimizerState => "optimizer_state",
            Self::OptimizerTemp => "optimizer_temp",
            Self::ForwardTemp => "forward_temp",
            Self::BackwardTemp => "backward_temp",
            Self::Cache => "kv_cache",
            Self::Workspace => "library_workspace",
            Self::Communication => "communication",
            Self::Before => "before",
            Self::Other => "other",
        }
    }

    /// On the screen.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Parameter => "Parameters",
            Self::Gradient => "Gradients",
            Self::Activation => "Activations",
            Self::OptimizerState => "Optimizer state",
            Self::OptimizerTemp => "Optimizer temporaries",
            Self::ForwardTemp => "Forward temporaries",
            Self::BackwardTemp => "Backward temporaries",
            Self::Cache => "KV cache",
            Self::Workspace => "Library workspace",
            Self::Communication => "Communication",
            Self::Before => "Older than the history",
            Self::Other => "Other",
        }
    }
}

/// What tells the category.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evidence {
    /// The phase that the program was in.
    Phase,
    /// The stack.
    Stack,
    /// Neither; most likely.
    Guess,
}

/// The category of each lifetime, with what tells it, and what is seen on the way.
#[derive(Debug, Default)]
pub struct Categories {
    /// Of each lifetime.
    pub of: Vec<(AllocationCategory, Evidence)>,
    /// Whether anything was made by a backward pass.
    pub has_backward: bool,
    /// Graphs of forward passes that no backward pass follows.
    pub kept: Option<KeptGraphs>,
}

/// What cuBLAS works in by default, which a thread without Python frames allocates once: on Hopper, and before.
const WORKSPACE_SIZES: [u64; 2] = [32 << 20, 8_519_680];

/// The category of each lifetime. `spans` are the optimizer's steps, `failures` the failed requests.
pub fn categories(
    snapshot: &CachingSnapshot,
    (lifetimes, failures): (&[Lifetime], &[FailedRequest]),
    spans: &[Span],
    has_stacks: bool,
) -> Categories {
    let signs = stack_signs(snapshot);
    let signs_of = |lifetime: &Lifetime| signs.get(lifetime.stack.0 as usize);
    let row_at = |moment: u32| {
        let row = spans.partition_point(|span| span.end < moment);
        spans.get(row).filter(|span| span.start < moment).map(|_| row)
    };
    let row_of = |lifetime: &Lifetime| row_at(lifetime.start);
    let span_of = |lifetime: &Lifetime| row_of(lifetime).and_then(|row| spans.get(row));
    let is_pass = |maker: Maker| matches!(maker, Maker::Forward | Maker::Backward | Maker::Cache | Maker::Workspace);
    // Steps that run the passes in a closure.
    let mut has_closure = vec![false; spans.len()];
    for lifetime in lifetimes {
        if let Some(row) = row_of(lifetime)
            && signs_of(lifetime).is_some_and(|signs| matches!(signs.maker, Maker::Forward | Maker::Backward))
        {
            has_closure[row] = true;
        }
    }
    // What lived when a request failed was freed as the program gave up.
    let failed: Vec<u32> = failures.iter().map(|failure| failure.moment).collect();
    let is_after = |lifetime: &Lifetime, moments: &[u32]| {
        let next = moments.partition_point(|&moment| moment <= lifetime.start);
        moments.get(next).is_some_and(|&moment| lifetime.end > moment)
    };
    let lives_on = |lifetime: &Lifetime| lifetime.end == NO_ROW || is_after(lifetime, &failed);
    let workspaces = lone_workspaces(lifetimes, has_stacks, &lives_on);
    let maker_of = |(row, lifetime): (usize, &Lifetime)| -> (Maker, Evidence) {
        if workspaces.contains(&row) {
            return (Maker::Workspace, Evidence::Guess);
        }
        match (row_of(lifetime), signs_of(lifetime)) {
            (Some(_), Some(signs)) if is_pass(signs.maker) => (signs.maker, Evidence::Stack),
            // Autograd's own threads have no Python frames.
            (Some(span), None) if has_stacks && has_closure[span] => (Maker::Backward, Evidence::Guess),
            (Some(_), _) => (Maker::Optimizer, Evidence::Phase),
            (None, Some(signs)) => (signs.maker, Evidence::Stack),
            (None, None) if has_stacks => (Maker::Backward, Evidence::Guess),
            (None, None) => (Maker::Other, Evidence::Guess),
        }
    };
    let made: Vec<(Maker, Evidence)> = lifetimes.iter().enumerate().map(maker_of).collect();
    let starts_of = |wanted: Maker| -> Vec<u32> {
        let of = lifetimes.iter().zip(&made).filter(|(lifetime, (maker, _))| !lifetime.is_old() && *maker == wanted);
        of.map(|(lifetime, _)| lifetime.start).collect()
    };
    // Lifetimes stand in the order of their beginnings, so both are ascending.
    let backward = starts_of(Maker::Backward);
    let mut steps = starts_of(Maker::Optimizer);
    if !spans.is_empty() {
        // What a closure made is read before the step's end.
        let closures = spans.iter().zip(&has_closure).filter(|(_, has)| **has).map(|(span, _)| span.end);
        let inside = |&moment: &u32| row_at(moment).is_some_and(|row| has_closure[row]);
        steps.retain(inside);
        steps.extend(spans.iter().map(|span| span.start + 1).chain(closures));
        steps.sort_unstable();
    }
    let makers: Vec<Maker> = made.iter().map(|(maker, _)| *maker).collect();
    let is_checkpointed = |lifetime: &Lifetime| signs_of(lifetime).is_some_and(|signs| signs.is_checkpointed);
    let tail = Tail::of(lifetimes, &makers, lives_on, is_checkpointed);
    // Of each stack of the forward pass: what ended before a backward pass, and what outlived its beginning.
    let mut ends: HashMap<StackId, (u64, u64)> = HashMap::new();
    for (lifetime, _) in lifetimes.iter().zip(&makers).filter(|(_, maker)| **maker == Maker::Forward) {
        let (ended, kept) = ends.entry(lifetime.stack).or_default();
        *(if !is_after(lifetime, &backward) && !lives_on(lifetime) { ended } else { kept }) += 1;
    }
    let outlived = tail::outlived(lifetimes, &makers, &lives_on);
    let ends_early = |lifetime: &Lifetime| {
        !outlived.contains(&lifetime.start) && ends.get(&lifetime.stack).is_some_and(|(ended, kept)| ended >= kept)
    };
    let of = |(lifetime, &(maker, evidence)): (&Lifetime, &(Maker, Evidence))| {
        use AllocationCategory as To;
        if lifetime.is_old() {
            return (To::Before, Evidence::Phase);
        }
        match maker {
            Maker::Optimizer => {
                let is_state = match span_of(lifetime) {
                    Some(span) => lifetime.end > span.end,
                    // A step that fails has no end.
                    None => lives_on(lifetime) && signs_of(lifetime).is_none_or(|signs| !signs.is_step_math),
                };
                (if is_state { To::OptimizerState } else { To::OptimizerTemp }, evidence)
            }
            Maker::Communication => (To::Communication, evidence),
            Maker::Backward => (if is_after(lifetime, &steps) { To::Gradient } else { To::BackwardTemp }, evidence),
            Maker::Forward | Maker::Cache if is_after(lifetime, &backward) => (To::Activation, evidence),
            Maker::Cache => (To::Cache, evidence),
            Maker::Forward if tail.is_graph(lifetime) => (To::Activation, Evidence::Guess),
            Maker::Forward if tail.is_cache(lifetime) => (To::Cache, Evidence::Guess),
            Maker::Forward if lives_on(lifetime) && !tail.is_inference(lifetime) && !ends_early(lifetime) => {
                (To::Activation, Evidence::Guess)
            }
            Maker::Forward if lives_on(lifetime) => (To::ForwardTemp, Evidence::Guess),
            Maker::Forward => (To::ForwardTemp, evidence),
            Maker::Parameter => (To::Parameter, evidence),
            Maker::Workspace => (To::Workspace, evidence),
            Maker::Other => (To::Other, evidence),
        }
    };
    let of = lifetimes.iter().zip(&made).map(of).collect();
    Categories { of, has_backward: !backward.is_empty(), kept: tail.kept }
}

/// Workspaces of threads without Python frames: the only such block of a workspace's size, kept to the end.
fn lone_workspaces(lifetimes: &[Lifetime], has_stacks: bool, lives_on: &dyn Fn(&Lifetime) -> bool) -> Vec<usize> {
    let is_like = |lifetime: &Lifetime, size: u64| {
        lifetime.requested == size && !lifetime.stack.is_known() && !lifetime.is_old() && lives_on(lifetime)
    };
    let lone = |size: u64| {
        let mut rows = lifetimes.iter().enumerate().filter(|(_, life)| is_like(life, size)).map(|(row, _)| row);
        rows.next().filter(|_| rows.next().is_none())
    };
    if has_stacks { WORKSPACE_SIZES.into_iter().filter_map(lone).collect() } else { Vec::new() }
}
