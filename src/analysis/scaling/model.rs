//! One of the two programs with a law for the size of every buffer, so that its memory can be packed at any value.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use super::law::Law;
use crate::analysis::packing::{self, Block, Packer};
use crate::analysis::scene::Scene;
use crate::analysis::what_if::{Memory, Owner, set_dimension};
use crate::model::{BufferId, ElementType, Program, ShapeNode};

/// What a program takes at a value, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    /// Always-live bytes and the most that is live of the rest.
    pub peak: u64,
    /// Allocated bytes, packed as the compiler would.
    pub allocated: u64,
    /// Always-live bytes.
    pub base: u64,
    /// The fewest bytes with which the program can run however much is computed twice: what is always live, and the
    /// largest of the other buffers.
    pub least: u64,
}

/// The values of the number that two programs differ in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Values {
    /// In the program that is modelled, and in the other.
    pub own_and_other: [i64; 2],
    /// Whether the work is divided by it, as by a number of devices.
    pub are_divisors: bool,
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
    /// Whether tiles pad each dimension in either program. Where they pad in neither, the compiler chose a layout in
    /// which they do not, and will again.
    is_padded: Vec<bool>,
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
        values: Values,
    ) -> Self {
        let program = scene.program;
        let mut shapes = Counterparts::new(program, other, pairs, values);
        let mut sized = Vec::new();
        // The largest first: they matter most, and small ones are often alike.
        let mut items: Vec<_> = memory.items.iter().collect();
        items.sort_by_key(|item| (Reverse(program.buffers.size_of(item.buffer)), item.owner, item.buffer));
        let mut known: HashMap<BufferId, Vec<Law>> = HashMap::new();
        for item in items {
            let Some(node) = program.buffer_node(item.buffer).filter(|node| !node.is_tuple()) else { continue };
            let laws = known.entry(item.buffer).or_insert_with(|| shapes.laws_of(item.buffer, node)).clone();
            let changes = laws.iter().any(|law| !matches!(law, Law::Constant(_)));
            let Some(formula) = node.padded_size().filter(|_| changes) else { continue };
            let present = program.buffers.size_of(item.buffer).0;
            let node = ShapeNode { parent: 0, ..node.clone() };
            let is_padded = shapes.padded_dimensions(item.buffer, &node);
            sized.push(Sized { owner: item.owner, present, formula: formula.0, node, laws, is_padded });
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
        let limit = self.memory.capacity.map(|capacity| (capacity as f64 * self.memory.full_from()) as u64);
        let packer = if self.memory.is_gpu || limit.is_some_and(|limit| allocated(online) > limit) {
            Packer::Fallback
        } else {
            Packer::Online
        };
        let packed = if packer == Packer::Fallback { self.memory.packed_again(&blocks, online) } else { None };
        let heap = packed.map_or(online, |placement| placement.heap);
        let peak = base.saturating_add(live).saturating_add_signed(self.memory.correction);
        let least = base.saturating_add(families.iter().copied().max().unwrap_or_default());
        Need { peak, allocated: allocated(heap), base, least }
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
        let Some(mut new) = node.padded_size().map(|bytes| u128::from(bytes.0)) else { return self.present };
        for padding in node.padding_by_dimension() {
            let place = padding.dimension as usize;
            let is_constant = matches!(self.laws.get(place), Some(Law::Constant(_)));
            if !is_constant && padding.padded > padding.size && self.is_padded.get(place) == Some(&false) {
                new = new.saturating_mul(u128::from(padding.size)) / u128::from(padding.padded.max(1));
            }
        }
        if self.formula != self.present && self.formula > 0 {
            new = u128::from(self.present).saturating_mul(new) / u128::from(self.formula);
        }
        u64::try_from(new).unwrap_or(u64::MAX)
    }
}

/// Shapes of the other program, to find those of buffers without a sure counterpart.
struct Counterparts<'a> {
    other: &'a Program,
    values: [i64; 2],
    /// Whether work is divided by the value, as by a number of devices.
    is_divided: bool,
    /// Sure counterparts.
    of: HashMap<BufferId, BufferId>,
    /// The sizes that a dimension of a size may have in the other program, those of most bytes first.
    sizes: HashMap<i64, Vec<i64>>,
    /// How many arrays of the other program no sure counterpart has taken, by type and dimensions.
    left: HashMap<(ElementType, Vec<i64>), usize>,
}

/// Dimensions whose size may or may not follow from the value, beyond which not all combinations are tried.
const MOST_AMBIGUOUS: usize = 6;

impl<'a> Counterparts<'a> {
    fn new(program: &Program, other: &'a Program, pairs: &[(BufferId, BufferId)], values: Values) -> Self {
        let Values { own_and_other: values, are_divisors: is_divided } = values;
        let mut votes: BTreeMap<(i64, i64), u64> = BTreeMap::new();
        let mut of = HashMap::new();
        let mut is_taken = vec![false; other.buffers.len()];
        for &(one, two) in pairs {
            let (Some(node), Some(counterpart)) = (program.buffer_node(one), other.buffer_node(two)) else { continue };
            let is_same_kind =
                node.element_type == counterpart.element_type && node.dimensions.len() == counterpart.dimensions.len();
            let through = |(&p, &q): (&i64, &i64)| Law::through((values[0], p), (values[1], q));
            let laws = || node.dimensions.iter().zip(&counterpart.dimensions).map(through);
            if !is_same_kind || !laws().all(|law| law.is_explained()) {
                continue;
            }
            for (&p, &q) in node.dimensions.iter().zip(&counterpart.dimensions) {
                *votes.entry((p, q)).or_default() += program.buffers.size_of(one).0.max(1);
            }
            of.insert(one, two);
            if let Some(taken) = is_taken.get_mut(two.index()) {
                *taken = true;
            }
        }
        let mut left: HashMap<(ElementType, Vec<i64>), usize> = HashMap::new();
        for (row, _) in is_taken.iter().enumerate().filter(|(_, taken)| !**taken) {
            if let Some(node) = other.buffer_node(BufferId::from_index(row)).filter(|node| !node.is_tuple()) {
                *left.entry((node.element_type, node.dimensions.clone())).or_default() += 1;
            }
        }
        let mut ranked: BTreeMap<i64, Vec<(u64, i64)>> = BTreeMap::new();
        for ((p, q), bytes) in votes {
            ranked.entry(p).or_default().push((bytes, q));
        }
        let sizes = ranked.into_iter().map(|(p, mut found)| {
            found.sort_by_key(|&(bytes, q)| (Reverse(bytes), q));
            (p, found.into_iter().map(|(_, q)| q).collect())
        });
        Self { other, values, is_divided, of, sizes: sizes.collect(), left }
    }

    /// The law of each dimension of an array: from its counterpart, or else from an array of the other program that has
    /// the sizes which such dimensions have there, or else what is usual.
    fn laws_of(&mut self, buffer: BufferId, node: &ShapeNode) -> Vec<Law> {
        let sure = self.of.get(&buffer).and_then(|&buffer| self.other.buffer_node(buffer));
        let sizes = match sure {
            Some(other) => other.dimensions.clone(),
            None => self.alike(node),
        };
        let through = |(&p, &q): (&i64, &i64)| Law::through((self.values[0], p), (self.values[1], q));
        node.dimensions.iter().zip(&sizes).map(through).collect()
    }

    /// Whether tiles pad each dimension of an array, in its program or in the other.
    fn padded_dimensions(&self, buffer: BufferId, node: &ShapeNode) -> Vec<bool> {
        let sure = self.of.get(&buffer).and_then(|&buffer| self.other.buffer_node(buffer));
        let mut is_padded = vec![false; node.dimensions.len()];
        for padding in std::iter::once(node).chain(sure).flat_map(ShapeNode::padding_by_dimension) {
            if let Some(is) = is_padded.get_mut(padding.dimension as usize) {
                *is |= padding.padded > padding.size;
            }
        }
        is_padded
    }

    /// The dimensions that an array most likely has in the other program.
    fn alike(&mut self, node: &ShapeNode) -> Vec<i64> {
        let options: Vec<Vec<i64>> = node.dimensions.iter().map(|&size| self.options(size)).collect();
        let ambiguous = options.iter().filter(|sizes| sizes.len() > 1).count();
        let usual: Vec<i64> = options.iter().filter_map(|sizes| sizes.first().copied()).collect();
        if ambiguous > MOST_AMBIGUOUS {
            return usual;
        }
        let mut combinations: Vec<Vec<i64>> = vec![Vec::new()];
        for sizes in &options {
            combinations = combinations
                .iter()
                .flat_map(|head| sizes.iter().map(move |&size| head.iter().copied().chain([size]).collect()))
                .collect();
        }
        for dimensions in combinations {
            if let Some(count) = self.left.get_mut(&(node.element_type, dimensions.clone())).filter(|count| **count > 0)
            {
                *count -= 1;
                return dimensions;
            }
        }
        usual
    }

    /// The sizes that a dimension most likely has in the other program, the likeliest first.
    fn options(&self, size: i64) -> Vec<i64> {
        let known = self.sizes.get(&size).map(|sizes| sizes.iter().copied().take(2).collect());
        let mut options: Vec<i64> = known.unwrap_or_else(|| vec![size]);
        // It may follow from the value although no sure pair has a dimension like it.
        let [own, other] = if self.is_divided { [self.values[1], self.values[0]] } else { self.values };
        let all = size.checked_mul(other).filter(|_| size > 1);
        if let Some(scaled) = all.filter(|all| all % own == 0).map(|all| all / own)
            && !options.contains(&scaled)
        {
            options.push(scaled);
        }
        options
    }
}
