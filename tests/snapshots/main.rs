//! Pictures of the window, compared with the ones that were looked at.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/gui.rs"]
mod gui;

mod chart_gallery;
mod looks;
mod views;
