//! The report on scaling, filled from the analysis.

use serde::Serialize;

use crate::analysis::scaling::{Grower, Scaling, ScalingPoint};

/// What two dumps tell about other values.
#[derive(Debug, Serialize)]
pub struct ScaleReport {
    /// `highwater.scale/1`.
    pub schema: &'static str,
    /// The two paths.
    pub paths: [String; 2],
    /// One for each pair of programs.
    pub programs: Vec<ScaleSpace>,
    /// What could not be read, or told.
    pub unread: Vec<String>,
}

/// A pair of programs in main memory.
#[derive(Debug, Serialize)]
pub struct ScaleSpace {
    /// Name of the program.
    pub program: String,
    /// What the two differ in: `batch`, `length`, `layers`, `devices`.
    pub varies: String,
    /// Its values in the two dumps.
    pub values: [i64; 2],
    /// How that is known.
    pub evidence: String,
    /// Bytes that a program may use; `null` if unknown.
    pub capacity_bytes: Option<u64>,
    /// Share of the second program's bytes that have a counterpart in the first, 0 to 1.
    pub matched: f64,
    /// Whether the compiler recomputed in either dump to save memory, so that there are only ranges.
    pub is_recomputed: bool,
    /// Whether the compiler divides the work differently in the two dumps, so that other values are told from the nearer one
    /// alone.
    pub are_unlike: bool,
    /// The largest value that fits; `null` if the capacity is unknown or memory does not grow.
    pub largest_that_fits: Option<i64>,
    /// The largest value at which the compiler has no reason to recompute.
    pub largest_without_recomputation: Option<i64>,
    /// What the program takes at some values, ascending.
    pub points: Vec<PointReport>,
    /// What grows, the most first, with what shrinks last.
    pub growers: Vec<GrowerReport>,
    /// How many there are in all.
    pub grower_count: usize,
}

/// What a program takes at a value.
#[derive(Debug, Serialize)]
pub struct PointReport {
    /// The value.
    pub value: i64,
    /// The peak as XProf would report it.
    pub peak_bytes: u64,
    /// Allocated bytes, which must fit.
    pub allocated_bytes: u64,
    /// The least it may take: if the compiler recomputes, or as the other dump tells.
    pub lowest_bytes: u64,
    /// The most it may take.
    pub highest_bytes: u64,
    /// `fits`, `may_fit`, `over` or `unknown`.
    pub verdict: &'static str,
    /// Whether it is one of the dumps.
    pub is_given: bool,
}

/// What grows with the value.
#[derive(Debug, Serialize)]
pub struct GrowerReport {
    /// Its class.
    pub class: &'static str,
    /// Its scope, equal layers folded.
    pub scope: String,
    /// Bytes at the peak of the first dump.
    pub first_bytes: u64,
    /// Bytes at the peak of the second.
    pub second_bytes: u64,
    /// Bytes for each unit of the value.
    pub bytes_per_unit: f64,
}

/// The report on one pair of programs, at the values given or, if there are none, at those worth showing; `top` rows of
/// what grows, 0 for all.
#[must_use]
pub fn build(program: &str, scaling: &Scaling<'_>, values: &[i64], top: usize) -> ScaleSpace {
    let mut values = if values.is_empty() { scaling.values() } else { values.to_vec() };
    values.extend(scaling.varying.values);
    values.sort_unstable();
    values.dedup();
    let rows = if top == 0 { usize::MAX } else { top };
    ScaleSpace {
        program: program.to_owned(),
        varies: scaling.varying.name.clone(),
        values: scaling.varying.values,
        evidence: scaling.varying.evidence.clone(),
        capacity_bytes: scaling.capacity.map(|bytes| bytes.0),
        matched: (scaling.matched * 1e4).round() / 1e4,
        is_recomputed: scaling.is_recomputed,
        are_unlike: scaling.are_unlike(),
        largest_that_fits: scaling.largest(1.0),
        largest_without_recomputation: scaling.largest_without_recomputation(),
        points: values.iter().map(|&value| point(scaling.at(value))).collect(),
        growers: scaling.growers.iter().take(rows).map(grower).collect(),
        grower_count: scaling.growers.len(),
    }
}

fn point(point: ScalingPoint) -> PointReport {
    PointReport {
        value: point.value,
        peak_bytes: point.peak.0,
        allocated_bytes: point.allocated.0,
        lowest_bytes: point.range.0.0,
        highest_bytes: point.range.1.0,
        verdict: point.verdict.name(),
        is_given: point.is_given,
    }
}

fn grower(grower: &Grower) -> GrowerReport {
    GrowerReport {
        class: grower.class.name(),
        scope: grower.scope.clone(),
        first_bytes: grower.bytes[0].0,
        second_bytes: grower.bytes[1].0,
        bytes_per_unit: grower.per_unit,
    }
}
