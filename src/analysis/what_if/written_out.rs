//! Micro-batches in a loop that is written out, such as one of Python's: the program has the passes of each part of the
//! batch beside each other, and nothing makes the compiler finish one before it begins the next.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::base::Role;
use super::batch::products;
use super::edit::LOOP;
use super::memory::{Memory, Owner};
use super::saved_for_backward::is_among;
use super::state::State;
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::once::once;
use crate::analysis::packing::most_live;
use crate::model::{FastMap, FastSet, InstructionId, Opcode, Program, ShapeNode, outline};

/// Share of the weights that have as many gradients as there are micro-batches, at least: some products are computed
/// otherwise.
const MOST: f64 = 0.5;

/// Dimensions of weights, as their gradients have them, with how many weights and products have them.
type Counts = FastMap<Vec<i64>, (u32, u32)>;

impl Memory {
    /// How many micro-batches the program has the passes of beside each other, as a loop over them is written out; `None`
    /// if it has no such loop.
    #[must_use]
    pub fn written_out(&self, program: &Program) -> Option<i64> {
        let parts = self.parts_beside(program)?;
        let batch = self.data.first()?.batch();
        (self.part_of_batch(program) == Some(batch / parts)).then_some(parts)
    }

    /// The same, as the loops over layers tell that save the same, or the gradients of each weight. Other programs apply
    /// layers several times, too: what temporaries hold tells whether they do so to parts of the batch.
    pub(super) fn parts_beside(&self, program: &Program) -> Option<i64> {
        *once(&self.parts_beside, || {
            let batch = self.data.first()?.batch();
            if self.parts_of_loop.is_some() || batch < 2 {
                return None;
            }
            let parts = if self.kept.stacks.is_empty() { self.gradients_of_each(program) } else { self.equal_loops() };
            parts.filter(|&parts| parts > 1 && batch % parts == 0)
        })
    }

    /// How many loops save the same as the one that saves most.
    fn equal_loops(&self) -> Option<i64> {
        let mut saved: BTreeMap<InstructionId, Vec<u64>> = BTreeMap::new();
        for stack in &self.kept.stacks {
            saved.entry(stack.of_loop).or_default().push(self.family_bytes[stack.family as usize]);
        }
        let mut loops: BTreeMap<Vec<u64>, i64> = BTreeMap::new();
        for (_, mut sizes) in saved {
            sizes.sort_unstable();
            *loops.entry(sizes).or_default() += 1;
        }
        loops
            .into_iter()
            .max_by_key(|row| row.0.iter().fold(0u64, |sum, &size| sum.saturating_add(size)))
            .map(|row| row.1)
    }

    /// How many gradients most weights have: products of the backward pass of their dimensions, on all devices or on one.
    fn gradients_of_each(&self, program: &Program) -> Option<i64> {
        let mut counts: [Counts; 2] = [Counts::default(), Counts::default()];
        let mut elements: FastSet<u64> = FastSet::default();
        for &row in &self.trained {
            let node = program.buffer_node(self.base[row].buffer).filter(|node| node.dimensions.len() > 1);
            let Some(node) = node else { continue };
            let whole = whole_of(program, self, row, node);
            for (node, counts) in [&whole, node].into_iter().zip(&mut counts) {
                elements.insert(node.element_count());
                counts.entry(outline(&node.dimensions)).or_default().0 += 1;
            }
        }
        let is_product: Vec<bool> =
            (0..=u8::MAX).map(|row| matches!(program.opcodes.name(Opcode(row)), "dot" | "convolution")).collect();
        for (at, opcode) in program.instructions.ids().zip(&program.instructions.opcode) {
            if !is_product[usize::from(opcode.0)] {
                continue;
            }
            let Some(node) = program.shape_of(at).map(|shape| shape.root()) else { continue };
            if !elements.contains(&node.element_count()) || pass_of(&program.text.op_name(at)) != Pass::Backward {
                continue;
            }
            let outline = outline(&node.dimensions);
            counts.iter_mut().filter_map(|counts| counts.get_mut(&outline)).for_each(|count| count.1 += 1);
        }
        counts.iter().filter_map(of_most).max()
    }
}

/// As many products as most weights have at least, of those that have any.
fn of_most(counts: &Counts) -> Option<i64> {
    let mut of_each: Vec<(u32, u32)> =
        counts.values().filter(|count| count.1 > 0).map(|&(weights, products)| (products / weights, weights)).collect();
    of_each.sort_unstable_by_key(|&(products, _)| Reverse(products));
    let all: u32 = of_each.iter().map(|row| row.1).sum();
    let mut seen = 0;
    let most = of_each.iter().find(|row| {
        seen += row.1;
        f64::from(seen) >= f64::from(all) * MOST
    });
    most.map(|row| i64::from(row.0))
}

/// A weight as it is on all devices: its gradient is summed before it is divided.
fn whole_of(program: &Program, memory: &Memory, row: usize, node: &ShapeNode) -> ShapeNode {
    let Role::Argument { number, .. } = memory.base[row].role else { return node.clone() };
    let tiles = program.sharding_of_parameter(number).map_or(&[][..], |sharding| sharding.tiles.as_slice());
    let parts = tiles.iter().copied().chain(std::iter::repeat(1));
    let whole = node.dimensions.iter().zip(parts).map(|(&size, parts)| size.saturating_mul(parts.max(1)));
    ShapeNode::array(node.element_type, whole.collect())
}

impl State<'_> {
    /// Micro-batches in a loop that are written out now: one of them is in memory at a time.
    pub(super) fn roll_up(&mut self, parts: i64) {
        self.drop_other_parts(parts);
        self.is_rolled_up = true;
        self.add_sums();
    }

    /// More micro-batches that are written out: what is kept of each for its backward pass stays in memory together with
    /// that of the others, and the rest is smaller.
    pub(super) fn divide_further(&mut self, (batch, part): (i64, i64), parts: i64) {
        let memory = self.memory;
        if part % parts != 0 {
            self.warn(format!("parts of {part} samples per device cannot be divided by {parts}"));
            return;
        }
        self.warn(format!("the micro-batches are written out, as by a loop in Python: more of them are in memory together, too; `micro {LOOP}` runs them one after the other"));
        let peak = most_live(&memory.families.blocks()).1;
        let is_kept = |row: u32| {
            let at = row as usize;
            let is_saved = || memory.kept.is_stack(at) || memory.kept.passes.get(at) == Some(&Pass::Forward);
            memory.spans.get(at).is_some_and(|&(first, last)| (first..=last).contains(&peak))
                && is_saved()
                && !is_among(&memory.kept.logits, at)
        };
        let is_passing = |owner| matches!(owner, Owner::Family(row) if !is_kept(row));
        self.scale_items((batch, part), part / parts, &is_passing);
    }

    /// Leaves one part of the batch in memory of those that the program has the passes of beside each other.
    fn drop_other_parts(&mut self, parts: i64) {
        let memory = self.memory;
        // On one device, or on all of them where these divide something else.
        let devices = memory.data.iter().map(|data| data.parts).max().unwrap_or(1);
        let of_all = if devices > 1 { products(&memory.data, devices) } else { Vec::new() };
        let whole = products(&memory.data, 1).into_iter().chain(of_all);
        let sizes: FastSet<i64> = whole.map(|size| size / parts.max(1)).filter(|&size| size > 1).collect();
        let weights = memory.weights(self.program);
        let mut seen: FastMap<(&str, &[i64]), i64> = FastMap::default();
        for (row, family) in memory.families.list.iter().enumerate() {
            let Some(node) = self.program.buffer_node(family.root) else { continue };
            let is_part = node.dimensions.iter().any(|size| sizes.contains(size))
                && node.element_type.is_float()
                && !weights.contains(&outline(&node.dimensions));
            if !is_part {
                continue;
            }
            let count = seen.entry((memory.family_name(row), &node.dimensions)).or_default();
            self.dropped[row] |= *count % parts != 0;
            *count += 1;
        }
    }
}
