//! Which dimensions of each buffer follow the batch, or another dimension of arguments, as the data flow tells.

use std::sync::Arc;

use super::base::{Base, Role};
use super::follows::Follows;
use super::memory::{Memory, Owner};
use crate::analysis::flow::dimensions::{Mark, follow};
use crate::analysis::once::once;
use crate::model::{BufferId, FastMap, Program};

impl Memory {
    /// Which dimensions of each item follow the batch, by item; empty where no argument has a batch that can be followed.
    pub(super) fn followed(&self, program: &Program) -> &Vec<Follows> {
        once(&self.followed, || {
            // A batch of one is no dimension that could be told from others.
            let data = self.data.iter().filter(|data| data.batch() > 1);
            let seeds = data.filter_map(|data| {
                let buffer = self.base.get(data.base as usize)?.buffer;
                let node = program.buffer_node(buffer)?;
                // Time comes before the batch where the first dimension is another one.
                let dimension = u32::from(node.dimensions.first() != data.dimensions.first());
                Some((buffer, Mark { dimension, inner: 1, size: data.batch() }))
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
            let seeds = arguments.flat_map(|(_, base)| {
                let sizes = program.buffer_node(base.buffer).map_or(&[][..], |node| node.dimensions.as_slice());
                let own = sizes.iter().zip(0u32..).filter(|row| *row.0 == size && size > 1);
                own.map(|(_, dimension)| (base.buffer, Mark { dimension, inner: 1, size }))
            });
            self.following(program, &seeds.collect::<Vec<_>>())
        })
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
        found
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
