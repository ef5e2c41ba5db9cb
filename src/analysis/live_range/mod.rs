//! Live ranges of all buffers in schedule order, computed from the HLO alone.
//!
//! Follows XLA's `HloLiveRange` and its dataflow and alias analyses, and matches XLA's own dumps row for row.

mod flatten;
mod in_place;
mod merges;
mod ranges;
mod uses;
mod values;
mod views;

use flatten::Flat;
pub use uses::Uses;
use values::Values;

use crate::analysis::stop::{Stop, Stopped};
use crate::model::{BufferId, ComputationId, NO_ROW, Program, ReportedRanges};

/// Live ranges of a program's buffers.
#[derive(Debug, Clone)]
pub struct LiveRanges {
    flat: Flat,
    values: Values,
    /// Row of the buffer at each position; [`NO_ROW`] if there is none.
    buffer_at: Vec<u32>,
    /// First point by buffer; [`NO_ROW`] if it has no range because it is local to a called computation.
    pub start: Vec<u32>,
    /// Last point by buffer, inclusive; [`Self::points`] for the end of the program.
    pub end: Vec<u32>,
}

impl LiveRanges {
    /// Computes the ranges; `None` if the program has no schedule.
    #[must_use]
    pub fn new(program: &Program) -> Option<Self> {
        Self::unless(program, Stop::NEVER).unwrap_or(None)
    }

    /// As [`Self::new`], unless it is stopped.
    ///
    /// # Errors
    /// If it was.
    pub fn unless(program: &Program, stop: Stop<'_>) -> Result<Option<Self>, Stopped> {
        if let Some(reported) = &program.reported_ranges {
            return Ok(Some(Self::from_report(program, reported)));
        }
        let Some(flat) = Flat::new(program, stop)? else { return Ok(None) };
        stop.step()?;
        let values = Values::new(program, &flat, stop)?;
        stop.step()?;
        let mut buffer_at = vec![NO_ROW; values.value.len()];
        for (row, (&instruction, &node)) in program.buffers.instruction.iter().zip(&program.buffers.node).enumerate() {
            if instruction != NO_ROW
                && node != NO_ROW
                && let Some(position) = values.position(&flat, instruction, node)
            {
                buffer_at[position as usize] = row as u32;
            }
        }
        stop.step()?;
        let order = |position: u32| match buffer_at[position as usize] {
            NO_ROW => i64::MAX,
            row => program.buffers.number[row as usize],
        };
        let ranges = ranges::ranges(program, &flat, &values, &order, stop)?;
        stop.step()?;
        let mut start = vec![NO_ROW; program.buffers.len()];
        let mut end = vec![0; program.buffers.len()];
        for (position, &row) in buffer_at.iter().enumerate() {
            if row != NO_ROW && ranges.start[position] != NO_ROW {
                start[row as usize] = ranges.start[position];
                end[row as usize] = ranges.end[position];
            }
        }
        Ok(Some(Self { flat, values, buffer_at, start, end }))
    }

    /// Ranges from a report, for a program without instructions.
    fn from_report(program: &Program, reported: &ReportedRanges) -> Self {
        let points = reported.sequence.len();
        let flat = Flat {
            sequence: reported.sequence.clone(),
            time: {
                let mut time = vec![NO_ROW; program.instructions.len()];
                for (point, &row) in reported.sequence.iter().enumerate() {
                    if let Some(time) = time.get_mut(row as usize) {
                        *time = point as u32;
                    }
                }
                time
            },
            ..Flat::default()
        };
        let values = Values { base: vec![0; points + 1], value: Vec::new() };
        let mut start = vec![NO_ROW; program.buffers.len()];
        let mut end = vec![0; program.buffers.len()];
        for (row, range) in reported.ranges.iter().enumerate().take(program.buffers.len()) {
            if let Some((first, last)) = *range
                && first as usize <= points
            {
                start[row] = first;
                end[row] = last.min(points as u32).max(first);
            }
        }
        Self { flat, values, buffer_at: Vec::new(), start, end }
    }

    /// Number of program points, one per instruction in the sequence; also the point of the program's end.
    #[must_use]
    pub fn points(&self) -> u32 {
        self.flat.sequence.len() as u32
    }

    /// Instruction rows in sequence order.
    #[must_use]
    pub fn sequence(&self) -> &[u32] {
        &self.flat.sequence
    }

    /// Point of an instruction; `None` if it is not in the sequence, such as inside a fusion.
    #[must_use]
    pub fn point_of(&self, row: u32) -> Option<u32> {
        self.flat.time_of(row)
    }

    /// (first point, last point) of a buffer, inclusive; `None` if it has no range.
    #[must_use]
    pub fn of(&self, buffer: BufferId) -> Option<(u32, u32)> {
        let start = *self.start.get(buffer.index())?;
        (start != NO_ROW).then(|| (start, self.end[buffer.index()]))
    }

    /// Computations in the sequence: (computation, first point, one past the last). Ranges nest.
    pub fn spans(&self) -> impl Iterator<Item = (ComputationId, u32, u32)> + '_ {
        let spans = self.flat.spans.iter().enumerate();
        spans.filter_map(|(i, span)| span.map(|(start, end)| (ComputationId(i as u32), start, end)))
    }
}
