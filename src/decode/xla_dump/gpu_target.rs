//! `*.gpu_target_config.pbtxt` and `*.config.pbtxt`: the GPU that a program was compiled for, and the memory that the
//! compiler was told of. Both are text forms of protobufs that XLA's GPU compiler writes beside its dump.

use crate::decode::decoder::{Context, DecodeError, Decoder, Family, Reads};
use crate::model::{Bytes, Capacity, Device, DeviceKind, MemorySpace, Profile};
use crate::source::{Input, unpacked_name};

/// The GPU of a dump.
pub struct GpuTargetDecoder;

/// How the file that describes the GPU (`GpuTargetConfigProto`) begins.
const TARGET_BEGINS: &str = "gpu_device_info {";

/// End of the name of the module's configuration (`HloModuleConfigProto`), whose text any program has.
const CONFIG: &str = ".config.pbtxt";

impl Decoder for GpuTargetDecoder {
    fn format(&self) -> &'static str {
        "XLA GPU target"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::XlaDump,
            words: "the GPU that a dump was compiled for",
            patterns: &["*.gpu_target_config.pbtxt", "*.config.pbtxt"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        let starts = |with: &str| input.head().starts_with(with.as_bytes());
        let name = unpacked_name(input.file_name());
        starts(TARGET_BEGINS) || (name.ends_with(CONFIG) && starts("entry_computation_layout {"))
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let text = String::from_utf8_lossy(&bytes);
        let file = input.file_name();
        let is_target = text.starts_with(TARGET_BEGINS);
        let device = if is_target { of_target(&text, file) } else { of_config(&text, file) };
        let device = device.ok_or_else(|| DecodeError::Empty("no memory size of a GPU in it".to_owned()))?;
        Ok(Profile { device, ..Profile::default() })
    }
}

/// The GPU's name, and all of its memory; `None` without the size of its memory.
fn of_target(text: &str, file: &str) -> Option<Device> {
    let bytes = size(text, "  device_memory_size: ")?;
    let name = value(text, "device_description_str: ").or_else(|| value(text, "  name: "));
    let evidence = format!("from {file}");
    let capacity = Capacity { color: MemorySpace::HBM, bytes, evidence: format!("all memory of the GPU, {evidence}") };
    Some(Device {
        name: name.map(|name| name.trim_matches('"').to_owned()).filter(|name| !name.is_empty()),
        kind: Some(DeviceKind::Gpu),
        evidence: Some(evidence),
        capacities: vec![capacity],
        all_memory: Some(bytes),
        ..Device::default()
    })
}

/// What the compiler was told it may plan with: on a GPU the limit of the framework's allocator, for JAX 75 % of the
/// memory unless it is told otherwise. `None` where it was told nothing, as on CPUs.
fn of_config(text: &str, file: &str) -> Option<Device> {
    let bytes = size(text, "device_memory_size: ")?;
    let evidence = format!("limit of the allocator when it was compiled, device_memory_size of {file}");
    Some(Device { capacities: vec![Capacity { color: MemorySpace::HBM, bytes, evidence }], ..Device::default() })
}

/// What stands after a key at the beginning of a line.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(key)).map(str::trim)
}

fn size(text: &str, key: &str) -> Option<Bytes> {
    value(text, key)?.parse().ok().filter(|&bytes| bytes > 0).map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of what XLA writes for an H200 (jaxlib 0.11.2).
    const TARGET_TEXT: &str = "gpu_device_info {\n  threads_per_block_limit: 1024\n  device_memory_size: 150109880320\n  name: \"NVIDIA H200\"\n}\nplatform_name: \"CUDA\"\ndevice_description_str: \"NVIDIA H200\"\n";
    const CONFIG_TEXT: &str =
        "entry_computation_layout {\n}\ndebug_options {\n}\ndevice_memory_size: 112583507968\npartition_size: 1\n";

    #[test]
    fn the_gpu_and_the_limit_of_the_allocator_are_read() {
        let device = of_target(TARGET_TEXT, "x").expect("a GPU");
        assert_eq!(device.name.as_deref(), Some("NVIDIA H200"));
        assert_eq!(device.capacity(MemorySpace::HBM).map(|capacity| capacity.bytes), Some(Bytes(150_109_880_320)));
        assert_eq!(device.all_memory, Some(Bytes(150_109_880_320)));
        let limit = of_config(CONFIG_TEXT, "x").expect("a limit");
        assert_eq!(limit.capacity(MemorySpace::HBM).map(|capacity| capacity.bytes), Some(Bytes(112_583_507_968)));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read(text in "(gpu_device_info \\{\n)?( {0,2}[a-z_]{0,20}:? ?\\PC{0,24}\n){0,12}") {
            let (target, config) = (of_target(&text, "x"), of_config(&text, "x"));
            let sizes = target.iter().chain(&config).flat_map(|device| &device.capacities);
            proptest::prop_assert!(sizes.into_iter().all(|capacity| capacity.bytes.0 > 0));
        }
    }

    #[test]
    fn texts_without_a_size_say_nothing() {
        assert!(of_target("gpu_device_info {\n}\n", "x").is_none());
        assert!(of_config("entry_computation_layout {\n}\ndevice_memory_size: 0\n", "x").is_none());
        assert!(of_config("device_memory_size: many\n", "x").is_none());
    }
}
