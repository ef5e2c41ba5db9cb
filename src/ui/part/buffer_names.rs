//! Names of buffers as lists and charts write them, kept from frame to frame: composing one takes a look at the program.

use std::collections::HashMap;

use crate::analysis::Scene;
use crate::model::BufferId;

/// Names kept at most.
const MOST: usize = 4000;

/// The names of the buffers of one program that were shown.
#[derive(Default)]
pub struct BufferNames {
    /// Address of the program they are of.
    of: usize,
    names: HashMap<BufferId, String>,
}

impl BufferNames {
    /// The name of a buffer, with its scope where that tells it from others.
    pub fn name(&mut self, scene: Scene<'_>, buffer: BufferId) -> &str {
        let of = std::ptr::from_ref(scene.program) as usize;
        if self.of != of || self.names.len() >= MOST {
            *self = Self { of, ..Self::default() };
        }
        self.names
            .entry(buffer)
            .or_insert_with(|| scene.analysis.labels(scene.program).buffer_name(scene.program, buffer))
    }
}
