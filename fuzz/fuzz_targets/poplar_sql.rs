//! Any bytes as a Poplar profile.pop (SQLite), through everything the program does with one.
#![no_main]

use highwater::decode::poplar;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&poplar::SqlDecoder, bytes));
