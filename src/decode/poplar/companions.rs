//! The small files beside a Poplar profile: framework and application settings, `profile_info.json`,
//! `tile_mapping.json`, `archive_info.json`, `debug.cbor`.

use std::collections::BTreeMap;

use super::pull::{Pull, Result, Token, elements, members};
use super::recognise::Kind;
use super::rows::MAX_TILES;
use super::state::State;
use super::values::facts;

/// Strings of `stringTable` that are kept.
const MAX_STRINGS: usize = 200_000;

/// Tensors of a tile mapping that are kept, largest first.
const MAX_TENSORS: usize = 200;

/// Reads one of them.
///
/// # Errors
/// If the input is damaged or ends early; what was read until then is in the state.
pub fn read(pull: &mut dyn Pull, state: &mut State, kind: Kind, group: &str) -> Result<()> {
    match pull.next()? {
        Token::BeginObject => match kind {
            Kind::Debug => debug(pull, state),
            Kind::TileMapping => tile_mapping(pull, state),
            Kind::ArchiveInfo => members(pull, &mut |pull, key, first| {
                if key != "max_tile_memory" || first != Token::BeginArray {
                    return pull.skip_rest(first);
                }
                let mut row = Vec::new();
                let result = pull.row(&mut row, MAX_TILES).map(|_| ());
                let most = row.iter().max().copied().unwrap_or(0);
                state.fact(group, key, format!("{} tiles, at most {most} B", row.len()));
                result
            }),
            _ => facts(pull, state, group, "", 0),
        },
        first => pull.skip_rest(first),
    }
}

/// `debug.cbor`: contexts with layer, category and source place. Counted by layer and by place.
fn debug(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    let mut layers: BTreeMap<String, u64> = BTreeMap::new();
    let mut places: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut strings: Vec<String> = Vec::new();
    let mut contexts = 0u64;
    let result = members(pull, &mut |pull, key, first| match (key, first) {
        ("contexts", Token::BeginArray) => elements(pull, &mut |pull, _, first| {
            if first != Token::BeginObject {
                return pull.skip_rest(first);
            }
            contexts += 1;
            members(pull, &mut |pull, key, first| match (key, first) {
                ("layer", Token::Text) => {
                    if layers.len() < 64 {
                        *layers.entry(pull.text().chars().take(80).collect()).or_default() += 1;
                    }
                    Ok(())
                }
                ("location", Token::BeginObject) => {
                    let (mut file, mut line) = (None, None);
                    members(pull, &mut |pull, key, first| {
                        match key {
                            "fileName" => file = first.whole(),
                            "lineNumber" => line = first.whole(),
                            _ => {}
                        }
                        pull.skip_rest(first)
                    })?;
                    if let (Some(file), Some(line)) = (file, line)
                        && places.len() < MAX_STRINGS
                    {
                        *places.entry((file, line)).or_default() += 1;
                    }
                    Ok(())
                }
                (_, other) => pull.skip_rest(other),
            })
        }),
        ("stringTable", Token::BeginArray) => elements(pull, &mut |pull, _, first| {
            if strings.len() < MAX_STRINGS {
                let text = if first == Token::Text { state.name(pull.text()) } else { String::new() };
                strings.push(text);
            }
            pull.skip_rest(first)
        }),
        (_, other) => pull.skip_rest(other),
    });
    state.fact("debug", "contexts", contexts.to_string());
    for (layer, count) in layers {
        state.fact("debug", &format!("layer {layer}"), format!("{count} contexts"));
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|&(place, count)| (std::cmp::Reverse(count), place));
    for ((file, line), count) in places.into_iter().take(50) {
        if let Some(file) = strings.get(file as usize) {
            state.fact("debug", &format!("{file}:{line}"), format!("{count} contexts"));
        }
    }
    result
}

/// `tile_mapping.json`: the tiles of each tensor of a computation. Keeps the number of tiles and the largest share on
/// one.
fn tile_mapping(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    let mut tensors: Vec<(u64, String, String)> = Vec::new();
    let result = members(pull, &mut |pull, key, first| {
        if key != "mappings" || first != Token::BeginObject {
            return pull.skip_rest(first);
        }
        members(pull, &mut |pull, computation, first| {
            if first != Token::BeginArray {
                return pull.skip_rest(first);
            }
            let computation = computation.to_owned();
            elements(pull, &mut |pull, _, first| {
                if first != Token::BeginArray {
                    return pull.skip_rest(first);
                }
                if let Some((elements, text)) = tensor(pull)? {
                    let at = tensors.partition_point(|tensor| tensor.0 >= elements);
                    if at < MAX_TENSORS {
                        tensors.insert(at, (elements, computation.clone(), text));
                        tensors.truncate(MAX_TENSORS);
                    }
                }
                Ok(())
            })
        })
    });
    for (_, computation, text) in tensors {
        state.fact("tile mapping", &computation, text);
    }
    result
}

/// `[instruction, output, shape, type, constants, aliases, elements, [[tile, elements]…], name]`.
fn tensor(pull: &mut dyn Pull) -> Result<Option<(u64, String)>> {
    let (mut name, mut count, mut dtype) = (String::new(), 0u64, String::new());
    let (mut tiles, mut most) = (0u64, (0u64, 0u64));
    elements(pull, &mut |pull, index, first| match (index, first) {
        (0, Token::Text) => {
            name = pull.text().chars().take(200).collect();
            Ok(())
        }
        (3, Token::Text) => {
            dtype = pull.text().chars().take(40).collect();
            Ok(())
        }
        (6, first) => {
            count = first.whole().unwrap_or(0);
            pull.skip_rest(first)
        }
        (7, Token::BeginArray) => elements(pull, &mut |pull, _, first| {
            if first != Token::BeginArray {
                return pull.skip_rest(first);
            }
            let mut pair = Vec::new();
            pull.row(&mut pair, 2)?;
            if let [tile, elements] = pair[..] {
                tiles += 1;
                if elements > most.1 {
                    most = (tile, elements);
                }
            }
            Ok(())
        }),
        (_, other) => pull.skip_rest(other),
    })?;
    if name.is_empty() {
        return Ok(None);
    }
    Ok(Some((count, format!("{name}: {count} × {dtype} on {tiles} tiles, at most {} on tile {}", most.1, most.0))))
}
