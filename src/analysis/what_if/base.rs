//! Always-live allocations, and what each is for.

use crate::analysis::names::argument::{holds_memory, holds_state, is_average};
use crate::model::{AllocationId, BufferId, ShapeIndex, ShapeNode};

/// An always-live allocation.
#[derive(Debug, Clone)]
pub struct Base {
    /// The allocation.
    pub allocation: AllocationId,
    /// Bytes of the allocation, padding included.
    pub size: u64,
    /// The argument's or the result's own buffer.
    pub buffer: BufferId,
    /// The largest buffer in it; differs from `buffer` if temporaries use it before the result exists.
    pub largest: BufferId,
    /// What it is for.
    pub role: Role,
    /// For a result, the shape that the program returns; its buffer may be a view of another shape.
    pub returned: Option<ShapeNode>,
}

impl Base {
    /// Whether it is an argument whose name says that it is state for each sample, such as that of environments.
    #[must_use]
    pub fn is_state(&self) -> bool {
        matches!(&self.role, Role::Argument { path, .. } if holds_state(path))
    }

    /// Whether it is an argument whose name says that it is a memory of what was seen before.
    #[must_use]
    pub fn is_memory(&self) -> bool {
        matches!(&self.role, Role::Argument { path, .. } if holds_memory(path))
    }

    /// Whether it is an argument whose name says that it is an average of the weights over many steps, which only its own
    /// update reads. In 16 bits it hardly moves where its decay is near 1, as bfloat16 has steps of 0.4 %.
    #[must_use]
    pub fn is_average_of_weights(&self) -> bool {
        matches!(&self.role, Role::Argument { path, .. } if is_average(path))
    }
}

/// What an always-live allocation is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// An argument of the program.
    Argument {
        /// Parameter number in the entry computation.
        number: i64,
        /// Its JAX path: `params['embed']`; empty if the file has none.
        path: String,
        /// Whether a result reuses its memory.
        is_donated: bool,
    },
    /// A result with memory of its own; its index in the program's result.
    Result(ShapeIndex),
    /// A constant, or a possible result.
    Other,
}
