//! The dimension of a buffer that holds the batch, by its size: where the data flow does not tell.

use std::collections::{BTreeSet, HashMap};

use super::base::Role;
use super::batch;
use super::batch_by_shape;
use super::global_batch::GlobalBatch;
use super::memory::{Item, Memory, Owner};
use super::resize;
use crate::model::{FastSet, Program, ShapeNode, outline};

/// Numbers of elements within this factor are one value in two arrangements: folding adds margins.
const MARGIN: f64 = 1.12;

/// Size of the last dimension of more than one element.
fn features(node: &ShapeNode) -> Option<i64> {
    node.dimensions.iter().rev().copied().find(|&size| size > 1)
}

/// The numbers of elements of arrays that hold the batch, by their last dimension of more than one element.
struct Arrangements {
    counts: HashMap<i64, BTreeSet<u64>>,
}

impl Arrangements {
    fn new<'a>(holding: impl Iterator<Item = &'a ShapeNode>) -> Self {
        let mut counts: HashMap<i64, BTreeSet<u64>> = HashMap::new();
        for node in holding {
            if let Some(last) = features(node) {
                counts.entry(last).or_default().insert(node.element_count());
            }
        }
        Self { counts }
    }

    /// Whether an array holds as many elements, with the same features, as one that holds the batch.
    fn include(&self, node: &ShapeNode) -> bool {
        let count = node.element_count() as f64;
        let (least, most) = ((count / MARGIN) as u64, (count * MARGIN) as u64);
        let known = features(node).and_then(|last| self.counts.get(&last));
        known.is_some_and(|known| known.range(least..=most).next().is_some())
    }
}

/// Most divided dimensions of an argument that are looked at: each doubles what it may look like.
const MOST_DIVIDED: usize = 4;

/// Outlines of arguments that hold no batch as they are where they are gathered from the devices along each divided
/// dimension or some of them, and of one layer of these.
fn gathered(program: &Program, memory: &Memory) -> FastSet<Vec<i64>> {
    let mut found = FastSet::default();
    for (_, base) in memory.base.iter().enumerate().filter(|row| !memory.is_data(row.0)) {
        let Role::Argument { number, .. } = base.role else { continue };
        let sharding = program.sharding_of_parameter(number).filter(|sharding| sharding.parts() > 1);
        let Some((node, sharding)) = program.buffer_node(base.buffer).zip(sharding) else { continue };
        let mut wholes = vec![node.dimensions.clone()];
        let divided = sharding.tiles.iter().enumerate().take(node.dimensions.len()).filter(|row| *row.1 > 1);
        for (place, &parts) in divided.take(MOST_DIVIDED) {
            let further: Vec<Vec<i64>> = wholes
                .iter()
                .map(|dimensions| {
                    let mut dimensions = dimensions.clone();
                    dimensions[place] = dimensions[place].saturating_mul(parts);
                    dimensions
                })
                .collect();
            wholes.extend(further);
        }
        // A number that more than one array may have by chance is no outline.
        for whole in wholes.iter().skip(1) {
            let of_layer = if whole.len() > 2 { &whole[1..] } else { &[] };
            found.extend([outline(whole), outline(of_layer)].into_iter().filter(|outline| outline.len() > 1));
        }
    }
    found
}

/// What tells the dimension that holds the batch.
pub(super) struct BySize<'a> {
    /// The batch, or the part of it that temporaries hold.
    batch: i64,
    /// The same, and its products.
    local: Vec<i64>,
    weights: &'a FastSet<Vec<i64>>,
    /// Outlines of what weights are that devices gather, and of one layer of these.
    gathered: FastSet<Vec<i64>>,
    /// Dimensions of weights.
    sizes: FastSet<i64>,
    global: Option<&'a GlobalBatch>,
    /// Other arrangements of what holds the batch, such as rows of images folded into it.
    arrangements: Option<Arrangements>,
}

impl<'a> BySize<'a> {
    /// Looks at a program's arguments and temporaries; `held` is the part of the `whole` batch that these hold.
    pub(super) fn new(program: &Program, memory: &'a Memory, (whole, held): (i64, i64)) -> Self {
        let mut local = batch::products(&memory.data, 1);
        local.extend(memory.sorted_rows(program));
        if whole != held {
            for size in &mut local {
                *size = *size / whole.max(1) * held;
            }
        }
        let weights = memory.weights(program);
        let sizes = weights.iter().flatten().copied().collect();
        let global = memory.global_batch(program);
        let gathered = gathered(program, memory);
        let mut found = Self { batch: held, local, weights, gathered, sizes, global, arrangements: None };
        let temporary = |item: &&Item| matches!(item.owner, Owner::Family(_));
        found.arrangements = memory.folded_below(program).map(|_| {
            let nodes = memory.items.iter().filter(temporary).filter_map(|item| resize::node_of(program, item.buffer));
            Arrangements::new(nodes.filter(|node| !found.is_weight(node) && found.own(node).is_some()))
        });
        found
    }

    /// Whether an array has the dimensions of a weight.
    pub(super) fn is_weight(&self, node: &ShapeNode) -> bool {
        let outline = outline(&node.dimensions);
        self.weights.contains(&outline) || self.gathered.contains(&outline)
    }

    /// The dimension that holds the batch.
    pub(super) fn dimension(&self, node: &ShapeNode) -> Option<usize> {
        self.own(node).or_else(|| self.folded(node))
    }

    fn own(&self, node: &ShapeNode) -> Option<usize> {
        let exact = node.dimensions.iter().position(|&d| d == self.batch);
        exact
            .or_else(|| node.dimensions.iter().position(|d| self.local.contains(d)))
            .or_else(|| self.global.and_then(|global| global.held_in(node)))
            .or_else(|| batch_by_shape::dimension_of(node, self.batch, &self.sizes))
    }

    fn folded(&self, node: &ShapeNode) -> Option<usize> {
        self.arrangements.as_ref().filter(|known| known.include(node))?;
        let is_factor = |d: i64| self.batch > 0 && d > self.batch && d % self.batch == 0;
        let own = node.dimensions.iter().position(|&d| is_factor(d) && !self.sizes.contains(&d));
        own.or_else(|| node.dimensions.iter().position(|&d| is_factor(d)))
    }
}
