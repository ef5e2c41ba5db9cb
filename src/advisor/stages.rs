//! The kinds of layers whose activations are kept, such as the stages of a network: which of them to checkpoint together.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use super::program_context::{AtPeak, ProgramContext};
use crate::analysis::names::layer::{CONTROL, Layer};
use crate::analysis::names::pass::Pass;
use crate::analysis::names::pattern::matches;
use crate::analysis::what_if::saved_for_backward::SavedForBackward;
use crate::analysis::what_if::{Checkpoint, Edit};

/// How many times as much as those of one kind all layers must save to be offered together.
const NOTABLY: f64 = 1.05;

/// Most arrays that a layer takes as its input, such as nodes and edges of a graph, with a copy of one.
const MOST_INPUTS: usize = 3;

/// Fewest values that layers keep where a checkpoint around each frees any.
const KEPT_OF_BLOCK: usize = 2;

/// Patterns of the layers that hold some temporaries, such as `layer_*`, those that hold most first; empty if no layers
/// repeat.
pub(super) fn patterns(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Vec<String> {
    let mut patterns: BTreeMap<&str, u64> = BTreeMap::new();
    for t in held {
        if let Some(layer) = case.memory.kept.layer(t.family) {
            let entry = patterns.entry(layer.pattern.as_str()).or_default();
            *entry = entry.saturating_add(t.size);
        }
    }
    if patterns.len() > 1 {
        let blocks = blocks(case, held);
        if !blocks.is_empty() {
            patterns.retain(|pattern, _| blocks.contains(pattern));
        }
    }
    let mut patterns: Vec<(u64, &str)> = patterns.into_iter().map(|row| (row.1, row.0)).collect();
    patterns.sort_by_key(|&(bytes, pattern)| (Reverse(bytes), Reverse(pattern)));
    patterns.into_iter().map(|row| row.1.to_owned()).collect()
}

/// The patterns of layers that keep several values: one that keeps a single one, such as a product's result, keeps it with a
/// checkpoint too, as what comes next reads it.
fn blocks<'a>(case: &'a ProgramContext<'_>, held: &[&AtPeak]) -> BTreeSet<&'a str> {
    // What is kept, by the end of its name behind that of the layer.
    let mut values: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for t in held {
        let Some(layer) = case.memory.kept.layer(t.family) else { continue };
        let known = values.entry(layer.pattern.as_str()).or_default();
        if known.len() < KEPT_OF_BLOCK {
            let name = case.name(t.family);
            let end = name.find(layer.own_name()).map_or(0, |at| at + layer.own_name().len());
            known.insert(name.get(end..).unwrap_or_default());
        }
    }
    values.into_iter().filter(|row| row.1.len() >= KEPT_OF_BLOCK).map(|row| row.0).collect()
}

/// The patterns to checkpoint: the first, or all of them where that saves notably more; `None` if there is none.
pub(super) fn worthwhile(case: &ProgramContext<'_>, patterns: Vec<String>) -> Option<Vec<String>> {
    let first = patterns.first()?.clone();
    let saved = |patterns: &[String]| case.saved(&case.try_out(&[edit(patterns)]));
    if patterns.len() > 1 {
        let (one, all) = (saved(std::slice::from_ref(&first)), saved(&patterns));
        if all as f64 > one as f64 * NOTABLY && case.is_worth(all.saturating_sub(one)) {
            return Some(patterns);
        }
    }
    Some(vec![first])
}

/// The change that checkpoints layers: by their pattern, or all layers where there are several.
pub(super) fn edit(patterns: &[String]) -> Edit {
    match patterns {
        [one] => Edit::Remat(Checkpoint::layers(one)),
        _ => Edit::Remat(Checkpoint::every_layer()),
    }
}

/// How many layers of some patterns are checkpointed already, and how many there are, where it is a part of them; by the
/// scopes that a checkpoint puts around a layer in the names of operations.
pub(super) fn checkpointed(case: &ProgramContext<'_>, patterns: &[String]) -> Option<(usize, usize)> {
    let kept = &case.memory.kept;
    let layers = &kept.turn.as_ref()?.layers;
    let is_meant = |name: &str| patterns.iter().any(|pattern| matches(pattern, name));
    let names = layers.iter().map(|layer| layer.name.as_str()).filter(|name| is_meant(name));
    let is_again = |family: &usize| {
        kept.passes.get(*family) == Some(&Pass::Recomputed) || SavedForBackward::is_checkpointed(case.name(*family))
    };
    let again = (0..case.memory.families.list.len()).filter(is_again);
    let again = again.filter_map(|family| Some(kept.layer(family)?.name.as_str())).filter(|name| is_meant(name));
    // One of many is what lies next to a loss in parts, which has a checkpoint of its own.
    part_of(names, again).filter(|&(done, all)| done > 1 || all <= 2)
}

/// Whether all layers of some patterns are computed again, and a few of the temporaries that are kept are of each: their inputs.
pub(super) fn keep_inputs_alone(case: &ProgramContext<'_>, patterns: &[String], held: &[&AtPeak]) -> bool {
    if !case.memory.has_checkpoints() {
        return false;
    }
    let kept = &case.memory.kept;
    let bare = |family: usize| kept.layer(family).map(Layer::own_name);
    let is_meant = |family: usize| kept.layer(family).is_some_and(|layer| patterns.contains(&layer.pattern));
    let of_layers: Vec<usize> = held.iter().map(|t| t.family).filter(|&family| is_meant(family)).collect();
    let layers: BTreeSet<&str> = of_layers.iter().filter_map(|&family| bare(family)).collect();
    let is_again = |family: &usize| SavedForBackward::is_checkpointed(case.name(*family));
    let again: BTreeSet<&str> = case.families_of(Pass::Recomputed).filter(is_again).filter_map(bare).collect();
    layers.len() > 1 && of_layers.len() <= MOST_INPUTS * layers.len() && layers.is_subset(&again)
}

/// How many of some layers, by their names, are among others that are checkpointed, and how many they are; `None` where it
/// is all or none, or the names do not tell which. A checkpoint's own scope may stand in place of the module's around a
/// layer: `checkpoint/layer_3` is `Model/layer_3`.
fn part_of<'a>(names: impl Iterator<Item = &'a str>, again: impl Iterator<Item = &'a str>) -> Option<(usize, usize)> {
    let inside = |name: &'a str| name.split_once('/').filter(|(scope, _)| CONTROL.contains(scope)).map(|found| found.1);
    let (mut all, mut open): (BTreeSet<&str>, BTreeSet<&str>) = Default::default();
    for name in names {
        match inside(name) {
            Some(layer) => open.insert(layer),
            None => all.insert(name),
        };
    }
    let is_of = |name: &str, layer: &str| name.strip_suffix(layer).is_some_and(|scope| scope.ends_with('/'));
    let mut of_scope: BTreeMap<&str, &str> = BTreeMap::new();
    for &layer in &open {
        let mut known = all.iter().filter(|name| **name == layer || is_of(name, layer));
        let name = known.next().copied().unwrap_or(layer);
        if known.next().is_some() {
            return None;
        }
        of_scope.insert(layer, name);
    }
    all.extend(of_scope.values());
    let whole = |name: &'a str| inside(name).and_then(|layer| of_scope.get(layer).copied()).unwrap_or(name);
    let done: BTreeSet<&str> = again.map(whole).filter(|name| all.contains(name)).collect();
    (!done.is_empty() && done.len() < all.len()).then_some((done.len(), all.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::activations;
    use crate::advisor::finding::Finding;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::{Bytes, Opcode};

    fn counted(names: &[&str], again: &[&str]) -> Option<(usize, usize)> {
        part_of(names.iter().copied(), again.iter().copied())
    }

    #[test]
    fn layers_in_a_checkpoint_are_those_of_the_model() {
        let names =
            ["Model/layer_0", "Model/layer_1", "Model/layer_2", "checkpoint/layer_0", "rematted_computation/layer_0"];
        assert_eq!(counted(&names, &names[3..]), Some((1, 3)));
        assert_eq!(counted(&["layer_0", "layer_1"], &["layer_1"]), Some((1, 2)));
        assert_eq!(counted(&["layer_0", "layer_1"], &["layer_0", "layer_1"]), None, "all of them");
        assert_eq!(counted(&["layer_0", "layer_1"], &[]), None, "none of them");
        let two = ["encoder/layer_0", "decoder/layer_0", "checkpoint/layer_0"];
        assert_eq!(counted(&two, &two[2..]), None, "which of the two is not told");
    }

    /// Four layers that keep a product each, and what a gradient's name stands on: the mask of a dropout, made at once. `wide`
    /// are the columns of a mask.
    fn finding_of_layers(wide: i64) -> Finding {
        let mut sketch = Sketch::default();
        let x = sketch.argument(array(&[1024, 1024], &[1, 0]), "batch['x']");
        let (mut below, mut made) = (x, Vec::new());
        for layer in 0..4 {
            let name = |what: &str| format!("jit(f)/{what}/dot_general").replace('#', &layer.to_string());
            let product = array(&[1024, 1024], &[1, 0]);
            let kept = sketch.instruction(Opcode::FUSION, product, &[below], &name("jvp(layer_#)/mlp"));
            sketch.alloc(kept);
            let mask = array(&[1024, wide], &[1, 0]);
            let mask = sketch.instruction(Opcode::FUSION, mask, &[kept], &name("transpose(jvp(layer_#))/dropout"));
            sketch.alloc(mask);
            made.push((kept, mask));
            below = kept;
        }
        let loss = sketch.instruction(Opcode::FUSION, array(&[1024, 256], &[1, 0]), &[below], "jit(f)/jvp(loss)/exp");
        sketch.alloc(loss);
        sketch.free(loss);
        for (layer, &(kept, mask)) in made.iter().enumerate().rev() {
            let name = format!("jit(f)/transpose(jvp(layer_{layer}))/mlp/dot_general");
            let gradient = array(&[1024, 1024], &[1, 0]);
            let gradient = sketch.instruction(Opcode::FUSION, gradient, &[below, kept, mask], &name);
            sketch.alloc(gradient);
            sketch.free(mask);
            sketch.free(kept);
            below = gradient;
        }
        let found = sketch.findings(1 << 30, activations::run);
        found.into_iter().next().expect("a finding")
    }

    #[test]
    fn what_a_gradient_names_before_the_backward_pass_is_kept_for_it() {
        let f32s = |columns: u64| 4 * 1024 * columns * 4;
        assert_eq!(finding_of_layers(128).at_stake_bytes, Some(Bytes(f32s(1024) + f32s(128))));
        // Where half of the backward pass would come before the forward pass is through, there is no one turn.
        assert_eq!(finding_of_layers(1024).at_stake_bytes, Some(Bytes(f32s(1024))));
    }
}
