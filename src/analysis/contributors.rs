//! The largest contributors to the peak: buffers that differ only by layer folded into one row with their count.

use std::collections::HashMap;

use super::class::Class;
use super::names::scope;
use super::peak_contents::padding_in;
use super::program::{ProgramAnalysis, category};
use crate::model::{BufferId, Bytes, Category, Program};

/// Buffers of one category and class with the same folded scope.
#[derive(Debug, Clone)]
pub struct Contributor {
    /// Folded scope: `layer_*/attn/softmax`, `params[…]`; empty if the file names none; of one buffer alone, its own name.
    /// Where several rows have the same, with their class or category.
    pub scope: String,
    /// Kind of instruction of the largest buffer.
    pub opcode: String,
    /// Their category.
    pub category: Category,
    /// Their class (a guess).
    pub class: Class,
    /// Total bytes.
    pub bytes: Bytes,
    /// Total bytes of padding.
    pub padding: Bytes,
    /// The buffers, largest first.
    pub buffers: Vec<BufferId>,
    /// Shape of the largest.
    pub shape: String,
    /// Number of other shapes.
    pub other_shapes: usize,
}

impl Contributor {
    /// What it is called: its folded scope, or where the file names none the kind of instruction.
    #[must_use]
    pub fn name(&self) -> &str {
        if self.scope.is_empty() { &self.opcode } else { &self.scope }
    }
}

/// A label with the name at its end, or before what follows the path of an argument, folded: `copy of state[…]`,
/// `state[…], next value`.
fn folded_label(label: &str) -> String {
    if let Some((path, end)) = label.split_once(", ").filter(|(path, _)| scope::argument(path).is_some()) {
        return format!("{}, {end}", scope::folded(path));
    }
    let (words, name) = label.rsplit_once(' ').map_or(("", label), |(words, name)| (words, name));
    let space = if words.is_empty() { "" } else { " " };
    format!("{words}{space}{}", scope::folded(name))
}

/// Folds buffers with the bytes that count for each, largest contributor first.
#[must_use]
pub fn contributors(program: &Program, analysis: &ProgramAnalysis, buffers: &[(BufferId, Bytes)]) -> Vec<Contributor> {
    let mut rows: Vec<Contributor> = Vec::new();
    let mut row_of: HashMap<(Category, Class, String), usize> = HashMap::new();
    let mut shapes: Vec<Vec<String>> = Vec::new();
    let classes = analysis.classes(program);
    for &(buffer, bytes) in buffers {
        let instruction = program.buffers.instruction_of(buffer);
        let label = analysis.labels(program).of(program, buffer);
        let opcode = instruction.map(|i| program.opcode_name(i).to_owned()).unwrap_or_default();
        let category = category(program, buffer);
        let class = classes.of(buffer);
        let op_name = || instruction.map(|i| program.text.op_name(i)).unwrap_or_default();
        let folded = label.map_or_else(
            || scope::folded(&op_name()),
            |label| match label.borrowed.as_str() {
                "" => folded_label(&label.text),
                name => match label.kind {
                    Some(kind) => format!("{kind}, {}", scope::folded(name)),
                    None => scope::folded(name),
                },
            },
        );
        let key = if folded.is_empty() { format!("\u{1}{opcode}") } else { folded.clone() };
        let shape = program.buffer_shape(buffer).map(|(shape, node)| shape.short_text_of(node)).unwrap_or_default();
        let row = *row_of.entry((category, class, key)).or_insert_with(|| {
            rows.push(Contributor {
                scope: folded,
                opcode,
                category,
                class,
                bytes: Bytes::ZERO,
                padding: Bytes::ZERO,
                buffers: Vec::new(),
                shape: shape.clone(),
                other_shapes: 0,
            });
            shapes.push(Vec::new());
            rows.len() - 1
        });
        let padding = padding_in(program, &analysis.traces, buffer, bytes);
        rows[row].bytes += bytes;
        rows[row].padding += Bytes(u64::try_from(padding).unwrap_or(0));
        rows[row].buffers.push(buffer);
        if !shapes[row].contains(&shape) {
            shapes[row].push(shape);
        }
    }
    for (row, shapes) in rows.iter_mut().zip(&shapes) {
        row.other_shapes = shapes.len().saturating_sub(1);
        row.buffers.sort_by_key(|&b| (std::cmp::Reverse(program.buffers.size_of(b)), b));
        // One buffer alone has its own name everywhere.
        if let [alone] = row.buffers[..] {
            row.scope = analysis.buffer_name(program, alone);
        }
    }
    tell_apart(&mut rows);
    rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.scope.cmp(&b.scope)));
    rows
}

/// Adds the class, or else the category, to the names of rows that have the same: weights and optimizer state that are
/// both in `state[…]`.
fn tell_apart(rows: &mut [Contributor]) {
    let mut same: HashMap<String, Vec<usize>> = HashMap::new();
    for (row, item) in rows.iter().enumerate().filter(|(_, item)| !item.scope.is_empty()) {
        same.entry(item.scope.clone()).or_default().push(row);
    }
    for same in same.into_values().filter(|same| same.len() > 1) {
        let has_one_class = same.iter().all(|&row| rows[row].class == rows[same[0]].class);
        for row in same {
            let item = &mut rows[row];
            let words = if has_one_class { item.category.name() } else { item.class.name() };
            item.scope = format!("{}, {}", item.scope, words.to_lowercase());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_one_name_are_told_apart_by_more_than_their_colour() {
        let row = |scope: &str, class, category| Contributor {
            scope: scope.to_owned(),
            opcode: String::new(),
            category,
            class,
            bytes: Bytes(1),
            padding: Bytes::ZERO,
            buffers: Vec::new(),
            shape: String::new(),
            other_shapes: 0,
        };
        let mut rows = [
            row("state[…]", Class::Weight, Category::Parameter),
            row("state[…]", Class::Optimizer, Category::Parameter),
            row("image", Class::Input, Category::Parameter),
        ];
        tell_apart(&mut rows);
        let names: Vec<&str> = rows.iter().map(Contributor::name).collect();
        assert_eq!(names, ["state[…], weight", "state[…], optimizer state", "image"]);
    }

    #[test]
    fn labels_of_equal_layers_fold() {
        assert_eq!(folded_label("copy of state.cache['layer_10']['k']"), "copy of state[\u{2026}]");
        assert_eq!(folded_label("layer_3/attn/sub"), "layer_*/attn/sub");
        assert_eq!(folded_label("embed: dot_general"), "embed: dot_general");
    }
}
