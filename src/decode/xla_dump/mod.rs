//! The small files next to a dump: live ranges, target arguments, compile statistics.

mod compile_stats;
mod gpu_target;
mod live_range_text;
mod target_arguments;

pub use compile_stats::CompileStatsDecoder;
pub use gpu_target::GpuTargetDecoder;
pub use live_range_text::LiveRangeDecoder;
pub use target_arguments::TargetArgumentsDecoder;

use crate::model::{Capacity, Device, DeviceKind, MemorySpace, TpuGeneration};

/// A device of a known TPU generation; `evidence` says how it is known.
fn tpu(generation: &TpuGeneration, evidence: &str) -> Device {
    let capacities = [MemorySpace::HBM, MemorySpace::VMEM, MemorySpace::CMEM]
        .into_iter()
        .filter_map(|color| {
            let bytes = generation.capacity(color)?;
            Some(Capacity { color, bytes, evidence: format!("{}, {evidence}", generation.display_name()) })
        })
        .collect();
    Device {
        name: Some(generation.display_name()),
        kind: Some(DeviceKind::Tpu),
        evidence: Some(evidence.to_owned()),
        capacities,
        ..Device::default()
    }
}
