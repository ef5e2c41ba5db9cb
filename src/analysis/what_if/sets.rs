//! Named sets of changes as a text file: a name in brackets on a line of its own, then a change on each line.
//!
//! ```text
//! # Text after a number sign is a comment.
//! [checkpoint and donate]
//! remat layer_*
//! donate params,opt_state
//! ```

use std::fmt;

use super::edit::{Edit, EditError};

/// Changes that belong together, with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct EditSet {
    /// Its name, without line breaks.
    pub name: String,
    /// The changes, in the order in which they are applied.
    pub edits: Vec<Edit>,
}

/// Why a text is not a file of sets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetsError {
    /// A line is not a change.
    #[error("line {line}: {source}")]
    Edit {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: EditError,
    },
    /// A name lacks its closing bracket.
    #[error("line {0}: a name ends with `]`")]
    Name(usize),
    /// Longer than anyone would write by hand.
    #[error("more than {MOST_BYTES} bytes or {MOST_EDITS} changes: not a file of changes")]
    Long,
    /// Nothing in it.
    #[error("it contains no changes; write a change as `donate params`, below a name such as `[my set]`")]
    Empty,
}

/// Longest text that is read.
const MOST_BYTES: usize = 1 << 20;

/// Changes that are read at most.
const MOST_EDITS: usize = 10_000;

/// Name of the set for changes before the first name.
const UNNAMED: &str = "Changes";

impl EditSet {
    /// Makes a set; characters that the file format does not allow are removed from the name.
    #[must_use]
    pub fn new(name: &str, edits: Vec<Edit>) -> Self {
        let name: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let name = name.trim();
        Self { name: if name.is_empty() { UNNAMED.to_owned() } else { name.to_owned() }, edits }
    }

    /// Reads a file of sets. A later set replaces an earlier one of the same name; sets without changes are left out.
    ///
    /// # Errors
    /// If a line is not a change, the text has no changes, or it is too long to have been written by hand.
    pub fn read(text: &str) -> Result<Vec<Self>, SetsError> {
        if text.len() > MOST_BYTES {
            return Err(SetsError::Long);
        }
        let mut sets: Vec<Self> = Vec::new();
        let mut at = None;
        let mut count = 0;
        for (row, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(rest) = line.strip_prefix('[') {
                let name = rest.strip_suffix(']').ok_or(SetsError::Name(row + 1))?;
                let set = Self::new(name, Vec::new());
                sets.retain(|known| known.name != set.name);
                sets.push(set);
                at = Some(sets.len() - 1);
                continue;
            }
            let edit = line.parse().map_err(|source| SetsError::Edit { line: row + 1, source })?;
            count += 1;
            if count > MOST_EDITS {
                return Err(SetsError::Long);
            }
            let set = *at.get_or_insert_with(|| {
                sets.push(Self::new(UNNAMED, Vec::new()));
                sets.len() - 1
            });
            sets[set].edits.push(edit);
        }
        sets.retain(|set| !set.edits.is_empty());
        if sets.is_empty() { Err(SetsError::Empty) } else { Ok(sets) }
    }

    /// Writes a file of sets.
    #[must_use]
    pub fn write(sets: &[Self]) -> String {
        let mut out = "# Sets of changes for Highwater: highwater report FILE --sets THIS\n".to_owned();
        for set in sets {
            out.push('\n');
            out.push_str(&set.to_string());
        }
        out
    }
}

impl fmt::Display for EditSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[{}]", self.name)?;
        self.edits.iter().try_for_each(|edit| writeln!(f, "{edit}"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::checkpoint::Checkpoint;
    use super::*;

    #[test]
    fn sets_are_read_as_they_are_written() {
        let sets = vec![
            EditSet::new("both [safe]", vec![Edit::Batch(0.5), Edit::Remat(Checkpoint::layers("layer_*"))]),
            EditSet::new(" a\nb ", vec![Edit::Dim(2050, 2048)]),
        ];
        assert_eq!(sets[1].name, "a b");
        assert_eq!(EditSet::read(&EditSet::write(&sets)), Ok(sets));
    }

    #[test]
    fn plain_lines_are_a_set_and_later_names_win() {
        let sets = EditSet::read("\u{feff}batch 0.5\r\n# remark\n[a]\nbatch 0.25\n[empty]\n[a]\ndonate *\n");
        let read: Vec<_> = sets.unwrap_or_default().into_iter().map(|s| (s.name, s.edits.len())).collect();
        assert_eq!(read, [("Changes".to_owned(), 1), ("a".to_owned(), 1)]);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let error = EditSet::read("[a]\n\nhalve it").map_err(|e| e.to_string());
        assert!(error.is_err_and(|text| text.starts_with("line 3: Unknown change `halve`")));
        assert_eq!(EditSet::read("[a\n"), Err(SetsError::Name(1)));
        assert_eq!(EditSet::read("# nothing"), Err(SetsError::Empty));
        assert_eq!(EditSet::read(&"x".repeat(MOST_BYTES + 1)), Err(SetsError::Long));
        assert_eq!(EditSet::read(&"batch 2\n".repeat(MOST_EDITS + 1)), Err(SetsError::Long));
    }

    proptest! {
        #[test]
        fn nothing_makes_the_reader_panic(text in "(\\[|\\]|#|batch 2|\\PC{0,8}|\n){0,40}") {
            if let Ok(sets) = EditSet::read(&text) {
                prop_assert_eq!(EditSet::read(&EditSet::write(&sets)), Ok(sets));
            }
        }
    }
}
