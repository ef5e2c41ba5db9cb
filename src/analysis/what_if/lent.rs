//! Copies of arguments in the memory of other arguments, with changes: whether they stay there. See [`super::borrowed`].

use super::borrowed::Borrowed;
use super::lodgers::{Copied, Housed, Lent};
use super::memory::Memory;
use super::resize;
use super::state::{Sizes, State};
use crate::analysis::packing::Block;
use crate::model::{BufferId, FastMap, Program};

/// Share of the memory, 0 to 1, up to which such copies have memory of their own: between 0.91 and 0.95.
pub(super) const ROOM_FOR_COPIES: f64 = 0.93;

impl Memory {
    /// The row, beside those of the families, of a buffer that is in none, such as one in a result's memory.
    pub(super) fn row_of_other(&self, buffer: BufferId) -> u32 {
        (self.families.list.len() as u32).saturating_add(buffer.0)
    }

    /// The buffer that the row of a block stands for: the root of a family, or one that is in none.
    #[must_use]
    pub fn buffer_of_row(&self, row: u32) -> BufferId {
        let families = &self.families.list;
        families
            .get(row as usize)
            .map_or_else(|| BufferId(row.saturating_sub(families.len() as u32)), |family| family.root)
    }

    /// First and last time of what lives from one program point to another: what comes after it begins later.
    pub(super) fn times_of(&self, first: u32, last: u32) -> (u32, u32) {
        let start = self.time_of(first);
        if self.points.is_empty() {
            return (start, last);
        }
        let events = self.points.partition_point(|&p| p <= last) as u32;
        (start, (2 * events).saturating_sub(1).max(start))
    }

    /// What has the result's dimensions in another layout in its memory.
    pub(super) fn relaid_lodgers(&self, result: usize) -> impl Iterator<Item = Copied> + '_ {
        let own = self.lodgers.get(result).into_iter().flatten().filter(|lodger| lodger.is_relaid);
        own.map(move |own| Copied {
            size: own.size,
            first: own.first,
            last: own.last,
            result: result as u32,
            buffer: own.buffer,
        })
    }

    /// Bytes of the copies of arguments that are in the memory of others now.
    pub(super) fn borrowed_bytes(&self, program: &Program) -> u64 {
        let sizes = self.borrowed.iter().map(|own| program.buffers.size_of(own.buffer).0);
        sizes.fold(0, u64::saturating_add)
    }
}

impl State<'_> {
    /// Sizes and blocks if copies of arguments in the memory of others have memory of their own, and whether they must have
    /// it, as they no longer fit where they are; `None` if there are none.
    pub(super) fn with_copies_apart(&self, sizes: &Sizes) -> Option<(Sizes, bool)> {
        let memory = self.memory;
        let lent = || self.lent.iter().filter(|lent| !lent.is_read_before);
        if memory.borrowed.is_empty() && lent().next().is_none() {
            return None;
        }
        let (mut apart, mut must) = (sizes.clone(), false);
        let copies = memory.borrowed.iter().map(|own| (self.block_of_copy(own), own.host, own.buffer));
        for (block, host, buffer) in copies.chain(lent().map(|lent| (lent.block, lent.host, lent.buffer))) {
            must |= block.size > sizes.base.get(host as usize).copied().unwrap_or_default();
            apart.blocks.push(block);
            apart.family.push(memory.row_of_other(buffer));
        }
        Some((apart, must))
    }

    /// Lends copies that lie in the memory of a result, which an argument is donated to, the memory of another donated
    /// argument that nothing reads any more, and whose result is not written before the copy is done with; returns those
    /// for which there is none, with first and last time. Where all arguments are copied in the order in which their results are written, there is
    /// none for any: so it is in decoders with a cache for each layer (Tunix, 1 to 28 layers, whether they fit or not).
    pub(super) fn lend(&mut self, copies: Vec<Copied>, sizes: &[u64]) -> Vec<Housed> {
        let memory = self.memory;
        if copies.is_empty() {
            return Vec::new();
        }
        let mut written: FastMap<u32, u32> = FastMap::default();
        let time = |row: u32| memory.written.get(row as usize).copied();
        written.extend(self.pairs.iter().filter_map(|&(argument, result)| Some((argument, time(result)?))));
        let mut homeless = Vec::new();
        for Copied { size, first, last, result, buffer } in copies {
            let is_host = |&row: &u32| {
                sizes.get(row as usize).is_some_and(|&bytes| bytes >= size)
                    && memory.last_read.get(row as usize).is_some_and(|&point| point < first)
                    && written.get(&row).is_none_or(|&written| written >= last)
                    && !self.lent.iter().any(|lent| lent.host == row)
            };
            let host = self.donated.iter().copied().find(is_host).filter(|_| !memory.is_gpu);
            let (start, end) = memory.times_of(first, last);
            let block = Block { size, start, end };
            match host {
                Some(host) => {
                    let is_read_before = time(result).is_some_and(|written| written > last.saturating_add(1));
                    self.lent.push(Lent { block, host, buffer, is_read_before });
                }
                None => homeless.push(Housed { block, buffer }),
            }
        }
        homeless
    }

    fn block_of_copy(&self, own: &Borrowed) -> Block {
        let (start, end) = (self.memory.time_of(own.life.0), self.memory.time_of(own.life.1));
        Block { size: self.size_of_copy(own), start, end }
    }

    /// Bytes of a copy with the changes to its argument.
    fn size_of_copy(&self, own: &Borrowed) -> u64 {
        let present = self.program.buffers.size_of(own.buffer).0;
        let copy = self.program.buffer_node(own.buffer);
        let item = self.memory.item_of(own.source as usize);
        let now = item.filter(|&item| self.is_changed(item)).and_then(|item| self.shape(item));
        let (Some(copy), Some(now)) = (copy, now) else { return present };
        let mut changed = copy.clone();
        for (place, &size) in now.node.dimensions.iter().enumerate() {
            if copy.dimensions.get(place) != Some(&size) {
                resize::set_dimension(&mut changed, place, size);
            }
        }
        if copy.element_type != now.node.element_type {
            resize::set_type_of_copy(&mut changed, now.node.element_type);
        }
        resize::resized(present, copy.padded_size(), changed.padded_size())
    }
}
