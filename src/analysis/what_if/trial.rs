//! Changes that are tried: applied to the memory of a program, with what is live then, and packed where that is asked for.

use super::edit::Edit;
use super::memory::Memory;
use super::prediction::{DependsOn, Depth, NEAR, Prediction, RECOMPUTED_USUALLY, ROOM, TryVerdict, WIDEST, band_of};
use super::segments::EVERY;
use super::state::{Kinds, Sizes, State};
use crate::analysis::packing::{self, Block, FALLBACK_SHARE, Moves, Packer, Placement};
use crate::model::{Bytes, Program};

/// How many times the temporaries of one device it may hold where nothing keeps activations divided: a program with
/// weights that are divided as the batch is took 2.7 times as much.
const GATHERED: u64 = 3;

/// Changes applied to the memory of a program; nothing is packed yet.
#[derive(Debug)]
pub struct Trial<'a> {
    memory: &'a Memory,
    program: &'a Program,
    edits: Vec<Edit>,
    state: State<'a>,
    sizes: Sizes,
    /// Bytes of temporaries that are live at once, and when.
    most_live: (u64, u32),
    least: u64,
    /// The fewest bytes if nothing is computed again; 0 where nothing is.
    brought_back: u64,
    /// The fewest bytes if the program is not ordered, where that was worked out beside.
    unordered: Option<u64>,
}

impl<'a> Trial<'a> {
    /// Applies changes.
    #[must_use]
    pub fn new(memory: &'a Memory, program: &'a Program, edits: &[Edit]) -> Self {
        let with =
            |assume: fn(&mut State<'a>)| Self::finished(State::changed_if(program, memory, edits, assume), edits);
        // The order of a program makes a difference where layers are checkpointed.
        let is_remat = edits.iter().any(|edit| matches!(edit, Edit::Remat(..)));
        let Some(capacity) = memory.capacity.filter(|_| memory.is_over() && is_remat) else { return with(|_| {}) };
        // A program that does not fit is printed before the compiler orders it; if it fits now, it is ordered.
        let (trial, ordered) = rayon::join(|| with(|_| {}), || with(|state| state.is_ordered = true));
        if ordered.least <= capacity { Self { unordered: Some(trial.least), ..ordered } } else { trial }
    }

    fn finished(mut state: State<'a>, edits: &[Edit]) -> Self {
        let (memory, program) = (state.memory, state.program);
        let mut sizes = state.finish();
        let mut most_live = packing::most_live(&sizes.blocks);
        let mut least = memory.least_of(&sizes, most_live.0);
        let mut brought_back = 0;
        if memory.rematerialised > 0 && state.kinds != Kinds::default() && !state.kinds.by_hand {
            // With room to spare, the compiler no longer has to recompute.
            let kept = state.without_recomputation(&sizes);
            let live = packing::most_live(&kept.blocks);
            brought_back = memory.least_of(&kept, live.0);
            let limit = memory.room().map_or(u64::MAX, |room| (room as f64 * FALLBACK_SHARE) as u64);
            if brought_back.saturating_add(live.0 / ROOM) <= limit {
                (sizes, most_live, least) = (kept, live, brought_back);
            }
        }
        let edits = edits.to_vec();
        Self { memory, program, edits, state, sizes, most_live, least, brought_back, unordered: None }
    }

    /// The fewest bytes that any packer can allocate: what is live at once.
    #[must_use]
    pub const fn least(&self) -> Bytes {
        Bytes(self.least)
    }

    /// The changes.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        &self.edits
    }

    /// Bytes of the heap packed in program order, and where the blocks lie where that is asked for; `known` are those
    /// bytes where another prediction of the same changes has told them.
    fn packed(&self, depth: Depth, known: Option<u64>) -> (u64, Placement) {
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
    fn best_case(&self, depth: Depth) -> Option<u64> {
        (self.state.may_differ && depth != Depth::Estimate).then(|| {
            let sizes = self.changed_if(|state| state.is_optimistic = true).finish();
            self.memory.least_of(&sizes, packing::most_live(&sizes.blocks).0)
        })
    }

    /// The fewest bytes if the compiler postpones gradients of weights as it does now, though layers are checkpointed: one
    /// of 20 real programs with much room did. `None` where that makes no difference.
    fn postponing(&self, depth: Depth) -> Option<u64> {
        let may_be = self.state.kinds.remat && self.state.is_ordered && depth != Depth::Estimate;
        let unordered = || Self::finished(self.changed_if(|state| state.is_ordered = false), &self.edits).least;
        (may_be && !self.memory.postponed(self.program).is_empty()).then(|| self.unordered.unwrap_or_else(unordered))
    }

    /// The fewest bytes in the worst case of [`State::may_stay`]; `None` where that makes no difference.
    fn worst_case(&self, depth: Depth) -> Option<u64> {
        (self.state.may_stay && depth != Depth::Estimate)
            .then(|| Self::finished(self.changed_if(|state| state.is_cautious = true), &self.edits).least)
    }

    /// The most bytes that the other changes come to, if no padded array can be merged with what is beside it.
    fn without_merging(&self) -> u64 {
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
        let Self { memory, program, edits, state, sizes, most_live: (live, at), least, brought_back, .. } = self;
        let (memory, program, edits) = (*memory, *program, edits.as_slice());
        let (live, at, least, brought_back) = (*live, *at, *least, *brought_back);
        let (mut untold, mut is_bound) = (state.undecided.clone(), state.is_bound);
        let base = self.sizes.base.iter().fold(self.state.homeless, |sum, &size| sum.saturating_add(size));
        let allocated = |heap: u64| base.saturating_add(heap).saturating_add(memory.rest);
        let known =
            known_online.filter(|&bytes| bytes < Bytes(u64::MAX)).and_then(|bytes| bytes.0.checked_sub(allocated(0)));
        let is_changed = self.state.kinds != Kinds::default() && !self.state.kinds.by_hand;
        let cases = || (self.best_case(depth), self.postponing(depth), self.worst_case(depth));
        let ((online, placement), (best_case, postponing, worst_case)) =
            rayon::join(|| self.packed(depth, known), cases);
        let mut peak = base.saturating_add(live).saturating_add_signed(memory.correction_of(live));
        let limit = |share: f64| memory.room().map(|room| (room as f64 * share) as u64);
        let over = |bytes: u64, share: f64| limit(share).is_some_and(|limit| bytes > limit);
        let allocated_online = allocated(online);
        let mut packer = if over(allocated_online, FALLBACK_SHARE) { Packer::Fallback } else { Packer::Online };
        // The second packer is slow, and no packer brings the heap below what is live at once.
        let undecided = over(allocated_online, 1.0) && !over(least, 1.0);
        let is_asked = depth == Depth::Packed || (packer == Packer::Fallback && depth == Depth::Verdict);
        let is_packed_again = is_asked && online > live;
        // Where the blocks lie is asked for at one depth only; at the others their heap is known from like blocks.
        let (heap, fallback) = if !is_packed_again {
            (online, None)
        } else if depth == Depth::Packed {
            let fallback = packing::fallback_below(&sizes.blocks, online);
            (fallback.as_ref().map_or(online, |fallback| fallback.heap), fallback)
        } else {
            (memory.fallback_below(&sizes.blocks, online), None)
        };
        let mut best = allocated(heap);
        let placement = match fallback {
            Some(fallback) if packer == Packer::Fallback => fallback,
            _ => placement,
        };
        // Packed by size, a heap takes hardly more than its live bytes.
        let packed = if depth == Depth::Estimate && undecided { least.saturating_add(live / ROOM) } else { best };
        let mut expected = if packer == Packer::Online { allocated_online.min(best) } else { best };
        // Where there is not room for all of it, the compiler computes again only as much as it must.
        if let Some(usual) =
            limit(RECOMPUTED_USUALLY).filter(|&usual| expected < usual && over(brought_back, FALLBACK_SHARE))
        {
            // What fits so already is filled to about the same.
            let now = if memory.is_over() { u64::MAX } else { memory.allocated };
            let filled = usual.min(now).min(brought_back).max(expected);
            // Whatever the packer: next to nothing of it is lost between blocks.
            peak = peak.saturating_add(filled.saturating_sub(least));
            expected = expected.max(filled);
            best = best.max(expected);
            packer = Packer::Fallback;
        }
        // Where checkpoints would take more than they save, as where nothing is kept for a backward pass, the compiler keeps
        // what it has.
        let only_checkpoints = !edits.is_empty() && edits.iter().all(|edit| matches!(edit, Edit::Remat(..)));
        if only_checkpoints && expected > memory.allocated && !memory.is_over() && memory.rematerialised == 0 {
            expected = memory.allocated;
            best = best.min(expected);
            peak = peak.min(memory.peak);
        }
        let is_short = is_changed && over(expected.max(brought_back), FALLBACK_SHARE);
        // If the program does not fit, the compiler has already recomputed all it could.
        let fits_now = memory.room().is_some_and(|room| memory.allocated <= room);
        let has_reach = is_short && fits_now;
        let mut floor = least;
        if has_reach {
            let spared = memory.spared_in_loops(program, sizes, at);
            floor = memory.floor(program, edits).unwrap_or(least).min(least.saturating_sub(spared));
        }
        let mut range = memory.allocated_range(state.kinds, expected, brought_back, floor);
        if is_changed && packer == Packer::Online {
            // The packer in program order may find less room between edited live ranges than the compiler will, or not.
            let high = Bytes((allocated_online as f64 * (1.0 + band_of(state.kinds))) as u64);
            if high > range.1 {
                range = (range.0.max(Bytes((high.0 as f64 / WIDEST).ceil() as u64)).min(Bytes(expected)), high);
            }
        }
        if state.kinds.donation && state.program.devices() > 1 {
            // What devices add up may then be there twice: before it is added up and after.
            range.1 = range.1.max(Bytes(expected.saturating_add(state.largest_housed)));
        }
        if state.fused > 0 {
            let around = |bytes: u64, times: f64| Bytes((bytes as f64 * times) as u64);
            range.0 = range.0.min(around(expected.saturating_sub(state.fused), 1.0 - NEAR));
            range.1 = range.1.max(around(expected.saturating_add(state.fused), 1.0 + NEAR));
        }
        if let Some(best_case) = best_case
            && state.kinds.remat
            && !state.kinds.sharding
        {
            // A range wider than that says nothing.
            let least = (best_case as f64 * (1.0 - NEAR)).max(expected as f64 / WIDEST);
            range.0 = range.0.min(Bytes(least as u64));
            let widest = Bytes((range.0.0 as f64 * WIDEST) as u64);
            range.1 = range.1.min(widest.max(Bytes(expected)));
            range.0 = range.0.max(Bytes((range.1.0 as f64 / WIDEST).ceil() as u64)).min(Bytes(expected));
        } else if let Some(best_case) = best_case {
            // Both ends are known, so the error of one of them does not come on top.
            range.0 = range.0.min(Bytes(best_case));
            let most = if packer == Packer::Online { allocated_online } else { expected };
            if expected > best_case && range.1.0 as f64 > range.0.0 as f64 * WIDEST {
                range.1 = range.1.min(Bytes(most));
            }
            if state.kinds.sharding && range.1.0 as f64 > range.0.0 as f64 * WIDEST {
                is_bound = true;
                untold.get_or_insert_with(|| {
                    "how much it takes cannot be told: that depends on whether the compiler divides the gradients with the weights".to_owned()
                });
            }
        }
        if let (Some(postponing), Some(room)) = (postponing, limit(FALLBACK_SHARE)) {
            let high = (postponing as f64 * (1.0 + band_of(state.kinds))) as u64;
            // A range wider than that says nothing.
            let high = Bytes(high.min(room.max(range.1.0)).min((expected as f64 * WIDEST) as u64));
            if high > range.1 {
                let low = Bytes((high.0 as f64 / WIDEST).ceil() as u64).min(Bytes(expected));
                range = (range.0.max(low), high);
            }
        }
        if let Some(worst_case) = worst_case {
            let band = match (state.kinds.parts, state.kinds.compute) {
                (true, _) => band_of(state.kinds),
                (false, true) => NEAR,
                (false, false) => 0.0,
            };
            let mut high = (worst_case as f64 * (1.0 + band)) as u64;
            if state.kinds.compute {
                high = high.min(memory.allocated);
            }
            range.1 = range.1.max(Bytes(high));
            let low = Bytes((range.1.0 as f64 / WIDEST).ceil() as u64).min(Bytes(expected));
            range.0 = range.0.max(low);
        }
        // What fits now fits with less, too, if the compiler recomputes as it does now.
        if fits_now && only_take_away(edits) && least <= memory.peak {
            let most = Bytes(memory.allocated.max(expected).max(worst_case.unwrap_or(0)));
            range.1 = range.1.min(most);
        }
        // Arrays that must keep their shape, as others need it, stay padded: in the worst case all of them.
        let padded = edits.iter().any(|edit| matches!(edit, Edit::Unpad(_))).then(|| self.without_merging());
        // Weights that are divided as the batch is, without constraints: the temporaries may be those of all devices.
        let is_unconstrained = state.divided_like_batch.is_some() && !state.kinds.constrain && memory.has_backward();
        let of_all_devices = base.saturating_add(expected.saturating_sub(base).saturating_mul(GATHERED));
        let may_be_over = |capacity: u64| {
            range.1.0 > capacity
                || (is_unconstrained && of_all_devices > capacity)
                || padded.is_some_and(|padded| padded > capacity)
        };
        let is_untold = untold.is_some() && !is_bound;
        let mut fits = memory.capacity.map(|capacity| packed.min(allocated_online) <= capacity && least <= capacity);
        let verdict = match (fits, memory.capacity) {
            _ if is_untold => TryVerdict::Unknown,
            (None, _) | (_, None) => TryVerdict::Unknown,
            (Some(false), Some(capacity)) if is_changed && range.0.0 <= capacity => TryVerdict::MayFit,
            (Some(true), Some(capacity)) if is_changed && may_be_over(capacity) => TryVerdict::MayFit,
            (Some(true), _) => TryVerdict::Fits,
            (Some(false), _) => TryVerdict::Over,
        };
        if is_untold || (verdict == TryVerdict::MayFit && fits == Some(true)) {
            fits = None;
        }
        let mut warnings = state.warnings.clone();
        if expected > range.1.0 {
            warnings.push("the numbers are for no more recomputation than now; the range is for what the compiler can still recompute".to_owned());
        }
        memory.warn(state, &mut warnings);
        let band = if edits.is_empty() { None } else { Some(memory.band(state.kinds)) };
        let lowest = base.saturating_add((live as f64 * state.least_factor) as u64);
        // What needs less than the program that the compiler has made is packed without more recomputation.
        let is_less = expected <= memory.allocated && fits_now;
        Prediction {
            edits: edits.to_vec(),
            base: Bytes(base),
            peak: Bytes(peak),
            peak_event: at / 2,
            peak_range: memory.range(state.kinds, peak, lowest),
            depends_on: match memory.capacity {
                Some(capacity) if range.1.0 <= capacity && is_unconstrained => DependsOn::Division,
                Some(capacity) if range.1.0 <= capacity && padded.is_some() => DependsOn::Merging,
                _ => DependsOn::Recomputation,
            },
            allocated_range: range,
            verdict,
            least: Bytes(least),
            allocated: Bytes(best),
            allocated_online: Bytes(allocated_online),
            packer,
            fits,
            is_tight: fits == Some(true) && over(expected, FALLBACK_SHARE) && !is_less,
            band,
            undecided: untold,
            names_nothing: state.names_nothing,
            left_out: state.left_out.clone(),
            is_bound,
            warnings,
            pairs: state.pairs.clone(),
            sizes: Sizes::default(),
            placement,
        }
    }
}

/// Whether changes only take memory away, in any program.
fn only_take_away(edits: &[Edit]) -> bool {
    let takes_away = |edit: &Edit| match edit {
        Edit::Donate(_) | Edit::Remat(..) | Edit::Chunk(..) | Edit::Blockwise(_) => true,
        Edit::Batch(factor) => *factor <= 1.0,
        _ => false,
    };
    !edits.is_empty() && edits.iter().all(takes_away)
}

impl Memory {
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

    /// Bytes of the heap packed by size where that comes to less than `online`, those of packing in program order: some
    /// changes leave the blocks as they are.
    fn fallback_below(&self, blocks: &[Block], online: u64) -> u64 {
        // So many are not packed, and not kept as a key.
        if blocks.len() > packing::MAX_BLOCKS {
            return online;
        }
        let packed = || packing::fallback_below(blocks, online).map_or(online, |placement| placement.heap);
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
