//! Decodes arbitrary bytes as a Poplar profile.pop (SQLite), then analyses and reports the result.
#![no_main]

use highwater::decode::poplar;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&poplar::SqlDecoder, bytes));
