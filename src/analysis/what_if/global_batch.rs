//! The global batch: dimension sizes that tell buffers that hold the batch of all devices, and the devices over which
//! arguments are divided.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::base::{Base, Role};
use super::batch::{DataArgument, node_of, products, weights};
use super::batch_by_shape;
use super::follows::bit;
use crate::model::{FastSet, InstructionId, Program, Shape, ShapeNode, Sharding, outline};

/// The devices over which the batch is divided into the most parts: the sharding of an argument, and its dimension.
#[derive(Debug)]
pub(super) struct BatchDevices<'a> {
    sharding: &'a Sharding,
    dimension: usize,
    parts: i64,
    /// What is known of dimensions of other shardings: a program has many arguments, and few shardings.
    known: RefCell<Vec<(&'a Sharding, usize, Option<bool>)>>,
}

/// Most dimensions of shardings that are compared with the batch's: more tell nothing.
const MOST_SHARDINGS: usize = 256;

impl<'a> BatchDevices<'a> {
    pub(super) fn new(program: &'a Program, bases: &[Base], data: &[DataArgument]) -> Option<Self> {
        let most = data.iter().max_by_key(|data| data.parts).filter(|data| data.parts > 1)?;
        let Role::Argument { number, .. } = bases.get(most.base as usize)?.role else { return None };
        let sharding = program.sharding_of_parameter(number)?;
        let dimension = sharding.tiles.iter().position(|&parts| parts == most.parts)?;
        Some(Self { sharding, dimension, parts: most.parts, known: RefCell::default() })
    }

    /// Whether a dimension of another argument is divided over the same devices, where the file tells.
    fn shares(&self, sharding: &'a Sharding, dimension: usize) -> Option<bool> {
        let mut known = self.known.borrow_mut();
        if let Some(row) = known.iter().find(|row| row.1 == dimension && row.0 == sharding) {
            return row.2;
        }
        if known.len() >= MOST_SHARDINGS {
            return None;
        }
        let shares = self.sharding.shares_devices(self.dimension, sharding, dimension);
        known.push((sharding, dimension, shares));
        shares
    }

    /// Whether another argument is divided over the same devices, all or some of them. Where the file does not tell, it is
    /// if it is divided into as many parts.
    pub(super) fn divide(&self, sharding: &'a Sharding) -> bool {
        (0..sharding.tiles.len()).any(|dimension| self.parts_of(sharding, dimension) > 1)
    }

    /// Into how many parts a dimension of another argument is divided over the same devices.
    pub(super) fn parts_of(&self, sharding: &'a Sharding, dimension: usize) -> i64 {
        let parts = sharding.tiles.get(dimension).copied().unwrap_or(1);
        // The last one may be the number of copies.
        let is_of_copies = sharding.replicate_on_last && dimension + 1 == sharding.tiles.len();
        let is_meant = parts > 1 && !is_of_copies;
        if is_meant && self.shares(sharding, dimension).unwrap_or(parts == self.parts) { parts } else { 1 }
    }

    /// Whether a dimension of another argument is divided over other devices: what has it can be divided along the batch
    /// as well. Where the file does not tell, it is so if the argument is divided into as many parts as the batch along
    /// another dimension, as no axis of devices divides two dimensions of one array.
    pub(super) fn are_besides(&self, sharding: &'a Sharding, dimension: usize, rank: usize) -> bool {
        self.shares(sharding, dimension).map_or_else(
            || {
                let tiles = sharding.tiles.get(..rank).unwrap_or_default();
                tiles.iter().enumerate().any(|(other, &parts)| other != dimension && parts == self.parts)
            },
            |shares| !shares,
        )
    }
}

/// Per-device sizes of argument dimensions that may be sharded over the devices of the batch. Includes sizes that another
/// argument has unsharded: whether a buffer is sharded along such a dimension cannot be told.
fn divided_sizes(program: &Program, bases: &[Base], data: &[DataArgument]) -> FastSet<i64> {
    let devices = BatchDevices::new(program, bases, data);
    let mut divided = FastSet::default();
    let data: FastSet<u32> = data.iter().map(|d| d.base).collect();
    for (base, row) in bases.iter().zip(0u32..) {
        let (Role::Argument { number, .. }, Some(node)) = (&base.role, node_of(program, base)) else { continue };
        if data.contains(&row) {
            continue;
        }
        let sharding = program.sharding_of_parameter(*number).filter(|sharding| sharding.parts() > 1);
        let Some(sharding) = sharding else { continue };
        let rank = node.dimensions.len();
        for (d, (&size, &parts)) in node.dimensions.iter().zip(&sharding.tiles).enumerate() {
            if parts > 1 && !devices.as_ref().is_some_and(|devices| devices.are_besides(sharding, d, rank)) {
                divided.insert(size);
            }
        }
    }
    divided.retain(|size| *size >= LEAST_DIVIDED);
    divided
}

/// Sizes that dimensions have undivided: those of weights, and the positions in data, of which one may be cut off.
fn undivided_sizes(program: &Program, bases: &[Base], data: &[DataArgument]) -> FastSet<i64> {
    let mut undivided: FastSet<i64> = data
        .iter()
        .flat_map(|data| data.dimensions.iter().skip(1))
        .flat_map(|&size| [size, size.saturating_sub(1)])
        .collect();
    for base in bases {
        let (Role::Argument { number, .. }, Some(node)) = (&base.role, node_of(program, base)) else { continue };
        let tiles = program.sharding_of_parameter(*number).map_or(&[][..], |sharding| &sharding.tiles);
        let sizes = node.dimensions.iter().enumerate();
        undivided.extend(sizes.filter(|row| tiles.get(row.0).is_none_or(|&parts| parts <= 1)).map(|row| *row.1));
    }
    undivided
}

/// Per-device sizes of sharded argument dimensions that are too small to indicate anything alone, each with the large
/// dimensions of its argument.
fn divided_among(program: &Program, bases: &[Base], data: &[DataArgument]) -> Vec<(i64, Vec<i64>)> {
    let devices = BatchDevices::new(program, bases, data);
    let data: FastSet<u32> = data.iter().map(|d| d.base).collect();
    let mut found = BTreeSet::new();
    for (base, row) in bases.iter().zip(0u32..) {
        let (Role::Argument { number, .. }, Some(node)) = (&base.role, node_of(program, base)) else { continue };
        let sharding = program.sharding_of_parameter(*number);
        let Some(sharding) = sharding.filter(|sharding| sharding.parts() > 1 && !data.contains(&row)) else { continue };
        let large: Vec<i64> = node.dimensions.iter().copied().filter(|&d| d >= LEAST_DIVIDED).collect();
        // Sure to be divided over other devices: without the file's word, as of experts, it may be the batch's.
        let is_besides = |d| devices.as_ref().is_some_and(|devices| devices.shares(sharding, d) == Some(false));
        for (d, (&size, &parts)) in node.dimensions.iter().zip(&sharding.tiles).enumerate() {
            if parts > 1 && size > 1 && size < LEAST_DIVIDED && !large.is_empty() && !is_besides(d) {
                found.insert((size, large.clone()));
            }
        }
    }
    found.into_iter().collect()
}

/// Smaller per-device sizes are too common to indicate anything.
const LEAST_DIVIDED: i64 = 1024;

/// Dimension sizes that identify buffers holding the global batch.
#[derive(Debug, Clone)]
pub struct GlobalBatch {
    /// Devices the batch is sharded over.
    pub parts: i64,
    /// The global batch, and its products.
    whole: Vec<i64>,
    /// The batch of one device, and its products.
    local: Vec<i64>,
    /// Sizes of dimensions of weights.
    weight_sizes: FastSet<i64>,
    weights: FastSet<Vec<i64>>,
    /// Per-device sizes of sharded argument dimensions: signs that a buffer is sharded some other way over the same devices.
    divided: FastSet<i64>,
    /// Sizes of dimensions that are not sharded: of one of these, and of those, the data flow tells which it is.
    undivided: FastSet<i64>,
    /// Smaller ones, each with the large dimensions of its argument: together they are signs too, as of experts.
    divided_among: Vec<(i64, Vec<i64>)>,
    /// Sizes beside the batch in what the devices exchange, as the places of an expert: what has one holds the rows of all
    /// devices for its own part of them.
    exchanged: FastSet<i64>,
    /// Sizes that the data have behind their batch, such as the frames of a video: of as many as the global batch has
    /// samples, sizes do not tell which it is.
    behind: FastSet<i64>,
    /// Numbers of steps of the program's loops over layers: the leading dimensions of what these save.
    layers: FastSet<i64>,
    batch: i64,
}

/// Sizes of dimensions, beside the batch of each device and their number, of the results of all-to-all.
fn exchanged(program: &Program, (batch, parts): (i64, i64), is_known: impl Fn(i64) -> bool) -> FastSet<i64> {
    let mut found = FastSet::default();
    for row in 0..program.instructions.len() {
        let at = InstructionId(row as u32);
        if !program.opcode_name(at).starts_with("all-to-all") {
            continue;
        }
        let Some(node) = program.shape_of(at).map(Shape::root) else { continue };
        let mut left: Vec<i64> = node.dimensions.clone();
        let mut take = |size: i64| left.iter().position(|&d| d == size).map(|place| left.swap_remove(place)).is_some();
        if take(batch.saturating_mul(parts)) || (take(batch) && take(parts)) {
            found.extend(left.into_iter().filter(|&size| size > 1 && !is_known(size)));
        }
    }
    found
}

/// Whether a device gets parts of arrays from others, rather than sums alone.
fn exchanges_parts(program: &Program) -> bool {
    const EXCHANGES: [&str; 4] = ["all-gather", "all-to-all", "ragged-all-to-all", "collective-permute"];
    let exchanges = program.opcodes.named(|name| EXCHANGES.iter().any(|exchange| name.starts_with(exchange)));
    program.instructions.opcode.iter().any(|opcode| exchanges.contains(opcode))
}

/// What the data flow tells of a buffer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct FromFlow {
    /// Whether it was followed to its end.
    pub is_whole: bool,
    /// The dimensions of which the device has its part only, as weights are divided there, one bit for each.
    pub parts: u32,
    /// The dimensions that follow the batch, one bit for each; none where that is unknown.
    pub batch: u32,
    /// Whether the first dimension is of samples and heads together, as that of attention scores of three dimensions.
    pub has_heads_first: bool,
}

impl GlobalBatch {
    /// `micro_batches` is how many parts of the batch a loop goes over: of its steps, one part is the batch.
    pub(super) fn new(
        program: &Program,
        bases: &[Base],
        (data, micro_batches): (&[DataArgument], i64),
        layers: impl Iterator<Item = i64>,
    ) -> Option<Self> {
        let parts = data.iter().map(|d| d.parts).max().filter(|&parts| parts > 1)?;
        let mut divided: Vec<DataArgument> = data.iter().filter(|d| d.parts == parts).cloned().collect();
        if divided.first().is_some_and(|data| micro_batches > 1 && data.batch() % micro_batches == 0) {
            for first in divided.iter_mut().filter_map(|data| data.dimensions.first_mut()) {
                *first /= micro_batches;
            }
        }
        // One sample on each of a few devices is a number that much else has, such as the heads of a layer.
        let is_telling = |&batch: &i64| batch > 1 || parts >= batch_by_shape::LEAST_FACTOR;
        let batch = divided.first().map(DataArgument::batch).filter(is_telling)?;
        // Without an exchange of parts, a device has only what it is given: as many of something else are its own, such as
        // the windows of its pictures.
        let is_given = || data.iter().any(|data| data.batch() == batch.saturating_mul(parts));
        if !exchanges_parts(program) && !is_given() {
            return None;
        }
        let rows: FastSet<usize> = data.iter().map(|d| d.base as usize).collect();
        let is_data = |i: usize| rows.contains(&i);
        let weight_sizes: FastSet<i64> = bases
            .iter()
            .enumerate()
            .filter(|(i, base)| matches!(base.role, Role::Argument { .. }) && !is_data(*i))
            .filter_map(|(_, base)| node_of(program, base))
            .flat_map(|node| node.dimensions.iter().copied())
            .collect();
        let is_known =
            |size: i64| weight_sizes.contains(&size) || divided.iter().any(|data| data.dimensions.contains(&size));
        Some(Self {
            parts,
            whole: products(&divided, parts),
            local: products(&divided, 1),
            exchanged: exchanged(program, (batch, parts), is_known),
            weight_sizes,
            weights: weights(program, bases, data),
            divided: divided_sizes(program, bases, data),
            undivided: undivided_sizes(program, bases, data),
            divided_among: divided_among(program, bases, data),
            behind: divided.iter().flat_map(|data| data.dimensions.iter().skip(1).copied()).collect(),
            layers: layers.collect(),
            batch,
        })
    }

    /// The batch of each device, of one micro-batch where a loop goes over several.
    #[must_use]
    pub const fn of_each(&self) -> i64 {
        self.batch
    }

    /// Index of the dimension of a buffer that holds the global batch, by its sizes, with what the data flow tells.
    #[must_use]
    pub(super) fn dimension(&self, node: &ShapeNode, flow: FromFlow) -> Option<usize> {
        if self.weights.contains(&outline(&node.dimensions)) {
            return None;
        }
        // As many samples and heads as there are samples on all devices are no sign.
        let found = self.dimension_of(node).filter(|&at| at > 0 || !flow.has_heads_first)?;
        // A buffer that also has the per-device batch is sharded already; the other size is a coincidence. Behind the
        // other size, one that weights have, too, is a number of features.
        let may_be = |at: usize| flow.batch == 0 || flow.batch & bit(found) == 0 || flow.batch & bit(at) != 0;
        let is_batch = |(at, &size): (usize, &i64)| {
            size == self.batch && (at < found || !self.weight_sizes.contains(&self.batch)) && may_be(at)
        };
        if node.dimensions.iter().enumerate().any(is_batch) {
            return None;
        }
        // A buffer sharded along another dimension, such as logits along the vocabulary, is not replicated.
        let is_part = |d: &i64| self.divided.contains(d) && !(flow.is_whole && self.undivided.contains(d));
        if node.dimensions.iter().any(|d| is_part(d) || self.exchanged.contains(d)) {
            return None;
        }
        (flow.parts & !bit(found) == 0 && !self.is_divided_besides(node, found)).then_some(found)
    }

    /// As [`Self::dimension`], also of what is divided along another dimension besides, such as logits along the
    /// vocabulary: it follows the batch all the same.
    #[must_use]
    pub fn held_in(&self, node: &ShapeNode) -> Option<usize> {
        let is_known = self.weights.contains(&outline(&node.dimensions)) || node.dimensions.contains(&self.batch);
        if is_known { None } else { self.dimension_of(node) }
    }

    /// Whether a buffer is sharded along another dimension, as a weight of its dimensions is.
    fn is_divided_besides(&self, node: &ShapeNode, at: usize) -> bool {
        let others = || node.dimensions.iter().enumerate().filter(|&(place, _)| place != at).map(|row| *row.1);
        self.divided_among
            .iter()
            .any(|(size, large)| others().any(|d| d == *size) && others().any(|d| large.contains(&d)))
    }

    /// Index of the dimension with the size of the global batch.
    fn dimension_of(&self, node: &ShapeNode) -> Option<usize> {
        let whole = self.batch.saturating_mul(self.parts);
        let is_of_layers = |at: usize, size: i64| at == 0 && node.dimensions.len() > 2 && self.layers.contains(&size);
        let place = |accept: &dyn Fn(i64) -> bool| {
            let mut places = node.dimensions.iter().enumerate();
            let is_meant = |&(at, &d): &(usize, &i64)| !self.local.contains(&d) && !is_of_layers(at, d) && accept(d);
            places.find(is_meant).map(|(at, _)| at)
        };
        // As many as weights have, too, are rows of the batch where they come before others; last, they are columns.
        let is_known = self.weight_sizes.contains(&whole);
        let is_row = |at: &usize| !is_known || at + 1 < node.dimensions.len();
        place(&|d| d == whole && !self.behind.contains(&d)).filter(is_row).or_else(|| {
            place(&|d| self.whole.contains(&d) && !self.weight_sizes.contains(&d) && !self.behind.contains(&d))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ElementType;

    #[test]
    fn the_whole_batch_is_told_from_its_part() {
        let batch = GlobalBatch {
            parts: 4,
            whole: vec![16, 8192],
            local: vec![4, 2048],
            weight_sizes: FastSet::from_iter([512, 8192]),
            weights: FastSet::from_iter([vec![16, 512]]),
            divided: FastSet::from_iter([32016, 2048]),
            undivided: FastSet::from_iter([2048]),
            divided_among: vec![(3, vec![6144])],
            exchanged: FastSet::from_iter([320]),
            behind: FastSet::default(),
            layers: FastSet::default(),
            batch: 4,
        };
        let held = |dims: &[i64]| batch.held_in(&ShapeNode::array(ElementType::F32, dims.to_vec()));
        assert_eq!(held(&[16, 512, 32016]), Some(0), "logits divided along the vocabulary follow the batch");
        assert_eq!((held(&[4, 16, 512, 512]), held(&[16, 512])), (None, None));
        let dimension =
            |dims: &[i64]| batch.dimension(&ShapeNode::array(ElementType::F32, dims.to_vec()), FromFlow::default());
        assert_eq!(dimension(&[16, 512, 64]), Some(0));
        assert_eq!(dimension(&[16, 512, 32016]), None);
        assert_eq!(dimension(&[3, 16, 512, 6144]), None);
        assert_eq!(dimension(&[16, 320, 6144]), None, "the places of an expert, of all devices");
        assert_eq!(dimension(&[16, 3, 64]), Some(0));
        assert_eq!(dimension(&[4, 16, 512, 512]), None);
        assert_eq!(dimension(&[16, 512]), None);
        assert_eq!(dimension(&[8192, 512]), None);
        let known =
            |flow: FromFlow, dims: &[i64]| batch.dimension(&ShapeNode::array(ElementType::F32, dims.to_vec()), flow);
        let flow = FromFlow { is_whole: true, ..FromFlow::default() };
        assert_eq!(dimension(&[16, 2048, 64]), None, "perhaps divided columns, perhaps positions");
        assert_eq!(known(flow, &[16, 2048, 64]), Some(0), "positions");
        assert_eq!(known(FromFlow { parts: 0b10, ..flow }, &[16, 2048, 64]), None, "divided columns");
        assert_eq!(known(flow, &[16, 512, 32016]), None, "nothing else is so large");
        assert_eq!(known(FromFlow { batch: 1, ..flow }, &[16, 4, 512, 512]), Some(0), "four heads");
        assert_eq!(known(FromFlow { batch: 0b10, ..flow }, &[16, 4, 512, 512]), None, "sixteen heads");
        assert_eq!(
            known(FromFlow { has_heads_first: true, ..flow }, &[16, 512, 512]),
            None,
            "four samples of four heads"
        );
        let of_features = GlobalBatch { weight_sizes: FastSet::from_iter([4]), ..batch };
        let dimension_beside = |dims: &[i64]| {
            of_features.dimension(&ShapeNode::array(ElementType::F32, dims.to_vec()), FromFlow::default())
        };
        assert_eq!((dimension_beside(&[16, 3, 4]), dimension_beside(&[4, 16, 512, 512])), (Some(0), None));
        let of_columns = GlobalBatch { weight_sizes: FastSet::from_iter([16]), ..of_features };
        let dimension_of = |dims: &[i64]| {
            of_columns.dimension(&ShapeNode::array(ElementType::F32, dims.to_vec()), FromFlow::default())
        };
        assert_eq!((dimension_of(&[1024, 16]), dimension_of(&[16, 3, 64])), (None, Some(0)), "columns, rows");
        let batch = GlobalBatch { weight_sizes: FastSet::from_iter([4]), ..of_columns };
        let looped = GlobalBatch { layers: FastSet::from_iter([16]), ..batch };
        let dimension =
            |dims: &[i64]| looped.dimension(&ShapeNode::array(ElementType::F32, dims.to_vec()), FromFlow::default());
        assert_eq!(dimension(&[16, 2, 512, 64]), None, "saved by a scan over as many layers");
        assert_eq!(dimension(&[3, 16, 64]), Some(1));
        let of_frames = GlobalBatch { behind: FastSet::from_iter([16]), ..looped };
        let dimension =
            |dims: &[i64]| of_frames.dimension(&ShapeNode::array(ElementType::F32, dims.to_vec()), FromFlow::default());
        assert_eq!(dimension(&[1024, 16, 3072]), None, "frames of a video, as many as samples on all devices");
    }
}
