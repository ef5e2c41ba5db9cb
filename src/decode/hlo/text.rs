//! Names and metadata of single rows, read from the file's bytes on demand.

use std::borrow::Cow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use prost::Message;

use super::dimensions;
use super::fields::{computation, instruction, metadata};
use super::region::Region;
use super::small::{StackFrames, proto, sharding};
use crate::decode::wire::{LEN, Reader, Result, VARINT, field, text};
use crate::model::{
    Bytes, ComputationId, DimensionNumbers, FastMap, InstructionId, MemorySpace, Metadata, ProgramText, ScopedMemory,
    Sharding, SourceLine,
};

/// The module's bytes with the offsets of its records.
#[derive(Debug)]
pub struct HloText {
    /// The module.
    pub module: Region,
    /// Offset of each instruction's length prefix.
    pub records: Vec<u32>,
    /// Offset of each computation's length prefix.
    pub computations: Vec<u32>,
    /// Whether the fields of every instruction come in the order of their numbers: what comes after a field need not
    /// be looked at.
    pub in_order: bool,
    /// Source locations.
    pub frames: StackFrames,
    /// Names of arguments that the file has lost, by instruction.
    pub restored: FastMap<u32, String>,
    /// Where the op names are that have been asked for.
    pub op_names: OpNames,
}

/// Where the op names of instructions are in the module, as far as they have been looked for: every rule asks for them.
#[derive(Debug, Default)]
pub struct OpNames(OnceLock<Box<[AtomicU64]>>);

impl OpNames {
    /// The op name of one of `count` instructions; `find` looks for it in the module where nobody has.
    fn get<'a>(&self, module: &'a [u8], (row, count): (usize, usize), find: impl FnOnce() -> &'a [u8]) -> &'a [u8] {
        // Its offset plus one in the upper half, its length in the lower; 0 where it has not been looked for.
        let places = self.0.get_or_init(|| (0..count).map(|_| AtomicU64::new(0)).collect());
        let known = places.get(row).map_or(0, |place| place.load(Ordering::Relaxed));
        if let Some(begin) = (known >> 32).checked_sub(1) {
            let begin = begin as usize;
            return module.get(begin..begin + known as u32 as usize).unwrap_or_default();
        }
        let name = find();
        // An empty name is no part of the module.
        let begin = if name.is_empty() { 0 } else { (name.as_ptr() as usize).wrapping_sub(module.as_ptr() as usize) };
        if let (Some(place), Ok(begin), Ok(length)) = (places.get(row), u32::try_from(begin), u32::try_from(name.len()))
        {
            place.store((u64::from(begin) + 1) << 32 | u64::from(length), Ordering::Relaxed);
        }
        name
    }
}

#[derive(Default)]
struct RawMetadata<'a> {
    op_type: &'a [u8],
    op_name: &'a [u8],
    source_file: &'a [u8],
    source_line: i32,
    source_column: i32,
    stack_frame: i32,
}

impl<'a> RawMetadata<'a> {
    fn read(&mut self, mut message: Reader<'a>) -> Result<()> {
        while let Some(tag) = message.tag()? {
            match field(tag) {
                (metadata::OP_TYPE, LEN) => self.op_type = message.bytes()?,
                (metadata::OP_NAME, LEN) => self.op_name = message.bytes()?,
                (metadata::SOURCE_FILE, LEN) => self.source_file = message.bytes()?,
                (metadata::SOURCE_LINE, VARINT) => self.source_line = message.int()? as i32,
                (metadata::STACK_FRAME_ID, VARINT) => self.stack_frame = message.int()? as i32,
                (metadata::SOURCE_COLUMN, VARINT) => self.source_column = message.int()? as i32,
                _ => message.skip(tag)?,
            }
        }
        Ok(())
    }
}

impl HloText {
    /// Calls `each` with every length-delimited field `number` of an instruction.
    fn fields<'a>(&'a self, row: InstructionId, number: u32, mut each: impl FnMut(Reader<'a>, &'a [u8])) {
        let Some(&record) = self.records.get(row.index()) else { return };
        let _ = self.module.reader_at(record as usize).message().and_then(|mut record| {
            while let Some(tag) = record.tag()? {
                if self.in_order && tag >> 3 > number {
                    break;
                }
                if field(tag) == (number, LEN) {
                    let before = record;
                    let bytes = record.bytes()?;
                    let mut again = before;
                    each(again.message()?, bytes);
                } else {
                    record.skip(tag)?;
                }
            }
            Ok(())
        });
    }

    fn last(&self, row: InstructionId, number: u32) -> &[u8] {
        let mut value: &[u8] = &[];
        self.fields(row, number, |_, bytes| value = bytes);
        value
    }

    /// Whether an argument's name is that of a loop or an operation.
    pub fn is_name_lost(&self, argument: InstructionId) -> bool {
        self.raw_metadata(argument).op_name.starts_with(b"jit(")
    }

    fn raw_metadata(&self, row: InstructionId) -> RawMetadata<'_> {
        let mut metadata = RawMetadata::default();
        self.fields(row, instruction::METADATA, |message, _| {
            let _ = metadata.read(message);
        });
        metadata
    }
}

impl ProgramText for HloText {
    fn instruction_name(&self, instruction: InstructionId) -> String {
        text(self.last(instruction, instruction::NAME))
    }

    fn instruction_name_bytes(&self, instruction: InstructionId) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.last(instruction, instruction::NAME))
    }

    fn computation_name(&self, computation: ComputationId) -> String {
        let Some(&offset) = self.computations.get(computation.index()) else { return String::new() };
        let mut name = String::new();
        let mut reader = self.module.reader_at(offset as usize);
        // The name is the first field XLA writes; a computation cut by the file's end still has it.
        let _ = reader.bytes_or_rest().and_then(|(bytes, _)| {
            let mut message = Reader::new(bytes, 0);
            while let Some(tag) = message.tag()? {
                if field(tag) == (computation::NAME, LEN) {
                    name = text(message.bytes()?);
                } else {
                    message.skip(tag)?;
                }
            }
            Ok(())
        });
        name
    }

    fn metadata(&self, instruction: InstructionId) -> Metadata {
        let raw = self.raw_metadata(instruction);
        let stack = self.frames.walk(raw.stack_frame);
        let source = if raw.source_file.is_empty() {
            stack.first().cloned()
        } else {
            Some(SourceLine {
                file: text(raw.source_file),
                function: stack.first().map(|frame| frame.function.clone()).unwrap_or_default(),
                line: raw.source_line,
                column: raw.source_column,
            })
        };
        let op_name = self.restored.get(&instruction.0).cloned().unwrap_or_else(|| text(raw.op_name));
        Metadata { op_name, op_type: text(raw.op_type), source, stack }
    }

    fn op_name(&self, instruction: InstructionId) -> String {
        if let Some(name) = self.restored.get(&instruction.0) {
            return name.clone();
        }
        let place = (instruction.index(), self.records.len());
        text(self.op_names.get(&self.module, place, || self.raw_metadata(instruction).op_name))
    }

    fn custom_call_target(&self, instruction: InstructionId) -> String {
        text(self.last(instruction, instruction::CUSTOM_CALL_TARGET))
    }

    fn scoped_memory(&self, instruction: InstructionId) -> Vec<ScopedMemory> {
        let config = self.last(instruction, instruction::BACKEND_CONFIG);
        // Most configurations do not mention it; searching for the name is far cheaper than parsing.
        if memchr::memmem::find(config, b"scoped_memory_configs").is_none() {
            return Vec::new();
        }
        let Ok(config) = serde_json::from_slice::<serde_json::Value>(config) else { return Vec::new() };
        let number = |value: &serde_json::Value| match value {
            serde_json::Value::Number(n) => n.as_i64(),
            serde_json::Value::String(s) => s.trim().parse().ok(),
            _ => None,
        };
        let mut found = Vec::new();
        for (key, used) in [("used_scoped_memory_configs", true), ("scoped_memory_configs", false)] {
            for item in config.get(key).and_then(serde_json::Value::as_array).into_iter().flatten() {
                let color = item.get("memory_space").and_then(number).unwrap_or(0);
                let Some(size) = item.get("size").and_then(number) else { continue };
                found.push(ScopedMemory { color: MemorySpace(color), size: Bytes::from_wire(size), used });
            }
        }
        found
    }

    fn dimension_numbers(&self, instruction: InstructionId) -> DimensionNumbers {
        let Some(&record) = self.records.get(instruction.index()) else { return DimensionNumbers::default() };
        let record = self.module.reader_at(record as usize).message();
        record.and_then(|record| dimensions::read(record, self.in_order)).unwrap_or_default()
    }

    fn sharding(&self, instruction: InstructionId) -> Option<Sharding> {
        let mut message = None;
        self.fields(instruction, instruction::SHARDING, |_, bytes| {
            let message: &mut proto::OpSharding = message.get_or_insert_default();
            let _ = message.merge(bytes);
        });
        message.map(|message| sharding(&message, 0))
    }
}
