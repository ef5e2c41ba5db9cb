//! The lowered-variables report: every variable of every tile, with its address.

use super::pull::{Pull, Result, Token, elements, members};
use super::rows::MAX_TILES;
use super::state::State;
use super::values::unknown;
use crate::model::{TileCategory, TileColumn, TileVariables};

/// Most categories that are distinguished.
const MAX_CATEGORIES: usize = 64;

/// Most variables that are kept; more are only counted.
const MAX_VARIABLES: usize = 2 << 20;

/// Whether a key of the root belongs to such a report.
pub fn knows(key: &str) -> bool {
    matches!(
        key,
        "numTiles"
            | "targetMemoryInfo"
            | "vars"
            | "equivalenceClassInterference"
            | "allocationOrderByTile"
            | "elementConstraints"
            | "equalAddressConstraints"
    )
}

/// Reads a member of the root.
///
/// # Errors
/// When the input is damaged or ends early.
pub fn member(pull: &mut dyn Pull, state: &mut State, key: &str, first: Token) -> Result<()> {
    match (key, first) {
        ("numTiles", first) => {
            state.tiles = first.whole().or(state.tiles);
            pull.skip_rest(first)
        }
        ("targetMemoryInfo", Token::BeginObject) => members(pull, &mut |pull, key, first| match (key, first) {
            ("tileMemory", first) => {
                state.bytes_per_tile = first.whole().or(state.bytes_per_tile);
                pull.skip_rest(first)
            }
            ("interleavedMemoryStart", first) => {
                state.interleaved_start = first.whole().or(state.interleaved_start);
                pull.skip_rest(first)
            }
            ("memoryElementOffsets", Token::BeginArray) => {
                state.variables.memory_elements.clear();
                pull.row(&mut state.variables.memory_elements, 4096).map(|_| ())
            }
            ("supervisorInstrFetchDelay", first) => {
                if let Some(bytes) = first.whole() {
                    state.fact("target", key, bytes.to_string());
                }
                pull.skip_rest(first)
            }
            _ => unknown(pull, state, &format!("targetMemoryInfo.{key}"), first),
        }),
        ("vars", Token::BeginArray) => elements(pull, &mut |pull, _, first| {
            if first == Token::BeginObject { variable(pull, state) } else { pull.skip_rest(first) }
        }),
        // Interference and allocation order are not needed.
        _ if knows(key) => pull.skip_rest(first),
        _ => unknown(pull, state, key, first),
    }
}

#[derive(Default)]
struct Variable {
    id: Option<u64>,
    tile: Option<u64>,
    name: String,
    category: String,
    bytes: u64,
    offset: Option<u64>,
    flags: u8,
}

fn variable(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    let mut found = Variable::default();
    members(pull, &mut |pull, key, first| match (key, first) {
        ("info", Token::BeginObject) => {
            members(pull, &mut |pull, key, first| field(pull, state, &mut found, key, first))
        }
        _ => field(pull, state, &mut found, key, first),
    })?;
    let columns = &mut state.variables;
    let Some(tile) = found.tile.filter(|&tile| tile < MAX_TILES as u64) else { return Ok(()) };
    if columns.len() >= MAX_VARIABLES {
        columns.left_out += 1;
        return Ok(());
    }
    columns.id.push(u32::try_from(found.id.unwrap_or(columns.len() as u64)).unwrap_or(u32::MAX));
    columns.tile.push(tile as u32);
    columns.name.push(columns.strings.intern(&found.name));
    columns.category.push(columns.strings.intern(&found.category));
    columns.bytes.push(found.bytes);
    columns.offset.push(found.offset.unwrap_or(u64::MAX));
    columns.flags.push(found.flags);
    Ok(())
}

fn field(pull: &mut dyn Pull, state: &mut State, found: &mut Variable, key: &str, first: Token) -> Result<()> {
    let mut flag = |bit: u8| {
        if first == Token::Bool(true) {
            found.flags |= bit;
        }
    };
    match key {
        "allocated" => flag(TileVariables::ALLOCATED),
        "alwaysLive" => flag(TileVariables::ALWAYS_LIVE),
        "isConstant" => flag(TileVariables::CONSTANT),
        "inInterleavedMem" => flag(TileVariables::INTERLEAVED),
        "executable" | "vertexCode" => flag(TileVariables::EXECUTABLE),
        "var" => found.id = first.whole(),
        "tile" => found.tile = first.whole(),
        "sizeBytes" => found.bytes = first.whole().unwrap_or(0),
        "offset" => found.offset = first.whole(),
        "name" if first == Token::Text => found.name = state.name(pull.text()),
        "category" if first == Token::Text => found.category = state.name(pull.text()),
        "alignment" | "lowest256KB" | "equivalenceClass" => {}
        _ => return unknown(pull, state, &format!("vars.{key}"), first),
    }
    pull.skip_rest(first)
}

/// Memory of each tile computed from its variables, for a report without other memory data: bytes by category (a sum of
/// sizes, as variables may share addresses), by region, always-live bytes, and the highest address used.
pub fn fill_tiles(state: &mut State) {
    if state.variables.is_empty() || !state.by_tile.is_empty() || state.variables.left_out > 0 {
        return;
    }
    let variables = &state.variables;
    let tiles = variables.tile.iter().max().map_or(0, |&tile| tile as usize + 1);
    let tiles = tiles.max(state.tiles.unwrap_or(0) as usize).min(MAX_TILES);
    let mut high = vec![0u64; tiles];
    let mut places: Vec<Vec<(u64, u64)>> = vec![Vec::new(); tiles];
    let mut unplaced = vec![0u64; tiles];
    let mut always_live: Option<Vec<u64>> = None;
    let mut categories: Vec<TileCategory> = Vec::new();
    let mut category_of: Vec<Option<usize>> = Vec::new();
    for row in 0..variables.len() {
        let (tile, bytes, offset) = (variables.tile[row] as usize, variables.bytes[row], variables.offset[row]);
        let is_placed = variables.flags[row] & TileVariables::ALLOCATED != 0 && offset != u64::MAX;
        if is_placed {
            let end = offset.saturating_add(bytes);
            high[tile] = high[tile].max(end);
            places[tile].push((offset, end));
        } else {
            add(&mut unplaced[tile], bytes);
        }
        if variables.flags[row] & TileVariables::ALWAYS_LIVE != 0 {
            add(&mut always_live.get_or_insert_with(|| vec![0; tiles])[tile], bytes);
        }
        let id = variables.category[row];
        let name = variables.strings.get(id);
        if name.is_empty() {
            continue;
        }
        if category_of.len() <= id.0 as usize {
            category_of.resize(id.0 as usize + 1, None);
        }
        let at = match category_of[id.0 as usize] {
            Some(at) => at,
            // Each category takes a number per tile, so limit how many a damaged file can create.
            None if categories.len() < MAX_CATEGORIES => {
                let empty = || vec![0; tiles];
                let (bytes, overlapped, interleaved, overflowed) = (empty(), empty(), empty(), empty());
                categories.push(TileCategory { name: name.to_owned(), bytes, overlapped, interleaved, overflowed });
                category_of[id.0 as usize] = Some(categories.len() - 1);
                categories.len() - 1
            }
            None => continue,
        };
        add(&mut categories[at].bytes[tile], bytes);
        if !is_placed {
            add(&mut categories[at].overflowed[tile], bytes);
        } else if variables.flags[row] & TileVariables::INTERLEAVED != 0 {
            add(&mut categories[at].interleaved[tile], bytes);
        }
    }
    let start = state.interleaved_start;
    let (mut below, mut above) = (vec![0u64; tiles], vec![0u64; tiles]);
    for (tile, places) in places.iter_mut().enumerate() {
        places.sort_unstable();
        let mut end = 0;
        for &mut (from, to) in places {
            let from = from.max(end);
            if to > from {
                // A variable that spans the start of the interleaved region counts in both.
                let cut = start.unwrap_or(u64::MAX).clamp(from, to);
                add(&mut below[tile], cut - from);
                add(&mut above[tile], to - cut);
            }
            end = end.max(to);
        }
    }
    let total = (0..tiles).map(|tile| below[tile].saturating_add(above[tile]).saturating_add(unplaced[tile])).collect();
    for (high, unplaced) in high.iter_mut().zip(&unplaced) {
        add(high, *unplaced);
    }
    let mut column = |name: &str, bytes: Vec<u64>| state.by_tile.push(TileColumn { name: name.to_owned(), bytes });
    column("total", total);
    column("totalIncludingGaps", high);
    if start.is_some() {
        column("nonInterleaved", below);
        column("interleaved", above);
        column("overflowed", unplaced);
    }
    if state.always_live.is_none() {
        state.always_live = always_live;
    }
    if state.categories.is_empty() {
        state.categories = categories;
    }
}

/// Adds without overflow.
fn add(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}
