//! What follows the arguments of a program when these change.

use crate::model::FastMap;

/// What follows the arguments of a program.
#[derive(Debug, Clone, Default)]
pub struct Followers {
    /// The argument (row of the base) that a family is a copy or cast of, by family.
    pub copy_of: Vec<Option<u32>>,
    /// The argument (row of the base) that a family holds with a part of it written: all of it gathered, or the part that
    /// one device writes.
    pub updated: Vec<Option<u32>>,
    /// The result (row of the base) that is an argument's next value, by row of the base.
    pub next: Vec<Option<u32>>,
    /// Whether an argument is returned as it is, as the weights beside adapters are, by row of the base.
    pub is_returned: Vec<bool>,
}

/// Items of the temporaries that may be divided with an argument.
#[derive(Debug, Clone, Default)]
pub struct Temporaries {
    /// Items of its copies, by row of the base.
    pub copies: FastMap<u32, Vec<u32>>,
    /// Families that hold it or a part of it once devices have written theirs, by row of the base.
    pub own_memory: FastMap<u32, Vec<usize>>,
    /// All items, by the outline of their shape in the dump.
    pub by_outline: Vec<Vec<u32>>,
    /// The outlines.
    pub outlines: FastMap<Vec<i64>, u32>,
}
