//! The second pass: the columns of the instructions, decoded in pieces by several threads.
//!
//! A piece is a run of small computations, or a part of a large one, of about a megabyte. Each piece fills columns of
//! its own, which are joined in the order of the file.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::directory::{ComputationLocation, Directory};
use super::fields::{computation, instruction, output_alias};
use super::ids::{ComputationEntry, IdIndex};
use super::joining::Joining;
use super::region::Region;
use super::shapes::{Interner, LocalInterner};
use crate::decode::reporter::Reporter;
use crate::decode::wire::{LEN, Reader, Result, VARINT, WireError, field};
use crate::model::{Instructions, NO_ROW, Opcode, OutputOperandAlias, ShapeId, SparseLists};
use crate::source::{Cancelled, Progress};

/// Joining the pieces, and resolving references after that, each take about this part of the time of decoding them.
pub const LATER: u64 = 8;
/// Approximate bytes in one piece of work.
const PIECE_BYTES: usize = 1 << 20;

/// Estimated minimum bytes of an instruction; real ones take about 160.
const BYTES_PER_ROW: usize = 96;

/// The columns, with the numbers the file gives the instructions.
#[derive(Debug, Default)]
pub struct Decoded {
    /// Columns.
    pub instructions: Instructions,
    /// Ids of rows that do not follow consecutively from the first of their computation: (row, id).
    pub odd_numbers: Vec<(u32, i64)>,
    /// Offset of each instruction's length prefix in the module.
    pub records: Vec<u32>,
    /// Called computations by number, to be resolved.
    pub called: SparseLists<i64>,
    /// Computations in the file's order.
    pub computations: Vec<ComputationEntry>,
    /// Whether fields of some instruction do not come in the order of their numbers, in which XLA writes them.
    pub out_of_order: bool,
}

/// A piece of work.
pub enum Piece {
    /// Whole computations.
    Whole {
        /// The first of them.
        first: usize,
        /// How many.
        count: usize,
    },
    /// A part of a large computation.
    Part {
        /// Which computation.
        computation: usize,
        /// Its first byte.
        start: u32,
        /// One past its last byte.
        end: u32,
        /// Number of the computation's first instruction.
        first_number: i64,
    },
}

/// Columns filled by one piece. Rows are relative to its first row.
#[derive(Default)]
pub struct Columns {
    /// Opcodes.
    pub opcode: Vec<Opcode>,
    /// Shapes.
    pub shape: Vec<ShapeId>,
    /// Numbers of parameters and of elements of tuples.
    pub argument: Vec<u32>,
    /// As in [`Decoded`].
    pub odd_numbers: Vec<(u32, i64)>,
    /// As in [`Decoded`].
    pub records: Vec<u32>,
    /// One past the last operand of each row.
    pub operand_ends: Vec<u32>,
    /// Operands: rows of the piece, or of the computation in a part of a large one.
    pub operands: Vec<u32>,
    /// As in [`Decoded`].
    pub called: SparseLists<i64>,
    /// Operands whose memory an instruction says that it reuses.
    pub aliases: SparseLists<OutputOperandAlias>,
    /// Computations in it; `end` counts rows of the piece.
    pub computations: Vec<ComputationEntry>,
    /// As in [`Decoded`].
    pub out_of_order: bool,
}

impl Columns {
    /// Reserves capacity for about `rows` rows; unused pages are never committed.
    fn reserve(&mut self, rows: usize) {
        self.opcode.reserve(rows);
        self.shape.reserve(rows);
        self.argument.reserve(rows);
        self.records.reserve(rows);
        self.operand_ends.reserve(rows);
        self.operands.reserve(2 * rows);
    }
}

/// Decodes every instruction.
///
/// # Errors
/// If it was cancelled.
pub fn decode(
    module: &Region,
    directory: &Directory,
    interner: &Interner<'_>,
    threads: usize,
    progress: &Progress,
    reporter: &Reporter,
) -> std::result::Result<Decoded, Cancelled> {
    let pieces = divide(module, directory, progress);
    progress.check()?;
    let joining = Mutex::new(Joining::new(&pieces, directory.computations.len(), module.len() / BYTES_PER_ROW));
    let next = AtomicUsize::new(0);
    let work = || -> std::result::Result<(), Cancelled> {
        let mut decoder = PieceDecoder { module, interner: LocalInterner::new(interner), reporter, ids: Vec::new() };
        let joining = || joining.lock().unwrap_or_else(PoisonError::into_inner);
        let mut out = Columns::default();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = pieces.get(at) else { return Ok(()) };
            let bytes = decoder.piece(directory, piece, &mut out) as u64;
            progress.advance(bytes + bytes / LATER)?;
            out = joining().put(at, out);
        }
    };
    if threads > 1 && pieces.len() > 1 {
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
    Ok(joining.into_inner().unwrap_or_else(PoisonError::into_inner).finish())
}

/// Cuts the module into pieces; once it was cancelled, not to its end.
fn divide(module: &Region, directory: &Directory, progress: &Progress) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mut first, mut bytes) = (0, 0);
    for (i, place) in directory.computations.iter().enumerate() {
        if place.len() > 2 * PIECE_BYTES {
            if i > first {
                pieces.push(Piece::Whole { first, count: i - first });
            }
            cut(module, i, *place, progress, &mut pieces);
            (first, bytes) = (i + 1, 0);
            continue;
        }
        bytes += place.len();
        if bytes >= PIECE_BYTES {
            pieces.push(Piece::Whole { first, count: i + 1 - first });
            (first, bytes) = (i + 1, 0);
        }
    }
    if directory.computations.len() > first {
        pieces.push(Piece::Whole { first, count: directory.computations.len() - first });
    }
    pieces
}

/// Cuts a large computation at instruction boundaries.
fn cut(module: &Region, computation: usize, place: ComputationLocation, progress: &Progress, pieces: &mut Vec<Piece>) {
    let Some(bytes) = module.get(place.start as usize..place.end as usize) else { return };
    let mut reader = Reader::new(bytes, 0);
    let mut start = place.start;
    let mut first_number = None;
    // Damage is reported when the part is decoded.
    while let Ok(Some(tag)) = reader.tag() {
        let before = reader;
        if reader.skip(tag).is_err() {
            break;
        }
        if field(tag) == (computation::INSTRUCTIONS, LEN) {
            if first_number.is_none() {
                let mut record = before;
                first_number = record.message().ok().map(number_of_record);
            }
            let at = place.start + reader.position() as u32;
            if (at - start) as usize >= PIECE_BYTES {
                if progress.check().is_err() {
                    return;
                }
                let first_number = first_number.unwrap_or(i64::MIN);
                pieces.push(Piece::Part { computation, start, end: at, first_number });
                start = at;
            }
        }
    }
    let first_number = first_number.unwrap_or(i64::MIN);
    pieces.push(Piece::Part { computation, start, end: place.end, first_number });
}

/// The number of the instruction in a record; `i64::MIN` where it cannot be read. A zero is left out of the file.
fn number_of_record(mut record: Reader<'_>) -> i64 {
    let mut number = None;
    loop {
        match record.tag() {
            Ok(None) => return number.unwrap_or(0),
            Ok(Some(tag)) if field(tag) == (instruction::ID, VARINT) => match record.int() {
                Ok(n) => number = Some(n),
                Err(_) => break,
            },
            Ok(Some(tag)) => {
                if record.skip(tag).is_err() {
                    break;
                }
            }
            Err(_) => break,
        }
    }
    number.unwrap_or(i64::MIN)
}

struct PieceDecoder<'a> {
    module: &'a Region,
    interner: LocalInterner<'a>,
    reporter: &'a Reporter,
    /// Operand numbers of the instruction being read.
    ids: Vec<i64>,
}

impl<'a> PieceDecoder<'a> {
    /// Decodes a piece; returns how many bytes it had.
    fn piece(&mut self, directory: &Directory, piece: &Piece, out: &mut Columns) -> usize {
        let mut bytes = 0;
        let rows = match *piece {
            Piece::Whole { first, count } => directory.computations[first..first + count].iter().map(|p| p.len()).sum(),
            Piece::Part { start, end, .. } => (end - start) as usize,
        } / BYTES_PER_ROW;
        out.reserve(rows);
        match *piece {
            Piece::Whole { first, count } => {
                for place in &directory.computations[first..first + count] {
                    bytes += place.len();
                    self.computation(place.start, place.end, None, out);
                }
            }
            Piece::Part { start, end, first_number, .. } => {
                bytes = (end - start) as usize;
                self.computation(start, end, Some(first_number), out);
            }
        }
        bytes
    }

    fn computation(&mut self, start: u32, end: u32, first_number: Option<i64>, out: &mut Columns) {
        let module: &'a Region = self.module;
        let Some(bytes) = module.get(start as usize..end as usize) else { return };
        let mut reader = Reader::new(bytes, module.reader_at(start as usize).offset());
        let first_row = out.opcode.len() as u32;
        let mut entry = ComputationEntry {
            number: i64::MIN,
            root: i64::MIN,
            start: first_row,
            end: first_row,
            first_number: first_number.unwrap_or(i64::MIN),
        };
        // In a part of a large computation operands are rows of the computation.
        let base_row = if first_number.is_some() { 0 } else { first_row };
        // What numbers that run on would be, less the row in the piece; a part does not know its first row yet.
        let is_part = first_number.is_some();
        let mut first_number = first_number;
        let result = (|| -> Result<()> {
            while let Some(tag) = reader.tag()? {
                match field(tag) {
                    (computation::INSTRUCTIONS, LEN) => {
                        let record = start + reader.position() as u32;
                        let message = reader.message()?;
                        let number = self.instruction(message, record, &mut first_number, base_row, out);
                        let row = out.opcode.len() as u32 - 1;
                        let expected = first_number.unwrap_or(i64::MIN).wrapping_add(i64::from(row - first_row));
                        if number != expected || number == i64::MIN || is_part {
                            out.odd_numbers.push((row, number));
                        }
                    }
                    (computation::ID, VARINT) => entry.number = reader.int()?,
                    (computation::ROOT_ID, VARINT) => entry.root = reader.int()?,
                    _ => reader.skip(tag)?,
                }
            }
            Ok(())
        })();
        if let Err(error) = result {
            self.reporter.damaged(format!("the rest of a computation is left out: {}", error.what), Some(error.offset));
        }
        entry.first_number = first_number.unwrap_or(i64::MIN);
        entry.end = out.opcode.len() as u32;
        out.computations.push(entry);
    }

    fn instruction(
        &mut self,
        message: Reader<'a>,
        record: u32,
        first_number: &mut Option<i64>,
        base_row: u32,
        out: &mut Columns,
    ) -> i64 {
        let row = out.opcode.len() as u32;
        let mut fields = Fields::default();
        self.ids.clear();
        if let Err(error) = self.fields(message, row, &mut fields, out) {
            self.reporter.damaged(format!("an instruction could not be read: {}", error.what), Some(error.offset));
            fields.number.get_or_insert(i64::MIN);
            // What comes after it was not looked at.
            out.out_of_order = true;
        }
        // A zero is left out of the file.
        let number = fields.number.unwrap_or(0);
        let first = *first_number.get_or_insert(number);
        for &id in &self.ids {
            // Numbers run on inside a computation; where they do not, the operands are read again later.
            let local = u32::try_from(id.wrapping_sub(first)).ok();
            out.operands.push(local.and_then(|local| base_row.checked_add(local)).unwrap_or(NO_ROW));
        }
        out.operand_ends.push(out.operands.len() as u32);
        out.records.push(record);
        out.opcode.push(fields.opcode);
        out.shape.push(fields.shape);
        out.argument.push(match fields.opcode {
            Opcode::PARAMETER => fields.parameter,
            Opcode::GET_TUPLE_ELEMENT => fields.tuple_index,
            _ => 0,
        });
        number
    }

    #[inline]
    fn fields(&mut self, mut record: Reader<'a>, row: u32, fields: &mut Fields, out: &mut Columns) -> Result<()> {
        let mut shape_bytes: &'a [u8] = &[];
        let mut before = 0;
        while let Some(tag) = record.tag()? {
            out.out_of_order |= tag < before;
            before = tag & !7;
            match field(tag) {
                (instruction::OPCODE, LEN) => fields.opcode = self.interner.opcode(record.bytes()?),
                (instruction::SHAPE, LEN) => {
                    let base = record.offset();
                    let bytes = record.bytes()?;
                    if shape_bytes.is_empty() {
                        fields.shape = self.interner.shape(bytes, base)?;
                        shape_bytes = bytes;
                    } else {
                        fields.shape = self.merged_shape(shape_bytes, bytes, base)?;
                    }
                }
                (instruction::PARAMETER_NUMBER, VARINT) => {
                    fields.parameter = u32::try_from(record.int()?).unwrap_or(u32::MAX);
                }
                (instruction::TUPLE_INDEX, VARINT) => {
                    fields.tuple_index = u32::try_from(record.int()?).unwrap_or(u32::MAX);
                }
                (instruction::ID, VARINT) => fields.number = Some(record.int()?),
                (instruction::OPERAND_IDS, VARINT | LEN) => record.numbers(tag, |number| self.ids.push(number))?,
                (instruction::CALLED_COMPUTATION_IDS, VARINT | LEN) => {
                    out.called.begin(row);
                    record.numbers(tag, |number| out.called.items.push(number))?;
                }
                (instruction::OUTPUT_OPERAND_ALIASING, LEN) => {
                    let alias = output_alias(record.message()?)?;
                    out.aliases.begin(row);
                    out.aliases.items.push(alias);
                }
                _ => record.skip(tag)?,
            }
        }
        Ok(())
    }

    /// A repeated message is merged by reading its parts one after the other.
    #[cold]
    fn merged_shape(&self, first: &[u8], second: &[u8], base: u64) -> std::result::Result<ShapeId, WireError> {
        self.interner.shape_of_copy(&[first, second].concat(), base)
    }
}

#[derive(Default)]
struct Fields {
    opcode: Opcode,
    shape: ShapeId,
    number: Option<i64>,
    parameter: u32,
    tuple_index: u32,
}

fn output_alias(mut reader: Reader<'_>) -> Result<OutputOperandAlias> {
    let mut alias = OutputOperandAlias::default();
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (output_alias::OUTPUT_SHAPE_INDEX, VARINT | LEN) => reader.numbers(tag, |n| alias.output_index.push(n))?,
            (output_alias::OPERAND_INDEX, VARINT) => alias.operand = reader.int()?,
            (output_alias::OPERAND_SHAPE_INDEX, VARINT | LEN) => {
                reader.numbers(tag, |n| alias.operand_index.push(n))?;
            }
            _ => reader.skip(tag)?,
        }
    }
    Ok(alias)
}

/// Re-reads the operands of computations whose instruction ids are not consecutive; once it was cancelled, not of all.
pub fn mend_operands(module: &Region, decoded: &mut Decoded, ids: &IdIndex, progress: &Progress) {
    for &computation in ids.irregular() {
        let Some(entry) = decoded.computations.get(computation as usize).cloned() else { continue };
        for row in entry.start..entry.end {
            if progress.check().is_err() {
                return;
            }
            let operands = decoded.instructions.operands.range_mut(row as usize, row as usize + 1);
            let mut at = 0;
            let Ok(mut record) = module.reader_at(decoded.records[row as usize] as usize).message() else { continue };
            while let Ok(Some(tag)) = record.tag() {
                let result = if field(tag) == (instruction::OPERAND_IDS, VARINT)
                    || field(tag) == (instruction::OPERAND_IDS, LEN)
                {
                    record.numbers(tag, |number| {
                        if let Some(operand) = operands.get_mut(at) {
                            *operand = ids.in_computation(computation, &entry, number);
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
