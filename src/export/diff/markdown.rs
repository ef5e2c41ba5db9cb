//! The comparison for a pull request's comment.

use std::fmt::Write as _;

use super::schema::{Diff, PairDiff, SpaceDiff};
use super::text::{change, counts, devices, headline, matched, numbers, parts, shapes, signed, size, value, wide};
use crate::export::report::{code, escape};
use crate::model::{UnitSystem, thousands};

/// Writes the comparison as Markdown.
pub fn write(diff: &Diff) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "Memory: {} \u{2192} {}\n", code(&diff.before), code(&diff.after));
    for pair in &diff.pairs {
        write_pair(&mut out, pair);
    }
    for (names, side) in [(&diff.only_before, "before"), (&diff.only_after, "after")] {
        if !names.is_empty() {
            let names: Vec<String> = names.iter().map(|name| code(name)).collect();
            let _ = writeln!(out, "Only {side}: {}\n", names.join(", "));
        }
    }
    for unread in &diff.unread {
        let _ = writeln!(out, "Not read: {}\n", escape(unread));
    }
    out
}

fn write_pair(out: &mut String, pair: &PairDiff) {
    let same = pair.before == pair.after;
    let name = if same { pair.before.clone() } else { format!("{} \u{2192} {}", pair.before, pair.after) };
    let _ = writeln!(out, "### {}{}\n", escape(&name), escape(&devices(pair)));
    for space in &pair.spaces {
        if space.color == 0 {
            write_space(out, space);
        } else if space.allocated.difference != Some(0) {
            let _ = writeln!(out, "{}: {}\n", escape(&space.name), change(space.allocated));
        }
    }
    for number in &pair.numbers {
        let _ = writeln!(out, "* {}: {}", escape(&number.what), value(number));
    }
    if !pair.numbers.is_empty() {
        out.push('\n');
    }
    for (word, rows) in
        [("No longer", &pair.findings.gone), ("New", &pair.findings.new), ("Still there", &pair.findings.kept)]
    {
        for finding in rows {
            let _ = writeln!(out, "* {word}: {} ({}, `{}`)", escape(&finding.title), finding.severity, finding.rule);
        }
    }
    out.push('\n');
}

fn write_space(out: &mut String, space: &SpaceDiff) {
    let _ = writeln!(out, "**{}**\n", escape(&headline(space, UnitSystem::Binary)));
    let _ = writeln!(out, "| {} | before | after | difference |\n|---|---:|---:|---:|", escape(&space.name));
    for (label, value) in numbers(space) {
        let _ = writeln!(
            out,
            "| {label} | {} | {} | {} |",
            size(value.before),
            size(value.after),
            signed(value.difference)
        );
    }
    for phase in &space.phases {
        let [before, after] = [size(phase.peak.before), size(phase.peak.after)];
        let _ =
            writeln!(out, "| highest in {} | {before} | {after} | {} |", phase.phase, signed(phase.peak.difference));
    }
    out.push('\n');
    if !space.waterfall.is_empty() {
        let _ = writeln!(out, "| allocated, by class at the peak | before | after | difference | |");
        let _ = writeln!(out, "|---|---:|---:|---:|---|");
    }
    for step in &space.waterfall {
        let [before, after] = [wide(step.before), wide(step.after)];
        let difference = signed(Some(step.difference));
        let _ = writeln!(
            out,
            "| {} | {before} | {after} | {difference} | {} |",
            step.class,
            parts(step, UnitSystem::Binary)
        );
    }
    out.push('\n');
    if !space.groups.is_empty() {
        let _ = writeln!(out, "| difference | | class | what | buffers | shape |\n|---:|---|---|---|---:|---|");
    }
    for group in &space.groups {
        let difference = signed(Some(group.difference));
        let (scope, shapes) = (code(&group.scope), code(&shapes(group)));
        let _ = writeln!(
            out,
            "| {difference} | {} | {} | {scope} | {} | {shapes} |",
            group.change,
            group.class,
            counts(group)
        );
    }
    if space.groups.len() < space.group_count {
        let left = space.group_count - space.groups.len();
        let _ = writeln!(out, "\n{} more rows differ.", thousands(left as u64));
    }
    out.push('\n');
    for shape in &space.padding_by_shape {
        let shape_text = code(&format!("{}{}", shape.shape, shape.layout));
        let _ = writeln!(
            out,
            "* padding of {shape_text}: {}, {} \u{2192} {} buffers",
            signed(shape.waste.difference),
            shape.buffers_before,
            shape.buffers_after
        );
    }
    if !space.padding_by_shape.is_empty() {
        out.push('\n');
    }
    if let Some(matched) = matched(space) {
        let _ = writeln!(out, "{}\n", escape(&matched));
    }
}
