//! What follows the last backward pass: forward passes of an evaluation or of inference, and what they keep.

use std::collections::{HashMap, HashSet};

use super::makers::Maker;
use super::replay::Lifetime;
use crate::model::StackId;

/// Part of what earlier passes allocated that still lives where they keep their graphs: without one, only results and
/// caches stay.
const KEPT: f64 = 0.4;

/// Fewest stacks whose allocations stay where graphs are kept; a cache has those of keys, values and their scales.
const STACKS: usize = 5;

/// Fewest passes in a row without a backward pass, where none was seen before.
const PASSES: usize = 3;

/// Fewest equal blocks of a cache that one pass makes: one for each layer.
const LAYERS: u64 = 4;

/// Fewest layers of which blocks of a stack stay, and fewest such stacks, where a pass that did not end keeps its graph:
/// keys and values, of a decoder and of what it attends to besides, have four.
const KEPT_LAYERS: (u64, usize) = (2, 6);

/// Graphs of forward passes that no backward pass follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptGraphs {
    /// Passes.
    pub passes: u64,
    /// The moment of the last pass's beginning.
    pub last: u32,
    /// The moment after which the passes begin.
    pub since: u32,
}

/// The forward passes after the last backward pass.
#[derive(Debug, Default)]
pub struct Tail {
    since: u32,
    starts: Vec<u32>,
    /// Of each stack: allocations that ended, and those that live on.
    by_stack: HashMap<StackId, (u64, u64)>,
    /// Of each stack: the most allocations of one pass that live on.
    in_one_pass: HashMap<StackId, u64>,
    /// Whether no backward pass and no step is in the history, and what stays is too little for graphs.
    is_inference: bool,
    /// Graphs that are kept.
    pub kept: Option<KeptGraphs>,
}

impl Tail {
    /// From the lifetimes, who made them, and whether the frames of one are under a checkpoint. `lives_on` says whether one
    /// outlives what was recorded.
    pub fn of(
        lifetimes: &[Lifetime],
        makers: &[Maker],
        lives_on: impl Fn(&Lifetime) -> bool,
        is_checkpointed: impl Fn(&Lifetime) -> bool,
    ) -> Self {
        let made = || lifetimes.iter().zip(makers).filter(|(lifetime, _)| !lifetime.is_old());
        let since = made().filter(|(_, maker)| **maker == Maker::Backward).map(|(life, _)| life.start).max();
        let mut tail = Self { since: since.unwrap_or(0), ..Self::default() };
        let is_forward = |maker: &Maker| matches!(maker, Maker::Forward | Maker::Cache);
        let forward: Vec<&Lifetime> = made()
            .filter(|(life, maker)| life.start > tail.since && is_forward(maker))
            .map(|(lifetime, _)| lifetime)
            .collect();
        let Some(first) = forward.first() else { return tail };
        let after = lifetimes.iter().zip(makers).filter(|(life, _)| life.start > tail.since && !life.is_old());
        tail.starts = beginnings(after, first.stack);
        for lifetime in &forward {
            let stays = tail.outlasts(lifetime) || lives_on(lifetime);
            let (ended, alive) = tail.by_stack.entry(lifetime.stack).or_default();
            *(if stays { alive } else { ended }) += 1;
        }
        let mut by_pass: HashMap<(StackId, usize), u64> = HashMap::new();
        let mut in_one_pass: HashMap<StackId, u64> = HashMap::new();
        for lifetime in forward.iter().filter(|life| tail.outlasts(life) || lives_on(life)) {
            let count = by_pass.entry((lifetime.stack, tail.pass_of(lifetime))).or_default();
            *count += 1;
            let most = in_one_pass.entry(lifetime.stack).or_default();
            *most = (*count).max(*most);
        }
        tail.in_one_pass = in_one_pass;
        let sum = |lifetimes: &mut dyn Iterator<Item = &&Lifetime>| lifetimes.map(|life| life.requested).sum::<u64>();
        let usual = usual_passes(lifetimes, makers);
        let least = if usual > 0 { usual + 1 } else { PASSES };
        if let Some(&last) = tail.starts.last().filter(|_| tail.starts.len() >= least) {
            let earlier: Vec<&Lifetime> = forward.iter().filter(|life| life.start < last).copied().collect();
            let stays = |life: &&&Lifetime| life.end > last && !is_checkpointed(life);
            let mut stacks: Vec<StackId> = earlier.iter().filter(stays).map(|life| life.stack).collect();
            stacks.sort_unstable();
            stacks.dedup();
            let (kept, all) = (sum(&mut earlier.iter().filter(stays)), sum(&mut earlier.iter()));
            if stacks.len() >= STACKS && kept as f64 >= KEPT * all as f64 {
                let passes = tail.starts.len() as u64;
                tail.kept = Some(KeptGraphs { passes, last, since: tail.since });
            }
        }
        let has_training = made().any(|(_, maker)| matches!(maker, Maker::Backward | Maker::Optimizer));
        let is_checkpointed = forward.iter().any(|life| is_checkpointed(life));
        let stays = |life: &&&Lifetime| tail.is_kept(life) && (tail.outlasts(life) || lives_on(life));
        let (kept, all) = (sum(&mut forward.iter().filter(stays)), sum(&mut forward.iter()));
        // A pass that a failed request ended: with gradients, many stacks have kept something of each layer; without, only
        // those of keys and values have.
        let keeps_layers = tail.starts.len() == 1 && {
            let of_layers = layers_kept(lifetimes, makers, &lives_on);
            of_layers.values().filter(|&&layers| layers >= KEPT_LAYERS.0).count() >= KEPT_LAYERS.1
        };
        tail.is_inference = !has_training
            && !is_checkpointed
            && !keeps_layers
            && tail.kept.is_none()
            && (kept as f64) < KEPT * all as f64;
        tail
    }

    /// The pass that a lifetime begins in.
    fn pass_of(&self, lifetime: &Lifetime) -> usize {
        self.starts.partition_point(|&start| start <= lifetime.start)
    }

    /// Whether a lifetime outlives the beginning of the next pass.
    fn outlasts(&self, lifetime: &Lifetime) -> bool {
        self.starts.get(self.pass_of(lifetime)).is_some_and(|&start| lifetime.end > start)
    }

    /// Whether most allocations of a stack stay.
    fn is_kept(&self, lifetime: &Lifetime) -> bool {
        self.by_stack.get(&lifetime.stack).is_some_and(|(ended, alive)| alive > ended)
    }

    /// Whether a lifetime is after the last backward pass and belongs to a graph that is kept.
    pub fn is_graph(&self, lifetime: &Lifetime) -> bool {
        self.kept.is_some() && lifetime.start > self.since && self.is_kept(lifetime)
    }

    /// Whether a lifetime of the forward pass that lives on is one of the equal blocks that inference keeps for each layer.
    /// One of each pass is none, such as its logits.
    pub fn is_cache(&self, lifetime: &Lifetime) -> bool {
        self.is_inference
            && self.is_kept(lifetime)
            && self.in_one_pass.get(&lifetime.stack).is_some_and(|&alive| alive >= LAYERS)
    }

    /// Whether a lifetime is after the last backward pass, in inference.
    pub fn is_inference(&self, lifetime: &Lifetime) -> bool {
        self.is_inference && lifetime.start > self.since
    }
}

/// Of each stack of the forward pass: in how many runs of allocations, one in each layer, some live on.
fn layers_kept(
    lifetimes: &[Lifetime],
    makers: &[Maker],
    lives_on: &impl Fn(&Lifetime) -> bool,
) -> HashMap<StackId, u64> {
    // Each stack with the beginning of the last run that was counted.
    let mut kept: HashMap<StackId, (u64, u32)> = HashMap::new();
    for (lifetime, run) in in_runs(lifetimes, makers).filter(|(lifetime, _)| lives_on(lifetime)) {
        let (layers, counted) = kept.entry(lifetime.stack).or_default();
        if *layers == 0 || *counted != run {
            (*layers, *counted) = (*layers + 1, run);
        }
    }
    kept.into_iter().map(|(stack, (layers, _))| (stack, layers)).collect()
}

/// Allocations of the forward pass, each with the beginning of the run that it is in: of those that come one after the
/// other from one stack.
fn in_runs<'a>(lifetimes: &'a [Lifetime], makers: &'a [Maker]) -> impl Iterator<Item = (&'a Lifetime, u32)> {
    let forward = lifetimes.iter().zip(makers).filter(|(life, maker)| !life.is_old() && **maker == Maker::Forward);
    let mut run = (StackId::NONE, 0);
    forward.map(move |(lifetime, _)| {
        if lifetime.stack != run.0 || run.1 == 0 {
            run = (lifetime.stack, lifetime.start);
        }
        (lifetime, run.1)
    })
}

/// The beginnings of allocations of the forward pass that lived on when their stack came again later, as those of earlier
/// layers do that are kept for the backward pass, where `lives_on` says that they live on.
pub fn outlived(lifetimes: &[Lifetime], makers: &[Maker], lives_on: &impl Fn(&Lifetime) -> bool) -> HashSet<u32> {
    let last: HashMap<StackId, u32> = in_runs(lifetimes, makers).map(|(life, run)| (life.stack, run)).collect();
    let earlier = in_runs(lifetimes, makers).filter(|(life, run)| last.get(&life.stack) > Some(run));
    earlier.map(|(life, _)| life).filter(|life| lives_on(life)).map(|life| life.start).collect()
}

/// Where passes begin: with the stack that the first one begins with, after something that is no part of the model, such
/// as the next input. A stack alone may come again for each layer.
fn beginnings<'a>(made: impl Iterator<Item = (&'a Lifetime, &'a Maker)>, first: StackId) -> Vec<u32> {
    let mut is_between = true;
    let mut starts = Vec::new();
    for (lifetime, maker) in made {
        if *maker == Maker::Other {
            is_between = true;
        } else if lifetime.stack == first && is_between {
            starts.push(lifetime.start);
            is_between = false;
        }
    }
    starts
}

/// The most passes that came before a backward pass; 0 if none did.
fn usual_passes(lifetimes: &[Lifetime], makers: &[Maker]) -> usize {
    let (mut most, mut part) = (0, Vec::new());
    for (lifetime, maker) in lifetimes.iter().zip(makers).filter(|(lifetime, _)| !lifetime.is_old()) {
        if *maker != Maker::Backward {
            part.push((lifetime, maker));
            continue;
        }
        let first = part.iter().find(|(_, maker)| **maker == Maker::Forward).map(|(lifetime, _)| lifetime.stack);
        if let Some(first) = first {
            most = most.max(beginnings(part.iter().copied(), first).len());
        }
        part.clear();
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NO_ROW;

    /// Passes of an input and seven stacks with an allocation each; `end` says when one ends.
    fn passes(count: u32, end: impl Fn(u32, u32) -> u32) -> Vec<Lifetime> {
        let life = |pass: u32, stack: u32| Lifetime {
            address: 0,
            requested: 100,
            size: 512,
            start: 1 + pass * 8 + stack,
            end: end(pass, stack),
            released: NO_ROW,
            stack: StackId(stack),
        };
        (0..count * 8).map(|row| life(row / 8, row % 8)).collect()
    }

    fn tail(lifetimes: &[Lifetime]) -> Tail {
        let maker = |life: &Lifetime| if life.stack == StackId(0) { Maker::Other } else { Maker::Forward };
        let makers: Vec<Maker> = lifetimes.iter().map(maker).collect();
        Tail::of(lifetimes, &makers, |life| life.end == NO_ROW, |_| false)
    }

    #[test]
    fn a_pass_that_failed_is_told_from_inference_by_what_it_keeps_of_each_layer() {
        // Four layers of eight stacks with two allocations each, of which the first stays in a graph.
        let layers = |kept: u32| -> Vec<Lifetime> {
            let life = |row: u32| Lifetime {
                address: 0,
                requested: 100,
                size: 512,
                start: 1 + row,
                end: if row.is_multiple_of(6) && row / 6 % 8 < kept { NO_ROW } else { row + 2 },
                released: NO_ROW,
                stack: StackId(1 + row / 6 % 8),
            };
            (0..4 * 8 * 6).map(life).collect()
        };
        let of = |kept: u32| {
            let lifetimes = layers(kept);
            (tail(&lifetimes).is_inference, lifetimes)
        };
        assert!(of(2).0, "keys and values alone");
        let (is_inference, lifetimes) = of(6);
        assert!(!is_inference);
        let makers = vec![Maker::Forward; lifetimes.len()];
        let outlived = outlived(&lifetimes, &makers, &|life| life.end == NO_ROW);
        assert_eq!(outlived.len(), 6 * 3, "all but those of the last layer");
    }

    #[test]
    fn graphs_of_several_passes_are_told_from_caches_and_results() {
        let kept = tail(&passes(4, |_, _| NO_ROW));
        assert_eq!(kept.kept.map(|kept| kept.passes), Some(4));
        // Two passes alone may still be followed by a backward pass.
        assert_eq!(tail(&passes(2, |_, _| NO_ROW)).kept, None);
        // Layers of one pass are none.
        let layers: Vec<Lifetime> =
            passes(4, |_, _| NO_ROW).into_iter().filter(|life| life.stack != StackId(0)).collect();
        assert_eq!(tail(&layers).kept, None);
        // A block for each of four layers stays: a cache.
        let mut lifetimes = passes(5, |pass, stack| if stack > 2 && stack < 7 { NO_ROW } else { pass * 8 + stack + 2 });
        for life in lifetimes.iter_mut().filter(|life| (4..7).contains(&life.stack.0)) {
            life.stack = StackId(3);
        }
        for life in lifetimes.iter_mut().filter(|life| life.stack == StackId(3)) {
            life.requested = 30;
        }
        let cache = tail(&lifetimes);
        assert_eq!(cache.kept, None);
        assert!(cache.is_cache(&lifetimes[3]) && !cache.is_cache(&lifetimes[2]));
        // One block of each pass: its result.
        let lifetimes = passes(5, |pass, stack| if stack == 3 { NO_ROW } else { pass * 8 + stack + 2 });
        assert!(!tail(&lifetimes).is_cache(&lifetimes[3]));
    }
}
