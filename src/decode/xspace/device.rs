//! Device planes: kind of device, memory capacity, and program runs.

use super::plane::{Plane, events, line_name};
use crate::decode::reporter::Reporter;
use crate::model::{
    AllocatorTrace, Bytes, Capacity, Device, DeviceKind, Execution, MemorySpace, Profile, TpuGeneration,
};

/// Runs beyond this number are left out.
const MAX_EXECUTIONS: usize = 1_000_000;

/// Adds the contents of a device plane.
pub fn read(plane: &Plane<'_>, file: &str, profile: &mut Profile, reporter: &Reporter) {
    let short = plane.name.trim_start_matches("/device:");
    let kind = if short.starts_with("TPU:") {
        Some(DeviceKind::Tpu)
    } else if short.starts_with("GPU:") {
        Some(DeviceKind::Gpu)
    } else {
        None
    };
    if let Some(kind) = kind
        && profile.device.name.is_none()
    {
        profile.device = device(plane, kind, file);
    }
    for &line in &plane.lines {
        // A device has millions of other events; only the line with the runs is read.
        let name = line_name(line);
        if name != "XLA Modules" {
            continue;
        }
        let mut runs = Vec::new();
        if let Err((_, error)) = events(line, |event| runs.push((event.metadata, event.offset_ps, event.duration_ps))) {
            reporter.damaged(format!("the line '{name}' stops here: {}", error.what), Some(error.offset));
        }
        let names = plane.event_names();
        for (metadata, start_ps, duration) in runs {
            if profile.executions.len() >= MAX_EXECUTIONS {
                return;
            }
            profile.executions.push(Execution {
                name: names.get(&metadata).cloned().unwrap_or_default(),
                start_ps,
                end_ps: start_ps.saturating_add(duration),
                device: short.to_owned(),
            });
        }
    }
}

fn device(plane: &Plane<'_>, kind: DeviceKind, file: &str) -> Device {
    let mut device = Device { kind: Some(kind), ..Device::default() };
    let mut memory = None;
    let mut vendor = String::new();
    for (name, value) in plane.own_stats() {
        match name {
            "device_type_string" => device.name = Some(plane.text_of(value)).filter(|name| !name.is_empty()),
            "device_vendor" => vendor = plane.text_of(value),
            "memory_size" => memory = u64::try_from(value.number()).ok().filter(|&bytes| bytes > 0),
            _ => {}
        }
    }
    device.evidence = Some(format!("from the plane {} in {file}", plane.name));
    if kind == DeviceKind::Tpu
        && let Some(generation) = device.name.as_deref().and_then(|name| TpuGeneration::by_device_kind(name, None))
    {
        let evidence = format!("{}, from the plane {} in {file}", generation.display_name(), plane.name);
        device.name = Some(generation.display_name());
        device.capacities = [MemorySpace::HBM, MemorySpace::VMEM, MemorySpace::CMEM]
            .into_iter()
            .filter_map(|color| {
                Some(Capacity { color, bytes: generation.capacity(color)?, evidence: evidence.clone() })
            })
            .collect();
    }
    if let Some(bytes) = memory {
        let evidence = format!("memory_size of the plane {} in {file}", plane.name);
        device.capacities.retain(|capacity| capacity.color != MemorySpace::HBM);
        device.capacities.push(Capacity { color: MemorySpace::HBM, bytes: Bytes(bytes), evidence });
    }
    if device.name.is_none() && kind == DeviceKind::Gpu {
        device.name = Some(if vendor.is_empty() { "GPU".to_owned() } else { format!("{vendor} GPU") });
    }
    device
}

/// What programs may use on a GPU is the limit of the framework's allocator (for JAX three quarters of the memory, unless
/// it is told otherwise), where the trace has its events.
pub fn take_limit(profile: &mut Profile, file: &str) {
    let of_gpu = profile.runtime.iter().filter(|allocator| allocator.name.starts_with("GPU_"));
    let limit = |allocator: &AllocatorTrace| allocator.events.iter().map(|event| event.stats.capacity()).max();
    let limits = of_gpu.filter_map(|allocator| Some((u64::try_from(limit(allocator)?).ok()?, &allocator.name)));
    let Some((limit, name)) = limits.max().filter(|&(limit, _)| limit > 0) else { return };
    let device = &mut profile.device;
    let hbm = device.capacities.iter_mut().find(|capacity| capacity.color == MemorySpace::HBM);
    let Some(capacity) = hbm.filter(|capacity| device.kind == Some(DeviceKind::Gpu) && limit < capacity.bytes.0) else {
        return;
    };
    device.all_memory = Some(capacity.bytes);
    capacity.bytes = Bytes(limit);
    capacity.evidence = format!("limit of the allocator {name} in {file}");
}

/// Whether threads of XLA's CPU client ran: its programs then live in the host's memory, unless a device is traced too.
pub fn has_cpu_client(host: &Plane<'_>) -> bool {
    const CLIENTS: [&str; 2] = ["tf_XLAPjRtCpuClient", "tf_XLATfrtCpuClient"];
    host.lines.iter().any(|&line| {
        let name = line_name(line);
        CLIENTS.iter().any(|client| name.starts_with(client))
    })
}

/// The host's processor as the device.
pub fn host(file: &str) -> Device {
    let evidence = format!("from the threads of XLA's CPU client in {file}, which has no plane of a device");
    Device { kind: Some(DeviceKind::Cpu), evidence: Some(evidence), ..Device::default() }
}

/// Adds which versions of JAX wrote the trace, as the plane `/host:metadata` says.
pub fn read_host(plane: &Plane<'_>, profile: &mut Profile) {
    let versions: Vec<String> = plane
        .own_stats()
        .filter(|(name, _)| matches!(*name, "jax_version" | "jaxlib_version"))
        .map(|(name, value)| format!("{} {}", name.trim_end_matches("_version"), plane.text_of(value)))
        .collect();
    if !versions.is_empty() {
        let text = format!("Traced with {}", versions.join(", "));
        profile.notes.push(crate::model::Note::new(crate::model::NoteLevel::Info, text));
    }
}
