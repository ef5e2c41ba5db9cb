//! Allocators, devices of PyTorch and live arrays before and after, by who holds their memory.

use serde::Serialize;

use super::schema::{BytesDiff, GroupDiff, SpaceDiff, StepDiff, StepName};
use crate::analysis::compare::Change;
use crate::analysis::compare::held::{Held, HeldComparison, HolderRow, compare_held, held};
use crate::export::diff::Side;
use crate::export::report::Options;
use crate::model::{Bytes, UnitSystem, percent, thousands};

/// An allocator before and after.
#[derive(Debug, Serialize)]
pub struct AllocatorDiff {
    /// Its name: `cuda:0`, `GPU_0_bfc`, `live arrays`.
    pub name: String,
    /// What recorded it: `PyTorch`, `BFC allocator`, `allocator history`, `live arrays`.
    pub source: &'static str,
    /// What holds its memory: `stack` or `op`.
    pub held_by: &'static str,
    /// The moment before; `null` if it is not there.
    pub moment_before: Option<&'static str>,
    /// The moment after.
    pub moment_after: Option<&'static str>,
    /// Whether a request had failed before; `null` where the file cannot tell.
    pub failed_before: Option<bool>,
    /// The same after.
    pub failed_after: Option<bool>,
    /// What `total` is: `reserved`, `in chunks`, `in use`, `live`.
    pub total_is: &'static str,
    /// Bytes of the whole.
    pub total: BytesDiff,
    /// Bytes that the holders have.
    pub in_use: BytesDiff,
    /// From the whole before to the whole after by kind; the differences add up to that of `total`.
    pub waterfall: Vec<StepDiff>,
    /// The same by the innermost frame of one's own, or by operation.
    pub waterfall_by_holder: Vec<StepDiff>,
    /// Who holds more, less, or is new or gone, the largest difference first. Holders without a difference are counted in
    /// `holders_equal`.
    pub holders: Vec<HolderDiff>,
    /// Number of those that differ, before `--top` cut the list.
    pub holder_count: usize,
    /// Number of those that do not.
    pub holders_equal: usize,
}

/// Blocks of one stack or operation, and of one kind.
#[derive(Debug, Serialize)]
pub struct HolderDiff {
    /// `appeared`, `gone`, `grew`, `shrank`.
    pub change: &'static str,
    /// What they are for, after where it differs.
    pub kind: String,
    /// The innermost frame of one's own, or the operation.
    pub name: String,
    /// From where the function was called, or the shape.
    pub detail: String,
    /// The whole stack, innermost first; empty for an operation.
    pub stack: Vec<String>,
    /// Bytes before.
    pub before: u64,
    /// Bytes after.
    pub after: u64,
    /// After less before.
    pub difference: i128,
    /// Blocks before.
    pub count_before: u64,
    /// Blocks after.
    pub count_after: u64,
    /// Bytes of blocks without a counterpart before.
    pub appeared: u64,
    /// Bytes of blocks without one after.
    pub gone: u64,
    /// Growth of the blocks on both sides.
    pub resized: i128,
}

/// Compares the allocators of two profiles.
pub(super) fn allocators(before: Side<'_>, after: Side<'_>, options: &Options) -> Vec<AllocatorDiff> {
    let [was, is] = [before, after].map(|side| held(side.profile, side.analysis));
    compare_held(&was, &is).iter().map(|found| AllocatorDiff::new(found, options)).collect()
}

/// Adds to the step of a name, which is made where there is none.
fn step(steps: &mut Vec<StepDiff>, name: StepName) -> &mut StepDiff {
    let at = steps.iter().position(|step| step.name == name).unwrap_or_else(|| {
        steps.push(StepDiff {
            name,
            before: 0,
            after: 0,
            difference: 0,
            appeared: 0,
            gone: 0,
            resized: 0,
            came: 0,
            left: 0,
        });
        steps.len() - 1
    });
    &mut steps[at]
}

/// Adds a holder to a step.
fn add(step: &mut StepDiff, row: &HolderRow) {
    step.before += i128::from(row.before_bytes);
    step.after += i128::from(row.after_bytes);
    step.appeared = step.appeared.saturating_add(row.appeared);
    step.gone = step.gone.saturating_add(row.gone);
    step.resized = step.resized.saturating_add(row.resized);
}

/// The steps in order, the largest difference first, and what nobody holds at the end.
fn finished(mut steps: Vec<StepDiff>, found: &HeldComparison) -> Vec<StepDiff> {
    for step in &mut steps {
        step.difference = step.after - step.before;
    }
    steps.sort_by(|a, b| {
        let key = |step: &StepDiff| (std::cmp::Reverse(step.difference.unsigned_abs()), std::cmp::Reverse(step.after));
        key(a).cmp(&key(b)).then_with(|| a.name.text().cmp(b.name.text()))
    });
    for (rest, [before, after]) in found.rest() {
        let row = step(&mut steps, StepName::Rest(rest));
        (row.before, row.after) = (row.before + before, row.after + after);
        row.difference = row.after - row.before;
        row.resized += after - before;
    }
    steps
}

impl AllocatorDiff {
    fn new(found: &HeldComparison, options: &Options) -> Self {
        let (was, is) = (&found.before, &found.after);
        let (mut by_kind, mut by_holder) = (Vec::new(), Vec::new());
        let named: fn(String) -> StepName = match is.source.holders() {
            "stack" => StepName::Stack,
            _ => StepName::Op,
        };
        for row in &found.rows {
            match found.kinds(row) {
                [Some(was), Some(is)] if was != is => {
                    let before = step(&mut by_kind, StepName::Kind(was.to_owned()));
                    before.before += i128::from(row.before_bytes);
                    before.left = before.left.saturating_add(row.before_bytes);
                    let after = step(&mut by_kind, StepName::Kind(is.to_owned()));
                    after.after += i128::from(row.after_bytes);
                    after.came = after.came.saturating_add(row.after_bytes);
                }
                [was, is] => {
                    let kind = is.or(was).unwrap_or_default();
                    add(step(&mut by_kind, StepName::Kind(kind.to_owned())), row);
                }
            }
            let name = found.holder(row).map(|holder| holder.name.clone()).unwrap_or_default();
            add(step(&mut by_holder, named(name)), row);
        }
        let differs = || found.rows.iter().filter(|row| row.change() != Change::Equal);
        let holder_count = differs().count();
        let total = |held: &Held| (!held.moment.is_empty()).then_some(held.total.0);
        let moment = |held: &Held| Some(held.moment).filter(|words| !words.is_empty());
        Self {
            name: is.name.clone(),
            source: is.source.name(),
            held_by: is.source.holders(),
            moment_before: moment(was),
            moment_after: moment(is),
            failed_before: was.has_failed,
            failed_after: is.has_failed,
            total_is: is.total.1,
            total: BytesDiff::new(total(was), total(is)),
            in_use: BytesDiff::new(total(was).map(|_| was.in_use()), total(is).map(|_| is.in_use())),
            waterfall: finished(by_kind, found),
            waterfall_by_holder: finished(by_holder, found),
            holders: differs().take(options.rows()).map(|row| holder(found, row)).collect(),
            holder_count,
            holders_equal: found.rows.len() - holder_count,
        }
    }

    /// The answer in one line: `cuda:0: 14.2 GiB reserved when the request failed, 1.20 GiB (9.2 %) more than before, at the peak`.
    #[must_use]
    pub fn headline(&self, units: UnitSystem) -> String {
        let short = |bytes: u64| units.short(Bytes(bytes));
        match (self.total.before, self.total.after) {
            (Some(before), Some(after)) => {
                let moved = before.abs_diff(after);
                let share = || format!("{} ({})", short(moved), percent(moved, before));
                let change = match after.cmp(&before) {
                    std::cmp::Ordering::Equal => "as before".to_owned(),
                    std::cmp::Ordering::Greater => format!("{} more than before", share()),
                    std::cmp::Ordering::Less => format!("{} less than before", share()),
                };
                let moment = self.moment_after.unwrap_or_default();
                let was = match self.moment_before {
                    Some(was) if was != moment => format!(", {was}"),
                    _ => String::new(),
                };
                format!("{}: {} {} {moment}, {change}{was}", self.name, short(after), self.total_is)
            }
            (None, Some(after)) => format!("{}: {} {}, not there before", self.name, short(after), self.total_is),
            (Some(before), None) => format!("{}: {} {} before, not there now", self.name, short(before), self.total_is),
            (None, None) => self.name.clone(),
        }
    }

    /// What the rows say beside the holder: `shape`, or from where a function was called.
    #[must_use]
    pub fn detail(&self) -> &'static str {
        if self.held_by == "stack" { "called from" } else { "shape" }
    }

    /// The same as a memory space, for charts and tables that show one.
    #[must_use]
    pub fn as_space(&self) -> SpaceDiff {
        let group = |row: &HolderDiff| GroupDiff {
            change: row.change,
            change_words: row.change,
            class: row.kind.clone().into(),
            scope: row.name.clone(),
            before: row.before,
            after: row.after,
            difference: row.difference,
            count_before: usize::try_from(row.count_before).unwrap_or(usize::MAX),
            count_after: usize::try_from(row.count_after).unwrap_or(usize::MAX),
            shape_before: if row.count_before > 0 { row.detail.clone() } else { String::new() },
            shape_after: if row.count_after > 0 { row.detail.clone() } else { String::new() },
            is_mixed: false,
            largest_before: None,
            largest_after: None,
        };
        let total = BytesDiff::new(Some(self.total.before.unwrap_or(0)), Some(self.total.after.unwrap_or(0)));
        SpaceDiff {
            name: self.name.clone(),
            allocated: total,
            waterfall: self.waterfall.clone(),
            waterfall_by_scope: self.waterfall_by_holder.clone(),
            groups: self.holders.iter().map(group).collect(),
            group_count: self.holder_count,
            groups_equal: self.holders_equal,
            ..SpaceDiff::default()
        }
    }
}

impl HolderDiff {
    /// How many blocks: `24`, `24 \u{2192} 12`.
    #[must_use]
    pub fn counts(&self) -> String {
        match (self.count_before, self.count_after) {
            (before, after) if before == after || before == 0 || after == 0 => thousands(before.max(after)),
            (before, after) => format!("{} \u{2192} {}", thousands(before), thousands(after)),
        }
    }
}

fn holder(found: &HeldComparison, row: &HolderRow) -> HolderDiff {
    let count =
        |held: &Held, at: Option<usize>| at.and_then(|at| held.holders.get(at)).map_or(0, |holder| holder.count());
    let holder = found.holder(row).cloned().unwrap_or_default();
    HolderDiff {
        change: row.change().name(),
        kind: holder.kind,
        name: holder.name,
        detail: holder.detail,
        stack: holder.stack,
        before: row.before_bytes,
        after: row.after_bytes,
        difference: row.difference(),
        count_before: count(&found.before, row.before),
        count_after: count(&found.after, row.after),
        appeared: row.appeared,
        gone: row.gone,
        resized: row.resized,
    }
}
