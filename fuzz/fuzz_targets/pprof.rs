//! Decodes arbitrary bytes as a pprof profile, then analyses and reports the result.
#![no_main]

use highwater::decode::pprof;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&pprof::PprofDecoder, bytes));
