//! What follows the arguments of a program when these change.

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
}
