//! What changes come to once they are packed: the bytes that are expected, the range they are in, and whether they fit.

use super::edit::Edit;
use super::outcome::UNTOLD;
use super::prediction::{
    DependsOn, Depth, NEAR, Prediction, RECOMPUTED_TO, RECOMPUTED_USUALLY, ROOM, TryVerdict, WIDEST, band_of,
};
use super::state::{Kinds, Sizes};
use super::trial::Trial;
use crate::analysis::names::pass::Pass;
use crate::analysis::packing::{Packer, Placement};
use crate::model::Bytes;

/// From which multiple of the capacity on checkpoints are not enough: 4 of 54 real programs took a fifth less than
/// predicted.
const FAR_ABOVE: f64 = 1.2;

/// Share of what is allocated from which on what is lost between blocks matters.
const FRAGMENTED: f64 = 0.1;

/// From how many times the present batch on a prediction is less certain, and the share that it may take more: a program
/// took 11 % more than predicted at 14 times its batch.
const FAR_AWAY: f64 = 4.0;
const MORE_FAR_AWAY: f64 = 0.12;

/// Share of its memory up to which the compiler puts off gradients of weights: four real programs took 94 to 97 %.
const FILLED_WITH_GRADIENTS: f64 = 0.96;

/// Share that programs took more than is expected where gradients of weights are put off.
const MORE_PUT_OFF: f64 = 0.1;

/// How many times what is expected of checkpoints a program takes that postpones gradients, from which on it matters.
const POSTPONED: f64 = 1.1;

/// How many times what is expected of checkpoints the program took that put off the most gradients.
const PUT_OFF_MOST: f64 = 3.3;

/// Share of what is expected of checkpoints that a program may take less whose layers are no scan.
const LESS_THAN_ONE_BY_ONE: f64 = 0.15;

/// How many times what is expected of checkpoints a program that does not fit now may take where that still fits: two of 16
/// did not fit then, whose expected bytes were seven eighths of the capacity and more.
const MADE_TO_FIT: f64 = 1.25;

/// Share of its memory that a program does without at most where the GPU's compiler computes values again: of 10 programs
/// that did not fit in a GPU (jaxlib 0.11.2, H200) six took up to 0.1 % less, four 7 to 18 %.
const RECOMPUTED_ON_GPUS: f64 = 0.18;

/// Share of what is expected of one sample that a training step may take: without the dimension of the batch the compiler
/// may keep scores in fewer bits, or divide values otherwise. Of seven programs three took 72 to 85 %, the others 95 to 100 %.
const ONE_SAMPLE: f64 = 0.72;

/// Share of what is expected where activations are divided along their width that a program may take.
const LESS_BY_WIDTH: f64 = 0.75;

/// From how many bytes on the new values of weights are not gathered together: a program with six tables of 1.2 GiB was
/// compiled for TPUs.
const LARGE: u64 = 512 << 20;

/// Part of what a program takes by which a change of its arguments alone makes no difference.
const NEXT_TO_NOTHING: u64 = 500;

/// Fewest arrays that the compiler copies as the weights of layers.
const LEAST_WEIGHTS: usize = 8;

/// What copies of weights come to that are there at once, of their bytes: of large tables, which are updated one after the
/// other, one.
fn copied_at_once(weights: impl Iterator<Item = u64>) -> u64 {
    let (large, small): (Vec<u64>, Vec<u64>) = weights.partition(|&size| size > LARGE);
    small.iter().chain(large.iter().max()).copied().fold(0u64, u64::saturating_add)
}

/// Lowest and highest bytes.
type Range = (Bytes, Bytes);

/// Bytes allocated where the compiler does something else than is expected; `None` where that makes no difference.
#[derive(Debug, Clone, Copy)]
struct Cases {
    /// It does all it may to save memory.
    best: Option<u64>,
    /// It postpones gradients of weights as it does now.
    postponing: Option<u64>,
    /// It keeps all it may.
    worst: Option<u64>,
}

/// A trial that has been packed.
#[derive(Debug)]
pub(super) struct Outlook<'t, 'a> {
    trial: &'t Trial<'a>,
    cases: Cases,
    /// Always-live bytes.
    base: u64,
    peak: u64,
    packer: Packer,
    /// Allocated bytes: packed in program order, with the better of two packers, and as expected.
    online: u64,
    best: u64,
    expected: u64,
    /// Bytes by which whether it fits is judged.
    packed: u64,
    placement: Placement,
    /// The range of allocated bytes.
    range: Range,
    /// Allocated bytes as packed in program order alone.
    packed_online: u64,
    /// Bytes that are expected if the compiler did not fill the room that a change leaves.
    unfilled: u64,
    /// Whether it is expected to fill that room.
    is_filled: bool,
    /// Bytes up to which it may take, whatever else is expected.
    most: u64,
    /// Whether a division leaves the range so wide that it says nothing.
    is_open: bool,
}

impl<'t, 'a> Outlook<'t, 'a> {
    /// Packs a trial and works out what is expected of it. `known_online` are the bytes that packing in program order
    /// allocates, where another prediction of the same changes has told them.
    pub fn new(trial: &'t Trial<'a>, depth: Depth, known_online: Option<Bytes>) -> Self {
        let mut outlook = Self::after_packing(trial, depth, known_online);
        outlook.order_logits();
        outlook.add_put_off();
        outlook.fill_the_room();
        outlook.copy_the_weights();
        outlook.keep_what_costs_more();
        outlook.find_range();
        outlook
    }

    fn after_packing(trial: &'t Trial<'a>, depth: Depth, known_online: Option<Bytes>) -> Self {
        let Trial { memory, state, sizes, most_live: (live, _), least, .. } = trial;
        let (live, least) = (*live, *least);
        let base = sizes.base.iter().fold(state.homeless, |sum, &size| sum.saturating_add(size));
        let allocated = |heap: u64| base.saturating_add(heap).saturating_add(memory.rest);
        let known =
            known_online.filter(|&bytes| bytes < Bytes(u64::MAX)).and_then(|bytes| bytes.0.checked_sub(allocated(0)));
        let cases = || Cases {
            best: trial.best_case(depth),
            postponing: trial.postponing(depth),
            worst: trial.worst_case(depth),
        };
        let ((heap_online, placement), cases) = rayon::join(|| trial.packed(depth, known), cases);
        let online = allocated(heap_online);
        let packer = if memory.is_gpu || trial.is_tight(online) { Packer::Fallback } else { Packer::Online };
        // The second packer is slow, and no packer brings the heap below what is live at once.
        let is_asked = depth == Depth::Packed || (packer == Packer::Fallback && depth == Depth::Verdict);
        let is_packed_again = is_asked && heap_online > live;
        // Where the blocks lie is asked for at one depth only; at the others their heap is known from like blocks.
        let (heap, fallback) = if !is_packed_again {
            (heap_online, None)
        } else if depth == Depth::Packed {
            let fallback = memory.packed_again(&sizes.blocks, heap_online);
            (fallback.as_ref().map_or(heap_online, |fallback| fallback.heap), fallback)
        } else {
            (memory.fallback_below(&sizes.blocks, heap_online), None)
        };
        let best = allocated(heap);
        let placement = match fallback {
            Some(fallback) if packer == Packer::Fallback => fallback,
            _ => placement,
        };
        // Packed by size, a heap takes hardly more than its live bytes.
        let is_undecided = trial.is_above(online, 1.0) && !trial.is_above(least, 1.0);
        let packed = if depth == Depth::Estimate && is_undecided { least.saturating_add(live / ROOM) } else { best };
        let expected = if packer == Packer::Online { online.min(best) } else { best };
        let peak = base.saturating_add(live).saturating_add_signed(memory.correction_of(live));
        let range = (Bytes(expected), Bytes(expected));
        Self {
            trial,
            cases,
            base,
            peak,
            packer,
            online,
            best,
            expected,
            packed,
            placement,
            range,
            packed_online: online,
            unfilled: expected,
            is_filled: false,
            most: 0,
            is_open: false,
        }
    }

    /// Takes away what the compiler saves by the order of what makes and reads logits, but not from what it may take.
    fn order_logits(&mut self) {
        let less = self.trial.saved_by_order();
        if less == 0 {
            return;
        }
        self.most = self.most.max(self.expected);
        for bytes in [&mut self.expected, &mut self.online, &mut self.best, &mut self.packed, &mut self.peak] {
            *bytes = bytes.saturating_sub(less);
        }
    }

    /// Adds what gradients of weights take that are put off, where the blocks do not have it: as much as there is room for.
    fn add_put_off(&mut self) {
        let Some(put_off) = self.trial.put_off.filter(|put_off| !put_off.are_in_blocks) else { return };
        let room = self.trial.share_of_room(FILLED_WITH_GRADIENTS).unwrap_or(u64::MAX);
        let more = put_off.bytes.min(room.saturating_sub(self.expected));
        for bytes in [&mut self.expected, &mut self.online, &mut self.best, &mut self.packed, &mut self.peak] {
            *bytes = bytes.saturating_add(more);
        }
    }

    /// Where there is not room for all of it, the compiler computes again only as much as it must.
    fn fill_the_room(&mut self) {
        let Trial { memory, least, brought_back, .. } = *self.trial;
        let is_more = |usual: &u64| self.expected < *usual && self.trial.is_tight(brought_back);
        let Some(usual) = self.trial.share_of_room(RECOMPUTED_USUALLY).filter(is_more) else { return };
        // What fits so already is filled to about the same.
        let now = if memory.is_over() { u64::MAX } else { memory.allocated };
        let filled = usual.min(now).min(brought_back).max(self.expected);
        (self.unfilled, self.is_filled) = (self.unfilled.min(self.expected), filled > self.expected);
        // Whatever the packer: next to nothing of it is lost between blocks.
        self.peak = self.peak.saturating_add(filled.saturating_sub(least));
        self.expected = self.expected.max(filled);
        self.best = self.best.max(self.expected);
        self.packer = Packer::Fallback;
    }

    /// Where only the state of the optimizer is divided and there is room, each weight is copied, as its new value is
    /// gathered into its place: 8 of 9 real programs took 0.8 to 2 times as much more as their weights have.
    fn copy_the_weights(&mut self) {
        let Trial { memory, state, sizes, .. } = self.trial;
        if !state.kinds.sharding || state.kinds.remat || state.kinds.constrain || !memory.has_backward() {
            return;
        }
        let rows = || (0..sizes.base.len()).filter(|&row| memory.roles[row].is_trained);
        let is_divided = |row: usize| sizes.base[row] < memory.base[row].size;
        let are_weights_divided = rows().any(is_divided);
        let copies = copied_at_once(rows().map(|row| sizes.base[row]));
        let is_state_divided = (0..sizes.base.len()).any(|row| !memory.roles[row].is_trained && is_divided(row));
        let with_copies = self.expected.saturating_add(copies);
        if are_weights_divided || !is_state_divided || self.trial.is_tight(with_copies) {
            return;
        }
        self.unfilled = self.unfilled.min(self.expected);
        for bytes in [&mut self.expected, &mut self.online, &mut self.best, &mut self.packed, &mut self.peak] {
            *bytes = bytes.saturating_add(copies);
        }
    }

    /// Where checkpoints would take more than they save, as where nothing is kept for a backward pass, the compiler keeps
    /// what it has. It does draw random bits again, whatever they take.
    fn keep_what_costs_more(&mut self) {
        let memory = self.trial.memory;
        let edits = &self.trial.edits;
        let only_checkpoints = !edits.is_empty() && edits.iter().all(|edit| matches!(edit, Edit::Remat(..)));
        let is_more = only_checkpoints && self.expected > memory.allocated && !memory.is_over();
        if is_more && memory.rematerialised == 0 && self.trial.state.blocks_of_random_bits().is_empty() {
            self.expected = memory.allocated;
            self.online = self.online.min(self.expected);
            self.best = self.best.min(self.expected);
            self.peak = self.peak.min(memory.peak);
        }
    }

    /// Whether something is changed in a way that the compiler has its say in.
    fn is_changed(&self) -> bool {
        let kinds = self.trial.state.kinds;
        kinds != Kinds::default() && !kinds.by_hand
    }

    /// Whether the program as it is fits.
    fn fits_now(&self) -> bool {
        let memory = self.trial.memory;
        memory.room().is_some_and(|room| memory.allocated <= room)
    }

    fn find_range(&mut self) {
        let Trial { memory, state, brought_back, .. } = self.trial;
        self.range = memory.allocated_range(state.kinds, (self.expected, self.base), *brought_back, self.floor());
        self.widen_by_packing();
        self.widen_by_fragmentation();
        if state.kinds.donation && self.trial.program.devices() > 1 {
            // What devices add up may then be there twice: before it is added up and after.
            self.range.1 = self.range.1.max(Bytes(self.expected.saturating_add(state.largest_housed)));
        }
        if state.fused > 0 {
            let around = |bytes: u64, times: f64| Bytes((bytes as f64 * times) as u64);
            self.range.0 = self.range.0.min(around(self.expected.saturating_sub(state.fused), 1.0 - NEAR));
            self.range.1 = self.range.1.max(around(self.expected.saturating_add(state.fused), 1.0 + NEAR));
        }
        self.widen_to_best_case();
        self.widen_by_copies();
        self.widen_by_division();
        self.widen_by_width();
        self.widen_to_one_sample();
        self.widen_to_postponing();
        self.widen_by_put_off();
        self.widen_to_worst_case();
        self.widen_by_sums();
        self.range.1 = self.range.1.max(Bytes(self.most));
        // What recomputes to fit may do so where it need not, too.
        if self.is_filled {
            self.range.0 = self.range.0.min(Bytes(self.unfilled).max(lowest_below(self.range.1)));
        }
        // What only takes memory away adds none, if the compiler recomputes as it does now.
        if only_take_away(&self.trial.edits) && self.trial.least <= memory.peak {
            let most = Bytes(memory.allocated.max(self.expected).max(self.cases.worst.unwrap_or(0)));
            self.range.1 = self.range.1.min(most);
        }
        // What is over and may fit takes as little then as others that recompute.
        let room = memory.room().filter(|_| memory.has_backward() && !memory.is_gpu && self.is_changed());
        if let Some(room) = room.map(Bytes).filter(|&room| room < Bytes(self.expected) && self.range.0 <= room) {
            let usual = self.trial.share_of_room(RECOMPUTED_TO).map_or(room, Bytes);
            self.range.0 = self.range.0.min(usual.max(lowest_below(self.range.1)));
        }
        // What changes next to nothing leaves the program as it is.
        let kinds = Kinds { donation: state.kinds.donation, dtype: state.kinds.dtype, ..Kinds::default() };
        if state.kinds == kinds && self.expected.abs_diff(memory.allocated) <= memory.allocated / NEXT_TO_NOTHING {
            let (low, high) = (self.expected.min(memory.allocated), self.expected.max(memory.allocated));
            self.range = (Bytes(low), Bytes(high));
        }
        // Nor did dividing arguments over devices in any of the real programs.
        if state.kinds == (Kinds { sharding: true, ..Kinds::default() }) && self.fits_now() {
            self.range.1 = self.range.1.min(Bytes(memory.allocated.max(self.expected)));
        }
    }

    /// The fewest bytes if the compiler recomputes all it can.
    fn floor(&self) -> u64 {
        let Trial { memory, program, edits, sizes, most_live: (_, at), least, brought_back, .. } = self.trial;
        let is_short = self.is_changed() && self.trial.is_tight(self.expected.max(*brought_back));
        if memory.is_gpu {
            let saved = self.expected as f64 * RECOMPUTED_ON_GPUS;
            return (*least).min(self.expected.saturating_sub(saved as u64));
        }
        // If the program does not fit, the compiler has already recomputed all it could, unless no recomputation would have
        // been enough, and now it nearly is without.
        let is_near = !self.trial.is_above(self.expected, FAR_ABOVE);
        let is_donated = is_near && self.trial.state.kinds == (Kinds { donation: true, ..Kinds::default() });
        if !is_short || !(self.fits_now() || is_donated) {
            return *least;
        }
        if !self.fits_now() {
            return least.saturating_sub(self.kept_at_peak() / 2);
        }
        let spared = memory.spared_in_loops(program, sizes, *at);
        memory.floor(program, edits).unwrap_or(*least).min(least.saturating_sub(spared))
    }

    /// Bytes at the peak that the forward pass keeps for the backward pass, or that wait in it for the weights' gradients.
    fn kept_at_peak(&self) -> u64 {
        let passes = &self.trial.memory.kept.passes;
        let is_of_step = |family: u32| {
            matches!(passes.get(family as usize), Some(Pass::Forward | Pass::Recomputed | Pass::Backward))
        };
        self.trial.at_peak().filter(|row| is_of_step(row.0)).map(|row| row.1.0).fold(0, u64::saturating_add)
    }

    /// Of one sample the compiler may leave out the dimension.
    fn widen_to_one_sample(&mut self) {
        if self.is_of_one_sample() {
            let least = Bytes((self.expected as f64 * ONE_SAMPLE) as u64).max(lowest_below(self.range.1));
            self.range.0 = self.range.0.min(least);
        }
    }

    /// Whether a training step is left one sample of several on each device.
    fn is_of_one_sample(&self) -> bool {
        self.trial.state.to_one_sample && self.trial.memory.has_backward()
    }

    /// The most bytes up to which a range says anything.
    fn widest(&self) -> u64 {
        (self.expected as f64 * WIDEST) as u64
    }

    /// The packer in program order may find less room between edited live ranges than the compiler will, or not.
    fn widen_by_packing(&mut self) {
        // A GPU's compiler packs by size, but of a changed program the order is not known to the byte either.
        if !self.is_changed() || (self.packer != Packer::Online && !self.trial.memory.is_gpu) {
            return;
        }
        let high = (self.online as f64 * (1.0 + band_of(self.trial.state.kinds))) as u64;
        let high = Bytes(high.min(self.widest().max(self.online)));
        if high > self.range.1 {
            self.range = (self.range.0.max(lowest_below(high)).min(Bytes(self.expected)), high);
        }
    }

    /// Where much of the heap is lost between blocks now, as much may be where these are smaller.
    fn widen_by_fragmentation(&mut self) {
        let memory = self.trial.memory;
        let kinds = self.trial.state.kinds;
        let lost = memory.allocated.saturating_sub(memory.peak);
        let is_resized = (kinds.batch || kinds.dimension || kinds.dtype || kinds.compute) && !kinds.remat;
        if !is_resized || (lost as f64) < memory.allocated as f64 * FRAGMENTED {
            return;
        }
        let high = Bytes(self.peak.saturating_add(lost));
        if high > self.range.1 && high.0 as f64 <= self.range.0.0 as f64 * WIDEST {
            self.range.1 = high;
        }
    }

    fn widen_to_best_case(&mut self) {
        let Some(best_case) = self.cases.best else { return };
        let (kinds, expected) = (self.trial.state.kinds, self.expected);
        if kinds.remat && !kinds.sharding {
            // A range wider than that says nothing.
            let least = (best_case as f64 * (1.0 - NEAR)).max(expected as f64 / WIDEST);
            self.range.0 = self.range.0.min(Bytes(least as u64));
            let widest = Bytes((self.range.0.0 as f64 * WIDEST) as u64);
            self.range.1 = self.range.1.min(widest.max(Bytes(expected)));
            self.range.0 = self.range.0.max(lowest_below(self.range.1)).min(Bytes(expected));
            return;
        }
        if (kinds.compute || kinds.dtype) && !kinds.sharding {
            if kinds.compute {
                self.range.0 = self.range.0.min(Bytes(best_case).max(lowest_below(self.range.1)));
            }
            return;
        }
        // Both ends are known, so the error of one of them does not come on top.
        self.range.0 = self.range.0.min(Bytes(best_case));
        let most = if self.packer == Packer::Online { self.online } else { expected };
        if expected > best_case && is_too_wide(self.range) {
            self.range.1 = self.range.1.min(Bytes(most));
        }
        self.is_open = kinds.sharding && is_too_wide(self.range);
    }

    /// Where there is room, the compiler copies the weights that it gathers or works on in parts: 3 of 8 programs took as
    /// much more as the weights on a device.
    fn widen_by_copies(&mut self) {
        let Trial { memory, state, sizes, .. } = self.trial;
        if !state.kinds.sharding {
            return;
        }
        let is_training = memory.has_backward();
        let is_copied = |&row: &usize| {
            if is_training { memory.roles[row].is_trained } else { sizes.base[row] < memory.base[row].size }
        };
        let copied: Vec<u64> = (0..sizes.base.len()).filter(is_copied).map(|row| sizes.base[row]).collect();
        // A few arrays that are divided are not the weights of layers.
        if copied.len() < LEAST_WEIGHTS {
            return;
        }
        let copies = copied_at_once(copied.into_iter());
        let high = Bytes(self.expected.saturating_add(copies));
        if high > self.range.1 {
            self.range = (self.range.0.max(lowest_below(high).min(Bytes(self.expected))), high);
        }
    }

    /// Where weights are divided as the batch is and layers are not in a scan, the compiler keeps and gathers more than
    /// before: each of 7 programs took more than arguments and results alone tell, 17 to 39 % in four of them.
    fn widen_by_division(&mut self) {
        let kept = &self.trial.memory.kept;
        if self.trial.state.unconstrained().is_none() || kept.stacks.iter().any(|stack| !stack.is_in_layer) {
            return;
        }
        if self.expected > self.unfilled {
            // What recomputes to fit, and has room to recompute less, may as well not.
            self.range.0 = self.range.0.min(Bytes(self.unfilled).max(lowest_below(self.range.1)));
            return;
        }
        let high = Bytes((self.expected as f64 * WIDEST) as u64);
        if high > self.range.1 {
            self.range = (self.range.0.max(Bytes(self.expected)), high);
        }
    }

    /// Where activations are divided along their width, what holds the batch of all devices is most of it: of 4 real
    /// programs three took 1.03 to 1.11 times what is expected, one that the compiler made recompute 0.7 times.
    fn widen_by_width(&mut self) {
        if self.trial.state.parts_of_width().is_none() {
            return;
        }
        let low = (self.expected as f64 * LESS_BY_WIDTH) as u64;
        self.range = (Bytes(low), Bytes((low as f64 * WIDEST) as u64));
        self.is_open = false;
    }

    /// Layers that are no scan may be computed again several at a time, and the compiler may postpone gradients though they
    /// are checkpointed, also where that is more than there is room for: of 98 real programs 90 took 0.85 to 1.36 times
    /// what is expected, 4 more and 4 less.
    fn widen_to_postponing(&mut self) {
        let kinds = self.trial.state.kinds;
        let is_postponing = self.cases.postponing.is_some_and(|most| most as f64 > self.expected as f64 * POSTPONED);
        let is_unrolled = kinds.remat && self.cases.best.is_some();
        if kinds.sharding || !(is_postponing || is_unrolled) {
            return;
        }
        self.range.0 = self.range.0.max(Bytes((self.expected as f64 * (1.0 - LESS_THAN_ONE_BY_ONE)) as u64));
        // A range wider than that says nothing.
        let high = Bytes((self.range.0.0 as f64 * WIDEST) as u64);
        // What fits now is made to fit again, and what does not, where that is not far from what is expected.
        let needs = if self.fits_now() { 0 } else { (self.expected as f64 * MADE_TO_FIT) as u64 };
        let most = self.trial.memory.room().map_or(high, |room| high.min(Bytes(room.max(needs))));
        self.range.1 = self.range.1.max(most);
    }

    /// Not all gradients that may be put off always are: of 12 real programs three took as much as is expected, the others
    /// down to 0.7 times.
    fn widen_by_put_off(&mut self) {
        let Some(put_off) = self.trial.put_off else { return };
        let high = (self.expected as f64 * (1.0 + MORE_PUT_OFF)) as u64;
        let none = (self.expected.saturating_sub(put_off.bytes) as f64 * (1.0 - LESS_THAN_ONE_BY_ONE)) as u64;
        self.range = (lowest_below(Bytes(high)).max(Bytes(none)), Bytes(high));
        self.is_open = false;
    }

    /// Whether layers that are checkpointed are no scan, and what fits as expected would not if the compiler put off as many
    /// gradients as it ever did.
    fn may_not_do_if_put_off(&self) -> bool {
        let kinds = self.trial.state.kinds;
        let is_unrolled = kinds.remat && self.cases.best.is_some() && self.trial.state.share_put_off().is_none();
        let most = (self.expected as f64 * PUT_OFF_MOST) as u64;
        is_unrolled && !self.trial.is_above(self.expected, 1.0) && self.trial.is_above(most, 1.0)
    }

    fn widen_to_worst_case(&mut self) {
        let Some(worst_case) = self.cases.worst else { return };
        let kinds = self.trial.state.kinds;
        let band = match (kinds.parts, kinds.compute) {
            (true, _) => band_of(kinds),
            (false, true) => NEAR,
            (false, false) => 0.0,
        };
        let mut high = (worst_case as f64 * (1.0 + band)) as u64;
        if kinds.compute {
            high = high.min(self.trial.memory.allocated);
        }
        if kinds.parts {
            high = high.min(self.widest().max(worst_case));
        }
        self.range.1 = self.range.1.max(Bytes(high));
        self.range.0 = self.range.0.max(lowest_below(self.range.1).min(Bytes(self.expected)));
    }

    /// The sums of gradients that micro-batches keep are there whatever the compiler computes again: with little room, it
    /// may not be enough.
    fn widen_by_sums(&mut self) {
        if self.trial.edits.iter().any(|edit| matches!(edit, Edit::Micro(_))) {
            let high = (self.expected as f64 * (1.0 + band_of(self.trial.state.kinds))) as u64;
            self.range.1 = self.range.1.max(Bytes(high));
        }
    }

    /// The most bytes if arrays that must keep their shape, as others need it, stay padded: in the worst case all of them.
    fn padded(&self) -> Option<u64> {
        let merges = self.trial.edits.iter().any(|edit| matches!(edit, Edit::Unpad(_)));
        merges.then(|| self.trial.without_merging())
    }

    /// Whether it may take more than a capacity, though it is expected to fit.
    fn may_be_over(&self, capacity: u64, padded: Option<u64>) -> bool {
        let temporaries = self.expected.saturating_sub(self.base);
        let of_all_devices = |parts: u64| self.base.saturating_add(temporaries.saturating_mul(parts));
        let with_more = (self.expected as f64 * (1.0 + MORE_FAR_AWAY)) as u64;
        self.range.1.0 > capacity
            || (self.is_far_away() && with_more > capacity)
            || self.trial.state.unconstrained().is_some_and(|parts| of_all_devices(parts) > capacity)
            || padded.is_some_and(|padded| padded > capacity)
    }

    /// Whether the batch is many times the present one.
    fn is_far_away(&self) -> bool {
        self.trial.memory.has_backward()
            && self.trial.edits.iter().any(|edit| matches!(edit, Edit::Batch(factor) if *factor > FAR_AWAY))
    }

    /// Whether checkpoints of a program that does not fit leave so much more than a capacity that the compiler, which has
    /// recomputed all that it could, cannot make it up.
    fn is_far_above(&self, capacity: u64) -> bool {
        let kinds = self.trial.state.kinds;
        let is_checkpoint = kinds.remat && !kinds.sharding && self.trial.memory.is_over();
        is_checkpoint && self.expected as f64 > capacity as f64 * FAR_ABOVE
    }

    /// What is said of it.
    pub fn prediction(self) -> Prediction {
        let Trial { memory, state, edits, most_live: (live, at), least, .. } = self.trial;
        let (memory, live, least) = (*memory, *live, *least);
        let range = self.range;
        let mut untold = state.undecided.clone();
        let is_bound = self.is_open && untold.is_none();
        if is_bound {
            untold =
                Some(format!("{UNTOLD}: that depends on whether the compiler divides the gradients with the weights"));
        }
        let padded = self.padded();
        let is_untold = untold.is_some() && !is_bound;
        let mut fits = memory.capacity.map(|capacity| self.packed.min(self.online) <= capacity && least <= capacity);
        let verdict = match (fits, memory.capacity) {
            _ if is_untold => TryVerdict::Unknown,
            (None, _) | (_, None) => TryVerdict::Unknown,
            (Some(false), Some(capacity))
                if self.is_changed() && range.0.0 <= capacity && !self.is_far_above(capacity) =>
            {
                TryVerdict::MayFit
            }
            (Some(true), Some(capacity)) if self.is_changed() && self.may_be_over(capacity, padded) => {
                TryVerdict::MayFit
            }
            (Some(true), _) => TryVerdict::Fits,
            (Some(false), _) => TryVerdict::Over,
        };
        if is_untold || (verdict == TryVerdict::MayFit && fits == Some(true)) {
            fits = None;
        }
        let mut warnings = state.warnings.clone();
        if self.expected > range.1.0 {
            warnings.push("the numbers are for no more recomputation than now; the range is for what the compiler can still recompute".to_owned());
        }
        memory.warn(state, self.expected, &mut warnings);
        if let Some(put_off) = self.trial.put_off {
            warnings.push(state.put_off_in_words(Bytes(put_off.bytes)));
        } else if self.may_not_do_if_put_off() {
            warnings.push("the layers are not a scan: in 14 of 116 real programs the compiler then put off the gradients of weights, so that the recomputed values of several layers were live at once, and the program needed 1.4 to 3.3 times as much; in a scan over checkpointed layers only one layer's are".to_owned());
        }
        warnings.extend(state.random_bits_in_words());
        if self.is_of_one_sample() {
            warnings.push("of one sample per device the compiler may leave out the dimension of the batch and choose other types and layouts: of 7 programs, 3 took 15 to 28 % less than is expected".to_owned());
        }
        let lowest = self.base.saturating_add((live as f64 * state.least_factor) as u64);
        // What needs less than the program that the compiler has made is packed without more recomputation.
        let is_less = self.expected <= memory.allocated && self.fits_now();
        let is_full = self.trial.is_tight(self.expected);
        Prediction {
            edits: edits.clone(),
            base: Bytes(self.base),
            peak: Bytes(self.peak),
            peak_event: at / 2,
            peak_range: memory.range(state.kinds, self.peak, lowest),
            depends_on: match memory.capacity {
                Some(_) if self.trial.state.unconstrained().is_some() => DependsOn::Division,
                Some(capacity) if range.1.0 <= capacity && padded.is_some() => DependsOn::Merging,
                _ if memory.has_backward() || memory.rematerialised > 0 => DependsOn::Recomputation,
                _ => DependsOn::Accuracy,
            },
            allocated_range: range,
            verdict,
            least: Bytes(least),
            allocated: Bytes(self.best),
            allocated_online: Bytes(self.online),
            packed_online: Bytes(self.packed_online),
            packer: self.packer,
            fits,
            is_tight: fits == Some(true) && is_full && !is_less,
            band: (!edits.is_empty()).then(|| memory.band(state.kinds)),
            undecided: untold,
            names_nothing: state.names_nothing,
            left_out: state.left_out.clone(),
            is_bound,
            warnings,
            scan_segments: state.scan_segments,
            pairs: state.pairs.clone(),
            sizes: Sizes::default(),
            placement: self.placement,
        }
    }
}

/// The lowest end of a range with this upper one that still says something.
fn lowest_below(high: Bytes) -> Bytes {
    Bytes((high.0 as f64 / WIDEST).ceil() as u64)
}

fn is_too_wide(range: Range) -> bool {
    range.1.0 as f64 > range.0.0 as f64 * WIDEST
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_tables_are_gathered_one_after_the_other() {
        assert_eq!(copied_at_once([100, 2 * LARGE, 3 * LARGE, 50].into_iter()), 3 * LARGE + 150);
        assert_eq!(copied_at_once([100, 50].into_iter()), 150);
    }
}
