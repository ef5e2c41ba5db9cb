//! Families in a heap trace: a buffer with its own memory and all buffers that share it, packed as one block.

use super::{Block, Placement};
use crate::model::{BufferId, EventKind, NO_ROW, Program};

/// A buffer with its own memory and those that share it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// The buffer that was allocated.
    pub root: BufferId,
    /// Size in bytes, that of the largest member.
    pub size: u64,
    /// Event at which the memory is allocated.
    pub first: u32,
    /// Event at which the last member is freed.
    pub last: u32,
}

/// The families of one trace.
#[derive(Debug, Clone, Default)]
pub struct Families {
    /// Families in allocation order.
    pub list: Vec<Family>,
    /// (buffer row, family) of every buffer in the trace, sorted.
    pub member_of: Vec<(u32, u32)>,
    /// Number of events in the trace.
    pub events: u32,
    /// The family by buffer row, or `NO_ROW`: [`Self::member_of`] to look up in.
    pub(crate) of: Vec<u32>,
}

impl Families {
    /// Groups the buffers of a trace; `None` if there is none or it allocates nothing.
    #[must_use]
    pub fn new(program: &Program, trace: usize) -> Option<Self> {
        let events = &program.traces.get(trace)?.events;
        let end = (events.len() as u32).saturating_sub(1);
        let mut families = Self { events: events.len() as u32, ..Self::default() };
        // The current family of each buffer.
        let mut family_of = vec![NO_ROW; program.buffers.len()];
        // Number of members not freed yet.
        let mut open: Vec<u32> = Vec::new();
        for (t, event) in events.iter().enumerate() {
            let t = t as u32;
            let Some(slot) = family_of.get(event.buffer as usize).copied() else { continue };
            let buffer = BufferId(event.buffer);
            let size = program.buffers.size_of(buffer).0;
            match event.kind {
                EventKind::Alloc => {
                    family_of[buffer.index()] = families.list.len() as u32;
                    families.list.push(Family { root: buffer, size, first: t, last: end });
                    families.member_of.push((buffer.0, families.list.len() as u32 - 1));
                    open.push(1);
                }
                EventKind::ShareWith => {
                    let shared = family_of.get(event.canonical as usize).copied().unwrap_or(NO_ROW);
                    if let Some(family) = families.list.get_mut(shared as usize) {
                        family_of[buffer.index()] = shared;
                        family.size = family.size.max(size);
                        family.last = end;
                        families.member_of.push((buffer.0, shared));
                        open[shared as usize] += 1;
                    }
                }
                EventKind::Free => {
                    if let Some(family) = families.list.get_mut(slot as usize) {
                        let open = &mut open[slot as usize];
                        *open = open.saturating_sub(1);
                        // A buffer may share memory that has formally been freed; then the last free counts.
                        if *open == 0 {
                            family.last = t;
                        }
                    }
                }
                EventKind::Other => {}
            }
        }
        families.member_of.sort_unstable();
        families.member_of.dedup_by_key(|row| row.0);
        // A buffer that is allocated more than once counts for the first of its families.
        for &(buffer, family) in &families.member_of {
            family_of[buffer as usize] = family;
        }
        families.of = family_of;
        (!families.list.is_empty()).then_some(families)
    }

    /// The family of a buffer.
    #[must_use]
    pub fn of(&self, buffer: BufferId) -> Option<usize> {
        self.of.get(buffer.index()).filter(|&&family| family != NO_ROW).map(|&family| family as usize)
    }

    /// The families as blocks to pack, in the same order.
    #[must_use]
    pub fn blocks(&self) -> Vec<Block> {
        self.list.iter().map(|f| Block { size: f.size, start: 2 * f.first, end: 2 * f.last }).collect()
    }

    /// Lowest start and highest end address of the families as placed by the compiler.
    #[must_use]
    pub fn extent(&self, program: &Program) -> (u64, u64) {
        let places = || {
            self.list.iter().filter(|family| family.size > 0).map(|family| {
                let offset = program.buffers.offset.get(family.root.index()).copied().unwrap_or(0);
                (offset, offset.saturating_add(family.size))
            })
        };
        let start = places().map(|p| p.0).min().unwrap_or(0);
        (start, places().map(|p| p.1).max().unwrap_or(0).max(start))
    }

    /// Fraction of families, 0 to 1, that a placement puts at the compiler's offset from `start`.
    #[must_use]
    pub fn equal_offsets(&self, program: &Program, placement: &Placement, start: u64) -> f64 {
        let (mut equal, mut all) = (0usize, 0usize);
        for (family, &offset) in self.list.iter().zip(&placement.offsets) {
            if family.size > 0 {
                all += 1;
                equal +=
                    usize::from(program.buffers.offset.get(family.root.index()) == Some(&start.saturating_add(offset)));
            }
        }
        if all == 0 { 1.0 } else { equal as f64 / all as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Bytes, HeapEvent, HeapTrace};

    #[test]
    fn sharing_joins_and_the_last_free_ends() {
        let event = |kind, buffer, canonical| HeapEvent { kind, buffer, canonical };
        let mut program = Program::default();
        program.buffers.number = vec![1, 2, 3];
        program.buffers.size = vec![Bytes(10), Bytes(20), Bytes(5)];
        program.buffers.offset = vec![0; 3];
        program.traces = vec![HeapTrace {
            events: vec![
                event(EventKind::Alloc, 0, NO_ROW),
                event(EventKind::Free, 0, NO_ROW),
                event(EventKind::ShareWith, 1, 0),
                event(EventKind::Alloc, 2, NO_ROW),
                event(EventKind::Free, 1, NO_ROW),
                event(EventKind::Free, 99, NO_ROW),
            ],
            whole_module: true,
        }];
        let families = Families::new(&program, 0).unwrap_or_default();
        let expected = [
            Family { root: BufferId(0), size: 20, first: 0, last: 4 },
            Family { root: BufferId(2), size: 5, first: 3, last: 5 },
        ];
        assert_eq!(families.list, expected);
        assert_eq!(families.of(BufferId(1)), Some(0));
        assert!(Families::new(&program, 7).is_none());
    }
}
