//! Edit of a dimension: another size for it, and for what follows it.

use std::collections::HashSet;

use super::base::{Base, Role};
use super::follows::Follows;
use super::memory::{HARDLY_ANY, Owner};
use super::resize;
use super::saved_for_backward::LEAST_CUT;
use super::state::State;
use crate::analysis::names::argument::Hint;
use crate::model::{Bytes, FastSet, ShapeNode, outline};

/// Least part of a dimension, as its divisor, that is no padding any more.
const MARGIN: i64 = 16;

impl State<'_> {
    /// Gives dimensions of one size another, and their products with others in proportion.
    pub(super) fn dimension(&mut self, from: i64, to: i64) {
        self.kinds.dimension = true;
        let memory = self.memory;
        if let Some(parts) = self.parts_of_arguments(from).filter(|parts| to % parts == 0) {
            let (own, changed) = (from / parts, to / parts);
            self.warn(format!("{from} is divided over {parts} devices: each has {own}, which become {changed}"));
            return self.dimension(own, changed);
        }
        let arguments: Vec<&ShapeNode> = memory
            .base
            .iter()
            .filter(|base| matches!(base.role, Role::Argument { .. }))
            .filter_map(|base| resize::node_of(self.program, base.buffer))
            .collect();
        let merged = resize::merged_sizes(&arguments, from);
        // Positions as many as a layer has features: what is meant are the positions.
        let is_length = memory.data.iter().any(|data| data.dimensions.iter().skip(1).any(|&size| size == from));
        let is_of_data = is_length
            && memory.trained.iter().any(|&row| {
                resize::node_of(self.program, memory.base[row].buffer)
                    .is_some_and(|node| node.dimensions.contains(&from))
            });
        if is_of_data {
            self.warn(format!("inputs and weights both have a dimension of {from}; that of the inputs is changed"));
        }
        // What is written into a cache does not make it as long: it has its own length.
        let is_cache =
            |base: &&Base| matches!(&base.role, Role::Argument { path, .. } if Hint::of(path) == Hint::Cache);
        let caches = memory.base.iter().filter(is_cache).filter_map(|base| resize::node_of(self.program, base.buffer));
        let of_caches: HashSet<i64> = caches.flat_map(|node| node.dimensions.iter().copied()).collect();
        let followed = memory.followed_size(self.program, from, is_of_data);
        let weights = memory.weights(self.program);
        let items =
            (0..self.shape_of.len()).map(|item| (item, followed.get(item).copied().unwrap_or(Follows::Unknown)));
        let mut blocks_now: FastSet<i64> = FastSet::default();
        let changed = self.change_by(items, |node, follows| {
            let mut is_changed = false;
            for at in follows.dimensions() {
                let size = node.dimensions.get(at).copied().filter(|&size| size % from == 0);
                // A little is added where a product is computed in blocks.
                let padded = node.dimensions.get(at).map_or(0, |&size| size.saturating_sub(from));
                if padded > 0 && padded < from / MARGIN {
                    resize::set_dimension(node, at, to.saturating_add(padded));
                    is_changed = true;
                    continue;
                }
                // Of blocks that a length is divided into, there are as many more or fewer.
                let blocks = node.dimensions.get(at).copied().filter(|&size| size > 1 && size < from && is_length);
                let scaled = blocks.filter(|size| from % size == 0 && size.saturating_mul(to) % from == 0);
                if let Some(size) = scaled {
                    blocks_now.insert(size);
                    resize::set_dimension(node, at, size.saturating_mul(to) / from);
                    is_changed = true;
                    continue;
                }
                let is_own = |size: i64| size != from && of_caches.contains(&size);
                if let Some(size) = size.filter(|&size| (is_of_data || size != from) && !is_own(size)) {
                    resize::set_dimension(node, at, (size / from).saturating_mul(to));
                    is_changed = true;
                }
            }
            if is_of_data && (follows != Follows::Unknown || weights.contains(&outline(&node.dimensions))) {
                return is_changed;
            }
            // Products with it are those that follow; where none is known to, those that arguments have.
            let merged = if matches!(follows, Follows::In(_)) { &[][..] } else { merged.as_slice() };
            is_changed | resize::replace_size(node, from, to, merged)
        });
        self.collect_blocks(&blocks_now, (from, to));
        if changed == 0 {
            self.find_nothing(&format!("no buffer has a dimension of {from}"), std::iter::empty());
        } else {
            self.warn_of_little(from);
        }
        self.warn_of_one_less(from);
        let twice = arguments.iter().filter(|n| n.dimensions.iter().filter(|&&d| d == from).count() > 1).count();
        if twice > 0 {
            self.warn(format!(
                "{twice} arguments have more than one dimension of {from}; all of them are changed, which may be more than you intend"
            ));
        }
    }

    /// What a loop over the blocks of a length saves has a slice for each of them.
    fn collect_blocks(&mut self, blocks: &FastSet<i64>, (from, to): (i64, i64)) {
        if blocks.is_empty() {
            return;
        }
        let stacks: FastSet<u32> = self.memory.kept.stacks.iter().map(|stack| stack.family).collect();
        let is_stack = |owner| matches!(owner, Owner::Family(row) if stacks.contains(&row));
        let items: Vec<usize> = self.items_of(is_stack).filter(|&item| !self.is_changed(item)).collect();
        self.change(items.into_iter(), |node| {
            // Of a loop in another, they come after the slices of that.
            let Some(at) = node.dimensions.iter().take(2).position(|size| blocks.contains(size)) else { return false };
            resize::set_dimension(node, at, node.dimensions[at].saturating_mul(to) / from);
            true
        });
    }

    /// Warns where hardly any temporaries follow a dimension, as where most are made in multiples of it that are not known.
    fn warn_of_little(&mut self, size: i64) {
        let memory = self.memory;
        let is_temporary = |item: usize| matches!(memory.items[item].owner, Owner::Family(_));
        let temporaries = (0..memory.items.len()).filter(|&item| is_temporary(item));
        let (mut all, mut changed) = (0u64, 0u64);
        for item in temporaries {
            let bytes = memory.item_bytes[item];
            all = all.saturating_add(bytes);
            changed = changed.saturating_add(if self.is_changed(item) { bytes } else { 0 });
        }
        if changed < all / HARDLY_ANY && memory.temporaries() > memory.allocated / HARDLY_ANY {
            self.warn(format!(
                "hardly any temporaries have a dimension of {size}: what is made of it in other sizes stays as it is"
            ));
        }
    }

    /// Into how many parts inputs, else other arguments, divide a dimension that has this size on all devices together, where
    /// none has it on one.
    fn parts_of_arguments(&self, size: i64) -> Option<i64> {
        let memory = self.memory;
        let inputs = memory.data.iter().map(|data| &memory.base[data.base as usize]);
        let has_it = |buffer| resize::node_of(self.program, buffer).is_some_and(|node| node.dimensions.contains(&size));
        if inputs.clone().any(|base| has_it(base.buffer)) {
            return None;
        }
        let parts_of = |base: &Base| {
            let Role::Argument { number, .. } = &base.role else { return None };
            let tiles = &self.program.sharding_of_parameter(*number)?.tiles;
            let mut divided = resize::node_of(self.program, base.buffer)?.dimensions.iter().zip(tiles);
            let is_meant = |&(&own, &parts): &(&i64, &i64)| parts > 1 && own.checked_mul(parts) == Some(size);
            divided.find(is_meant).map(|found| *found.1)
        };
        let is_anywhere = || memory.items.iter().any(|item| has_it(item.buffer));
        inputs.into_iter().find_map(parts_of).or_else(|| {
            let others = || memory.base.iter().find_map(parts_of);
            others().filter(|_| !is_anywhere())
        })
    }

    /// Warns where temporaries have one less instead of a size, as where a loss cuts the last position off.
    fn warn_of_one_less(&mut self, size: i64) {
        let memory = self.memory;
        let (mut of_size, mut of_less) = (0u64, 0u64);
        for (item, &bytes) in memory.items.iter().zip(&memory.item_bytes) {
            let node = resize::node_of(self.program, item.buffer);
            let Some(node) = node.filter(|_| matches!(item.owner, Owner::Family(_))) else { continue };
            if node.dimensions.contains(&size) {
                of_size = of_size.saturating_add(bytes);
            } else if size > LEAST_CUT && node.dimensions.contains(&(size - 1)) {
                of_less = of_less.saturating_add(bytes);
            }
        }
        if of_less > of_size {
            let less = size - 1;
            self.warn(format!(
                "{} of temporaries have a dimension of {less}, not {size}, and stay as they are: where the last position is cut off, change {less} too",
                Bytes(of_less).short()
            ));
        }
    }
}
