//! Decodes arbitrary bytes as a BFC allocator dump, then analyses and reports the result.
#![no_main]

use highwater::decode::bfc;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&bfc::BfcDecoder, bytes));
