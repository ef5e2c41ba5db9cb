//! The first pass over a module: location of each computation, the schedule, and the small fields.

use super::fields::{module, schedule, sequence, sequence_entry};
use crate::decode::reporter::Reporter;
use crate::decode::wire::{LEN, Reader, Result, VARINT, field, text};
use crate::source::Progress;

/// Fields between two checks for cancellation.
const CHECK_EVERY: usize = 4096;

/// A module's table of contents. Offsets are those of the module's region.
#[derive(Debug, Default)]
pub struct Directory {
    /// Name of the module.
    pub name: String,
    /// Name of the entry computation, for modules without its id.
    pub entry_name: String,
    /// Number of the entry computation.
    pub entry: Option<i64>,
    /// Number of the module.
    pub module_id: i64,
    /// Locations of the computations, in file order.
    pub computations: Vec<ComputationLocation>,
    /// Locations of the schedule's parts, which are merged.
    pub schedule: Vec<(usize, usize)>,
    /// Bytes of the small fields that are decoded as whole messages: (field, start, end).
    pub small: Vec<(u32, usize, usize)>,
}

/// Location of a computation.
#[derive(Debug, Clone, Copy)]
pub struct ComputationLocation {
    /// Offset of its length.
    pub offset: u32,
    /// Offset of its first byte.
    pub start: u32,
    /// Offset of its end.
    pub end: u32,
}

impl ComputationLocation {
    /// Its bytes.
    pub const fn len(self) -> usize {
        (self.end - self.start) as usize
    }
}

/// Fields of `HloModuleProto` that are kept for decoding as messages: aliases, donors, shardings, device assignment,
/// stack frames, attributes.
const SMALL_FIELDS: [u32; 7] = [
    module::INPUT_OUTPUT_ALIAS,
    module::SPMD_OUTPUT_SHARDING,
    module::SPMD_PARAMETERS_SHARDINGS,
    module::DEVICE_ASSIGNMENT,
    module::STACK_FRAME_INDEX,
    module::BUFFER_DONOR,
    module::FRONTEND_ATTRIBUTES,
];

impl Directory {
    /// Walks a module, not to its end once it was cancelled. Damaged parts are reported and skipped.
    pub fn read(module: Reader<'_>, progress: &Progress, reporter: &Reporter) -> Self {
        let mut directory = Self::default();
        if let Err(error) = directory.walk(module, progress, reporter) {
            reporter.damaged(format!("the HLO module stops here: {}", error.what), Some(error.offset));
        }
        directory
    }

    fn walk(&mut self, mut module: Reader<'_>, progress: &Progress, reporter: &Reporter) -> Result<()> {
        for count in 1_usize.. {
            let Some(tag) = module.tag()? else { break };
            if count % CHECK_EVERY == 0 && progress.check().is_err() {
                break;
            }
            match field(tag) {
                (module::NAME, LEN) => self.name = text(module.bytes()?),
                (module::ENTRY_COMPUTATION_NAME, LEN) => self.entry_name = text(module.bytes()?),
                (module::ID, VARINT) => self.module_id = module.int()?,
                (module::ENTRY_COMPUTATION_ID, VARINT) => self.entry = Some(module.int()?),
                (module::COMPUTATIONS, LEN) => {
                    let offset = module.position();
                    let (bytes, whole) = module.bytes_or_rest()?;
                    let end = module.position();
                    self.computations.push(ComputationLocation {
                        offset: offset as u32,
                        start: (end - bytes.len()) as u32,
                        end: end as u32,
                    });
                    if !whole {
                        reporter.truncated("a computation", module.offset());
                        return Ok(());
                    }
                }
                (module::SCHEDULE, LEN) => {
                    let bytes = module.bytes()?;
                    self.schedule.push((module.position() - bytes.len(), module.position()));
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
}

/// Instruction numbers by computation number, in the order of the schedule.
#[derive(Debug, Default)]
pub struct Schedule {
    /// (computation, first item, one past the last), sorted by computation.
    sequences: Vec<(i64, u32, u32)>,
    items: Vec<i64>,
}

impl Schedule {
    /// Reads one part of the schedule into the table, not to its end once it was cancelled.
    ///
    /// # Errors
    /// If bytes are damaged; what came before is kept.
    pub fn read(&mut self, mut schedule: Reader<'_>, progress: &Progress) -> Result<()> {
        while let Some(tag) = schedule.tag()? {
            if progress.check().is_err() {
                break;
            }
            if field(tag) != (schedule::SEQUENCES, LEN) {
                schedule.skip(tag)?;
                continue;
            }
            let mut key = 0;
            let start = self.items.len() as u32;
            let mut item = schedule.message()?;
            while let Some(tag) = item.tag()? {
                match field(tag) {
                    (sequence_entry::KEY, VARINT) => key = item.int()?,
                    (sequence_entry::VALUE, LEN) => {
                        let mut sequence = item.message()?;
                        while let Some(tag) = sequence.tag()? {
                            match field(tag) {
                                (sequence::INSTRUCTION_IDS, VARINT | LEN) => {
                                    sequence.numbers(tag, |n| self.items.push(n))?;
                                }
                                _ => sequence.skip(tag)?,
                            }
                        }
                    }
                    _ => item.skip(tag)?,
                }
            }
            self.sequences.push((key, start, self.items.len() as u32));
        }
        Ok(())
    }

    /// Sorts the finished table by computation. The later of two entries wins.
    pub fn finish(&mut self) {
        // Turned round and sorted stably: the place of the items does not tell two entries apart where one is empty.
        self.sequences.reverse();
        self.sequences.sort_by_key(|&(key, _, _)| key);
        self.sequences.dedup_by_key(|&mut (key, _, _)| key);
    }

    /// The sequence of a computation.
    pub fn of(&self, computation: i64) -> Option<&[i64]> {
        let row = self.sequences.binary_search_by_key(&computation, |&(key, _, _)| key).ok()?;
        let (_, start, end) = self.sequences[row];
        Some(&self.items[start as usize..end as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_later_of_two_schedules_of_a_computation_holds() {
        // {1: [5, 6]} as two entries for key 1, the second packed.
        let bytes = [0x0a, 6, 0x08, 1, 0x12, 2, 0x08, 9, 0x0a, 8, 0x08, 1, 0x12, 4, 0x0a, 2, 5, 6];
        let mut schedule = Schedule::default();
        assert_eq!(schedule.read(Reader::new(&bytes, 0), &Progress::default()), Ok(()));
        schedule.finish();
        assert_eq!(schedule.of(1), Some(&[5, 6][..]));
        assert_eq!(schedule.of(2), None);
    }

    #[test]
    fn a_later_schedule_holds_over_an_empty_one() {
        let (empty, full) = ([0x0a, 2, 0x08, 1], [0x0a, 8, 0x08, 1, 0x12, 4, 0x0a, 2, 5, 6]);
        for (parts, expected) in [([&empty[..], &full], &[5, 6][..]), ([&full, &empty], &[])] {
            let mut schedule = Schedule::default();
            for part in parts {
                assert_eq!(schedule.read(Reader::new(part, 0), &Progress::default()), Ok(()));
            }
            schedule.finish();
            assert_eq!(schedule.of(1), Some(expected));
        }
    }
}
