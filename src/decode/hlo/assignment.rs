//! `BufferAssignmentProto`: logical buffers, allocations, heap traces.

use super::ids::BufferIndex;
use crate::decode::reporter::Reporter;
use crate::decode::wire::{LEN, Reader, Result, VARINT, field};
use crate::model::{Allocation, Assigned, BufferId, Bytes, EventKind, HeapEvent, HeapTrace, NO_ROW};

/// The tables, with buffers by row but instructions still by number.
#[derive(Debug, Default)]
pub struct Assignment {
    /// Number of each buffer.
    pub number: Vec<i64>,
    /// Size of each buffer.
    pub size: Vec<Bytes>,
    /// Number of the defining instruction.
    pub instruction: Vec<i64>,
    /// Colour of each buffer.
    pub color: Vec<i64>,
    /// Shape indices: row `i` is `index_pool[index_start[i]..index_start[i + 1]]`.
    pub index_start: Vec<u32>,
    /// Numbers of the shape indices.
    pub index_pool: Vec<i64>,
    /// Allocations.
    pub allocations: Vec<Allocation>,
    /// Buffers by allocation.
    pub assigned: Vec<Assigned>,
    /// Heap traces.
    pub traces: Vec<HeapTrace>,
    /// XLA's own peak lists.
    pub peak_buffers: Vec<(i64, Vec<BufferId>)>,
}

/// An assigned buffer by number, as the file has it.
type RawAssigned = (i64, u64);

/// An event by numbers: kind, buffer, canonical buffer.
type RawEvent = (i32, i64, i64);

#[derive(Default)]
struct Raw {
    tables: Assignment,
    assigned: Vec<RawAssigned>,
    traces: Vec<(Vec<RawEvent>, bool)>,
    peaks: Vec<(i64, Vec<i64>)>,
}

impl Assignment {
    /// Reads the message. What is damaged is reported and left out.
    pub fn read(mut message: Reader<'_>, reporter: &Reporter) -> Self {
        let mut raw = Raw::default();
        raw.tables.index_start.push(0);
        loop {
            match raw.next(&mut message) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => {
                    reporter.warn(format!("the buffer assignment stops here: {}", error.what), Some(error.offset));
                    break;
                }
            }
        }
        raw.resolve(reporter)
    }

    /// Shape index of a buffer.
    pub fn index_of(&self, row: usize) -> &[i64] {
        match (self.index_start.get(row), self.index_start.get(row + 1)) {
            (Some(&start), Some(&end)) => &self.index_pool[start as usize..end as usize],
            _ => &[],
        }
    }
}

impl Raw {
    /// Reads one field; `false` at the end.
    fn next(&mut self, message: &mut Reader<'_>) -> Result<bool> {
        let Some(tag) = message.tag()? else { return Ok(false) };
        match field(tag) {
            (1, LEN) => self.logical_buffer(message.message()?)?,
            (3, LEN) => self.allocation(message.message()?)?,
            (4, LEN) => {
                // A cut trace still shows the events it has.
                let (bytes, whole) = message.bytes_or_rest()?;
                let base = message.offset() - bytes.len() as u64;
                self.trace(Reader::new(bytes, base))?;
                if !whole {
                    let error = crate::decode::wire::WireError {
                        offset: message.offset(),
                        what: "the file ends inside a heap trace",
                    };
                    return Err(error);
                }
            }
            (5, LEN) => {
                let mut peak = message.message()?;
                let (mut index, mut buffers) = (0, Vec::new());
                while let Some(tag) = peak.tag()? {
                    match field(tag) {
                        (1, VARINT) => index = peak.int()?,
                        (2, VARINT | LEN) => peak.numbers(tag, |n| buffers.push(n))?,
                        _ => peak.skip(tag)?,
                    }
                }
                self.peaks.push((index, buffers));
            }
            _ => message.skip(tag)?,
        }
        Ok(true)
    }

    fn logical_buffer(&mut self, mut message: Reader<'_>) -> Result<()> {
        let (mut number, mut size, mut instruction, mut color) = (0, 0, 0, 0);
        let tables = &mut self.tables;
        while let Some(tag) = message.tag()? {
            match field(tag) {
                (1, VARINT) => number = message.int()?,
                (2, VARINT) => size = message.int()?,
                (3, LEN) => {
                    let mut location = message.message()?;
                    while let Some(tag) = location.tag()? {
                        match field(tag) {
                            (4, VARINT) => instruction = location.int()?,
                            (3, VARINT | LEN) => location.numbers(tag, |n| tables.index_pool.push(n))?,
                            _ => location.skip(tag)?,
                        }
                    }
                }
                (4, VARINT) => color = message.int()?,
                _ => message.skip(tag)?,
            }
        }
        tables.number.push(number);
        tables.size.push(Bytes::from_wire(size));
        tables.instruction.push(instruction);
        tables.color.push(color);
        tables.index_start.push(tables.index_pool.len() as u32);
        Ok(())
    }

    fn allocation(&mut self, mut message: Reader<'_>) -> Result<()> {
        let start = self.assigned.len() as u32;
        let mut allocation = Allocation { assigned_start: start, ..Allocation::default() };
        while let Some(tag) = message.tag()? {
            match field(tag) {
                (1, VARINT) => allocation.index = message.int()?,
                (2, VARINT) => allocation.size = Bytes::from_wire(message.int()?),
                (3, VARINT) => allocation.is_thread_local = message.varint()? != 0,
                (5, VARINT) => allocation.is_parameter = message.varint()? != 0,
                (6, VARINT) => allocation.parameter_number = message.int()?,
                (7, VARINT) => allocation.maybe_live_out = message.varint()? != 0,
                (8, VARINT) => allocation.color = message.int()?,
                (9, LEN) => {
                    let (mut buffer, mut offset) = (0, 0);
                    let mut assigned = message.message()?;
                    while let Some(tag) = assigned.tag()? {
                        match field(tag) {
                            (1, VARINT) => buffer = assigned.int()?,
                            (2, VARINT) => offset = assigned.int()?,
                            _ => assigned.skip(tag)?,
                        }
                    }
                    self.assigned.push((buffer, u64::try_from(offset).unwrap_or(0)));
                }
                (10, VARINT | LEN) => message.numbers(tag, |n| allocation.parameter_shape_index.push(n))?,
                (11, VARINT) => allocation.is_tuple = message.varint()? != 0,
                (12, VARINT) => allocation.is_constant = message.varint()? != 0,
                (13, VARINT) => allocation.is_parameter_aliased = message.varint()? != 0,
                _ => message.skip(tag)?,
            }
        }
        allocation.assigned_end = self.assigned.len() as u32;
        self.tables.allocations.push(allocation);
        Ok(())
    }

    fn trace(&mut self, mut message: Reader<'_>) -> Result<()> {
        self.traces.push((Vec::new(), false));
        let Some((events, whole_module)) = self.traces.last_mut() else { return Ok(()) };
        while let Some(tag) = message.tag()? {
            match field(tag) {
                (1, LEN) => {
                    let (mut kind, mut buffer, mut canonical) = (0, 0, 0);
                    let mut event = message.message()?;
                    while let Some(tag) = event.tag()? {
                        match field(tag) {
                            (1, VARINT) => kind = event.int()? as i32,
                            (2, VARINT) => buffer = event.int()?,
                            (5, VARINT) => canonical = event.int()?,
                            _ => event.skip(tag)?,
                        }
                    }
                    events.push((kind, buffer, canonical));
                }
                (2, VARINT) => *whole_module = message.varint()? != 0,
                _ => message.skip(tag)?,
            }
        }
        Ok(())
    }

    /// Numbers of buffers to rows.
    fn resolve(self, reporter: &Reporter) -> Assignment {
        let Self { mut tables, assigned, traces, peaks } = self;
        let index = BufferIndex::new(&tables.number);
        let mut unknown = 0usize;
        tables.assigned = Vec::with_capacity(assigned.len());
        for allocation in &mut tables.allocations {
            let range = allocation.assigned_start as usize..allocation.assigned_end as usize;
            allocation.assigned_start = tables.assigned.len() as u32;
            for &(number, offset) in &assigned[range] {
                match index.row(number) {
                    NO_ROW => unknown += 1,
                    row => tables.assigned.push(Assigned { buffer: BufferId(row), offset }),
                }
            }
            allocation.assigned_end = tables.assigned.len() as u32;
        }
        if unknown > 0 {
            reporter.warn(format!("{unknown} assigned buffers are not in the file; they are left out"), None);
        }
        tables.traces = traces
            .into_iter()
            .map(|(events, whole_module)| HeapTrace {
                whole_module,
                events: events
                    .into_iter()
                    .map(|(kind, buffer, canonical)| HeapEvent {
                        kind: match kind {
                            0 => EventKind::Alloc,
                            1 => EventKind::Free,
                            2 => EventKind::ShareWith,
                            other => EventKind::Other(other),
                        },
                        buffer: index.row(buffer),
                        canonical: if kind == 2 { index.row(canonical) } else { NO_ROW },
                    })
                    .collect(),
            })
            .collect();
        tables.peak_buffers = peaks
            .into_iter()
            .map(|(number, buffers)| {
                let rows = buffers.into_iter().map(|n| index.row(n)).filter(|&row| row != NO_ROW);
                (number, rows.map(BufferId).collect())
            })
            .collect();
        tables
    }
}
