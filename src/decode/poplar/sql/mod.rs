//! `profile.pop` and `profile.pop_cache`: SQLite files. Opened read-only and immutable, so no journal is written and
//! locks do not matter; totals are computed in SQL without loading the rows; tables are looked up, not assumed.

mod cache;
mod schema;
mod tables;

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::device::profile_of;
use super::state::State;
use crate::decode::{Context, DecodeError, Decoder, Family, Reads, Reporter};
use crate::model::Profile;
use crate::source::{Input, Packing, Progress, Stage};
pub use cache::step_ids;
use schema::Schema;
pub use tables::{TileVariable, variables_of_tile};

/// First bytes of every SQLite file.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// Poplar's SQLite files.
#[derive(Debug)]
pub struct SqlDecoder;

impl Decoder for SqlDecoder {
    fn format(&self) -> &'static str {
        "Poplar profile.pop"
    }

    fn reads(&self) -> Reads {
        Reads { family: Family::Poplar, words: "Poplar report of an IPU", patterns: &["*.pop", "*.pop_cache"] }
    }

    fn recognises(&self, input: &Input) -> bool {
        input.head().starts_with(MAGIC)
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        context.progress.begin(Stage::Decoding, 0);
        say_journals(input, context.reporter);
        let connection = open(input, context.progress, context.reporter)?;
        let schema = Schema::read(&connection).map_err(|error| damaged(&error))?;
        let mut state = State::default();
        header_facts(input.head(), &mut state);
        let mut known = tables::read(&connection, &schema, &mut state, context)?;
        known.extend(cache::read(&connection, &schema, &mut state, context)?);
        if known.is_empty() {
            let names: Vec<&str> = schema.tables.iter().take(12).map(|table| table.name.as_str()).collect();
            let has =
                if names.is_empty() { "no tables".to_owned() } else { format!("the tables {}", names.join(", ")) };
            return Err(DecodeError::NotAProfile(format!("an SQLite file, but not one of Poplar's: it has {has}")));
        }
        let unknown: Vec<String> = schema
            .tables
            .iter()
            .filter(|table| !known.contains(&table.name))
            .map(|table| format!("{} ({} rows: {})", table.name, table.rows, table.columns.join(", ")))
            .collect();
        if !unknown.is_empty() {
            context.reporter.info(format!("Tables not understood: {}", unknown.join("; ")));
        }
        for table in &schema.tables {
            let columns = table.columns.join(", ");
            state.fact("schema", &table.name, format!("{} rows: {columns}", table.rows));
        }
        let (tiles, facts) = state.finish(context.reporter);
        Ok(profile_of(tiles.filter(|tiles| tiles.tile_count() > 0), facts, context.reporter))
    }
}

/// A journal next to the file means that its writer has not finished, or crashed.
fn say_journals(input: &Input, reporter: &Reporter) {
    let Some(path) = input.path() else { return };
    for suffix in ["-journal", "-wal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        let beside = Path::new(&name);
        if beside.metadata().is_ok_and(|data| data.len() > 0) {
            reporter.warn(
                format!(
                    "{} lies beside it: whoever wrote the profile has not finished, or died; shown is what the file \
                     itself holds, which may be half of it",
                    beside.file_name().unwrap_or_default().to_string_lossy()
                ),
                None,
            );
        }
    }
}

/// Most missing bytes that are replaced by empty pages.
const MAX_MISSING: u64 = 1 << 30;

/// The file size according to the header, in bytes; 0 if unknown.
fn whole_size(head: &[u8]) -> u64 {
    let number = |at: usize| {
        head.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
    };
    // The number of pages counts only where it was written with the last change.
    if number(24) == number(92) { u64::from(page_size(head)) * u64::from(number(28)) } else { 0 }
}

/// Bytes of a page.
fn page_size(head: &[u8]) -> u32 {
    match head.get(16..18).map_or(0, |bytes| u32::from(bytes[0]) << 8 | u32::from(bytes[1])) {
        1 => 65_536,
        size => size,
    }
}

/// Bytes by which an uncompressed file is shorter than its header states.
fn missing_bytes(input: &Input) -> u64 {
    if input.packing() == Packing::None { whole_size(input.head()).saturating_sub(input.size()) } else { 0 }
}

/// Opens the database for reading.
fn open(input: &Input, progress: &Progress, reporter: &Reporter) -> Result<Connection, DecodeError> {
    let missing = missing_bytes(input);
    let connection = match (input.path(), input.packing()) {
        (Some(path), Packing::None) if missing == 0 => open_path(path).map_err(|error| damaged(&error))?,
        _ => {
            let bytes = input.load(progress)?;
            let missing = whole_size(input.head()).saturating_sub(bytes.len() as u64);
            let mut connection = Connection::open_in_memory().map_err(|error| damaged(&error))?;
            if missing > 0 {
                let inside = format!("a table, {missing} bytes early; what lies there is shown in part or not at all");
                reporter.truncated(&inside, bytes.len() as u64);
            }
            // SQLite refuses a file that is shorter than it says; empty pages in place of the missing ones stop it
            // only where it needs them.
            let missing = if missing <= MAX_MISSING { missing } else { 0 };
            let whole = bytes.len() + missing as usize;
            connection
                .deserialize_read_exact(rusqlite::MAIN_DB, (&bytes[..]).chain(std::io::repeat(0)), whole, true)
                .map_err(|error| damaged(&error))?;
            connection
        }
    };
    // Not trusting the file: no functions out of its schema, checks on every cell, a bounded cache.
    for pragma in ["trusted_schema = OFF", "cell_size_check = ON", "cache_size = -32768", "temp_store = MEMORY"] {
        let _ = connection.execute_batch(&format!("PRAGMA {pragma}"));
    }
    Ok(connection)
}

/// Opens a file read-only and immutable: no locks, no journal, nothing written.
fn open_path(path: &Path) -> rusqlite::Result<Connection> {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let mut uri = String::from("file:");
    for byte in absolute.to_string_lossy().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => uri.push(char::from(byte)),
            byte => {
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri.push_str("?mode=ro&immutable=1");
    Connection::open_with_flags(
        uri,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
}

/// Converts an SQLite error.
fn damaged(error: &rusqlite::Error) -> DecodeError {
    DecodeError::Damaged { what: format!("SQLite cannot read it: {error}"), offset: 0 }
}

/// Adds facts from the file header.
fn header_facts(head: &[u8], state: &mut State) {
    let number = |at: usize| {
        head.get(at..at + 4).and_then(|bytes| bytes.first_chunk::<4>()).map_or(0, |bytes| u32::from_be_bytes(*bytes))
    };
    state.fact("SQLite", "page size", page_size(head).to_string());
    state.fact("SQLite", "change counter", number(24).to_string());
    state.fact("SQLite", "user version", number(60).to_string());
    state.fact("SQLite", "application id", number(68).to_string());
}
