//! How much memory a program needs, without decoding it: skips the module and reads only the heads of the allocations
//! in the buffer assignment.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::fields::{allocation, assignment, hlo_proto, module};
use crate::decode::wire::{LEN, Reader, Result, VARINT, field, text};
use crate::model::{Bytes, Glance, MemorySpace};

/// How much of a module is read for its name.
const HEAD: usize = 4096;

/// A buffer assignment longer than this is not read at a glance.
const MAX_ASSIGNMENT: u64 = 1 << 30;

/// A glance at an HLO proto in memory. Damaged parts are skipped.
#[must_use]
pub fn glance(bytes: &[u8]) -> Glance {
    let mut found = Totals::default();
    let mut reader = Reader::new(bytes, 0);
    while let Ok(Some(tag)) = reader.tag() {
        let part = match field(tag) {
            (number @ (hlo_proto::HLO_MODULE | hlo_proto::BUFFER_ASSIGNMENT), LEN) => {
                reader.bytes_or_rest().map(|(part, _)| (number, part))
            }
            _ => {
                if reader.skip(tag).is_err() {
                    break;
                }
                continue;
            }
        };
        match part {
            Ok((hlo_proto::HLO_MODULE, module)) => found.module(module),
            Ok((_, assignment)) => found.assignment(assignment),
            Err(_) => break,
        }
    }
    found.finish()
}

/// A glance at an uncompressed file; reads only the parts needed.
///
/// # Errors
/// If it cannot be read.
pub fn glance_file(path: &Path) -> io::Result<Glance> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut found = Totals::default();
    let mut at = 0;
    while at < size {
        let mut head = Vec::new();
        file.seek(SeekFrom::Start(at))?;
        (&mut file).take(HEAD as u64).read_to_end(&mut head)?;
        let mut reader = Reader::new(&head, at);
        let Ok(Some(tag)) = reader.tag() else { break };
        let before = reader.position();
        if field(tag).1 != LEN {
            if reader.skip(tag).is_err() {
                break;
            }
            at += reader.position() as u64;
            continue;
        }
        let Ok(len) = reader.varint() else { break };
        let start = at + reader.position() as u64;
        let inside = &head[reader.position().max(before)..];
        match field(tag).0 {
            hlo_proto::HLO_MODULE => {
                found.module(&inside[..inside.len().min(usize::try_from(len).unwrap_or(usize::MAX))]);
            }
            hlo_proto::BUFFER_ASSIGNMENT if len <= MAX_ASSIGNMENT => {
                let mut assignment = Vec::new();
                file.seek(SeekFrom::Start(start))?;
                (&mut file).take(len).read_to_end(&mut assignment)?;
                found.assignment(&assignment);
            }
            _ => {}
        }
        let Some(next) = start.checked_add(len) else { break };
        at = next;
    }
    Ok(found.finish())
}

/// Whether a file ends where its last top-level field ends, as a protobuf that was written to its end does. Reads only
/// the heads of the fields; empty files are not whole.
///
/// # Errors
/// If it cannot be read.
pub fn is_whole_file(path: &Path) -> io::Result<bool> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    let mut at = 0;
    while at < size {
        let mut head = Vec::new();
        file.seek(SeekFrom::Start(at))?;
        // A tag and a length, or a tag and a number.
        (&mut file).take(20).read_to_end(&mut head)?;
        let mut reader = Reader::new(&head, at);
        let Ok(Some(tag)) = reader.tag() else { return Ok(false) };
        let payload = if field(tag).1 == LEN {
            let Ok(len) = reader.varint() else { return Ok(false) };
            len
        } else if reader.skip(tag).is_ok() {
            0
        } else {
            return Ok(false);
        };
        let Some(next) = (at + reader.position() as u64).checked_add(payload) else { return Ok(false) };
        at = next;
    }
    Ok(size > 0 && at == size)
}

#[derive(Debug, Default)]
struct Totals {
    name: Option<String>,
    allocated: BTreeMap<MemorySpace, Bytes>,
    has_assignment: bool,
}

impl Totals {
    /// The module's name, which is its first field.
    fn module(&mut self, module: &[u8]) {
        let mut reader = Reader::new(module, 0);
        while let Ok(Some(tag)) = reader.tag() {
            match field(tag) {
                (module::NAME, LEN) => {
                    if let Ok(name) = reader.bytes() {
                        self.name = Some(text(name));
                    }
                    return;
                }
                _ => {
                    if reader.skip(tag).is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn assignment(&mut self, assignment: &[u8]) {
        self.has_assignment = true;
        let mut reader = Reader::new(assignment, 0);
        while let Ok(Some(tag)) = reader.tag() {
            let result = match field(tag) {
                (assignment::BUFFER_ALLOCATIONS, LEN) => {
                    reader.message().and_then(|allocation| self.allocation(allocation))
                }
                _ => reader.skip(tag),
            };
            if result.is_err() {
                return;
            }
        }
    }

    fn allocation(&mut self, mut reader: Reader<'_>) -> Result<()> {
        let (mut size, mut color, mut thread_local) = (0, 0, false);
        while let Some(tag) = reader.tag()? {
            match field(tag) {
                (allocation::SIZE, VARINT) => size = reader.int()?,
                (allocation::IS_THREAD_LOCAL, VARINT) => thread_local = reader.varint()? != 0,
                (allocation::COLOR, VARINT) => color = reader.int()?,
                _ => reader.skip(tag)?,
            }
        }
        if !thread_local {
            *self.allocated.entry(MemorySpace(color)).or_default() += Bytes::from_wire(size);
        }
        Ok(())
    }

    fn finish(self) -> Glance {
        Glance {
            name: self.name,
            allocated: self.allocated.into_iter().collect(),
            has_buffer_assignment: self.has_assignment,
            ..Glance::default()
        }
    }
}
