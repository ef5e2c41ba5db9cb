//! Search for buffers in a memory space. All views share one search: matching buffers are highlighted, others dimmed.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::slice::ParallelSliceMut as _;

use crate::analysis::table::{BufferTable, Filter};
use crate::model::{BufferId, MemorySpace};
use crate::ui::session::Document;

/// Search results.
#[derive(Debug, Default)]
pub struct SearchResults {
    /// The search text.
    pub words: String,
    /// Whether a buffer matches, by buffer row.
    found: Vec<bool>,
    /// Matching buffers, those that live at the step of the views first, each part largest first.
    pub list: Vec<BufferId>,
    /// How many of them live at that step; `None` where the list is not of a search.
    pub here: Option<usize>,
    /// Number of buffers searched.
    pub of: usize,
}

/// Which way to go through a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the next entry.
    Forward,
    /// To the previous entry.
    Back,
}

impl SearchResults {
    /// Searches the buffers of a memory space; `None` if there is no such space or `words` is not a valid filter.
    #[must_use]
    pub fn new(
        document: &Document,
        program: usize,
        color: MemorySpace,
        table: &BufferTable,
        (words, step): (&str, Option<u32>),
    ) -> Option<Self> {
        let (model, analysis) = document.program(program)?;
        let space = analysis.space(color)?;
        let filter = Filter::parse(words).ok()?;
        let all: Vec<u32> = (0..table.len() as u32).collect();
        let mut rows = filter.keep(table, &all, space.peak_point());
        let mut lives = vec![false; model.buffers.len()];
        for (buffer, _) in document.scene(program, color)?.live(step) {
            lives[buffer.index()] = true;
        }
        let is_away = |row: u32| !lives[table.buffers[row as usize].index()];
        rows.par_sort_unstable_by_key(|&row| (is_away(row), std::cmp::Reverse(table.size[row as usize]), row));
        let here = Some(rows.iter().filter(|&&row| !is_away(row)).count());
        let list: Vec<BufferId> = rows.into_iter().map(|row| table.buffers[row as usize]).collect();
        let mut found = vec![false; model.buffers.len()];
        for buffer in &list {
            found[buffer.index()] = true;
        }
        Some(Self { words: words.to_owned(), found, list, here, of: table.len() })
    }

    /// A list of buffers as the result of a search, of a program with `count` buffers.
    #[must_use]
    pub fn of_list(words: &str, list: &[BufferId], count: usize) -> Self {
        let mut found = vec![false; count];
        for buffer in list {
            if let Some(found) = found.get_mut(buffer.index()) {
                *found = true;
            }
        }
        Self { words: words.to_owned(), found, list: list.to_vec(), here: None, of: count }
    }

    /// Whether a buffer matches.
    #[must_use]
    pub fn has(&self, buffer: BufferId) -> bool {
        self.found.get(buffer.index()).copied().unwrap_or(false)
    }

    /// Whether there are matches, but none of them lives at the step of the views.
    #[must_use]
    pub fn is_away(&self) -> bool {
        self.here == Some(0) && !self.list.is_empty()
    }

    /// Whether a match lives at the step of the views.
    #[must_use]
    pub fn lives_here(&self, buffer: BufferId) -> bool {
        self.here.is_none_or(|here| self.list.iter().take(here).any(|own| *own == buffer))
    }

    /// The match after or before `from`, wrapping around; the first if `from` is not a match.
    #[must_use]
    pub fn next(&self, from: Option<BufferId>, direction: Direction) -> Option<BufferId> {
        let count = self.list.len();
        let at = from.and_then(|from| self.list.iter().position(|buffer| *buffer == from));
        let next = match at {
            _ if count == 0 => return None,
            None => 0,
            Some(at) if direction == Direction::Back => (at + count - 1) % count,
            Some(at) => (at + 1) % count,
        };
        self.list.get(next).copied()
    }
}

/// Which buffers are highlighted given the search and the hidden buffers; cheap to clone for drawing workers.
#[derive(Clone)]
pub struct Highlight {
    /// Search results; `None` if there is no search.
    pub hits: Option<Arc<SearchResults>>,
    /// Buffers the user has hidden.
    pub hidden: BTreeSet<BufferId>,
}

impl Highlight {
    /// Whether a buffer is neither hidden nor outside the search results.
    #[must_use]
    pub fn has(&self, buffer: BufferId) -> bool {
        !self.hidden.contains(&buffer) && self.hits.as_ref().is_none_or(|hits| hits.has(buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_wraps_around() {
        let list: Vec<BufferId> = [4, 2, 7].map(BufferId::from_index).to_vec();
        let hits = SearchResults { words: String::new(), found: Vec::new(), list: list.clone(), here: None, of: 9 };
        assert_eq!(hits.next(None, Direction::Forward), Some(list[0]));
        assert_eq!(hits.next(Some(list[0]), Direction::Forward), Some(list[1]));
        assert_eq!(hits.next(Some(list[2]), Direction::Forward), Some(list[0]));
        assert_eq!(hits.next(Some(list[0]), Direction::Back), Some(list[2]));
        assert_eq!(SearchResults::default().next(None, Direction::Forward), None);
    }
}
