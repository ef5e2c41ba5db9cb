//! Reads the known tables of `profile.pop`: bytes by tile and category, programs, runs; the variables of a tile.

use std::path::Path;

use rusqlite::Connection;

use super::schema::{Schema, Table, plain, quoted};
use super::{damaged, open_path};
use crate::decode::poplar::rows::MAX_TILES;
use crate::decode::poplar::state::State;
use crate::decode::{Context, DecodeError, Reporter};
use crate::model::{ExecutionProfile, TileCategory, TileColumn, TileProgram};
use crate::source::Stage;

/// Rows summed by one query; cancellation is checked between queries.
const CHUNK: u64 = 1 << 20;

/// Programs kept.
const MAX_PROGRAMS: usize = 2 << 20;

/// Categories kept.
const MAX_CATEGORIES: usize = 256;

/// Reads what is known; returns the names of the tables that were understood.
///
/// # Errors
/// When it was cancelled. What cannot be read goes to the reporter.
pub fn read(
    connection: &Connection,
    schema: &Schema,
    state: &mut State,
    context: Context<'_>,
) -> Result<Vec<String>, DecodeError> {
    let mut known = Vec::new();
    let reporter = context.reporter;
    target(connection, schema, state);
    let mut only_total = false;
    if let Some(table) = schema.table("memory_by_tile") {
        known.push(table.name.clone());
        only_total = attempt(memory_by_tile(connection, table, state), table, reporter).unwrap_or(false);
    }
    let categories = schema.table("var_categories");
    let mut sums = None;
    if let Some(table) = schema.table("vars_info") {
        known.push(table.name.clone());
        known.extend(categories.map(|table| table.name.clone()));
        known.extend(schema.table("vars_string_table").map(|table| table.name.clone()));
        sums = by_category(connection, table, categories, state, context)?;
    }
    if only_total {
        name_the_total(state, sums.as_deref(), reporter);
    }
    if let Some(table) = schema.table("programs") {
        known.push(table.name.clone());
        attempt(programs(connection, table, state), table, reporter);
    }
    if let Some(table) = schema.table("compute_sets") {
        known.push(table.name.clone());
        attempt(compute_sets(connection, table, state), table, reporter);
    }
    if let Some(table) = schema.table("steps") {
        known.push(table.name.clone());
        attempt(steps(connection, table, state), table, reporter);
    }
    if !known.is_empty() {
        let live: Vec<&str> = schema
            .tables
            .iter()
            .map(|table| table.name.as_str())
            .filter(|name| plain(name).contains("live") || plain(name).contains("equivalence"))
            .collect();
        reporter.info(if live.is_empty() {
            "This file has no liveness in a known form, so memory by step is not shown".to_owned()
        } else {
            format!("Liveness is probably in {}, whose layout is unknown", live.join(", "))
        });
    }
    Ok(known)
}

/// The result, or a note on what cannot be read.
fn attempt<T>(result: rusqlite::Result<T>, table: &Table, reporter: &Reporter) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(error) => {
            reporter.damaged(format!("The table {} cannot be read to its end: {error}", table.name), None);
            None
        }
    }
}

/// A non-negative number of a row.
fn whole(row: &rusqlite::Row<'_>, column: usize) -> u64 {
    match row.get_ref(column) {
        Ok(rusqlite::types::ValueRef::Integer(value)) => u64::try_from(value).unwrap_or(0),
        Ok(rusqlite::types::ValueRef::Real(value)) if value > 0.0 => value as u64,
        _ => 0,
    }
}

/// A text of a row, cut.
fn text(row: &rusqlite::Row<'_>, column: usize, state: &mut State) -> String {
    match row.get_ref(column) {
        Ok(rusqlite::types::ValueRef::Text(bytes)) => state.name(&String::from_utf8_lossy(bytes)),
        Ok(rusqlite::types::ValueRef::Integer(value)) => value.to_string(),
        _ => String::new(),
    }
}

/// Reads the small tables that describe the machine, found by column name.
fn target(connection: &Connection, schema: &Schema, state: &mut State) {
    for table in schema.tables.iter().filter(|table| (1..=4).contains(&table.rows)) {
        for column in &table.columns {
            let sql = format!("SELECT {} FROM {} LIMIT 1", quoted(column), quoted(&table.name));
            let number = || connection.query_row(&sql, [], |row| Ok(whole(row, 0))).ok().filter(|&value| value > 0);
            match plain(column).as_str() {
                "bytespertile" => state.bytes_per_tile = number().or(state.bytes_per_tile),
                "tilesperipu" => state.tiles_per_ipu = number().or(state.tiles_per_ipu),
                "numipus" => state.ipus = number().or(state.ipus),
                "clockfrequency" => state.clock_hz = number().map(|hz| hz as f64).or(state.clock_hz),
                _ => {}
            }
        }
    }
}

/// Reads bytes by tile. Returns whether there is only one total and it is unknown whether it includes gaps.
fn memory_by_tile(connection: &Connection, table: &Table, state: &mut State) -> rusqlite::Result<bool> {
    let including = table.column_where(|name| name.contains("gap") && name.contains("incl"));
    let excluding = table
        .column_where(|name| name.contains("gap") && (name.contains("excl") || name.contains("without")))
        .or_else(|| table.column(&["total", "total_bytes", "bytes"]));
    let mut wanted: Vec<(String, &str)> = Vec::new();
    wanted.extend(including.map(|column| ("totalIncludingGaps".to_owned(), column)));
    wanted.extend(excluding.map(|column| ("total".to_owned(), column)));
    for (name, columns) in [
        ("interleaved", ["interleaved", "interleaved_bytes"]),
        ("nonInterleaved", ["non_interleaved", "non_interleaved_bytes"]),
        ("overflowed", ["overflowed", "overflowed_bytes"]),
        ("alwaysLive", ["always_live", "always_live_bytes"]),
    ] {
        wanted.extend(table.column(&columns).map(|column| (name.to_owned(), column)));
    }
    let tile = table.column(&["tile", "tile_id", "id"]).map_or_else(|| "rowid - 1".to_owned(), quoted);
    let list: Vec<String> = wanted.iter().map(|(_, column)| quoted(column)).collect();
    let sql = format!(
        "SELECT {tile}{}{} FROM {}",
        if list.is_empty() { "" } else { ", " },
        list.join(", "),
        quoted(&table.name)
    );
    let mut columns: Vec<Vec<u64>> = vec![Vec::new(); wanted.len()];
    let mut query = connection.prepare(&sql)?;
    let mut rows = query.query([])?;
    // Rows read before any damage are kept.
    let result = loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break Ok(including.is_none()),
            Err(error) => break Err(error),
        };
        let tile = whole(row, 0) as usize;
        if tile >= MAX_TILES {
            continue;
        }
        for (at, column) in columns.iter_mut().enumerate() {
            if column.len() <= tile {
                column.resize(tile + 1, 0);
            }
            column[tile] = whole(row, at + 1);
        }
    };
    // A damaged table still says how many tiles there should be.
    if result.is_err() && state.tiles.is_none() && table.rows > 0 {
        state.tiles = Some(table.rows.min(MAX_TILES as u64));
    }
    for ((name, _), bytes) in wanted.into_iter().zip(columns) {
        if name == "alwaysLive" {
            state.always_live = Some(bytes);
        } else {
            state.by_tile.push(TileColumn { name, bytes });
        }
    }
    result
}

/// A lone total that never exceeds the sum of the variables cannot count gaps: variables that share addresses make
/// the sum larger, gaps make the total larger.
fn name_the_total(state: &mut State, sums: Option<&[u64]>, reporter: &Reporter) {
    let Some(column) = state.by_tile.iter_mut().find(|column| column.name == "total") else { return };
    let below = sums.is_some_and(|sums| {
        column.bytes.iter().enumerate().all(|(tile, &total)| total <= sums.get(tile).copied().unwrap_or(0))
    });
    if !below && sums.is_some() {
        column.name = "totalIncludingGaps".to_owned();
    }
    let meaning = if below || sums.is_none() { "without" } else { "with" };
    reporter.info(format!(
        "memory_by_tile has one total; compared with the variables of each tile it seems to count {meaning} gaps \
         (a guess)"
    ));
}

/// Bytes by tile and category: the sum of the variables' sizes. Returns the sums by tile.
fn by_category(
    connection: &Connection,
    table: &Table,
    categories: Option<&Table>,
    state: &mut State,
    context: Context<'_>,
) -> Result<Option<Vec<u64>>, DecodeError> {
    let (Some(tile), Some(size)) = (table.column(&["tile", "tile_id"]), table.column(&["size_bytes", "size", "bytes"]))
    else {
        return Ok(None);
    };
    let category = table.column(&["category", "category_id"]).map_or_else(|| "0".to_owned(), quoted);
    let mut names: Vec<(i64, String)> = Vec::new();
    if let Some(categories) = categories
        && let (Some(id), Some(name)) = (categories.column(&["id"]), categories.column(&["name", "string"]))
    {
        let sql = format!("SELECT {}, {} FROM {}", quoted(id), quoted(name), quoted(&categories.name));
        let list = connection.prepare(&sql).and_then(|mut query| {
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                if names.len() < MAX_CATEGORIES {
                    names.push((row.get(0).unwrap_or(-1), text(row, 1, state)));
                }
            }
            Ok(())
        });
        attempt(list, categories, context.reporter);
    }
    let mut columns: Vec<(i64, Vec<u64>)> = names.iter().map(|(id, _)| (*id, Vec::new())).collect();
    let sql = |range: &str| {
        format!(
            "SELECT {tile}, {category}, SUM({size}) FROM {} {range} GROUP BY 1, 2",
            quoted(&table.name),
            tile = quoted(tile),
            size = quoted(size)
        )
    };
    context.progress.begin(Stage::Decoding, table.rows);
    let mut from = 0u64;
    loop {
        let range =
            if table.has_rowid { format!("WHERE rowid >= {from} AND rowid < {}", from + CHUNK) } else { String::new() };
        let kept = columns.clone();
        let chunk = connection.prepare(&sql(&range)).and_then(|mut query| {
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let (tile, id, bytes) = (whole(row, 0) as usize, row.get::<_, i64>(1).unwrap_or(-1), whole(row, 2));
                if tile >= MAX_TILES {
                    continue;
                }
                let at = columns.iter().position(|(known, _)| *known == id).or_else(|| {
                    (columns.len() < MAX_CATEGORIES).then(|| {
                        columns.push((id, Vec::new()));
                        columns.len() - 1
                    })
                });
                let Some((_, column)) = at.and_then(|at| columns.get_mut(at)) else { continue };
                if column.len() <= tile {
                    column.resize(tile + 1, 0);
                }
                column[tile] = column[tile].saturating_add(bytes);
            }
            Ok(())
        });
        if attempt(chunk, table, context.reporter).is_none() {
            // A sum needs every row; reading one by one keeps those before the damage.
            columns = rows_until_damage(connection, table, (tile, &category, size), kept, from);
            break;
        }
        context.progress.advance(CHUNK.min(table.rows.saturating_sub(from)))?;
        from += CHUNK;
        if !table.has_rowid || from > table.rows {
            break;
        }
    }
    let mut sums: Vec<u64> = Vec::new();
    for (id, bytes) in columns {
        let name =
            names.iter().find(|(known, _)| *known == id).map_or_else(|| format!("category {id}"), |n| n.1.clone());
        if sums.len() < bytes.len() {
            sums.resize(bytes.len(), 0);
        }
        for (sum, bytes) in sums.iter_mut().zip(&bytes) {
            *sum = sum.saturating_add(*bytes);
        }
        state.categories.push(TileCategory { name, bytes, ..TileCategory::default() });
    }
    Ok(Some(sums))
}

/// Adds the rows from a row id on, one by one, up to the first that cannot be read.
fn rows_until_damage(
    connection: &Connection,
    table: &Table,
    (tile, category, size): (&str, &str, &str),
    mut columns: Vec<(i64, Vec<u64>)>,
    from: u64,
) -> Vec<(i64, Vec<u64>)> {
    let range = if table.has_rowid { format!("WHERE rowid >= {from}") } else { String::new() };
    let sql = format!("SELECT {}, {category}, {} FROM {} {range}", quoted(tile), quoted(size), quoted(&table.name));
    let Ok(mut query) = connection.prepare(&sql) else { return columns };
    let Ok(mut rows) = query.query([]) else { return columns };
    while let Ok(Some(row)) = rows.next() {
        let (tile, id, bytes) = (whole(row, 0) as usize, row.get::<_, i64>(1).unwrap_or(-1), whole(row, 2));
        let at = columns.iter().position(|(known, _)| *known == id);
        let Some((_, column)) = at.and_then(|at| columns.get_mut(at)).filter(|_| tile < MAX_TILES) else { continue };
        if column.len() <= tile {
            column.resize(tile + 1, 0);
        }
        column[tile] = column[tile].saturating_add(bytes);
    }
    columns
}

fn programs(connection: &Connection, table: &Table, state: &mut State) -> rusqlite::Result<()> {
    let column = |names: &[&str]| table.column(names).map_or_else(|| "NULL".to_owned(), quoted);
    let sql = format!(
        "SELECT {}, {}, {} FROM {}",
        column(&["id", "program"]),
        column(&["type", "kind"]),
        column(&["name"]),
        quoted(&table.name)
    );
    let mut query = connection.prepare(&sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let id = whole(row, 0) as usize;
        if id >= MAX_PROGRAMS {
            continue;
        }
        if state.programs.len() <= id {
            state.programs.resize(id + 1, TileProgram::default());
        }
        let (kind, name) = (text(row, 1, state), text(row, 2, state));
        state.programs[id].kind = kind;
        state.programs[id].name = name;
    }
    Ok(())
}

fn compute_sets(connection: &Connection, table: &Table, state: &mut State) -> rusqlite::Result<()> {
    let (Some(id), Some(name)) = (table.column(&["compute_set", "id"]), table.column(&["name"])) else { return Ok(()) };
    let sql = format!("SELECT {}, {} FROM {}", quoted(id), quoted(name), quoted(&table.name));
    let mut query = connection.prepare(&sql)?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let index = whole(row, 0) as usize;
        let name = text(row, 1, state);
        if let Some(row) = state.compute_sets.row_mut(index) {
            row.name = name;
        }
    }
    Ok(())
}

/// How often each program ran.
fn steps(connection: &Connection, table: &Table, state: &mut State) -> rusqlite::Result<()> {
    let Some(program) = table.column(&["program"]) else { return Ok(()) };
    let sql = format!("SELECT {0}, COUNT(*) FROM {1} GROUP BY 1", quoted(program), quoted(&table.name));
    let mut query = connection.prepare(&sql)?;
    let mut rows = query.query([])?;
    let mut execution = ExecutionProfile { executions: 1, ..ExecutionProfile::default() };
    while let Some(row) = rows.next()? {
        let (program, runs) = (whole(row, 0) as usize, whole(row, 1));
        execution.runs += runs;
        if program < MAX_PROGRAMS {
            if state.runs.len() <= program {
                state.runs.resize(program + 1, 0);
            }
            state.runs[program] = runs;
        }
    }
    if execution.runs > 0 {
        state.execution = Some(execution);
    }
    Ok(())
}

/// A lowered variable of one tile, as `profile.pop` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TileVariable {
    /// Name.
    pub name: String,
    /// Category.
    pub category: String,
    /// Bytes.
    pub bytes: u64,
}

/// The variables of one tile of a `profile.pop`, largest first, at most `limit`; read on demand.
///
/// # Errors
/// If the file cannot be read or has no table of variables.
pub fn variables_of_tile(path: &Path, tile: u32, limit: usize) -> Result<Vec<TileVariable>, DecodeError> {
    let connection = open_path(path).map_err(|error| damaged(&error))?;
    let schema = Schema::read(&connection).map_err(|error| damaged(&error))?;
    let table = schema.table("vars_info").ok_or_else(|| DecodeError::Empty("it has no table vars_info".to_owned()))?;
    let column = |names: &[&str]| table.column(names).map(quoted);
    let (Some(tile_column), Some(size)) = (column(&["tile", "tile_id"]), column(&["size_bytes", "size", "bytes"]))
    else {
        return Err(DecodeError::Empty("its table vars_info has no tile and size".to_owned()));
    };
    let name = column(&["name", "name_id", "string"]).unwrap_or_else(|| "NULL".to_owned());
    let category = column(&["category", "category_id"]).unwrap_or_else(|| "NULL".to_owned());
    let lookup = |table: &str, key: &str, value: &str, of: &str| match schema.table(table) {
        Some(table) => match (table.column(&[key]), table.column(&[value, "name", "string", "value"])) {
            (Some(key), Some(value)) => format!(
                "COALESCE((SELECT {} FROM {t} WHERE {t}.{} = v.{of}), v.{of})",
                quoted(value),
                quoted(key),
                t = quoted(&table.name)
            ),
            _ => format!("v.{of}"),
        },
        None => format!("v.{of}"),
    };
    let name = if name == "NULL" { name } else { lookup("vars_string_table", "id", "string", &name) };
    let category = if category == "NULL" { category } else { lookup("var_categories", "id", "name", &category) };
    let sql = format!(
        "SELECT {name}, {category}, v.{size} FROM {} v WHERE v.{tile_column} = ?1 ORDER BY 3 DESC LIMIT ?2",
        quoted(&table.name)
    );
    let mut names = State::default();
    let list = connection.prepare(&sql).and_then(|mut query| {
        let mut rows = query.query([i64::from(tile), i64::try_from(limit).unwrap_or(i64::MAX)])?;
        let mut list = Vec::new();
        while let Some(row) = rows.next()? {
            list.push(TileVariable {
                name: text(row, 0, &mut names),
                category: text(row, 1, &mut names),
                bytes: whole(row, 2),
            });
        }
        Ok(list)
    });
    list.map_err(|error| damaged(&error))
}
