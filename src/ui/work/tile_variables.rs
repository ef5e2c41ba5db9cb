//! Variables of one tile, read from a `profile.pop` on demand because a file may have millions of them.

use std::path::Path;

use super::{Job, Work};
use crate::decode::poplar::{TileVariable, variables_of_tile};
use crate::ui::session::Document;

/// The largest variables of a tile, or the error that prevented reading them.
pub type TileVariables = Result<Vec<TileVariable>, String>;

/// Starts reading the `limit` largest variables of a tile; `None` if the document has no `profile.pop` on disk.
#[must_use]
pub fn read_tile_variables(work: &Work, document: &Document, tile: u32, limit: usize) -> Option<Job<TileVariables>> {
    let is_pop = |path: &&Path| path.extension().is_some_and(|extension| extension == "pop") && path.is_file();
    let path = document.profile.sources.iter().map(|source| Path::new(&source.path)).find(is_pop)?.to_owned();
    let read = move || variables_of_tile(&path, tile, limit).map_err(|error| error.to_string());
    Some(Job::start(work, "variables of a tile", read))
}
