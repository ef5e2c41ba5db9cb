//! Tables for other programs: what is known about many dumps as Parquet, CSV, TSV or JSON files with a stable schema,
//! written as a stream.

mod buffers;
mod chunk;
mod events;
mod file;
mod findings;
mod origin;
mod parquet;
mod programs;
mod rows;
mod schema;
mod text;
mod tiles;

pub use chunk::{Cell, Chunk};
pub use file::{TableFormat, Tables, Written};
pub use origin::Origin;
pub use parquet::SCHEMA;
use rows::Rows;
pub use schema::{Column, Kind, Table, describe};

use crate::analysis::ProfileAnalysis;
use crate::model::Profile;

/// Passes the rows of a profile to `emit`, for the tables that are wanted, a limited number at a time.
pub fn rows(
    profile: &Profile,
    analysis: &ProfileAnalysis,
    origin: &Origin,
    wanted: &[Table],
    emit: &mut dyn FnMut(Chunk),
) {
    for &table in wanted {
        let mut rows = Rows::new(table, emit);
        match table {
            Table::Programs => programs::add(profile, analysis, origin, &mut rows),
            Table::Buffers => buffers::add(profile, analysis, origin, &mut rows),
            Table::Tiles => tiles::add(profile, origin, &mut rows),
            Table::TileCategories => tiles::add_categories(profile, origin, &mut rows),
            Table::Events => events::add(profile, analysis, origin, &mut rows),
            Table::Findings => findings::add(profile, analysis, origin, &mut rows),
            Table::Errors => {
                let failed = profile.sources.iter().filter_map(|source| Some((&source.path, source.error.as_ref()?)));
                failed.for_each(|(path, error)| rows.push(&[path.into(), error.into()]));
            }
        }
        rows.finish();
    }
}

/// The row of a file that could not be read at all.
#[must_use]
pub fn unread(path: &str, error: &str) -> Chunk {
    let mut chunk = Chunk::new(Table::Errors);
    chunk.push(&[path.into(), error.into()]);
    chunk
}
