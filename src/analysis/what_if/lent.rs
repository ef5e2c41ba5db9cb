//! Copies of arguments in the memory of other arguments, with changes: whether they stay there. See [`super::borrowed`].

use super::borrowed::Borrowed;
use super::memory::Memory;
use super::resize;
use super::state::{Sizes, State};
use crate::analysis::packing::Block;
use crate::model::Program;

/// Share of the memory, 0 to 1, up to which such copies have memory of their own: between 0.91 and 0.95.
pub(super) const ROOM_FOR_COPIES: f64 = 0.93;

impl Memory {
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
        if memory.borrowed.is_empty() && self.lent.is_empty() {
            return None;
        }
        let family = u32::try_from(memory.families.list.len()).ok()?.checked_sub(1)?;
        let (mut apart, mut must) = (sizes.clone(), false);
        let copies = memory.borrowed.iter().map(|own| (self.block_of_copy(own), own.host));
        for (block, host) in copies.chain(self.lent.iter().copied()) {
            must |= block.size > sizes.base.get(host as usize).copied().unwrap_or_default();
            apart.blocks.push(block);
            apart.family.push(family);
        }
        Some((apart, must))
    }

    /// Lends copies that lie in the memory of a result, which an argument is donated to, the memory of another donated
    /// argument that nothing reads any more; returns those for which there is none.
    pub(super) fn lend(&mut self, copies: Vec<(u64, u32, u32)>, sizes: &[u64]) -> Vec<(u64, u32, u32)> {
        let memory = self.memory;
        let mut homeless = Vec::new();
        for (size, start, end) in copies {
            let is_host = |&row: &u32| {
                sizes.get(row as usize).is_some_and(|&bytes| bytes >= size)
                    && memory.last_read.get(row as usize).is_some_and(|&point| memory.time_of(point) <= start)
                    && !self.lent.iter().any(|lent| lent.1 == row)
            };
            let host = self.donated.iter().copied().find(is_host).filter(|_| !memory.is_gpu);
            match host {
                Some(host) => self.lent.push((Block { size, start, end }, host)),
                None => homeless.push((size, start, end)),
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
