//! The turn of a training step from its forward to its backward pass, and what the forward pass reads of its own values
//! before it: this tells a layer's input and result from its internal values.

use std::collections::HashMap;
use std::ops::Range;

use crate::analysis::ProgramAnalysis;
use crate::analysis::names::layer::{Layer, Layers};
use crate::analysis::names::lookup::op_name;
use crate::analysis::names::pass::Pass;
use crate::analysis::packing::Families;
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
        let known = Layers::new(names.iter().map(String::as_str));
        let mut turn = Self { at, ..Self::default() };
        let mut rows: HashMap<Layer, u32> = HashMap::new();
        if known.is_empty() {
            turn.layer_of = alike(program, families, (passes, names), at, &mut turn.layers);
        } else {
            turn.layer_of =
                names.iter().map(|name| known.of(name).map(|layer| turn.row_of(&mut rows, layer))).collect();
        }
        let windows = turn.windows(families);
        if known.is_empty() {
            turn.add_rest(families, passes, &windows);
        }
        turn.runs = vec![turn.never(); turn.layers.len()];
        for &(begin, layer) in &windows {
            let next = windows.get(windows.partition_point(|window| window.0 <= begin));
            turn.runs[layer as usize] = (begin, next.map_or(at, |next| next.0.min(at)));
        }
        let mut layer_of_reader: HashMap<u32, Option<u32>> = HashMap::new();
        for (buffer, point, reader) in live.reads(program) {
            let time = 2 * points.partition_point(|&p| p < point) as u32;
            if time >= at {
                break;
            }
            let Some(family) = families.of(BufferId(buffer)) else { continue };
            let layer = if known.is_empty() {
                let row = windows.partition_point(|window| window.0 <= time);
                row.checked_sub(1).map(|row| windows[row].1)
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
    fn windows(&self, families: &Families) -> Vec<(u32, u32)> {
        let mut made: Vec<Vec<(u32, u64)>> = vec![Vec::new(); self.layers.len()];
        for (family, layer) in families.list.iter().zip(&self.layer_of) {
            if let Some(made) = layer.and_then(|layer| made.get_mut(layer as usize))
                && 2 * family.first < self.at
            {
                made.push((2 * family.first, family.size));
            }
        }
        let begins = |made: Vec<(u32, u64)>| {
            let whole = made.iter().fold(0u64, |sum, row| sum.saturating_add(row.1));
            let mut before = 0u64;
            made.into_iter().find_map(|(time, size)| {
                before = before.saturating_add(size);
                (before as f64 > whole as f64 * EARLY).then_some(time)
            })
        };
        let mut windows: Vec<(u32, u32)> =
            made.into_iter().zip(0..).filter_map(|(made, layer)| Some((begins(made)?, layer))).collect();
        windows.sort_unstable();
        windows
    }

    /// Anything else that the forward pass keeps between the starts of two layers belongs to the first of them.
    fn add_rest(&mut self, families: &Families, passes: &[Pass], windows: &[(u32, u32)]) {
        let (Some(first), Some(last)) = (windows.first(), windows.last()) else { return };
        let each = (last.0 - first.0) / u32::try_from(windows.len().max(2) - 1).unwrap_or(u32::MAX);
        for (row, family) in families.list.iter().enumerate() {
            let time = 2 * family.first;
            let is_kept = time < self.at && 2 * family.last > self.at && passes.get(row) == Some(&Pass::Forward);
            if is_kept && self.layer_of[row].is_none() && time < last.0.saturating_add(each) {
                let at = windows.partition_point(|window| window.0 <= time);
                self.layer_of[row] = at.checked_sub(1).map(|at| windows[at].1);
            }
        }
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

/// Fewest values of one kind that a model without named layers must keep for these to count as layers.
const LEAST_LAYERS: usize = 3;

/// Layers of a model whose op names have none: if values of one name and shape are kept as often as most others, there
/// is one per layer, in order.
fn alike(
    program: &Program,
    families: &Families,
    (passes, names): (&[Pass], &[String]),
    turn: u32,
    layers: &mut Vec<Layer>,
) -> Vec<Option<u32>> {
    let mut layer_of = vec![None; families.list.len()];
    let mut groups: HashMap<(&str, Vec<i64>), Vec<usize>> = HashMap::new();
    for (row, family) in families.list.iter().enumerate() {
        let is_kept = 2 * family.first < turn && 2 * family.last > turn && passes.get(row) == Some(&Pass::Forward);
        if let (true, Some(node), Some(name)) = (is_kept, program.buffer_node(family.root), names.get(row)) {
            groups.entry((name, node.dimensions.clone())).or_default().push(row);
        }
    }
    let mut bytes: HashMap<usize, u64> = HashMap::new();
    for rows in groups.values().filter(|rows| rows.len() >= LEAST_LAYERS) {
        let sum = bytes.entry(rows.len()).or_default();
        *sum = rows.iter().fold(*sum, |sum, &row| sum.saturating_add(families.list[row].size));
    }
    let whole = groups.values().flatten().fold(0u64, |sum, &row| sum.saturating_add(families.list[row].size));
    let of_layers = |count: usize| {
        let rows = groups.values().filter(|rows| rows.len() % count == 0).flatten();
        rows.fold(0u64, |sum, &row| sum.saturating_add(families.list[row].size))
    };
    // If most kept values occur once, or in differing numbers, no layers repeat.
    let most = bytes.into_iter().max_by_key(|row| (row.1, row.0)).map(|row| row.0);
    let Some(count) = most.filter(|&count| of_layers(count) >= whole / 2) else { return layer_of };
    layers.extend((0..count).map(|number| Layer { name: format!("layer {number}"), pattern: "*".to_owned() }));
    for rows in groups.values().filter(|rows| rows.len() % count == 0) {
        let each = rows.len() / count;
        for (place, &row) in rows.iter().enumerate() {
            layer_of[row] = Some((place / each) as u32);
        }
    }
    layer_of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::packing::Family;

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
