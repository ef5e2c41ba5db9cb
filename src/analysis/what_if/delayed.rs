//! Operations of a layer's forward pass that the compiler delays until the backward pass is near, as only that needs what
//! they make: where names show no layers, they run when no layer does.

use super::segments::Named;
use super::turn::{Read, Turn};
use crate::model::{FastMap, InstructionId, NO_ROW, Opcode, Program};

/// How far the operands of an operation are followed to values of a segment.
const FURTHEST: u32 = 24;

/// What a value is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// Constants alone.
    Constant,
    /// Values of one segment.
    Segment(u32),
    /// Anything else, such as arguments of the program or values of several segments.
    Other,
}

impl Origin {
    fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::Constant, origin) | (origin, Self::Constant) => origin,
            (Self::Segment(own), Self::Segment(of)) if own == of => self,
            _ => Self::Other,
        }
    }
}

/// What values are made from, as far as it was asked for.
struct Origins<'a> {
    program: &'a Program,
    makers: &'a [(u32, u32)],
    of_family: &'a [Option<u32>],
    known: FastMap<u32, Origin>,
}

impl Origins<'_> {
    fn made_by(&self, at: u32) -> impl Iterator<Item = u32> + use<'_> {
        let start = self.makers.partition_point(|maker| maker.0 < at);
        self.makers[start..].iter().take_while(move |maker| maker.0 == at).map(|maker| maker.1)
    }

    /// Where the result of an operation comes from.
    fn of(&mut self, at: u32, left: u32) -> Origin {
        if let Some(&known) = self.known.get(&at) {
            return known;
        }
        let own = self.made_by(at).find_map(|family| self.of_family.get(family as usize).copied().flatten());
        let found = own.map_or_else(|| self.of_operands(at, left), Origin::Segment);
        self.known.insert(at, found);
        found
    }

    /// Where what an operation reads comes from.
    fn of_operands(&mut self, at: u32, left: u32) -> Origin {
        let program = self.program;
        if left == 0 || program.instructions.opcode.get(at as usize) == Some(&Opcode::PARAMETER) {
            return Origin::Other;
        }
        let operands = program.instructions.operands_of(InstructionId(at)).iter().filter(|&&row| row != NO_ROW);
        operands.fold(Origin::Constant, |origin, &row| match origin {
            Origin::Other => origin,
            _ => origin.with(self.of(row, left - 1)),
        })
    }
}

/// Operations that are delayed.
#[derive(Debug, Default)]
pub(super) struct Delayed {
    /// The segment of each, by operation.
    pub readers: FastMap<u32, u32>,
    /// What is made by them, with the segment; ascending.
    pub made: Vec<(u32, u32)>,
}

/// Looks for delayed operations: after the last layer of the forward pass, they read what is made of values of one segment
/// alone. `of_read` are the segments that read, `of_family` those that make the families.
pub(super) fn delayed(
    program: &Program,
    Named { families, makers, .. }: Named<'_>,
    turn: &Turn,
    (of_read, of_family): (&[Option<u32>], &[Option<u32>]),
) -> Delayed {
    let layers = 0..turn.layers.len() as u32;
    let begins = layers.map(|layer| turn.window(layer).0).filter(|&begin| begin < turn.at);
    let Some(last) = begins.max().filter(|_| turn.is_by_use) else { return Delayed::default() };
    let is_meant = |read: &Read, segment: Option<u32>| {
        segment.is_none() && read.layer.is_none() && (last..turn.at).contains(&read.time)
    };
    let reads = turn.reads().iter().zip(of_read).filter(|(read, segment)| is_meant(read, **segment));
    // The last first.
    let mut waiting: Vec<(u32, u32)> = reads.map(|(read, _)| (read.time, read.reader)).collect();
    waiting.sort_unstable_by(|a, b| b.cmp(a));
    waiting.dedup_by_key(|row| row.1);
    let mut origins = Origins { program, makers, of_family, known: FastMap::default() };
    let mut found = Delayed::default();
    for (_, reader) in waiting {
        let Origin::Segment(segment) = origins.of_operands(reader, FURTHEST) else { continue };
        // Nothing but the same layer's delayed operations, and the backward pass, may read what it makes.
        let is_own = |read: &Read| read.reader == reader || found.readers.get(&read.reader) == Some(&segment);
        let is_kept = |family: u32| {
            let is_live = families.list.get(family as usize).is_some_and(|family| 2 * family.last >= turn.at);
            is_live && turn.reads()[turn.reads_of(family)].iter().all(is_own)
        };
        // What begins to copy a value has that value, too.
        let is_read = |family: u32| turn.reads()[turn.reads_of(family)].iter().any(|read| read.reader == reader);
        if origins.made_by(reader).filter(|&family| !is_read(family)).all(is_kept) {
            found.readers.insert(reader, segment);
        }
    }
    for (row, family) in (0u32..).zip(&families.list) {
        let is_late = (last..turn.at).contains(&(2 * family.first)) && 2 * family.last >= turn.at;
        let root = program.buffers.instruction_of(family.root).filter(|_| is_late && is_free(of_family, row));
        let Some(Origin::Segment(segment)) = root.map(|root| origins.of(root.0, FURTHEST)) else { continue };
        let is_own = |read: &Read| found.readers.get(&read.reader) == Some(&segment);
        if turn.reads()[turn.reads_of(row)].iter().all(is_own) {
            found.made.push((row, segment));
        }
    }
    found
}

/// Whether no segment makes a family.
fn is_free(of_family: &[Option<u32>], family: u32) -> bool {
    of_family.get(family as usize).copied().flatten().is_none()
}
