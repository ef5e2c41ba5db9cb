//! Profiles of Poplar, Graphcore's software for the IPU: graph and execution profiles as JSON or CBOR, lowered
//! variables, `profile.pop` and its cache (SQLite), and the small files beside them.
//!
//! The layout follows the documentation, as no genuine memory profile was available. Undocumented keys are accepted but
//! never required; unknown ones are named in a note.

mod cbor;
mod companions;
mod device;
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
use device::profile_of;
pub use join::{check_cache, join};
use json::Json;
use pull::{Feed, Pull};
use recognise::Kind;
pub use report::{is_report_file, number_of, rank, report_files};
pub use sql::{SqlDecoder, TileVariable, step_ids, variables_of_tile};
use state::State;

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::Profile;
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
                context.reporter.damaged(format!("Only the part before is shown: {what}"), Some(offset));
            }
            Err(error) => return Err(error),
        }
        variables::fill_tiles(&mut state);
        let (tiles, facts) = state.finish(context.reporter);
        if tiles.is_none() && facts.is_empty() {
            return Err(DecodeError::Empty("a Poplar file without any known content".to_owned()));
        }
        Ok(profile_of(tiles, facts, context.reporter))
    }
}

/// Group under which a small file's facts are listed.
fn group(file_name: &str) -> &str {
    file_name.trim_end_matches(".gz").trim_end_matches(".json").trim_end_matches(".cbor")
}
