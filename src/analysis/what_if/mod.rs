//! What a change would do to the memory of a program, worked out from the dump of the unchanged program.

mod edit;

pub use edit::{Arguments, Edit, EditError};
