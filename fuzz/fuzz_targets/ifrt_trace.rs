//! Decodes arbitrary bytes as an IFRT memory trace, then analyses and reports the result.
#![no_main]

use highwater::decode::ifrt_trace;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&ifrt_trace::ProgramMemoryTraceDecoder, bytes));
