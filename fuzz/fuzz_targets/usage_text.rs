//! Decodes arbitrary bytes as a memory-usage report (text), then analyses and reports the result.
#![no_main]

use highwater::decode::xla_report;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&xla_report::UsageTextDecoder, bytes));
