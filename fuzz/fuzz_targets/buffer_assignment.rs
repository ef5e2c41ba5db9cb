//! Any bytes as a buffer-assignment report, through everything the program does with one.
#![no_main]

use highwater::decode::xla_report;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&xla_report::BufferAssignmentDecoder, bytes));
