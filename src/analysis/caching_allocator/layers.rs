//! Repeated layers, by the stacks of what they keep for the backward pass, and the peak if each were recomputed there
//! from its input: a replay in which their activations are gone but for the layers' inputs and one layer at a time.

use std::collections::HashMap;

use super::category::AllocationCategory;
use super::device::CachingAnalysis;
use super::frames::{is_python, is_torch};
use super::replay::Lifetime;
use crate::model::{CachingSnapshot, StackId};

/// Fewest layers.
const LAYERS: u64 = 3;

/// A number of layers counts if at least this part of the bytes is in stacks that repeat as often.
const PART: u64 = 10;

/// Allocations looked back for the input of a layer.
const LOOKED_BACK: usize = 64;

/// The layers of a model, and its peak with each of them recomputed. Sizes are requested bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpointed {
    /// Layers.
    pub layers: u64,
    /// Activations of the layers at the main moment.
    pub bytes: u64,
    /// The stack that keeps the most.
    pub largest: StackId,
    /// The peak with the layers recomputed.
    pub after: u64,
}

/// Whether a stack is under a checkpoint already.
#[must_use]
pub fn is_checkpoint(snapshot: &CachingSnapshot, stack: StackId) -> bool {
    snapshot.frames(stack).any(|frame| snapshot.strings.get(frame.file).ends_with("torch/utils/checkpoint.py"))
}

/// The Python frames of a stack, innermost first; all of them where there is none.
fn python_rows(snapshot: &CachingSnapshot, stack: StackId) -> Vec<u32> {
    let rows = snapshot.stacks.rows(stack);
    let file = |row: u32| snapshot.stacks.frames.get(row as usize).map_or("", |frame| snapshot.strings.get(frame.file));
    let python: Vec<u32> = rows.iter().copied().filter(|&row| is_python(file(row))).collect();
    if python.is_empty() { rows.to_vec() } else { python }
}

/// Those up to the innermost one that is not PyTorch's: the same for layers that are called from different lines.
fn own_rows(snapshot: &CachingSnapshot, rows: &[u32]) -> Vec<u32> {
    let file = |row: u32| snapshot.stacks.frames.get(row as usize).map_or("", |frame| snapshot.strings.get(frame.file));
    let own = rows.iter().position(|&row| !is_torch(file(row))).map_or(rows.len(), |at| at + 1);
    rows[..own].to_vec()
}

/// What a stack is known by: a number for each distinct list of frames.
#[derive(Debug, Default)]
struct Keys {
    rows: HashMap<StackId, Vec<u32>>,
    numbers: HashMap<Vec<u32>, u32>,
    of: HashMap<StackId, u32>,
}

impl Keys {
    fn new(snapshot: &CachingSnapshot, stacks: impl Iterator<Item = StackId>, is_own: bool) -> Self {
        let mut keys = Self::default();
        for stack in stacks {
            if keys.of.contains_key(&stack) {
                continue;
            }
            let rows = python_rows(snapshot, stack);
            let key = if is_own { own_rows(snapshot, &rows) } else { rows.clone() };
            let next = keys.numbers.len() as u32;
            let number = *keys.numbers.entry(key).or_insert(next);
            keys.of.insert(stack, number);
            keys.rows.insert(stack, rows);
        }
        keys
    }

    fn of(&self, stack: StackId) -> u32 {
        self.of.get(&stack).copied().unwrap_or(u32::MAX)
    }

    /// How many outer frames all of some stacks share.
    fn shared(&self, stacks: &[StackId]) -> Vec<u32> {
        let mut rows = stacks.iter().filter_map(|stack| self.rows.get(stack));
        let mut shared: Vec<u32> = rows.next().map(|rows| rows.iter().rev().copied().collect()).unwrap_or_default();
        for rows in rows {
            let same = shared.iter().zip(rows.iter().rev()).take_while(|(a, b)| a == b).count();
            shared.truncate(same);
        }
        shared
    }

    fn is_under(&self, stack: StackId, shared: &[u32]) -> bool {
        self.rows.get(&stack).is_some_and(|rows| {
            rows.len() > shared.len() && rows.iter().rev().zip(shared).all(|(row, shared)| row == shared)
        })
    }
}

/// How often each key comes again after another.
fn runs_of(keys: &Keys, stacks: impl Iterator<Item = StackId>) -> HashMap<u32, u64> {
    let (mut runs, mut before) = (HashMap::new(), u32::MAX);
    for stack in stacks {
        let key = keys.of(stack);
        if key != before {
            *runs.entry(key).or_default() += 1;
        }
        before = key;
    }
    runs
}

impl CachingAnalysis {
    /// The layers that repeat, and the peak with each of them recomputed in the backward pass; `None` without layers.
    #[must_use]
    pub fn checkpointed(&self, snapshot: &CachingSnapshot) -> Option<Checkpointed> {
        let lifetimes = &self.replay.lifetimes;
        let category = |row: usize| self.categories[row].0;
        let is_kept = |row: usize| {
            category(row) == AllocationCategory::Activation
                && lifetimes[row].stack.is_known()
                && !is_checkpoint(snapshot, lifetimes[row].stack)
        };
        let live: Vec<usize> = self.live_at(self.main_moment()).filter(|&row| is_kept(row)).collect();
        let sum = |rows: &[usize]| rows.iter().map(|&row| lifetimes[row].requested).sum::<u64>();
        let is_forward =
            |row: &usize| matches!(category(*row), AllocationCategory::Activation | AllocationCategory::ForwardTemp);
        let forward: Vec<usize> = (0..lifetimes.len()).filter(is_forward).collect();
        let stacks = || forward.iter().map(|&row| lifetimes[row].stack);
        let repeated = |is_own: bool| {
            let keys = Keys::new(snapshot, stacks(), is_own);
            let runs = runs_of(&keys, live.iter().map(|&row| lifetimes[row].stack));
            let is_layer = |row: &usize| runs.get(&keys.of(lifetimes[*row].stack)).is_some_and(|&runs| runs >= LAYERS);
            let rows: Vec<usize> = live.iter().copied().filter(is_layer).collect();
            (keys, runs, rows)
        };
        let (mut keys, mut runs, mut rows) = repeated(false);
        let mut is_own = false;
        if sum(&rows).saturating_mul(3) < sum(&live) {
            (keys, runs, rows) = repeated(true);
            is_own = true;
        }
        let bytes = sum(&rows);
        let runs_at = |row: usize| runs.get(&keys.of(lifetimes[row].stack)).copied().unwrap_or(0);
        let mut by_runs: HashMap<u64, u64> = HashMap::new();
        for &row in &rows {
            *by_runs.entry(runs_at(row)).or_default() += lifetimes[row].requested;
        }
        let layers =
            by_runs.iter().filter(|(_, part)| part.saturating_mul(PART) >= bytes).map(|(&runs, _)| runs).min()?;
        let largest = rows.iter().max_by_key(|&&row| (lifetimes[row].requested, std::cmp::Reverse(row)))?;
        let whole: Vec<StackId> =
            rows.iter().filter(|&&row| runs_at(row) >= layers).map(|&row| lifetimes[row].stack).collect();
        let shared = keys.shared(&whole);
        let dropped: Vec<usize> =
            forward.iter().copied().filter(|&row| is_kept(row) && runs_at(row) >= LAYERS).collect();
        // A layer begins where what the first of them began with comes again.
        let begins_pass = rows.first().map_or(0, |&row| lifetimes[row].start);
        let is_backward =
            |row: usize| matches!(category(row), AllocationCategory::Gradient | AllocationCategory::BackwardTemp);
        let until = lifetimes.partition_point(|life| life.start < begins_pass);
        let pass = (0..until).rev().find(|&row| is_backward(row)).map_or(0, |row| lifetimes[row].start);
        let under: Vec<usize> =
            forward.iter().copied().filter(|&row| keys.is_under(lifetimes[row].stack, &shared)).collect();
        let first = under.iter().find(|&&row| lifetimes[row].start > pass).map(|&row| keys.of(lifetimes[row].stack));
        let mut starts = Vec::new();
        let mut before = u32::MAX;
        for &row in &under {
            let key = keys.of(lifetimes[row].stack);
            if Some(key) == first && before != key {
                starts.push(row);
            }
            before = key;
        }
        let moment = self.main_moment();
        let of_pass = |row: &&usize| pass < lifetimes[**row].start && lifetimes[**row].start <= moment;
        let count = starts.iter().filter(of_pass).count() as u64;
        let has_layers = !is_own && count.saturating_mul(2) >= layers;
        let starts = if has_layers { starts } else { Vec::new() };
        let one = if has_layers { largest_part(lifetimes, &rows, &starts) } else { bytes / layers };
        let inputs = inputs(lifetimes, &forward, &dropped, &starts);
        let after = self.replayed(&dropped, &inputs, one);
        Some(Checkpointed { layers, bytes, largest: lifetimes[*largest].stack, after })
    }

    /// The peak without some lifetimes, with some bytes over some moments, and with one layer more once what was dropped
    /// begins to go.
    fn replayed(&self, dropped: &[usize], inputs: &[(u32, u32, u64)], one: u64) -> u64 {
        let curve = &self.replay.curves.requested;
        let count = curve.len();
        let mut changes = vec![0i64; count + 1];
        let mut kept = vec![0i64; count + 1];
        // Where something dropped begins, and where something dropped goes.
        let mut turns = vec![(false, false); count + 1];
        for &row in dropped {
            let life = &self.replay.lifetimes[row];
            let (start, end) = ((life.start as usize).min(count), (life.end as usize).min(count));
            changes[start] = changes[start].wrapping_add(life.requested as i64);
            changes[end] = changes[end].wrapping_sub(life.requested as i64);
            (turns[start].0, turns[end].1) = (true, true);
        }
        for &(start, end, bytes) in inputs {
            let (start, end) = ((start as usize).min(count), (end as usize).min(count));
            kept[start] = kept[start].wrapping_add(bytes as i64);
            kept[end] = kept[end].wrapping_sub(bytes as i64);
        }
        let (mut less, mut more, mut is_backward, mut peak) = (0i64, 0i64, false, 0);
        for (at, &bytes) in curve.iter().enumerate() {
            less = less.wrapping_add(changes[at]);
            more = more.wrapping_add(kept[at]);
            let (begins, ends) = turns[at];
            is_backward = (is_backward || ends) && !begins;
            let layer = if is_backward && less > 0 { one } else { 0 };
            let left = bytes.saturating_sub(less.unsigned_abs()).saturating_add(more.unsigned_abs());
            peak = peak.max(left.saturating_add(layer));
        }
        peak
    }
}

/// The most bytes of some lifetimes that begin between two starts.
fn largest_part(lifetimes: &[Lifetime], rows: &[usize], starts: &[usize]) -> u64 {
    let mut parts: HashMap<usize, u64> = HashMap::new();
    for &row in rows {
        *parts.entry(starts.partition_point(|&start| start <= row)).or_default() += lifetimes[row].requested;
    }
    parts.into_values().max().unwrap_or(0)
}

/// What is kept beside for each layer, its input: from, to, bytes. The input is what the forward pass made last before
/// the layer and still needed then; where it is kept anyway, nothing is to be added.
fn inputs(lifetimes: &[Lifetime], forward: &[usize], dropped: &[usize], starts: &[usize]) -> Vec<(u32, u32, u64)> {
    let mut inputs = Vec::new();
    for (number, &row) in starts.iter().enumerate() {
        let begin = lifetimes[row].start;
        let next = starts.get(number + 1).copied().unwrap_or(usize::MAX);
        let (from, to) =
            (dropped.partition_point(|&other| other < row), dropped.partition_point(|&other| other < next));
        let end = dropped[from..to].iter().map(|&other| lifetimes[other].end).max().unwrap_or(begin);
        let at = forward.partition_point(|&other| other < row);
        let mut before = forward[..at].iter().rev().take(LOOKED_BACK);
        let Some(&input) = before.find(|&&other| lifetimes[other].end > begin) else { continue };
        let is_dropped = dropped.binary_search(&input).is_ok();
        let from = if is_dropped { begin } else { lifetimes[input].end };
        if from < end {
            inputs.push((from, end, lifetimes[input].requested));
        }
    }
    inputs
}
