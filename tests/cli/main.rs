//! The binary, run as a user runs it.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

#[path = "../common/mod.rs"]
mod common;

mod command_line;
mod compare_and_check;
mod export;
#[cfg(unix)]
mod run;
mod scale;
mod session;
