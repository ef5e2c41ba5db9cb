//! The second pass: the columns of the instructions, decoded in pieces by several threads.

use std::sync::Mutex;

use super::directory::{ComputationEntry, Directory};
use super::ids::IdIndex;
use super::region::Region;
use super::shapes::{Interner, LocalInterner};
use crate::decode::reporter::Reporter;
use crate::decode::wire::{Reader, Result, VARINT, LEN, field};
use crate::model::{
    ComputationId, Instructions, NO_ROW, Opcode, Operands, OutputOperandAlias, ShapeId, SparseLists,
};
use crate::source::{Cancelled, Progress};

/// Rows in one piece of work.
const ROWS_PER_CHUNK: usize = 2048;

/// Below this many rows a second thread is not worth starting.
const PARALLEL_FROM: usize = 4 * ROWS_PER_CHUNK;

/// The columns, with the numbers the file gives the instructions.
pub struct Decoded {
    /// Columns.
    pub instructions: Instructions,
    /// Number of each row, `i64::MIN` for one that could not be read.
    pub numbers: Vec<i64>,
    /// Called computations by number, to be resolved: (row, numbers).
    pub called: SparseLists<i64>,
}

/// What one piece of work fills in.
struct Piece<'a> {
    first_row: usize,
    opcode: &'a mut [Opcode],
    shape: &'a mut [ShapeId],
    computation: &'a mut [ComputationId],
    argument: &'a mut [u32],
    numbers: &'a mut [i64],
    out: &'a mut PieceLists,
}

#[derive(Default)]
struct PieceLists {
    starts: Vec<u32>,
    operands: Vec<u32>,
    called: SparseLists<i64>,
    aliases: SparseLists<OutputOperandAlias>,
}

/// Decodes every instruction.
///
/// # Errors
/// When it was cancelled.
pub fn decode(
    module: &Region,
    directory: &Directory,
    interner: &Interner,
    threads: usize,
    progress: &Progress,
    reporter: &Reporter,
) -> std::result::Result<Decoded, Cancelled> {
    let rows = directory.records.len();
    let mut opcode = vec![Opcode::UNKNOWN; rows];
    let mut shape = vec![ShapeId(0); rows];
    let mut computation = vec![ComputationId(0); rows];
    let mut argument = vec![0u32; rows];
    let mut numbers = vec![i64::MIN; rows];
    let chunks = rows.div_ceil(ROWS_PER_CHUNK);
    let mut lists: Vec<PieceLists> = (0..chunks).map(|_| PieceLists::default()).collect();
    {
        let pieces = opcode
            .chunks_mut(ROWS_PER_CHUNK)
            .zip(shape.chunks_mut(ROWS_PER_CHUNK))
            .zip(computation.chunks_mut(ROWS_PER_CHUNK))
            .zip(argument.chunks_mut(ROWS_PER_CHUNK))
            .zip(numbers.chunks_mut(ROWS_PER_CHUNK))
            .zip(lists.iter_mut())
            .enumerate()
            .map(|(i, (((((opcode, shape), computation), argument), numbers), out))| Piece {
                first_row: i * ROWS_PER_CHUNK,
                opcode,
                shape,
                computation,
                argument,
                numbers,
                out,
            });
        let queue = Mutex::new(pieces);
        let work = || -> std::result::Result<(), Cancelled> {
            let mut local = LocalInterner::new(interner);
            loop {
                let piece = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
                let Some(piece) = piece else { return Ok(()) };
                progress.advance(piece.opcode.len() as u64)?;
                decode_piece(module, directory, piece, &mut local, reporter);
            }
        };
        if threads > 1 && rows >= PARALLEL_FROM {
            std::thread::scope(|scope| {
                let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
                let mut result = work();
                for other in others {
                    result = result.and(other.join().unwrap_or(Ok(())));
                }
                result
            })?;
        } else {
            work()?;
        }
    }

    let mut called = SparseLists::default();
    let mut output_aliases = SparseLists::default();
    let mut operand_chunks = Vec::with_capacity(chunks);
    for list in lists {
        append(&mut called, list.called);
        append(&mut output_aliases, list.aliases);
        operand_chunks.push((list.starts, list.operands));
    }
    let instructions = Instructions {
        opcode,
        shape,
        computation,
        argument,
        operands: Operands { rows_per_chunk: ROWS_PER_CHUNK, chunks: operand_chunks },
        called: SparseLists::default(),
        output_aliases,
    };
    Ok(Decoded { instructions, numbers, called })
}

fn append<T>(to: &mut SparseLists<T>, from: SparseLists<T>) {
    let shift = to.items.len() as u32;
    to.rows.extend(from.rows.into_iter().map(|(row, start)| (row, start + shift)));
    to.items.extend(from.items);
}

fn decode_piece<'a>(
    module: &'a Region,
    directory: &Directory,
    piece: Piece<'_>,
    interner: &mut LocalInterner<'a>,
    reporter: &Reporter,
) {
    let Piece { first_row, opcode, shape, computation, argument, numbers, out } = piece;
    let end_row = first_row + opcode.len();
    let mut in_computation =
        directory.computations.partition_point(|entry| entry.end as usize <= first_row);
    out.starts.reserve_exact(opcode.len() + 1);
    out.starts.push(0);
    let mut entry = ComputationEntry::default();
    let mut first_number = 0;
    for row in first_row..end_row {
        let i = row - first_row;
        if row == first_row || row >= entry.end as usize {
            while directory.computations.get(in_computation).is_some_and(|e| e.end as usize <= row) {
                in_computation += 1;
            }
            entry = directory.computations.get(in_computation).cloned().unwrap_or_default();
            first_number = number_of_record(module, directory.records[entry.start as usize]);
        }
        computation[i] = ComputationId(in_computation as u32);
        let mut fields = Fields { number: i64::MIN, ..Fields::default() };
        let mut record = module.reader_at(directory.records[row] as usize);
        let result = record.message().and_then(|record| fields.read(record, row as u32, first_number, &entry, interner, out));
        if let Err(error) = result {
            reporter.warn(format!("an instruction could not be read: {}", error.what), Some(error.offset));
        }
        opcode[i] = fields.opcode;
        shape[i] = fields.shape;
        numbers[i] = fields.number;
        argument[i] = match fields.opcode {
            Opcode::PARAMETER => fields.parameter,
            Opcode::GET_TUPLE_ELEMENT => fields.tuple_index,
            _ => 0,
        };
        out.starts.push(out.operands.len() as u32);
    }
}

/// The number of the instruction at a record; 0 where it cannot be read.
fn number_of_record(module: &Region, record: u32) -> i64 {
    let mut number = 0;
    let _ = module.reader_at(record as usize).message().and_then(|mut record| {
        while let Some(tag) = record.tag()? {
            if field(tag) == (35, VARINT) {
                number = record.int()?;
            } else {
                record.skip(tag)?;
            }
        }
        Ok(())
    });
    number
}

#[derive(Default)]
struct Fields {
    opcode: Opcode,
    shape: ShapeId,
    number: i64,
    parameter: u32,
    tuple_index: u32,
}

impl Fields {
    fn read<'a>(
        &mut self,
        mut record: Reader<'a>,
        row: u32,
        first_number: i64,
        entry: &ComputationEntry,
        interner: &mut LocalInterner<'a>,
        out: &mut PieceLists,
    ) -> Result<()> {
        let mut shape_parts: Vec<&'a [u8]> = Vec::new();
        let count = i64::from(entry.end - entry.start);
        while let Some(tag) = record.tag()? {
            match field(tag) {
                (2, LEN) => self.opcode = interner.opcode(record.bytes()?),
                (3, LEN) => {
                    let base = record.offset();
                    let bytes = record.bytes()?;
                    if self.shape == ShapeId(0) {
                        self.shape = interner.shape(bytes, base)?;
                        shape_parts = Vec::new();
                    }
                    shape_parts.push(bytes);
                    if shape_parts.len() > 1 {
                        // A message given twice is merged: read the parts one after the other.
                        self.shape = interner.shape_of_copy(&shape_parts.concat(), base)?;
                    }
                }
                (9, VARINT) => self.parameter = u32::try_from(record.int()?).unwrap_or(u32::MAX),
                (13, VARINT) => self.tuple_index = u32::try_from(record.int()?).unwrap_or(u32::MAX),
                (35, VARINT) => self.number = record.int()?,
                (36, VARINT | LEN) => {
                    let operands = &mut out.operands;
                    record.numbers(tag, |number| {
                        // Numbers run on inside a computation; where they do not, the operands are read again.
                        let local = number.wrapping_sub(first_number);
                        let known = (0..count).contains(&local);
                        operands.push(if known { entry.start + local as u32 } else { NO_ROW });
                    })?;
                }
                (38, VARINT | LEN) => {
                    out.called.begin(row);
                    let items = &mut out.called.items;
                    record.numbers(tag, |number| items.push(number))?;
                }
                (74, LEN) => {
                    let alias = output_alias(record.message()?)?;
                    out.aliases.begin(row);
                    out.aliases.items.push(alias);
                }
                _ => record.skip(tag)?,
            }
        }
        Ok(())
    }
}

fn output_alias(mut reader: Reader<'_>) -> Result<OutputOperandAlias> {
    let mut alias = OutputOperandAlias::default();
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (1, VARINT | LEN) => reader.numbers(tag, |n| alias.output_index.push(n))?,
            (2, VARINT) => alias.operand = reader.int()?,
            (3, VARINT | LEN) => reader.numbers(tag, |n| alias.operand_index.push(n))?,
            _ => reader.skip(tag)?,
        }
    }
    Ok(alias)
}

/// Reads the operands again of computations whose instruction numbers do not simply run on.
pub fn mend_operands(module: &Region, directory: &Directory, ids: &IdIndex, operands: &mut Operands) {
    let rows_per_chunk = operands.rows_per_chunk;
    for &computation in ids.irregular() {
        let Some(entry) = directory.computations.get(computation as usize) else { continue };
        for row in entry.start..entry.end {
            let Some((starts, values)) = operands.chunks.get_mut(row as usize / rows_per_chunk) else { continue };
            let mut at = starts[row as usize % rows_per_chunk] as usize;
            let end = starts[row as usize % rows_per_chunk + 1] as usize;
            let Ok(mut record) = module.reader_at(directory.records[row as usize] as usize).message() else { continue };
            while let Ok(Some(tag)) = record.tag() {
                let result = if tag >> 3 == 36 && matches!(tag & 7, 0 | 2) {
                    record.numbers(tag, |number| {
                        if at < end {
                            values[at] = ids.in_computation(computation, entry, number);
                            at += 1;
                        }
                    })
                } else {
                    record.skip(tag)
                };
                if result.is_err() {
                    break;
                }
            }
        }
    }
}
