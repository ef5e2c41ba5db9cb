//! Activations that the compiler divides along the model's width, as the table of words is: a vocabulary that the number
//! of devices does not divide leaves FSDP no other dimension of it. Logits and attention scores then hold the batch of
//! all devices.
//!
//! Found with libtpu 0.0.52: an encoder of 30,522 words takes 29.7 GiB on each of 8 devices, with 30,528 words 14.8 GiB.

use super::memory::Memory;
use super::state::State;
use crate::model::{FastMap, Program, ShapeNode, thousands};

/// The greatest common divisor.
const fn common(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.abs()
}

impl Memory {
    /// The vocabulary, where so many devices do not divide it, and the next larger one that they do.
    #[must_use]
    pub fn indivisible_vocabulary(&self, parts: i64) -> Option<(i64, i64)> {
        let words = self.kept.vocabulary.filter(|&words| words > 0)?;
        let padded = words.checked_add(parts - 1)? / parts.max(1) * parts;
        (parts > 1 && padded != words).then_some((words, padded))
    }

    /// Whether queries and keys are products with weights that have heads as a dimension of their own: heads are whole
    /// then, and what is divided is the width of each.
    fn has_heads_apart(&self, program: &Program, heads: i64) -> bool {
        let node = |&row: &usize| program.buffer_node(self.base.get(row)?.buffer);
        self.trained.iter().filter_map(node).any(|node| node.dimensions.len() > 2 && node.dimensions.contains(&heads))
    }
}

impl Memory {
    /// Heads of all kinds that attention scores have.
    pub(super) fn heads(&self, scores: &ShapeNode) -> Option<i64> {
        let batch = self.data.first().map(super::batch::DataArgument::batch)?;
        let mut others = scores.dimensions.clone();
        others.remove(others.iter().position(|&size| size == batch)?);
        // What is left beside the positions.
        others.sort_unstable();
        others.truncate(others.len().saturating_sub(2));
        Some(others.iter().fold(1i64, |heads, &size| heads.saturating_mul(size)))
    }
}

impl State<'_> {
    /// Notes that an argument is divided along a dimension: if it is a table of words, and not along these, then activations
    /// are divided along their width, too; if it is the optimizer's state of one, only the table's gradient is.
    pub(super) fn note_table(&mut self, node: &ShapeNode, dimension: usize, (parts, is_trained): (i64, bool)) {
        let Some((words, _)) = self.memory.indivisible_vocabulary(parts).filter(|_| !self.has_features()) else {
            return;
        };
        let along = node.dimensions.get(dimension);
        if node.dimensions.contains(&words) && along.is_some_and(|&along| along != words) {
            if is_trained {
                self.by_width = Some(parts);
            } else if self.memory.roles.iter().any(|role| role.is_trained) {
                self.tables_by_width = Some(parts);
            }
        }
    }

    /// Whether the data has features of its own, such as sound or pictures, beside words. What is made of these is divided
    /// along the batch whatever the table of words is: so it was in a real encoder and decoder for speech.
    fn has_features(&self) -> bool {
        let node = |base: u32| self.program.buffer_node(self.memory.base.get(base as usize)?.buffer);
        let is_feature = |node: &ShapeNode| node.element_type.is_float() && node.dimensions.len() > 2;
        self.memory.data.iter().any(|data| data.parts > 1 && node(data.base).is_some_and(is_feature))
    }

    /// Bytes of the logits' gradient in 32 bits, where the optimizer's state of a table is divided along its width and the
    /// table is not: the compiler may make the table's gradient in parts, of logits that it then holds in this type, too.
    pub(super) fn held_for_table(&self) -> Option<u64> {
        self.tables_by_width.filter(|_| self.by_width.is_none())?;
        let root = |row: &u32| self.program.buffer_node(self.memory.families.list.get(*row as usize)?.root);
        self.memory.kept.logits.iter().filter_map(root).map(|node| node.element_count().saturating_mul(4)).max()
    }

    /// Into how many parts activations are divided along their width, if they are.
    pub(super) fn parts_of_width(&self) -> Option<i64> {
        self.by_width.filter(|_| self.unconstrained().is_some())
    }

    /// Lets logits and attention scores hold the batch of all devices; `families` are bytes.
    pub(super) fn hold_global_batch(&self, families: &mut [u64]) {
        let Some(parts) = self.parts_of_width() else { return };
        let memory = self.memory;
        let scale = |size: &mut u64, times: i64| {
            *size = size.saturating_mul(u64::try_from(times).unwrap_or(1));
        };
        for &row in &memory.kept.logits {
            if let Some(size) = families.get_mut(row as usize) {
                scale(size, parts);
            }
        }
        // Layers have scores of few shapes.
        let mut known: FastMap<&[i64], i64> = FastMap::default();
        for &row in &memory.kept.scores {
            let node = memory.node_of_family(self.program, row);
            if let (Some(node), Some(size)) = (node, families.get_mut(row as usize)) {
                let of_heads = *known.entry(&node.dimensions).or_insert_with(|| self.parts_of_heads(node, parts));
                scale(size, parts / of_heads);
            }
        }
    }

    /// Into how many parts the heads of attention scores are divided where queries are divided along their width.
    fn parts_of_heads(&self, scores: &ShapeNode, parts: i64) -> i64 {
        let Some(heads) = self.memory.heads(scores) else { return 1 };
        let is_whole = !self.divides_heads && self.memory.has_heads_apart(self.program, heads);
        if is_whole { 1 } else { common(heads, parts).max(1) }
    }

    /// Whether heads that weights have as a dimension of their own are taken to be whole, though they may be divided.
    pub(super) fn keeps_heads_whole(&self) -> bool {
        let scores = self.memory.kept.scores.iter().filter_map(|&row| self.memory.node_of_family(self.program, row));
        !self.divides_heads
            && scores
                .filter_map(|node| self.memory.heads(node))
                .any(|heads| self.memory.has_heads_apart(self.program, heads))
    }

    /// What is said of it.
    pub(super) fn width_in_words(&self) -> Option<String> {
        let parts = self.parts_of_width()?;
        let (words, padded) = self.memory.indivisible_vocabulary(parts)?;
        let thousands = |words: i64| thousands(words.unsigned_abs());
        Some(format!(
            "{parts} devices do not divide the vocabulary of {}, so that its table is divided along its width; without constraints the compiler then divides activations so, too, and logits and attention scores hold the batch of all devices, as is counted here. Pad the vocabulary to {}, or constrain activations to the batch with jax.lax.with_sharding_constraint (`constrain {parts}` predicts that)",
            thousands(words),
            thousands(padded)
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn divisors_are_common_to_both() {
        assert_eq!((common(12, 8), common(16, 8), common(7, 8), common(0, 8)), (4, 8, 1, 8));
    }
}
