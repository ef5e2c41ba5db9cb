//! What changes come to once they are packed: the bytes that are expected, the range they are in, and whether they fit.

mod range;

use super::edit::Edit;
use super::outcome::UNTOLD;
use super::prediction::{DependsOn, Depth, Prediction, RECOMPUTED_USUALLY, ROOM, TryVerdict};
use super::put_off::OF_ADAPTERS;
use super::state::{Kinds, Sizes};
use super::trial::Trial;
use crate::analysis::packing::{Packer, Placement};
use crate::model::Bytes;

/// From which multiple of the capacity on checkpoints are not enough: 4 of 54 real programs took a fifth less than
/// predicted.
const FAR_ABOVE: f64 = 1.2;

/// From how many times the present batch on a prediction is less certain, and the share that it may take more: a program
/// took 11 % more than predicted at 14 times its batch.
const FAR_AWAY: f64 = 4.0;
const MORE_FAR_AWAY: f64 = 0.12;

/// Share of its memory up to which the compiler puts off gradients of weights: four real programs took 94 to 97 %.
const FILLED_WITH_GRADIENTS: f64 = 0.96;

/// How many times what is expected a program with adapters needed whose gradients were put off.
const PUT_OFF_OF_ADAPTERS: f64 = 1.65;

/// How many times what is expected of checkpoints the program took that put off the most gradients.
const PUT_OFF_MOST: f64 = 3.3;

/// From how many times the bytes on that are expected it is said what a program takes if gradients of weights wait as they do
/// now, as a quarter of 38 real programs had them wait that were checkpointed.
const COSTLY: f64 = 1.5;

/// From how many bytes on the new values of weights are not gathered together: a program with six tables of 1.2 GiB was
/// compiled for TPUs.
const LARGE: u64 = 512 << 20;

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
    /// What is expected at the peak besides the blocks, and why.
    besides: Vec<(i64, &'static str)>,
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
        let expected = if packer == Packer::Online { online } else { best };
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
            besides: Vec::new(),
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
        self.add_besides(-(less as i64), "not all of these arrays as large as the logits are live at once");
    }

    fn add_besides(&mut self, bytes: i64, why: &'static str) {
        if bytes != 0 {
            self.besides.push((bytes, why));
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
        self.add_besides(more as i64, "gradients of weights that the compiler puts off");
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
        let more = filled.saturating_sub(least);
        self.peak = self.peak.saturating_add(more);
        self.add_besides(more as i64, "what the compiler has room to keep, and does not compute again");
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
        self.add_besides(copies as i64, "copies of the weights, into which new values are gathered");
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
            let less = self.peak.saturating_sub(memory.peak);
            self.peak = self.peak.min(memory.peak);
            self.add_besides(-(less as i64), "what checkpoints would add, where the compiler keeps what it has");
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

    /// Whether a training step is left one sample of several on each device.
    fn is_of_one_sample(&self) -> bool {
        self.trial.state.to_one_sample && self.trial.memory.has_backward()
    }

    /// Whether layers that are checkpointed are no scan, and what fits as expected would not if the compiler put off as many
    /// gradients as it ever did.
    fn may_not_do_if_put_off(&self) -> bool {
        let kinds = self.trial.state.kinds;
        let is_unrolled = kinds.remat && self.cases.best.is_some() && self.trial.state.share_put_off().is_none();
        let most = (self.expected as f64 * PUT_OFF_MOST) as u64;
        is_unrolled && !self.trial.is_above(self.expected, 1.0) && self.trial.is_above(most, 1.0)
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
        let if_put_off = (self.expected as f64 * PUT_OFF_OF_ADAPTERS) as u64;
        self.range.1.0 > capacity
            || (self.is_far_away() && with_more > capacity)
            || (self.trial.state.may_put_off_adapters() && if_put_off > capacity)
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

    /// The bytes if gradients of weights wait as they do now, where that is much more than is expected.
    fn costly_postponing(&self) -> Option<u64> {
        let most = self.cases.postponing.filter(|_| !self.trial.state.kinds.sharding)?;
        (most as f64 > self.expected as f64 * COSTLY).then_some(most)
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
        if self.is_filled && self.unfilled < self.expected {
            warnings.push(format!(
                "the compiler is expected to use the room that this makes, and to recompute less: with as much recomputation as now it would need {}",
                Bytes(self.unfilled).short()
            ));
        }
        memory.warn(state, self.expected, &mut warnings);
        if let Some(put_off) = self.trial.put_off {
            warnings.push(state.put_off_in_words(Bytes(put_off.bytes)));
        } else if state.may_put_off_adapters() {
            warnings.push(OF_ADAPTERS.to_owned());
        } else if let Some(most) = self.costly_postponing() {
            warnings.push(format!(
                "the layers are not a scan, and gradients of their weights wait for the end of the backward pass now, with what they are made from: if they do with checkpoints, too, as in a quarter of 38 real programs, it takes {}; in a scan over checkpointed layers only one layer's wait",
                Bytes(most).short()
            ));
        } else if self.may_not_do_if_put_off() {
            warnings.push("the layers are not a scan: in 14 of 116 real programs the compiler then put off the gradients of weights, so that the recomputed values of several layers were live at once, and the program needed 1.4 to 3.3 times as much; in a scan over checkpointed layers only one layer's are".to_owned());
        }
        warnings.extend(state.random_bits_in_words());
        if self.is_of_one_sample() {
            warnings.push("with one sample per device the compiler may drop the batch dimension and choose other types and layouts: 3 of 7 such programs needed 15 to 28 % less than predicted".to_owned());
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
            besides: self.besides,
            sizes: Sizes::default(),
            placement: self.placement,
        }
    }
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
