//! `memory` of a graph profile: by tile, by category, by vertex type, liveness.

use super::pull::{Pull, Result, Token, elements, members};
use super::rows::{MAX_TILES, RowFolder};
use super::state::State;
use super::values::unknown;
use crate::decode::DecodeError;
use crate::model::{TileCategory, TileColumn};

/// Categories beyond this number are left out: each is four columns.
const MAX_CATEGORIES: usize = 256;

/// Columns of `memory.byTile`.
const MAX_COLUMNS: usize = 32;

/// Nodes of the liveness forest.
const MAX_NODES: usize = 2 << 20;

/// Variables listed at nodes.
const MAX_STEP_VARIABLES: usize = 1 << 20;

/// Reads the object that has just begun.
///
/// # Errors
/// If the input is damaged or ends early.
pub fn read(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    members(pull, &mut |pull, key, first| match (key, first) {
        ("byTile", Token::BeginObject) => by_tile(pull, state),
        ("byCategory", Token::BeginObject) => by_category(pull, state),
        ("byVertexType", Token::BeginObject) => {
            by_row(pull, state, "memory.byVertexType", |state| &mut state.vertex_types)
        }
        ("byComputeSet", Token::BeginObject) => {
            by_row(pull, state, "memory.byComputeSet", |state| &mut state.compute_sets)
        }
        ("liveness", Token::BeginObject) => liveness(pull, state),
        _ => unknown(pull, state, &format!("memory.{key}"), first),
    })
}

/// Reads an array into a column even where it ends early.
fn column(pull: &mut dyn Pull, keep: &mut dyn FnMut(Vec<u64>)) -> Result<()> {
    let mut row = Vec::new();
    let result = pull.row(&mut row, MAX_TILES).map(|_| ());
    keep(row);
    result
}

fn by_tile(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    members(pull, &mut |pull, key, first| {
        if first != Token::BeginArray || state.by_tile.len() >= MAX_COLUMNS {
            return unknown(pull, state, &format!("memory.byTile.{key}"), first);
        }
        let name = state.name(key);
        let known =
            matches!(name.trim_end_matches("IncludingGaps"), "total" | "interleaved" | "nonInterleaved" | "overflowed");
        if !known {
            return unknown(pull, state, &format!("memory.byTile.{key}"), first);
        }
        column(pull, &mut |bytes| state.by_tile.push(TileColumn { name: name.clone(), bytes }))
    })
}

/// `category.region.overlap.[tile]`; any level may be missing.
fn by_category(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    members(pull, &mut |pull, key, first| {
        if state.categories.len() >= MAX_CATEGORIES {
            return unknown(pull, state, &format!("memory.byCategory.{key}"), first);
        }
        let mut category = TileCategory { name: state.name(key), ..TileCategory::default() };
        let result = category_part(pull, state, &mut category, key, first, 0);
        state.categories.push(category);
        result
    })
}

fn category_part(
    pull: &mut dyn Pull,
    state: &mut State,
    category: &mut TileCategory,
    path: &str,
    first: Token,
    depth: usize,
) -> Result<()> {
    let mut parts = path.split('.').skip(1);
    match first {
        Token::BeginObject if depth < 4 => members(pull, &mut |pull, key, first| {
            category_part(pull, state, category, &format!("{path}.{key}"), first, depth + 1)
        }),
        Token::BeginArray
            if parts.all(|part| {
                matches!(part, "interleaved" | "nonInterleaved" | "overflowed" | "nonOverlapped" | "overlapped")
            }) =>
        {
            let has = |wanted: &str| path.split('.').skip(1).any(|part| part == wanted);
            state.overlap_known |= has("overlapped") || has("nonOverlapped");
            column(pull, &mut |row| {
                if has("overlapped") {
                    add(&mut category.overlapped, &row);
                    return;
                }
                add(&mut category.bytes, &row);
                if has("interleaved") {
                    add(&mut category.interleaved, &row);
                } else if has("overflowed") {
                    add(&mut category.overflowed, &row);
                }
            })
        }
        _ => unknown(pull, state, &format!("memory.byCategory.{path}"), first),
    }
}

fn add(sums: &mut Vec<u64>, row: &[u64]) {
    if sums.len() < row.len() {
        sums.resize(row.len(), 0);
    }
    for (sum, bytes) in sums.iter_mut().zip(row) {
        *sum = sum.saturating_add(*bytes);
    }
}

/// The five arrays of rows by tiles that vertex types (and, it seems, compute sets) have.
fn by_row(pull: &mut dyn Pull, state: &mut State, path: &str, table: fn(&mut State) -> &mut RowFolder) -> Result<()> {
    members(pull, &mut |pull, key, first| {
        let part = match key {
            "codeBytes" => "codeBytes",
            "vertexDataBytes" => "vertexDataBytes",
            "descriptorBytes" => "descriptorBytes",
            "edgePtrBytes" => "edgePtrBytes",
            "copyPtrBytes" => "copyPtrBytes",
            "paddingBytes" => "paddingBytes",
            _ => return unknown(pull, state, &format!("{path}.{key}"), first),
        };
        table(state).read(pull, first, part, true)
    })
}

fn liveness(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    members(pull, &mut |pull, key, first| match (key, first) {
        ("alwaysLive", Token::BeginObject) => members(pull, &mut |pull, key, first| match (key, first) {
            ("bytesByTile", Token::BeginArray) => column(pull, &mut |row| state.always_live = Some(row)),
            ("variables", Token::BeginArray) => {
                let mut list = Vec::new();
                let result = variables(pull, state, &mut |_, name, bytes| list.push((name, bytes)));
                state.liveness.always_live_variables = list;
                result
            }
            _ => unknown(pull, state, &format!("memory.liveness.alwaysLive.{key}"), first),
        }),
        ("notAlwaysLive", Token::BeginObject) => members(pull, &mut |pull, key, first| match (key, first) {
            ("maxBytesByTile", Token::BeginArray) => column(pull, &mut |row| state.not_always_live_max = Some(row)),
            ("byProgram", Token::BeginArray) => forest(pull, state),
            _ => unknown(pull, state, &format!("memory.liveness.notAlwaysLive.{key}"), first),
        }),
        _ => unknown(pull, state, &format!("memory.liveness.{key}"), first),
    })
}

/// A list of variables: objects with a name and a size, by whichever of the plausible keys.
fn variables(
    pull: &mut dyn Pull,
    state: &mut State,
    keep: &mut dyn FnMut(&State, crate::model::StringId, u64),
) -> Result<()> {
    let mut kept = 0;
    elements(pull, &mut |pull, _, first| {
        if first != Token::BeginObject {
            return pull.skip_rest(first);
        }
        let (mut name, mut bytes) = (String::new(), None);
        members(pull, &mut |pull, key, first| {
            match (key, first) {
                ("name", Token::Text) => name = state.name(pull.text()),
                ("size" | "sizeBytes" | "bytes", first) => bytes = first.whole(),
                _ => {}
            }
            pull.skip_rest(first)
        })?;
        if let Some(bytes) = bytes
            && kept < MAX_STEP_VARIABLES
        {
            kept += 1;
            let name = state.liveness.strings.intern(&name);
            keep(state, name, bytes);
        }
        Ok(())
    })
}

/// The forest of program visits. Its depth is the program's, so the path is kept on the heap.
fn forest(pull: &mut dyn Pull, state: &mut State) -> Result<()> {
    /// An open list of nodes (none), or an open node.
    type Open = Option<usize>;
    let mut open: Vec<Open> = vec![None];
    while let Some(&inside) = open.last() {
        let token = pull.next()?;
        match (inside, token) {
            (_, Token::End) => return Ok(()),
            (None, Token::BeginObject) => {
                if state.liveness.nodes.len() >= MAX_NODES {
                    return Err(DecodeError::Damaged {
                        what: format!("more than {MAX_NODES} steps of liveness"),
                        offset: pull.offset(),
                    });
                }
                let depth = open.iter().filter(|entry| entry.is_some()).count() as u32;
                let node = state.push_node(depth);
                open.push(Some(node));
            }
            (None, Token::EndArray) | (Some(_), Token::EndObject) => {
                open.pop();
            }
            (Some(node), Token::Key) => {
                let key = pull.text().to_owned();
                let first = pull.next()?;
                if node_member(pull, state, node, &key, first)? {
                    open.push(None);
                }
            }
            (_, other) => pull.skip_rest(other)?,
        }
    }
    Ok(())
}

/// Returns whether the value is the list of children, which has only begun.
fn node_member(pull: &mut dyn Pull, state: &mut State, node: usize, key: &str, first: Token) -> Result<bool> {
    match (key, first) {
        ("children", Token::BeginArray) => return Ok(true),
        ("bytes", first) => state.liveness.nodes[node].bytes = first.whole().unwrap_or(0),
        ("program" | "programId" | "id", Token::Whole(id)) => {
            state.liveness.nodes[node].program = u32::try_from(id).unwrap_or(u32::MAX);
        }
        ("name" | "program", Token::Text) => {
            let name = state.name(pull.text());
            state.liveness.nodes[node].name = state.liveness.strings.intern(&name);
        }
        ("variables", Token::BeginArray) => {
            let mut list = Vec::new();
            let room = MAX_STEP_VARIABLES.saturating_sub(state.liveness.variables.len());
            let result = variables(pull, state, &mut |_, name, bytes| {
                if list.len() < room {
                    list.push((node as u32, name, bytes));
                }
            });
            state.liveness.variables.append(&mut list);
            return result.map(|()| false);
        }
        _ => {
            unknown(pull, state, &format!("memory.liveness.notAlwaysLive.byProgram.{key}"), first)?;
            return Ok(false);
        }
    }
    pull.skip_rest(first)?;
    Ok(false)
}
