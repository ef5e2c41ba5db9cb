//! The trees of Poplar's reports: graph profile, execution profile, both together, or lowered variables. They are told
//! apart by their keys, in any order.

use super::memory;
use super::pull::{Pull, Result, Token, elements, members};
use super::rows::{MAX_TILES, RowFolder};
use super::state::State;
use super::values::{fact, facts, names, unknown};
use super::{execution, variables};
use crate::model::TileProgram;

/// Programs beyond this number are left out.
const MAX_PROGRAMS: usize = 2 << 20;

/// Reads a whole document.
///
/// # Errors
/// When the input is damaged or ends early; what was read until then is in the state.
pub fn read(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    match pull.next()? {
        Token::BeginObject => members(pull, &mut |pull, key, first| root_member(pull, state, key, first)),
        first => pull.skip_rest(first),
    }
}

fn root_member(pull: &mut dyn Pull, state: &mut State, key: &str, first: Token) -> Result<()> {
    match (key, first) {
        ("graphProfile" | "executionProfile" | "graph_profile" | "execution_profile", Token::BeginObject) => {
            members(pull, &mut |pull, key, first| tree_member(pull, state, key, first))
        }
        _ => tree_member(pull, state, key, first),
    }
}

fn tree_member(pull: &mut dyn Pull, state: &mut State, key: &str, first: Token) -> Result<()> {
    match (key, first) {
        ("target", Token::BeginObject) => members(pull, &mut |pull, key, first| target(pull, state, key, first)),
        ("graph", Token::BeginObject) => facts(pull, state, "graph", "", 0),
        ("optimizationInfo" | "optimisationInfo", Token::BeginObject) => facts(pull, state, "optimisation", "", 0),
        ("vertexTypes", Token::BeginObject) => members(pull, &mut |pull, key, first| match (key, first) {
            ("names", Token::BeginArray) => {
                let mut list = Vec::new();
                names(pull, state, &mut list)?;
                state.vertex_names = list;
                Ok(())
            }
            ("sizes", Token::BeginArray) => pull.row(&mut state.vertex_sizes, MAX_TILES).map(|_| ()),
            _ => unknown(pull, state, &format!("vertexTypes.{key}"), first),
        }),
        ("computeSets", Token::BeginObject) => {
            members(pull, &mut |pull, key, first| compute_sets(pull, state, key, first))
        }
        ("exchanges", Token::BeginObject) => exchanges(pull, state, 0),
        ("externalExchanges" | "globalExchanges", Token::BeginObject) => exchanges(pull, state, 1),
        ("hostExchanges", Token::BeginObject) => exchanges(pull, state, 2),
        ("programs", Token::BeginArray) => programs(pull, state),
        ("memory", Token::BeginObject) => memory::read(pull, state),
        _ if execution::knows(key) => execution::member(pull, state, key, first),
        _ if variables::knows(key) => variables::member(pull, state, key, first),
        _ => unknown(pull, state, key, first),
    }
}

fn target(pull: &mut dyn Pull, state: &mut State, key: &str, first: Token) -> Result<()> {
    match key {
        "type" if first == Token::Text => state.target_kind = Some(state.name(pull.text())),
        "numIPUs" => state.ipus = first.whole().or(state.ipus),
        "tilesPerIPU" | "tilesPerIpu" => state.tiles_per_ipu = first.whole().or(state.tiles_per_ipu),
        "numTiles" => state.tiles = first.whole().or(state.tiles),
        "bytesPerTile" => state.bytes_per_tile = first.whole().or(state.bytes_per_tile),
        "clockFrequency" => {
            state.clock_hz = match first {
                Token::Whole(value) => Some(value as f64),
                Token::Real(value) => Some(value),
                _ => state.clock_hz,
            };
        }
        "physicalTileIds" | "physicalTiles" if first == Token::BeginArray => {
            let mut row = Vec::new();
            pull.row(&mut row, MAX_TILES)?;
            state.physical = Some(row.into_iter().map(|id| u32::try_from(id).unwrap_or(u32::MAX)).collect());
            return Ok(());
        }
        _ => return fact(pull, state, "target", key, first, 0),
    }
    pull.skip_rest(first)
}

fn compute_sets(pull: &mut dyn Pull, state: &mut State, key: &str, first: Token) -> Result<()> {
    match (key, first) {
        ("names", Token::BeginArray) => {
            let mut list = Vec::new();
            names(pull, state, &mut list)?;
            state.compute_set_names = list;
            Ok(())
        }
        ("estimatedCyclesByTile", _) => state.compute_sets.read(pull, first, "estimatedCycles", false),
        ("vertexCounts", _) => state.compute_sets.read(pull, first, "vertices", false),
        ("vertexTypes", _) => pull.skip_rest(first),
        _ => unknown(pull, state, &format!("computeSets.{key}"), first),
    }
}

fn exchanges(pull: &mut dyn Pull, state: &mut State, kind: usize) -> Result<()> {
    members(pull, &mut |pull, key, first| {
        let (part, counts) = match key {
            "codeBytesByTile" => ("codeBytes", true),
            "bytesReceivedByTile" => ("bytesReceived", false),
            "bytesSentByTile" => ("bytesSent", false),
            "estimatedCyclesByTile" => ("estimatedCycles", false),
            _ => return unknown(pull, state, &format!("exchanges.{key}"), first),
        };
        let Some(folder) = state.exchanges.get_mut(kind) else { return pull.skip_rest(first) };
        folder.get_or_insert_with(RowFolder::of_one_array).read(pull, first, part, counts)
    })
}

fn programs(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    let mut by_type_name = false;
    elements(pull, &mut |pull, index, first| {
        let mut program = TileProgram::default();
        let result = if first == Token::BeginObject {
            members(pull, &mut |pull, key, first| match (key, first) {
                ("type", Token::Text) => {
                    program.kind = state.name(pull.text());
                    Ok(())
                }
                ("name", Token::Text) => {
                    program.name = state.name(pull.text());
                    Ok(())
                }
                ("children", Token::BeginArray) => {
                    let mut row = Vec::new();
                    let result = pull.row(&mut row, MAX_PROGRAMS).map(|_| ());
                    program.children = row.into_iter().map(|id| u32::try_from(id).unwrap_or(u32::MAX)).collect();
                    result
                }
                (_, Token::Whole(value)) => {
                    // The payload keys are not documented: accept any number of a program.
                    if program.payload.is_none() || is_payload(key) {
                        program.payload = Some((state.name(key), value));
                    }
                    Ok(())
                }
                (_, Token::BeginObject) => {
                    by_type_name |= key.starts_with(char::is_uppercase);
                    pull.skip_open()
                }
                (_, other) => pull.skip_rest(other),
            })
        } else {
            pull.skip_rest(first)
        };
        if index < MAX_PROGRAMS {
            state.programs.push(program);
        }
        result
    })?;
    if by_type_name && state.programs.iter().all(|program| program.kind.is_empty()) {
        state.programs.clear();
        state.unknown("programs", "a dumpProgram tree, which has no memory");
    }
    Ok(())
}

fn is_payload(key: &str) -> bool {
    matches!(key.to_ascii_lowercase().as_str(), "computeset" | "exchange" | "count" | "target" | "callee")
}
