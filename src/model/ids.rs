//! Newtype ids: row numbers of the columns of a profile, never the numbers a format uses on the wire.

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        pub struct $name(pub u32);

        impl $name {
            /// The row as an index.
            #[must_use]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// From an index; rows beyond `u32::MAX` do not exist (decoders refuse such inputs).
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
    /// A row of [`Buffers`](super::Buffers): one logical buffer.
    BufferId
);
id!(
    /// A row of the allocations of a program.
    AllocationId
);
id!(
    /// A row of [`Instructions`](super::Instructions).
    InstructionId
);
id!(
    /// A row of the computations of a program.
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
id!(
    /// A program point: the position of an instruction in the flattened schedule; the value after the last
    /// instruction is the end of the program.
    Point
);

/// Marks a row that is not there in columns of plain `u32`.
pub const NO_ROW: u32 = u32::MAX;
