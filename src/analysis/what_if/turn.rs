//! The turn of a training step from its forward to its backward pass, and what the forward pass reads of its own values
//! before it: this tells a layer's input and result from its internal values.

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

use super::again::{Again, add_copies};
use super::applied::{self, Applications, application};
use super::backward_only::add_backward_only;
use super::begin::begin_of_backward;
use super::between::Between;
use super::evicted::{Evicted, OnChip, computed_on_chip};
use super::rounds::Round;
use crate::analysis::ProgramAnalysis;
use crate::analysis::flow::collective::holds_gathered;
use crate::analysis::flow::hands_on;
use crate::analysis::layer_use::{LayerUse, Mark};
use crate::analysis::names::layer::{Layer, Layers};
use crate::analysis::names::lookup::{is_rematerialised, op_name};
use crate::analysis::names::pass::Pass;
use crate::analysis::packing::{Families, Family};
use crate::model::{BufferId, FastMap, InstructionId, Program, ShapeNode};

/// Share of a layer's values that may be made long before it runs.
const EARLY: f64 = 0.05;

/// As many layers as two modules of a layer that occur in all of them look like.
pub(super) const FEW_LAYERS: usize = 2;

/// A read of a family's value in the forward pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Read {
    /// Row of the families.
    pub family: u32,
    /// Time: twice the heap event.
    pub time: u32,
    /// The layer that reads: a row of [`Turn::layers`].
    pub layer: Option<u32>,
    /// The instruction that reads.
    pub reader: u32,
}

/// The turn, and the layers on both sides of it.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    /// The times that it is looked for in.
    round: Round,
    /// Time from which the backward pass runs: twice the heap event.
    pub at: u32,
    /// Names of the layers.
    pub layers: Vec<Layer>,
    /// The layer of each family; `None` if it is in none.
    pub layer_of: Vec<Option<u32>>,
    /// Where each layer's forward pass and the next one begin; see [`Self::window`].
    runs: Vec<(u32, u32)>,
    /// Reads before the turn, by family.
    reads: Vec<Read>,
    /// Time of the first read after the turn, by family.
    needed_at: Vec<Option<u32>>,
    /// The same, but for reads that only compute something of the same layer again or only move the value.
    needed_by_others: Vec<Option<u32>>,
    /// Reads after the turn: family, time and the instruction that reads; ascending.
    late_reads: Vec<(u32, u32, u32)>,
    /// Inputs of layers that are in on-chip memory alone.
    pub on_chip: Vec<OnChip>,
    /// Whether each family holds what was computed before, by family.
    is_again: Vec<bool>,
    /// Whether something reads each family before the turn only to compute something of its layer again, by family.
    is_read_again: Vec<bool>,
    /// Whether layers are known by what operations read, as op names show none.
    pub(super) is_by_use: bool,
}

impl Turn {
    /// Finds the turn from the reads of a program; `None` if there is no sign of a backward pass or of its time. A test
    /// tells the arrays that may be activations.
    pub fn new(
        program: &Program,
        analysis: &ProgramAnalysis,
        (families, points): (&Families, &[u32]),
        (passes, names): (&[Pass], &[String]),
        is_activation: impl Fn(&ShapeNode) -> bool,
    ) -> Option<Self> {
        Self::of_round(program, analysis, (families, points), (passes, names), &is_activation, Round::WHOLE)
    }

    /// The turn within one round of a forward and a backward pass.
    pub(super) fn of_round(
        program: &Program,
        analysis: &ProgramAnalysis,
        (families, points): (&Families, &[u32]),
        (passes, names): (&[Pass], &[String]),
        is_activation: &dyn Fn(&ShapeNode) -> bool,
        round: Round,
    ) -> Option<Self> {
        let is_value = &is_activation;
        let own_passes: Vec<Pass>;
        let passes = if round == Round::WHOLE {
            passes
        } else {
            let own =
                |(family, pass): (&Family, &Pass)| if round.has(2 * family.first) { *pass } else { Pass::Unknown };
            own_passes = families.list.iter().zip(passes).map(own).collect();
            &own_passes
        };
        let is_activation = |family: &Family| program.buffer_node(family.root).is_some_and(is_value);
        let is_again = |family: &Family| {
            program.buffers.instruction_of(family.root).is_some_and(|made| is_rematerialised(program, made))
        };
        let at = begin_of_backward(families, passes, is_activation, is_again)
            .or_else(|| begin_of_backward(families, passes, |_| true, is_again))?;
        let live = analysis.live.as_ref()?;
        if points.is_empty() {
            return None;
        }
        let time_of = |point: u32| 2 * points.partition_point(|&p| p < point) as u32;
        let known = Layers::new(names.iter().map(String::as_str));
        // Two modules of equal names, inside each of many layers that the names do not show, are no layers.
        let labels = analysis.labels(program);
        let named: &[String] = if known.is_empty() { &[] } else { names };
        let layers: Vec<Option<Layer>> = named.par_iter().map(|name| known.of(name)).collect();
        let used =
            few_layers(&layers).and_then(|named| LayerUse::of_more_than(named, program, labels, live.sequence()));
        let known = if used.is_some() { Layers::default() } else { known };
        let mut turn = Self { round, at, ..Self::default() };
        let mut rows: FastMap<Layer, u32> = FastMap::default();
        let end = points.get(at as usize / 2).copied().unwrap_or(u32::MAX);
        let reads = live.reads(program);
        let point_of = |time: u32| points.get(time as usize / 2).copied().unwrap_or(u32::MAX);
        let until = reads.partition_point(|read| read.1 < end);
        let from = if round.0 == 0 { 0 } else { reads.partition_point(|read| read.1 < point_of(round.0)).min(until) };
        let forward = &reads[from..until];
        let after = if round.1 == u32::MAX {
            &reads[until..]
        } else {
            &reads[until..reads.partition_point(|read| read.1 < point_of(round.1)).max(until)]
        };
        let mut used_at: Vec<Window> = Vec::new();
        let mut between = Between::default();
        let mut applied = Applications::default();
        let mut again: FastMap<InstructionId, u32> = FastMap::default();
        let mut gathered: Vec<Option<u32>> = vec![None; families.list.len()];
        let computed = Again::new(program, families, live);
        let is_again = |family: &Family| {
            let made = program.buffers.instruction_of(family.root)?;
            Some(computed.is_later(made, live.point_of(made.0)?))
        };
        turn.is_again = families.list.iter().map(|family| is_again(family) == Some(true)).collect();
        turn.is_read_again = vec![false; families.list.len()];
        let evicted = Evicted::new(program, live, families, forward);
        let windows: Vec<Window> = if known.is_empty() {
            let used = used.unwrap_or_else(|| LayerUse::new(program, labels, live.sequence()));
            turn.layers = used.layers;
            let marks = used.marks.iter().filter_map(|mark| Some((live.point_of(mark.at.0)?, mark)));
            let is_meant = |&(point, mark): &(u32, &Mark)| {
                mark.pass == Pass::Forward && point < end && !computed.is_later(mark.at, point)
            };
            let marks: Vec<(u32, &Mark)> = marks.filter(is_meant).collect();
            used_at = windows_of(&marks);
            let last = last_reads(families, forward, &evicted);
            // A weight that is gathered while an earlier layer runs belongs to the layer that reads it.
            let of_gathered = families.list.iter().zip(&last);
            gathered = of_gathered.map(|(of, last)| last.filter(|_| holds_gathered(program, of.root))).collect();
            Passing::new((families, points), &evicted, (&last, &gathered)).narrow(&mut used_at, &marks);
            again = computed.layers(&used.marks, |point| layer_at(&used_at, point));
            add_backward_only(program, live, (&marks, end), |point| layer_at(&used_at, point), &mut again);
            add_copies(program, live.sequence(), &mut again);
            let place = |(row, family): (usize, &Family)| {
                let made = program.buffers.instruction_of(family.root);
                if let Some(&layer) = made.and_then(|made| again.get(&made)) {
                    return Some(layer);
                }
                let is_forward = 2 * family.first < at;
                let point = points.get(family.first as usize).copied().filter(|_| is_forward)?;
                layer_at(&used_at, gathered[row].or_else(|| evicted.made(row)).unwrap_or(point))
            };
            turn.layer_of = families.list.iter().enumerate().map(place).collect();
            used_at.iter().map(|&(point, layer)| (time_of(point), layer)).collect()
        } else {
            let own = |(layer, family): (Option<Layer>, &Family)| layer.filter(|_| round.has(2 * family.first));
            let layers = layers.into_iter().zip(&families.list).map(own);
            turn.layer_of = layers.map(|layer| layer.map(|layer| turn.row_of(&mut rows, layer))).collect();
            if turn.layers.len() >= FEW_LAYERS {
                let count = turn.layers.len() as u32;
                let new;
                let own = (families, passes, turn.is_again.as_slice());
                (applied, new) = applied::split(own, &mut turn.layer_of, count, at);
                let names: Vec<Layer> = new.iter().map(|&of| turn.layers[of as usize].clone()).collect();
                turn.layers.extend(names);
            }
            let windows = turn.windows(families);
            between = Between::new((families, passes), &turn.layer_of, &windows, at);
            let reads = forward.iter();
            let reads = reads.filter_map(|read| Some((evicted.family(families, read.0)?, time_of(read.1))));
            between.add_reads(families.list.len(), reads);
            for (row, ((family, pass), layer)) in families.list.iter().zip(passes).zip(&mut turn.layer_of).enumerate() {
                let time = 2 * family.first;
                if layer.is_none() && *pass == Pass::Forward && time < at {
                    *layer = between.layer_at(time).or_else(|| between.begun_by(row, time));
                }
            }
            windows
        };
        let never = turn.never();
        turn.runs = vec![never; turn.layers.len()];
        for &(begin, layer) in &windows {
            let Some(run) = layer.and_then(|layer| turn.runs.get_mut(layer as usize)) else { continue };
            let next = windows.get(windows.partition_point(|window| window.0 <= begin));
            let end = next.map_or(at, |next| next.0.min(at));
            // Of several parts the longest is the layer itself.
            if *run == never || end.saturating_sub(begin) > run.1.saturating_sub(run.0) {
                *run = (begin, end);
            }
        }
        let mut layer_of_reader: FastMap<u32, Option<u32>> = FastMap::default();
        if !known.is_empty() {
            // In the order of the program, in which each reads all that it reads at once.
            let is_meant = |read: &&(u32, u32, u32)| evicted.family(families, read.0).is_some();
            let mut readers: Vec<u32> = forward.iter().filter(is_meant).map(|read| read.2).collect();
            readers.dedup();
            let layer = |&reader: &u32| known.of(&op_name(program, InstructionId(reader)));
            let layers: Vec<Option<Layer>> = readers.par_iter().map(layer).collect();
            layer_of_reader.reserve(readers.len());
            for (reader, layer) in readers.into_iter().zip(layers) {
                layer_of_reader.insert(reader, layer.map(|layer| turn.row_of(&mut rows, layer)));
            }
            again = computed.named(live, |at| layer_of_reader.get(&at.0).copied().flatten());
        }
        // In an order that is the same in every run: what is added is packed in it.
        let mut on_chip: BTreeMap<(u32, u32), OnChip> = BTreeMap::new();
        let mut clock = Clock::new(points);
        for &(buffer, point, reader) in forward {
            let family = evicted.family(families, buffer);
            let is_copied = || program.buffers.instruction_of(families.list.get(family?)?.root);
            if families.of(BufferId(buffer)).is_none() && is_copied() == Some(InstructionId(reader)) {
                continue;
            }
            let made = || computed_on_chip(program, BufferId(buffer));
            let Some(maker) = family.map_or_else(|| made().map(Some), |_| Some(None)) else { continue };
            let time = clock.time_of(point);
            let mut by_name = |at: u32| {
                *layer_of_reader.entry(at).or_insert_with(|| {
                    known.of(&op_name(program, InstructionId(at))).map(|layer| turn.row_of(&mut rows, layer))
                })
            };
            let layer = match again.get(&InstructionId(reader)) {
                Some(&layer) => Some(layer),
                None if known.is_empty() => layer_at(&used_at, point),
                None => by_name(reader).or_else(|| between.layer_at(time)),
            };
            let layer = layer.map(|layer| applied.get(&layer).map_or(layer, |begins| application(begins, time)));
            let own = match maker {
                Some(maker) if known.is_empty() => live.point_of(maker.0).and_then(|point| layer_at(&used_at, point)),
                Some(maker) => by_name(maker.0),
                None => None,
            };
            let Some(family) = family else {
                let is_meant = program.buffer_node(BufferId(buffer)).is_some_and(&is_value);
                if let (Some(layer), Some((made, _)), true) =
                    (layer, live.of(BufferId(buffer)), is_meant && layer != own)
                {
                    let (begin, _) = turn.window(layer);
                    let (made, bytes) = (time_of(made), program.buffers.size_of(BufferId(buffer)).0);
                    if made < begin && time >= begin {
                        on_chip.insert((buffer, layer), OnChip { bytes, made, layer });
                    }
                }
                continue;
            };
            // Other layers carry it on beside their own work.
            if gathered[family].is_some() && turn.layer_of[family] != layer {
                continue;
            }
            // What is computed again early need not be, where its whole layer is.
            if again.contains_key(&InstructionId(reader)) && turn.layer_of[family] == layer {
                turn.is_read_again[family] = true;
                continue;
            }
            turn.reads.push(Read { family: family as u32, time, layer, reader });
        }
        turn.on_chip = on_chip.into_values().collect();
        turn.is_by_use = known.is_empty();
        turn.needed_at = vec![None; families.list.len()];
        turn.needed_by_others = vec![None; families.list.len()];
        for &(buffer, point, reader) in after {
            let Some(family) = families.of(BufferId(buffer)) else { continue };
            let time = clock.time_of(point);
            turn.needed_at[family].get_or_insert(time);
            let own = turn.layer_of[family];
            let computes = own.is_none() || again.get(&InstructionId(reader)).copied() != own;
            if computes && !only_moves(program, InstructionId(reader)) {
                turn.needed_by_others[family].get_or_insert(time);
            }
            turn.late_reads.push((family as u32, time, reader));
        }
        let count = families.list.len();
        turn.late_reads = by_family(&turn.late_reads, count, |read| read.0, |read| read.1);
        turn.reads = by_family(&turn.reads, count, |read| read.family, |read| read.time);
        turn.reads.dedup();
        Some(turn)
    }

    fn row_of(&mut self, rows: &mut FastMap<Layer, u32>, layer: Layer) -> u32 {
        let next = self.layers.len() as u32;
        *rows.entry(layer).or_insert_with_key(|layer| {
            self.layers.push(layer.clone());
            next
        })
    }

    /// First times of the layers before the turn, ascending. The little of a layer that is made long before the rest,
    /// such as casts of its weights, is ignored.
    fn windows(&self, families: &Families) -> Vec<Window> {
        let mut made: Vec<Vec<(u32, u64)>> = vec![Vec::new(); self.layers.len()];
        for (family, layer) in families.list.iter().zip(&self.layer_of) {
            if let Some(made) = layer.and_then(|layer| made.get_mut(layer as usize))
                && 2 * family.first < self.at
            {
                made.push((2 * family.first, family.size));
            }
        }
        let mut windows: Vec<Window> =
            made.into_iter().zip(0..).filter_map(|(made, layer)| Some((begins(&made)?, Some(layer)))).collect();
        windows.sort_unstable();
        windows
    }

    /// Whether a time is in the round of this turn.
    #[must_use]
    pub const fn has(&self, time: u32) -> bool {
        self.round.has(time)
    }

    /// Time from which a layer of the forward pass runs, `u32::MAX` where it has none, and from which the next does.
    #[must_use]
    pub fn window(&self, layer: u32) -> (u32, u32) {
        self.runs.get(layer as usize).copied().unwrap_or(self.never())
    }

    /// Time of a layer that has no forward pass.
    const fn never(&self) -> (u32, u32) {
        (u32::MAX, self.at)
    }

    /// Time from which the backward pass needs some families, as it reads them; the little that it reads long before the
    /// rest is ignored. `None` where nothing is read.
    #[must_use]
    pub fn needed_from(&self, families: &Families, rows: &[u32]) -> Option<u32> {
        first_reads(families, rows, &self.needed_at)
    }

    /// As [`Self::needed_from`], but for reads that only compute something of the same layer again or only move the value.
    #[must_use]
    pub fn needed_by_others_from(&self, families: &Families, rows: &[u32]) -> Option<u32> {
        first_reads(families, rows, &self.needed_by_others)
    }

    /// Time at which a family is first read after the turn; `None` if it is not.
    #[must_use]
    pub fn needed_at(&self, family: u32) -> Option<u32> {
        self.needed_at.get(family as usize).copied().flatten()
    }

    /// Whether the name of the operation that makes a family says that it is in a layer, of several.
    #[must_use]
    pub fn is_named_in_layer(&self, family: usize) -> bool {
        !self.is_by_use && self.layers.len() > 1 && self.layer_of.get(family).copied().flatten().is_some()
    }

    /// Whether an operation of a pass counts as one of the forward pass, before the turn: where no name tells its layer,
    /// one without a name does, and one of the backward pass that runs before it.
    #[must_use]
    pub fn is_forward(&self, pass: Pass) -> bool {
        pass == Pass::Forward || (self.is_by_use && matches!(pass, Pass::Unknown | Pass::Backward))
    }

    /// Whether a family holds what was computed before, by the compiler's own choice.
    #[must_use]
    pub fn is_again(&self, family: u32) -> bool {
        self.is_again.get(family as usize).copied().unwrap_or_default()
    }

    /// Whether something reads a family before the turn only to compute something of its layer again.
    #[must_use]
    pub fn is_read_again(&self, family: u32) -> bool {
        self.is_read_again.get(family as usize).copied().unwrap_or_default()
    }

    /// Whether another layer of the forward pass reads a family.
    #[must_use]
    pub fn is_read_elsewhere(&self, family: u32) -> bool {
        let own = self.layer_of.get(family as usize).copied().flatten();
        self.reads[self.reads_of(family)].iter().any(|read| read.layer != own)
    }

    /// Rows of [`Self::reads`] that read a family, by time.
    #[must_use]
    pub fn reads_of(&self, family: u32) -> Range<usize> {
        let start = self.reads.partition_point(|read| read.family < family);
        let count = self.reads[start..].partition_point(|read| read.family == family);
        start..start + count
    }

    /// Reads of a family after the turn, by time: time and the instruction that reads.
    pub fn late_reads_of(&self, family: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let start = self.late_reads.partition_point(|read| read.0 < family);
        self.late_reads[start..].iter().take_while(move |read| read.0 == family).map(|read| (read.1, read.2))
    }

    /// Every read after the turn: family, time and the instruction that reads; ascending.
    pub(super) fn late_reads(&self) -> impl Iterator<Item = (u32, u32, u32)> + '_ {
        self.late_reads.iter().copied()
    }

    /// Every read before the turn.
    #[must_use]
    pub fn reads(&self) -> &[Read] {
        &self.reads
    }
}

/// Whether an instruction computes nothing of what it reads: the compiler may copy values of many layers before it needs any.
fn only_moves(program: &Program, at: InstructionId) -> bool {
    hands_on(program, at) || matches!(program.opcode_name(at), "copy" | "slice")
}

/// Reads that are ordered by time, ordered by family, then time, then the rest of them.
fn by_family<T: Ord + Copy>(
    reads: &[T],
    families: usize,
    family: impl Fn(&T) -> u32,
    time: impl Fn(&T) -> u32,
) -> Vec<T> {
    let Some(&first) = reads.first() else { return Vec::new() };
    let mut next = vec![0usize; families + 1];
    for read in reads {
        next[family(read) as usize + 1] += 1;
    }
    for row in 1..next.len() {
        next[row] += next[row - 1];
    }
    let mut sorted = vec![first; reads.len()];
    for read in reads {
        let place = &mut next[family(read) as usize];
        sorted[*place] = *read;
        *place += 1;
    }
    for run in sorted.chunk_by_mut(|a, b| (family(a), time(a)) == (family(b), time(b))) {
        run.sort_unstable();
    }
    sorted
}

/// Times of program points that are asked for in ascending order.
struct Clock<'a> {
    /// The program point of each heap event.
    points: &'a [u32],
    /// Events before the point that was asked for last.
    before: usize,
}

impl<'a> Clock<'a> {
    const fn new(points: &'a [u32]) -> Self {
        Self { points, before: 0 }
    }

    /// Twice the number of heap events before a point.
    fn time_of(&mut self, point: u32) -> u32 {
        while self.points.get(self.before).is_some_and(|&event| event < point) {
            self.before += 1;
        }
        2 * self.before as u32
    }
}

/// The first of the times at which families are read, as [`begins`].
fn first_reads(families: &Families, rows: &[u32], times: &[Option<u32>]) -> Option<u32> {
    let read = |&row: &u32| Some(((*times.get(row as usize)?)?, families.list.get(row as usize)?.size));
    let mut reads: Vec<(u32, u64)> = rows.iter().filter_map(read).collect();
    reads.sort_unstable();
    begins(&reads)
}

/// The first of some times with bytes, ascending, but for the little that is long before the rest.
pub(super) fn begins(times: &[(u32, u64)]) -> Option<u32> {
    let whole = times.iter().fold(0u64, |sum, row| sum.saturating_add(row.1));
    let mut before = 0u64;
    times.iter().find_map(|&(time, size)| {
        before = before.saturating_add(size);
        (before as f64 > whole as f64 * EARLY).then_some(time)
    })
}

/// Number of layers that names show, each with its own, if these are few; at least one.
fn few_layers(layers: &[Option<Layer>]) -> Option<usize> {
    let mut found: Vec<&Layer> = Vec::new();
    for layer in layers.iter().flatten() {
        if !found.contains(&layer) {
            found.push(layer);
        }
        if found.len() > FEW_LAYERS {
            return None;
        }
    }
    (!found.is_empty()).then_some(found.len())
}

/// Time from which a layer of the forward pass runs, or from which none does.
pub(super) type Window = (u32, Option<u32>);

/// Operations of one layer without one of another between them.
struct Run {
    layer: u32,
    /// Their positions, with what they make.
    made: Vec<(u32, u64)>,
}

/// When the layers run, from the operations of the forward pass that read their arguments, with their positions,
/// ascending. What is between two layers belongs to the first, up to the first operation that reads an argument of none. A
/// layer may run in parts: what all layers of a decoder need of the encoder is computed at once.
fn windows_of(marks: &[(u32, &Mark)]) -> Vec<Window> {
    let mut whole: FastMap<u32, u64> = FastMap::default();
    let mut runs: Vec<Run> = Vec::new();
    for &(point, mark) in marks {
        let Some(layer) = mark.layer else { continue };
        let all = whole.entry(layer).or_default();
        *all = all.saturating_add(mark.elements);
        match runs.last_mut().filter(|run| run.layer == layer) {
            Some(run) => run.made.push((point, mark.elements)),
            None => runs.push(Run { layer, made: vec![(point, mark.elements)] }),
        }
    }
    let made = |run: &Run| run.made.iter().fold(0u64, |sum, row| sum.saturating_add(row.1));
    runs.retain(|run| made(run) as f64 > whole[&run.layer] as f64 * EARLY);
    runs.dedup_by(|next, run| {
        let is_same = next.layer == run.layer;
        if is_same {
            run.made.append(&mut next.made);
        }
        is_same
    });
    let begin = |run: &Run| Some((begins(&run.made)?, Some(run.layer)));
    let mut windows: Vec<Window> = runs.iter().filter_map(begin).collect();
    let others = marks.iter().filter(|mark| mark.1.layer.is_none()).map(|mark| mark.0);
    let is_over = |point: u32| {
        let row = runs.partition_point(|run| run.made.first().is_some_and(|first| first.0 <= point)).checked_sub(1);
        row.is_some_and(|row| runs[row].made.last().is_some_and(|last| last.0 < point))
    };
    let ends: Vec<Window> = others.filter(|&point| is_over(point)).map(|point| (point, None)).collect();
    windows.extend(ends);
    windows.sort_unstable();
    windows
}

/// Program points of the last reads in the forward pass, by family. `forward` are the reads: buffer, point and the
/// instruction that reads.
fn last_reads(families: &Families, forward: &[(u32, u32, u32)], evicted: &Evicted) -> Vec<Option<u32>> {
    let mut last: Vec<Option<u32>> = vec![None; families.list.len()];
    for &(buffer, point, _) in forward {
        if let Some(family) = evicted.family(families, buffer) {
            last[family] = last[family].max(Some(point));
        }
    }
    last
}

/// Bytes that the forward pass passes from before each position to after it.
struct Passing {
    /// Positions from which the bytes differ, ascending, with the bytes from there on.
    steps: Vec<(u32, i128)>,
}

impl Passing {
    /// From the points of the last reads. What is gathered is left out: it is begun when there is time for it.
    fn new(
        (families, points): (&Families, &[u32]),
        evicted: &Evicted,
        (last, gathered): (&[Option<u32>], &[Option<u32>]),
    ) -> Self {
        let mut steps: Vec<(u32, i128)> = Vec::new();
        for (row, (family, &last)) in families.list.iter().zip(last).enumerate() {
            let Some(last) = last.filter(|_| gathered[row].is_none()) else { continue };
            let made = evicted.made(row).or_else(|| points.get(family.first as usize).copied());
            let Some(made) = made.filter(|&made| made < last) else { continue };
            steps.push((made + 1, i128::from(family.size)));
            steps.push((last + 1, -i128::from(family.size)));
        }
        steps.sort_unstable();
        let mut sum = 0;
        for step in &mut steps {
            sum += step.1;
            step.1 = sum;
        }
        Self { steps }
    }

    /// Bytes passed to a position.
    fn to(&self, point: u32) -> i128 {
        let row = self.steps.partition_point(|step| step.0 <= point);
        row.checked_sub(1).map_or(0, |row| self.steps[row].1)
    }

    /// Lets each layer begin where the fewest bytes are passed to it, of the positions since the last operation before it
    /// that reads an argument.
    fn narrow(&self, windows: &mut [Window], marks: &[(u32, &Mark)]) {
        for (begin, _) in windows.iter_mut().filter(|window| window.1.is_some()) {
            let before = marks.partition_point(|mark| mark.0 < *begin).checked_sub(1);
            let from = before.map_or(0, |row| marks[row].0) + 1;
            let inside = self.steps.partition_point(|step| step.0 <= from)..self.steps.len();
            let between = self.steps[inside].iter().map(|step| step.0).take_while(|&point| point <= *begin);
            let best = std::iter::once(from.min(*begin)).chain(between).min_by_key(|&point| (self.to(point), point));
            *begin = best.unwrap_or(*begin);
        }
    }
}

/// The layer that runs at a time, or at a position in the order that the windows are in.
fn layer_at(windows: &[Window], at: u32) -> Option<u32> {
    let row = windows.partition_point(|window| window.0 <= at).checked_sub(1)?;
    windows[row].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_may_run_in_parts() {
        let mark = |layer: Option<u32>, elements| Mark {
            at: InstructionId(0),
            layer,
            is_of_several: false,
            pass: Pass::Forward,
            elements,
        };
        // Keys of the encoder for both layers, the layers, and a little of the first beside the second.
        let marks = [
            mark(Some(0), 40),
            mark(Some(1), 40),
            mark(None, 9),
            mark(Some(0), 60),
            mark(Some(1), 30),
            mark(Some(0), 1),
            mark(Some(1), 30),
        ];
        let marks: Vec<(u32, &Mark)> = (10..).step_by(10).zip(&marks).collect();
        let windows = windows_of(&marks);
        assert_eq!(windows, [(10, Some(0)), (20, Some(1)), (30, None), (40, Some(0)), (50, Some(1))]);
        assert_eq!(layer_at(&windows, 65), Some(1), "the little is no part of its own");
    }

    #[test]
    fn few_layers_are_counted() {
        let names = |layers: usize| -> Vec<String> {
            (0..layers).flat_map(|i| ["a", "b", "c"].map(|part| format!("jit(f)/jvp(block_{i})/{part}/dot"))).collect()
        };
        let few = |layers: usize| {
            let names = names(layers);
            let known = Layers::new(names.iter().map(String::as_str));
            few_layers(&names.iter().map(|name| known.of(name)).collect::<Vec<_>>())
        };
        assert_eq!((few(2), few(3), few(0)), (Some(2), None, None));
    }
}
