//! The arguments that a change names: by the beginnings of their paths, by a key inside these, or by their class.

use crate::analysis::class::Class;

/// How names were understood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// They begin the arguments' paths.
    #[default]
    Path,
    /// They are keys inside the paths.
    Key,
    /// They are classes.
    Class,
}

/// The arguments that some names mean.
#[derive(Debug, Default)]
pub(super) struct ArgumentRows {
    /// Rows of the memory's base, ascending.
    pub rows: Vec<u32>,
    /// The first name that no argument has.
    pub unknown: Option<String>,
    /// How they were found.
    pub by: NamedBy,
}

/// The class that a word names.
pub(super) fn class_named(word: &str) -> Option<Class> {
    Some(match word.to_ascii_lowercase().as_str() {
        "weight" | "weights" | "params" => Class::Weight,
        "opt" | "opt_state" | "optimizer" | "optimizer state" | "optimizer_state" => Class::Optimizer,
        "cache" | "caches" => Class::Cache,
        _ => return None,
    })
}
