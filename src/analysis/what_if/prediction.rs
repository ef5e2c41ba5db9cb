//! What some changes are predicted to do: the peak, allocated bytes, whether it fits, and the expected error.

use super::edit::Edit;
use super::memory::{HARDLY_ANY, Memory};
use super::outcome::Outcome;
use super::saved_for_backward::ScanSegments;
use super::state::{Kinds, Sizes, State};
use crate::analysis::packing::{self, Block, Packer, Placement};
use crate::model::{Bytes, UnitSystem, thousands};

/// How much of a [`Prediction`] is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Depth {
    /// The peak, and whether it fits judging by packing in program order and live bytes alone; for searches.
    Estimate,
    /// The peak, and allocated bytes with the packer that the compiler would use.
    Verdict,
    /// All of it, with an offset for every block.
    Packed,
}

/// Packing by size takes at most about 1/40 more than the live bytes, measured on 41 real heaps.
pub(super) const ROOM: u64 = 40;

/// Whether a program fits after some changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TryVerdict {
    /// It fits.
    Fits,
    /// It does not fit as computed, but may if the compiler rematerialises more.
    MayFit,
    /// It does not fit, whatever the compiler does.
    Over,
    /// The capacity is unknown.
    Unknown,
}

impl TryVerdict {
    /// The word in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fits => "fits",
            Self::MayFit => "may_fit",
            Self::Over => "over",
            Self::Unknown => "unknown",
        }
    }
}

/// Relative error within which the bytes of a best or worst case are known.
pub(super) const NEAR: f64 = 0.05;

/// A range wider than this says nothing about the bytes.
pub const WIDEST: f64 = 1.6;

/// The compiler rematerialises until a program takes about this share of the available memory, or more.
pub(super) const RECOMPUTED_TO: f64 = 0.80;

/// Share of the available memory that a program usually takes for which the compiler recomputes as much as it must: the
/// median of 12 real programs, which took 0.83 to 0.97.
pub(super) const RECOMPUTED_USUALLY: f64 = 0.91;

/// The largest such share.
const RECOMPUTED_AT_MOST: f64 = 0.97;

/// Relative error on either side of what resizing, donation and batches are predicted to take. A measured band, not a
/// bound: see [`Memory::band`].
const CLOSE: f64 = 0.10;

/// The same where the compiler decides what it keeps: rematerialisation, computing in parts, sharding, another compute
/// type.
const ROUGH: f64 = 0.22;

/// The lower end of a range is at least this share of the upper end, where the compiler decides between them.
const NARROWEST: f64 = 0.64;

/// A program that recomputation can reach takes at most about this multiple of the capacity even if it did not fit.
const RECOMPUTED_FROM: f64 = 1.25;

/// How much more a smaller batch may take where the compiler computes values again now: 3 of 21 real programs took 10 to
/// 14 % more than predicted, none of them that much less.
const REFILLED: f64 = 0.16;

/// Share of what checkpoints of whole layers leave that the compiler may do without, by recomputing parts of them.
const WITHIN_LAYERS: f64 = 0.1;

/// Relative error of what some kinds of change are predicted to take.
pub(super) const fn band_of(kinds: Kinds) -> f64 {
    if kinds.constrain || kinds.compute || kinds.sharding || kinds.parts || kinds.remat { ROUGH } else { CLOSE }
}

/// What decides where in its range a prediction comes true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DependsOn {
    /// What the compiler computes again.
    #[default]
    Recomputation,
    /// Whether the compiler keeps activations divided along the batch.
    Division,
    /// Whether arrays that are padded can be merged: others may need their shape.
    Merging,
    /// On nothing that is known: predictions are not more accurate.
    Accuracy,
}

impl DependsOn {
    /// In words, to be put behind a range of bytes.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Recomputation => ", depending on what the compiler recomputes",
            Self::Division => " if activations stay divided along the batch, several times as much if they do not",
            Self::Merging => " if every padded array can be merged, more if not",
            Self::Accuracy => "",
        }
    }
}

/// Memory after some changes.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// The changes, in the order in which they were applied.
    pub edits: Vec<Edit>,
    /// Always-live bytes.
    pub base: Bytes,
    /// The peak as XProf would report it.
    pub peak: Bytes,
    /// Heap event of the peak, as in [`crate::analysis::xprof`].
    pub peak_event: u32,
    /// Range of the peak, (lowest, highest).
    pub peak_range: (Bytes, Bytes),
    /// Range of allocated bytes, (lowest, highest): the compiler rematerialises when memory is short, but not if there
    /// is room.
    pub allocated_range: (Bytes, Bytes),
    /// Whether it fits; may be undecided where it depends on the compiler.
    pub verdict: TryVerdict,
    /// On what it depends, and where in the range of allocated bytes it is.
    pub depends_on: DependsOn,
    /// Bytes that no packer can go below: those that are live at once.
    pub least: Bytes,
    /// Bytes allocated with the better of the two packers, or with the online one if only that was run.
    pub allocated: Bytes,
    /// Bytes allocated with the online packer.
    pub allocated_online: Bytes,
    /// The same by packing alone, before what the compiler adds, such as copies of weights.
    pub packed_online: Bytes,
    /// The packer the compiler would use.
    pub packer: Packer,
    /// Whether it fits; `None` if the capacity is unknown.
    pub fits: Option<bool>,
    /// Whether it fits only when packed by size: the compiler repacks and may rematerialise.
    pub is_tight: bool,
    /// Error of such predictions on real pairs of programs.
    pub band: Option<String>,
    /// Why there is no prediction, if the program does not tell; the numbers mean nothing then, or are an upper bound.
    pub undecided: Option<String>,
    /// Whether that is because a change names nothing that is in the program.
    pub names_nothing: bool,
    /// Changes that name nothing and are left out beside others, with the reason.
    pub left_out: Vec<(String, String)>,
    /// Bytes that are expected at the peak besides what has memory there, or less, and why.
    pub besides: Vec<(i64, &'static str)>,
    /// Whether the numbers are an upper bound where there is no prediction.
    pub is_bound: bool,
    /// Caveats, one sentence each.
    pub warnings: Vec<String>,
    /// Of a scan that is divided into segments, these.
    pub scan_segments: Option<ScanSegments>,
    /// Pairs of argument and result that share memory by these changes: rows of the memory's base.
    pub pairs: Vec<(u32, u32)>,
    /// Sizes and lifetimes.
    pub sizes: Sizes,
    /// Offsets of the blocks: from the online packer if the compiler would use it, else from the better one. Only with
    /// [`Depth::Packed`].
    pub placement: Placement,
}

impl Prediction {
    /// The families of blocks that are live at the peak of the heap, with their bytes; none where the blocks are left out.
    pub fn at_peak(&self) -> impl Iterator<Item = (u32, Bytes)> + '_ {
        self.sizes.live_at(packing::most_live(&self.sizes.blocks).1)
    }

    /// What is expected at the peak besides what has memory there, where that is not next to nothing of it.
    pub fn besides_told(&self) -> impl Iterator<Item = (i64, &'static str)> + '_ {
        let least = self.peak.0 / NEXT_TO_NOTHING;
        self.besides.iter().copied().filter(move |found| found.0.unsigned_abs() > least)
    }

    /// The same without its blocks and where they lie: what a list of predictions keeps.
    #[must_use]
    pub fn without_blocks(self) -> Self {
        Self { sizes: Sizes::default(), placement: Placement::default(), ..self }
    }

    /// Expected allocated bytes: from the online packer if the compiler would use it, else from the better one.
    #[must_use]
    pub fn expected(&self) -> Bytes {
        if self.packer == Packer::Online { self.allocated_online } else { self.allocated }
    }

    /// The answer in one sentence, without a full stop.
    #[must_use]
    pub fn sentence(&self, capacity: Option<u64>, units: UnitSystem) -> String {
        if let Some(why) = &self.undecided {
            return match self.outcome(capacity) {
                _ if !self.is_bound => format!("not predicted: {why}"),
                Some(Outcome::Fits(spare) | Outcome::Tight { spare, .. }) => {
                    format!("fits with at least {} to spare; {why}", units.short(spare))
                }
                Some(Outcome::Over(over)) => format!("at most {} over; {why}", units.short(over)),
                Some(Outcome::MayFit) => format!("may fit; {why}"),
                None => why.clone(),
            };
        }
        if !self.is_told() {
            return self.verdict_in_words(capacity, units);
        }
        if self.verdict == TryVerdict::MayFit {
            return format!(
                "may fit: it takes {} to {}{}",
                units.short(self.allocated_range.0),
                units.short(self.allocated_range.1),
                self.depends_on.words()
            );
        }
        match self.outcome(capacity) {
            Some(tight @ Outcome::Tight { .. }) => {
                format!("{}; the compiler will repack and may rematerialise", tight.words(units))
            }
            Some(other) => other.words(units),
            None => format!("needs {}; capacity unknown", units.short(self.expected())),
        }
    }
}

/// Part of what the program needs, 1/n, below which a change makes no difference to speak of.
const NEXT_TO_NOTHING: u64 = 1000;

impl Memory {
    /// What families are counted too much at a peak of so many live bytes: in proportion, as these are what is counted.
    pub(super) fn correction_of(&self, live: u64) -> i64 {
        let counted = i128::from(self.peak) - i128::from(self.correction) - i128::from(self.always_live());
        let before = u64::try_from(counted).unwrap_or(0).max(1);
        if self.correction >= 0 || live >= before {
            return self.correction;
        }
        i64::try_from(i128::from(self.correction) * i128::from(live) / i128::from(before)).unwrap_or(self.correction)
    }

    /// The memory that the compiler makes room in: the capacity; where that is unknown but the compiler computed again what
    /// it had no room for, what it usually fills of it.
    pub(super) fn room(&self) -> Option<u64> {
        let filled = || (self.allocated as f64 / RECOMPUTED_USUALLY) as u64;
        self.capacity.or_else(|| (self.rematerialised > 0).then(filled))
    }

    /// Lowest and highest expected allocated bytes; `expected` are the bytes as packed, `base` those of them that are
    /// always live, `brought_back` those if nothing
    /// is recomputed any more, `floor` those if the compiler recomputes all it can.
    pub(super) fn allocated_range(
        &self,
        kinds: Kinds,
        (expected, base): (u64, u64),
        brought_back: u64,
        floor: u64,
    ) -> (Bytes, Bytes) {
        if kinds == Kinds::default() || kinds.by_hand {
            return (Bytes(expected), Bytes(expected));
        }
        let share = |bytes: u64, share: f64| (bytes as f64 * share) as u64;
        let band = band_of(kinds);
        // Arguments and results are known to the byte: where there is hardly anything else, so is what it takes.
        let temporaries = expected.saturating_sub(base);
        let is_scaled = kinds == Kinds { batch: kinds.batch, dimension: kinds.dimension, ..Kinds::default() };
        if is_scaled && !self.has_backward() && self.rematerialised == 0 && temporaries <= expected / HARDLY_ANY {
            let apart = temporaries.saturating_add(self.vmem.min(temporaries));
            return (Bytes(expected.saturating_sub(apart)), Bytes(expected.saturating_add(apart)));
        }
        // The compiler recomputes parts of layers, too.
        let least_kept = floor;
        let floor = match self.room() {
            Some(capacity) if floor > capacity && (!self.has_checkpoints() || self.scans_keep_more_than_inputs()) => {
                share(floor, 1.0 - WITHIN_LAYERS)
            }
            _ => floor,
        };
        // Bytes if nothing is computed twice.
        let whole = expected.max(brought_back);
        let mut low = share(expected, 1.0 - band);
        let mut high = share(expected, 1.0 + band);
        if kinds.compute {
            high = high.max(self.allocated);
        }
        // What was computed again is kept in more arrays than it has now.
        if kinds.batch && self.rematerialised > 0 {
            high = high.max(share(expected, 1.0 + REFILLED));
        }
        let Some(capacity) = self.room() else { return (Bytes(low), Bytes(high)) };
        let limit = share(capacity, self.full_from());
        // The compiler uses room that a change makes to recompute less.
        if self.rematerialised > 0 && whole > limit && expected <= share(capacity, RECOMPUTED_USUALLY) {
            // Where recomputing was not enough, and what stays in 32 bits is not known, it may not be enough again;
            // nor may it be where arrays are divided otherwise than the compiler divides them now.
            let is_open = kinds.sharding || (kinds.compute && self.allocated > capacity);
            high = high.max(share(whole, 1.0 + band));
            if !is_open {
                high = high.min(share(capacity, RECOMPUTED_AT_MOST));
            }
        }
        // Where even recomputation was not enough, the compiler may recompute less of what still does not fit.
        if self.rematerialised > 0 && self.allocated > capacity && expected > capacity {
            high = high.max(share(whole, 1.0 + band).min(self.allocated)).min(share(low, WIDEST)).max(high);
        }
        // If there is too little room, the compiler recomputes layers of the forward pass, down to the size of their
        // checkpoints.
        let before = (low, high);
        if whole > limit && floor <= capacity {
            low = low.min(share(capacity, RECOMPUTED_TO)).max(floor.min(expected));
            high = high.min(share(capacity, RECOMPUTED_FROM)).max(low);
            // If it nearly fits and much is left to recompute, it will.
            if expected <= capacity && share(floor, 1.0 + band) <= limit {
                high = high.min(capacity).max(low);
            }
            if floor < least_kept {
                // What is within layers is less certain: it only widens the range.
                (low, high) = (low.min(before.0), high.max(before.1));
            }
        }
        // With room, the compiler ends up nearer to the upper end.
        if kinds.compute || kinds.constrain || self.rematerialised > 0 {
            low = low.max(share(high, NARROWEST));
        }
        if low > expected {
            // What is predicted is in its own range.
            low = expected;
            high = high.min(share(low, WIDEST)).max(share(expected, 1.0 + band));
        }
        (Bytes(low.min(high)), Bytes(high))
    }

    /// Adds caveats that apply to any prediction about this program.
    pub(super) fn warn(&self, state: &State<'_>, expected: u64, warnings: &mut Vec<String>) {
        let kinds = state.kinds;
        if kinds == Kinds::default() {
            return;
        }
        let difference = self.allocated.abs_diff(expected);
        let is_open = warnings.is_empty() && state.undecided.is_none() && !kinds.by_hand;
        if is_open && difference.saturating_mul(NEXT_TO_NOTHING) < self.allocated {
            warnings.push("it makes next to no difference to what the program needs".to_owned());
        }
        let of_table = state.tables_by_width.filter(|_| state.held_for_table().is_some());
        if let Some((parts, (words, _))) = of_table.and_then(|parts| Some((parts, self.indivisible_vocabulary(parts)?)))
        {
            warnings.push(format!(
                "{parts} devices do not divide the vocabulary of {}: the state of its tables is divided along their width, and the compiler may hold the gradient of the logits twice, as in one real program",
                thousands(words.unsigned_abs())
            ));
        }
        if let Some(words) = state.width_in_words() {
            warnings.push(words);
        } else if let Some(parts) = state.divided_like_batch.filter(|_| !kinds.constrain) {
            warnings.push(format!(
                "the batch is sharded {parts} ways too; if over the same mesh axis, activations may end up holding the global batch, and the peak can rise to several times as much. Constrain them with jax.lax.with_sharding_constraint (`constrain {parts}` predicts that)"
            ));
        }
        if self.rematerialised > 0 {
            warnings.push(format!(
                "{} named .remat: the compiler was already short of memory. Where there is room again it recomputes less: the verdict is more reliable than the margin",
                match self.rematerialised {
                    1 => "1 temporary is".to_owned(),
                    many => format!("{} temporaries are", thousands(many as u64)),
                }
            ));
        } else if self.is_under_pressure() {
            warnings.push(
                format!("the program takes more than {} % of the available memory: the compiler may have saved memory already, and may use room that a change frees, so that the error may be larger here", (self.full_from() * 100.0).round()),
            );
        } else if self.pressure().is_some_and(|share| share > 1.0) {
            warnings.push("the program does not fit, and the compiler kept as little at once as it could: where a change makes room, it may keep more".to_owned());
        }
        let resizes = kinds.dimension || kinds.dtype || kinds.compute || kinds.batch || kinds.constrain;
        // What is next to nothing beside the rest makes no difference wherever it is.
        let matters = self.temporaries() >= self.allocated / 100;
        if resizes && matters && self.vmem > 0 && self.temporaries() < 4 * self.vmem {
            warnings.push(format!(
                "temporaries take {}, less than four times the VMEM of {}: if their size changes they may move into or out of VMEM",
                Bytes(self.temporaries()).short(),
                Bytes(self.vmem).short()
            ));
        }
    }

    /// The expected error in words: how many of the programs that were really changed so and compiled came how near to
    /// what was predicted at first sight, before any rule was mended on them (sets 13 to 24 of `tests/predictions`,
    /// all of them for TPUs).
    pub(super) fn band(&self, kinds: Kinds) -> String {
        let or_vmem =
            if self.vmem > 0 { format!(" (or {}, the size of VMEM)", Bytes(self.vmem).short()) } else { String::new() };
        let with_vmem = format!("10 %{or_vmem}");
        // What it is, how many of how many programs came within how much of the prediction, and more of the kind.
        let measured = [
            (kinds.donation, "donation", (54, 57), "10 %", ", 45 within 3 %"),
            (kinds.dimension, "another size", (52, 66), "10 %", ", 46 within 3 %"),
            (kinds.batch, "another batch", (215, 279), &with_vmem, ", 180 within 3 %"),
            (kinds.dtype, "another type", (18, 27), &with_vmem, ""),
            (kinds.compute, "computing in another type", (28, 50), "10 %", ""),
            (kinds.sharding, "sharding", (28, 43), "22 %", "; arguments and results are exact"),
            (kinds.constrain, "constrained activations", (3, 8), "10 %", ""),
            (kinds.parts, "computing in parts", (45, 53), "10 %", ""),
            (kinds.remat, "checkpoints", (146, 184), "22 %", ", 121 within 10 %"),
        ];
        let on_tpus = if self.is_gpu { " for TPUs" } else { "" };
        let of = |(_, what, (near, programs), within, more): &(bool, &str, (u32, u32), &str, &str)| {
            format!(
                "{what}: of {programs} programs{on_tpus} that were really changed like this, {near} came within {within} of the prediction{more}"
            )
        };
        let parts: Vec<String> = measured.iter().filter(|row| row.0).map(of).collect();
        let mut text = parts.join("; ");
        if kinds.by_hand {
            text.push_str(if parts.is_empty() { "" } else { "; " });
            text.push_str("by hand: exact if the rest of the program stays as it is");
        }
        text
    }

    /// Lowest and highest expected peak.
    pub(super) fn range(&self, kinds: Kinds, peak: u64, lowest: u64) -> (Bytes, Bytes) {
        let share = |percent: u64| peak / 100 * percent;
        let (mut low, mut high) = (0u64, 0u64);
        let mut widen = |below: u64, above: u64| {
            low = low.max(below);
            high = high.max(above);
        };
        if kinds.donation {
            widen(share(9), share(3));
        }
        if kinds.dimension {
            widen(share(6), share(6));
        }
        if kinds.dtype || kinds.batch {
            let band = share(10).max(self.vmem);
            widen(band, band);
        }
        if kinds.compute {
            widen(self.vmem, self.peak.saturating_sub(peak));
        }
        if kinds.constrain {
            widen(share(24), share(67));
        }
        if kinds.remat || kinds.parts {
            widen(share(15), share(15));
        }
        let mut top = peak.saturating_add(high);
        if self.is_under_pressure() && kinds != Kinds::default() && !kinds.by_hand {
            top = top.max(self.capacity.map_or(0, |c| (c as f64 * self.full_from()) as u64).min(self.peak));
        }
        (Bytes(peak.saturating_sub(low).min(lowest.max(1))), Bytes(top))
    }

    /// Live bytes before each heap event and after the last, including always-live bytes.
    #[must_use]
    pub fn curve(&self, prediction: &Prediction) -> Vec<u64> {
        let mut curve = self.curve_of(prediction, |_| true);
        for value in &mut curve {
            *value = value.saturating_add(prediction.base.0);
        }
        curve
    }

    /// Live bytes of the blocks, by their number, that a test accepts, before each heap event and after the last.
    #[must_use]
    pub fn curve_of(&self, prediction: &Prediction, accept: impl Fn(usize) -> bool) -> Vec<u64> {
        let events = self.families.events as usize;
        let mut change = vec![0i128; 2 * events + 3];
        for (block, Block { size, start, end }) in prediction.sizes.blocks.iter().enumerate() {
            if !accept(block) {
                continue;
            }
            change[(*start as usize + 1).min(2 * events + 2)] += i128::from(*size);
            change[(*end as usize + 1).min(2 * events + 2)] -= i128::from(*size);
        }
        let mut curve = Vec::with_capacity(events + 1);
        let mut live = 0i128;
        for (time, delta) in change.iter().enumerate() {
            live += delta;
            if time % 2 == 0 && curve.len() <= events {
                curve.push(u64::try_from(live).unwrap_or(0));
            }
        }
        curve
    }
}
