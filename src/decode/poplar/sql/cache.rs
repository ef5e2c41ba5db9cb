//! `profile.pop_cache`: PopVision's cache of the execution trace. Contains no memory data.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::schema::{Schema, quoted};
use crate::decode::poplar::state::State;
use crate::decode::{Context, DecodeError};

/// Distinct steps that are counted.
const MAX_STEPS: usize = 4 << 20;

/// Reads the tables of the cache; returns their names.
///
/// # Errors
/// If it was cancelled. Whatever cannot be read goes to the reporter.
pub fn read(
    connection: &Connection,
    schema: &Schema,
    state: &mut State,
    context: Context<'_>,
) -> Result<Vec<String>, DecodeError> {
    let mut known = Vec::new();
    if let Some(table) = schema.table("cache_info") {
        known.push(table.name.clone());
        if let Some(column) = table.column(&["profile_pop_fcc"]) {
            let sql = format!("SELECT {} FROM {} LIMIT 1", quoted(column), quoted(&table.name));
            if let Ok(counter) = connection.query_row(&sql, [], |row| row.get::<_, i64>(0)) {
                state.fact("cache", "change counter of profile.pop", counter.to_string());
            }
        }
    }
    // The suffix of the name looks like option flags, so tables are found by prefix.
    for table in schema.tables.iter().filter(|table| table.name.starts_with("execution_trace_")) {
        known.push(table.name.clone());
        if !table.name.starts_with("execution_trace_blocks") {
            continue;
        }
        let name = quoted(&table.name);
        let result = (|| -> rusqlite::Result<()> {
            let mut query =
                connection.prepare(&format!("SELECT tag, COUNT(*) FROM {name} GROUP BY 1 ORDER BY 2 DESC"))?;
            let mut rows = query.query([])?;
            while let Some(row) = rows.next()? {
                let tag: String = row.get(0).unwrap_or_default();
                let count: i64 = row.get(1).unwrap_or(0);
                state.fact("execution trace", &tag, format!("{count} blocks"));
            }
            let (ipus, last): (i64, i64) = connection.query_row(
                &format!("SELECT COUNT(DISTINCT ipu), COALESCE(MAX(cycles_to), 0) FROM {name}"),
                [],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )?;
            state.fact("execution trace", "IPUs", ipus.to_string());
            state.fact("execution trace", "last cycle", last.to_string());
            if table.column(&["step_ids"]).is_some() {
                let mut query = connection.prepare(&format!("SELECT step_ids FROM {name}"))?;
                let mut rows = query.query([])?;
                let mut distinct = BTreeSet::new();
                while let Some(row) = rows.next()? {
                    if let Ok(rusqlite::types::ValueRef::Blob(bytes)) = row.get_ref(0)
                        && let Some(ids) = step_ids(bytes)
                        && distinct.len() < MAX_STEPS
                    {
                        distinct.extend(ids);
                    }
                }
                state.fact("execution trace", "steps", distinct.len().to_string());
            }
            Ok(())
        })();
        if let Err(error) = result {
            context.reporter.damaged(format!("The table {} cannot be read to its end: {error}", table.name), None);
        }
        context.progress.check()?;
    }
    Ok(known)
}

/// Step ids of a block: numbers in base 128, most significant digit first, the last digit of each with its high bit
/// set. `None` where the last number has no end.
#[must_use]
pub fn step_ids(bytes: &[u8]) -> Option<Vec<u64>> {
    let mut ids = Vec::new();
    let mut value = 0u64;
    let mut inside = false;
    for byte in bytes {
        value = value << 7 | u64::from(byte & 0x7f);
        inside = byte & 0x80 == 0;
        if !inside {
            ids.push(std::mem::take(&mut value));
        }
    }
    (!inside).then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_ids_are_big_endian_with_a_marked_end() {
        assert_eq!(step_ids(&[0x80]), Some(vec![0]));
        assert_eq!(step_ids(&[0x81]), Some(vec![1]));
        assert_eq!(step_ids(&[0x14, 0xbb, 0x14, 0xbc, 0x14, 0xbd]), Some(vec![2619, 2620, 2621]));
        assert_eq!(step_ids(&[0x14]), None);
        assert_eq!(step_ids(&[]), Some(vec![]));
    }
}
