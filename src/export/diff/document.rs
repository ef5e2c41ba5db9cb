//! The comparison as a document, for a pull request's comment or a page.

use super::schema::{Diff, NumberDiff, PairDiff, SpaceDiff, StepDiff, StepName};
use super::text::{
    capacity, change, counts, devices, headline, matched, numbers, parts, scopes, shapes, signed, size, value, wide,
};
use crate::export::document::{Block, Document, Item, Line, Table, Tone};
use crate::model::{UnitSystem, thousands};

/// The comparison as a document.
pub fn document(diff: &Diff) -> Document {
    let mut out = Document::default();
    out.paragraph(Line::from("Memory: ").then_code(&diff.before).then(" \u{2192} ").then_code(&diff.after));
    for pair in &diff.pairs {
        add_pair(&mut out, pair);
    }
    for (names, side) in [(&diff.only_before, "before"), (&diff.only_after, "after")] {
        if !names.is_empty() {
            out.paragraph(Line::from(format!("Only {side}: ")).then_codes(names));
        }
    }
    for unread in &diff.unread {
        out.paragraph(format!("Not read: {unread}"));
    }
    out
}

fn add_pair(out: &mut Document, pair: &PairDiff) {
    let same = pair.before == pair.after;
    let name = if same { pair.before.clone() } else { format!("{} \u{2192} {}", pair.before, pair.after) };
    out.heading(3, format!("{name}{}", devices(pair)));
    for space in &pair.spaces {
        if space.color == 0 {
            add_space(out, space);
        } else if space.allocated.difference != Some(0) {
            out.paragraph(format!("{}: {}", space.name, change(space.allocated)));
        }
    }
    let number = |number: &NumberDiff| Item::new(0, format!("{}: {}", number.what, value(number)));
    out.list(pair.numbers.iter().map(number).collect());
    let mut items = Vec::new();
    for (word, rows) in
        [("No longer", &pair.findings.gone), ("New", &pair.findings.new), ("Still there", &pair.findings.kept)]
    {
        for finding in rows {
            let line = Line::marked(&format!("{word}: {} ({}, ", finding.title, finding.severity));
            items.push(Item::new(0, line.then_code(finding.rule).then(")")));
        }
    }
    out.list(items);
}

fn add_space(out: &mut Document, space: &SpaceDiff) {
    let tone = Tone::of(space.verdict_after.unwrap_or_default());
    out.blocks.push(Block::Answer(headline(space, UnitSystem::Binary).into(), tone));
    let side = |bytes: Option<u64>| {
        let line = Line::from(size(bytes));
        bytes.map_or(line.clone(), |bytes| line.sorted_by(bytes.into()))
    };
    let change = |difference: Option<i128>| Line::from(signed(difference)).sorted_by(difference.unwrap_or(0));
    let mut table = Table::new([space.name.as_str(), ">before", ">after", ">difference"]);
    for (label, value) in numbers(space) {
        let side = |bytes: Option<u64>| match label {
            "capacity" => capacity(bytes).into(),
            _ => side(bytes),
        };
        table.row([label.into(), side(value.before), side(value.after), change(value.difference)]);
    }
    for phase in &space.phases {
        let value = phase.peak;
        let label = format!("highest in {}", phase.phase);
        table.row([label.into(), side(value.before), side(value.after), change(value.difference)]);
    }
    out.table(table);
    let mut waterfall = |title: &str, steps: &[StepDiff]| {
        let mut table = Table::new([title, ">before", ">after", ">difference", ""]);
        for step in steps {
            table.row([
                match &step.name {
                    StepName::Class(name) => (*name).into(),
                    StepName::Scope(name) => Line::code(name),
                },
                Line::from(wide(step.before)).sorted_by(step.before),
                Line::from(wide(step.after)).sorted_by(step.after),
                change(Some(step.difference)),
                parts(step, UnitSystem::Binary).into(),
            ]);
        }
        out.table(table);
    };
    waterfall("allocated, by class at the peak", &space.waterfall);
    if space.waterfall_by_scope.iter().any(|step| step.difference != 0) {
        waterfall("allocated, by scope at the peak", &scopes(space));
    }
    let mut table = Table::new([">difference", "", "class", "what", ">buffers", "shape"]);
    for group in &space.groups {
        table.row([
            change(Some(group.difference)),
            group.change.into(),
            group.class.into(),
            Line::code(&group.scope),
            counts(group).into(),
            Line::code(shapes(group)),
        ]);
    }
    out.table(table);
    if space.groups.len() < space.group_count {
        let left = space.group_count - space.groups.len();
        out.paragraph(format!("{} more rows differ.", thousands(left as u64)));
    }
    let mut items = Vec::new();
    for shape in &space.padding_by_shape {
        let line = Line::from("padding of ").then_code(format!("{}{}", shape.shape, shape.layout));
        let (change, before, after) = (signed(shape.waste.difference), shape.buffers_before, shape.buffers_after);
        items.push(Item::new(0, line.then(format!(": {change}, {before} \u{2192} {after} buffers"))));
    }
    out.list(items);
    if let Some(matched) = matched(space) {
        out.paragraph(matched);
    }
}
