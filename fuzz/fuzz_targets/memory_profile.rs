//! Decodes arbitrary bytes as XProf Memory Profile JSON, then analyses and reports the result.
#![no_main]

use highwater::decode::xprof_json;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&xprof_json::MemoryProfileDecoder, bytes));
