//! Edits that trade compute for memory: checkpointed layers and scans.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::checkpoint::Checkpoint;
use super::computed_again::values_computed_again;
use super::memory::Memory;
use super::outer_loop::around_outer;
use super::postponed::Postponed;
use super::saved_for_backward::{ScanSegments, Stack, is_among};
use super::segments::{EVERY, Segment, Segments};
use super::state::{Sizes, State};
use super::turn::Turn;
use crate::analysis::names::pass::Pass;
use crate::analysis::names::pattern::matches;
use crate::analysis::once::once;
use crate::model::{NO_ROW, Program, ShapeNode, outline};

/// Share of what scans save below which nothing is gained by recomputing it.
const MATTERS: f64 = 0.05;

/// Share of the peak below which layers keep little for the backward pass.
const LITTLE: f64 = 0.1;

/// Whether each segment is among the first so many, of those that have a forward pass whose values are needed again; the
/// others are left as they are.
fn first_segments(segments: &[Segment], most: usize) -> Vec<bool> {
    // Rows of families are in the order of the program.
    let mut order: Vec<usize> =
        (0..segments.len()).filter(|&i| segments[i].is_needed && !segments[i].forward.is_empty()).collect();
    order.sort_by_key(|&i| segments[i].forward.first().copied());
    let mut is_meant = vec![false; segments.len()];
    for &i in order.iter().take(most) {
        is_meant[i] = true;
    }
    is_meant
}

/// First times of the backward passes of segments, ascending, with whether each is meant.
fn starts_of(segments: &[Segment], is_meant: &[bool]) -> Vec<(u32, bool)> {
    let with = segments.iter().zip(is_meant).filter(|row| row.0.is_needed);
    let mut starts: Vec<(u32, bool)> = with.map(|(segment, &is_meant)| (segment.backward, is_meant)).collect();
    starts.sort_unstable();
    starts
}

/// A loop divided into segments, each checkpointed as a whole.
struct Segmented {
    /// Number of segments.
    count: u64,
    /// Steps of a segment.
    length: u64,
    /// Bytes of the inputs of all segments.
    inputs: u64,
    /// Bytes that one segment saves while it is recomputed.
    again: u64,
}

/// How many times the bytes of the best division equal segments may take.
const HARDLY_MORE: f64 = 1.25;

impl Segmented {
    /// The division that takes fewest bytes; `carry` are those passed from step to step, `saved` those saved for each. One
    /// into equal segments, where that takes hardly more.
    fn new(steps: u64, carry: u64, saved: u64) -> Self {
        let ratio = steps as f64 * saved as f64 / carry.max(1) as f64;
        let of = |count: u64| {
            let length = steps.div_ceil(count);
            Self { count, length, inputs: carry.saturating_mul(count), again: saved.saturating_mul(length) }
        };
        let all = |segments: &Self| segments.inputs.saturating_add(segments.again);
        let best = of((ratio.sqrt().round() as u64).clamp(1, steps));
        let near = best.count.div_ceil(2)..=best.count.saturating_mul(2).min(steps);
        let equal = near.filter(|count| steps.is_multiple_of(*count)).map(of).min_by_key(all);
        equal.filter(|equal| all(equal) as f64 <= all(&best) as f64 * HARDLY_MORE).unwrap_or(best)
    }
}

impl Memory {
    /// Whether scans save more than the input of each step, to an extent that matters.
    pub(super) fn scans_keep_more_than_inputs(&self) -> bool {
        let stacks = &self.kept.stacks;
        let size = |row: u32| self.families.list.get(row as usize).map_or(0, |family| family.size);
        let sum = |accept: &dyn Fn(bool) -> bool| {
            let own = stacks.iter().filter(|stack| accept(stack.is_input));
            own.fold(0u64, |sum, stack| sum.saturating_add(size(stack.family)))
        };
        let others = sum(&|is_input| !is_input);
        others > 0 && others as f64 >= sum(&|_| true) as f64 * MATTERS
    }
}

impl State<'_> {
    /// Checkpoints the layers whose names match, or the bodies of the scans over layers.
    pub(super) fn remat(&mut self, scope: &Checkpoint) {
        self.kinds.remat = true;
        if let Checkpoint::ScanPart(part) = scope {
            self.remat_part_of_scans(part);
            return;
        }
        let has_scan = self.memory.scans_keep_more_than_inputs();
        if scope.may_be_scan() && has_scan && (*scope == Checkpoint::Scan || self.scans_keep_most()) {
            self.remat_scans(EVERY);
            return;
        }
        if scope.may_be_scan() && !self.memory.kept.stacks.is_empty() && self.scans_keep_most() {
            self.decline(
                "the scan saves only the input of each layer already; to save fewer of them, checkpoint groups of layers (a scan over groups, with a scan over the layers of each inside)".to_owned(),
            );
            return;
        }
        let Checkpoint::Layers(pattern, most) = scope else {
            self.decline("no scan saves more for its backward pass than the input of each layer".to_owned());
            return;
        };
        self.remat_layers(pattern, *most);
    }

    /// Checkpoints the part of the bodies of the scans that makes the stacks whose names match.
    fn remat_part_of_scans(&mut self, part: &str) {
        let kept = &self.memory.kept;
        if kept.stacks_called(part).next().is_some() {
            self.remat_scans(part);
        } else {
            let all = kept.stack_names.iter().filter(|name| !name.is_empty()).cloned();
            self.find_nothing(&format!("no scan saves what is called {part}"), all);
        }
    }

    /// Whether scans over layers save more for the backward pass than layers do that are not in a scan.
    fn scans_keep_most(&self) -> bool {
        let memory = self.memory;
        let size = |row: u32| memory.families.list.get(row as usize).map_or(0, |family| family.size);
        let of_layers = memory.kept.stacks.iter().filter(|stack| !stack.is_in_layer);
        let stacked = of_layers.fold(0u64, |sum, stack| sum.saturating_add(size(stack.family)));
        let is_of_layer = |row: &u32| {
            let layer = memory.kept.turn.as_ref().and_then(|turn| turn.layer_of.get(*row as usize).copied().flatten());
            layer.is_some() && memory.is_kept(*row as usize) && !memory.kept.is_stack_of_layers(*row as usize)
        };
        let layered = (0..memory.families.list.len() as u32).filter(is_of_layer);
        stacked >= layered.fold(0u64, |sum, row| sum.saturating_add(size(row)))
    }

    /// Checkpoints the layers, or the scopes, whose names match.
    pub(super) fn remat_layers(&mut self, pattern: &str, most: Option<u32>) {
        let memory = self.memory;
        let Some(turn) = &memory.kept.turn else {
            self.decline(if memory.has_backward() {
                "it is not known when its backward pass begins".to_owned()
            } else {
                "the program has no backward pass: it keeps nothing that a checkpoint would compute again".to_owned()
            });
            return;
        };
        for (number, round) in (1..).zip(&memory.kept.rounds) {
            let key = format!("{pattern} of round {number}");
            let parts = memory.segments.value(&key, || Segments::new(self.program, memory.named(), round, pattern));
            self.remat_segments((round, &parts), pattern, most);
        }
        if !memory.kept.rounds.is_empty() {
            return;
        }
        let parts = memory.segments_of(self.program, turn, pattern);
        self.remat_segments((turn, &parts), pattern, most);
    }

    /// Checkpoints the segments that a pattern has found.
    fn remat_segments(&mut self, (turn, parts): (&Turn, &Segments), pattern: &str, most: Option<u32>) {
        let memory = self.memory;
        let is_meant = first_segments(&parts.list, most.map_or(usize::MAX, |most| most as usize));
        let meant = || parts.list.iter().zip(&is_meant).filter(|(_, is_meant)| **is_meant).map(|(segment, _)| segment);
        // A loss in parts, next to the last layer, has a checkpoint of its own.
        let checkpointed = meant().filter(|segment| segment.is_checkpointed).count();
        let is_checkpointed = checkpointed > 1 || (checkpointed == 1 && meant().count() == 1);
        let (mut cut, mut cut_bytes) = (0usize, 0u64);
        self.checkpointed.resize(memory.families.list.len(), None);
        for segment in meant() {
            for &row in segment.forward.iter().chain(&segment.recomputed) {
                self.checkpointed[row as usize] = Some(segment.backward);
            }
            // What a layer recomputes is not kept for what the compiler postpones now, such as gradients of weights.
            let over = parts.backward.get(parts.backward.partition_point(|&at| at <= segment.backward)).copied();
            let times = (segment.needed, segment.backward, over.unwrap_or(u32::MAX));
            for &row in &segment.forward {
                let Some(end) = parts.last_read(row, &is_meant) else { continue };
                // What is kept only for what the compiler computes again early, which its layer does now, or to add it up
                // again.
                let is_left = turn.is_read_again(row) || parts.is_summed(row);
                if self.compute_again(turn, (end, is_left), row, times) {
                    cut += 1;
                    cut_bytes = cut_bytes.saturating_add(memory.family_bytes[row as usize]);
                }
            }
            // What the compiler recomputes early by itself is recomputed with the rest of its layer.
            for &row in &segment.recomputed {
                let (first, last) = self.spans[row as usize];
                if first < segment.backward {
                    self.spans.to_mut()[row as usize].0 = segment.backward.min(last);
                }
            }
        }
        // The inputs of a segment (what it reads from others) stay live until it is recomputed.
        for &(row, segment) in parts.inputs.iter().filter(|input| is_meant[input.1 as usize]) {
            let backward = parts.list[segment as usize].backward;
            if self.spans[row as usize].1 < backward {
                self.spans.to_mut()[row as usize].1 = backward;
            }
        }
        // An input in on-chip memory has to be kept in HBM.
        for &(bytes, made, segment) in parts.on_chip.iter().filter(|input| is_meant[input.2 as usize]) {
            let Segment { forward, backward, .. } = &parts.list[segment as usize];
            if let Some(&row) = forward.first() {
                self.made_again.push((bytes, made, *backward, row));
            }
        }
        self.make_gradients_at_once(&parts.list, &is_meant);
        self.may_differ |= self.finish_promptly(&parts.list, &is_meant);
        self.put_off_gradients(parts, &is_meant);
        if is_checkpointed {
            self.warn(format!("layers of {pattern} are checkpointed already"));
        }
        let is_known = turn.layers.iter().any(|layer| matches(pattern, &layer.name));
        if parts.list.is_empty() && !turn.layers.is_empty() && !is_known {
            let folded = |name: &str| {
                let (name, end) = name.strip_suffix(']').map_or((name, ""), |name| (name, "]"));
                let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
                if stem.len() < name.len() { format!("{stem}*{end}") } else { format!("{name}{end}") }
            };
            let all = turn.layers.iter().map(|layer| folded(&layer.name));
            self.find_nothing(&format!("no layer is called {pattern}"), all);
        } else if parts.list.is_empty() && turn.layers.is_empty() {
            self.decline("no repeated layers are recognised in the names of what the program computes".to_owned());
        } else if cut == 0 {
            self.decline(if is_checkpointed || (pattern == EVERY && memory.has_checkpoints()) {
                "the layers are checkpointed already and keep nothing else for the backward pass".to_owned()
            } else {
                format!("checkpoints around {pattern} would free nothing: all that is kept of these for the backward pass, if anything, is what the next layers read")
            });
        } else if (cut_bytes as f64) < memory.peak as f64 * LITTLE && memory.recomputes_all_at_once(self.program) {
            self.decline(
                "a checkpoint around all layers recomputes them at once; what checkpoints around each of them keep instead cannot be told from this program".to_owned(),
            );
        }
    }

    /// Where layers are checkpointed, the compiler makes the gradients of their weights before the next layer's backward
    /// pass, which it may postpone now: so it was in each of 8 real programs that fit before. One that does not fit is
    /// printed as it was before the compiler ordered it.
    fn make_gradients_at_once(&mut self, segments: &[Segment], is_meant: &[bool]) {
        let memory = self.memory;
        if !self.is_ordered {
            return;
        }
        let starts = starts_of(segments, is_meant);
        for postponed in memory.postponed(self.program) {
            let row = postponed.family as usize;
            // What a layer computes again is there until the next one does.
            if let Some(&Some(backward)) = self.checkpointed.get(row) {
                if let Some(&(over, _)) = starts.get(starts.partition_point(|start| start.0 <= backward)) {
                    let (first, last) = self.spans[row];
                    if last > over {
                        let end = over.saturating_sub(1);
                        self.spans.to_mut()[row] = (first.min(end), end);
                    }
                    self.make_by((over, &starts), postponed);
                }
                continue;
            }
            let (first, last) = self.spans[row];
            let next = starts.partition_point(|start| start.0 <= first);
            // What is read after the turn and before the first layer's backward pass, such as logits, is of the head.
            let is_of_head = || {
                memory.kept.turn.as_ref().is_some_and(|turn| postponed.until >= turn.at)
                    && starts.first().is_some_and(|start| start.1 && postponed.until < start.0)
            };
            let is_cut = next.checked_sub(1).map_or_else(is_of_head, |own| starts[own].1);
            let Some(&(over, _)) = starts.get(next).filter(|start| is_cut && start.0 < last) else { continue };
            // What the next layers read besides, such as the gradient of what layers add to, is kept for them.
            let over = over.max(postponed.until.saturating_add(1));
            if over >= last {
                continue;
            }
            self.spans.to_mut()[row].1 = over.saturating_sub(1).max(first);
            self.make_by((over, &starts), postponed);
        }
    }

    /// Makes the gradients of a value by a time, and what is made on the way to them once nothing else reads the value, unless
    /// that is no later than the next layer's backward pass. `starts` are the first times of those of all layers.
    fn make_by(&mut self, (over, starts): (u32, &[(u32, bool)]), postponed: &Postponed) {
        let spans = self.spans.to_mut();
        for &made in &postponed.gradients {
            let begin = &mut spans[made as usize].0;
            *begin = over.min(*begin);
        }
        let Some(&(later, _)) = starts.get(starts.partition_point(|start| start.0 <= over)) else { return };
        let then = if postponed.until == 0 { over } else { over.min(postponed.until.saturating_add(1)) };
        for &(made, ready) in &postponed.on_the_way {
            let (begin, end) = &mut spans[made as usize];
            let then = then.max(ready);
            if *begin > later {
                (*begin, *end) = (then, then);
            } else if *end > later {
                *end = then.max(*begin);
            }
        }
    }

    /// Lets the backward pass of every layer leave nothing for later, where another peak is taken away that had hidden it:
    /// the compiler postpones gradients only as long as that costs nothing.
    pub(super) fn order_backward_pass(&mut self) {
        let memory = self.memory;
        if self.puts_off_any() {
            return;
        }
        let Some(turn) = &memory.kept.turn else { return };
        let parts = memory.segments_of(self.program, turn, EVERY);
        let all = vec![true; parts.list.len()];
        self.make_gradients_at_once(&parts.list, &all);
        self.finish_promptly(&parts.list, &all);
    }

    /// In a program that the compiler orders, the backward pass of each segment that is meant, and in the best case that
    /// of every segment, leaves nothing for later than the next one: the gradients of weights that the compiler postpones
    /// now, as there is room, read values of many layers at the end. Returns whether there are any.
    fn finish_promptly(&mut self, segments: &[Segment], is_meant: &[bool]) -> bool {
        let memory = self.memory;
        let mut is_any = false;
        let starts = starts_of(segments, is_meant);
        for &row in memory.postponable(self.program) {
            let begins = 2 * memory.families.list[row as usize].first;
            let next = starts.partition_point(|start| start.0 <= begins);
            let Some(&(over, _)) = starts.get(next + 1) else { continue };
            if self.spans[row as usize].1 <= over {
                continue;
            }
            is_any = true;
            let is_own = self.is_ordered && next.checked_sub(1).is_some_and(|own| starts[own].1);
            if self.is_optimistic || is_own {
                self.spans.to_mut()[row as usize].1 = over;
            }
        }
        is_any
    }

    /// Splits the live range of a segment's family in two: in the forward pass, up to its last read there, and from when the
    /// backward pass recomputes it, at the second of three times, to when the next segment does. From the first the compiler
    /// may read it to recompute others, which it then does with the rest of the layer; what is left to those is not kept
    /// till then.
    fn compute_again(&mut self, turn: &Turn, (end, is_left): (u32, bool), row: u32, times: (u32, u32, u32)) -> bool {
        let (needed, backward, over) = times;
        let (first, last) = self.spans[row as usize];
        if first >= turn.at {
            return false;
        }
        if last <= needed {
            let is_cut = is_left && end < last;
            if is_cut {
                self.spans.to_mut()[row as usize].1 = end.max(first);
            }
            return is_cut;
        }
        // What the compiler computes again before the turn is computed again with its layer alone.
        let is_early = turn.is_again(row) && !turn.is_by_use && end <= first;
        if is_early && last > backward {
            self.spans.to_mut()[row as usize] = (backward, last.min(over.saturating_sub(1)));
            return true;
        }
        self.spans.to_mut()[row as usize].1 = end.max(first);
        let until = if last > backward { last.min(over.saturating_sub(1)) } else { backward + (last - needed) };
        self.again.push((row, backward, until));
        true
    }

    /// Keeps only the input of each layer of what a scan saves; layers are recomputed one at a time. Where a step's input
    /// is as large as what it saves, segments of many steps are checkpointed instead, as few bytes in all as can be.
    /// Loops inside layers are recomputed one after the other.
    fn remat_scans(&mut self, part: &str) {
        let memory = self.memory;
        let stacks = &memory.kept.stacks;
        let is_all = part == EVERY;
        let meant: HashSet<u32> = memory.kept.stacks_called(part).map(|stack| stack.family).collect();
        // Encoder and decoder each have a loop, and what one recomputes is gone when the other does.
        let mut of_loops: BTreeMap<u32, Vec<Stack>> = BTreeMap::new();
        for stack in stacks {
            of_loops.entry(stack.of_loop.0).or_default().push(*stack);
        }
        let first = |&family: &u32| 2 * memory.families.list[family as usize].first;
        let of_gradients = memory.kept.gradients.iter().map(first).min();
        let size = |stack: &Stack| memory.families.list[stack.family as usize].size;
        let saved = |stacks: &Vec<Stack>| {
            stacks
                .iter()
                .filter(|stack| meant.contains(&stack.family))
                .fold(0u64, |sum, stack| sum.saturating_add(size(stack)))
        };
        let most_saved = of_loops.values().map(saved).max().unwrap_or(0);
        for stacks in of_loops.values() {
            let needed = |stack: &Stack| memory.kept.turn.as_ref()?.needed_at(stack.family);
            let needed = stacks.iter().filter_map(needed).min();
            let is_in_layer = stacks.iter().any(|stack| stack.is_in_layer);
            let is_single = of_loops.len() == 1 && !is_in_layer;
            let backward = if is_single { of_gradients } else { needed };
            self.remat_scan(stacks, &meant, backward, most_saved);
        }
        if is_all {
            self.remat_single_steps();
        }
    }

    /// Drops what loops of one step save, which the compiler runs as no loops: a layer between scans over others, as where
    /// every sixth attends to all positions. Like stacks, what they save has a first dimension for the step; of as many as
    /// there are such steps with the shape of their inputs, one each is kept.
    fn remat_single_steps(&mut self) {
        let memory = self.memory;
        let node = |row: usize| memory.node_of_family(self.program, row as u32);
        let lead = |node: &ShapeNode| (node.dimensions.len(), node.dimensions.get(1..3).map(<[i64]>::to_vec));
        let stacks = || memory.kept.stacks.iter().filter(|stack| !stack.is_in_layer);
        let known: HashSet<_> = stacks().filter_map(|stack| node(stack.family as usize)).map(lead).collect();
        let inputs: HashSet<&[i64]> = stacks()
            .filter(|stack| stack.is_input)
            .filter_map(|stack| node(stack.family as usize)?.dimensions.get(1..))
            .collect();
        let is_saved = |row: &usize| {
            memory.is_kept(*row)
                && !memory.kept.is_stack(*row)
                && !memory.kept.has_own_remedy(*row)
                && node(*row).is_some_and(|node| {
                    node.element_type.is_float()
                        && node.dimensions.first() == Some(&1)
                        && node.dimensions.len() > 3
                        && known.contains(&lead(node))
                })
        };
        let mut by_shape: BTreeMap<&[i64], Vec<usize>> = BTreeMap::new();
        for row in (0..memory.families.list.len()).filter(is_saved) {
            if let Some(node) = node(row) {
                by_shape.entry(&node.dimensions).or_default().push(row);
            }
        }
        let others = by_shape.iter().filter(|row| !row.0.get(1..).is_some_and(|own| inputs.contains(own)));
        let Some(steps) = others.map(|row| row.1.len()).min() else { return };
        for (dimensions, rows) in &by_shape {
            let is_input = dimensions.get(1..).is_some_and(|own| inputs.contains(own));
            for &row in rows.iter().skip(if is_input { steps } else { 0 }) {
                self.dropped[row] = true;
            }
        }
    }

    /// As [`Self::remat_scans`], for one scan and those of its stacks that are meant; `backward` is the time at which the
    /// backward pass
    /// begins to need what it saves, `most_saved` the bytes that the loop saves which saves most.
    fn remat_scan(&mut self, stacks: &[Stack], meant: &HashSet<u32>, backward: Option<u32>, most_saved: u64) {
        let memory = self.memory;
        let mut again = 0u64;
        let mut saved = 0u64;
        let mut span: Option<(u32, u32, u32)> = None;
        // A softmax is fused: of several stacks of scores with the same shape only one is recomputed as an array. Of other
        // values of one shape some are, as element-wise operations are fused too.
        let mut scores: HashMap<Vec<i64>, u64> = HashMap::new();
        let mut shapes: HashMap<Vec<i64>, u64> = HashMap::new();
        for stack in stacks.iter().filter(|stack| meant.contains(&stack.family)) {
            let row = stack.family as usize;
            let family = memory.families.list[row];
            let (first, last) = self.spans[row];
            saved = saved.saturating_add(family.size);
            let slice = family.size / u64::try_from(stack.layers.saturating_mul(stack.inner)).unwrap_or(1).max(1);
            let dimensions =
                self.program.buffer_node(family.root).map(|node| node.dimensions.clone()).unwrap_or_default();
            if is_among(&memory.kept.scores, row) {
                let least = scores.entry(dimensions).or_insert(slice);
                *least = slice.min(*least);
            } else {
                again = again.saturating_add(slice);
                let most = shapes.entry(dimensions).or_default();
                *most = slice.max(*most);
            }
            span = Some(span.map_or((first, last, stack.family), |s| (s.0.min(first), s.1.max(last), s.2)));
        }
        let one_each = shapes.values().fold(0u64, |sum, &slice| sum.saturating_add(slice));
        let fused = again.saturating_sub(one_each) / 2;
        again = scores.values().fold(again - fused, |sum, &slice| sum.saturating_add(slice));
        let Some((first, last, row)) = span else { return };
        let backward = backward.filter(|at| (first..last).contains(at)).unwrap_or(last);
        let steps = stacks.iter().map(|stack| stack.layers.saturating_mul(stack.inner)).max();
        let steps = steps.unwrap_or(1).max(1).unsigned_abs();
        let carry = stacks.iter().filter(|stack| !stack.is_input).map(|stack| stack.carry).max();
        let size = |stack: &Stack| memory.families.list[stack.family as usize].size;
        let kept =
            stacks.iter().filter(|stack| stack.is_input).fold(0u64, |sum, stack| sum.saturating_add(size(stack)));
        // Saved in 32 bits now, as it is first converted, it is kept as it is passed on.
        let passed_on = carry.unwrap_or(0).saturating_mul(steps);
        let is_part = stacks.iter().any(|stack| !stack.is_input && !meant.contains(&stack.family));
        let is_wider = !is_part && passed_on > 0 && kept > passed_on;
        let kept = if is_wider { 0 } else { kept };
        let inputs = match carry {
            // Of what a loop passes on, some is saved now: a ring's keys and values, but not its sums.
            Some(carry) if carry > 0 => carry.saturating_mul(steps).saturating_sub(kept),
            _ if kept > 0 => 0,
            // Taken to be as large as the smallest stack kept now.
            _ => stacks.iter().map(size).min().unwrap_or(0),
        };
        // Around the steps of the outer of two loops, fewer inputs are kept and more is computed again.
        let outer = if is_part { None } else { around_outer(stacks, carry, size) };
        let outer = outer.filter(|outer| {
            outer.all() < inputs.saturating_add(kept).saturating_add(again)
                && outer.inputs.saturating_add(outer.again) < saved / 2
        });
        let (inputs, again) = outer.map_or((inputs, again), |outer| (outer.inputs, outer.again));
        // A part of a step has no segments of several steps.
        let is_worth = is_part || inputs.saturating_add(again) < saved / 2;
        if !is_worth && saved < most_saved {
            // A loop that saves little more than its inputs is left as it is where others save more.
            return;
        }
        let is_replaced = |stack: &Stack| stack.is_input && (is_wider || (outer.is_some() && stack.inner > 1));
        for stack in stacks.iter().filter(|stack| meant.contains(&stack.family) || is_replaced(stack)) {
            self.dropped[stack.family as usize] = true;
            if stack.inner > 1 {
                self.drop_slices(stack);
            }
            self.again_in_scans.push((stack.family, stack.layers, backward));
        }
        let (inputs, again) = if let Some(outer) = outer {
            self.warn(format!(
                "predicted for a checkpoint around each of the {} steps of the outer loop, not the {} of the loop in each",
                outer.steps, outer.inner
            ));
            self.scan_segments.get_or_insert(ScanSegments::OfOuterScan { steps: outer.steps, inner: outer.inner });
            (inputs, again)
        } else if is_worth {
            self.fused = self.fused.max(fused);
            (inputs, again)
        } else {
            let segments = Segmented::new(steps, inputs / steps, again);
            self.warn(format!(
                "the loop of {steps} steps passes on as much as it saves in each: predicted for {} segments of {} steps, each checkpointed as a whole (a scan in a scan)",
                segments.count, segments.length
            ));
            let of_loop = stacks.iter().map(|stack| stack.layers).max().unwrap_or(1).unsigned_abs();
            let Segmented { count, length, .. } = segments;
            self.scan_segments.get_or_insert(ScanSegments::OfScan { count, length, steps: of_loop });
            (segments.inputs, segments.again)
        };
        if is_part {
            // What is as large as what the layer passes on, such as what norms make, may be of the part, or not.
            let like_input = |stack: &&Stack| {
                let slice = size(stack) / stack.layers.max(1).unsigned_abs();
                !stack.is_input
                    && !meant.contains(&stack.family)
                    && carry.is_some_and(|carry| slice >= carry / 2 && slice <= carry.saturating_mul(2))
            };
            let alike = stacks.iter().filter(like_input).fold(0u64, |sum, stack| sum.saturating_add(size(stack)));
            self.may_be_of_part = self.may_be_of_part.saturating_add(alike / 2);
        }
        self.made_again.push((again, backward, last, row));
        if inputs > 0 {
            self.made_again.push((inputs, first, last, row));
        }
    }

    /// Drops what the loops of both passes hold of a stack of stacks in each step: what the loop within saves.
    fn drop_slices(&mut self, stack: &Stack) {
        let memory = self.memory;
        let node = |row: usize| memory.node_of_family(self.program, row as u32);
        let Some(whole) = node(stack.family as usize) else { return };
        let Some(slice) = whole.dimensions.get(1..) else { return };
        // Dimensions of 1 come and go.
        let beyond_one = |dimensions: &[i64]| dimensions.iter().copied().filter(|&own| own != 1).collect::<Vec<i64>>();
        let slice = beyond_one(slice);
        let is_slice = |row: &usize| {
            node(*row)
                .is_some_and(|node| node.element_type == whole.element_type && beyond_one(&node.dimensions) == slice)
        };
        let slices: Vec<usize> = (0..memory.families.list.len()).filter(is_slice).collect();
        for row in slices {
            self.dropped[row] = true;
        }
    }

    /// Sizes and lives if the compiler rematerialised nothing: what it recomputes (`.remat` in names) is kept from the first
    /// time on, but for what layers compute again that are checkpointed by these changes.
    pub(super) fn without_recomputation(&self, sizes: &Sizes) -> Sizes {
        let known = once(&self.memory.recomputed, || values_computed_again(self.program, self.memory));
        let mut first_of: Vec<u32> = vec![NO_ROW; known.values];
        let mut kept = sizes.clone();
        // What follows the families are second lives, which these changes made.
        for (i, &(value, is_again)) in known.of_family.iter().enumerate() {
            let Some(first) = first_of.get_mut(value as usize) else { continue };
            // With checkpoints, predictions were no better without them.
            if !self.kinds.remat && known.compressed.binary_search(&(i as u32)).is_ok() {
                kept.blocks[i].size = 0;
                continue;
            }
            if *first == NO_ROW {
                *first = i as u32;
            } else if is_again && !self.is_computed_again(i) {
                let row = known.handed_on.binary_search_by_key(&(i as u32), |row| row.0);
                let handed_on = row.ok().map(|row| known.handed_on[row].1);
                let end = handed_on.unwrap_or(kept.blocks[i].end);
                let first = &mut kept.blocks[*first as usize];
                if first.size > 0 {
                    first.end = first.end.max(end);
                    match handed_on {
                        Some(time) => kept.blocks[i].start = kept.blocks[i].start.max(time),
                        None => kept.blocks[i].size = 0,
                    }
                }
            }
        }
        kept
    }

    /// Whether a family is computed again by these changes: with its layer, or block by block.
    fn is_computed_again(&self, family: usize) -> bool {
        self.checkpointed.get(family).is_some_and(Option::is_some) || self.in_blocks.get(family) == Some(&true)
    }
}

impl Memory {
    /// Families of the backward pass that the compiler may postpone, as far as they are known: no gradients.
    fn postponable(&self, program: &Program) -> &Vec<u32> {
        once(&self.postponable, || {
            let weights = self.weights(program);
            let is_postponable = |&row: &u32| {
                let at = row as usize;
                let is_of_backward = self.kept.passes.get(at) == Some(&Pass::Backward);
                let node = || program.buffer_node(self.families.list[at].root);
                let is_weight = || node().is_none_or(|node| weights.contains(&outline(&node.dimensions)));
                (is_of_backward || is_among(&self.kept.logits, at))
                    && !is_among(&self.kept.gradients, at)
                    && !is_weight()
            };
            (0..self.families.list.len() as u32).filter(is_postponable).collect()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_divide_the_steps_where_that_takes_hardly_more() {
        let of = |steps| {
            let segments = Segmented::new(steps, 100, 100);
            (segments.count, segments.length)
        };
        assert_eq!(of(48), (6, 8));
        assert_eq!(of(49), (7, 7));
        // A prime number has no equal ones.
        assert_eq!(of(53), (7, 8));
    }
}
