//! HLO modules in the plane `/host:metadata`: listed by name and offset, decoded on demand.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::fields::{metadata, metadata_entry};
use super::plane::{Plane, Value, message_or_rest, stat_value};
use crate::decode::hlo;
use crate::decode::reporter::Reporter;
use crate::decode::wire::{LEN, Reader, Result, VARINT, field, text};
use crate::model::{Glance, LazyProgram, Note, Program, ProgramSource};
use crate::source::{Progress, SharedBytes};

/// A module's place in the trace.
#[derive(Debug)]
struct Module {
    bytes: SharedBytes,
    id: Option<String>,
}

impl ProgramSource for Module {
    fn load(&self, cancelled: &Arc<AtomicBool>) -> std::result::Result<(Program, Vec<Note>), String> {
        let (progress, reporter) = (Progress::cancelled_by(Arc::clone(cancelled)), Reporter::default());
        let mut program = hlo::decode(&self.bytes, &progress, &reporter).map_err(|error| error.to_string())?;
        if self.id.is_some() {
            program.id.clone_from(&self.id);
        }
        Ok((program, reporter.finish()))
    }

    fn glance(&self) -> Glance {
        hlo::glance(&self.bytes)
    }
}

/// The modules of the plane, in the file's order; of those with the same number the first.
pub fn read(plane: &Plane<'_>, bytes: &SharedBytes, reporter: &Reporter) -> Vec<LazyProgram> {
    let mut modules = Vec::new();
    let mut seen = HashSet::new();
    for &entry in &plane.event_metadata {
        match module(plane, entry) {
            Ok(Some((name, id, proto))) => {
                if !seen.insert(id) {
                    continue;
                }
                let start = proto.offset() as usize;
                let bytes = bytes.slice(start..start + proto.remaining());
                let id = id.to_string();
                let name = name.strip_suffix(&format!("({id})")).unwrap_or(&name).to_owned();
                modules.push(LazyProgram {
                    name,
                    id: Some(id.clone()),
                    bytes: bytes.len() as u64,
                    source: Arc::new(Module { bytes, id: Some(id) }),
                });
            }
            Ok(None) => {}
            Err(error) => reporter.damaged(format!("a module's entry is damaged: {}", error.what), Some(error.offset)),
        }
    }
    modules
}

/// (name, program id, proto) of an entry that holds a module.
fn module<'a>(plane: &Plane<'_>, mut entry: Reader<'a>) -> Result<Option<(String, u64, Reader<'a>)>> {
    let (mut name, mut id, mut key) = (String::new(), None, 0);
    let mut proto = None;
    while let Some(tag) = entry.tag()? {
        match field(tag) {
            (metadata_entry::KEY, VARINT) => key = entry.varint()?,
            (metadata_entry::VALUE, LEN) => {
                let mut value = message_or_rest(&mut entry)?;
                while let Some(tag) = value.tag()? {
                    match field(tag) {
                        (metadata::ID, VARINT) => key = value.varint()?,
                        (metadata::NAME, LEN) => name = text(value.bytes()?),
                        (metadata::STATS, LEN) => {
                            let (stat, value) = stat_value(message_or_rest(&mut value)?)?;
                            match (plane.stat_name(stat), value) {
                                // XProf writes the name with either letter case and spacing.
                                ("Hlo Proto" | "hlo_proto", Value::Bytes(bytes)) => proto = Some(bytes),
                                ("program_id", value) => id = Some(value.number() as u64),
                                _ => {}
                            }
                        }
                        _ => value.skip(tag)?,
                    }
                }
            }
            _ => entry.skip(tag)?,
        }
    }
    Ok(proto.map(|proto| (name, id.unwrap_or(key), proto)))
}
