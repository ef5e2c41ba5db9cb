//! One of the two programs with a law for the size of every buffer, so that its memory can be packed at any value.

use std::collections::{BTreeMap, HashMap};

use super::law::Law;
use crate::analysis::packing::{self, Block, FALLBACK_SHARE, Packer};
use crate::analysis::scene::Scene;
use crate::analysis::what_if::{Memory, Owner, set_dimension};
use crate::model::{BufferId, Program, ShapeNode};

/// What a program takes at a value, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    /// Always-live bytes and the most that is live of the rest.
    pub peak: u64,
    /// Allocated bytes, packed as the compiler would.
    pub allocated: u64,
    /// Always-live bytes.
    pub base: u64,
}

/// An array that a law resizes.
struct Sized {
    owner: Owner,
    /// Bytes that it has in the dump, and those that its shape tells; they differ where the formula does not hold.
    present: u64,
    formula: u64,
    node: ShapeNode,
    /// Law of each dimension.
    laws: Vec<Law>,
}

/// A program with a law for every size.
pub(super) struct Model<'a> {
    memory: &'a Memory,
    /// What changes with the value; everything else stays as it is.
    sized: Vec<Sized>,
    base: Vec<u64>,
    families: Vec<u64>,
    blocks: Vec<Block>,
}

impl<'a> Model<'a> {
    /// The laws of a program, from the sizes that the buffers matched with it have in another. `values` are those of the
    /// program itself and of the other; `pairs` its buffers with those of the other.
    pub fn new(
        scene: Scene<'_>,
        memory: &'a Memory,
        other: &Program,
        pairs: &[(BufferId, BufferId)],
        values: [i64; 2],
    ) -> Self {
        let program = scene.program;
        let other_of: HashMap<BufferId, BufferId> = pairs.iter().copied().collect();
        let usual = usual_laws(program, other, pairs, values);
        let mut sized = Vec::new();
        for item in &memory.items {
            let Some(node) = program.buffer_node(item.buffer).filter(|node| !node.is_tuple()) else { continue };
            let counterpart = other_of.get(&item.buffer).and_then(|&buffer| other.buffer_node(buffer));
            let laws = laws_of(node, counterpart, values, &usual);
            let changes = laws.iter().any(|law| !matches!(law, Law::Constant(_)));
            let Some(formula) = node.padded_size().filter(|_| changes) else { continue };
            let present = program.buffers.size_of(item.buffer).0;
            let node = ShapeNode { parent: 0, ..node.clone() };
            sized.push(Sized { owner: item.owner, present, formula: formula.0, node, laws });
        }
        let base = memory.base.iter().map(|base| base.size).collect();
        let families = memory.families.list.iter().map(|family| family.size).collect();
        Self { memory, sized, base, families, blocks: memory.families.blocks() }
    }

    /// What the program takes at a value.
    pub fn at(&self, value: i64) -> Need {
        let (mut base, mut families) = (self.base.clone(), self.families.clone());
        // What a law resizes is as large as its largest member; what holds nothing else is forgotten first.
        let mut touched: [Vec<u64>; 2] = [vec![0; base.len()], vec![0; families.len()]];
        let mut is_touched: [Vec<bool>; 2] = [vec![false; base.len()], vec![false; families.len()]];
        for sized in &self.sized {
            let (side, row) = match sized.owner {
                Owner::Base(row) => (0, row as usize),
                Owner::Family(row) => (1, row as usize),
            };
            let (Some(size), Some(is)) = (touched[side].get_mut(row), is_touched[side].get_mut(row)) else { continue };
            *size = (*size).max(sized.bytes_at(value));
            *is = true;
        }
        for (side, sizes) in [&mut base, &mut families].into_iter().enumerate() {
            for (row, size) in sizes.iter_mut().enumerate() {
                if is_touched[side][row] {
                    *size = touched[side][row];
                }
            }
        }
        let base = base.iter().fold(0u64, |sum, &size| sum.saturating_add(size));
        let blocks: Vec<Block> =
            self.blocks.iter().zip(&families).map(|(block, &size)| Block { size, ..*block }).collect();
        let live = packing::most_live(&blocks).0;
        let online = packing::online(&blocks).heap;
        let allocated = |heap: u64| base.saturating_add(heap).saturating_add(self.memory.rest);
        let limit = self.memory.capacity.map(|capacity| (capacity as f64 * FALLBACK_SHARE) as u64);
        let packer =
            if limit.is_some_and(|limit| allocated(online) > limit) { Packer::Fallback } else { Packer::Online };
        let packed = if packer == Packer::Fallback { packing::fallback_below(&blocks, online) } else { None };
        let heap = packed.map_or(online, |placement| placement.heap);
        let peak = base.saturating_add(live).saturating_add_signed(self.memory.correction);
        Need { peak, allocated: allocated(heap), base }
    }
}

impl Sized {
    /// Bytes at a value, padding included. Where the formula does not give the present size, in proportion.
    fn bytes_at(&self, value: i64) -> u64 {
        let mut node = self.node.clone();
        for (dimension, law) in self.laws.iter().enumerate() {
            let size = law.at(value);
            if node.dimensions.get(dimension) != Some(&size) {
                set_dimension(&mut node, dimension, size);
            }
        }
        let Some(new) = node.padded_size() else { return self.present };
        if self.formula == self.present || self.formula == 0 {
            return new.0;
        }
        u64::try_from(u128::from(self.present) * u128::from(new.0) / u128::from(self.formula)).unwrap_or(u64::MAX)
    }
}

/// The law that each size of a dimension usually follows, by the bytes of the buffers that have it.
fn usual_laws(
    program: &Program,
    other: &Program,
    pairs: &[(BufferId, BufferId)],
    values: [i64; 2],
) -> HashMap<i64, Law> {
    let mut votes: BTreeMap<(i64, i64), u64> = BTreeMap::new();
    for &(one, two) in pairs {
        let (Some(node), Some(counterpart)) = (program.buffer_node(one), other.buffer_node(two)) else { continue };
        if node.dimensions.len() != counterpart.dimensions.len() {
            continue;
        }
        for (&p, &q) in node.dimensions.iter().zip(&counterpart.dimensions) {
            let law = Law::through((values[0], p), (values[1], q));
            if law.is_explained() {
                *votes.entry((p, q)).or_default() += program.buffers.size_of(one).0;
            }
        }
    }
    let mut best: HashMap<i64, (u64, i64)> = HashMap::new();
    for ((p, q), bytes) in votes {
        let known = best.entry(p).or_insert((bytes, q));
        if bytes > known.0 {
            *known = (bytes, q);
        }
    }
    best.into_iter().map(|(p, (_, q))| (p, Law::through((values[0], p), (values[1], q)))).collect()
}

/// The law of each dimension of an array: from its counterpart, or what dimensions of this size usually follow.
fn laws_of(node: &ShapeNode, counterpart: Option<&ShapeNode>, values: [i64; 2], usual: &HashMap<i64, Law>) -> Vec<Law> {
    let same_rank = counterpart.filter(|other| other.dimensions.len() == node.dimensions.len());
    let mut laws = Vec::with_capacity(node.dimensions.len());
    for (place, &size) in node.dimensions.iter().enumerate() {
        let own = same_rank.map(|other| Law::through((values[0], size), (values[1], other.dimensions[place])));
        let law = match (own, usual.get(&size)) {
            (Some(own), _) if own.is_explained() => own,
            (_, Some(&usual)) => usual,
            (Some(own), None) => own,
            (None, None) => Law::Constant(size),
        };
        laws.push(law);
    }
    laws
}
