//! Programs that are listed but decoded only on demand.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::device::MemorySpace;
use super::failure::Shortage;
use super::note::Note;
use super::program::Program;
use super::units::Bytes;

/// A program that is decoded on demand; the result is not cached.
#[derive(Debug, Clone)]
pub struct LazyProgram {
    /// Module name.
    pub name: String,
    /// Program id in the trace.
    pub id: Option<String>,
    /// Encoded size in bytes.
    pub bytes: u64,
    /// Decodes the program.
    pub source: Arc<dyn ProgramSource>,
}

/// Decodes a program on request.
pub trait ProgramSource: Send + Sync + Debug {
    /// Decodes the program; returns it with notes on anything that could not be read. Ends early once the flag is set.
    ///
    /// # Errors
    /// A sentence that says why the program could not be decoded.
    fn load(&self, cancelled: &Arc<AtomicBool>) -> Result<(Program, Vec<Note>), String>;

    /// Reads the program's memory totals without decoding it.
    fn glance(&self) -> Glance;
}

/// Memory totals of a program that was not decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Glance {
    /// Module name, if the file states it.
    pub name: Option<String>,
    /// Total of all allocations that are not thread-local, by memory space in ascending order.
    pub allocated: Vec<(MemorySpace, Bytes)>,
    /// Whether the program has a buffer assignment.
    pub has_buffer_assignment: bool,
    /// Bytes of the fullest tile of an IPU, and what a tile has; `None` for other devices.
    pub fullest_tile: Option<(Bytes, Option<Bytes>)>,
    /// Of a text about memory that ran out, the shortage of the worst of its messages.
    pub shortage: Option<Shortage>,
}

impl Glance {
    /// Bytes allocated in a memory space; `None` if unknown.
    #[must_use]
    pub fn allocated_in(&self, color: MemorySpace) -> Option<Bytes> {
        self.allocated.iter().find(|row| row.0 == color).map(|row| row.1)
    }
}
