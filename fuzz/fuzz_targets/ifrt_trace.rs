//! Any bytes as IFRT's memory trace of a program, through everything the program does with one.
#![no_main]

use highwater::decode::ifrt_trace;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&ifrt_trace::ProgramMemoryTraceDecoder, bytes));
