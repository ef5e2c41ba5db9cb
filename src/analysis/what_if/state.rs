//! The memory of a program with changes applied one after the other: sizes, lifetimes, and what takes over whose
//! memory.

use super::batch;
use super::edit::{Arguments, Edit};
use super::memory::{Base, Memory, Owner, Role};
use super::resize;
use crate::analysis::names::argument::holds_state;
use crate::analysis::packing::Block;
use crate::model::{BufferId, ElementType, EventKind, InstructionId, NO_ROW, Opcode, Program, ShapeNode};

/// Kinds of change, each with its own band of error.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Kinds {
    /// An argument was donated.
    pub donation: bool,
    /// A dimension.
    pub dimension: bool,
    /// Element type of arguments or of everything.
    pub dtype: bool,
    /// Element type of temporaries.
    pub compute: bool,
    /// The batch was scaled.
    pub batch: bool,
    /// Arguments divided that hold most of the memory.
    pub sharding: bool,
    /// Temporaries were divided over devices.
    pub constrain: bool,
    /// A scope was recomputed in the backward pass.
    pub remat: bool,
    /// Something computed in parts.
    pub parts: bool,
    /// By hand: exact as said.
    pub by_hand: bool,
}

/// The memory after some changes.
#[derive(Debug)]
pub struct State<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a Memory,
    /// Changed shapes, by item.
    pub(super) nodes: Vec<Option<Box<ShapeNode>>>,
    /// Base allocations that are not there any more.
    gone: Vec<bool>,
    /// Sizes of families dropped by hand.
    pub(super) dropped: Vec<bool>,
    /// First and last time by family.
    pub(super) spans: Vec<(u32, u32)>,
    /// Second parts of families that are computed twice.
    pub(super) again: Vec<(u32, u32, u32)>,
    /// Blocks that the unchanged program does not have: bytes, first and last time, and the family they come from.
    pub(super) added: Vec<(u64, u32, u32, u32)>,
    /// Rows of arguments that are donated.
    donated: Vec<u32>,
    /// Pairs of argument and result that share memory by these changes.
    pub pairs: Vec<(u32, u32)>,
    /// What to know.
    pub warnings: Vec<String>,
    /// Which kinds of change there are.
    pub kinds: Kinds,
    /// By how much temporaries might be smaller than said: their smallest factor.
    pub least_factor: f64,
    in_place: bool,
    /// Sizes of dimensions that are merged with their neighbours.
    merged: Vec<i64>,
}

/// Sizes and blocks after the changes.
#[derive(Debug, Clone, Default)]
pub struct Sizes {
    /// Bytes by row of the base; 0 where its memory is another's now.
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

    /// Takes families away.
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

    /// Rows of the arguments meant; warns where there is none.
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
        let rows = self.arguments(arguments);
        for item in self.items_of(|owner| matches!(owner, Owner::Base(row) if rows.contains(&(row as usize)))) {
            self.change(item, |node| {
                // Floats may be kept as whole numbers with scales; the other way round nothing is meant.
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
                "{twice} arguments have {from} in more than one dimension; all of them are changed, which may be more than you mean"
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
        let (data, others): (Vec<usize>, Vec<usize>) = rows.into_iter().partition(|&row| {
            self.memory.data.iter().any(|d| d.base as usize == row && d.parts == 1 && !self.is_state(row))
        });
        if let Some(batch) = data.first().and_then(|&row| self.memory.data.iter().find(|d| d.base as usize == row)) {
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
        for row in others {
            let Some((dimension, follows)) = self.dimension_to_divide(row, parts) else {
                undivided.push(row);
                continue;
            };
            is_weight |= !self.is_state(row);
            self.divide(row, dimension, parts);
            if let Some(result) = follows {
                results_follow = true;
                self.divide(result, dimension, parts);
            }
        }
        if !undivided.is_empty() {
            self.warn(format!("{} arguments have no dimension that {parts} divides; they stay whole", undivided.len()));
        }
        if results_follow {
            self.warn("results of the same shape are taken to be divided in the same way".to_owned());
        }
        if is_weight {
            self.least_factor = self.least_factor.min(1.0 / parts as f64);
            if self.memory.data.iter().any(|d| d.parts == parts) {
                self.warn(format!(
                    "the batch is divided by {parts} too; if that is the same mesh axis, activations may come to hold the batch of all devices and the peak can triple. Constrain them with jax.lax.with_sharding_constraint"
                ));
            }
        }
    }

    /// Whether an argument is state that is kept for each sample, not the sample itself.
    fn is_state(&self, row: usize) -> bool {
        match &self.base(row).role {
            Role::Argument { path, .. } => self.memory.data.iter().any(|d| d.base as usize == row) && holds_state(path),
            _ => false,
        }
    }

    /// The dimension to divide: one that makes the argument like a result that nothing pairs with; else the one that
    /// leaves least padding, the largest of equal ones. With it the result that follows.
    fn dimension_to_divide(&self, row: usize, parts: i64) -> Option<(usize, Option<usize>)> {
        let node = self.node(row_item(self.memory, row)?)?;
        let results = || {
            self.memory.base.iter().enumerate().filter_map(|(i, base)| {
                matches!(base.role, Role::Result(_)).then(|| Some((i, self.node(row_item(self.memory, i)?)?)))?
            })
        };
        let divisible = |d: usize| node.dimensions[d] % parts == 0 && node.dimensions[d] > 0;
        if matches!(self.base(row).role, Role::Argument { is_donated: false, .. }) {
            for d in (0..node.dimensions.len()).filter(|&d| divisible(d)) {
                let mut divided = node.dimensions.clone();
                divided[d] /= parts;
                if results().any(|(_, r)| r.element_type == node.element_type && r.dimensions == divided) {
                    return Some((d, None));
                }
            }
        }
        let best = (0..node.dimensions.len()).filter(|&d| divisible(d)).min_by_key(|&d| {
            let mut divided = node.clone();
            resize::set_dimension(&mut divided, d, node.dimensions[d] / parts);
            (divided.padded_size(), std::cmp::Reverse(node.dimensions[d]))
        })?;
        let follows = match self.base(row).role {
            Role::Argument { is_donated: false, .. } => {
                let same =
                    results().find(|(_, r)| r.element_type == node.element_type && r.dimensions == node.dimensions);
                same.map(|(i, _)| i)
            }
            _ => None,
        };
        Some((best, follows))
    }

    /// Divides a dimension of a base row.
    fn divide(&mut self, row: usize, dimension: usize, parts: i64) {
        let Some(first) = row_item(self.memory, row) else { return };
        let own = self.memory.items[first..].iter().take_while(|item| item.owner == Owner::Base(row as u32)).count();
        for item in first..first + own {
            self.change(item, |node| {
                let Some(&size) = node.dimensions.get(dimension) else { return false };
                resize::set_dimension(node, dimension, size / parts);
                true
            });
        }
    }

    fn constrain(&mut self, parts: i64) {
        self.kinds.constrain = true;
        let memory = self.memory;
        let Some(whole) = batch::GlobalBatch::new(self.program, &memory.base, &memory.data) else {
            self.warn("no argument's batch is divided over devices: nothing is changed".to_owned());
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
            self.warn(format!("buffer {number} has no heap events; it cannot be given back earlier"));
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

    /// Pairs donated arguments with results of the same shape, as JAX does: results in their order, each with the
    /// first argument of its shape and type.
    fn pair(&mut self) {
        let memory = self.memory;
        let mut waiting: Vec<(u32, bool)> = self.donated.iter().map(|&row| (row, true)).collect();
        waiting.extend(memory.donors.iter().filter(|row| !self.donated.contains(row)).map(|&row| (row, false)));
        waiting.sort_unstable();
        waiting.dedup_by_key(|w| w.0);
        let mut results: Vec<(&[i64], usize)> = memory
            .base
            .iter()
            .enumerate()
            .filter_map(|(i, base)| match &base.role {
                Role::Result(place) => Some((place.as_slice(), i)),
                _ => None,
            })
            .collect();
        results.sort_unstable();
        let sizes = self.base_sizes();
        let mut hosts = 0u64;
        for (_, result) in results {
            let Some(own) = row_item(memory, result) else { continue };
            let found = waiting.iter().position(|&(row, by_edit)| {
                let Some(item) = row_item(memory, row as usize) else { return false };
                let changed = by_edit || self.nodes[item].is_some() || self.nodes[own].is_some();
                let (Some(a), Some(b)) = (self.node(item), self.node(own)) else { return false };
                // An unchanged result has the shape that the program returns, whatever views made it.
                let returned = memory.base[result].returned.as_ref().filter(|_| self.nodes[own].is_none());
                let b = returned.unwrap_or(b);
                changed
                    && a.dimensions == b.dimensions
                    && a.element_type == b.element_type
                    && sizes[row as usize] == sizes[result]
            });
            let Some(at) = found else { continue };
            let (argument, _) = waiting.remove(at);
            // Temporaries that lie in the result before it exists need a new home: nothing is saved. What is only the
            // argument with a part of it written is no such temporary, whatever its shape.
            let base = &memory.base[result];
            let is_own = base.largest == base.buffer
                || (self.program.buffers.size_of(base.largest) == self.program.buffers.size_of(base.buffer)
                    && self.element_counts_agree(base.largest, base.buffer));
            if is_own {
                self.gone[result] = true;
                self.pairs.push((argument, result as u32));
            } else {
                hosts = hosts.saturating_add(sizes[result]);
            }
        }
        if hosts > 0 {
            let text = crate::model::Bytes(hosts).short();
            self.warn(format!("{text} of results hold temporaries before they exist and are not counted as saved"));
        }
        if self.kinds.donation && self.pairs.is_empty() {
            self.warn("no donated argument has the shape and type of a result with memory of its own".to_owned());
        }
    }

    fn element_counts_agree(&self, a: BufferId, b: BufferId) -> bool {
        let count = |buffer| resize::node_of(self.program, buffer).map(|n| (n.element_count(), n.element_type));
        count(a) == count(b)
    }

    /// Results that now take over the memory of something their instruction reads, because both have one size.
    fn share_in_place(&mut self, sizes: &[u64]) {
        let memory = self.memory;
        let events = match self.trace() {
            Some(trace) => &self.program.traces[trace].events,
            None => return,
        };
        let mut taken = vec![false; self.spans.len()];
        for f in 0..self.spans.len() {
            let family = memory.families.list[f];
            let Some(instruction) = self.program.buffers.instruction_of(family.root) else { continue };
            for event in events.iter().skip(family.first as usize + 1) {
                let buffer = BufferId(event.buffer);
                if event.kind != EventKind::Free {
                    if self.program.buffers.instruction_of(buffer) == Some(instruction) {
                        continue;
                    }
                    break;
                }
                let Some(g) = memory.families.of(buffer) else { continue };
                let other = memory.families.list[g];
                let fits = g != f
                    && !taken[g]
                    && sizes[f] == sizes[g]
                    && family.size != other.size
                    && sizes[f] > 0
                    && self.spans[g].1 == 2 * other.last
                    && self.spans[f].0 == 2 * family.first
                    && other.last > family.first;
                if fits && self.reads(instruction, g) {
                    taken[g] = true;
                    self.spans[f].0 = (self.spans[g].1 + 1).min(self.spans[f].1);
                    break;
                }
            }
        }
    }

    fn trace(&self) -> Option<usize> {
        let root = self.memory.families.list.first()?.root;
        self.program.traces.iter().position(|trace| trace.events.iter().any(|event| event.buffer == root.0))
    }

    /// Whether an instruction reads a member of a family, through views.
    fn reads(&self, instruction: InstructionId, family: usize) -> bool {
        let program = self.program;
        // Items are sorted by owner: those of one family lie together.
        let owner = Owner::Family(family as u32);
        let items = &self.memory.items;
        let start = items.partition_point(|item| item.owner < owner);
        let count = items[start..].partition_point(|item| item.owner == owner);
        let members = &items[start..start + count];
        program.instructions.operands_of(instruction).iter().any(|&operand| {
            let mut row = operand;
            for _ in 0..16 {
                if row == NO_ROW {
                    return false;
                }
                let own = InstructionId(row);
                if members.iter().any(|item| program.buffers.instruction_of(item.buffer) == Some(own)) {
                    return true;
                }
                match program.instructions.opcode.get(row as usize) {
                    Some(&(Opcode::BITCAST | Opcode::GET_TUPLE_ELEMENT | Opcode::COPY_DONE)) => {
                        row = program.instructions.operands_of(own).first().copied().unwrap_or(NO_ROW);
                    }
                    _ => return false,
                }
            }
            false
        })
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

    fn base_sizes(&self) -> Vec<u64> {
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

    /// Finishes: pairs what is donated, lets results take over memory, and says what is left to pack.
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

/// Row of the item that stands for a base row itself.
fn row_item(memory: &Memory, row: usize) -> Option<usize> {
    let at = memory.items.partition_point(|item| item.owner < Owner::Base(row as u32));
    (memory.items.get(at)?.owner == Owner::Base(row as u32)).then_some(at)
}
