//! Pictures of the window, compared with the reviewed ones. `UPDATE_SNAPSHOTS=1` rewrites those that differ.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/gui.rs"]
mod gui;
#[path = "../common/picture.rs"]
mod picture;

mod chart_gallery;
mod gallery;
mod views;
