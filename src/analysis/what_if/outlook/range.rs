//! The range of bytes that a change may come to: one rule for each thing that the compiler may do otherwise than is expected.

use super::{FAR_ABOVE, Outlook, Range, Trial, copied_at_once};
use crate::analysis::names::pass::Pass;
use crate::analysis::packing::Packer;
use crate::analysis::what_if::base::Role;
use crate::analysis::what_if::edit::Edit;
use crate::analysis::what_if::prediction::{NEAR, RECOMPUTED_TO, RECOMPUTED_USUALLY, WIDEST, band_of};
use crate::analysis::what_if::saved_for_backward::is_among;
use crate::analysis::what_if::state::Kinds;
use crate::model::{Bytes, FastSet, InstructionId, Opcode};

/// Share of what is allocated from which on what is lost between blocks matters.
const FRAGMENTED: f64 = 0.1;

/// Share that programs took more than is expected where gradients of weights are put off.
const MORE_PUT_OFF: f64 = 0.1;

/// The same where every device has all of the training state: three of twelve programs took 1.35 to 1.43 times as much.
const MORE_OF_WHOLE: f64 = 0.4;

/// How many times what is expected of checkpoints a program takes that postpones gradients, from which on it matters.
const POSTPONED: f64 = 1.1;

/// Share of what is expected of checkpoints that a program may take less whose layers are no scan.
const LESS_THAN_ONE_BY_ONE: f64 = 0.15;

/// Part by which a program may fill the room more than programs usually do.
const ROUNDING: u64 = 64;

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

/// Part of what a program takes by which a change of its arguments alone makes no difference.
const NEXT_TO_NOTHING: u64 = 500;

/// Fewest arrays that the compiler copies as the weights of layers.
const LEAST_WEIGHTS: usize = 8;

impl Outlook<'_, '_> {
    /// The rules, in the order in which they move the ends of the range.
    const RULES: [fn(&mut Self); 23] = [
        Self::widen_by_packing,
        Self::widen_by_fragmentation,
        Self::widen_by_reduction,
        Self::widen_by_fusion,
        Self::widen_to_best_case,
        Self::widen_by_copies,
        Self::widen_by_division,
        Self::widen_by_width,
        Self::widen_to_one_sample,
        Self::widen_to_postponing,
        Self::widen_by_put_off,
        Self::widen_to_refilled,
        Self::widen_to_worst_case,
        Self::widen_by_sums,
        Self::widen_to_most,
        Self::widen_to_unfilled,
        Self::narrow_to_present,
        Self::widen_to_recomputed,
        Self::narrow_to_no_change,
        Self::narrow_divided_arguments,
        Self::raise_to_stacks,
        Self::widen_by_part,
        Self::widen_by_tiles,
    ];

    /// Finds the range: what the program's own range is with these changes, as each rule moves its ends.
    pub(super) fn find_range(&mut self) {
        let Trial { memory, state, brought_back, .. } = self.trial;
        self.range = memory.allocated_range(state.kinds, (self.expected, self.base), *brought_back, self.floor());
        for rule in Self::RULES {
            rule(self);
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

    /// What devices add up may be there twice: before it is added up and after.
    fn widen_by_reduction(&mut self) {
        let state = &self.trial.state;
        if state.kinds.donation && self.trial.program.devices() > 1 {
            self.range.1 = self.range.1.max(Bytes(self.expected.saturating_add(state.largest_housed)));
        }
    }

    /// What is fused with what is changed may be divided with it, or not.
    fn widen_by_fusion(&mut self) {
        let fused = self.trial.state.fused;
        if fused > 0 {
            let around = |bytes: u64, times: f64| Bytes((bytes as f64 * times) as u64);
            self.range.0 = self.range.0.min(around(self.expected.saturating_sub(fused), 1.0 - NEAR));
            self.range.1 = self.range.1.max(around(self.expected.saturating_add(fused), 1.0 + NEAR));
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
        // Heads that weights have as a dimension of their own are divided in some programs, and whole in others.
        if let Some(least) = self.trial.with_heads_divided() {
            self.range.0 = self.range.0.min(Bytes((least as f64 * LESS_BY_WIDTH) as u64));
        }
        self.is_open = false;
    }

    /// Of one sample the compiler may leave out the dimension.
    fn widen_to_one_sample(&mut self) {
        if self.is_of_one_sample() {
            let least = Bytes((self.expected as f64 * ONE_SAMPLE) as u64).max(lowest_below(self.range.1));
            self.range.0 = self.range.0.min(least);
        }
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
        let more = if self.trial.state.puts_off_whole() { MORE_OF_WHOLE } else { MORE_PUT_OFF };
        let high = (self.expected as f64 * (1.0 + more)) as u64;
        let none = (self.expected.saturating_sub(put_off.bytes) as f64 * (1.0 - LESS_THAN_ONE_BY_ONE)) as u64;
        self.range = (lowest_below(Bytes(high)).max(Bytes(none)), Bytes(high));
        self.is_open = false;
    }

    /// A program that hardly fits, or does not, waits with gradients of the weights of its checkpointed layers only as far as
    /// there is room, so that with a smaller batch more of them wait: so it was with half the batch of a real program, which
    /// took 0.91 of the capacity again.
    fn widen_to_refilled(&mut self) {
        let Trial { memory, state, .. } = self.trial;
        let only_batch = state.kinds == Kinds { batch: true, ..Kinds::default() };
        let are_layers =
            memory.kept.stacks.is_empty() && memory.kept.turn.as_ref().is_some_and(|turn| turn.layers.len() > 1);
        if !only_batch || !are_layers || !memory.has_checkpoints() || !state.puts_off_any() {
            return;
        }
        let Some(filled) =
            self.trial.share_of_room(RECOMPUTED_USUALLY).filter(|_| self.trial.is_tight(memory.allocated))
        else {
            return;
        };
        let filled = filled.saturating_add(filled / ROUNDING).min(memory.allocated);
        if filled > self.range.1.0 && self.expected < memory.allocated {
            self.range.1 = Bytes(filled);
            self.range.0 = self.range.0.max(lowest_below(self.range.1).min(Bytes(self.expected)));
        }
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

    /// What the compiler saves by an order it may as well not save.
    fn widen_to_most(&mut self) {
        self.range.1 = self.range.1.max(Bytes(self.most));
    }

    /// What recomputes to fit may do so where it need not, too.
    fn widen_to_unfilled(&mut self) {
        if self.is_filled {
            self.range.0 = self.range.0.min(Bytes(self.unfilled).max(lowest_below(self.range.1)));
        }
    }

    /// What only takes memory away adds none, if the compiler recomputes as it does now.
    fn narrow_to_present(&mut self) {
        let memory = self.trial.memory;
        if only_take_away(&self.trial.edits) && self.trial.least <= memory.peak {
            let mut most = memory.allocated.max(self.expected).max(self.cases.worst.unwrap_or(0));
            // The compiler keeps more only where there is room for it. Of checkpoints of unrolled layers it may not.
            if !self.trial.state.kinds.remat && self.fits_now() {
                most = most.min(memory.room().unwrap_or(u64::MAX).max(self.expected));
            }
            let most = Bytes(most);
            self.range.1 = self.range.1.min(most);
        }
    }

    /// What is over and may fit takes as little then as others that recompute.
    fn widen_to_recomputed(&mut self) {
        let memory = self.trial.memory;
        let room = memory.room().filter(|_| memory.has_backward() && !memory.is_gpu && self.is_changed());
        if let Some(room) = room.map(Bytes).filter(|&room| room < Bytes(self.expected) && self.range.0 <= room) {
            let usual = self.trial.share_of_room(RECOMPUTED_TO).map_or(room, Bytes);
            self.range.0 = self.range.0.min(usual.max(lowest_below(self.range.1)));
        }
    }

    /// What changes next to nothing leaves the program as it is.
    fn narrow_to_no_change(&mut self) {
        let (memory, own) = (self.trial.memory, self.trial.state.kinds);
        let kinds = Kinds { donation: own.donation, dtype: own.dtype, ..Kinds::default() };
        if own == kinds && self.expected.abs_diff(memory.allocated) <= memory.allocated / NEXT_TO_NOTHING {
            let (low, high) = (self.expected.min(memory.allocated), self.expected.max(memory.allocated));
            self.range = (Bytes(low), Bytes(high));
        }
    }

    /// Dividing arguments over devices added nothing to any real program that fitted, but for one whose vocabulary the
    /// devices do not divide.
    fn narrow_divided_arguments(&mut self) {
        let memory = self.trial.memory;
        if let Some(held) = self.trial.state.held_for_table() {
            let most = Bytes((self.range.0.0 as f64 * WIDEST) as u64);
            self.range.1 = self.range.1.max(Bytes(self.expected.saturating_add(held)).min(most));
            return;
        }
        if self.trial.state.kinds == (Kinds { sharding: true, ..Kinds::default() }) && self.fits_now() {
            self.range.1 = self.range.1.min(Bytes(memory.allocated.max(self.expected)));
        }
    }

    /// What only a part of the layers is checkpointed for may save more than its name tells.
    fn widen_by_part(&mut self) {
        let may_be = self.trial.state.may_be_of_part;
        if may_be > 0 {
            self.range.0 = self.range.0.min(Bytes(self.expected.saturating_sub(may_be)));
            self.range.1 = self.range.1.min(Bytes((self.range.0.0 as f64 * WIDEST) as u64)).max(Bytes(self.expected));
        }
    }

    /// State in 8 bits that a loop writes to row by row has another tile there than as an argument, so that the loop works on
    /// a copy: so it was with the caches of a real decoding loop, which were written in place in 16 bits.
    fn widen_by_tiles(&mut self) {
        let Trial { memory, program, edits, sizes, .. } = self.trial;
        let mut narrowed = edits.iter().filter_map(|edit| match edit {
            Edit::Dtype(arguments, element) if element.storage_bits() <= 8 => Some(arguments),
            _ => None,
        });
        let Some(arguments) = narrowed.next() else { return };
        let instructions = &program.instructions;
        let with =
            |opcode: Opcode| instructions.ids().filter(move |at| instructions.opcode.get(at.index()) == Some(&opcode));
        if with(Opcode::WHILE).next().is_none() {
            return;
        }
        // Arrays of which a row is written: it is one of several that a tile has.
        let written_by_row: FastSet<&[i64]> = with(Opcode::DYNAMIC_UPDATE_SLICE)
            .filter_map(|at| {
                let array = program.shape_of(at)?.root();
                let update = *instructions.operands_of(at).get(1)?;
                let update = program.shape_of(InstructionId(update))?.root();
                let row = *array.layout.as_ref()?.minor_to_major.get(1)?;
                (update.dimensions.get(row as usize) == Some(&1)).then_some(array.dimensions.as_slice())
            })
            .collect();
        // Where a loop works on copies now, these are counted.
        let node_of = |family: u32| memory.node_of_family(program, family);
        let at_peak: FastSet<&[i64]> =
            self.trial.at_peak().filter_map(|row| node_of(row.0)).map(|node| node.dimensions.as_slice()).collect();
        let is_carried = |row: &usize| {
            let base = &memory.base[*row];
            let node = program.buffer_node(base.buffer);
            matches!(&base.role, Role::Argument { path, is_donated: true, .. } if arguments.include(path))
                && node.is_some_and(|node| {
                    node.dimensions.len() > 2
                        && written_by_row.contains(node.dimensions.as_slice())
                        && !at_peak.contains(node.dimensions.as_slice())
                })
        };
        let rows = (0..sizes.base.len()).filter(is_carried);
        let copies = rows.fold(0u64, |sum, row| sum.saturating_add(sizes.base[row]));
        let high = (self.expected.saturating_add(copies) as f64 * (1.0 + NEAR)) as u64;
        let high = Bytes(high.min(self.widest()));
        if copies > 0 && high > self.range.1 {
            self.range = (self.range.0.max(lowest_below(high)).min(Bytes(self.expected)), high);
        }
    }

    /// What scans over layers save stays whatever the compiler recomputes: it passes from the loop of the forward pass to
    /// that of the backward pass, which are computed once. In four refused programs all of these stacks had their full size.
    fn raise_to_stacks(&mut self) {
        let Trial { memory, state, .. } = self.trial;
        if state.kinds == Kinds::default() || state.kinds.by_hand {
            return;
        }
        let is_saved = |family: usize| memory.kept.is_stack_of_layers(family) && !is_among(&memory.kept.scores, family);
        let stacks = self.trial.at_peak().filter(|row| is_saved(row.0 as usize)).map(|row| row.1.0);
        let least = Bytes(stacks.fold(self.base, u64::saturating_add).min(self.expected));
        self.range.0 = self.range.0.max(least);
        self.range.1 = self.range.1.max(self.range.0);
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
