//! Showing it to others: a link to a place in a file, pictures, presenter mode, hidden names.

mod hiding;
pub(super) mod link;
pub(super) mod picture;
pub(super) mod presenter;
