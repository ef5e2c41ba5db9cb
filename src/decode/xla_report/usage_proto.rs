//! `*-memory-usage-report.pb` (`MemoryUsageReportProto`): allocations by memory space with exact sizes.

use super::assemble::{Assembler, Named, lines, module_name};
use super::usage_fields::{entry, report, space};
use super::usage_table::{add_rows, row};
use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::decode::reporter::Reporter;
use crate::decode::wire::{FIXED64, LEN, Reader, Result as WireResult, VARINT, field, text};
use crate::model::{Allocation, Bytes, MemorySpace, Profile, ReportedSpace};
use crate::source::Input;

/// The memory-usage report as protobuf.
pub struct UsageProtoDecoder;

impl Decoder for UsageProtoDecoder {
    fn format(&self) -> &'static str {
        "XLA memory-usage report (protobuf)"
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::XlaDump, words: "XLA's memory usage report", patterns: &["*-memory-usage-report.pb"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        recognises(input.head())
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let name = module_name(input.file_name());
        let mut assembler = Assembler::new(&name);
        let mut spaces = Vec::new();
        let mut reader = Reader::new(&bytes, 0);
        let mut walk = || -> WireResult<()> {
            while let Some(tag) = reader.tag()? {
                match field(tag) {
                    (report::SPACES, LEN) => {
                        let (part, whole) = reader.bytes_or_rest()?;
                        let at = reader.offset() - part.len() as u64;
                        if !whole {
                            context.reporter.truncated("a memory space", bytes.len() as u64);
                        }
                        spaces.push(space(&mut assembler, Reader::new(part, at), context.reporter));
                    }
                    _ => reader.skip(tag)?,
                }
            }
            Ok(())
        };
        if let Err(error) = walk() {
            if spaces.is_empty() {
                return Err(DecodeError::Damaged { what: error.what.to_owned(), offset: error.offset });
            }
            context.reporter.damaged(format!("the rest of the report is left out: {}", error.what), Some(error.offset));
        }
        if spaces.is_empty() {
            return Err(DecodeError::Empty("a memory-usage report without a memory space".to_owned()));
        }
        assembler.program().reported = spaces;
        let program = assembler.finish();
        context.reporter.info(
            "This report has no heap events; its totals include thread-local allocations, which it does not tell apart",
        );
        Ok(Profile { name, programs: vec![program], ..Profile::default() })
    }
}

/// Whether it contains only memory spaces, each with a total, perhaps a colour, and an allocation.
fn recognises(head: &[u8]) -> bool {
    let mut reader = Reader::new(head, 0);
    let Ok(Some(tag)) = reader.tag() else { return false };
    if field(tag) != (report::SPACES, LEN) {
        return false;
    }
    let Ok((space, whole)) = reader.bytes_or_rest() else { return false };
    let mut space = Reader::new(space, 0);
    let mut numbers = 0;
    loop {
        match space.tag() {
            Ok(Some(tag)) => match field(tag) {
                (space::TOTAL_BYTES | space::MEMORY_SPACE_COLOR, VARINT) if space.varint().is_ok() => numbers += 1,
                (space::ENTRIES, LEN) if numbers > 0 => {
                    let Ok((entry, _)) = space.bytes_or_rest() else { return false };
                    let mut entry = Reader::new(entry, 0);
                    return entry.tag().ok().flatten().is_some_and(|tag| {
                        matches!(
                            field(tag),
                            (entry::INDEX..=entry::CUMULATIVE_SIZE, VARINT) | (entry::CUMULATIVE_PERCENTAGE, FIXED64)
                        )
                    });
                }
                _ => return false,
            },
            // A space without allocations; another message must follow, and be a space too.
            Ok(None) if whole && numbers > 0 => {
                return matches!(reader.tag(), Ok(None))
                    || (reader.position() < head.len() && recognises(&head[reader.position() - 1..]));
            }
            _ => return false,
        }
        if numbers > 4 {
            return false;
        }
    }
}

fn space(assembler: &mut Assembler, mut reader: Reader<'_>, reporter: &Reporter) -> ReportedSpace {
    let mut space = ReportedSpace { allocated: Some(Bytes::ZERO), ..ReportedSpace::default() };
    let mut entries = Vec::new();
    let mut walk = || -> WireResult<()> {
        while let Some(tag) = reader.tag()? {
            match field(tag) {
                (space::TOTAL_BYTES, VARINT) => space.allocated = Some(Bytes::from_wire(reader.int()?)),
                (space::MEMORY_SPACE_COLOR, VARINT) => space.color = MemorySpace(reader.int()?),
                (space::ENTRIES, LEN) => entries.push(reader.message()?),
                _ => reader.skip(tag)?,
            }
        }
        Ok(())
    };
    if let Err(error) = walk() {
        reporter.damaged(format!("a memory space stops here: {}", error.what), Some(error.offset));
    }
    for message in entries {
        if let Err(error) = entry(assembler, message, space.color) {
            reporter.damaged(format!("an allocation is damaged: {}", error.what), Some(error.offset));
        }
    }
    space
}

fn entry(assembler: &mut Assembler, mut reader: Reader<'_>, color: MemorySpace) -> WireResult<()> {
    let mut allocation = Allocation { color, ..Allocation::default() };
    let mut positions = Vec::new();
    let mut table = String::new();
    while let Some(tag) = reader.tag()? {
        match field(tag) {
            (entry::INDEX, VARINT) => allocation.index = reader.int()?,
            (entry::SIZE, VARINT) => allocation.size = Bytes::from_wire(reader.int()?),
            (entry::DEFINING_POSITIONS, LEN) => positions.push(text(reader.bytes()?)),
            (entry::HLO_TEXT, LEN) => table = text(reader.bytes()?),
            _ => reader.skip(tag)?,
        }
    }
    let (index, size) = (allocation.index, allocation.size);
    let id = assembler.allocation(allocation);
    if let [only] = positions.as_slice() {
        // One value fills the allocation: the position names it, and its size is exact.
        let name = only.replace(" {", "{");
        let name = name.strip_suffix("{}").unwrap_or(&name).to_owned();
        let number = assembler.program().buffers.len() as i64;
        let buffer = assembler.buffer(number, size, color, Named { name, ..Named::default() });
        assembler.assign(id, buffer, 0);
        return Ok(());
    }
    let rows: Vec<_> = lines(&table).filter_map(|(_, line)| row(line)).collect();
    add_rows(assembler, id, &format!("allocation {index}"), color, &rows);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_told_from_other_protobufs() {
        // One space of 512 bytes with allocation 3.
        let report = [0x0a, 9, 0x08, 0x80, 0x04, 0x1a, 4, 0x08, 3, 0x10, 7];
        assert!(recognises(&report));
        // A pprof's sample type.
        assert!(!recognises(&[0x0a, 4, 0x08, 1, 0x10, 2, 0x12, 2, 0x0a, 0]));
        // An HLO module with a name.
        assert!(!recognises(&[0x0a, 5, 0x0a, 3, b'a', b'b', b'c']));
    }
}
