//! Any bytes as an allocator dump, through everything the program does with one.
#![no_main]

use highwater::decode::bfc;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&bfc::BfcDecoder, bytes));
