//! Decodes arbitrary bytes as a PyTorch memory snapshot, then analyses and reports the result.
#![no_main]

use highwater::decode::torch_snapshot;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| through::through(&torch_snapshot::TorchSnapshotDecoder, bytes));
