//! Profiles of Poplar, Graphcore's software for the IPU: graph and execution profiles as JSON or CBOR, lowered
//! variables, `profile.pop` and its cache (SQLite), and the small files beside them.
//!
//! The layout is the documented one; no genuine memory profile could be had. What is only remembered is accepted and
//! never required, what is unknown is named in a note.

mod cbor;
mod companions;
mod document;
mod execution;
mod join;
mod json;
mod memory;
mod pull;
mod recognise;
mod report;
mod rows;
mod sql;
mod state;
mod step_names;
mod values;
mod variables;

use cbor::Cbor;
pub use join::{check_cache, join};
use json::Json;
use pull::{Feed, Pull};
use recognise::Kind;
pub use report::{is_report_file, report_files};
pub use sql::{SqlDecoder, TileVariable, step_ids, variables_of_tile};
use state::State;

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use super::reporter::Reporter;
use crate::model::{Device, DeviceKind, Fact, NoteCode, Profile, TileMemory};
use crate::source::{Input, Stage};

/// The trees: JSON and CBOR.
#[derive(Debug)]
pub struct TreeDecoder;

impl Decoder for TreeDecoder {
    fn format(&self) -> &'static str {
        "Poplar profile"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::Poplar,
            words: "Poplar report of an IPU",
            patterns: &["graph.json", "execution.json", "vars.json", "*.cbor"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        recognise::kind(input).is_some()
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let kind = recognise::kind(input).unwrap_or(Kind::Profile);
        context.progress.begin(Stage::Decoding, input.size());
        let feed = Feed::new(input, context.progress)?;
        let mut json;
        let mut cbor;
        let pull: &mut dyn Pull = if recognise::is_cbor(input.head()) {
            cbor = Cbor::new(feed);
            &mut cbor
        } else {
            json = Json::new(feed);
            &mut json
        };
        let mut state = State::default();
        let read = match kind {
            Kind::Profile => document::read(pull, &mut state),
            _ => companions::read(pull, &mut state, kind, group(input.file_name())),
        };
        match read {
            Ok(()) => {}
            Err(error) if error.is_cancelled() => return Err(error),
            Err(DecodeError::Damaged { what, offset }) => {
                context.reporter.warn(format!("Only the part before is shown: {what}"), Some(offset));
            }
            Err(error) => return Err(error),
        }
        variables::fill_tiles(&mut state);
        let (tiles, facts) = state.finish(context.reporter);
        if tiles.is_none() && facts.is_empty() {
            return Err(DecodeError::Empty("a Poplar file with nothing in it that is known".to_owned()));
        }
        Ok(profile(tiles, facts, context.reporter))
    }
}

/// What a small file's facts are listed under.
fn group(file_name: &str) -> &str {
    file_name.trim_end_matches(".gz").trim_end_matches(".json").trim_end_matches(".cbor")
}

/// A profile of what was found.
fn profile(tiles: Option<TileMemory>, facts: Vec<Fact>, reporter: &Reporter) -> Profile {
    if let Some(tiles) = &tiles
        && tiles.must_fit().is_none()
    {
        let text = "There are no bytes by tile (memory.byTile), so nothing says what fits";
        reporter.warn_about(NoteCode::NoTileBytes, text);
    }
    Profile { device: tiles.as_ref().map(device).unwrap_or_default(), tiles, facts, ..Profile::default() }
}

/// The device of a target.
fn device(tiles: &TileMemory) -> Device {
    let target = &tiles.target;
    let is_cpu = target.kind.as_deref() == Some("CPU");
    let generation = match (target.bytes_per_tile, target.tiles_per_ipu) {
        (Some(262_144), 1216) => Some("Mk1"),
        (Some(638_976), 1472) => Some("Mk2"),
        _ => None,
    };
    let model = if target.kind.as_deref() == Some("IPU_MODEL") { " (model)" } else { "" };
    let name = match (is_cpu, generation, target.ipus) {
        (true, ..) => "CPU".to_owned(),
        (_, Some(generation), 1) => format!("{generation} IPU{model}"),
        (_, Some(generation), ipus) => format!("{ipus} × {generation} IPU{model}"),
        (_, None, 1) => format!("IPU{model}"),
        (_, None, ipus) => format!("{ipus} × IPU{model}"),
    };
    Device {
        name: Some(name),
        kind: Some(if is_cpu { DeviceKind::Cpu } else { DeviceKind::Ipu }),
        evidence: target.evidence.clone().or_else(|| Some("it is a Poplar profile".to_owned())),
        ..Device::default()
    }
}
