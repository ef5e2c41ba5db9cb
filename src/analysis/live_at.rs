//! Buffers live at one point. Each reserved byte belongs to one buffer, as in [`super::grouping`], so their bytes add
//! up to the height of the curve there.
//!
//! Memory of a result is *reserved* from the first step to the last but *written* only later; both spans are given.

use super::byte_owners::{self, Placed};
use super::flow::ALLOCATE;
use super::map::{MapBox, MemoryMap};
use super::names::lookup::is_rematerialised;
use super::program::{ProgramAnalysis, SpaceAnalysis};
use crate::model::{BufferId, Bytes, Category, Opcode, Program};

/// A buffer that holds memory at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LiveBuffer {
    /// The buffer.
    pub buffer: BufferId,
    /// Bytes reserved for it alone: its size minus the bytes that a buffer placed there later shares. For an
    /// always-live allocation, its whole size.
    pub bytes: Bytes,
    /// Points from its first write to its last read, inclusive; `None` if the program never touches it.
    pub written: Option<(u32, u32)>,
}

/// When memory is reserved for a buffer and when it holds the buffer's value, as inclusive ranges of points.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Residency {
    /// Reserved; for always-live buffers (arguments, constants, results) the whole program, for a buffer that a loop
    /// writes in place until the loop's result is read.
    pub reserved: (u32, u32),
    /// From its first write to its last read.
    pub written: (u32, u32),
    /// Whether its memory is that of a donated argument, which holds the argument before.
    pub in_argument: bool,
    /// Whether it is memory that was only allocated, in which a loop writes when it begins.
    pub is_empty: bool,
    /// Of an argument, when its memory is written again after its last read, if ever.
    pub written_again: Option<u32>,
    /// Whether the compiler computes it a second time, for want of memory to keep it.
    pub is_recomputed: bool,
}

impl Residency {
    /// Both spans of a buffer; `None` if its live range is unknown.
    #[must_use]
    pub fn of(map: &MemoryMap, buffer: BufferId) -> Option<Self> {
        let item = map.box_of(buffer)?;
        let written = (item.start, item.end);
        let region = map.regions.get(item.region as usize);
        let throughout = region.is_some_and(|region| region.always_live);
        let held = map.held(buffer).unwrap_or(written);
        let is_constant = region.is_some_and(|region| region.category == Category::Constant);
        let reserved = if throughout { (0, map.points.saturating_sub(1).max(item.end)) } else { held };
        let in_argument = region.is_some_and(|region| region.category == Category::Parameter);
        // Constants are there from the beginning.
        let written = if is_constant { reserved } else { written };
        Some(Self { reserved, written, in_argument, is_empty: false, written_again: None, is_recomputed: false })
    }

    /// As [`Self::of`], with what is known of memory that is only allocated, of arguments, and of what is recomputed.
    #[must_use]
    pub fn in_words_of(program: &Program, map: &MemoryMap, buffer: BufferId) -> Option<Self> {
        let own = Self::of(map, buffer)?;
        // Asked of every row of a frame, and told of those alone that are read no more.
        let is_told = own.in_argument && own.is_throughout() && own.reserved.1 > own.written.1;
        let written_again = if is_told { written_after(program, map, buffer, own.written.1) } else { None };
        let is_recomputed = program.buffers.instruction_of(buffer).is_some_and(|at| is_rematerialised(program, at));
        Some(Self { is_empty: is_only_allocated(program, buffer), written_again, is_recomputed, ..own })
    }

    /// Whether it is an argument whose memory is still reserved at a point after its last read, for a result.
    #[must_use]
    pub const fn is_past(&self, point: u32) -> bool {
        self.is_throughout() && self.in_argument && self.written.1 < point && self.reserved.1 > point
    }

    /// Whether it has its memory for the whole run, and its value from the beginning.
    #[must_use]
    pub const fn is_throughout(&self) -> bool {
        self.reserved.0 == 0 && self.written.0 == 0
    }

    /// What is to say of its memory: how the two spans differ, `reserved from step 0, written at 5,843`, in the memory of an argument
    /// `in the memory of the donated argument params['w'], written at step 5,843`, or where others write the memory in
    /// place afterwards `updated in place up to step 1,544`; of memory that is only allocated `empty up to step 1,544`, of
    /// donated arguments `last read at step 412, written again at 2,755`; then `recomputed by the compiler`. `None` if the
    /// memory is reserved exactly while it is written, by what is computed once. `argument` finds the path of that
    /// argument, as [`argument_before`] does.
    #[must_use]
    pub fn note<'a>(&self, unit: &str, argument: impl FnOnce() -> Option<&'a str>) -> Option<String> {
        let recomputed = self.is_recomputed.then(|| "recomputed by the compiler".to_owned());
        let notes: Vec<String> = self.difference(unit, argument).into_iter().chain(recomputed).collect();
        (!notes.is_empty()).then(|| notes.join("; "))
    }

    /// How reserved and written differ, in words.
    fn difference<'a>(&self, unit: &str, argument: impl FnOnce() -> Option<&'a str>) -> Option<String> {
        let number = |point: u32| point.to_string();
        if self.written.0 > self.reserved.0 {
            let [reserved, written] = [self.reserved.0, self.written.0].map(number);
            return Some(if self.in_argument {
                let of = argument()
                    .map_or_else(|| "a donated argument".to_owned(), |path| format!("the donated argument {path}"));
                format!("in the memory of {of}, written at {unit} {written}")
            } else {
                format!("reserved from {unit} {reserved}, written at {written}")
            });
        }
        if self.reserved.1 <= self.written.1 {
            return None;
        }
        let last = number(self.written.1);
        match (self.is_throughout(), self.is_empty) {
            (true, _) if !self.in_argument => None,
            (true, _) => Some(match self.written_again {
                Some(again) if again <= self.written.1.saturating_add(1) => {
                    format!("updated in place from {unit} {}", number(again))
                }
                Some(again) => format!("last read at {unit} {last}, written again at {}", number(again)),
                None => format!("last read at {unit} {last}"),
            }),
            (false, true) => Some(format!("empty up to {unit} {last}, when a loop begins to write it")),
            (false, false) => Some(format!("updated in place up to {unit} {}", number(self.reserved.1))),
        }
    }
}

/// When another buffer is written in the memory of an argument that is last read at a point.
fn written_after(program: &Program, map: &MemoryMap, buffer: BufferId, last: u32) -> Option<u32> {
    let region = map.regions.get(map.box_of(buffer)?.region as usize)?;
    let allocation = program.allocations.get(region.allocation.index())?;
    let others = program.assigned_to(allocation).iter().filter(|assigned| assigned.buffer != buffer);
    others
        .filter_map(|assigned| map.box_of(assigned.buffer))
        .map(|item| item.start)
        .filter(|&start| start >= last)
        .min()
}

/// Whether a buffer is memory that the compiler allocates before anything is written to it.
fn is_only_allocated(program: &Program, buffer: BufferId) -> bool {
    program.buffers.instruction_of(buffer).is_some_and(|at| {
        program.instructions.opcode.get(at.index()) == Some(&Opcode::CUSTOM_CALL)
            && program.text.custom_call_target(at) == ALLOCATE
    })
}

/// Path of the argument that a buffer's memory holds before the buffer is written; `None` if it is that of none, or of a
/// part of one.
#[must_use]
pub fn argument_before<'a>(
    program: &Program,
    analysis: &'a ProgramAnalysis,
    map: &MemoryMap,
    buffer: BufferId,
) -> Option<&'a str> {
    let region = map.regions.get(map.box_of(buffer)?.region as usize)?;
    let allocation = program.allocations.get(region.allocation.index())?;
    let is_whole = allocation.is_parameter && allocation.parameter_shape_index.is_empty();
    let path = analysis.argument_paths(program).get(&allocation.parameter_number).filter(|_| is_whole)?;
    Some(path.as_str()).filter(|path| !path.is_empty())
}

/// The buffers that have memory at a point with bytes of their own ([`standing`]), largest first. Their bytes add up to
/// the reserved curve.
#[must_use]
pub fn live_at(program: &Program, space: &SpaceAnalysis, map: &MemoryMap, point: u32) -> Vec<LiveBuffer> {
    let is_heap = |item: &MapBox| map.regions.get(item.region as usize).is_some_and(|region| !region.always_live);
    let heap = map.live_at(point).into_iter().filter(is_heap).map(|item| Placed {
        buffer: item.buffer,
        start: item.start,
        address: item.address,
        size: item.size,
    });
    let rows = byte_owners::always_live(program, &space.xprof.always_live_buffers);
    let mut live: Vec<LiveBuffer> = rows.chain(byte_owners::own_bytes(heap.collect())).map(with_span(map)).collect();
    live.sort_by_key(|found| (std::cmp::Reverse(found.bytes), found.buffer));
    live
}

/// Bytes of buffers with memory at a step that are written only later, such as results.
#[must_use]
pub fn unwritten(live: &[LiveBuffer], step: u32) -> Bytes {
    live.iter().filter(|live| live.written.is_some_and(|(first, _)| first > step)).map(|live| live.bytes).sum()
}

/// Adds when a buffer is written.
pub(super) fn with_span(map: &MemoryMap) -> impl Fn((BufferId, Bytes)) -> LiveBuffer + '_ {
    move |(buffer, bytes)| LiveBuffer { buffer, bytes, written: map.box_of(buffer).map(|item| (item.start, item.end)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_says_what_it_holds_besides_a_value() {
        let spans = |reserved, written| Residency {
            reserved,
            written,
            in_argument: false,
            is_empty: false,
            written_again: None,
            is_recomputed: false,
        };
        let words = |spans: Residency| spans.note("step", || None);
        assert_eq!(words(spans((5, 9), (5, 9))), None);
        assert_eq!(words(spans((0, 90), (7, 90))).as_deref(), Some("reserved from step 0, written at 7"));
        assert_eq!(words(spans((5, 90), (5, 9))).as_deref(), Some("updated in place up to step 90"));
        let empty = Residency { is_empty: true, ..spans((5, 90), (5, 9)) };
        assert_eq!(words(empty).as_deref(), Some("empty up to step 9, when a loop begins to write it"));
        let donated = Residency { in_argument: true, ..spans((0, 90), (0, 41)) };
        assert_eq!(words(donated).as_deref(), Some("last read at step 41"));
        let again = |at: u32| words(Residency { written_again: Some(at), ..donated });
        assert_eq!(again(70).as_deref(), Some("last read at step 41, written again at 70"));
        assert_eq!(again(41).as_deref(), Some("updated in place from step 41"));
        let recomputed = |spans| words(Residency { is_recomputed: true, ..spans });
        assert_eq!(recomputed(spans((5, 9), (5, 9))).as_deref(), Some("recomputed by the compiler"));
        assert_eq!(
            recomputed(spans((5, 90), (5, 9))).as_deref(),
            Some("updated in place up to step 90; recomputed by the compiler")
        );
        assert!(donated.is_past(50) && !donated.is_past(41) && !empty.is_past(50));
        // Whatever is there for the whole run, and no argument, says nothing.
        assert_eq!(words(spans((0, 90), (0, 41))), None);
    }
}
