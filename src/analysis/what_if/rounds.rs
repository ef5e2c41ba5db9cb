//! Rounds of a training step: where it runs a forward and a backward pass twice under the same names, as where a gradient
//! is taken where another one has led (SAM), each has a turn of its own.

use super::begin::first_backward;
use super::turn::{FEW_LAYERS, Turn, begins};
use crate::analysis::ProgramAnalysis;
use crate::analysis::names::lookup::is_rematerialised;
use crate::analysis::names::pass::Pass;
use crate::analysis::packing::{Families, Family};
use crate::model::{Program, ShapeNode};

/// Share of what a layer made in its first forward pass from which on it runs a second one.
const REPEATED: f64 = 0.5;

/// Least share of all that backward passes make that each of two makes.
const OF_EACH: f64 = 0.25;

/// The times of a forward and a backward pass: from the first, before the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round(pub u32, pub u32);

impl Round {
    /// The whole program.
    pub const WHOLE: Self = Self(0, u32::MAX);

    /// Whether a time is in it.
    pub const fn has(self, time: u32) -> bool {
        self.0 <= time && time < self.1
    }
}

impl Default for Round {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl Turn {
    /// The turns of a step that runs a forward and a backward pass twice under the same names, as where a gradient is taken
    /// where another one has led (SAM); empty for any other. `whole` is the turn of the whole step.
    pub fn twice(
        program: &Program,
        analysis: &ProgramAnalysis,
        (families, points): (&Families, &[u32]),
        (passes, names): (&[Pass], &[String]),
        is_activation: impl Fn(&ShapeNode) -> bool,
        whole: &Self,
    ) -> Vec<Self> {
        let Some(second) = whole.second_round(program, families, passes, &is_activation) else { return Vec::new() };
        let rounds = [Round(0, second), Round(second, u32::MAX)];
        let turn =
            |round| Self::of_round(program, analysis, (families, points), (passes, names), &is_activation, round);
        rounds.into_iter().map(turn).collect::<Option<_>>().unwrap_or_default()
    }

    /// Time at which most layers begin their forward pass again, after the first backward pass and before another one.
    fn second_round(
        &self,
        program: &Program,
        families: &Families,
        passes: &[Pass],
        is_activation: &dyn Fn(&ShapeNode) -> bool,
    ) -> Option<u32> {
        if self.is_by_use || self.layers.len() < FEW_LAYERS {
            return None;
        }
        let rows = || families.list.iter().enumerate().zip(passes).map(|((row, family), pass)| (row, family, *pass));
        let bytes = |pass: Pass, from: u32, to: u32| {
            let own = rows().filter(|row| row.2 == pass && Round(from, to).has(2 * row.1.first));
            own.fold(0u64, |sum, row| sum.saturating_add(row.1.size))
        };
        let whole = bytes(Pass::Backward, 0, u32::MAX);
        let is_value = |family: &Family| program.buffer_node(family.root).is_some_and(is_activation);
        let begun = first_backward(families, passes, is_value)?;
        let mut first = vec![0u64; self.layers.len()];
        let mut again: Vec<Vec<(u32, u64)>> = vec![Vec::new(); self.layers.len()];
        for (row, family, _) in rows().filter(|row| row.2 == Pass::Forward && !self.is_again(row.0 as u32)) {
            let Some(layer) = self.layer_of.get(row).copied().flatten().map(|layer| layer as usize) else { continue };
            let is_copy =
                || program.buffers.instruction_of(family.root).is_some_and(|at| is_rematerialised(program, at));
            if layer >= first.len() || is_copy() {
                continue;
            }
            if 2 * family.first < begun {
                first[layer] = first[layer].saturating_add(family.size);
            } else {
                again[layer].push((2 * family.first, family.size));
            }
        }
        let repeated: Vec<u32> = first
            .iter()
            .zip(&again)
            .filter(|(first, again)| {
                let made = again.iter().fold(0u64, |sum, row| sum.saturating_add(row.1));
                **first > 0 && made as f64 >= **first as f64 * REPEATED
            })
            .filter_map(|(_, again)| begins(again))
            .collect();
        let second = repeated.iter().copied().min()?;
        let of_each = |from, to| bytes(Pass::Backward, from, to) as f64 >= whole as f64 * OF_EACH;
        let is_most = repeated.len() * 2 > first.iter().filter(|&&bytes| bytes > 0).count();
        (is_most && of_each(begun, second) && of_each(second, u32::MAX)).then_some(second)
    }
}
