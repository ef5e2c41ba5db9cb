//! Logical buffers, buffer allocations and heap simulator traces.

use smallvec::SmallVec;

use super::device::MemorySpace;
use super::ids::{AllocationId, BufferId, InstructionId, NO_ROW};
use super::shape::ShapeIndex;
use super::units::Bytes;

/// Columns of logical buffers, indexed by [`BufferId`]. All columns have the same length.
#[derive(Debug, Clone, Default)]
pub struct Buffers {
    /// Id of the buffer in the file (`LogicalBufferProto.id`).
    pub number: Vec<i64>,
    /// Size in bytes, including padding.
    pub size: Vec<Bytes>,
    /// Row of the defining instruction; [`NO_ROW`] if it is not in the file.
    pub instruction: Vec<u32>,
    /// Pre-order position in the instruction's shape; [`NO_ROW`] if the shape index is invalid.
    pub node: Vec<u32>,
    /// Number ("colour") of the memory space.
    pub color: Vec<MemorySpace>,
    /// Row of the allocation; [`NO_ROW`] if the buffer is not assigned.
    pub allocation: Vec<u32>,
    /// Offset in the allocation in bytes.
    pub offset: Vec<u64>,
    /// Nested or invalid shape indices as stored in the file, sorted by row. The index of any other buffer is the path to
    /// its node.
    pub odd_index: Vec<(u32, ShapeIndex)>,
}

impl Buffers {
    /// Number of buffers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.number.len()
    }

    /// Whether there are no buffers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.number.is_empty()
    }

    /// The defining instruction; `None` if it is not in the file.
    #[must_use]
    pub fn instruction_of(&self, buffer: BufferId) -> Option<InstructionId> {
        self.instruction.get(buffer.index()).filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row))
    }

    /// The allocation that contains a buffer; `None` if it is not assigned.
    #[must_use]
    pub fn allocation_of(&self, buffer: BufferId) -> Option<AllocationId> {
        self.allocation.get(buffer.index()).filter(|&&row| row != NO_ROW).map(|&row| AllocationId(row))
    }

    /// Size of a buffer; zero if there is no such buffer.
    #[must_use]
    pub fn size_of(&self, buffer: BufferId) -> Bytes {
        self.size.get(buffer.index()).copied().unwrap_or_default()
    }
}

/// A buffer allocation (`BufferAllocationProto`).
#[derive(Debug, Clone, Default)]
pub struct Allocation {
    /// Index in the file; negative if unknown.
    pub index: i64,
    /// Size in bytes.
    pub size: Bytes,
    /// Number ("colour") of the memory space.
    pub color: MemorySpace,
    /// Local to a called computation.
    pub is_thread_local: bool,
    /// Holds a tuple's index table. libtpu also sets this on the combined heap.
    pub is_tuple: bool,
    /// An entry parameter.
    pub is_parameter: bool,
    /// Holds a constant.
    pub is_constant: bool,
    /// May hold a program result.
    pub maybe_live_out: bool,
    /// Holds a parameter whose memory a result reuses.
    pub is_parameter_aliased: bool,
    /// Parameter number.
    pub parameter_number: i64,
    /// Shape index within the parameter.
    pub parameter_shape_index: SmallVec<[i64; 2]>,
    /// First row of its buffers in the [`Assigned`] rows.
    pub assigned_start: u32,
    /// One past the last of those rows.
    pub assigned_end: u32,
}

impl Allocation {
    /// Whether it is live for the whole program: a parameter, a constant or a possible result.
    #[must_use]
    pub const fn is_indefinite(&self) -> bool {
        self.is_parameter || self.is_constant || self.maybe_live_out
    }

    /// The category XProf assigns it to.
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

/// XProf's categories of allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Category {
    /// An entry parameter.
    Parameter,
    /// A program result.
    Output,
    /// Local to a called computation.
    ThreadLocal,
    /// A constant.
    Constant,
    /// Any other allocation.
    Temporary,
}

impl Category {
    /// All categories, in XProf's order.
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

    /// The category with one of XProf's names; `None` if there is none.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.name().eq_ignore_ascii_case(name))
    }
}

/// The assignment of a buffer to an offset in an allocation.
#[derive(Debug, Clone, Copy)]
pub struct Assigned {
    /// The buffer.
    pub buffer: BufferId,
    /// Offset in the allocation in bytes.
    pub offset: u64,
}

/// Kind of a heap simulator event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// The buffer is allocated.
    Alloc,
    /// The buffer is freed.
    Free,
    /// The buffer shares the memory of its canonical buffer.
    ShareWith,
    /// An unknown kind.
    Other,
}

/// One event of a [`HeapTrace`].
#[derive(Debug, Clone, Copy)]
pub struct HeapEvent {
    /// Kind of event.
    pub kind: EventKind,
    /// Row of the buffer; [`NO_ROW`] if it is not in the file.
    pub buffer: u32,
    /// Row of the canonical buffer it shares memory with; [`NO_ROW`] if none or unknown.
    pub canonical: u32,
}

/// The heap simulator's events (`HeapSimulatorTrace`).
#[derive(Debug, Clone, Default)]
pub struct HeapTrace {
    /// Events in simulation order.
    pub events: Vec<HeapEvent>,
    /// Whether the whole module was simulated at once (HBM) or in parts (VMEM, CMEM).
    pub whole_module: bool,
}
