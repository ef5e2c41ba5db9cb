//! Programs that are listed without being decoded.

use std::fmt::Debug;
use std::sync::Arc;

use super::profile::{MemorySpace, Note};
use super::program::Program;
use super::units::Bytes;

/// A program that is decoded when somebody looks at it, and forgotten again by whoever asked.
#[derive(Debug, Clone)]
pub struct LazyProgram {
    /// Name of the module.
    pub name: String,
    /// The number under which a trace knows it.
    pub id: Option<String>,
    /// Bytes of its encoded form.
    pub bytes: u64,
    /// Where it comes from.
    pub source: Arc<dyn ProgramSource>,
}

/// Something that can decode a program again and again.
pub trait ProgramSource: Send + Sync + Debug {
    /// Decodes the program, with what could not be read.
    ///
    /// # Errors
    /// A sentence that says why there is no program.
    fn load(&self) -> Result<(Program, Vec<Note>), String>;

    /// How much memory the program needs, without decoding it.
    fn glance(&self) -> Glance;
}

/// What can be said of a program at a glance.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glance {
    /// Name of the module, where the bytes say.
    pub name: Option<String>,
    /// Σ of all allocations that are not thread-local, by memory space, ascending.
    pub allocated: Vec<(MemorySpace, Bytes)>,
    /// Whether there is a buffer assignment.
    pub has_buffer_assignment: bool,
}

impl Glance {
    /// Bytes allocated in a memory space.
    #[must_use]
    pub fn allocated_in(&self, color: MemorySpace) -> Option<Bytes> {
        self.allocated.iter().find(|row| row.0 == color).map(|row| row.1)
    }
}
