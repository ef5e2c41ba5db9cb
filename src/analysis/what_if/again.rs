//! What the compiler computes again by itself, and the layers it belongs to: it runs with other layers than its own.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::analysis::flow::hands_on;
use crate::analysis::layer_use::Mark;
use crate::analysis::live_range::LiveRanges;
use crate::analysis::names::lookup::{is_rematerialised, rematerialised_at};
use crate::analysis::packing::{Families, Family};
use crate::model::{FastMap, InstructionId, Opcode, Program};

/// When the instructions that the compiler computes again are computed first.
#[derive(Debug, Default)]
pub(super) struct Again {
    /// Program point of the first computation, by instruction that is named as computed again.
    first: FastMap<InstructionId, u32>,
}

impl Again {
    /// Looks for what is computed again.
    pub fn new(program: &Program, families: &Families, live: &LiveRanges) -> Self {
        let is_again = |family: &Family| {
            program.buffers.instruction_of(family.root).is_some_and(|at| is_rematerialised(program, at))
        };
        if !families.list.par_iter().any(is_again) {
            return Self::default();
        }
        // Names of the first computation, and whether there is more to the instruction's own.
        let named = |&row: &u32| {
            let name = program.text.instruction_name_bytes(InstructionId(row));
            let again = rematerialised_at(&name);
            let end = again.unwrap_or(name.len());
            let plain = match name {
                Cow::Borrowed(name) => Cow::Borrowed(&name[..end]),
                Cow::Owned(mut name) => {
                    name.truncate(end);
                    Cow::Owned(name)
                }
            };
            (InstructionId(row), plain, again.is_some())
        };
        let names: Vec<(InstructionId, Cow<'_, [u8]>, bool)> = live.sequence().par_iter().map(named).collect();
        let again = || names.iter().filter(|name| name.2);
        let mut first: FastMap<&[u8], u32> = again().map(|(_, plain, _)| (&**plain, u32::MAX)).collect();
        for (at, plain, _) in &names {
            if let (Some(first), Some(point)) = (first.get_mut(&**plain), live.point_of(at.0)) {
                *first = point.min(*first);
            }
        }
        let first = again().filter_map(|(at, plain, _)| Some((*at, first.get(&**plain).copied()?))).collect();
        Self { first }
    }

    /// Whether an instruction that runs at a point was computed before.
    pub fn is_later(&self, at: InstructionId, point: u32) -> bool {
        self.first.get(&at).is_some_and(|&first| first < point)
    }

    /// Layers of what is computed again where names tell them.
    pub fn named(
        &self,
        live: &LiveRanges,
        layer_of: impl Fn(InstructionId) -> Option<u32>,
    ) -> FastMap<InstructionId, u32> {
        let is_meant = |at: &InstructionId| live.point_of(at.0).is_some_and(|point| self.is_later(*at, point));
        self.first.keys().copied().filter(is_meant).filter_map(|at| Some((at, layer_of(at)?))).collect()
    }

    /// Layers of what is computed again: that of the first computation, else the one whose arguments are read.
    /// `layer_at` tells the layer at a point.
    pub fn layers(&self, marks: &[Mark], layer_at: impl Fn(u32) -> Option<u32>) -> FastMap<InstructionId, u32> {
        let is_meant = |mark: &&Mark| self.first.contains_key(&mark.at);
        let read: FastMap<InstructionId, u32> =
            marks.iter().filter(is_meant).filter_map(|mark| Some((mark.at, mark.layer?))).collect();
        let layer =
            |(&at, &first): (&InstructionId, &u32)| Some((at, layer_at(first).or_else(|| read.get(&at).copied())?));
        self.first.iter().filter_map(layer).collect()
    }
}

/// Adds to the layers of what is computed again the copies, prefetches and views that only it reads. `sequence` are the
/// rows of the instructions in program order.
pub(super) fn add_copies(program: &Program, sequence: &[u32], layers: &mut FastMap<InstructionId, u32>) {
    /// What reads an instruction's result.
    #[derive(Clone, Copy, PartialEq)]
    enum Readers {
        None,
        Again(u32),
        Others,
    }
    if layers.is_empty() {
        return;
    }
    let mut readers = vec![Readers::None; program.instructions.opcode.len()];
    for &row in sequence.iter().rev() {
        let at = InstructionId(row);
        let own = match layers.get(&at) {
            Some(&layer) => Readers::Again(layer),
            None if hands_on(program, at) => readers[at.index()],
            None => Readers::Others,
        };
        if let Readers::Again(layer) = own {
            layers.insert(at, layer);
            if program.instructions.opcode.get(at.index()) == Some(&Opcode::ASYNC_START) {
                let called = program.instructions.called_by(at).iter();
                let called = called.filter_map(|called| program.computations.get(called.index()));
                layers.extend(called.flat_map(|own| (own.start..own.end).map(|row| (InstructionId(row), layer))));
            }
        }
        for &operand in program.instructions.operands_of(at) {
            if let Some(known) = readers.get_mut(operand as usize) {
                *known = if *known == Readers::None || *known == own { own } else { Readers::Others };
            }
        }
    }
}
