//! Sharing with others: deep links, pictures, presenter mode, hidden names.

pub(super) mod deep_link;
mod hiding;
mod link;
pub(super) mod picture;
mod presenter;
pub(super) mod pressed_keys;
mod session;
