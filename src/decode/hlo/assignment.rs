//! `BufferAssignmentProto`: logical buffers, allocations, heap traces.

use super::fields::{allocation, assigned, assignment, event, location, logical_buffer, peak_buffers, trace};
use super::ids::BufferIndex;
use crate::decode::reporter::Reporter;
use crate::decode::wire::{LEN, Reader, Result, VARINT, WireError, field};
use crate::model::{Allocation, Assigned, BufferId, Bytes, EventKind, HeapEvent, HeapTrace, MemorySpace, NO_ROW};
use crate::source::Progress;

/// Fields between two checks for cancellation.
const CHECK_EVERY: usize = 4096;

/// The tables; buffers are referred to by row, instructions still by id.
#[derive(Debug, Default)]
pub struct Assignment {
    /// Number of each buffer.
    pub number: Vec<i64>,
    /// Size of each buffer.
    pub size: Vec<Bytes>,
    /// Number of the defining instruction.
    pub instruction: Vec<i64>,
    /// Colour of each buffer.
    pub color: Vec<MemorySpace>,
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

impl Assignment {
    /// Reads the message: first the buffers, then everything that refers to them. Damaged parts are reported and
    /// skipped.
    pub fn read(message: Reader<'_>, progress: &Progress, reporter: &Reporter) -> Self {
        let mut tables = Self::default();
        tables.reserve(message.remaining());
        tables.index_start.push(0);
        let mut damage = tables.pass(message, progress, &mut |tables, reader, tag| match field(tag) {
            (assignment::LOGICAL_BUFFERS, LEN) => tables.logical_buffer(reader.message()?),
            (assignment::HEAP_SIMULATOR_TRACES, LEN) => reader.bytes_or_rest().map(|_| ()),
            _ => reader.skip(tag),
        });
        let index = BufferIndex::new(&tables.number);
        let mut unknown = 0;
        let second = tables.pass(message, progress, &mut |tables, reader, tag| match field(tag) {
            (assignment::BUFFER_ALLOCATIONS, LEN) => tables.allocation(reader.message()?, &index, &mut unknown),
            (assignment::HEAP_SIMULATOR_TRACES, LEN) => tables.trace(reader, &index, progress),
            (assignment::PEAK_BUFFERS, LEN) => tables.peak(reader.message()?, &index),
            _ => reader.skip(tag),
        });
        damage = damage.or(second);
        if let Some(error) = damage {
            reporter.damaged(format!("the buffer assignment stops here: {}", error.what), Some(error.offset));
        }
        if unknown > 0 {
            reporter.damaged(format!("{unknown} assigned buffers are not in the file; they are left out"), None);
        }
        tables
    }

    /// Reserves capacity for a message of this many bytes; unused pages are never committed.
    fn reserve(&mut self, bytes: usize) {
        let buffers = bytes / 32;
        self.number.reserve(buffers);
        self.size.reserve(buffers);
        self.instruction.reserve(buffers);
        self.color.reserve(buffers);
        self.index_start.reserve(buffers);
        self.assigned.reserve(buffers);
        self.allocations.reserve(buffers / 8);
    }

    /// Calls `each` with every field; returns the damage that ended the pass.
    fn pass<'a>(
        &mut self,
        mut message: Reader<'a>,
        progress: &Progress,
        each: &mut dyn FnMut(&mut Self, &mut Reader<'a>, u32) -> Result<()>,
    ) -> Option<WireError> {
        for count in 0_usize.. {
            // What is missing then is never looked at.
            if count % CHECK_EVERY == 0 && progress.check().is_err() {
                return None;
            }
            match message.tag() {
                Ok(None) => return None,
                Ok(Some(tag)) => {
                    if let Err(error) = each(self, &mut message, tag) {
                        return Some(error);
                    }
                }
                Err(error) => return Some(error),
            }
        }
        None
    }

    /// Shape index of a buffer.
    pub fn index_of(&self, row: usize) -> &[i64] {
        match (self.index_start.get(row), self.index_start.get(row + 1)) {
            (Some(&start), Some(&end)) => &self.index_pool[start as usize..end as usize],
            _ => &[],
        }
    }

    fn logical_buffer(&mut self, mut message: Reader<'_>) -> Result<()> {
        let (mut number, mut size, mut instruction, mut color) = (0, 0, 0, 0);
        while let Some(tag) = message.tag()? {
            match field(tag) {
                (logical_buffer::ID, VARINT) => number = message.int()?,
                (logical_buffer::SIZE, VARINT) => size = message.int()?,
                (logical_buffer::DEFINED_AT, LEN) => {
                    let mut location = message.message()?;
                    while let Some(tag) = location.tag()? {
                        match field(tag) {
                            (location::INSTRUCTION_ID, VARINT) => instruction = location.int()?,
                            (location::SHAPE_INDEX, VARINT | LEN) => {
                                location.numbers(tag, |n| self.index_pool.push(n))?;
                            }
                            _ => location.skip(tag)?,
                        }
                    }
                }
                (logical_buffer::COLOR, VARINT) => color = message.int()?,
                _ => message.skip(tag)?,
            }
        }
        self.number.push(number);
        self.size.push(Bytes::from_wire(size));
        self.instruction.push(instruction);
        self.color.push(MemorySpace(color));
        self.index_start.push(self.index_pool.len() as u32);
        Ok(())
    }

    fn allocation(&mut self, mut message: Reader<'_>, index: &BufferIndex, unknown: &mut usize) -> Result<()> {
        let start = self.assigned.len() as u32;
        let mut allocation = Allocation { assigned_start: start, ..Allocation::default() };
        while let Some(tag) = message.tag()? {
            match field(tag) {
                (allocation::INDEX, VARINT) => allocation.index = message.int()?,
                (allocation::SIZE, VARINT) => allocation.size = Bytes::from_wire(message.int()?),
                (allocation::IS_THREAD_LOCAL, VARINT) => allocation.is_thread_local = message.varint()? != 0,
                (allocation::IS_ENTRY_COMPUTATION_PARAMETER, VARINT) => {
                    allocation.is_parameter = message.varint()? != 0;
                }
                (allocation::PARAMETER_NUMBER, VARINT) => allocation.parameter_number = message.int()?,
                (allocation::MAYBE_LIVE_OUT, VARINT) => allocation.maybe_live_out = message.varint()? != 0,
                (allocation::COLOR, VARINT) => allocation.color = MemorySpace(message.int()?),
                (allocation::ASSIGNED, LEN) => {
                    let (mut buffer, mut offset) = (0, 0);
                    let mut assigned = message.message()?;
                    while let Some(tag) = assigned.tag()? {
                        match field(tag) {
                            (assigned::LOGICAL_BUFFER_ID, VARINT) => buffer = assigned.int()?,
                            (assigned::OFFSET, VARINT) => offset = assigned.int()?,
                            _ => assigned.skip(tag)?,
                        }
                    }
                    match index.row(buffer) {
                        NO_ROW => *unknown += 1,
                        row => self
                            .assigned
                            .push(Assigned { buffer: BufferId(row), offset: u64::try_from(offset).unwrap_or(0) }),
                    }
                }
                (allocation::PARAMETER_SHAPE_INDEX, VARINT | LEN) => {
                    message.numbers(tag, |n| allocation.parameter_shape_index.push(n))?;
                }
                (allocation::IS_TUPLE, VARINT) => allocation.is_tuple = message.varint()? != 0,
                (allocation::IS_CONSTANT, VARINT) => allocation.is_constant = message.varint()? != 0,
                (allocation::IS_PARAMETER_ALIASED_WITH_OUTPUT, VARINT) => {
                    allocation.is_parameter_aliased = message.varint()? != 0;
                }
                _ => message.skip(tag)?,
            }
        }
        allocation.assigned_end = self.assigned.len() as u32;
        self.allocations.push(allocation);
        Ok(())
    }

    /// Reads a trace, not to its end once it was cancelled; a truncated one keeps the events before the cut.
    fn trace(&mut self, reader: &mut Reader<'_>, index: &BufferIndex, progress: &Progress) -> Result<()> {
        let (bytes, whole) = reader.bytes_or_rest()?;
        let mut message = Reader::new(bytes, reader.offset() - bytes.len() as u64);
        let mut trace = HeapTrace::default();
        trace.events.reserve(bytes.len() / 48);
        let result = read_trace(&mut message, &mut trace, index, progress);
        self.traces.push(trace);
        result?;
        if whole {
            return Ok(());
        }
        Err(WireError { offset: reader.offset(), what: "the file ends inside a heap trace" })
    }

    fn peak(&mut self, mut message: Reader<'_>, index: &BufferIndex) -> Result<()> {
        let (mut number, mut buffers) = (0, Vec::new());
        while let Some(tag) = message.tag()? {
            match field(tag) {
                (peak_buffers::INDEX, VARINT) => number = message.int()?,
                (peak_buffers::LOGICAL_BUFFER_IDS, VARINT | LEN) => message.numbers(tag, |n| {
                    let row = index.row(n);
                    if row != NO_ROW {
                        buffers.push(BufferId(row));
                    }
                })?,
                _ => message.skip(tag)?,
            }
        }
        self.peak_buffers.push((number, buffers));
        Ok(())
    }
}

fn read_trace(message: &mut Reader<'_>, trace: &mut HeapTrace, index: &BufferIndex, progress: &Progress) -> Result<()> {
    while let Some(tag) = message.tag()? {
        if progress.check().is_err() {
            break;
        }
        match field(tag) {
            (trace::EVENTS, LEN) => {
                let (mut kind, mut buffer, mut canonical) = (0, 0, 0);
                let mut event = message.message()?;
                while let Some(tag) = event.tag()? {
                    match field(tag) {
                        (event::KIND, VARINT) => kind = event.int()? as i32,
                        (event::BUFFER_ID, VARINT) => buffer = event.int()?,
                        (event::SHARE_WITH_CANONICAL_ID, VARINT) => canonical = event.int()?,
                        _ => event.skip(tag)?,
                    }
                }
                trace.events.push(HeapEvent {
                    kind: match kind {
                        0 => EventKind::Alloc,
                        1 => EventKind::Free,
                        2 => EventKind::ShareWith,
                        _ => EventKind::Other,
                    },
                    buffer: index.row(buffer),
                    canonical: if kind == 2 { index.row(canonical) } else { NO_ROW },
                });
            }
            (trace::WHOLE_MODULE_SIMULATION, VARINT) => trace.whole_module = message.varint()? != 0,
            _ => message.skip(tag)?,
        }
    }
    Ok(())
}
