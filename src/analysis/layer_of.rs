//! The layer that an operation belongs to where its name shows none: everything between two operations that read arguments
//! of one layer, and of no other, is that layer's.

use super::flow::label::{Label, Labels, backward};
use super::layer_use::{LayerUse, Mark};
use super::names::layer::Layers;
use super::names::pass::Pass;
use super::names::scope;
use crate::model::{InstructionId, NO_ROW, Opcode, Program};

/// Operations whose names are looked at for layers.
const MOST_NAMES: usize = 512;

/// How labels of attention scores and of their gradients end that say no more.
const SCORES: &str = "attention scores";

/// Parts of a framework op name behind the layer.
const PARTS: usize = 3;

/// The layers that operations of the entry belong to, by what they read. Empty where op names show layers, or the paths of
/// arguments do not.
#[derive(Debug, Default)]
pub struct LayerOf {
    /// Names of the layers: `layers[3]`.
    names: Vec<String>,
    /// Row of the layer, by instruction; [`NO_ROW`] for none.
    of: Vec<u32>,
}

impl LayerOf {
    /// Finds the layers; `sequence` are the rows of the instructions in program order.
    #[must_use]
    pub fn new(program: &Program, labels: &Labels, sequence: &[u32]) -> Self {
        if are_named(program, sequence) { Self::default() } else { Self::by_use(program, labels, sequence) }
    }

    /// As [`Self::new`], whatever op names show.
    #[must_use]
    pub fn by_use(program: &Program, labels: &Labels, sequence: &[u32]) -> Self {
        let used = LayerUse::of_arguments(program, labels, sequence);
        if used.layers.is_empty() {
            return Self::default();
        }
        let mut found = Self { names: Vec::new(), of: vec![NO_ROW; program.instructions.len()] };
        // In the order in which they run first.
        let mut order: Vec<u32> = Vec::new();
        let mut rank = vec![NO_ROW; used.layers.len()];
        for layer in used.marks.iter().filter_map(|mark| mark.layer) {
            if rank[layer as usize] == NO_ROW {
                rank[layer as usize] = order.len() as u32;
                order.push(layer);
            }
        }
        let passes = [Pass::Forward, Pass::Recomputed, Pass::Backward];
        for pass in passes {
            let last = order.len().saturating_sub(1) as u32;
            let place = |layer: u32| match pass {
                Pass::Backward => last - rank[layer as usize],
                _ => rank[layer as usize],
            };
            let marks: Vec<&Mark> = used.marks.iter().filter(|mark| mark.pass == pass).collect();
            for (at, place) in between(program, sequence, &marks, place) {
                let place = if pass == Pass::Backward { last - place } else { place };
                found.of[at as usize] = order[place as usize];
            }
        }
        found.names = used.layers.into_iter().map(|layer| layer.name).collect();
        found
    }

    /// Name of the layer of an operation.
    #[must_use]
    pub fn layer(&self, at: InstructionId) -> Option<&str> {
        let row = self.of.get(at.index()).copied().filter(|&row| row != NO_ROW)?;
        self.names.get(row as usize).map(String::as_str)
    }

    /// A label with the layer before the op name that it has, or that the instruction has: `layers[3]/attention/mul`. The
    /// label as it is where the layer is not known, or it says itself what a buffer is.
    #[must_use]
    pub fn tell(&self, program: &Program, at: InstructionId, label: Option<Label>) -> Option<Label> {
        let Some(layer) = self.layer(at) else { return label };
        let (name, kind) = match &label {
            // Scores of all layers look alike, and have no other name.
            Some(label) if label.borrowed.is_empty() && label.text.ends_with(SCORES) => {
                return Some(Label { text: format!("{}, {layer}", label.text), ..label.clone() });
            }
            Some(label) if label.borrowed.is_empty() => return Some(label.clone()),
            Some(label) => (label.borrowed.clone(), label.kind),
            None => (program.text.op_name(at), None),
        };
        // What has a number has the layer's, or that of a part of it.
        let is_numbered = || scope::path(&name).iter().any(|part| scope::fold(part) != *part);
        if name.is_empty() || scope::argument(&name).is_some() || is_numbered() {
            return label;
        }
        let kind_words = kind.map(|kind| format!("{kind}, ")).unwrap_or_default();
        let pass = if kind.is_none() { backward(&name) } else { "" };
        let text = format!("{kind_words}{layer}/{}{pass}", scope::short(&name, PARTS));
        Some(Label { text, borrowed: name, kind, ..label.unwrap_or_default() })
    }
}

/// Whether op names show layers, by a sample of them.
fn are_named(program: &Program, sequence: &[u32]) -> bool {
    let rows =
        sequence.iter().filter(|&&row| program.instructions.opcode.get(row as usize) != Some(&Opcode::PARAMETER));
    let rows = rows.step_by((sequence.len() / MOST_NAMES).max(1));
    let names: Vec<String> = rows.map(|&row| program.text.op_name(InstructionId(row))).collect();
    !Layers::new(names.iter().map(String::as_str)).is_empty()
}

/// Operations with the place of the layer that they are of: the last layer of which a mark stands before them, or is they
/// themselves, and the first of which one comes after, are the same. What is between two layers is of neither.
fn between(program: &Program, sequence: &[u32], marks: &[&Mark], place: impl Fn(u32) -> u32) -> Vec<(u32, u32)> {
    const NONE: u32 = u32::MAX;
    if marks.is_empty() {
        return Vec::new();
    }
    let count = program.instructions.len();
    // What reads arguments of several layers is of none, and nothing before or behind it is told by it alone.
    let mut own = vec![NONE; count];
    for mark in marks.iter().filter(|mark| !mark.is_of_several) {
        if let Some(layer) = mark.layer {
            own[mark.at.index()] = place(layer);
        }
    }
    // The last layer before, plus one; 0 for none.
    let mut before = vec![0u32; count];
    for &row in sequence {
        let operands = program.instructions.operands_of(InstructionId(row)).iter();
        let known = operands.filter_map(|&from| before.get(from as usize).copied()).max().unwrap_or(0);
        let at = row as usize;
        let itself = if own[at] == NONE { 0 } else { own[at] + 1 };
        before[at] = known.max(itself);
    }
    let mut after = vec![NONE; count];
    for &row in sequence.iter().rev() {
        let at = row as usize;
        after[at] = after[at].min(own[at]);
        let reached = after[at];
        for &from in program.instructions.operands_of(InstructionId(row)) {
            if let Some(after) = after.get_mut(from as usize) {
                *after = (*after).min(reached);
            }
        }
    }
    let is_one = |&&row: &&u32| after[row as usize] != NONE && before[row as usize] == after[row as usize] + 1;
    sequence.iter().filter(is_one).map(|&row| (row, after[row as usize])).collect()
}
