//! Edits that trade compute for memory: checkpointed layers and scans, chunked losses, block-wise attention.

use std::collections::HashMap;

use super::edit::{LOGITS, SCAN};
use super::kept::{BLOCK, Kept, is_among};
use super::resize;
use super::state::{Sizes, State};
use super::turn::{Read, Turn};
use crate::analysis::names::lookup::op_name;
use crate::analysis::names::pass::Pass;
use crate::analysis::names::pattern::matches;
use crate::analysis::names::scope;
use crate::analysis::packing;
use crate::model::{InstructionId, Program};

/// A unit of checkpointing: a layer, or a scope matched by a pattern.
#[derive(Default)]
struct Segment {
    /// Families of its forward pass.
    forward: Vec<u32>,
    /// First time of its backward pass.
    backward: u32,
}

/// The segment that each family and operation belongs to.
#[derive(Default)]
struct Parts {
    pattern: String,
    rows: HashMap<String, u32>,
    /// By family; `None` if it is in no segment or not in the forward pass.
    of_family: Vec<Option<u32>>,
}

impl Parts {
    /// The segment of a layer and the name of an operation.
    fn place(&mut self, turn: &Turn, layer: Option<u32>, name: &str, may_add: bool) -> Option<u32> {
        let own = self.name(turn, layer, name)?;
        if let Some(&row) = self.rows.get(&own) {
            return Some(row);
        }
        let row = self.rows.len() as u32;
        may_add.then(|| {
            self.rows.insert(own, row);
            row
        })
    }

    fn name(&self, turn: &Turn, layer: Option<u32>, name: &str) -> Option<String> {
        let layer = layer.and_then(|row| turn.layers.get(row as usize));
        match layer {
            Some(layer) if matches(&self.pattern, &layer.name) => Some(layer.name.clone()),
            // The pattern for every layer does not include what is outside the layers.
            _ if self.pattern == EVERY => None,
            _ => {
                let path = scope::path(name);
                let (_, scopes) = path.split_last()?;
                let at = scopes.iter().position(|part| matches(&self.pattern, part))?;
                Some(scopes[..=at].join("/"))
            }
        }
    }

    /// The segment that makes a read.
    fn of_read(&self, program: &Program, turn: &Turn, read: &Read) -> Option<u32> {
        let name = if self.pattern == EVERY { String::new() } else { op_name(program, InstructionId(read.reader)) };
        self.rows.get(&self.name(turn, read.layer, &name)?).copied()
    }
}

/// Leaves all but the first segments as they are.
fn keep_first(segments: &mut [Segment], most: usize) {
    // Rows of families are in the order of the program.
    let mut order: Vec<usize> = (0..segments.len()).filter(|&i| !segments[i].forward.is_empty()).collect();
    order.sort_by_key(|&i| segments[i].forward.first().copied());
    for &i in order.iter().skip(most) {
        segments[i].forward.clear();
    }
}

/// The pattern for every layer.
pub(super) const EVERY: &str = "*";

impl State<'_> {
    /// Checkpoints the layers whose names match, or the bodies of the scans over layers.
    pub(super) fn remat(&mut self, pattern: &str, most: Option<u32>) {
        self.kinds.remat = true;
        let has_scan = self.memory.kept.stacks.iter().any(|stack| !stack.is_input);
        if matches(pattern, SCAN) && has_scan {
            self.remat_scans();
            return;
        }
        if pattern == SCAN {
            self.warn("no scan saves more for its backward pass than the input of each layer".to_owned());
            return;
        }
        self.remat_layers(pattern, most);
    }

    /// Checkpoints the layers, or the scopes, whose names match.
    pub(super) fn remat_layers(&mut self, pattern: &str, most: Option<u32>) {
        let memory = self.memory;
        let Some(turn) = &memory.kept.turn else {
            self.warn("it is not known when a backward pass begins: nothing is changed".to_owned());
            return;
        };
        let (parts, mut segments) = self.segments(turn, pattern);
        if let Some(most) = most {
            keep_first(&mut segments, most as usize);
        }
        let is_checkpointed =
            segments.iter().flat_map(|segment| &segment.forward).any(|&row| self.is_checkpointed(row));
        let mut cut = 0usize;
        for (number, segment) in segments.iter().enumerate() {
            for &row in &segment.forward {
                cut += usize::from(self.compute_again(turn, &parts, row, (number as u32, segment.backward)));
            }
        }
        self.keep_inputs(turn, &parts, &segments);
        if is_checkpointed {
            self.warn(format!("layers of {pattern} are checkpointed already"));
        }
        if cut == 0 {
            self.warn(format!("no layer called {pattern} keeps anything from the forward for the backward pass"));
        }
    }

    fn is_checkpointed(&self, row: u32) -> bool {
        Kept::is_checkpointed(self.memory.family_name(row as usize))
    }

    /// The segments that a pattern names.
    fn segments(&self, turn: &Turn, pattern: &str) -> (Parts, Vec<Segment>) {
        let memory = self.memory;
        let mut parts = Parts { pattern: pattern.to_owned(), ..Parts::default() };
        let mut segments: Vec<Segment> = Vec::new();
        let mut backward: Vec<Option<u32>> = Vec::new();
        parts.of_family = vec![None; memory.families.list.len()];
        for (i, family) in memory.families.list.iter().enumerate() {
            let layer = turn.layer_of.get(i).copied().flatten();
            let Some(row) = parts.place(turn, layer, memory.family_name(i), true) else { continue };
            if row as usize >= segments.len() {
                segments.push(Segment::default());
                backward.push(None);
            }
            let time = 2 * family.first;
            match memory.kept.passes.get(i) {
                Some(Pass::Forward) if time < turn.at => {
                    segments[row as usize].forward.push(i as u32);
                    parts.of_family[i] = Some(row);
                }
                Some(Pass::Backward | Pass::Recomputed) if time >= turn.at => {
                    let first = &mut backward[row as usize];
                    *first = Some(first.map_or(time, |at| at.min(time)));
                }
                _ => {}
            }
        }
        // Where no name tells, a layer's backward pass begins when that of the next layer is over.
        let last: Vec<u32> = segments
            .iter()
            .map(|s| s.forward.iter().map(|&row| 2 * memory.families.list[row as usize].last).max().unwrap_or(0))
            .collect();
        for (i, segment) in segments.iter_mut().enumerate() {
            let after = || last.iter().copied().filter(|&other| other < last[i]).max();
            segment.backward = backward[i].or_else(after).unwrap_or(turn.at).max(turn.at);
        }
        (parts, segments)
    }

    /// Splits the live range of a segment's family in two: in the forward pass, and from when the backward pass
    /// recomputes it. What other segments read is their input and is kept.
    fn compute_again(&mut self, turn: &Turn, parts: &Parts, row: u32, (segment, backward): (u32, u32)) -> bool {
        let (first, last) = self.spans[row as usize];
        if self.is_checkpointed(row) || first >= turn.at || last <= backward {
            return false;
        }
        let reads = turn.reads_of(row);
        // A layer's result is read once the next layer runs; an earlier reader is part of the layer under another name.
        let layer = turn.layer_of.get(row as usize).copied().flatten();
        let end = layer.map_or(0, |layer| turn.window(layer).1);
        if reads.iter().any(|read| read.time >= end && parts.of_read(self.program, turn, read) != Some(segment)) {
            return false;
        }
        self.spans[row as usize].1 = reads.last().map_or(first, |read| read.time).max(first);
        self.again.push((row, backward, last));
        true
    }

    /// Keeps the inputs of a segment (what it reads from others) live until the segment is recomputed.
    fn keep_inputs(&mut self, turn: &Turn, parts: &Parts, segments: &[Segment]) {
        for read in turn.reads() {
            // What is read before the layer runs is not an input, but is cast or copied for it.
            if read.layer.is_some_and(|layer| read.time < turn.window(layer).0) {
                continue;
            }
            let Some(segment) = parts.of_read(self.program, turn, read) else { continue };
            let row = read.family as usize;
            let is_own = parts.of_family.get(row).copied().flatten() == Some(segment);
            let Some(backward) = segments.get(segment as usize).filter(|s| !s.forward.is_empty()).map(|s| s.backward)
            else {
                continue;
            };
            if !is_own && self.spans[row].0 < turn.at {
                self.spans[row].1 = self.spans[row].1.max(backward);
            }
        }
    }

    /// Keeps only the input of each layer of what a scan saves; layers are recomputed one at a time.
    fn remat_scans(&mut self) {
        let memory = self.memory;
        let backward =
            memory.kept.gradients.iter().map(|&family| 2 * memory.families.list[family as usize].first).min();
        let has_input = memory.kept.stacks.iter().any(|stack| stack.is_input);
        let mut again = 0u64;
        let mut span: Option<(u32, u32, u32)> = None;
        for stack in memory.kept.stacks.iter().filter(|stack| !stack.is_input) {
            let row = stack.family as usize;
            let family = memory.families.list[row];
            let (first, last) = self.spans[row];
            self.dropped[row] = true;
            again = again.saturating_add(family.size / u64::try_from(stack.layers).unwrap_or(1).max(1));
            span = Some(span.map_or((first, last, stack.family), |s| (s.0.min(first), s.1.max(last), s.2)));
        }
        let Some((first, last, row)) = span else { return };
        let backward = backward.filter(|at| (first..last).contains(at)).unwrap_or(last);
        self.added.push((again, backward, last, row));
        if !has_input {
            // The input of each layer then has to be kept; taken to be as large as the smallest stack kept now.
            let least = memory.kept.stacks.iter().map(|stack| memory.families.list[stack.family as usize].size).min();
            self.added.push((least.unwrap_or(0), first, last, row));
        }
    }

    /// Computes logits, or the operations that a pattern matches, in parts.
    pub(super) fn chunk(&mut self, scope: &str, parts: i64) {
        self.kinds.parts = true;
        let memory = self.memory;
        let rows: Vec<u32> = if scope == LOGITS {
            memory.kept.logits.clone()
        } else {
            let named = |&row: &u32| matches(scope, memory.family_name(row as usize));
            (0..memory.families.list.len() as u32).filter(named).collect()
        };
        if rows.is_empty() {
            self.warn(format!("nothing is called {scope}"));
        }
        self.shrink(&rows, 1, parts);
    }

    /// Computes attention block by block.
    pub(super) fn blockwise(&mut self, scope: &str) {
        self.kinds.parts = true;
        let memory = self.memory;
        let named = |&&row: &&u32| scope == "*" || matches(scope, memory.family_name(row as usize));
        let rows: Vec<u32> = memory.kept.scores.iter().filter(named).copied().collect();
        let sequence = memory.kept.sequence.unwrap_or(BLOCK);
        if rows.is_empty() || sequence <= BLOCK {
            self.warn("there are no attention scores longer than a block".to_owned());
            return;
        }
        // Scores are recomputed block by block in a layer's backward pass; none are kept.
        for &row in &rows {
            let is_forward = memory.kept.passes.get(row as usize) == Some(&Pass::Forward);
            if memory.kept.is_stack(row as usize) || (is_forward && memory.is_kept(row as usize)) {
                self.dropped[row as usize] = true;
            }
        }
        self.shrink(&rows, BLOCK, sequence);
    }

    /// Shrinks families (ascending) by a factor along their first large dimension.
    fn shrink(&mut self, rows: &[u32], times: i64, of: i64) {
        for item in self.items_of(|owner| matches!(owner, super::Owner::Family(row) if is_among(rows, row as usize))) {
            self.change(item, |node| {
                let Some(at) = (0..node.dimensions.len()).max_by_key(|&d| node.dimensions[d]) else { return false };
                let size = i128::from(node.dimensions[at]) * i128::from(times) / i128::from(of.max(1));
                resize::set_dimension(node, at, i64::try_from(size).unwrap_or(i64::MAX).max(1));
                true
            });
        }
    }

    /// Peak bytes of temporaries if the compiler rematerialised nothing: what it recomputes (`.remat` in names) is kept
    /// from the first time on.
    pub(super) fn live_without_recomputation(&self, sizes: &Sizes) -> u64 {
        let mut first_of: HashMap<String, usize> = HashMap::new();
        let mut spans: Vec<(usize, u32)> = Vec::new();
        let mut blocks = sizes.blocks.clone();
        for (i, &family) in sizes.family.iter().enumerate() {
            let root = self.memory.families.list[family as usize].root;
            let Some(instruction) = self.program.buffers.instruction_of(root) else { continue };
            let name = self.program.text.instruction_name(instruction);
            let place = self.program.buffer_index(root);
            let (plain, is_again) = match name.split_once(".remat") {
                Some((plain, _)) => (plain.to_owned(), true),
                None => (name, false),
            };
            let key = format!("{plain}{place:?}");
            match first_of.get(&key) {
                Some(&first) if is_again => {
                    spans.push((first, blocks[i].end));
                    blocks[i].size = 0;
                }
                Some(_) => {}
                None => {
                    first_of.insert(key, i);
                }
            }
        }
        for (first, end) in spans {
            blocks[first].end = blocks[first].end.max(end);
        }
        packing::most_live(&blocks).0
    }
}
