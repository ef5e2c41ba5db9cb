//! The turn of a training step from its forward to its backward pass, and what the forward pass reads of its own values
//! before it: this tells a layer's input and result from its internal values.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use crate::analysis::ProgramAnalysis;
use crate::analysis::layer_use::{LayerUse, Mark};
use crate::analysis::names::layer::{Layer, Layers};
use crate::analysis::names::lookup::op_name;
use crate::analysis::names::pass::Pass;
use crate::analysis::packing::{Families, Family};
use crate::model::{BufferId, InstructionId, Program};

/// Fraction of its values that the backward pass must have made to count as running: its index arrays and zeros are
/// made long before.
const RUNS: f64 = 0.001;

/// Share of a layer's values that may be made long before it runs.
const EARLY: f64 = 0.05;

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
    /// Time of the first read after the turn, by family; only where names do not tell the layers.
    first_read: Vec<Option<u32>>,
}

impl Turn {
    /// Finds the turn from the reads of a program; `None` if there is no sign of a backward pass or of its time.
    pub fn new(
        program: &Program,
        analysis: &ProgramAnalysis,
        families: &Families,
        points: &[u32],
        (passes, names): (&[Pass], &[String]),
    ) -> Option<Self> {
        let at = turn(families, passes)?;
        let live = analysis.live.as_ref()?;
        if points.is_empty() {
            return None;
        }
        let time_of = |point: u32| 2 * points.partition_point(|&p| p < point) as u32;
        let known = Layers::new(names.iter().map(String::as_str));
        let mut turn = Self { at, ..Self::default() };
        let mut rows: HashMap<Layer, u32> = HashMap::new();
        let windows = if known.is_empty() {
            let used = LayerUse::new(program, live.sequence());
            turn.layers = used.layers;
            let time = |mark: &Mark| live.point_of(mark.at.0).map(time_of);
            let windows = windows_of(used.marks.iter().filter_map(|mark| Some((time(mark)?, mark))), at);
            let place = |(family, pass): (&Family, &Pass)| {
                let time = 2 * family.first;
                (*pass == Pass::Forward && time < at).then(|| layer_at(&windows, time)).flatten()
            };
            turn.layer_of = families.list.iter().zip(passes).map(place).collect();
            windows
        } else {
            turn.layer_of =
                names.iter().map(|name| known.of(name).map(|layer| turn.row_of(&mut rows, layer))).collect();
            turn.windows(families)
        };
        turn.runs = vec![turn.never(); turn.layers.len()];
        for &(begin, layer) in &windows {
            let Some(run) = layer.and_then(|layer| turn.runs.get_mut(layer as usize)) else { continue };
            let next = windows.get(windows.partition_point(|window| window.0 <= begin));
            *run = (begin, next.map_or(at, |next| next.0.min(at)));
        }
        turn.first_read = if known.is_empty() { vec![None; families.list.len()] } else { Vec::new() };
        let mut layer_of_reader: HashMap<u32, Option<u32>> = HashMap::new();
        for (buffer, point, reader) in live.reads(program) {
            let time = time_of(point);
            if time >= at && turn.first_read.is_empty() {
                break;
            }
            let Some(family) = families.of(BufferId(buffer)) else { continue };
            if time >= at {
                turn.first_read[family].get_or_insert(time);
                continue;
            }
            let layer = if known.is_empty() {
                layer_at(&windows, time)
            } else {
                *layer_of_reader.entry(reader).or_insert_with(|| {
                    known.of(&op_name(program, InstructionId(reader))).map(|layer| turn.row_of(&mut rows, layer))
                })
            };
            turn.reads.push(Read { family: family as u32, time, layer, reader });
        }
        turn.reads.sort_unstable();
        turn.reads.dedup();
        Some(turn)
    }

    fn row_of(&mut self, rows: &mut HashMap<Layer, u32>, layer: Layer) -> u32 {
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
    /// rest is ignored. `None` where names tell when a layer's backward pass begins, or nothing is read.
    #[must_use]
    pub fn needed_from(&self, families: &Families, rows: &[u32]) -> Option<u32> {
        let read = |&row: &u32| Some(((*self.first_read.get(row as usize)?)?, families.list.get(row as usize)?.size));
        let mut reads: Vec<(u32, u64)> = rows.iter().filter_map(read).collect();
        reads.sort_unstable();
        begins(&reads)
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

    /// Every read before the turn.
    #[must_use]
    pub fn reads(&self) -> &[Read] {
        &self.reads
    }
}

/// The time from which the backward pass runs.
fn turn(families: &Families, passes: &[Pass]) -> Option<u32> {
    let backward = || families.list.iter().zip(passes).filter(|row| *row.1 == Pass::Backward).map(|row| row.0);
    let whole: u128 = backward().map(|family| u128::from(family.size)).sum();
    let enough = (whole as f64 * RUNS) as u128;
    let mut sum = 0u128;
    backward().find_map(|family| {
        sum += u128::from(family.size);
        (sum > enough).then_some(2 * family.first)
    })
}

/// The first of some times with bytes, ascending, but for the little that is long before the rest.
fn begins(times: &[(u32, u64)]) -> Option<u32> {
    let whole = times.iter().fold(0u64, |sum, row| sum.saturating_add(row.1));
    let mut before = 0u64;
    times.iter().find_map(|&(time, size)| {
        before = before.saturating_add(size);
        (before as f64 > whole as f64 * EARLY).then_some(time)
    })
}

/// Time from which a layer of the forward pass runs, or from which none does.
type Window = (u32, Option<u32>);

/// When the layers run before the turn, from the operations that read their arguments, in program order with their
/// times. What is between two layers belongs to the first, up to the first operation that reads an argument of none.
fn windows_of<'a>(marks: impl Iterator<Item = (u32, &'a Mark)>, turn: u32) -> Vec<Window> {
    let forward: Vec<(u32, Option<u32>)> =
        marks.filter(|row| row.1.pass == Pass::Forward && row.0 < turn).map(|row| (row.0, row.1.layer)).collect();
    let mut last: HashMap<u32, u32> = HashMap::new();
    for &(time, layer) in &forward {
        if let Some(layer) = layer {
            last.insert(layer, time);
        }
    }
    let mut windows: Vec<Window> = Vec::new();
    let mut begun: HashSet<u32> = HashSet::new();
    let mut now: Option<u32> = None;
    for (time, layer) in forward {
        let is_next = match layer {
            Some(layer) => begun.insert(layer),
            None => now.is_some_and(|now| last.get(&now).is_none_or(|&last| last < time)),
        };
        if is_next {
            now = layer;
            windows.push((time, layer));
        }
    }
    windows
}

/// The layer that runs at a time.
fn layer_at(windows: &[Window], time: u32) -> Option<u32> {
    let row = windows.partition_point(|window| window.0 <= time).checked_sub(1)?;
    windows[row].1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_the_backward_pass_are_not_its_beginning() {
        let family = |size, first, last| Family { root: BufferId(0), size, first, last };
        let families = Families {
            list: vec![family(1, 0, 90), family(5000, 2, 80), family(3000, 50, 60)],
            events: 100,
            ..Families::default()
        };
        let passes = [Pass::Backward, Pass::Forward, Pass::Backward];
        assert_eq!(turn(&families, &passes), Some(100));
        assert_eq!(turn(&families, &[Pass::Forward; 3]), None);
    }
}
