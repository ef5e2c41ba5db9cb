//! Decodes arbitrary bytes as a log with out-of-memory messages, then analyses and reports the result.
#![no_main]

use highwater::decode::oom_text;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&oom_text::OomTextDecoder, bytes));
