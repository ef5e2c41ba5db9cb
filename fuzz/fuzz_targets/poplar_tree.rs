//! Any bytes as a Poplar tree (JSON or CBOR), through everything the program does with one.
#![no_main]

use highwater::decode::poplar;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&poplar::TreeDecoder, bytes));
