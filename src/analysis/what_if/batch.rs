//! The batch: which arguments hold it, and which buffers scale with it.

use std::collections::BTreeSet;

use super::base::{Base, Role};
use super::batch_behind::{samples_behind, samples_of_fields};
use super::batch_by_shape::{self, Known};
use crate::analysis::class::{Class, Classes};
use crate::analysis::flow::label::Labels;
use crate::analysis::flow::node_at;
use crate::analysis::names::argument::{holds_samples, holds_state};
use crate::analysis::packing::Families;
use crate::model::{ElementType, FastMap, FastSet, InstructionId, Program, ShapeNode, outline};

/// An argument with a batch in its leading dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataArgument {
    /// Row of the memory's base.
    pub base: u32,
    /// Dimensions on each device, the batch first.
    pub dimensions: Vec<i64>,
    /// Into how many parts the leading dimension is sharded.
    pub parts: i64,
    /// Whether this is known from the argument's name or its shape alone.
    pub by_name: bool,
    /// How many pages of a cache it is, if a table gives each sample as many of them as any other: the size of the
    /// dimension that follows the batch, then; else 0.
    pub pages: i64,
}

impl DataArgument {
    /// The batch per device.
    #[must_use]
    pub fn batch(&self) -> i64 {
        self.dimensions.first().copied().unwrap_or(0)
    }

    /// Its elements on each device: tokens, where it holds these.
    #[must_use]
    pub fn elements(&self) -> i64 {
        self.dimensions.iter().fold(1i64, |product, &size| product.saturating_mul(size))
    }
}

/// The array of an argument or a result.
pub(super) fn node_of<'a>(program: &'a Program, base: &Base) -> Option<&'a ShapeNode> {
    program.buffer_node(base.buffer)
}

/// Finds the arguments that hold a batch: by name; else, in a training program, integer data with no matching result;
/// else arguments with no matching result whose leading dimension is sharded; else those whose leading dimension most
/// temporaries have. Where a loop takes one slice of an argument after the other, the batch is the second dimension.
#[must_use]
pub(super) fn samples(
    program: &Program,
    classes: &Classes,
    bases: &[Base],
    (families, labels): (&Families, &Labels),
) -> Vec<DataArgument> {
    let results: FastSet<(ElementType, &[i64])> = bases
        .iter()
        .filter(|base| matches!(base.role, Role::Result(_)))
        .filter_map(|base| node_of(program, base))
        .map(|node| (node.element_type, node.dimensions.as_slice()))
        .collect();
    let is_returned = |base: &Base, node: &ShapeNode| {
        matches!(base.role, Role::Argument { is_donated: true, .. })
            || results.contains(&(node.element_type, node.dimensions.as_slice()))
    };
    let tiles_of = |number: i64| {
        let sharding = program.sharding_of_parameter(number);
        sharding.filter(|sharding| sharding.parts() > 1).map_or(&[][..], |sharding| sharding.tiles.as_slice())
    };
    let is_kept = |base: &Base| matches!(classes.of(base.buffer), Class::Weight | Class::Optimizer);
    let mut of_graphs = graph_sizes(program, bases, is_kept);
    // A number for each sample, such as how long its text is, says where its part of a cache is written.
    for base in bases.iter().filter(|base| classes.of(base.buffer) == Class::Cache) {
        if let Some(size) = node_of(program, base).and_then(|node| node.dimensions.first()) {
            of_graphs.remove(size);
        }
    }
    // Sizes and divisions of leading dimensions that are sharded.
    let leading: FastSet<(i64, i64)> = bases
        .iter()
        .filter(|base| !is_kept(base))
        .filter_map(|base| match &base.role {
            Role::Argument { number, .. } => {
                let parts = *tiles_of(*number).first()?;
                (parts > 1).then_some((*node_of(program, base)?.dimensions.first()?, parts))
            }
            _ => None,
        })
        .collect();
    let found_steps: BTreeSet<i64> =
        labels.loops.parts.iter().map(|part| part.layers).filter(|&layers| layers > 1).collect();
    let taken_by_step = |number: i64| labels.steps.of_argument(number).is_some_and(|steps| !steps.are_layers());
    // Leading dimensions that a loop goes over, of arguments that have a batch and more after it.
    let looped: FastSet<i64> = bases
        .iter()
        .filter(|base| !is_kept(base) && matches!(base.role, Role::Argument { number, .. } if taken_by_step(number)))
        .filter_map(|base| {
            node_of(program, base).filter(|node| node.dimensions.len() >= 3)?.dimensions.first().copied()
        })
        .collect();
    // Fields on a grid, of which one is fitted to others or passed on, have no batch.
    let is_field = |base: &Base| match base.role {
        Role::Argument { is_donated, .. } => is_donated || is_kept(base),
        _ => false,
    };
    let fields: FastSet<&[i64]> = bases
        .iter()
        .filter(|base| is_field(base))
        .filter_map(|base| Some(node_of(program, base)?.dimensions.as_slice()))
        .collect();
    let mapped = batch_of_mapped(program, bases, &is_kept);
    // Leading dimensions of what is given besides caches as integers, such as the last token of each sample.
    let of_tokens: FastSet<i64> = bases
        .iter()
        .filter(|base| matches!(base.role, Role::Argument { .. }) && classes.of(base.buffer) == Class::Input)
        .filter_map(|base| node_of(program, base).filter(|node| node.element_type.is_index()))
        .filter_map(|node| node.dimensions.first().copied())
        .collect();
    // Whether the batch is the second dimension: a loop goes over the first, of parts of the batch or of time; or the
    // second is sharded as the first of another argument is; or it counts samples of points.
    let comes_second = |node: &ShapeNode, tiles: &[i64], is_cache: bool| {
        let [first, size, ref rest @ ..] = node.dimensions[..] else { return false };
        // A cache is divided by its heads as well.
        let are_points = || are_points_before_samples(node, tiles) && !(is_cache && of_tokens.contains(&first));
        let parts = tiles.get(1).copied().unwrap_or(1);
        (mapped.is_some() && first == 1)
            || (!rest.is_empty() && looped.contains(&first))
            || leading.contains(&(size, parts))
            || (parts > 1 && (found_steps.contains(&first) || of_graphs.contains(&first)))
            || are_points()
    };
    let candidates = |accept: &dyn Fn(&Base, &ShapeNode, &str, i64) -> bool, by_name: bool| {
        let mut found = Vec::new();
        for (i, base) in bases.iter().enumerate() {
            let (Role::Argument { number, path, .. }, Some(node)) = (&base.role, node_of(program, base)) else {
                continue;
            };
            if node.dimensions.is_empty() || !node.element_type.is_array() || is_kept(base) {
                continue;
            }
            let tiles = tiles_of(*number);
            // The nodes of one graph, with several samples of what is at each, which are divided.
            let are_samples_behind = tiles.first().is_some_and(|&parts| parts <= 1) && tiles.get(1) > Some(&1);
            if node.dimensions.first().is_some_and(|size| of_graphs.contains(size)) && !are_samples_behind {
                continue;
            }
            let mut parts = tiles.first().copied().unwrap_or(1).max(1);
            let mut dimensions = node.dimensions.clone();
            if (parts <= 1 || mapped.is_some()) && comes_second(node, tiles, classes.of(base.buffer) == Class::Cache) {
                parts = tiles.get(1).copied().unwrap_or(1).max(1);
                dimensions.swap(0, 1);
            } else if let Some(place) = samples_behind(node, tiles).filter(|_| classes.of(base.buffer) != Class::Cache)
            {
                parts = tiles[place];
                dimensions[..=place].rotate_right(1);
            }
            if accept(base, node, path, parts) {
                // An argument that is sharded and not returned is data whatever its name.
                let by_name = by_name && (parts <= 1 || is_returned(base, node));
                found.push(DataArgument { base: i as u32, dimensions, parts, by_name, pages: 0 });
            }
        }
        found
    };
    if let Some((batch, devices)) = mapped {
        let is_of_batch = |_: &Base, node: &ShapeNode, _: &str, _| node.dimensions.get(1) == Some(&batch);
        let mut data = candidates(&is_of_batch, false);
        for data in &mut data {
            data.parts = devices;
        }
        return data;
    }
    let mut data = candidates(&|_, _, path, _| holds_samples(path), true);
    if data.is_empty() && trains(classes, bases) {
        data = candidates(
            &|base, node, _, _| {
                let is_data = classes.of(base.buffer) == Class::Input;
                is_data && node.element_type.is_index() && node.dimensions.len() > 1 && !is_returned(base, node)
            },
            false,
        );
    }
    let is_divided = |base: &Base, node: &ShapeNode, path: &str, parts: i64| {
        let is_of_grid = fields.contains(node.dimensions.as_slice());
        parts > 1 && !is_of_grid && !is_returned(base, node) && !holds_state(path)
    };
    if data.is_empty() {
        data = candidates(&is_divided, false);
        if data.is_empty() {
            data = rows_of_state(program, (bases, labels), |base, number| {
                (base.is_state() && classes.of(base.buffer) == Class::Input).then(|| tiles_of(number))
            });
        }
        // What comes before a memory of what was seen, such as the games that are played, is the batch beside it.
        if data.is_empty() && bases.iter().any(Base::is_memory) {
            let is_beside = |base: &Base, node: &ShapeNode| {
                let is_state = classes.of(base.buffer) == Class::Input && is_returned(base, node);
                is_state && !base.is_memory() && node.dimensions.len() > 1
            };
            data = candidates(&|base, node, _, _| is_beside(base, node), true);
        }
    } else if data.iter().all(|data| data.parts <= 1) {
        // What is divided tells more than a name that stands on what all devices have, such as one simulator's data.
        let bytes = |data: &[DataArgument]| data.iter().map(|data| bases[data.base as usize].size).sum::<u64>();
        let divided = candidates(
            &|base, node, path, parts| classes.of(base.buffer) == Class::Input && is_divided(base, node, path, parts),
            false,
        );
        if bytes(&divided) > bytes(&data) {
            data = divided;
        }
    }
    if data.iter().all(|data| data.parts <= 1)
        && let Some(fields) = samples_of_fields(program, (bases, classes), &tiles_of)
    {
        return fields;
    }
    // A table with a row for each token, such as one of the pages of its sequence, tells that they are samples; so do
    // pictures or films with a label each.
    if data.iter().all(|data| data.dimensions.len() == 1)
        && let Some(size) = data.first().map(DataArgument::batch).filter(|&size| size > 1)
    {
        let is_table = |base: &Base, node: &ShapeNode, _: &str, _: i64| {
            let is_table = node.dimensions.len() > 1 && node.element_type.is_index();
            let are_pictures = node.dimensions.len() >= PICTURES && trains(classes, bases);
            node.dimensions[0] == size
                && (is_table || are_pictures)
                && classes.of(base.buffer) == Class::Input
                && !is_returned(base, node)
        };
        data.extend(candidates(&is_table, true));
    }
    // One batch: that of the largest argument. A vector of integers may index anything, such as tokens or pages.
    let samples = data.iter().filter(|d| d.dimensions.len() > 1);
    let Some(batch) = samples.max_by_key(|d| bases[d.base as usize].size).map(DataArgument::batch) else {
        let known =
            Known { families, steps: &found_steps, of_graphs: &of_graphs, fields: &fields, loops: &labels.steps };
        let mut data = batch_by_shape::find(program, classes, bases, &known, is_returned);
        for data in &mut data {
            let base = &bases[data.base as usize];
            if let (Role::Argument { number, .. }, Some(node)) = (&base.role, node_of(program, base))
                && node.dimensions.first() == data.dimensions.first()
            {
                data.parts = data.parts.max(tiles_of(*number).first().copied().unwrap_or(1));
            }
        }
        if data.first().is_some_and(|data| are_positions(program, classes, bases, data.batch())) {
            return Vec::new();
        }
        if let Some(batch) = data.first().map(DataArgument::batch) {
            let of_batch = |base: &Base, node: &ShapeNode| {
                classes.of(base.buffer) == Class::Cache && node.dimensions.first() == Some(&batch)
            };
            data.extend(candidates(&|base, node, _, _| of_batch(base, node), true));
        } else if let Some(batch) = batch_of_caches(program, classes, bases, labels) {
            let is_of_batch = |base: &Base, node: &ShapeNode| {
                batch_of_cache(base, node, labels) == Some(batch)
                    || node.dimensions.first() == Some(&batch)
                    || (classes.of(base.buffer) == Class::Cache
                        && node.dimensions.split_last().is_some_and(|(_, before)| before.contains(&batch)))
            };
            data = candidates(&|base, node, _, _| is_of_batch(base, node), true);
            for data in data.iter_mut().filter(|data| data.batch() != batch) {
                // Behind layers, groups of them, or positions.
                if let Some(place) = data.dimensions.iter().position(|&size| size == batch) {
                    data.dimensions[..=place].rotate_right(1);
                }
            }
        }
        return data;
    };
    if data.iter().all(|d| d.by_name) && is_of_pairs(program, (bases, families), batch) {
        return Vec::new();
    }
    data.retain(|d| d.batch() == batch);
    let is_state = |base: &Base, path: &str| holds_state(path) || classes.of(base.buffer) == Class::Cache;
    // What comes with the samples, such as pictures with their labels, holds the batch as well.
    let divided = data.iter().map(|data| data.parts).max().unwrap_or(1);
    let is_sample = |base: &Base, node: &ShapeNode, parts: i64| {
        // One number for each sample, such as a label, is divided as samples are.
        let is_alike = node.dimensions.len() > 1 || (parts == divided && node.element_type.is_index());
        classes.of(base.buffer) == Class::Input && is_alike && !is_returned(base, node)
    };
    let of_batch = |base: &Base, node: &ShapeNode, path: &str, parts: i64| {
        node.dimensions[0] == batch && (is_state(base, path) || is_sample(base, node, parts))
    };
    let known: FastSet<u32> = data.iter().map(|data| data.base).collect();
    let more = candidates(&|base, node, path, parts| of_batch(base, node, path, parts), true);
    data.extend(more.into_iter().filter(|data| !known.contains(&data.base) && data.batch() == batch));
    data
}

/// Fewest dimensions of what has a label for each sample: samples, rows and columns, or times and features.
const PICTURES: usize = 3;

/// Fewest arrays of state that show how many rows it has.
const LEAST_ROWS: usize = 3;

/// State with a row for each of as many samples, such as environments, or one for each at several times, such as a memory of
/// what these were: its arrays. `tiles` tells what is state, with the numbers of parts of its dimensions.
fn rows_of_state<'a>(
    program: &Program,
    (bases, labels): (&[Base], &Labels),
    tiles: impl Fn(&Base, i64) -> Option<&'a [i64]>,
) -> Vec<DataArgument> {
    let state: Vec<(u32, Vec<i64>, &[i64])> = bases
        .iter()
        .zip(0u32..)
        .filter_map(|(base, row)| {
            let Role::Argument { number, .. } = base.role else { return None };
            let tiles = tiles(base, number)?;
            let node = node_of(program, base).filter(|node| node.element_type.is_array())?;
            (!node.dimensions.is_empty()).then(|| (row, node.dimensions.clone(), tiles))
        })
        .collect();
    let place = |sizes: &[i64], rows: i64| sizes.iter().take(2).position(|&size| size == rows);
    let firsts: BTreeSet<i64> =
        state.iter().filter_map(|row| row.1.first().copied()).filter(|&size| size > 1).collect();
    // That which the most arrays have, before all else as a rule.
    let known = |rows: i64| {
        let places = || state.iter().filter_map(move |row| place(&row.1, rows));
        (places().count(), places().filter(|&place| place == 0).count())
    };
    // A memory of what was seen has as many places as it has, whatever the batch.
    let is_of_memory = |rows: i64| {
        let mut of_rows = state.iter().filter(|row| place(&row.1, rows) == Some(0)).map(|row| &bases[row.0 as usize]);
        of_rows.all(Base::is_memory)
    };
    let rows = firsts.into_iter().filter(|&rows| !is_of_memory(rows)).max_by_key(|&rows| known(rows));
    // Fewer will do where a loop collects what is seen of each row, step by step.
    let is_collected = |rows: i64| {
        let mut stacks = labels.loops.parts.iter().filter(|part| part.layers > 1);
        stacks.any(|part| {
            let node = node_at(program, part.at, &part.index);
            node.is_some_and(|node| matches!(node.dimensions[..], [_, size, _, ..] if size == rows))
        })
    };
    let is_enough = |rows: i64| {
        let arrays = known(rows).1;
        arrays >= LEAST_ROWS || (arrays > 1 && is_collected(rows))
    };
    let Some(rows) = rows.filter(|&rows| is_enough(rows)) else {
        return Vec::new();
    };
    let data = state.into_iter().filter_map(|(base, mut dimensions, tiles)| {
        let place = place(&dimensions, rows)?;
        let parts = tiles.get(place).copied().unwrap_or(1).max(1);
        dimensions.swap(0, place);
        Some(DataArgument { base, dimensions, parts, by_name: true, pages: 0 })
    });
    data.collect()
}

/// Share of the arguments that must begin with a dimension of the devices.
const MAPPED: f64 = 0.9;

/// Fewest arguments that show a batch behind the dimension of the devices.
const LEAST_MAPPED: usize = 3;

/// The batch of one device, and the number of devices, in a program that is mapped over devices as `jax.pmap` is: all
/// arguments begin with a dimension of as many as there are devices, of which each has one; what is not kept has the batch
/// next.
fn batch_of_mapped(program: &Program, bases: &[Base], is_kept: &dyn Fn(&Base) -> bool) -> Option<(i64, i64)> {
    let devices = i64::from(program.devices());
    let (mut all, mut mapped) = (0usize, 0usize);
    let mut sizes: FastMap<i64, usize> = FastMap::default();
    for base in bases {
        let (Role::Argument { number, .. }, Some(node)) = (&base.role, node_of(program, base)) else { continue };
        let Some(&first) = node.dimensions.first() else { continue };
        all += 1;
        // Of a single device nothing is divided.
        let is_divided = || {
            let sharding = program.sharding_of_parameter(*number);
            sharding.is_some_and(|sharding| sharding.tiles.first() == Some(&devices))
        };
        if first == 1 && (devices == 1 || is_divided()) {
            mapped += 1;
            if let Some(&size) = node.dimensions.get(1).filter(|&&size| size > 1 && !is_kept(base)) {
                *sizes.entry(size).or_default() += 1;
            }
        }
    }
    if (mapped as f64) < all as f64 * MAPPED {
        return None;
    }
    let (batch, count) = sizes.into_iter().max_by_key(|&(size, count)| (count, size))?;
    (count >= LEAST_MAPPED).then_some((batch, devices))
}

/// Whether an array has points, such as nodes of a mesh, before samples: its second dimension alone is divided, into fewer
/// than there are points. What has its positions divided has more of them than samples.
fn are_points_before_samples(node: &ShapeNode, tiles: &[i64]) -> bool {
    let [points, samples, ref rest @ ..] = node.dimensions[..] else { return false };
    let parts = |place: usize| tiles.get(place).copied().unwrap_or(1);
    let is_alone = parts(1) > 1 && (2..node.dimensions.len()).all(|place| parts(place) <= 1);
    !rest.is_empty() && node.element_type.is_float() && samples < points && is_alone
}

/// The leading dimension of a cache, after that of layers if a loop takes it layer by layer; `None` for what is no array of
/// both a batch and positions.
fn batch_of_cache(base: &Base, node: &ShapeNode, labels: &Labels) -> Option<i64> {
    let Role::Argument { number, .. } = base.role else { return None };
    let before = usize::from(labels.steps.of_argument(number).is_some());
    node.dimensions.get(before).copied().filter(|_| node.dimensions.len() > 2 + before)
}

/// The batch of caches: the dimension before their positions, or behind the positions or the layers where vectors of
/// integers, such as the last tokens, have as many elements as samples.
fn batch_of_caches(program: &Program, classes: &Classes, bases: &[Base], labels: &Labels) -> Option<i64> {
    let arguments = || bases.iter().filter(|base| matches!(base.role, Role::Argument { .. }));
    let caches = || {
        let of_class = arguments().filter(|base| classes.of(base.buffer) == Class::Cache);
        of_class.filter_map(|base| Some((base, node_of(program, base)?)))
    };
    let vectors: BTreeSet<i64> = arguments()
        .filter(|base| classes.of(base.buffer) == Class::Input)
        .filter_map(|base| node_of(program, base).filter(|node| node.element_type.is_index()))
        .filter_map(|node| node.dimensions.first().copied().filter(|&size| size > 1))
        .collect();
    let mut own = caches().filter_map(|(base, node)| batch_of_cache(base, node, labels));
    let batch = own.next().filter(|batch| vectors.contains(batch));
    if let Some(batch) = batch.filter(|&batch| own.all(|other| other == batch)) {
        return Some(batch);
    }
    let mut arrays = caches().map(|(_, node)| node.dimensions.as_slice()).filter(|sizes| sizes.len() > 2).peekable();
    arrays.peek()?;
    let arrays: Vec<&[i64]> = arrays.collect();
    // Heads may be as many as samples; behind them only what is before them nowhere is the batch.
    let single = |of: &dyn Fn(&[i64]) -> usize| {
        let mut common = vectors.iter().filter(|size| arrays.iter().all(|sizes| sizes[..of(sizes)].contains(size)));
        common.next().copied().filter(|_| common.next().is_none())
    };
    single(&|sizes| (sizes.len() - 2).max(2)).or_else(|| single(&|sizes| sizes.len() - 1))
}

/// Whether so many tokens are the next positions of one sequence, or of several together: caches have no dimension of as
/// many samples, and no table says for each which of their pages belong to it.
fn are_positions(program: &Program, classes: &Classes, bases: &[Base], tokens: i64) -> bool {
    let arguments = || bases.iter().filter(|base| matches!(base.role, Role::Argument { .. }));
    let nodes = |class| {
        arguments().filter(move |base| classes.of(base.buffer) == class).filter_map(|base| node_of(program, base))
    };
    let mut caches = nodes(Class::Cache).filter(|node| node.dimensions.len() > 2).peekable();
    let is_table = |node: &ShapeNode| {
        node.element_type.is_index() && node.dimensions.len() > 1 && node.dimensions.contains(&tokens)
    };
    caches.peek().is_some()
        && caches.all(|node| !node.dimensions.contains(&tokens))
        && !nodes(Class::Input).any(is_table)
        && !nodes(Class::Weight).any(is_table)
}

/// Numbers of nodes and edges of a graph: an integer vector with one element for each edge says which node's row a
/// gather takes. Such arrays are one sample, not a batch. `is_kept` tells weights, whose rows are gathered too.
fn graph_sizes(program: &Program, bases: &[Base], is_kept: impl Fn(&Base) -> bool) -> FastSet<i64> {
    let arguments = || bases.iter().filter(|base| matches!(base.role, Role::Argument { .. }));
    // One integer for each of many environments says no row.
    let edges: FastSet<i64> = arguments()
        .filter(|base| !base.is_state())
        .filter_map(|base| node_of(program, base))
        .filter(|node| node.element_type.is_index() && node.dimensions.len() == 1)
        .filter_map(|node| node.dimensions.first().copied())
        .collect();
    let mut found = FastSet::default();
    if edges.is_empty() {
        return found;
    }
    let rows_of_weights: FastSet<i64> = arguments()
        .filter(|base| is_kept(base))
        .filter_map(|base| node_of(program, base)?.dimensions.first().copied())
        .collect();
    let rows = |at: InstructionId| program.shape_of(at)?.root().dimensions.first().copied();
    for row in 0..program.instructions.len() {
        let at = InstructionId(row as u32);
        if program.opcode_name(at) != "gather" {
            continue;
        }
        let from = program.instructions.operands_of(at).first().map(|&row| InstructionId(row));
        if let (Some(nodes), Some(taken)) = (from.and_then(rows), rows(at))
            && taken > nodes
            && edges.contains(&taken)
            && !rows_of_weights.contains(&nodes)
        {
            found.extend([nodes, taken]);
        }
    }
    found
}

/// Share of the bytes of temporaries from which matrices of all pairs show that a dimension counts points, not samples.
const PAIRS: f64 = 0.2;

/// Whether many temporaries are matrices with one row and one column for each of so many points, as kernels of Gaussian
/// processes and distances are.
fn is_of_pairs(program: &Program, (bases, families): (&[Base], &Families), points: i64) -> bool {
    let all = families.list.iter().fold(0u64, |sum, family| sum.saturating_add(family.size));
    let is_matrix = |node: &ShapeNode| outline(&node.dimensions) == [points, points];
    // A weight of that shape has gradients of it.
    if bases.iter().any(|base| node_of(program, base).is_some_and(is_matrix)) {
        return false;
    }
    let of_pairs = families.list.iter().filter(|family| program.buffer_node(family.root).is_some_and(is_matrix));
    let of_pairs = of_pairs.fold(0u64, |sum, family| sum.saturating_add(family.size));
    of_pairs as f64 >= all as f64 * PAIRS && of_pairs > 0
}

/// Whether a program trains: it has optimizer state.
#[must_use]
pub fn trains(classes: &Classes, bases: &[Base]) -> bool {
    bases.iter().any(|base| classes.of(base.buffer) == Class::Optimizer)
}

/// Dimension sizes that indicate a batch: the batch itself, and its products with the dimensions after it.
#[must_use]
pub fn products(data: &[DataArgument], times: i64) -> Vec<i64> {
    let mut sizes = Vec::new();
    for argument in data {
        let mut product = argument.batch().saturating_mul(times);
        sizes.push(product);
        for &dimension in argument.dimensions.iter().skip(1) {
            product = product.saturating_mul(dimension.max(1));
            sizes.push(product);
        }
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Outlines of all arguments that hold no batch.
pub(super) fn weights(program: &Program, bases: &[Base], data: &[DataArgument]) -> FastSet<Vec<i64>> {
    let data: FastSet<u32> = data.iter().map(|d| d.base).collect();
    bases
        .iter()
        .zip(0u32..)
        .map(|(base, row)| (row, base))
        .filter(|(row, base)| matches!(base.role, Role::Argument { .. }) && !data.contains(row))
        .filter_map(|(_, base)| node_of(program, base))
        .map(|node| outline(&node.dimensions))
        .filter(|outline| !outline.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_follow_the_leading_dimension() {
        let data = [DataArgument { base: 0, dimensions: vec![4, 512], parts: 4, by_name: true, pages: 0 }];
        assert_eq!(products(&data, 1), [4, 2048]);
        assert_eq!(products(&data, 4), [16, 8192]);
        assert_eq!(outline(&[1, 512, 1, 4]), [4, 512]);
    }
}
