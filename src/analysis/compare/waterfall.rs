//! From the allocated bytes before to those after, class by class or scope by scope. Every step starts where the last one
//! ended, and the last ends at the allocated bytes after, to the byte.

use std::collections::HashMap;

use super::groups::scope_of;
use super::identity::Rows;
use super::matching::Matching;
use crate::analysis::class::Class;
use crate::analysis::scene::Scene;

/// What a step of a waterfall stands for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StepOf {
    /// Buffers of a class.
    Class(Class),
    /// Buffers of a folded scope, of all classes.
    Scope(String),
    /// Memory that is allocated and holds nothing at the peak.
    #[default]
    Unused,
}

/// What a class or scope has at the two peaks, and what the difference is made of. All in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaterfallStep {
    /// What it stands for.
    pub of: StepOf,
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

/// The steps by class, those with the largest difference first, what holds nothing last. Classes that neither peak has are
/// left out.
pub(super) fn by_class(
    before: Scene<'_>,
    after: Scene<'_>,
    rows_before: &Rows,
    rows_after: &Rows,
    matching: &Matching,
) -> Vec<WaterfallStep> {
    let mut steps: Vec<WaterfallStep> = Class::ALL
        .iter()
        .map(|&class| WaterfallStep { of: StepOf::Class(class), ..WaterfallStep::default() })
        .collect();
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
    finished(steps, before, after)
}

/// The steps by folded scope, in the same order. What was renamed is told by its new name on both sides, unless only the
/// peak before holds it.
pub(super) fn by_scope(
    before: Scene<'_>,
    after: Scene<'_>,
    rows_before: &Rows,
    rows_after: &Rows,
    matching: &Matching,
) -> Vec<WaterfallStep> {
    let mut steps: Vec<WaterfallStep> = Vec::new();
    let mut step_of: HashMap<String, usize> = HashMap::new();
    let mut change = |scope: String, (from, to): (u64, u64), made_of: &dyn Fn(&mut WaterfallStep)| {
        let at = *step_of.entry(scope).or_insert_with_key(|scope| {
            steps.push(WaterfallStep { of: StepOf::Scope(scope.clone()), ..WaterfallStep::default() });
            steps.len() - 1
        });
        let step = &mut steps[at];
        step.before += i128::from(from);
        step.after += i128::from(to);
        made_of(step);
    };
    let (was, is) = (|row| scope_of(before, rows_before, row), |row| scope_of(after, rows_after, row));
    for pair in &matching.pairs {
        match (rows_before.at_peak[pair.before as usize], rows_after.at_peak[pair.after as usize]) {
            (0, 0) => {}
            (from, 0) => change(was(pair.before), (from, 0), &|step| step.left += from),
            (0, to) => change(is(pair.after), (0, to), &|step| step.came += to),
            (from, to) => {
                let resized = i128::from(to) - i128::from(from);
                change(is(pair.after), (from, to), &|step| step.resized += resized);
            }
        }
    }
    for &row in &matching.only_before {
        let from = rows_before.at_peak[row as usize];
        if from > 0 {
            change(was(row), (from, 0), &|step| step.gone += from);
        }
    }
    for &row in &matching.only_after {
        let to = rows_after.at_peak[row as usize];
        if to > 0 {
            change(is(row), (0, to), &|step| step.appeared += to);
        }
    }
    finished(steps, before, after)
}

/// The steps in order, and what is allocated and holds nothing at the peaks as the last one.
fn finished(mut steps: Vec<WaterfallStep>, before: Scene<'_>, after: Scene<'_>) -> Vec<WaterfallStep> {
    let held = |side: fn(&WaterfallStep) -> i128| steps.iter().map(side).sum::<i128>();
    let unused = WaterfallStep {
        before: i128::from(before.space.xprof.allocated.0) - held(|step| step.before),
        after: i128::from(after.space.xprof.allocated.0) - held(|step| step.after),
        ..WaterfallStep::default()
    };
    steps.retain(|step| step.before != 0 || step.after != 0);
    steps.sort_by(|a, b| {
        let size = |step: &WaterfallStep| std::cmp::Reverse(step.difference().unsigned_abs());
        size(a).cmp(&size(b)).then_with(|| match (&a.of, &b.of) {
            (StepOf::Class(a), StepOf::Class(b)) => a.place().cmp(&b.place()),
            (StepOf::Scope(a), StepOf::Scope(b)) => a.cmp(b),
            _ => std::cmp::Ordering::Equal,
        })
    });
    if unused.before != 0 || unused.after != 0 {
        steps.push(unused);
    }
    steps
}
