//! The phases of a training step (forward, backward, optimizer) and the layers in them, inferred from op names. The
//! scheduler interleaves neighbours, so the border between forward and backward is placed where the fewest operations
//! are on the wrong side.

use std::collections::HashMap;

use super::ProgramAnalysis;
use super::border::border;
use super::layer_use::LayerUse;
use super::live_range::LiveRanges;
use super::names::layer::Layers;
use super::names::pass::{Pass, pass_of};
use crate::model::{InstructionId, Program};

/// A named range of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// `forward`, `layer_3`.
    pub name: String,
    /// First step.
    pub start: u32,
    /// One past the last step.
    pub end: u32,
}

/// The phases of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Phases {
    /// Passes, in order; empty if the program has no backward pass.
    pub passes: Vec<Phase>,
    /// Layers in each pass, in order; empty if the names show none.
    pub layers: Vec<Phase>,
}

/// Most steps that are sampled.
const MOST_STEPS: usize = 20_000;

/// A phase shorter than this fraction (1/n) of the program is dropped.
const LEAST: usize = 200;

/// Percentage of a pass's operations that must be before its end: the scheduler may put a few anywhere.
const PART_OF_A_PASS: usize = 98;

/// A sampled step: its position, its pass, and the index of its layer's name.
struct Seen {
    step: u32,
    pass: Pass,
    layer: Option<usize>,
}

impl Phases {
    /// Infers the phases from op names; samples the steps of a long program. None without a schedule.
    #[must_use]
    pub fn new(program: &Program, analysis: &ProgramAnalysis) -> Self {
        let Some(sequence) = analysis.live.as_ref().map(LiveRanges::sequence) else { return Self::default() };
        let stride = sequence.len().div_ceil(MOST_STEPS).max(1);
        let named: Vec<(u32, String)> = sequence
            .iter()
            .enumerate()
            .step_by(stride)
            .map(|(step, &row)| (step as u32, program.text.op_name(InstructionId(row))))
            .filter(|(_, name)| !name.is_empty())
            .collect();
        let layers = Layers::new(named.iter().map(|(_, name)| name.as_str()));
        let passes: Vec<Pass> = named.iter().map(|(_, name)| pass_of(name)).collect();
        let is_unnamed = layers.is_empty() && passes.contains(&Pass::Backward);
        let used =
            if is_unnamed { LayerUse::new(program, analysis.labels(program), sequence) } else { LayerUse::default() };
        let marks = used.marks.iter().filter_map(|mark| Some((mark.at.0, mark.layer? as usize)));
        let marks: HashMap<u32, usize> = marks.collect();
        let mut names: Vec<String> = used.layers.into_iter().map(|layer| layer.name).collect();
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let seen: Vec<Seen> = named
            .iter()
            .zip(passes)
            .map(|((step, name), pass)| {
                let used = || marks.get(sequence.get(*step as usize)?).copied();
                let layer = layers.of(name).map(|layer| {
                    *numbers.entry(layer.name).or_insert_with_key(|layer| {
                        names.push(layer.clone());
                        names.len() - 1
                    })
                });
                Seen { step: *step, pass, layer: layer.or_else(used) }
            })
            .collect();
        Self::of(&seen, &names, sequence.len() as u32)
    }

    fn of(seen: &[Seen], names: &[String], steps: u32) -> Self {
        let is_backward = |seen: &Seen| matches!(seen.pass, Pass::Backward | Pass::Recomputed);
        if seen.iter().filter(|seen| is_backward(seen)).count() * LEAST < seen.len().max(1) {
            return Self::default();
        }
        // Before the border the backward pass is wrong, behind it the forward pass. The optimizer updates parameters
        // while the backward pass still runs, so it begins where that ends.
        let first = border(seen, |seen| u128::from(is_backward(seen)), |seen| u128::from(seen.pass == Pass::Forward));
        let backward: Vec<usize> = (first..seen.len()).filter(|&place| is_backward(&seen[place])).collect();
        let last = (backward.len() * PART_OF_A_PASS).div_ceil(100).checked_sub(1).and_then(|at| backward.get(at));
        let second = last.map_or(first, |&place| place + 1);
        let at = |place: usize| seen.get(place).map_or(steps, |seen| seen.step);
        let ends = [0, if first == 0 { 0 } else { at(first) }, at(second), steps];
        let mut phases = Self::default();
        for (i, name) in ["forward", "backward", "optimizer"].into_iter().enumerate() {
            let (start, end) = (ends[i], ends[i + 1]);
            if (end.saturating_sub(start)) as usize * LEAST < steps as usize {
                continue;
            }
            phases.passes.push(Phase { name: name.to_owned(), start, end });
            if name != "optimizer" {
                let inside: Vec<&Seen> = seen.iter().filter(|seen| (start..end).contains(&seen.step)).collect();
                phases.layers.extend(layers_in(&inside, names, (start, end)));
            }
        }
        phases
    }
}

/// The least share, in percent, of a layer's operations that run at another time than the rest of them to be told apart.
const PART_OF_A_LAYER: usize = 15;

/// Ranges of the ascending steps of a layer that run at times of their own: the compiler may work out the gradients of
/// all layers' activations first, and those of their weights later. A few operations far from the others are no range.
fn runs_of(steps: &[u32], apart: u32) -> Vec<&[u32]> {
    let least = (steps.len() * PART_OF_A_LAYER).div_ceil(100);
    let mut runs: Vec<&[u32]> =
        steps.chunk_by(|one, next| next - one <= apart).filter(|run| run.len() >= least).collect();
    if runs.is_empty() {
        runs.push(steps);
    }
    runs
}

/// The layers of a pass by the middle of their operations, each up to half way to the next, or to its end where the next
/// is far. A layer whose operations run
/// at several times is there several times.
fn layers_in(seen: &[&Seen], names: &[String], (start, end): (u32, u32)) -> Vec<Phase> {
    let mut steps: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
    for seen in seen {
        if let Some(layer) = seen.layer {
            steps[layer].push(seen.step);
        }
    }
    let layers = steps.iter().filter(|steps| !steps.is_empty()).count().max(1) as u32;
    // Half of the time that a layer has.
    let apart = ((end - start) / layers / 2).max(1);
    let mut runs: Vec<(u32, usize, &[u32])> = Vec::new();
    for (layer, steps) in steps.iter().enumerate().filter(|(_, steps)| !steps.is_empty()) {
        runs.extend(runs_of(steps, apart).into_iter().map(|run| (run[run.len() / 2], layer, run)));
    }
    runs.sort_unstable();
    // The first layer begins and the last ends with its own operations, not with the pass.
    let begin = runs.first().and_then(|run| run.2.first().copied()).unwrap_or(start);
    let last_of = |run: &(u32, usize, &[u32])| run.2.last().map_or(end, |step| step + 1);
    let mut phases: Vec<Phase> = Vec::with_capacity(runs.len());
    let mut from = begin;
    for (i, run) in runs.iter().enumerate() {
        // What runs between two layers, such as an update of the weights, is part of none.
        let (to, next) = match runs.get(i + 1) {
            Some(next) if next.2[0] > last_of(run) + apart => (last_of(run), next.2[0]),
            Some(next) => (u32::midpoint(run.0, next.0), u32::midpoint(run.0, next.0)),
            None => (last_of(run), end),
        };
        let to = to.max(from);
        match phases.last_mut() {
            Some(before) if before.name == names[run.1] && before.end == from => before.end = to,
            _ => phases.push(Phase { name: names[run.1].clone(), start: from, end: to }),
        }
        from = next.max(to);
    }
    phases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(step: u32, pass: Pass, layer: Option<usize>) -> Seen {
        Seen { step, pass, layer }
    }

    #[test]
    fn borders_stand_where_fewest_are_on_the_wrong_side() {
        let mut steps: Vec<Seen> = (0..40).map(|step| seen(step, Pass::Forward, Some(step as usize / 20))).collect();
        steps.extend((40..90).map(|step| seen(step, Pass::Backward, Some(usize::from(step < 65)))));
        steps.extend((90..100).map(|step| seen(step, Pass::Unknown, None)));
        // The scheduler moved one of each into the other's pass.
        steps[50].pass = Pass::Forward;
        steps[30].pass = Pass::Backward;
        let names = ["layer_0".to_owned(), "layer_1".to_owned()];
        let phases = Phases::of(&steps, &names, 100);
        let passes: Vec<(&str, u32, u32)> = phases.passes.iter().map(|p| (p.name.as_str(), p.start, p.end)).collect();
        assert_eq!(passes, [("forward", 0, 40), ("backward", 40, 90), ("optimizer", 90, 100)]);
        let layers: Vec<&str> = phases.layers.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(layers, ["layer_0", "layer_1", "layer_1", "layer_0"]);
    }

    #[test]
    fn a_layer_that_runs_at_two_times_is_there_twice() {
        let mut steps: Vec<Seen> = (0..40).map(|step| seen(step, Pass::Forward, Some(step as usize / 10))).collect();
        // The gradients of the activations of all layers, then those of the weights.
        steps.extend((40..60).map(|step| seen(step, Pass::Backward, Some(3 - (step as usize - 40) / 5))));
        steps.extend((60..100).map(|step| seen(step, Pass::Backward, Some(3 - (step as usize - 60) / 10))));
        let names: Vec<String> = (0..4).map(|layer| format!("layer_{layer}")).collect();
        let phases = Phases::of(&steps, &names, 100);
        let backward: Vec<(&str, u32)> = phases
            .layers
            .iter()
            .filter(|phase| phase.start >= 40)
            .map(|phase| (phase.name.as_str(), phase.start))
            .collect();
        let order = ["layer_3", "layer_2", "layer_1", "layer_0", "layer_3", "layer_2", "layer_1", "layer_0"];
        assert_eq!(backward.iter().map(|row| row.0).collect::<Vec<_>>(), order);
        let wanted = [40, 45, 50, 55, 60, 70, 80, 90];
        assert!(backward.iter().zip(wanted).all(|(row, start)| row.1.abs_diff(start) <= 2), "{backward:?}");
    }

    #[test]
    fn a_program_without_a_backward_pass_has_no_phases() {
        let steps: Vec<Seen> = (0..50).map(|step| seen(step, Pass::Unknown, None)).collect();
        assert_eq!(Phases::of(&steps, &[], 50), Phases::default());
    }
}
