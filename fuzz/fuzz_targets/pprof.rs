//! Any bytes as a pprof file, through everything the program does with one.
#![no_main]

use highwater::decode::pprof;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&pprof::PprofDecoder, bytes));
