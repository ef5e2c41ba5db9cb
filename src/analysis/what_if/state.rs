//! The memory of a program with edits applied one after the other: sizes, live ranges, and reuse of memory.

use std::collections::{BTreeSet, HashMap};

use super::batch;
use super::edit::{Arguments, Edit};
use super::memory::{Base, Memory, Owner, Role};
use super::resize;
use crate::analysis::names::argument::holds_state;
use crate::analysis::packing::Block;
use crate::model::{BufferId, ElementType, Program, ShapeNode};

/// Kinds of change that were applied, each with its own expected error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds {
    /// An argument was donated.
    pub donation: bool,
    /// A dimension was changed.
    pub dimension: bool,
    /// The element type of arguments or of everything was changed.
    pub dtype: bool,
    /// The element type of temporaries was changed.
    pub compute: bool,
    /// The batch was scaled.
    pub batch: bool,
    /// Arguments were sharded.
    pub sharding: bool,
    /// Temporaries were sharded over devices.
    pub constrain: bool,
    /// A scope was recomputed in the backward pass.
    pub remat: bool,
    /// Something was computed in parts.
    pub parts: bool,
    /// A buffer was dropped or freed by hand, which is exact.
    pub by_hand: bool,
}

/// Rows of the base by their shape.
type ByShape = HashMap<(ElementType, Vec<i64>), BTreeSet<usize>>;

/// The memory after some changes.
#[derive(Debug)]
pub struct State<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a Memory,
    /// Changed shapes, by item.
    pub(super) nodes: Vec<Option<Box<ShapeNode>>>,
    /// Whether each base allocation has been removed.
    pub(super) gone: Vec<bool>,
    /// Whether each family was dropped.
    pub(super) dropped: Vec<bool>,
    /// First and last time by family.
    pub(super) spans: Vec<(u32, u32)>,
    /// Second live ranges of families that are computed twice.
    pub(super) again: Vec<(u32, u32, u32)>,
    /// Blocks that the unchanged program does not have: bytes, first and last time, and the family they come from.
    pub(super) added: Vec<(u64, u32, u32, u32)>,
    /// Rows of arguments that are donated.
    pub(super) donated: Vec<u32>,
    /// Pairs of argument and result that share memory by these changes.
    pub pairs: Vec<(u32, u32)>,
    /// Caveats, one sentence each.
    pub warnings: Vec<String>,
    /// Kinds of change applied so far.
    pub kinds: Kinds,
    /// Smallest factor by which temporaries might still shrink.
    pub least_factor: f64,
    in_place: bool,
    /// Sizes of dimensions that are merged with their neighbours.
    merged: Vec<i64>,
}

/// Sizes and blocks after the changes.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    /// Bytes by row of the base; 0 if it now shares another row's memory.
    pub base: Vec<u64>,
    /// Blocks to pack.
    pub blocks: Vec<Block>,
    /// Family of each block.
    pub family: Vec<u32>,
}

impl<'a> State<'a> {
    /// The unchanged memory.
    pub fn new(program: &'a Program, memory: &'a Memory) -> Self {
        Self {
            program,
            memory,
            nodes: vec![None; memory.items.len()],
            gone: vec![false; memory.base.len()],
            dropped: vec![false; memory.families.list.len()],
            spans: memory.families.list.iter().map(|f| (2 * f.first, 2 * f.last)).collect(),
            again: Vec::new(),
            added: Vec::new(),
            donated: Vec::new(),
            pairs: Vec::new(),
            warnings: Vec::new(),
            kinds: Kinds::default(),
            least_factor: 1.0,
            in_place: false,
            merged: Vec::new(),
        }
    }

    /// Removes families.
    pub fn drop_families(&mut self, families: &[usize]) {
        for &family in families {
            if let Some(dropped) = self.dropped.get_mut(family) {
                *dropped = true;
            }
        }
    }

    /// Applies a change.
    pub fn apply(&mut self, edit: &Edit) {
        match edit {
            Edit::Donate(arguments) => self.donate(arguments),
            Edit::Dtype(arguments, ty) => self.dtype(arguments, *ty),
            Edit::Compute(ty) => self.compute(*ty),
            Edit::Dim(from, to) => self.dimension(*from, *to),
            Edit::Unpad(size) => self.unpad_dimension(*size),
            Edit::Batch(factor) => self.batch(*factor),
            Edit::Shard(arguments, parts) => self.shard(arguments, i64::from(*parts)),
            Edit::Constrain(parts) => self.constrain(i64::from(*parts)),
            Edit::Micro(parts) => self.micro(i64::from(*parts)),
            Edit::Remat(scope, layers) => self.remat(scope, *layers),
            Edit::Chunk(scope, parts) => self.chunk(scope, i64::from(*parts)),
            Edit::Blockwise(scope) => self.blockwise(scope),
            Edit::Drop(buffer) => self.drop(*buffer),
            Edit::Free(buffer, point) => self.free(*buffer, *point),
        }
    }

    pub(super) fn warn(&mut self, text: String) {
        if !self.warnings.contains(&text) {
            self.warnings.push(text);
        }
    }

    fn base(&self, row: usize) -> &'a Base {
        &self.memory.base[row]
    }

    /// Present shape of an item.
    pub(super) fn node(&self, item: usize) -> Option<&ShapeNode> {
        match &self.nodes[item] {
            Some(node) => Some(node),
            None => resize::node_of(self.program, self.memory.items[item].buffer),
        }
    }

    /// Changes the shape of an item; returns whether it changed.
    pub(super) fn change(&mut self, item: usize, how: impl FnOnce(&mut ShapeNode) -> bool) -> bool {
        let Some(mut node) = self.node(item).cloned() else { return false };
        if !how(&mut node) {
            return false;
        }
        self.nodes[item] = Some(Box::new(node));
        true
    }

    /// Items of the base rows that a test accepts.
    pub(super) fn items_of(&self, accept: impl Fn(Owner) -> bool) -> Vec<usize> {
        (0..self.memory.items.len()).filter(|&i| accept(self.memory.items[i].owner)).collect()
    }

    /// Rows of the arguments named; warns if there are none.
    fn arguments(&mut self, arguments: &Arguments) -> Vec<usize> {
        let rows: Vec<usize> = self.memory.arguments(|path| arguments.include(path)).collect();
        if rows.is_empty() {
            self.warn(format!("no argument begins with {arguments}"));
        }
        rows
    }

    fn donate(&mut self, arguments: &Arguments) {
        self.kinds.donation = true;
        for row in self.arguments(arguments) {
            if matches!(self.base(row).role, Role::Argument { is_donated: false, .. }) {
                self.donated.push(row as u32);
            }
        }
    }

    fn dtype(&mut self, arguments: &Arguments, ty: ElementType) {
        self.kinds.dtype = true;
        if arguments.is_all() {
            self.in_place = true;
            for item in 0..self.nodes.len() {
                self.change(item, |node| {
                    let meant = resize::is_meant(node.element_type, ty);
                    if meant {
                        resize::set_type(node, ty);
                    }
                    meant
                });
            }
            return;
        }
        let mut is_meant = vec![false; self.memory.base.len()];
        for row in self.arguments(arguments) {
            is_meant[row] = true;
        }
        for item in self.items_of(|owner| matches!(owner, Owner::Base(row) if is_meant[row as usize])) {
            self.change(item, |node| {
                // Floats may be quantised to integers, but integers are never converted to floats.
                let meant = resize::is_float(node.element_type) || !resize::is_float(ty);
                resize::set_type(node, if meant { ty } else { node.element_type });
                meant
            });
        }
    }

    fn compute(&mut self, ty: ElementType) {
        self.kinds.compute = true;
        for item in self.items_of(|owner| matches!(owner, Owner::Family(_))) {
            self.change(item, |node| {
                let meant = resize::is_meant(node.element_type, ty);
                if meant {
                    resize::set_type(node, ty);
                }
                meant
            });
        }
    }

    fn dimension(&mut self, from: i64, to: i64) {
        self.kinds.dimension = true;
        let arguments: Vec<&ShapeNode> = self
            .memory
            .base
            .iter()
            .filter(|base| matches!(base.role, Role::Argument { .. }))
            .filter_map(|base| resize::node_of(self.program, base.buffer))
            .collect();
        let merged = resize::merged_sizes(&arguments, from);
        let mut changed = 0usize;
        for item in 0..self.nodes.len() {
            changed += usize::from(self.change(item, |node| resize::replace_size(node, from, to, &merged)));
        }
        if changed == 0 {
            self.warn(format!("no buffer has a dimension of {from}"));
        }
        let twice = arguments.iter().filter(|n| n.dimensions.iter().filter(|&&d| d == from).count() > 1).count();
        if twice > 0 {
            self.warn(format!(
                "{twice} arguments have more than one dimension of {from}; all of them are changed, which may be more than you intend"
            ));
        }
    }

    fn unpad_dimension(&mut self, size: i64) {
        self.kinds.dimension = true;
        let is_padded = |item: usize| self.node(item).is_some_and(|node| resize::is_padded_by(node, size));
        if !(0..self.nodes.len()).any(is_padded) {
            self.warn(format!("no buffer is padded because of a dimension of {size}"));
        }
        self.merged.push(size);
    }

    fn shard(&mut self, arguments: &Arguments, parts: i64) {
        self.kinds.sharding = true;
        if parts <= 1 {
            return;
        }
        let rows = self.arguments(arguments);
        let (data, others): (Vec<usize>, Vec<usize>) = rows
            .into_iter()
            .partition(|&row| self.memory.data_of(row).is_some_and(|d| d.parts == 1) && !self.is_state(row));
        if let Some(batch) = data.first().and_then(|&row| self.memory.data_of(row)) {
            let batch = batch.batch();
            if batch % parts == 0 {
                self.kinds.batch = true;
                self.scale_batch(batch, batch / parts);
            } else {
                self.warn(format!("a batch of {batch} cannot be divided by {parts}"));
            }
        }
        let mut undivided = Vec::new();
        let mut results_follow = false;
        let mut is_weight = false;
        let mut results = self.results_by_shape();
        for row in others {
            let Some((dimension, follows)) = self.dimension_to_divide(row, parts, &results) else {
                undivided.push(row);
                continue;
            };
            is_weight |= !self.is_state(row);
            self.divide(row, dimension, parts);
            if let Some(result) = follows {
                results_follow = true;
                self.divide_result(result, dimension, parts, &mut results);
            }
        }
        if !undivided.is_empty() {
            let arguments = match undivided.len() {
                1 => "1 argument has".to_owned(),
                many => format!("{many} arguments have"),
            };
            self.warn(format!("{arguments} no dimension divisible by {parts}, and stay replicated"));
        }
        if results_follow {
            self.warn("results of the same shape are assumed to be sharded in the same way".to_owned());
        }
        if is_weight {
            self.least_factor = self.least_factor.min(1.0 / parts as f64);
            if self.memory.data.iter().any(|d| d.parts == parts) {
                self.warn(format!(
                    "the batch is sharded {parts} ways too; if over the same mesh axis, activations may end up holding the global batch and the peak can triple. Constrain them with jax.lax.with_sharding_constraint"
                ));
            }
        }
    }

    /// Whether an argument is per-sample state rather than the sample itself.
    fn is_state(&self, row: usize) -> bool {
        match &self.base(row).role {
            Role::Argument { path, .. } => self.memory.is_data(row) && holds_state(path),
            _ => false,
        }
    }

    /// The dimension to shard, and the result to shard with it: preferably one that makes the argument match an
    /// unpaired result; else the one that leaves least padding, and of those the largest.
    fn dimension_to_divide(&self, row: usize, parts: i64, results: &ByShape) -> Option<(usize, Option<usize>)> {
        let node = self.node(self.memory.item_of(row)?)?;
        let divisible = |d: usize| node.dimensions[d] % parts == 0 && node.dimensions[d] > 0;
        let is_kept = matches!(self.base(row).role, Role::Argument { is_donated: false, .. });
        if is_kept {
            for d in (0..node.dimensions.len()).filter(|&d| divisible(d)) {
                let mut divided = node.dimensions.clone();
                divided[d] /= parts;
                if results.contains_key(&(node.element_type, divided)) {
                    return Some((d, None));
                }
            }
        }
        let best = (0..node.dimensions.len()).filter(|&d| divisible(d)).min_by_key(|&d| {
            let mut divided = node.clone();
            resize::set_dimension(&mut divided, d, node.dimensions[d] / parts);
            (divided.padded_size(), std::cmp::Reverse(node.dimensions[d]))
        })?;
        let follows = || results.get(&(node.element_type, node.dimensions.clone()))?.first().copied();
        Some((best, if is_kept { follows() } else { None }))
    }

    /// Rows of the results, ascending, by their present shape.
    fn results_by_shape(&self) -> ByShape {
        let mut results = ByShape::new();
        for (row, base) in self.memory.base.iter().enumerate() {
            if !matches!(base.role, Role::Result(_)) {
                continue;
            }
            if let Some(node) = self.memory.item_of(row).and_then(|item| self.node(item)) {
                results.entry((node.element_type, node.dimensions.clone())).or_default().insert(row);
            }
        }
        results
    }

    /// Shards a dimension of a base row.
    fn divide(&mut self, row: usize, dimension: usize, parts: i64) {
        let Some(first) = self.memory.item_of(row) else { return };
        let own = self.memory.items[first..].iter().take_while(|item| item.owner == Owner::Base(row as u32)).count();
        for item in first..first + own {
            self.change(item, |node| {
                let Some(&size) = node.dimensions.get(dimension) else { return false };
                resize::set_dimension(node, dimension, size / parts);
                true
            });
        }
    }

    /// As [`Self::divide`], for a result, whose shape entry is updated.
    fn divide_result(&mut self, row: usize, dimension: usize, parts: i64, results: &mut ByShape) {
        let shape = |state: &Self| {
            let node = state.node(state.memory.item_of(row)?)?;
            Some((node.element_type, node.dimensions.clone()))
        };
        if let Some(before) = shape(self)
            && let Some(rows) = results.get_mut(&before)
        {
            rows.remove(&row);
            if rows.is_empty() {
                results.remove(&before);
            }
        }
        self.divide(row, dimension, parts);
        if let Some(after) = shape(self) {
            results.entry(after).or_default().insert(row);
        }
    }

    fn constrain(&mut self, parts: i64) {
        self.kinds.constrain = true;
        let memory = self.memory;
        let Some(whole) = batch::GlobalBatch::new(self.program, &memory.base, &memory.data) else {
            self.warn("no argument's batch is sharded over devices: nothing is changed".to_owned());
            return;
        };
        for item in self.items_of(|owner| matches!(owner, Owner::Family(_))) {
            self.change(item, |node| {
                let Some(at) = whole.dimension(node) else { return false };
                let size = node.dimensions[at];
                if size % parts == 0 {
                    resize::set_dimension(node, at, size / parts);
                }
                size % parts == 0
            });
        }
    }

    fn find(&mut self, number: i64) -> Option<BufferId> {
        let row = self.program.buffers.number.iter().position(|&n| n == number);
        if row.is_none() {
            self.warn(format!("there is no buffer {number}"));
        }
        row.map(BufferId::from_index)
    }

    fn drop(&mut self, number: i64) {
        self.kinds.by_hand = true;
        let Some(buffer) = self.find(number) else { return };
        if let Some(family) = self.memory.families.of(buffer) {
            self.dropped[family] = true;
        } else if let Some(row) = self.row_of(buffer) {
            self.gone[row] = true;
        } else {
            self.warn(format!("buffer {number} has no memory of its own here"));
        }
    }

    fn row_of(&self, buffer: BufferId) -> Option<usize> {
        let allocation = self.program.buffers.allocation_of(buffer)?;
        self.memory.base.iter().position(|base| base.allocation == allocation)
    }

    fn free(&mut self, number: i64, point: u32) {
        self.kinds.by_hand = true;
        let Some(buffer) = self.find(number) else { return };
        let Some(family) = self.memory.families.of(buffer) else {
            self.warn(format!("buffer {number} has no heap events; it cannot be freed earlier"));
            return;
        };
        let event = if self.memory.points.is_empty() {
            point
        } else {
            (self.memory.points.partition_point(|&p| p <= point) as u32).saturating_sub(1)
        };
        let (first, last) = self.spans[family];
        self.spans[family].1 = (2 * event).clamp(first, last.max(first));
    }

    /// Bytes by item.
    fn item_size(&self, item: usize) -> u64 {
        let buffer = self.memory.items[item].buffer;
        let present = self.program.buffers.size_of(buffer).0;
        let merged = |node: &ShapeNode| self.merged.iter().any(|&size| resize::is_padded_by(node, size));
        match (&self.nodes[item], resize::node_of(self.program, buffer)) {
            (None, Some(node)) if merged(node) => resize::size_in_rows(node).min(present),
            (Some(node), Some(before)) if merged(node) => {
                resize::size_in_rows(node).min(resize::resized(present, before, node))
            }
            (Some(node), Some(before)) => resize::resized(present, before, node),
            _ => present,
        }
    }

    pub(super) fn base_sizes(&self) -> Vec<u64> {
        let mut sizes: Vec<u64> = self.memory.base.iter().map(|base| base.size).collect();
        let mut largest: Vec<Option<(u64, u64)>> = vec![None; sizes.len()];
        for (i, item) in self.memory.items.iter().enumerate() {
            let Owner::Base(row) = item.owner else { break };
            let entry = largest[row as usize].get_or_insert((0, 0));
            entry.0 = entry.0.max(self.program.buffers.size_of(item.buffer).0);
            entry.1 = entry.1.max(self.item_size(i));
        }
        for (size, largest) in sizes.iter_mut().zip(largest) {
            let Some((before, after)) = largest else { continue };
            if before == *size {
                *size = after;
            } else if before > 0 {
                *size = u64::try_from(u128::from(*size) * u128::from(after) / u128::from(before)).unwrap_or(u64::MAX);
            }
        }
        sizes
    }

    /// Finishes: pairs donated arguments, lets results reuse memory, and returns what is left to pack.
    pub fn finish(&mut self) -> Sizes {
        self.pair();
        let mut base = self.base_sizes();
        for (size, gone) in base.iter_mut().zip(&self.gone) {
            if *gone {
                *size = 0;
            }
        }
        let mut families = vec![0u64; self.spans.len()];
        for (i, item) in self.memory.items.iter().enumerate() {
            if let Owner::Family(row) = item.owner {
                families[row as usize] = families[row as usize].max(self.item_size(i));
            }
        }
        for (size, dropped) in families.iter_mut().zip(&self.dropped) {
            if *dropped {
                *size = 0;
            }
        }
        if self.in_place {
            self.share_in_place(&families);
        }
        let mut blocks: Vec<Block> =
            families.iter().zip(&self.spans).map(|(&size, &(start, end))| Block { size, start, end }).collect();
        let mut family: Vec<u32> = (0..blocks.len() as u32).collect();
        for &(row, start, end) in &self.again {
            blocks.push(Block { size: families[row as usize], start, end });
            family.push(row);
        }
        for &(size, start, end, row) in &self.added {
            blocks.push(Block { size, start, end });
            family.push(row);
        }
        Sizes { base, blocks, family }
    }
}
