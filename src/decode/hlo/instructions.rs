//! The second pass: the columns of the instructions, decoded in pieces by several threads.
//!
//! A piece is a run of small computations, or a part of a large one, of about a megabyte. Each piece fills columns of
//! its own; joining them afterwards is a copy.

use std::sync::Mutex;

use super::directory::{ComputationLocation, Directory};
use super::fields::{computation, instruction, output_alias};
use super::ids::{ComputationEntry, IdIndex};
use super::region::Region;
use super::shapes::{Interner, LocalInterner};
use crate::decode::reporter::Reporter;
use crate::decode::wire::{LEN, Reader, Result, VARINT, WireError, field};
use crate::model::{Instructions, NO_ROW, Opcode, Operands, OutputOperandAlias, ShapeId, SparseLists};
use crate::source::{Cancelled, Progress};

/// Joining the pieces, and resolving references after it, each take about this part of the time of decoding them.
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
enum Piece {
    /// Whole computations.
    Whole { first: usize, count: usize },
    /// A part of a large computation: its bytes up to `end`.
    Part { computation: usize, start: u32, end: u32, first_number: i64 },
}

/// Columns filled by one piece. Rows are relative to its first row.
#[derive(Default)]
struct Columns {
    opcode: Vec<Opcode>,
    shape: Vec<ShapeId>,
    argument: Vec<u32>,
    odd_numbers: Vec<(u32, i64)>,
    records: Vec<u32>,
    /// One past the last operand of each row.
    operand_ends: Vec<u32>,
    /// Operands: rows of the piece, or of the computation in a part of a large one.
    operands: Vec<u32>,
    called: SparseLists<i64>,
    aliases: SparseLists<OutputOperandAlias>,
    /// Computations in it; `end` counts rows of the piece.
    computations: Vec<ComputationEntry>,
    /// As in [`Decoded`].
    out_of_order: bool,
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
    let mut columns: Vec<Columns> = pieces.iter().map(|_| Columns::default()).collect();
    {
        let queue = Mutex::new(pieces.iter().zip(columns.iter_mut()));
        let work = || -> std::result::Result<(), Cancelled> {
            let mut decoder =
                PieceDecoder { module, interner: LocalInterner::new(interner), reporter, ids: Vec::new() };
            loop {
                let next = queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
                let Some((piece, out)) = next else { return Ok(()) };
                let bytes = decoder.piece(directory, piece, out);
                progress.advance(bytes as u64)?;
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
    }
    let decoded = join(directory, &pieces, columns, (progress, module.len() as u64 / LATER));
    progress.check()?;
    Ok(decoded)
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
fn cut(
    module: &Region,
    computation: usize,
    place: ComputationLocation,
    progress: &Progress,
    pieces: &mut Vec<Piece>,
) {
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

/// Joins the columns of the pieces in so many steps of progress; once it was cancelled, not all of them.
fn join(
    directory: &Directory,
    pieces: &[Piece],
    mut columns: Vec<Columns>,
    (progress, steps): (&Progress, u64),
) -> Decoded {
    let rows = columns.iter().map(|c| c.opcode.len()).sum();
    let mut decoded = Decoded { computations: Vec::with_capacity(directory.computations.len()), ..Decoded::default() };
    // First row of each piece, and what its operands count from.
    let mut bases = Vec::with_capacity(pieces.len());
    let mut first_row = 0;
    let mut open_part = None;
    // Either pass over the pieces counts for half of the steps.
    let step = steps / 2 / (pieces.len() as u64).max(1);
    for (piece, columns) in pieces.iter().zip(&mut columns) {
        if progress.advance(step).is_err() {
            return decoded;
        }
        let shift = |entry: &ComputationEntry| ComputationEntry {
            start: entry.start + first_row,
            end: entry.end + first_row,
            ..entry.clone()
        };
        let mut operand_base = first_row;
        match *piece {
            Piece::Whole { .. } => decoded.computations.extend(columns.computations.iter().map(shift)),
            Piece::Part { computation, .. } => {
                let own = columns.computations.first().map(shift).unwrap_or_default();
                match decoded.computations.last_mut().filter(|_| open_part == Some(computation)) {
                    Some(entry) => {
                        entry.end = own.end;
                        entry.number = entry.number.max(own.number);
                        entry.root = entry.root.max(own.root);
                    }
                    None => decoded.computations.push(own),
                }
                open_part = Some(computation);
                let entry = decoded.computations.last().cloned().unwrap_or_default();
                operand_base = entry.start;
                columns.odd_numbers.retain(|&(row, number)| {
                    let expected = entry.first_number.wrapping_add(i64::from(row + first_row - entry.start));
                    number != expected || number == i64::MIN
                });
            }
        }
        decoded.out_of_order |= columns.out_of_order;
        decoded.odd_numbers.extend(columns.odd_numbers.iter().map(|&(row, number)| (row + first_row, number)));
        append(&mut decoded.called, std::mem::take(&mut columns.called), first_row);
        append(&mut decoded.instructions.output_aliases, std::mem::take(&mut columns.aliases), first_row);
        bases.push((first_row, operand_base));
        first_row += columns.opcode.len() as u32;
    }
    zeros_left_out(&mut decoded.computations);
    let (all, columns) = (&mut decoded.instructions, &columns);
    // Most of the time goes into new memory: two threads share it.
    let (records, ()) = rayon::join(
        || {
            let mut records = Vec::with_capacity(rows);
            all.opcode.reserve_exact(rows);
            all.shape.reserve_exact(rows);
            all.argument.reserve_exact(rows);
            for columns in columns {
                if progress.check().is_err() {
                    break;
                }
                all.opcode.extend_from_slice(&columns.opcode);
                all.shape.extend_from_slice(&columns.shape);
                all.argument.extend_from_slice(&columns.argument);
                records.extend_from_slice(&columns.records);
            }
            records
        },
        || {
            let count = columns.iter().map(|c| c.operands.len()).sum();
            all.operands = Operands { ends: Vec::with_capacity(rows), items: Vec::with_capacity(count) };
            for (columns, &(_, base)) in columns.iter().zip(&bases) {
                if progress.advance(step).is_err() {
                    return;
                }
                let first = all.operands.items.len() as u32;
                all.operands.ends.extend(columns.operand_ends.iter().map(|end| end + first));
                all.operands.items.extend(columns.operands.iter().map(|&row| row.checked_add(base).unwrap_or(NO_ROW)));
            }
            for entry in &decoded.computations {
                if progress.check().is_err() {
                    return;
                }
                // An operand outside its computation is ignored.
                for row in all.operands.range_mut(entry.start as usize, entry.end as usize) {
                    if !(entry.start..entry.end).contains(row) {
                        *row = NO_ROW;
                    }
                }
            }
        },
    );
    decoded.records = records;
    decoded
}

/// A computation without a number has number 0, which the format leaves out; one of a damaged file has none.
fn zeros_left_out(computations: &mut [ComputationEntry]) {
    let has_zero = computations.iter().any(|entry| entry.number == 0);
    if let (false, Some(entry)) = (has_zero, computations.iter_mut().find(|entry| entry.number == i64::MIN)) {
        entry.number = 0;
    }
    for entry in computations.iter_mut().filter(|entry| entry.root == i64::MIN) {
        entry.root = 0;
    }
}

fn append<T>(to: &mut SparseLists<T>, from: SparseLists<T>, first_row: u32) {
    let shift = to.items.len() as u32;
    to.rows.extend(from.rows.into_iter().map(|(row, start)| (row + first_row, start + shift)));
    to.items.extend(from.items);
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
