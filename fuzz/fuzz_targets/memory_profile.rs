//! Any bytes as XProf's memory profile as JSON, through everything the program does with one.
#![no_main]

use highwater::decode::xprof_json;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&xprof_json::MemoryProfileDecoder, bytes));
