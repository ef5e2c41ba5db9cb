//! Cache of buffer names as shown in lists and charts; composing one requires a look-up in the program.

use std::collections::HashMap;

use crate::analysis::Scene;
use crate::model::BufferId;

/// Maximum number of cached names.
const MOST: usize = 4000;

/// Cached names of buffers of one program.
#[derive(Default)]
pub struct BufferNames {
    /// The document and the program of it that they belong to.
    of: (u64, usize),
    names: HashMap<BufferId, String>,
}

impl BufferNames {
    /// The name of a buffer, with its scope if that distinguishes it from others. `of` are the number of the document and
    /// the program of it.
    pub fn name(&mut self, of: (u64, usize), scene: Scene<'_>, buffer: BufferId) -> &str {
        if self.of != of || self.names.len() >= MOST {
            *self = Self { of, ..Self::default() };
        }
        self.names.entry(buffer).or_insert_with(|| scene.analysis.buffer_name(scene.program, buffer))
    }
}
