//! Edits that compute in parts what is now computed at once: chunked losses and block-wise attention.

use std::collections::BTreeMap;

use super::edit::LOGITS;
use super::head_size::Heads;
use super::resize;
use super::saved_for_backward::{BLOCK, is_among};
use super::state::{RowSums, State};
use crate::analysis::names::pass::Pass;
use crate::analysis::names::pattern::matches;
use crate::analysis::names::scope;
use crate::analysis::packing::Block;
use crate::model::{FastMap, FastSet};

/// Whether an operation's name, or one of the scopes it is in, matches a pattern.
fn is_in_scope(pattern: &str, name: &str) -> bool {
    matches(pattern, name) || scope::path(name).iter().any(|part| matches(pattern, part))
}

impl State<'_> {
    /// Computes logits, or the operations that a pattern matches, in parts.
    pub(super) fn chunk(&mut self, scope: &str, parts: i64) {
        self.kinds.parts = true;
        let memory = self.memory;
        let rows: Vec<u32> = if scope == LOGITS {
            memory.kept.logits.clone()
        } else {
            let named = |&row: &u32| is_in_scope(scope, memory.family_name(row as usize));
            (0..memory.families.list.len() as u32).filter(named).collect()
        };
        if rows.is_empty() {
            if scope == LOGITS {
                self.decline("no logits were found".to_owned());
            } else {
                self.find_nothing(&format!("no operation is in a scope called {scope}"), std::iter::empty());
            }
        }
        self.shrink(&rows, 1, parts);
        self.order_backward_pass();
    }

    /// Computes attention block by block.
    pub(super) fn blockwise(&mut self, scope: &str) {
        self.kinds.parts = true;
        let memory = self.memory;
        let named = |&&row: &&u32| scope == "*" || is_in_scope(scope, memory.family_name(row as usize));
        let rows: Vec<u32> = memory.kept.scores.iter().filter(named).copied().collect();
        let sequence = memory.kept.sequence.unwrap_or(BLOCK);
        if rows.is_empty() || sequence <= BLOCK {
            if memory.kept.scores.is_empty() || sequence <= BLOCK {
                self.decline("no attention scores longer than a block were found".to_owned());
            } else {
                self.find_nothing(&format!("no attention scores are in a scope called {scope}"), std::iter::empty());
            }
            return;
        }
        // Scores are recomputed block by block in a layer's backward pass; none are kept.
        self.in_blocks.resize(memory.families.list.len(), false);
        let layer_of = |at: usize| memory.kept.turn.as_ref()?.layer_of.get(at).copied().flatten();
        let mut sums: BTreeMap<(Option<u32>, u64), RowSums> = BTreeMap::new();
        for &row in &rows {
            let at = row as usize;
            let is_forward = memory.kept.passes.get(at) == Some(&Pass::Forward);
            let is_stack = memory.kept.is_stack(at);
            if is_stack || is_forward {
                let (first, last) = self.spans[at];
                let own = sums.entry((layer_of(at), memory.family_bytes[at])).or_insert(RowSums {
                    family: row,
                    life: (first, last),
                    has_operands: false,
                });
                if last > own.life.1 {
                    own.family = row;
                }
                own.life = (own.life.0.min(first), own.life.1.max(last));
                self.in_blocks[at] = true;
            }
            if is_stack || (is_forward && memory.is_kept(at)) {
                self.dropped[at] = true;
            }
        }
        self.shrink(&rows, BLOCK, sequence);
        if let Some(turn) = memory.kept.turn.as_ref().map(|turn| turn.at) {
            self.sums.extend(sums.into_values().filter(|sums| (sums.life.0..sums.life.1).contains(&turn)));
        }
        // Scores of a layer may be kept in two types.
        let mut known = FastSet::default();
        for at in 0..self.sums.len() {
            let family = self.sums[at].family;
            let count = self.shape(self.first_item_of(family)).map(|known| known.node.element_count());
            self.sums[at].has_operands = known.insert((layer_of(family as usize), count));
        }
        self.may_stay |= !self.sums.is_empty();
        self.order_backward_pass();
    }

    /// What the kernels keep for the backward pass besides their operands. In the worst case, JAX's flash attention, the
    /// greatest score and the sum of each row, in 32 bits and as often as a block has columns; splash attention keeps one
    /// number. Of small heads, [`Heads`], both keep padded operands. A layer that is checkpointed keeps
    /// none: they are computed again with the rest of it.
    pub(super) fn blocks_of_sums(&self) -> Vec<(Block, u32)> {
        if self.sums.is_empty() {
            return Vec::new();
        }
        // Layers have scores of few shapes.
        let mut of_shapes: FastMap<&[i64], Option<Heads>> = FastMap::default();
        let mut heads_of = |family: u32| {
            let node = self.memory.node_of_family(self.program, family)?;
            *of_shapes.entry(&node.dimensions).or_insert_with(|| self.memory.padded_heads(self.program, node))
        };
        let in_scans: FastMap<u32, (i64, u32)> =
            self.again_in_scans.iter().map(|&(row, layers, start)| (row, (layers, start))).collect();
        // When what a checkpointed layer computes again is no longer needed.
        let ends: FastMap<u32, u32> = self.again.iter().map(|&(row, _, end)| (row, end)).collect();
        let mut block = |sums: &RowSums| {
            let RowSums { family, life: (first, last), has_operands } = *sums;
            let known = self.shape(self.first_item_of(family))?;
            let bits = u64::from(known.node.element_type.storage_bits().max(1));
            let numbers = known.padded?.0.saturating_mul(2 * 32 / bits);
            let rows = known.node.element_count() / BLOCK.unsigned_abs();
            let heads = if has_operands { heads_of(family) } else { None };
            let operands = heads.map_or(0, |heads| heads.more(rows));
            let size = if self.is_cautious { numbers.saturating_add(operands) } else { operands };
            let block = if let Some(&(layers, start)) = in_scans.get(&family) {
                Block { size: size / layers.max(1).unsigned_abs(), start: start.min(last), end: last }
            } else {
                let end = ends.get(&family).copied().unwrap_or(last);
                let from = self.checkpointed.get(family as usize).copied().flatten();
                Block { size, start: from.map_or(first, |from| from.min(end)), end }
            };
            Some((block, family))
        };
        self.sums.iter().filter_map(&mut block).filter(|found| found.0.size > 0).collect()
    }

    /// The first item of a family.
    pub(super) fn first_item_of(&self, family: u32) -> usize {
        let owner = super::Owner::Family(family);
        self.memory.items.partition_point(|item| item.owner < owner)
    }

    /// Shrinks families (ascending) by a factor along their first large dimension.
    fn shrink(&mut self, rows: &[u32], times: i64, of: i64) {
        let is_meant = |owner| matches!(owner, super::Owner::Family(row) if is_among(rows, row as usize));
        let items = self.items_of(is_meant);
        self.change(items, |node| {
            let Some(at) = (0..node.dimensions.len()).max_by_key(|&d| node.dimensions[d]) else { return false };
            let size = i128::from(node.dimensions[at]) * i128::from(times) / i128::from(of.max(1));
            resize::set_dimension(node, at, i64::try_from(size).unwrap_or(i64::MAX).max(1));
            true
        });
    }
}
