//! Showing it to others: a link to a place in a file, pictures, presenter mode, hidden names.

pub(super) mod deep_link;
mod hiding;
mod link;
pub(super) mod picture;
mod presenter;
pub(super) mod pressed_keys;
