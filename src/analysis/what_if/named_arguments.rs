//! Arguments by the names that changes give them.

use std::sync::{Arc, Mutex, PoisonError};

use super::edit::Arguments;

/// The arguments that some names mean.
#[derive(Debug, Default)]
pub struct ArgumentRows {
    /// Rows of the memory's base, ascending.
    pub rows: Vec<u32>,
    /// The first name that no argument has.
    pub unknown: Option<String>,
}

/// Names that are kept at the same time.
const MOST_KEPT: usize = 16;

/// The arguments of the names that were asked for last.
#[derive(Debug, Clone, Default)]
pub struct NamedArguments(Arc<Mutex<Vec<Known>>>);

/// Names, and what they mean.
type Known = (Arguments, Arc<ArgumentRows>);

impl NamedArguments {
    /// The arguments that some names mean, looked for once.
    pub fn rows(&self, arguments: &Arguments, find: impl FnOnce() -> ArgumentRows) -> Arc<ArgumentRows> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rows)) = known().iter().find(|known| known.0 == *arguments) {
            return Arc::clone(rows);
        }
        let found = Arc::new(find());
        let mut known = known();
        if known.len() >= MOST_KEPT {
            known.remove(0);
        }
        known.push((arguments.clone(), Arc::clone(&found)));
        found
    }
}
