//! From the allocated bytes before to those after, class by class. Every step starts where the last one ended, and the
//! last ends at the allocated bytes after, to the byte.

use super::identity::Rows;
use super::matching::Matching;
use crate::analysis::class::Class;
use crate::analysis::scene::Scene;

/// What a class has at the two peaks, and what the difference is made of. All in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaterfallStep {
    /// The class; `None` for memory that is allocated and holds nothing at the peak.
    pub class: Option<Class>,
    /// At the peak before.
    pub before: i128,
    /// At the peak after.
    pub after: i128,
    /// Of buffers that have no counterpart before.
    pub appeared: u64,
    /// Of buffers that have none after.
    pub gone: u64,
    /// Buffers at both peaks: what they grew, less what they shrank.
    pub resized: i128,
    /// Of buffers that both programs have, and only the peak after holds.
    pub came: u64,
    /// Of buffers that both have, and only the peak before held.
    pub left: u64,
}

impl WaterfallStep {
    /// After less before.
    #[must_use]
    pub const fn difference(&self) -> i128 {
        self.after - self.before
    }
}

/// The steps, those with the largest difference first, what holds nothing last. Classes that neither peak has are left
/// out.
pub(super) fn steps(
    before: Scene<'_>,
    after: Scene<'_>,
    rows_before: &Rows,
    rows_after: &Rows,
    matching: &Matching,
) -> Vec<WaterfallStep> {
    let mut steps: Vec<WaterfallStep> =
        Class::ALL.iter().map(|&class| WaterfallStep { class: Some(class), ..WaterfallStep::default() }).collect();
    for (class, &bytes) in rows_before.class.iter().zip(&rows_before.at_peak) {
        steps[class.place()].before += i128::from(bytes);
    }
    for (class, &bytes) in rows_after.class.iter().zip(&rows_after.at_peak) {
        steps[class.place()].after += i128::from(bytes);
    }
    for &row in &matching.only_before {
        steps[rows_before.class[row as usize].place()].gone += rows_before.at_peak[row as usize];
    }
    for &row in &matching.only_after {
        steps[rows_after.class[row as usize].place()].appeared += rows_after.at_peak[row as usize];
    }
    for pair in &matching.pairs {
        let [was, is] = [rows_before.class[pair.before as usize], rows_after.class[pair.after as usize]];
        let [from, to] = [rows_before.at_peak[pair.before as usize], rows_after.at_peak[pair.after as usize]];
        if from > 0 && to > 0 && was == is {
            steps[was.place()].resized += i128::from(to) - i128::from(from);
        } else {
            steps[was.place()].left += from;
            steps[is.place()].came += to;
        }
    }
    let held = |side: fn(&WaterfallStep) -> i128| steps.iter().map(side).sum::<i128>();
    let unused = WaterfallStep {
        before: i128::from(before.space.xprof.allocated.0) - held(|step| step.before),
        after: i128::from(after.space.xprof.allocated.0) - held(|step| step.after),
        ..WaterfallStep::default()
    };
    steps.retain(|step| step.before != 0 || step.after != 0);
    steps.sort_by_key(|step| (std::cmp::Reverse(step.difference().unsigned_abs()), step.class.map(Class::place)));
    if unused.before != 0 || unused.after != 0 {
        steps.push(unused);
    }
    steps
}
