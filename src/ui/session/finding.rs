//! Finding: which buffers of a memory space a person looks for. One search serves all views: what it finds stays lit,
//! the rest is dimmed.

use rayon::prelude::*;

use super::document::Document;
use crate::analysis::category;
use crate::model::{BufferId, Program};

/// What was found.
#[derive(Debug, Default)]
pub struct Hits {
    /// What was looked for.
    pub words: String,
    /// By buffer of the program.
    found: Vec<bool>,
    /// What was found, the largest first.
    pub list: Vec<BufferId>,
    /// Among how many.
    pub of: usize,
}

impl Hits {
    /// Looks through the buffers of a memory space; `None` where there is no such space.
    #[must_use]
    pub fn new(document: &Document, program: usize, color: i64, words: &str) -> Option<Self> {
        let (model, analysis) = document.program(program)?;
        let space = analysis.space(color)?;
        let text = words.to_owned();
        let words = Words::new(words);
        let mut list: Vec<BufferId> =
            space.buffers.par_iter().copied().filter(|&buffer| words.match_buffer(model, buffer)).collect();
        list.sort_by_key(|&buffer| (std::cmp::Reverse(model.buffers.size_of(buffer)), buffer));
        let mut found = vec![false; model.buffers.len()];
        for buffer in &list {
            found[buffer.index()] = true;
        }
        Some(Self { words: text, found, list, of: space.buffers.len() })
    }

    /// Whether a buffer was found.
    #[must_use]
    pub fn has(&self, buffer: BufferId) -> bool {
        self.found.get(buffer.index()).copied().unwrap_or(false)
    }

    /// The one after `from`, or before it; the first where it is not among them.
    #[must_use]
    pub fn next(&self, from: Option<BufferId>, back: bool) -> Option<BufferId> {
        let count = self.list.len();
        let at = from.and_then(|from| self.list.iter().position(|buffer| *buffer == from));
        let next = match at {
            _ if count == 0 => return None,
            None => 0,
            Some(at) if back => (at + count - 1) % count,
            Some(at) => (at + 1) % count,
        };
        self.list.get(next).copied()
    }
}

/// Words that must all stand in a buffer's name, operation, shape or category; one with a minus must not.
struct Words {
    with: Vec<String>,
    without: Vec<String>,
}

impl Words {
    fn new(text: &str) -> Self {
        let lower = text.to_lowercase();
        let (without, with): (Vec<&str>, Vec<&str>) =
            lower.split_whitespace().partition(|word| word.len() > 1 && word.starts_with('-'));
        let owned = |words: Vec<&str>| words.into_iter().map(|word| word.trim_start_matches('-').to_owned()).collect();
        Self { with: owned(with), without: owned(without) }
    }

    fn match_buffer(&self, program: &Program, buffer: BufferId) -> bool {
        let name = program.buffer_name(buffer);
        let op = program.buffers.instruction_of(buffer).map(|i| program.text.op_name(i)).unwrap_or_default();
        let shape = program.buffer_shape(buffer).map(|(s, n)| s.short_text_of(n)).unwrap_or_default();
        let text = format!("{name} {op} {shape} {}", category(program, buffer).name()).to_lowercase();
        self.with.iter().all(|word| text.contains(word)) && !self.without.iter().any(|word| text.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_go_round() {
        let list: Vec<BufferId> = [4, 2, 7].map(BufferId::from_index).to_vec();
        let hits = Hits { words: String::new(), found: Vec::new(), list: list.clone(), of: 9 };
        assert_eq!(hits.next(None, false), Some(list[0]));
        assert_eq!(hits.next(Some(list[0]), false), Some(list[1]));
        assert_eq!(hits.next(Some(list[2]), false), Some(list[0]));
        assert_eq!(hits.next(Some(list[0]), true), Some(list[2]));
        assert_eq!(Hits::default().next(None, false), None);
    }
}
