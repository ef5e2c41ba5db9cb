//! Arguments by the names that changes give them.

use std::sync::{Arc, Mutex, PoisonError};

use super::edit::Arguments;
use super::memory::Memory;

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

impl Memory {
    /// The arguments that some names mean, looked for once.
    pub(super) fn rows_of(&self, arguments: &Arguments) -> Arc<ArgumentRows> {
        let known = || self.named_arguments.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rows)) = known().iter().find(|known| known.0 == *arguments) {
            return Arc::clone(rows);
        }
        let rows = self.arguments(|path| arguments.include(path)).map(|row| row as u32).collect();
        let is_known = |start: &str| self.arguments(|path| path.starts_with(start)).next().is_some();
        let unknown = arguments.0.iter().find(|start| start.as_str() != "*" && !is_known(start)).cloned();
        let found = Arc::new(ArgumentRows { rows, unknown });
        let mut known = known();
        if known.len() >= MOST_KEPT {
            known.remove(0);
        }
        known.push((arguments.clone(), Arc::clone(&found)));
        found
    }
}
