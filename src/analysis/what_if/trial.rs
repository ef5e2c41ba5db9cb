//! Changes that are tried: applied to the memory of a program, with what is live then, and packed where that is asked for.

use rayon::prelude::*;

use super::edit::Edit;
use super::lent::ROOM_FOR_COPIES;
use super::memory::Memory;
use super::outlook::Outlook;
use super::prediction::{Depth, Prediction, ROOM};
use super::segments::EVERY;
use super::state::{Kinds, Sizes, State};
use crate::analysis::packing::{self, Block, Moves, Placement};
use crate::model::{Bytes, Program};

/// Changes applied to the memory of a program; nothing is packed yet.
#[derive(Debug)]
pub struct Trial<'a> {
    pub(super) memory: &'a Memory,
    pub(super) program: &'a Program,
    pub(super) edits: Vec<Edit>,
    pub(super) state: State<'a>,
    pub(super) sizes: Sizes,
    /// Bytes of temporaries that are live at once, and when.
    pub(super) most_live: (u64, u32),
    pub(super) least: u64,
    /// The fewest bytes if nothing is computed again; 0 where nothing is.
    pub(super) brought_back: u64,
    /// What gradients of weights that are put off take; `None` where none are.
    pub(super) put_off: Option<PutOff>,
    /// The fewest bytes if the program is not ordered, where that was worked out beside.
    unordered: Option<u64>,
}

/// What gradients of weights that are put off take.
#[derive(Debug, Clone, Copy)]
pub(super) struct PutOff {
    /// Bytes that more are live at once.
    pub bytes: u64,
    /// Whether the blocks of the trial have them.
    pub are_in_blocks: bool,
}

impl<'a> Trial<'a> {
    /// Applies changes.
    #[must_use]
    pub fn new(memory: &'a Memory, program: &'a Program, edits: &[Edit]) -> Self {
        let with =
            |assume: fn(&mut State<'a>)| Self::finished(State::changed_if(program, memory, edits, assume), edits);
        // The order of a program makes a difference where layers are checkpointed.
        let is_remat = edits.iter().any(|edit| matches!(edit, Edit::Remat(..)));
        let Some(capacity) = memory.capacity.filter(|_| memory.is_over() && is_remat) else {
            return with(|_| {}).put_off();
        };
        // Both ask for the same segments.
        memory.find_segments(program, edits);
        // A program that does not fit is printed before the compiler orders it; if it fits now, it is ordered.
        let (trial, ordered) = rayon::join(|| with(|_| {}), || with(|state| state.is_ordered = true));
        let chosen = if ordered.least <= capacity { Self { unordered: Some(trial.least), ..ordered } } else { trial };
        chosen.put_off()
    }

    /// The same, where the compiler puts off gradients of weights: all of them if there is room, else as many as fit.
    fn put_off(self) -> Self {
        if !self.state.is_unrolled() || self.state.undecided.is_some() {
            return self;
        }
        let Some((share, times)) = self.state.share_put_off().filter(|share| share.0 > 0.0) else { return self };
        let is_ordered = self.state.is_ordered;
        let state = self.changed_if(|state| (state.is_ordered, state.puts_off) = (is_ordered, Some(times)));
        let late = Self::finished(state, &self.edits);
        let more = (late.least.saturating_sub(self.least) as f64 * share) as u64;
        if more == 0 {
            return self;
        }
        let least = self.least.saturating_add(more);
        let fits = |bytes: u64| self.memory.room().is_none_or(|room| bytes <= room);
        if !fits(self.least) {
            return self;
        }
        let are_in_blocks = share >= 1.0 && fits(least);
        let put_off = Some(PutOff { bytes: more, are_in_blocks });
        if are_in_blocks { Self { put_off, unordered: self.unordered, ..late } } else { Self { put_off, ..self } }
    }

    fn finished(mut state: State<'a>, edits: &[Edit]) -> Self {
        let (memory, program) = (state.memory, state.program);
        let mut sizes = state.finish();
        let mut most_live = packing::most_live(&sizes.blocks);
        let mut least = memory.least_of(&sizes, most_live.0);
        let mut brought_back = 0;
        let fits_in = |share: f64, bytes: u64| memory.room().is_none_or(|room| bytes <= (room as f64 * share) as u64);
        if memory.rematerialised > 0 && state.kinds != Kinds::default() && !state.kinds.by_hand {
            // With room to spare, the compiler no longer has to recompute.
            let kept = state.without_recomputation(&sizes);
            let live = packing::most_live(&kept.blocks);
            brought_back = memory.least_of(&kept, live.0);
            if fits_in(memory.full_from(), brought_back.saturating_add(live.0 / ROOM)) {
                (sizes, most_live, least) = (kept, live, brought_back);
            }
        }
        if state.kinds != Kinds::default()
            && !state.kinds.by_hand
            && let Some((apart, must)) = state.with_copies_apart(&sizes)
        {
            let live = packing::most_live(&apart.blocks);
            let bytes = memory.least_of(&apart, live.0);
            // Some copies are there though there was room: then it is not for want of it.
            let is_for_room = memory.borrowed.is_empty()
                || !fits_in(ROOM_FOR_COPIES, memory.allocated.saturating_add(memory.borrowed_bytes(program)));
            if must || (is_for_room && fits_in(ROOM_FOR_COPIES, bytes)) {
                (sizes, most_live, least) = (apart, live, bytes);
            }
        }
        let edits = edits.to_vec();
        Self { memory, program, edits, state, sizes, most_live, least, brought_back, put_off: None, unordered: None }
    }

    /// The fewest bytes that any packer can allocate: what is live at once.
    #[must_use]
    pub const fn least(&self) -> Bytes {
        Bytes(self.least)
    }

    /// A share of the memory that the compiler makes room in, in bytes; `None` where that is unknown.
    pub(super) fn share_of_room(&self, share: f64) -> Option<u64> {
        self.memory.room().map(|room| (room as f64 * share) as u64)
    }

    /// Whether so many bytes leave so little of that memory that the compiler computes values again.
    pub(super) fn is_tight(&self, bytes: u64) -> bool {
        self.is_above(bytes, self.memory.full_from())
    }

    /// Whether so many bytes are more than a share of that memory.
    pub(super) fn is_above(&self, bytes: u64, share: f64) -> bool {
        self.share_of_room(share).is_some_and(|limit| bytes > limit)
    }

    /// The families of blocks that are live at the peak of the heap, with their bytes.
    pub fn at_peak(&self) -> impl Iterator<Item = (u32, Bytes)> + '_ {
        self.sizes.live_at(self.most_live.1)
    }

    /// The changes.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// Bytes of the heap packed in program order, and where the blocks lie where that is asked for; `known` are those
    /// bytes where another prediction of the same changes has told them.
    pub(super) fn packed(&self, depth: Depth, known: Option<u64>) -> (u64, Placement) {
        match known {
            Some(heap) if depth != Depth::Packed => (heap, Placement::default()),
            _ if depth == Depth::Packed => {
                let placement = packing::online_along(&self.sizes.blocks, &Moves::new(&self.sizes.blocks));
                (placement.heap, placement)
            }
            _ => (packing::online_heap(&self.sizes.blocks, &Moves::new(&self.sizes.blocks)), Placement::default()),
        }
    }

    /// The same changes, where something else is assumed.
    fn changed_if(&self, assume: impl FnOnce(&mut State<'a>)) -> State<'a> {
        State::changed_if(self.program, self.memory, &self.edits, assume)
    }

    /// Bytes allocated if the compiler does all it may; `None` where that makes no difference.
    pub(super) fn best_case(&self, depth: Depth) -> Option<u64> {
        (self.state.may_differ && depth != Depth::Estimate).then(|| {
            let sizes = self.changed_if(|state| state.is_optimistic = true).finish();
            self.memory.least_of(&sizes, packing::most_live(&sizes.blocks).0)
        })
    }

    /// The fewest bytes if the compiler postpones gradients of weights as it does now, though layers are checkpointed: a
    /// quarter of 38 real programs where that makes a difference did. `None` where it makes none.
    pub(super) fn postponing(&self, depth: Depth) -> Option<u64> {
        let may_be = self.state.kinds.remat && self.state.is_ordered && depth != Depth::Estimate;
        let unordered = || Self::finished(self.changed_if(|state| state.is_ordered = false), &self.edits).least;
        (may_be && !self.memory.postponed(self.program).is_empty()).then(|| self.unordered.unwrap_or_else(unordered))
    }

    /// The fewest bytes if the heads of attention are divided; `None` where that makes no difference.
    pub(super) fn with_heads_divided(&self) -> Option<u64> {
        let divided = || Self::finished(self.changed_if(|state| state.divides_heads = true), &self.edits).least;
        self.state.keeps_heads_whole().then(divided)
    }

    /// The fewest bytes in the worst case of [`State::may_stay`]; `None` where that makes no difference.
    pub(super) fn worst_case(&self, depth: Depth) -> Option<u64> {
        (self.state.may_stay && depth != Depth::Estimate)
            .then(|| Self::finished(self.changed_if(|state| state.is_cautious = true), &self.edits).least)
    }

    /// The most bytes that the other changes come to, if no padded array can be merged with what is beside it.
    pub(super) fn without_merging(&self) -> u64 {
        let rest: Vec<Edit> = self.edits.iter().filter(|edit| !matches!(edit, Edit::Unpad(_))).cloned().collect();
        match rest[..] {
            [] => self.memory.allocated,
            _ => Self::new(self.memory, self.program, &rest).outlook(Depth::Estimate, None).allocated_range.1.0,
        }
    }

    /// Packs what is left.
    #[must_use]
    pub fn predict(self, depth: Depth) -> Prediction {
        let prediction = self.outlook(depth, None);
        Prediction { sizes: self.sizes, ..prediction }
    }

    /// As [`Self::predict`], without the blocks; `known_online` are the bytes that packing in program order allocates,
    /// where another prediction of the same changes has told them.
    #[must_use]
    pub fn outlook(&self, depth: Depth, known_online: Option<Bytes>) -> Prediction {
        Outlook::new(self, depth, known_online).prediction()
    }
}

impl Memory {
    /// Works out what checkpoints are around, side by side.
    fn find_segments(&self, program: &Program, edits: &[Edit]) {
        let Some(turn) = self.kept.turn.as_ref().filter(|_| self.kept.rounds.is_empty()) else { return };
        let patterns = edits.iter().filter_map(|edit| match edit {
            Edit::Remat(scope) => scope.pattern(),
            _ => None,
        });
        let mut patterns: Vec<&str> = patterns.collect();
        if !patterns.is_empty() {
            patterns.push(EVERY);
        }
        patterns.sort_unstable();
        patterns.dedup();
        patterns.into_par_iter().for_each(|pattern| {
            self.segments_of(program, turn, pattern);
        });
    }

    /// Predicts what some changes do.
    #[must_use]
    pub fn evaluate(&self, program: &Program, edits: &[Edit], depth: Depth) -> Prediction {
        Trial::new(self, program, edits).predict(depth)
    }

    /// The fewest bytes that any packer can allocate after some changes: what is live at once.
    #[must_use]
    pub fn least(&self, program: &Program, edits: &[Edit]) -> Bytes {
        Trial::new(self, program, edits).least()
    }

    /// The heap packed by size or by span where that comes to less than `online`, the bytes of packing in program order, in
    /// which a GPU's compiler does not pack.
    pub fn packed_again(&self, blocks: &[Block], online: u64) -> Option<Placement> {
        packing::fallback_below(blocks, if self.is_gpu { u64::MAX } else { online }, self.alignment())
    }

    /// Bytes of the heap as [`Self::packed_again`] packs it, or `online`: some changes leave the blocks as they are.
    pub(super) fn fallback_below(&self, blocks: &[Block], online: u64) -> u64 {
        // So many are not packed, and not kept as a key.
        if blocks.len() > packing::MAX_BLOCKS {
            return online;
        }
        let packed = || self.packed_again(blocks, online).map_or(online, |placement| placement.heap);
        *self.packed_by_size.value(blocks, packed)
    }

    fn least_of(&self, sizes: &Sizes, live: u64) -> u64 {
        let base = sizes.base.iter().fold(0u64, |sum, &size| sum.saturating_add(size));
        base.saturating_add(live).saturating_add(self.rest)
    }

    /// The program without some families of temporaries: an upper bound for any change to them.
    #[must_use]
    pub fn without(&self, program: &Program, families: &[usize]) -> Prediction {
        let mut state = State::new(program, self);
        state.drop_families(families);
        Trial::finished(state, &[]).predict(Depth::Verdict)
    }

    /// Bytes left if the compiler recomputes every layer of the forward pass that it can: those of their checkpoints. It
    /// cannot recompute stacks that a scan saves. `None` if the program has no backward pass.
    #[must_use]
    pub fn floor(&self, program: &Program, edits: &[Edit]) -> Option<u64> {
        self.kept.turn.as_ref()?;
        let mut state = State::changed(program, self, edits);
        state.remat_layers(EVERY, None);
        Some(Trial::finished(state, edits).least)
    }
}
