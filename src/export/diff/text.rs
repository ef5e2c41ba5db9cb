//! The comparison for a terminal: the answer first, then where the difference comes from.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::allocators_text;
use super::build::UNUSED;
use super::schema::{BytesDiff, Diff, FindingDiff, GroupDiff, NumberDiff, PairDiff, SpaceDiff, StepDiff, StepName};
use crate::model::{Bytes, UnitSystem, percent, thousands};

/// Scopes of the waterfall that are listed singly; the others are one line.
const MOST_SCOPES: usize = 8;

/// Findings listed of each kind.
const MOST_FINDINGS: usize = 10;

/// Writes the comparison as text. What could not be read is left out: the command says it where errors are said.
pub fn write(diff: &Diff) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "before  {}\nafter   {}", diff.before, diff.after);
    if diff.pairs.len() > 1 {
        let _ = writeln!(out, "{} programs on both sides, the largest change first", diff.pairs.len());
    }
    for pair in &diff.pairs {
        write_pair(&mut out, pair);
    }
    for (names, side) in [(&diff.only_before, "before"), (&diff.only_after, "after")] {
        if !names.is_empty() {
            let _ = writeln!(out, "only {side}: {}", names.join(", "));
        }
    }
    out.retain(|c| c != '`');
    out
}

fn write_pair(out: &mut String, pair: &PairDiff) {
    let same = pair.before == pair.after;
    let name = if same { pair.before.clone() } else { format!("{} \u{2192} {}", pair.before, pair.after) };
    let _ = writeln!(out, "\n{name}{}", devices(pair));
    let (full, brief): (Vec<&SpaceDiff>, Vec<&SpaceDiff>) = pair.spaces.iter().partition(|space| space.color == 0);
    for space in full {
        write_space(out, space);
    }
    for space in brief.into_iter().filter(|space| space.allocated.difference != Some(0)) {
        let _ = writeln!(out, "  {}: {}", space.name, change(space.allocated));
    }
    for number in &pair.numbers {
        let _ = writeln!(out, "  {:<32} {}", number.what, value(number));
    }
    for allocator in &pair.allocators {
        allocators_text::write(out, allocator);
    }
    write_findings(out, pair);
}

/// The devices, where they are known.
pub(super) fn devices(pair: &PairDiff) -> String {
    if pair.device_before == pair.device_after {
        return format!("  ({})", pair.device_before);
    }
    format!("  ({} \u{2192} {})", pair.device_before, pair.device_after)
}

/// A capacity as its maker writes it; an en dash where it is not known.
pub(super) fn capacity(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "\u{2013}".to_owned(), |bytes| UnitSystem::Binary.capacity(Bytes(bytes)))
}

/// A size with its notation; an en dash where it is not known.
pub(super) fn size(bytes: Option<u64>) -> String {
    bytes.map_or_else(|| "\u{2013}".to_owned(), |bytes| Bytes(bytes).short())
}

/// A difference with its sign; `=` for none, an en dash where it is not known.
pub(super) fn signed(difference: Option<i128>) -> String {
    match difference {
        None => "\u{2013}".to_owned(),
        Some(0) => "=".to_owned(),
        Some(difference) => UnitSystem::Binary.signed(difference),
    }
}

/// `39.9 GiB → 12.1 GiB (−27.8 GiB)`.
pub(super) fn change(value: BytesDiff) -> String {
    match (value.before, value.after) {
        (Some(_), None) => format!("{} \u{2192} not there", size(value.before)),
        (None, Some(_)) => format!("not there \u{2192} {}", size(value.after)),
        _ => format!("{} \u{2192} {} ({})", size(value.before), size(value.after), signed(value.difference)),
    }
}

/// As [`change`]; a count without a unit.
pub(super) fn value(number: &NumberDiff) -> String {
    if number.is_bytes {
        return change(number.value);
    }
    let count = |value: Option<u64>| value.map_or_else(|| "\u{2013}".to_owned(), thousands);
    format!("{} \u{2192} {}", count(number.value.before), count(number.value.after))
}

/// The answer in one line: `Fits now: 12.1 GiB HBM, 27.8 GiB (69.7 %) less than before; 3.65 GiB to spare`.
#[must_use]
pub fn headline(space: &SpaceDiff, units: UnitSystem) -> String {
    let (Some(before), Some(after)) = (space.allocated.before, space.allocated.after) else {
        return format!("{}: {}", space.name, change(space.allocated));
    };
    let verdict = match (space.verdict_before, space.verdict_after) {
        (Some("over"), Some("fits")) => "Fits now",
        (Some("fits"), Some("over")) => "Does not fit any more",
        (_, Some("over")) => "Does not fit",
        (_, Some("fits")) => "Fits",
        _ => "Capacity unknown",
    };
    let room = match space.capacity.after {
        Some(limit) if after > limit => format!("; {} over", units.short(Bytes(after - limit))),
        Some(limit) => format!("; {} to spare", units.short(Bytes(limit - after))),
        None => String::new(),
    };
    let moved = Bytes(before.abs_diff(after));
    let share = match after.cmp(&before) {
        Ordering::Equal => "as before".to_owned(),
        Ordering::Greater => format!("{} ({}) more than before", units.short(moved), percent(moved.0, before)),
        Ordering::Less => format!("{} ({}) less than before", units.short(moved), percent(moved.0, before)),
    };
    format!("{verdict}: {} {}, {share}{room}", units.short(Bytes(after)), space.name)
}

/// The lines of the table of a space's numbers.
pub(super) fn numbers(space: &SpaceDiff) -> Vec<(&'static str, BytesDiff)> {
    let all = [
        ("capacity", space.capacity),
        ("allocated", space.allocated),
        ("peak", space.peak),
        ("padding at peak", space.padding_at_peak),
        ("fragmentation", space.fragmentation),
        ("arguments", space.arguments),
        ("outputs", space.outputs),
    ];
    all.into_iter().filter(|(_, value)| value.before.is_some() || value.after.is_some()).collect()
}

/// How much of the two is the same: `97.1 % of the bytes matched; 14 buffers only before, 9 only after`.
#[must_use]
pub fn matched(space: &SpaceDiff) -> Option<String> {
    let found = space.matched.as_ref()?;
    let share = |part, whole| if whole == 0 { "all".to_owned() } else { percent(part, whole) };
    let guess = match found.guessed_after {
        0 => String::new(),
        bytes => format!(" ({} by shape alone)", percent(bytes, found.bytes_after)),
    };
    Some(format!(
        "matched: {} of the bytes before, {} of those after{guess}; {} buffers only before, {} only after",
        share(found.matched_before, found.bytes_before),
        share(found.matched_after, found.bytes_after),
        thousands(found.buffers_only_before as u64),
        thousands(found.buffers_only_after as u64),
    ))
}

/// What a step is made of: `appeared 1.20 GiB, resized −3.00 GiB`.
#[must_use]
pub fn parts(step: &StepDiff, units: UnitSystem) -> String {
    let mut parts = Vec::new();
    for (word, bytes) in [("new", step.appeared), ("gone", step.gone)] {
        if bytes > 0 {
            parts.push(format!("{} {word}", units.short(Bytes(bytes))));
        }
    }
    if step.resized != 0 {
        parts.push(format!("{} resized", units.signed(step.resized)));
    }
    for (words, bytes) in [("live at this peak only", step.came), ("no longer live at the peak", step.left)] {
        if bytes > 0 {
            parts.push(format!("{} {words}", units.short(Bytes(bytes))));
        }
    }
    parts.join(", ")
}

/// A waterfall by scope, stack or operation as it is read: the largest differences, all others together, and what nothing
/// holds. The steps add up as all of them do.
pub(super) fn largest(steps: &[StepDiff]) -> Vec<StepDiff> {
    let is_rest = |step: &&StepDiff| matches!(step.name, StepName::Rest(_)) || step.name.text() == UNUSED;
    let (unused, steps): (Vec<&StepDiff>, Vec<&StepDiff>) = steps.iter().partition(is_rest);
    let differ = steps.iter().filter(|step| step.difference != 0).count();
    let (singly, others) = steps.split_at(differ.min(MOST_SCOPES));
    let mut rows: Vec<StepDiff> = singly.iter().map(|&step| step.clone()).collect();
    rows.extend(together(others));
    rows.extend(unused.into_iter().cloned());
    rows
}

/// Several scopes as one step.
fn together(steps: &[&StepDiff]) -> Option<StepDiff> {
    let name = match steps {
        [] => return None,
        [one] => one.name.clone(),
        [StepDiff { name: StepName::Stack(_), .. }, ..] => {
            StepName::Stack(format!("{} other stacks", thousands(steps.len() as u64)))
        }
        [StepDiff { name: StepName::Op(_), .. }, ..] => {
            StepName::Op(format!("{} other operations", thousands(steps.len() as u64)))
        }
        _ => StepName::Scope(format!("{} other scopes", thousands(steps.len() as u64))),
    };
    let sum = |of: fn(&StepDiff) -> i128| steps.iter().map(|step| of(step)).sum();
    let bytes = |of: fn(&StepDiff) -> u64| steps.iter().map(|step| of(step)).fold(0, u64::saturating_add);
    Some(StepDiff {
        name,
        before: sum(|step| step.before),
        after: sum(|step| step.after),
        difference: sum(|step| step.difference),
        appeared: bytes(|step| step.appeared),
        gone: bytes(|step| step.gone),
        resized: sum(|step| step.resized),
        came: bytes(|step| step.came),
        left: bytes(|step| step.left),
    })
}

/// A signed size that may be below zero itself.
pub(super) fn wide(bytes: i128) -> String {
    match u64::try_from(bytes) {
        Ok(bytes) => Bytes(bytes).short(),
        Err(_) => UnitSystem::Binary.signed(bytes),
    }
}

/// A longer shape, that of a tuple, is cut.
const LONGEST_SHAPE: usize = 48;

/// Shapes of a row: `bf16[8,128]`, with an arrow where they differ.
#[must_use]
pub fn shapes(row: &GroupDiff) -> String {
    let cut = |shape: &str| match shape.char_indices().nth(LONGEST_SHAPE) {
        Some((end, _)) => format!("{}\u{2026}", &shape[..end]),
        None => shape.to_owned(),
    };
    match (row.shape_before.as_str(), row.shape_after.as_str()) {
        (before, after) if before == after || after.is_empty() => cut(before),
        ("", after) => cut(after),
        (before, after) => format!("{} \u{2192} {}", cut(before), cut(after)),
    }
}

/// How many buffers: `24`, `24 → 12`.
pub(super) fn counts(row: &GroupDiff) -> String {
    if row.count_before == row.count_after || row.count_before == 0 || row.count_after == 0 {
        return row.count_before.max(row.count_after).to_string();
    }
    format!("{} \u{2192} {}", row.count_before, row.count_after)
}

/// The difference of a step, its name and its parts: a scope is as long as its program makes it, so that it stands last.
pub(super) fn named_last(step: &StepDiff) -> String {
    let words = parts(step, UnitSystem::Binary);
    let words = if words.is_empty() { String::new() } else { format!(": {words}") };
    format!("{:>12}  {}{words}", signed(Some(step.difference)), step.name.text())
}

fn write_space(out: &mut String, space: &SpaceDiff) {
    let _ = writeln!(out, "  {}", headline(space, UnitSystem::Binary));
    let row = |out: &mut String, label: &str, before: &str, after: &str, rest: &str| {
        let text = format!("    {label:<20} {before:>11} {after:>11} {rest}");
        let _ = writeln!(out, "{}", text.trim_end());
    };
    row(out, "", "before", "after", &format!("{:>12}", "difference"));
    for (label, value) in numbers(space) {
        let rest = format!("{:>12}", signed(value.difference));
        let size = if label == "capacity" { capacity } else { size };
        row(out, label, &size(value.before), &size(value.after), &rest);
    }
    if !space.waterfall.is_empty() {
        let _ = writeln!(out, "    allocated, by class at the peak");
    }
    for step in &space.waterfall {
        let rest = format!("{:>12}  {}", signed(Some(step.difference)), parts(step, UnitSystem::Binary));
        row(out, &format!("  {}", step.name.text()), &wide(step.before), &wide(step.after), &rest);
    }
    if space.waterfall_by_scope.iter().any(|step| step.difference != 0) {
        let _ = writeln!(out, "    allocated, by scope at the peak");
        for step in largest(&space.waterfall_by_scope) {
            row(out, "", &wide(step.before), &wide(step.after), &named_last(&step));
        }
    }
    if !space.phases.is_empty() {
        let _ = writeln!(out, "    highest use by pass");
    }
    for phase in &space.phases {
        let rest = format!("{:>12}", signed(phase.peak.difference));
        row(out, &format!("  {}", phase.phase), &size(phase.peak.before), &size(phase.peak.after), &rest);
    }
    if !space.groups.is_empty() {
        let shown = if space.groups.len() < space.group_count {
            format!(", the largest {} of {}", space.groups.len(), thousands(space.group_count as u64))
        } else {
            String::new()
        };
        let _ = writeln!(out, "    what differs at the peak, equal layers together{shown}");
    }
    for group in &space.groups {
        let text = format!(
            "      {:>11}  {:<15}  {:<15}  {}  {}{}{}",
            signed(Some(group.difference)),
            group.change_words,
            group.class,
            group.scope,
            counts(group),
            if group.is_mixed { " buffers, the largest " } else { " \u{d7} " },
            shapes(group)
        );
        let _ = writeln!(out, "{}", text.trim_end());
    }
    if space.groups_equal > 0 {
        let _ = writeln!(out, "      {:>11}  {} more rows", "=", thousands(space.groups_equal as u64));
    }
    if !space.padding_by_shape.is_empty() {
        let _ = writeln!(out, "    padding at the peak by shape");
    }
    for shape in &space.padding_by_shape {
        let _ = writeln!(
            out,
            "      {:>11}  {}{}  {} \u{2192} {} buffers",
            signed(shape.waste.difference),
            shape.shape,
            shape.layout,
            shape.buffers_before,
            shape.buffers_after
        );
    }
    if let Some(matched) = matched(space) {
        let _ = writeln!(out, "    {matched}");
    }
}

fn write_findings(out: &mut String, pair: &PairDiff) {
    let findings = &pair.findings;
    let lists: [(&str, &[FindingDiff]); 3] =
        [("no longer", &findings.gone), ("new", &findings.new), ("still", &findings.kept)];
    for (word, rows) in lists {
        for finding in rows.iter().take(MOST_FINDINGS) {
            let _ = writeln!(out, "  {word}: {}: {}  [{}]", finding.severity, finding.title, finding.rule);
            if let Some(before) = &finding.before {
                let _ = writeln!(out, "         before: {before}");
            }
        }
    }
}
