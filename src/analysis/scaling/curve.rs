//! What a program takes at any value of the number that two dumps of it differ in, and the largest value that fits.

use super::model::{Model, Need, Values};
use super::varying::{Varying, VaryingError};
use crate::analysis::class::Class;
use crate::analysis::compare::SpaceComparison;
use crate::analysis::scene::Scene;
use crate::analysis::what_if::{Memory, TryVerdict};
use crate::model::{BufferId, Bytes};

/// The compiler rematerialises until a program takes about this share of the available memory, or more.
const RECOMPUTED_TO: f64 = 0.80;

/// A model that is wrong about the other program by more than this share of it is of another program.
const UNLIKE: f64 = 0.1;

/// About how far from the truth what two dumps tell of a third is usually, as a share of it: no range is narrower.
const USUAL_ERROR: f64 = 0.02;

/// Largest multiple of the larger value that is tried.
const MOST_TIMES: i64 = 4096;

/// What two programs tell about others like them.
pub struct Scaling<'a> {
    /// What they differ in.
    pub varying: Varying,
    /// Bytes that a program may use, as of the second.
    pub capacity: Option<Bytes>,
    /// Bytes of the buffers of the second program that have a counterpart, 0 to 1.
    pub matched: f64,
    /// What grows, the most bytes for a unit of the value first.
    pub growers: Vec<Grower>,
    /// Whether either program was already recomputed by the compiler to save memory.
    pub is_recomputed: bool,
    /// Share of the available memory from which on the compiler computes values again.
    full_from: f64,
    models: [Model<'a>; 2],
    /// The share of temporaries that is left of each program however much the compiler recomputes.
    irreducible: [f64; 2],
    /// What the two programs really take.
    given: [Need; 2],
    /// What each model says of both programs.
    modelled: [[Need; 2]; 2],
}

/// Buffers of one class and scope, equal layers folded, whose bytes at the peak differ.
#[derive(Debug, Clone, PartialEq)]
pub struct Grower {
    /// The class.
    pub class: Class,
    /// The folded scope.
    pub scope: String,
    /// Bytes at the peak of the first program and of the second.
    pub bytes: [Bytes; 2],
    /// Bytes for each unit of the value; negative for what shrinks.
    pub per_unit: f64,
}

/// What a program takes at a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScalingPoint {
    /// The value.
    pub value: i64,
    /// The peak as XProf reports it.
    pub peak: Bytes,
    /// Allocated bytes, which must fit.
    pub allocated: Bytes,
    /// Lowest and highest allocated bytes: what both models and the holes between the buffers of both dumps tell, and where
    /// the compiler may recompute, how far, but never below what must be live then.
    pub range: (Bytes, Bytes),
    /// Whether it fits.
    pub verdict: TryVerdict,
    /// Whether a dump was made at this value.
    pub is_given: bool,
}

impl<'a> Scaling<'a> {
    /// What the main memory of two programs tells; `memories` are those of the scenes. `varying` says what differs
    /// where it shall not be looked for.
    ///
    /// # Errors
    /// If nothing differs.
    pub fn new(
        scenes: [Scene<'a>; 2],
        memories: [&'a Memory; 2],
        varying: Option<Varying>,
    ) -> Result<Self, VaryingError> {
        let comparison = SpaceComparison::new(scenes[0], scenes[1]);
        let pairs = comparison.matched;
        let varying = varying.map_or_else(|| Varying::find(scenes, memories, &pairs), Ok)?;
        let [a, b] = varying.values;
        let reversed: Vec<(BufferId, BufferId)> = pairs.iter().map(|&(one, other)| (other, one)).collect();
        let are_divisors = varying.is_divisor();
        let values = |own_and_other| Values { own_and_other, are_divisors };
        let models = [
            Model::new(scenes[0], memories[0], scenes[1].program, &pairs, values([a, b])),
            Model::new(scenes[1], memories[1], scenes[0].program, &reversed, values([b, a])),
        ];
        let modelled = [[models[0].at(a), models[0].at(b)], [models[1].at(a), models[1].at(b)]];
        let given = memories.map(|memory| {
            let base = memory.always_live();
            Need { peak: memory.peak, allocated: memory.allocated, base, least: base }
        });
        let irreducible = [0, 1].map(|place| {
            let floor = memories[place].floor(scenes[place].program, &[]).unwrap_or_default();
            let temporaries = |all: u64| all.saturating_sub(given[place].base) as f64;
            (temporaries(floor) * (1.0 - UNLIKE) / temporaries(given[place].allocated).max(1.0)).min(1.0)
        });
        let [bytes, matched] = [comparison.matching.bytes[1], comparison.matching.matched_bytes[1]];
        let unit = (b - a) as f64;
        let mut growers: Vec<Grower> = comparison
            .groups
            .into_iter()
            .filter(|group| group.before != group.after)
            .map(|group| Grower {
                class: group.class,
                per_unit: group.difference() as f64 / unit,
                bytes: [Bytes(group.before), Bytes(group.after)],
                scope: group.scope,
            })
            .collect();
        growers.sort_by(|one, other| other.per_unit.total_cmp(&one.per_unit).then_with(|| one.scope.cmp(&other.scope)));
        Ok(Self {
            capacity: memories[1].capacity.or(memories[0].capacity).map(Bytes),
            matched: if bytes == 0 { 1.0 } else { matched as f64 / bytes as f64 },
            growers,
            is_recomputed: memories.iter().any(|memory| memory.is_under_pressure()),
            full_from: memories[1].full_from(),
            varying,
            models,
            irreducible,
            given,
            modelled,
        })
    }

    /// What the program takes at a value of at least 1.
    #[must_use]
    pub fn at(&self, value: i64) -> ScalingPoint {
        let value = value.max(1);
        if let Some(place) = self.varying.values.iter().position(|&given| given == value) {
            let Need { peak, allocated, .. } = self.given[place];
            return self.point(value, peak, (allocated, allocated), allocated, true);
        }
        let told = self.need(value);
        let Need { peak, allocated, base, least } = told;
        let mut range = self.range(value, &told);
        if let Some(Bytes(capacity)) = self.capacity {
            let share = |share: f64| (capacity as f64 * share) as u64;
            if allocated > share(self.full_from) {
                // The compiler may recompute until it takes about this much, but not what is always live nor what the
                // backward pass starts from, and each buffer must be whole at some time.
                let temporaries = allocated.saturating_sub(base) as f64;
                let kept = base.saturating_add((temporaries * self.irreducible[self.nearer(value)]) as u64);
                range.0 = share(RECOMPUTED_TO).max(least).max(kept).min(range.0);
            }
            if self.is_recomputed {
                // With more room it recomputes less, with less room more.
                range.0 = range.0.min((allocated as f64 * 0.9) as u64).max(base.min(allocated));
                range.1 = range.1.max((allocated as f64 * 1.1) as u64);
            }
        }
        self.point(value, peak, range, allocated, false)
    }

    /// The least and the most that may be allocated. Holes between buffers follow no law, so both models and the holes in
    /// both dumps bound it; so does how far a model is from the dump that it was not made from.
    fn range(&self, value: i64, told: &Need) -> (u64, u64) {
        let near = self.nearer(value);
        let scaled = |by: f64| (told.allocated as f64 * by) as u64;
        let with_holes = |given: &Need| (told.peak as f64 * given.allocated as f64 / given.peak.max(1) as f64) as u64;
        let alone = {
            let (raw, own) = (self.models[near].at(value).allocated, self.given[near].allocated);
            raw.saturating_add_signed(own.wrapping_sub(self.modelled[near][near].allocated).cast_signed())
        };
        let [one, other] = &self.given;
        let mut bounds = vec![with_holes(one), with_holes(other), self.told(1 - near, value).allocated, alone];
        let error = if self.varying.is_divisor() { self.error(near) } else { 0.0 }.max(USUAL_ERROR);
        bounds.extend([scaled(1.0 - error), scaled(1.0 + error)]);
        let (low, high) = bounds.iter().fold((u64::MAX, 0), |(low, high), &one| (low.min(one), high.max(one)));
        (low.max(told.base).min(told.allocated), high.max(told.allocated))
    }

    /// How far a model is from the peak of the other program, as a share of it.
    fn error(&self, model: usize) -> f64 {
        let (given, modelled) = (self.given[1 - model].peak, self.modelled[model][1 - model].peak);
        given.abs_diff(modelled) as f64 / given.max(1) as f64
    }

    /// Which of the two programs has the value that is nearer: it is the better model.
    fn nearer(&self, value: i64) -> usize {
        let distance = |given: i64| (value as f64 / given as f64).ln().abs();
        let [a, b] = self.varying.values;
        usize::from(distance(b) < distance(a))
    }

    /// What both programs say of another value: the nearer one, or of a number of devices between theirs, both in proportion.
    fn need(&self, value: i64) -> Need {
        let near = self.told(self.nearer(value), value);
        let [a, b] = self.varying.values;
        if !self.varying.is_divisor() || !(a.min(b)..=a.max(b)).contains(&value) {
            return near;
        }
        let [one, other] = [self.told(0, value), self.told(1, value)];
        let along = |value: i64| 1.0 / value as f64;
        let part = (along(value) - along(a)) / (along(b) - along(a));
        let between = |of: fn(&Need) -> u64| {
            let [one, other] = [of(&one) as f64, of(&other) as f64];
            (one + (other - one) * part) as u64
        };
        Need {
            peak: between(|need| need.peak),
            allocated: between(|need| need.allocated),
            base: near.base,
            least: near.least,
        }
    }

    /// What one of the programs says of another value. Of layers, lengths and batches, what the laws leave unexplained is
    /// growth, as layers bring buffers that have no counterpart, and is drawn as a straight line through both programs. Of
    /// devices it is not: with another number of them the compiler divides the work differently.
    fn told(&self, model: usize, value: i64) -> Need {
        let raw = self.models[model].at(value);
        let [a, b] = self.varying.values;
        let part = (value as f64 - a as f64) / (b as f64 - a as f64);
        let corrected = |of: fn(&Need) -> u64| {
            let mut rest = [0, 1].map(|place| of(&self.given[place]) as f64 - of(&self.modelled[model][place]) as f64);
            if self.varying.is_divisor() {
                rest[1 - model] = rest[model];
            }
            (of(&raw) as f64 + rest[0] + (rest[1] - rest[0]) * part).max(raw.base as f64) as u64
        };
        let (peak, allocated) = (corrected(|need| need.peak), corrected(|need| need.allocated));
        Need { peak, allocated: allocated.max(peak), base: raw.base, least: raw.least }
    }

    /// Whether the compiler divides the work differently at the two values: a model of one program is far from what the
    /// other takes.
    #[must_use]
    pub fn are_unlike(&self) -> bool {
        self.varying.is_divisor() && (self.error(0) > UNLIKE || self.error(1) > UNLIKE)
    }

    fn allocated_at(&self, value: i64) -> u64 {
        let given = self.varying.values.iter().position(|&given| given == value);
        given.map_or_else(|| self.need(value), |place| self.given[place]).allocated
    }

    fn point(&self, value: i64, peak: u64, range: (u64, u64), allocated: u64, is_given: bool) -> ScalingPoint {
        let verdict = match self.capacity {
            None => TryVerdict::Unknown,
            Some(Bytes(capacity)) if range.1 <= capacity => TryVerdict::Fits,
            Some(Bytes(capacity)) if range.0 > capacity => TryVerdict::Over,
            Some(_) => TryVerdict::MayFit,
        };
        let range = (Bytes(range.0), Bytes(range.1));
        ScalingPoint { value, peak: Bytes(peak), allocated: Bytes(allocated), range, verdict, is_given }
    }

    /// The largest value at which the allocated bytes are not above a share of the capacity (1 is all of it); 0 if there
    /// is none. `None` if the capacity is unknown or memory does not grow with the value.
    #[must_use]
    pub fn largest(&self, share: f64) -> Option<i64> {
        let capacity = self.capacity?.0;
        let limit = (capacity as f64 * share) as u64;
        let given = self.given.map(|need| need.allocated);
        let [a, b] = self.varying.values;
        let grows = (a < b) == (given[0] < given[1]) && given[0] != given[1];
        if !grows {
            return None;
        }
        let fits = |value: i64| self.allocated_at(value) <= limit;
        let most = a.max(b).saturating_mul(MOST_TIMES);
        let (mut low, mut high) = (0, a.min(b));
        while high <= most && fits(high) {
            low = high;
            high = high.saturating_mul(2);
        }
        if high > most {
            return None;
        }
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            if fits(middle) {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    /// As [`Self::largest`], where the compiler need not compute anything again.
    #[must_use]
    pub fn largest_without_recomputation(&self) -> Option<i64> {
        self.largest(self.full_from)
    }

    /// Values worth showing, ascending: those of the dumps, halves and multiples of them, and up to past the largest that
    /// fits.
    #[must_use]
    pub fn values(&self) -> Vec<i64> {
        let [a, b] = self.varying.values;
        let (small, large) = (a.min(b), a.max(b));
        let top = self.largest(1.0).map_or(large.saturating_mul(4), |value| value.saturating_add(1).max(large));
        let mut values = vec![a, b, (small / 2).max(1), large.saturating_mul(2)];
        let mut value = large;
        while value < top && values.len() < 12 {
            value = value.saturating_mul(2);
            values.push(value);
        }
        values.extend(self.largest(1.0).filter(|&value| value > 0));
        values.extend(self.largest(1.0).map(|value| value.saturating_add(1)));
        values.extend(self.largest_without_recomputation().filter(|&value| value > 0));
        values.sort_unstable();
        values.dedup();
        values
    }
}
