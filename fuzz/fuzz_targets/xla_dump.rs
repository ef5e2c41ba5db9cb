//! Decodes arbitrary bytes as one of the small files in an XLA dump, then analyses and reports the result.
#![no_main]

use highwater::decode::xla_dump;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| {
    through::through(&xla_dump::LiveRangeDecoder, bytes);
    through::through(&xla_dump::CompileStatsDecoder, bytes);
    through::through(&xla_dump::TargetArgumentsDecoder, bytes);
    through::through(&xla_dump::GpuTargetDecoder, bytes);
});
