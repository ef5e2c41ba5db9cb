//! Which dimensions of each buffer follow the batch, or another dimension of arguments, as the data flow tells.

use std::sync::Arc;

use super::base::Role;
use super::memory::{Memory, Owner};
use crate::analysis::flow::dimensions::{Mark, follow};
use crate::analysis::once::once;
use crate::model::{BufferId, FastMap, Program};

/// What the data flow tells of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Follows {
    /// These dimensions follow the batch, one bit for each.
    In(u32),
    /// None does.
    Nowhere,
    /// It cannot be told.
    Unknown,
}

impl Follows {
    fn of(marks: &[Mark]) -> Self {
        let known = marks.iter().filter(|mark| mark.dimension < u32::BITS);
        match known.fold(0u32, |set, mark| set | 1 << mark.dimension) {
            0 if marks.is_empty() => Self::Nowhere,
            0 => Self::Unknown,
            set => Self::In(set),
        }
    }

    /// The dimensions, ascending.
    pub(super) fn dimensions(self) -> impl Iterator<Item = usize> {
        let set = if let Self::In(set) = self { set } else { 0 };
        (0..u32::BITS as usize).filter(move |&place| set >> place & 1 == 1)
    }

    /// Of two values in one memory.
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::In(a), Self::In(b)) => Self::In(a | b),
            (Self::In(_), _) => self,
            (_, Self::In(_)) => other,
            (Self::Nowhere, Self::Nowhere) => self,
            _ => Self::Unknown,
        }
    }
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
                // Time comes before the batch where the first dimension is another one.
                let dimension = u32::from(node.dimensions.first() != data.dimensions.first());
                Some((buffer, Mark { dimension, inner: 1, size: data.batch() }))
            });
            self.following(program, &seeds.collect::<Vec<_>>())
        })
    }

    /// Which dimensions of each item follow the dimensions of arguments that have a size, by item; empty where no argument
    /// has one.
    pub(super) fn followed_size(&self, program: &Program, size: i64) -> Arc<Vec<Follows>> {
        self.followed_sizes.value(&size, || {
            let arguments = self.base.iter().filter(|base| matches!(base.role, Role::Argument { .. }));
            let seeds = arguments.flat_map(|base| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_somewhere_is_no_longer_unknown() {
        let mark = |dimension| Mark { dimension, inner: 1, size: 8 };
        let both = Follows::of(&[mark(1), mark(3), Mark::UNKNOWN]);
        assert_eq!(both.dimensions().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(Follows::of(&[Mark::UNKNOWN]), Follows::Unknown);
        assert_eq!(Follows::of(&[]), Follows::Nowhere);
        assert_eq!(Follows::Unknown.with(Follows::In(1)), Follows::In(1));
        assert_eq!(Follows::Nowhere.with(Follows::Unknown), Follows::Unknown);
        assert_eq!(Follows::In(1).with(Follows::In(4)), Follows::In(5));
    }
}
