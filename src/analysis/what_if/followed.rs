//! Which dimensions of each buffer follow the batch, or another dimension of arguments, as the data flow tells.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::base::{Base, Role};
use super::follows::{Divided, Follows};
use super::global_batch::{BatchDevices, FromFlow};
use super::memory::{Item, Memory, Owner};
use super::saved_for_backward::is_among;
use crate::analysis::flow::dimensions::{Mark, follow};
use crate::analysis::flow::{Value, is_blank};
use crate::analysis::once::once;
use crate::model::{BufferId, FastMap, FastSet, Program, outline};

/// Dimensions of arguments that have one size on each device.
#[derive(Default)]
struct Sharded {
    marks: Vec<(BufferId, Mark)>,
    /// Their sizes where they are gathered.
    wholes: FastSet<i64>,
}

impl Memory {
    /// Which dimensions of each item follow the batch, by item; empty where no argument has a batch that can be followed.
    pub(super) fn followed(&self, program: &Program) -> &Vec<Follows> {
        once(&self.followed, || {
            // A batch of one is no dimension that could be told from others.
            let data = self.data.iter().filter(|data| data.batch() > 1);
            let seeds = data.filter_map(|data| {
                let buffer = self.base.get(data.base as usize)?.buffer;
                let node = program.buffer_node(buffer)?;
                if data.pages > 0 {
                    let place = node.dimensions.iter().position(|&size| size == data.pages)?;
                    return Some((buffer, Mark::whole(place as u32, data.pages)));
                }
                // Time, or the points of a field, come before the batch where the first dimension is another one.
                let place = (1..node.dimensions.len()).find(|&place| node.dimensions[place] == data.batch());
                let is_first = node.dimensions.first() == data.dimensions.first();
                let dimension = if is_first { 0 } else { u32::try_from(place.unwrap_or(1)).unwrap_or(1) };
                Some((buffer, Mark::whole(dimension, data.batch())))
            });
            self.following(program, &seeds.collect::<Vec<_>>())
        })
    }

    /// Which dimensions of each item follow the dimensions of arguments that have a size, by item; empty where no argument
    /// has one. Of the arguments, those that hold the batch, or all.
    pub(super) fn followed_size(&self, program: &Program, size: i64, is_of_data: bool) -> Arc<Vec<Follows>> {
        self.followed_sizes.value(&(size, is_of_data), || {
            let is_meant = |row: usize, base: &Base| {
                matches!(base.role, Role::Argument { .. }) && (self.is_data(row) || !is_of_data)
            };
            let arguments = self.base.iter().enumerate().filter(|(row, base)| is_meant(*row, base));
            let seeds = arguments.flat_map(|(row, base)| {
                let sizes = program.buffer_node(base.buffer).map_or(&[][..], |node| node.dimensions.as_slice());
                let own = sizes.iter().zip(0u32..).filter(|row| *row.0 == size && size > 1);
                own.map(move |(_, dimension)| {
                    // What comes after the samples is a length, of positions or of sides.
                    let is_length = self.is_data(row) && dimension > 0;
                    (base.buffer, Mark { is_length, ..Mark::whole(dimension, size) })
                })
            });
            let mut seeds: Vec<(BufferId, Mark)> = seeds.collect();
            if seeds.is_empty() && size > 1 {
                seeds = self.collected_in_steps(program, size);
            }
            self.following(program, &seeds)
        })
    }

    /// What loops of so many steps collect or save, step by step, as dimensions to follow.
    fn collected_in_steps(&self, program: &Program, steps: i64) -> Vec<(BufferId, Mark)> {
        let is_filled = |owner: Owner| {
            let Owner::Family(row) = owner else { return false };
            is_among(&self.kept.collected, row as usize) || self.kept.is_stack(row as usize)
        };
        let has_steps =
            |item: &&Item| program.buffer_node(item.buffer).is_some_and(|node| node.dimensions.first() == Some(&steps));
        let filled = self.items.iter().filter(|item| is_filled(item.owner)).filter(has_steps);
        filled.map(|item| (item.buffer, Mark::whole(0, steps))).collect()
    }

    /// The dimensions of each item in which a device has its part only, as the weights that it is made from are divided
    /// there and not gathered: columns of a product with a part of a weight.
    pub(super) fn divided(&self, program: &Program) -> &Divided {
        once(&self.divided, || {
            let batch = BatchDevices::new(program, &self.base, &self.data);
            // Dimensions of one size on each device, and their sizes where they are gathered.
            let mut seeds: BTreeMap<i64, Sharded> = BTreeMap::new();
            for (_, base) in self.base.iter().enumerate().filter(|row| !self.is_data(row.0)) {
                let Role::Argument { number, .. } = base.role else { continue };
                let sharding = program.sharding_of_parameter(number).filter(|sharding| sharding.parts() > 1);
                let Some((node, sharding)) = program.buffer_node(base.buffer).zip(sharding) else { continue };
                let rank = node.dimensions.len();
                // Experts come before the rows and columns of their matrices: where the tokens of all devices meet some
                // of them, these could be dispatched in groups.
                let sizes = node.dimensions.iter().zip(&sharding.tiles).zip(0u32..).skip(rank.saturating_sub(2));
                for ((&size, &count), dimension) in sizes.filter(|((size, count), _)| **size > 1 && **count > 1) {
                    if batch.as_ref().is_some_and(|batch| batch.are_besides(sharding, dimension as usize, rank)) {
                        continue;
                    }
                    let Sharded { marks, wholes } = seeds.entry(size).or_default();
                    marks.push((base.buffer, Mark::whole(dimension, size)));
                    wholes.insert(size.saturating_mul(count));
                }
            }
            if seeds.is_empty() {
                return Divided { is_whole: true, ..Divided::default() };
            }
            let mut by_item = vec![0u32; self.items.len()];
            let mut is_whole = true;
            for (size, Sharded { marks, wholes }) in seeds {
                let followed = follow(program, marks.into_iter());
                is_whole &= followed.is_whole;
                let is_part =
                    |mark: &&Mark| mark.dimension < u32::BITS && mark.size == size && !wholes.contains(&mark.size);
                for (item, set) in self.items.iter().zip(&mut by_item) {
                    let marks = followed.in_buffer(program, item.buffer).iter();
                    *set = marks.filter(is_part).fold(*set, |set, mark| set | 1 << mark.dimension);
                }
            }
            Divided { by_item, is_whole }
        })
    }

    /// What the data flow tells of an item.
    pub(super) fn told_by_flow(&self, program: &Program, item: usize) -> FromFlow {
        let divided = self.divided(program);
        let batch = self.followed(program).get(item).map_or(0, |follows| follows.set());
        let has_heads_first = self.items.get(item).is_some_and(|item| {
            let rank = program.buffer_node(item.buffer).map_or(0, |node| node.dimensions.len());
            rank == 3 && matches!(item.owner, Owner::Family(row) if is_among(&self.kept.scores, row as usize))
        });
        let parts = divided.by_item.get(item).copied().unwrap_or_default();
        FromFlow { is_whole: divided.is_whole, parts, batch, has_heads_first }
    }

    /// The buffers of some that hold the batch of all devices, and are divided over these along no other dimension.
    #[must_use]
    pub fn whole_batches(&self, program: &Program, buffers: &FastSet<BufferId>) -> FastSet<BufferId> {
        let Some(batch) = self.global_batch(program) else { return FastSet::default() };
        let meant = self.items.iter().enumerate().filter(|row| buffers.contains(&row.1.buffer));
        let is_whole = |(item, of): &(usize, &Item)| {
            let node = program.buffer_node(of.buffer);
            node.is_some_and(|node| batch.dimension(node, self.told_by_flow(program, *item)).is_some())
        };
        meant.filter(is_whole).map(|row| row.1.buffer).collect()
    }

    /// Which dimensions of each item follow those of some buffers, by item.
    fn following(&self, program: &Program, seeds: &[(BufferId, Mark)]) -> Vec<Follows> {
        if seeds.is_empty() {
            return Vec::new();
        }
        let followed = follow(program, seeds.iter().copied());
        let unknown = if followed.is_whole { Follows::Nowhere } else { Follows::Unknown };
        let of = |buffer| match Follows::of(followed.in_buffer(program, buffer)) {
            Follows::Nowhere => unknown,
            found => found,
        };
        let mut found: Vec<Follows> = self.items.iter().map(|item| of(item.buffer)).collect();
        self.share(program, &mut found);
        self.spread(program, &mut found);
        found
    }

    /// What is spread over the dimensions of others, such as the number that a mask fills in, follows what they follow.
    fn spread(&self, program: &Program, found: &mut [Follows]) {
        let sizes = |item: usize| Some(program.buffer_node(self.items.get(item)?.buffer)?.dimensions.as_slice());
        let mut known: FastMap<&[i64], Follows> = FastMap::default();
        for (item, follows) in found.iter().enumerate().filter(|row| matches!(row.1, Follows::In(_))) {
            if let Some(sizes) = sizes(item) {
                let own = known.entry(sizes).or_insert(*follows);
                *own = own.with(*follows);
            }
        }
        let is_spread = |item: usize| {
            let value = self.items.get(item).and_then(|item| Value::of_buffer(program, item.buffer));
            value.is_some_and(|value| is_blank(program, &value))
        };
        for (item, follows) in found.iter_mut().enumerate().filter(|row| *row.1 == Follows::Nowhere) {
            let Some((sizes, &shared)) = sizes(item).and_then(|sizes| Some((sizes, known.get(sizes)?))) else {
                continue;
            };
            if !self.weights(program).contains(&outline(sizes)) && is_spread(item) {
                *follows = shared;
            }
        }
    }

    /// What has the same dimensions in one memory is one value: what a loop fills holds from the start what it is filled
    /// with.
    fn share(&self, program: &Program, found: &mut [Follows]) {
        let mut known: FastMap<(Owner, &[i64]), Follows> = FastMap::default();
        let key = |item: usize| {
            let item = self.items.get(item)?;
            Some((item.owner, program.buffer_node(item.buffer)?.dimensions.as_slice()))
        };
        for (item, &follows) in found.iter().enumerate().filter(|row| *row.1 != Follows::Nowhere) {
            if let Some(key) = key(item) {
                let own = known.entry(key).or_insert(follows);
                *own = own.with(follows);
            }
        }
        for (item, follows) in found.iter_mut().enumerate() {
            if let Some(&shared) = key(item).and_then(|key| known.get(&key)) {
                *follows = follows.with(shared);
            }
        }
    }
}
