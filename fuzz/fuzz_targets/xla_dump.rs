//! Any bytes as one of the small files of a dump folder, through everything the program does with them.
#![no_main]

use highwater::decode::xla_dump;
use libfuzzer_sys::fuzz_target;

#[path = "through.rs"]
mod through;

fuzz_target!(|bytes: &[u8]| {
    through::through(&xla_dump::LiveRangeDecoder, bytes);
    through::through(&xla_dump::CompileStatsDecoder, bytes);
    through::through(&xla_dump::TargetArgumentsDecoder, bytes);
});
