//! What is checkpointed as one: layers, or scopes that a pattern names, with what they make and what they read.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use rayon::prelude::*;

use super::carries::{Summed, keep_sums};
use super::delayed::{Delayed, delayed};
use super::saved_for_backward::SavedForBackward;
use super::turn::{Read, Turn};
use crate::analysis::flow::label::Labels;
use crate::analysis::flow::other_result::gradient_beside;
use crate::analysis::names::layer::Layers;
use crate::analysis::names::lookup::op_name;
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::names::pattern::matches;
use crate::analysis::names::scope;
use crate::analysis::packing::{Families, Family};
use crate::model::{FastMap, InstructionId, NO_ROW, Program};

/// The pattern for every layer.
pub const EVERY: &str = "*";

/// A unit of checkpointing: a layer, or a scope matched by a pattern.
#[derive(Debug, Clone, Default)]
pub struct Segment {
    /// Families of its forward pass.
    pub forward: Vec<u32>,
    /// Families of its forward pass that the compiler recomputes after the turn.
    pub recomputed: Vec<u32>,
    /// First time of its backward pass.
    pub backward: u32,
    /// Time from which its values are read after the turn, at most that of its backward pass.
    pub needed: u32,
    /// Whether it is checkpointed already.
    pub is_checkpointed: bool,
    /// Whether anything needs its values again: a network that is not trained is not computed again.
    pub is_needed: bool,
}

/// What is divided into segments: the families, with the framework's names of their operations and their passes.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The families.
    pub families: &'a Families,
    /// Name of the operation, by family.
    pub names: &'a [String],
    /// The pass, by family.
    pub passes: &'a [Pass],
    /// Pairs of instruction and family: the instruction makes a member of the family. Ascending.
    pub makers: &'a [(u32, u32)],
}

/// The segments that a pattern names.
#[derive(Debug, Default)]
pub struct Segments {
    /// The segments.
    pub list: Vec<Segment>,
    /// First times of the backward passes of all segments, ascending.
    pub backward: Vec<u32>,
    /// Time of the last read in the forward pass, by family; `NO_ROW` for what its segment cannot recompute when the
    /// backward pass needs it, as another one reads it, and for what is in no segment.
    last_reads: Vec<u32>,
    /// Families that segments read from others, each with the segment: their inputs.
    pub inputs: Vec<(u32, u32)>,
    /// Parts of sums that are the inputs of segments.
    summed: Summed,
    /// Inputs of segments that are in on-chip memory alone: bytes, time at which they are made, and the segment.
    pub on_chip: Vec<(u64, u32, u32)>,
}

/// Segments by their names.
struct SegmentNames<'a> {
    pattern: &'a str,
    /// Whether the name of a layer matches, by layer.
    layers: Vec<bool>,
    /// Segments by their layer, or where they are no layers, by their name.
    rows: HashMap<(Option<usize>, String), u32, RandomState>,
}

impl<'a> SegmentNames<'a> {
    fn new(turn: &'a Turn, pattern: &'a str) -> Self {
        let by = |pattern: &str| -> Vec<bool> {
            let is_meant = |name: &str| {
                matches(pattern, name) || name.rsplit_once('/').is_some_and(|(_, last)| matches(pattern, last))
            };
            turn.layers.iter().map(|layer| is_meant(&layer.name)).collect()
        };
        let mut layers = by(pattern);
        // Where names begin at the layer, a path to it means the same: `transformer.h[*]`.
        let mut rest = pattern;
        while let Some((_, last)) = rest.split_once(['.', '/']).filter(|_| !layers.contains(&true)) {
            layers = by(last);
            rest = last;
        }
        Self { pattern, layers, rows: HashMap::default() }
    }

    /// The segment of a layer and of the name of an operation, a new one where one may be added.
    fn place(&mut self, layer: Option<u32>, operation: impl FnOnce() -> String, may_add: bool) -> Option<u32> {
        let layer = layer.map(|row| row as usize).filter(|&row| self.layers.get(row) == Some(&true));
        let key = match layer {
            Some(_) => (layer, String::new()),
            // The pattern for every layer does not include what is outside the layers.
            None if self.pattern == EVERY => return None,
            None => (None, self.scopes(&operation())?),
        };
        if let Some(&row) = self.rows.get(&key) {
            return Some(row);
        }
        let row = self.rows.len() as u32;
        may_add.then(|| {
            self.rows.insert(key, row);
            row
        })
    }

    /// The scopes of an operation up to the one that the pattern names.
    fn scopes(&self, operation: &str) -> Option<String> {
        let path = scope::path(operation);
        let (_, scopes) = path.split_last()?;
        let at = scopes.iter().position(|part| matches(self.pattern, part))?;
        Some(scopes[..=at].join("/"))
    }
}

impl Segments {
    /// Looks for what a pattern names.
    pub fn new(program: &Program, named: Named<'_>, turn: &Turn, pattern: &str) -> Self {
        let Named { families, names: operations, passes, .. } = named;
        let mut names = SegmentNames::new(turn, pattern);
        let mut segments: Vec<Segment> = Vec::new();
        let mut backward: Vec<Option<u32>> = Vec::new();
        let mut of_family = vec![None; families.list.len()];
        for (i, family) in families.list.iter().enumerate().filter(|row| turn.has(2 * row.1.first)) {
            let layer = turn.layer_of.get(i).copied().flatten();
            let Some(row) = names.place(layer, || operations.get(i).cloned().unwrap_or_default(), true) else {
                continue;
            };
            if row as usize >= segments.len() {
                segments.push(Segment::default());
                backward.push(None);
            }
            let time = 2 * family.first;
            // What the layer itself needs too, such as the mask of its dropout, may have the name of its gradient.
            let is_early =
                |pass: Pass| pass == Pass::Backward && layer.is_some_and(|layer| turn.window(layer).0 <= time);
            match passes.get(i) {
                Some(&pass) if time < turn.at && (turn.is_forward(pass) || is_early(pass)) => {
                    segments[row as usize].forward.push(i as u32);
                    of_family[i] = Some(row);
                }
                Some(Pass::Forward) if time >= turn.at => segments[row as usize].recomputed.push(i as u32),
                Some(Pass::Backward | Pass::Recomputed) if time >= turn.at => {
                    let first = &mut backward[row as usize];
                    *first = Some(first.map_or(time, |at| at.min(time)));
                }
                _ => {}
            }
        }
        for (segment, backward) in segments.iter_mut().zip(backward) {
            let is_own = |&&row: &&u32| !turn.is_read_elsewhere(row);
            let own: Vec<u32> = segment.forward.iter().filter(is_own).copied().collect();
            let needed = turn.needed_from(families, &own);
            let by_others = turn.needed_by_others_from(families, &own);
            segment.is_needed = backward.is_some() || needed.is_some();
            segment.backward = backward.or(by_others).or(needed).unwrap_or(turn.at).max(turn.at);
            // Where the compiler recomputes, what first reads a layer's values in the backward pass has names of the forward
            // pass.
            segment.needed = needed.unwrap_or(segment.backward).max(turn.at).min(segment.backward);
        }
        let mut of_reader: HashMap<(Option<u32>, u32), Option<u32>, RandomState> = HashMap::default();
        let of_read = turn.reads().iter().map(|read| {
            let operation = || op_name(program, InstructionId(read.reader));
            *of_reader.entry((read.layer, read.reader)).or_insert_with(|| names.place(read.layer, operation, false))
        });
        let mut of_read: Vec<Option<u32>> = of_read.collect();
        let late = delayed(program, named, turn, (&of_read, &of_family));
        for (read, segment) in turn.reads().iter().zip(&mut of_read) {
            *segment = segment.or_else(|| late.readers.get(&read.reader).copied());
        }
        for &(family, row) in &late.made {
            if let Some(segment) = segments.get_mut(row as usize) {
                segment.forward.push(family);
                of_family[family as usize] = Some(row);
            }
        }
        let is_checkpointed =
            |row: u32| operations.get(row as usize).is_some_and(|name| SavedForBackward::is_checkpointed(name));
        let mut last_reads = vec![NO_ROW; families.list.len()];
        for (number, segment) in segments.iter_mut().enumerate() {
            for &row in &segment.forward {
                if is_checkpointed(row) {
                    segment.is_checkpointed = true;
                } else if let Some(time) = last_read(turn, (&of_read, &late), row, number as u32) {
                    last_reads[row as usize] = time;
                }
            }
        }
        let needed = segments.iter().filter(|segment| segment.is_needed);
        let mut backward: Vec<u32> = needed.map(|segment| segment.backward).collect();
        backward.sort_unstable();
        let on_chip = turn
            .on_chip
            .iter()
            .filter_map(|input| Some((input.bytes, input.made, names.place(Some(input.layer), String::new, false)?)));
        let on_chip: Vec<(u64, u32, u32)> = on_chip.collect();
        let useful = useful(program, named, turn, (&of_read, &of_family));
        let mut inputs = inputs(families, turn, &of_read, &of_family, &useful);
        add_hidden_inputs(families, &mut segments, &mut inputs, &on_chip);
        let mut summed = keep_sums(program, named, turn, (&of_read, &of_family), &mut inputs);
        summed.retain(|&family, _| !is_checkpointed(family));
        Self { on_chip, inputs, summed, list: segments, backward, last_reads }
    }

    /// Time of the last read of a family in the forward pass, where some segments are checkpointed; `None` for what its
    /// segment cannot recompute when the backward pass needs it, as another one reads it, and for what is in no segment.
    #[must_use]
    pub fn last_read(&self, family: u32, is_meant: &[bool]) -> Option<u32> {
        let own = self.last_reads.get(family as usize).copied().filter(|&time| time != NO_ROW);
        let is_checkpointed = |&segment: &u32| is_meant.get(segment as usize) == Some(&true);
        let part = || self.summed.get(&family).filter(|part| part.1.iter().all(is_checkpointed));
        own.or_else(|| part().map(|part| part.0))
    }

    /// Whether a family is part of a sum that is kept instead.
    #[must_use]
    pub fn is_summed(&self, family: u32) -> bool {
        self.summed.contains_key(&family)
    }
}

/// Part of the largest value of a layer that its input has at least.
const OF_LARGEST: u64 = 8;

/// Adds the inputs of layers that read nothing of others: their first operation computes its input as well, in the same
/// fusion, and so has the layer's name. What it makes is kept then.
fn add_hidden_inputs(
    families: &Families,
    segments: &mut [Segment],
    inputs: &mut Vec<(u32, u32)>,
    on_chip: &[(u64, u32, u32)],
) {
    let mut has_input = vec![false; segments.len()];
    let of_chip = on_chip.iter().map(|input| input.2);
    for segment in inputs.iter().map(|input| input.1).chain(of_chip) {
        has_input[segment as usize] = true;
    }
    let first = |row: u32| families.list[row as usize].first;
    let begin = |segment: &Segment| segment.forward.iter().map(|&row| first(row)).min();
    // The first layer may read arguments alone.
    let earliest = segments.iter().filter_map(begin).min();
    for (number, segment) in segments.iter_mut().enumerate() {
        let begun = begin(segment).filter(|_| segment.is_needed && !segment.is_checkpointed && !has_input[number]);
        let Some(begun) = begun.filter(|&begun| Some(begun) != earliest) else { continue };
        let size = |row: u32| families.list[row as usize].size;
        let largest = segment.forward.iter().map(|&row| size(row)).max().unwrap_or(0);
        let made = segment.forward.iter().copied().filter(|&row| first(row) == begun);
        let Some(input) = made.max_by_key(|&row| size(row)).filter(|&row| size(row) >= largest / OF_LARGEST) else {
            continue;
        };
        segment.forward.retain(|&row| row != input);
        inputs.push((input, number as u32));
    }
    inputs.sort_unstable();
}

/// Time of the last read of a segment's family in the forward pass, or when it is made if nothing reads it; `None` if
/// another segment reads it, whose input it is then. `of_read` are the segments that read.
fn last_read(turn: &Turn, (of_read, late): (&[Option<u32>], &Delayed), row: u32, segment: u32) -> Option<u32> {
    let rows = turn.reads_of(row);
    let reads = &turn.reads()[rows.clone()];
    // A layer's result is read once the next layer runs; an earlier reader is part of the layer under another name.
    let layer = turn.layer_of.get(row as usize).copied().flatten();
    let end = layer.map_or(0, |layer| turn.window(layer).1);
    let readers = of_read.get(rows).unwrap_or_default();
    let is_input = reads.iter().zip(readers).any(|(read, &reader)| read.time >= end && reader != Some(segment));
    // Delayed operations run again with the rest of the layer.
    let in_time = || reads.iter().rfind(|read| !late.readers.contains_key(&read.reader));
    (!is_input).then(|| in_time().map_or(0, |read| read.time))
}

/// Whether each read before the turn is of something that leads to a value of the reading segment which the backward pass
/// needs: a network that is applied without being trained, under the names of one that is, reads inputs that nothing is
/// computed from again.
fn useful(
    program: &Program,
    Named { families, makers, passes, .. }: Named<'_>,
    turn: &Turn,
    (of_read, of_family): (&[Option<u32>], &[Option<u32>]),
) -> Vec<bool> {
    // First row of the makers, by instruction.
    let mut start = vec![0u32; program.instructions.len() + 1];
    for maker in makers {
        start[maker.0 as usize + 1] += 1;
    }
    for at in 1..start.len() {
        start[at] += start[at - 1];
    }
    let mut is_needed: Vec<bool> =
        families.list.iter().map(|family| (2 * family.first..2 * family.last).contains(&turn.at)).collect();
    let reads = turn.reads();
    let mut useful = vec![true; reads.len()];
    let mut alone: FastMap<u32, bool> = FastMap::default();
    // What is made of a family comes after it, so that it is known by then whether it is needed.
    for (row, read) in reads.iter().enumerate().rev() {
        let at = read.reader as usize;
        let own = &makers[start[at] as usize..start[at + 1] as usize];
        // What has a name outside of what is differentiated, of a layer that is, belongs to another network of its names.
        let is_applied_alone = !turn.is_by_use
            && passes.get(read.family as usize) == Some(&Pass::Unknown)
            && of_read.get(row).is_some_and(Option::is_some)
            && *alone.entry(read.reader).or_insert_with(|| {
                let name = op_name(program, InstructionId(read.reader));
                !name.is_empty() && pass_of(&name) == Pass::Unknown
            });
        // What it makes in other memory, or in that of an earlier array, is not known.
        useful[row] = !is_applied_alone
            && (own.is_empty() || own.iter().any(|&(_, made)| is_needed[made as usize] || made < read.family));
        let own_segment = of_family.get(read.family as usize).copied().flatten();
        if useful[row] && own_segment.is_some() && of_read.get(row).copied().flatten() == own_segment {
            is_needed[read.family as usize] = true;
        }
    }
    useful
}

/// What segments read from others, as [`Segments::inputs`].
fn inputs(
    families: &Families,
    turn: &Turn,
    of_read: &[Option<u32>],
    of_family: &[Option<u32>],
    useful: &[bool],
) -> Vec<(u32, u32)> {
    let input = |((read, &segment), &is_useful): ((&Read, &Option<u32>), &bool)| {
        if !is_useful {
            return None;
        }
        // What is read before the layer runs is not an input, but is cast or copied for it.
        if read.layer.is_some_and(|layer| read.time < turn.window(layer).0) {
            return None;
        }
        let is_own = of_family.get(read.family as usize).copied().flatten() == Some(segment?);
        let is_before = families.list.get(read.family as usize).is_some_and(|family| 2 * family.first < turn.at);
        // Of an input that is computed several times, the first is kept.
        (!is_own && is_before && !turn.is_again(read.family)).then_some((read.family, segment?))
    };
    let mut found: Vec<(u32, u32)> = turn.reads().iter().zip(of_read).zip(useful).filter_map(input).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Framework op name of the instruction that makes each family's root, by family; empty where there is none. The stacks of
/// a loop that runs inside a layer have the loop's: the zeros that they begin as have no scope of their own, or that of
/// another layer, as equal constants are made once.
#[must_use]
pub fn family_names(program: &Program, labels: &Labels, families: &Families) -> Vec<String> {
    let name = |family: &Family| {
        let root = program.buffers.instruction_of(family.root);
        let name = root.map_or_else(String::new, |at| labels.loops.op_name(program, at));
        gradient_beside(program, family.root, &name).unwrap_or(name)
    };
    let mut names: Vec<String> = families.list.par_iter().map(name).collect();
    if !labels.loops.has_stacks() {
        return names;
    }
    let layers = Layers::new(names.iter().map(String::as_str));
    let of_loop = |family: &Family| {
        let part = labels.role(program, family.root).filter(|part| part.layers > 0)?;
        Some(program.text.op_name(part.at)).filter(|name| layers.of(name).is_some())
    };
    let found: Vec<Option<String>> = families.list.par_iter().map(of_loop).collect();
    for (name, found) in names.iter_mut().zip(found) {
        if let Some(found) = found {
            *name = found;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BufferId;

    #[test]
    fn what_a_layer_makes_of_nothing_it_reads_is_its_input() {
        let family = |first: u32, size: u64| Family { root: BufferId(first), size, first, last: first + 10 };
        // Each layer makes its input and a sum of it at once, then four times as much.
        let list = vec![family(0, 100), family(0, 1), family(1, 400), family(4, 100), family(4, 1), family(5, 400)];
        let families = Families { list, ..Families::default() };
        let layer = |forward: Vec<u32>| Segment { forward, is_needed: true, ..Segment::default() };
        let of = |reads: &[(u32, u32)], on_chip: &[(u64, u32, u32)]| {
            let mut segments = vec![layer(vec![0, 1, 2]), layer(vec![3, 4, 5])];
            let mut inputs = reads.to_vec();
            add_hidden_inputs(&families, &mut segments, &mut inputs, on_chip);
            (segments[1].forward.clone(), inputs)
        };
        assert_eq!(of(&[], &[]), (vec![4, 5], vec![(3, 1)]), "the first layer reads arguments");
        assert_eq!(of(&[(2, 1)], &[]), (vec![3, 4, 5], vec![(2, 1)]), "it reads what another layer makes");
        assert_eq!(of(&[], &[(50, 3, 1)]), (vec![3, 4, 5], vec![]), "its input is on the chip");
    }
}
