//! Logical buffers, the allocations they lie in, and the heap simulator's traces of them.

use super::ids::{AllocationId, BufferId, InstructionId, NO_ROW};
use super::profile::MemorySpace;
use super::units::Bytes;

/// Logical buffers as columns; a row is a [`BufferId`]. All columns have the same length.
#[derive(Debug, Clone, Default)]
pub struct Buffers {
    /// The number the format gives the buffer (`LogicalBufferProto.id`).
    pub number: Vec<i64>,
    /// Bytes in memory, padding included.
    pub size: Vec<Bytes>,
    /// Row of the defining instruction, [`NO_ROW`] where the file does not have it.
    pub instruction: Vec<u32>,
    /// Which value of that instruction, as a pre-order number in its shape ([`NO_ROW`]: the index leads nowhere).
    pub node: Vec<u32>,
    /// Number ("colour") of the memory space.
    pub color: Vec<MemorySpace>,
    /// Row of the allocation, [`NO_ROW`] for a buffer that was never assigned.
    pub allocation: Vec<u32>,
    /// Offset in the allocation.
    pub offset: Vec<u64>,
    /// Nested or dangling shape indices as the file has them, sorted by row; every other buffer's index is the path
    /// of its node.
    pub odd_index: Vec<(u32, Vec<i64>)>,
}

impl Buffers {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.number.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.number.is_empty()
    }

    /// The defining instruction.
    #[must_use]
    pub fn instruction_of(&self, buffer: BufferId) -> Option<InstructionId> {
        self.instruction.get(buffer.index()).filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row))
    }

    /// The allocation a buffer lies in.
    #[must_use]
    pub fn allocation_of(&self, buffer: BufferId) -> Option<AllocationId> {
        self.allocation.get(buffer.index()).filter(|&&row| row != NO_ROW).map(|&row| AllocationId(row))
    }

    /// Bytes of a buffer; nothing for a row that is not there.
    #[must_use]
    pub fn size_of(&self, buffer: BufferId) -> Bytes {
        self.size.get(buffer.index()).copied().unwrap_or_default()
    }
}

/// What an allocation is for (`BufferAllocationProto`).
#[derive(Debug, Clone, Default)]
pub struct Allocation {
    /// Its number in the file.
    pub index: i64,
    /// Bytes.
    pub size: Bytes,
    /// Number ("colour") of the memory space.
    pub color: MemorySpace,
    /// Lives only inside a called computation.
    pub is_thread_local: bool,
    /// Holds a tuple's index table (libtpu sets it on the combined heap too).
    pub is_tuple: bool,
    /// An argument of the program.
    pub is_parameter: bool,
    /// A constant.
    pub is_constant: bool,
    /// May hold a result of the program.
    pub maybe_live_out: bool,
    /// An argument whose memory a result takes over.
    pub is_parameter_aliased: bool,
    /// Number of the argument.
    pub parameter_number: i64,
    /// Which part of the argument.
    pub parameter_shape_index: Vec<i64>,
    /// First row of the buffers in it, in [`Assigned`] rows.
    pub assigned_start: u32,
    /// One past the last row.
    pub assigned_end: u32,
}

impl Allocation {
    /// Whether the memory is taken for the whole program: an argument, a constant or a possible result.
    #[must_use]
    pub const fn is_indefinite(&self) -> bool {
        self.is_parameter || self.is_constant || self.maybe_live_out
    }

    /// XProf's group name.
    #[must_use]
    pub const fn category(&self) -> Category {
        if self.is_parameter {
            Category::Parameter
        } else if self.maybe_live_out {
            Category::Output
        } else if self.is_thread_local {
            Category::ThreadLocal
        } else if self.is_constant {
            Category::Constant
        } else {
            Category::Temporary
        }
    }
}

/// What a buffer is for, as XProf groups them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// An argument of the program.
    Parameter,
    /// A result of the program.
    Output,
    /// Memory of a called computation.
    ThreadLocal,
    /// A constant.
    Constant,
    /// Everything else.
    Temporary,
}

impl Category {
    /// All of them, in XProf's order.
    pub const ALL: [Self; 5] = [Self::Parameter, Self::Output, Self::ThreadLocal, Self::Constant, Self::Temporary];

    /// XProf's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parameter => "Parameter",
            Self::Output => "Output",
            Self::ThreadLocal => "Thread-local",
            Self::Constant => "Constant",
            Self::Temporary => "Temporary",
        }
    }

    /// By XProf's name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name().eq_ignore_ascii_case(name))
    }
}

/// A buffer's place in an allocation. `size` is what the allocation says; the buffer's own size is what counts.
#[derive(Debug, Clone, Copy)]
pub struct Assigned {
    /// The buffer.
    pub buffer: BufferId,
    /// Its offset in the allocation.
    pub offset: u64,
}

/// What happens to a buffer in the heap simulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The buffer is placed.
    Alloc,
    /// The buffer is given back.
    Free,
    /// The buffer takes over the memory of the canonical one.
    ShareWith,
    /// A kind this program does not know.
    Other,
}

/// One step of a [`HeapTrace`].
#[derive(Debug, Clone, Copy)]
pub struct HeapEvent {
    /// What happens.
    pub kind: EventKind,
    /// Row of the buffer, [`NO_ROW`] where the file does not have it.
    pub buffer: u32,
    /// Row of the buffer it shares with, [`NO_ROW`] where there is none or it is not known.
    pub canonical: u32,
}

/// What the heap simulator did, in order (`HeapSimulatorTrace`).
#[derive(Debug, Clone, Default)]
pub struct HeapTrace {
    /// Events in order.
    pub events: Vec<HeapEvent>,
    /// Whether the whole module was simulated (heap memory), or pieces of it (VMEM, CMEM).
    pub whole_module: bool,
}
