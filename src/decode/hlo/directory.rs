//! The first pass over a module: where every computation and instruction lies, the schedule, and the small fields.

use std::collections::HashMap;

use crate::decode::reporter::Reporter;
use crate::decode::wire::{Reader, Result, VARINT, LEN, field, text};

/// A module's table of contents. Offsets are those of the module's region.
#[derive(Debug, Default)]
pub struct Directory {
    /// Name of the module.
    pub name: String,
    /// Name of the entry computation, for modules without its number.
    pub entry_name: String,
    /// Number of the entry computation.
    pub entry: Option<i64>,
    /// Number of the module.
    pub module_id: i64,
    /// Computations in the file's order.
    pub computations: Vec<ComputationEntry>,
    /// Where each instruction's length stands, over all computations.
    pub records: Vec<u32>,
    /// Instruction numbers by computation number, in the order of the schedule.
    pub schedule: HashMap<i64, Vec<i64>>,
    /// Whether the module has a schedule at all.
    pub has_schedule: bool,
    /// Bytes of the small fields that are decoded as whole messages: (field, start, end).
    pub small: Vec<(u32, usize, usize)>,
}

/// Where a computation lies.
#[derive(Debug, Default, Clone)]
pub struct ComputationEntry {
    /// Offset of the computation's length.
    pub offset: u32,
    /// Its number.
    pub number: i64,
    /// Number of its root instruction.
    pub root: i64,
    /// First row of its instructions.
    pub start: u32,
    /// One past the last row.
    pub end: u32,
}

/// Fields of `HloModuleProto` that are kept for decoding as messages: aliases, donors, shardings, device assignment,
/// stack frames, attributes.
const SMALL_FIELDS: [u32; 7] = [8, 12, 14, 15, 17, 18, 19];

impl Directory {
    /// Walks a module. What is damaged is reported and left out.
    pub fn read(module: Reader<'_>, reporter: &Reporter) -> Self {
        let mut directory = Self::default();
        if let Err(error) = directory.walk(module, reporter) {
            reporter.warn(format!("the program's text stops here: {}", error.what), Some(error.offset));
        }
        directory
    }

    fn walk(&mut self, mut module: Reader<'_>, reporter: &Reporter) -> Result<()> {
        while let Some(tag) = module.tag()? {
            match field(tag) {
                (1, LEN) => self.name = text(module.bytes()?),
                (2, LEN) => self.entry_name = text(module.bytes()?),
                (5, VARINT) => self.module_id = module.int()?,
                (6, VARINT) => self.entry = Some(module.int()?),
                (3, LEN) => {
                    let offset = module.position();
                    let (bytes, whole) = module.bytes_or_rest()?;
                    let start = module.position() - bytes.len();
                    let base = module.offset() - bytes.len() as u64;
                    self.computation(Reader::new(bytes, base), offset, start, reporter);
                    if !whole {
                        reporter.warn("the file ends inside a computation", Some(module.offset()));
                        return Ok(());
                    }
                }
                (7, LEN) => {
                    self.has_schedule = true;
                    self.read_schedule(module.message()?)?;
                }
                (number, LEN) if SMALL_FIELDS.contains(&number) => {
                    let bytes = module.bytes()?;
                    self.small.push((number, module.position() - bytes.len(), module.position()));
                }
                _ => module.skip(tag)?,
            }
        }
        Ok(())
    }

    fn computation(&mut self, mut reader: Reader<'_>, offset: usize, start: usize, reporter: &Reporter) {
        let mut entry = ComputationEntry {
            offset: offset as u32,
            number: i64::MIN,
            root: i64::MIN,
            start: self.records.len() as u32,
            end: 0,
        };
        let result = (|| {
            while let Some(tag) = reader.tag()? {
                match field(tag) {
                    (2, LEN) => {
                        let at = start + reader.position();
                        reader.bytes()?;
                        self.records.push(at as u32);
                    }
                    (5, VARINT) => entry.number = reader.int()?,
                    (6, VARINT) => entry.root = reader.int()?,
                    _ => reader.skip(tag)?,
                }
            }
            Ok(())
        })();
        if let Err::<(), crate::decode::wire::WireError>(error) = result {
            reporter.warn(format!("the rest of a computation is left out: {}", error.what), Some(error.offset));
        }
        entry.end = self.records.len() as u32;
        self.computations.push(entry);
    }

    fn read_schedule(&mut self, mut schedule: Reader<'_>) -> Result<()> {
        while let Some(tag) = schedule.tag()? {
            if field(tag) != (1, LEN) {
                schedule.skip(tag)?;
                continue;
            }
            let (mut key, mut order) = (0, Vec::new());
            let mut item = schedule.message()?;
            while let Some(tag) = item.tag()? {
                match field(tag) {
                    (1, VARINT) => key = item.int()?,
                    (2, LEN) => {
                        let mut sequence = item.message()?;
                        while let Some(tag) = sequence.tag()? {
                            match field(tag) {
                                (1, VARINT | LEN) => {
                                    sequence.numbers(tag, |n| order.push(n))?;
                                }
                                _ => sequence.skip(tag)?,
                            }
                        }
                    }
                    _ => item.skip(tag)?,
                }
            }
            self.schedule.insert(key, order);
        }
        Ok(())
    }
}
