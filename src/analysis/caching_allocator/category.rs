//! What an allocation is for: parameters, gradients, activations, optimizer state …, from its stack, its lifetime and
//! the phases that the program was in.

use super::failure::FailedRequest;
use super::replay::Lifetime;
use super::steps::Span;
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
    /// Buffers of collective operations.
    Communication,
    /// Older than the history.
    Before,
    /// Anything else.
    Other,
}

impl AllocationCategory {
    /// Every category.
    pub const ALL: [Self; 10] = [
        Self::Parameter,
        Self::Gradient,
        Self::Activation,
        Self::OptimizerState,
        Self::OptimizerTemp,
        Self::ForwardTemp,
        Self::BackwardTemp,
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

/// Who made an allocation, as its stack says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Maker {
    Optimizer,
    Communication,
    Backward,
    Forward,
    Parameter,
    Other,
}

const OPTIMIZER: u8 = 1;
const COMMUNICATION: u8 = 2;
const BACKWARD: u8 = 4;
const FORWARD: u8 = 8;
const PARAMETER: u8 = 16;
const WORKSPACE: u8 = 32;

/// What cuBLAS works in is allocated with the first product of each stream, in whichever pass that is, and kept.
const WORKSPACES: [&str; 3] = ["setWorkspaceForHandle", "getCUDABlasLtWorkspace", "getCurrentCUDABlasHandle"];

/// What one frame says.
fn frame_flags(name: &str, file: &str) -> u8 {
    let mut flags = 0;
    let mut set = |flag: u8, holds: bool| flags |= if holds { flag } else { 0 };
    set(OPTIMIZER, file.contains("torch/optim/") || name == "_init_group");
    set(COMMUNICATION, file.contains("torch/distributed/") || name.contains("ProcessGroup"));
    let engine = name.contains("autograd::Engine") || name.contains("torch::autograd::generated::");
    set(BACKWARD, engine || matches!(name, "backward" | "_engine_run_backward"));
    let calls = matches!(name, "forward" | "_call_impl" | "_wrapped_call_impl");
    set(FORWARD, calls || file.contains("torch/nn/functional.py"));
    let moves = matches!(name, "_apply" | "convert" | "to" | "cuda") && file.contains("nn/modules/module.py");
    set(WORKSPACE, WORKSPACES.iter().any(|word| name.contains(word)));
    set(PARAMETER, moves || matches!(name, "reset_parameters" | "load_state_dict"));
    flags
}

/// Who made the allocations of each stack.
fn makers(snapshot: &CachingSnapshot) -> Vec<Maker> {
    let text = |id| snapshot.strings.get(id);
    let frames: Vec<u8> =
        snapshot.stacks.frames.iter().map(|frame| frame_flags(text(frame.name), text(frame.file))).collect();
    let maker = |row: usize| {
        let rows = snapshot.stacks.rows(StackId(row as u32));
        let flags = rows.iter().fold(0, |flags, &frame| flags | frames.get(frame as usize).copied().unwrap_or(0));
        let order = [
            (WORKSPACE, Maker::Other),
            (OPTIMIZER, Maker::Optimizer),
            (COMMUNICATION, Maker::Communication),
            (BACKWARD, Maker::Backward),
            (FORWARD, Maker::Forward),
            (PARAMETER, Maker::Parameter),
        ];
        order.into_iter().find(|(flag, _)| flags & flag != 0).map_or(Maker::Other, |(_, maker)| maker)
    };
    (0..snapshot.stacks.len()).map(maker).collect()
}

/// The category of each lifetime, with what tells it. `spans` are the optimizer's steps, `failures` the failed requests.
pub fn categories(
    snapshot: &CachingSnapshot,
    (lifetimes, failures): (&[Lifetime], &[FailedRequest]),
    spans: &[Span],
    has_stacks: bool,
) -> Vec<(AllocationCategory, Evidence)> {
    let makers = makers(snapshot);
    let span_of = |lifetime: &Lifetime| {
        let row = spans.partition_point(|span| span.end < lifetime.start);
        spans.get(row).filter(|span| span.start < lifetime.start)
    };
    let maker_of = |lifetime: &Lifetime| -> (Maker, Evidence) {
        if span_of(lifetime).is_some() {
            return (Maker::Optimizer, Evidence::Phase);
        }
        match makers.get(lifetime.stack.0 as usize) {
            Some(&maker) => (maker, Evidence::Stack),
            // Autograd's own threads have no Python frames.
            None if has_stacks => (Maker::Backward, Evidence::Guess),
            None => (Maker::Other, Evidence::Guess),
        }
    };
    let made: Vec<(Maker, Evidence)> = lifetimes.iter().map(maker_of).collect();
    let starts_of = |wanted: Maker| -> Vec<u32> {
        let of = lifetimes.iter().zip(&made).filter(|(lifetime, (maker, _))| !lifetime.is_old() && *maker == wanted);
        of.map(|(lifetime, _)| lifetime.start).collect()
    };
    // Lifetimes stand in the order of their beginnings, so both are ascending.
    let backward = starts_of(Maker::Backward);
    // What lived when a request failed was freed as the program gave up.
    let failed: Vec<u32> = failures.iter().map(|failure| failure.moment).collect();
    let steps: Vec<u32> =
        if spans.is_empty() { starts_of(Maker::Optimizer) } else { spans.iter().map(|span| span.start + 1).collect() };
    let of = |(lifetime, &(maker, evidence)): (&Lifetime, &(Maker, Evidence))| {
        use AllocationCategory as To;
        if lifetime.is_old() {
            return (To::Before, Evidence::Phase);
        }
        let outlives = |moments: &[u32]| {
            let next = moments.partition_point(|&moment| moment <= lifetime.start);
            moments.get(next).is_some_and(|&moment| lifetime.end > moment)
        };
        match maker {
            Maker::Optimizer => {
                let is_state = match span_of(lifetime) {
                    Some(span) => lifetime.end > span.end,
                    None => lifetime.end == NO_ROW,
                };
                (if is_state { To::OptimizerState } else { To::OptimizerTemp }, evidence)
            }
            Maker::Communication => (To::Communication, evidence),
            Maker::Backward => (if outlives(&steps) { To::Gradient } else { To::BackwardTemp }, evidence),
            Maker::Forward if outlives(&backward) => (To::Activation, evidence),
            Maker::Forward if lifetime.end == NO_ROW || outlives(&failed) => (To::Activation, Evidence::Guess),
            Maker::Forward => (To::ForwardTemp, evidence),
            Maker::Parameter => (To::Parameter, evidence),
            Maker::Other => (To::Other, evidence),
        }
    };
    lifetimes.iter().zip(&made).map(of).collect()
}
