//! The comparison as a document, for a pull request's comment or a page.

use super::allocators::AllocatorDiff;
use super::schema::{Diff, NumberDiff, PairDiff, SpaceDiff, StepDiff, StepName};
use super::text::{
    capacity, change, counts, devices, headline, largest, matched, numbers, parts, shapes, signed, size, value, wide,
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
    for allocator in &pair.allocators {
        add_allocator(out, allocator);
    }
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
    let mut table = Table::new([space.name.as_str(), ">before", ">after", ">difference"]);
    for (label, value) in numbers(space) {
        let side = |bytes: Option<u64>| match label {
            "capacity" => capacity(bytes).into(),
            _ => sized(bytes),
        };
        table.row([label.into(), side(value.before), side(value.after), moved(value.difference)]);
    }
    for phase in &space.phases {
        let value = phase.peak;
        let label = format!("highest in {}", phase.phase);
        table.row([label.into(), sized(value.before), sized(value.after), moved(value.difference)]);
    }
    out.table(table);
    waterfall(out, "allocated, by class at the peak", &space.waterfall);
    if space.waterfall_by_scope.iter().any(|step| step.difference != 0) {
        waterfall(out, "allocated, by scope at the peak", &largest(&space.waterfall_by_scope));
    }
    let mut table = Table::new([">difference", "", "class", "what", ">buffers", "shape"]);
    for group in &space.groups {
        table.row([
            moved(Some(group.difference)),
            group.change_words.into(),
            group.class.as_ref().into(),
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

/// A size that sorts by its bytes.
fn sized(bytes: Option<u64>) -> Line {
    let line = Line::from(size(bytes));
    bytes.map_or(line.clone(), |bytes| line.sorted_by(bytes.into()))
}

/// A difference that sorts by its bytes.
fn moved(difference: Option<i128>) -> Line {
    Line::from(signed(difference)).sorted_by(difference.unwrap_or(0))
}

fn waterfall(out: &mut Document, title: &str, steps: &[StepDiff]) {
    let mut table = Table::new([title, ">before", ">after", ">difference", ""]);
    for step in steps {
        table.row([
            match &step.name {
                StepName::Class(name) | StepName::Rest(name) => (*name).into(),
                StepName::Kind(name) => name.as_str().into(),
                StepName::Scope(name) | StepName::Stack(name) | StepName::Op(name) => Line::code(name),
            },
            Line::from(wide(step.before)).sorted_by(step.before),
            Line::from(wide(step.after)).sorted_by(step.after),
            moved(Some(step.difference)),
            parts(step, UnitSystem::Binary).into(),
        ]);
    }
    out.table(table);
}

fn add_allocator(out: &mut Document, allocator: &AllocatorDiff) {
    out.blocks.push(Block::Answer(allocator.headline(UnitSystem::Binary).into(), Tone::Neutral));
    let mut table = Table::new([allocator.name.as_str(), ">before", ">after", ">difference"]);
    for (label, value) in [(allocator.total_is, allocator.total), ("in use", allocator.in_use)] {
        if label != "in use" || allocator.total_is != "in use" {
            table.row([label.into(), sized(value.before), sized(value.after), moved(value.difference)]);
        }
    }
    out.table(table);
    let titled = |by: &str| format!("{}, by {by}", allocator.total_is);
    waterfall(out, &titled("kind"), &allocator.waterfall);
    waterfall(out, &titled(allocator.held_by), &largest(&allocator.waterfall_by_holder));
    let mut table = Table::new([">difference", "", "kind", allocator.held_by, ">blocks", allocator.detail()]);
    for row in &allocator.holders {
        table.row([
            moved(Some(row.difference)),
            row.change.into(),
            row.kind.as_str().into(),
            Line::code(&row.name),
            row.counts().into(),
            Line::code(&row.detail),
        ]);
    }
    out.table(table);
    if allocator.holders.len() < allocator.holder_count {
        let left = allocator.holder_count - allocator.holders.len();
        out.paragraph(format!("{} more rows differ.", thousands(left as u64)));
    }
}
