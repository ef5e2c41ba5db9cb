//! Decodes arbitrary bytes as an XSpace trace, then analyses and reports the result.
#![no_main]

use highwater::decode::xspace;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&xspace::XSpaceDecoder, bytes));
