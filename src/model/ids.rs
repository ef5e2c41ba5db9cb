//! Newtype row numbers of a profile's columns. They are not the ids used in files.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The row number as an index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// The id of a row. Indices saturate at `u32::MAX`; decoders reject inputs with that many rows.
            #[must_use]
            pub fn from_index(index: usize) -> Self {
                Self(u32::try_from(index).unwrap_or(u32::MAX))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id!(
    /// A logical buffer: a row of [`Buffers`](super::Buffers).
    BufferId
);
id!(
    /// A buffer allocation: a row of [`Program::allocations`](super::Program::allocations).
    AllocationId
);
id!(
    /// An instruction: a row of [`Instructions`](super::Instructions).
    InstructionId
);
id!(
    /// A computation: a row of [`Program::computations`](super::Program::computations).
    ComputationId
);
id!(
    /// An interned [`Shape`](super::Shape).
    ShapeId
);
id!(
    /// An interned string.
    StringId
);

/// Marks a missing row in `u32` columns.
pub const NO_ROW: u32 = u32::MAX;
