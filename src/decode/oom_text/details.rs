//! What a message says besides its sizes, by its vendor's rules: processes, operations, shapes, devices, who was killed.

use super::found::Found;
use super::guard::is_autotuning;
use super::pattern::{count_value, patterns, size_value, text_value};
use super::roles::{Role, Told};
use super::size::Unit;
use crate::model::{FailureKind as Kind, FailureValue, PrintedSize, Speaker};

patterns! {
    GPU = r"\b(?:GPU|gpu|cuda:|CUDA:)\s?(\d+)\b|on device(?: ordinal)? (\d+)\b|\bCUDA(\d+) buffer|current device: (\d+)";
    NPU = r"\bNPU (\d+)\b";
    OP = r"\[Op:(\w+)\]|while running (\w+) node|requested by op (\w+)|current working operator name is (\w+)";
    NODE = r"Name:\s*\\?'([^'\\]+)";
    ARRAY = r"with shape ?[\[(]([^\])]*)[\])](?: and (?:data )?type (\w+))?";
    DRIVER_ERROR = r"\b((?:CUDA|CUDNN|CUBLAS|CUSOLVER|CUSPARSE|CUFFT|HIPBLAS|VK|UR_RESULT|PI|ZE_RESULT|CL|HSA_STATUS)_[A-Z_]*(?:MEMORY|ALLOC[A-Z_]*|RESOURCES|FAILURE)|(?:cuda|hip)Error\w+)\b";
    LIBRARY = r"(?i)\b(cublas|cudnn|cusolver|cusparse|cufft|hipblas|rocblas)";
    POOL = r"on (\w+) pool";
    ALLOCATOR = r"\b(\w+) cuMemAllocAsync";
    PROCESS = r"Process (\d+) has <T> memory in use";
    OWN = r"this process has <T> memory in use";
    KILLED = r"Killed process (\d+),? \(?([^)\n,]+?)\)?(?:,|\s|$)";
    /// The victim that was chosen; one of its threads' processes may be killed in its place.
    CHOSEN = r"Kill process (\d+),? \(?([^)\n,]+?)\)?(?:,|\s|$)";
    TASK = r"task=([^,\n]+),pid=(\d+)";
    /// earlyoom: `sending SIGTERM to process 12006 uid 1000 "python3": badness 209, VmRSS 2891 MiB`.
    SIGNALLED = r#"(?:to|[Kk]illing) process (\d+)(?: uid \d+)? "([^"\n]+)""#;
    /// kubelet: `victim process: python, pid: 1234`.
    VICTIM = r"victim process: ([^,\n]+), pid: (\d+)";
    /// systemd-oomd: `Killed /system.slice/run.scope due to`.
    UNIT = r"Killed (/\S+) due to|(\S+\.(?:scope|service|slice)): systemd-oomd killed";
    /// systemd-oomd: `due to memory used (30145851392) / total (33046478848)`.
    SWAPPING = r"memory used \((\d+)\) / total \((\d+)\)";
    RSS = r"(?:anon-rss:|VmRSS:? )([\d,]+ ?[kM]i?B)";
    MANAGER = r"\b(PBS|LSF|Slurm|slurmstepd|condor\w*|cgroup memory limit|request_memory|h_vmem|Nomad|OOM Killed|[Rr]eplica workerpool|Container killed|using all available RAM|Your notebook)";
    TOTAL_VM = r"total-vm:([\d,]+kB)";
    SLURM_STEP = r"StepId=([\w.+]+)|[Ss]tep ([\w.]+)|[Jj]ob (\d+)";
    NEURON_SIZE = r"Failed to alloc(?:ate)? (?:DEVICE |HOST )?(?:memory: )?(\d+(?:\.\d+)?\s?(?:[KMG]i?B|bytes))";
    NEURON_BYTES = r"Failed to alloc(?:ate)? (?:(?:DEVICE|HOST) memory: (\d+)|(\d+) bytes)";
    NEURON_DEVICE = r"on (ND \d+(?::NC \d+)?)";
    NEURON_REPORT = r"alloc debug info to (\S+)";
    NEURON_TOTAL = r"\btotal: (\d+(?:\.\d+)?[KMG]i?B)";
    NCCL_GPU = r":\d+:\d+\s\[(\d+)\]";
    RAY_NODE = r"was running was <T> ?/ ?<T>";
    RAY_TASK = r"\bname=([\w.:<>-]+)";
    TOKENS = r"max seq len \((\d+)\)";
    TOKEN_LIMIT = r"stored in KV cache \((\d+)\)|estimated maximum model length is (\d+)";
    IN_USE = r"\bInUse:\s+(\d+)\s";
    MAX_IN_USE = r"\bMaxInUse:\s+(\d+)\s";
    NEEDED_AVAILABLE = r"needed (\d+), available (\d+)";
    SLURM_LIMIT = r"memory limit \((\d+) > (\d+)\)";
    UTILIZATION = r"desired GPU memory utilization \((\d(?:\.\d+)?), <T>\)";
    HOST = r"system memory|too large for system|\bCPU buffer|buffer_type_cpu|ggml_aligned_malloc";
    PHYSICAL = r"<T> of <T> physical memory used";
    ASCEND = r"Available \w+ size:(\d+) free size:(\d+)";
}

/// What a kind says besides sizes, and which of its sizes have other names.
pub fn refine(found: &mut Found, window: &str, prefix: &str, sizes: &[Told]) {
    let kind = found.failure.kind;
    let group = |pattern: &regex::Regex| {
        let captures = pattern.captures(window)?;
        captures.iter().skip(1).flatten().next().map(|m| m.as_str().to_owned())
    };
    match kind {
        Kind::NeuronAlloc => return neuron(found, window),
        Kind::LinuxOomKill => return linux(found, window),
        Kind::VllmStartup => {
            if let Some(captures) = UTILIZATION.captures(window) {
                found.size("requested", &captures, 2);
            }
        }
        Kind::GgmlAlloc => {
            if let Some(captures) = NEEDED_AVAILABLE.captures(window) {
                found.bytes("requested", &captures, 1).bytes("free", &captures, 2);
            }
        }
        Kind::RayOomKill => {
            if let Some(captures) = RAY_NODE.captures(window) {
                found.size("used", &captures, 1).size("capacity", &captures, 2);
            }
        }
        Kind::YarnMemoryKill => {
            if let Some(captures) = PHYSICAL.captures(window) {
                found.size("used", &captures, 1).size("limit", &captures, 2);
            }
            return;
        }
        Kind::MindsporeAlloc => {
            if let Some(captures) = ASCEND.captures(window) {
                found.bytes("capacity", &captures, 1).bytes("free", &captures, 2);
            }
        }
        Kind::JobMemoryKill => job(found, window),
        Kind::SlurmOomKill => {
            found.put("step", group(&SLURM_STEP).map(FailureValue::Text));
            if let Some(captures) = SLURM_LIMIT.captures(window) {
                for (key, at) in [("used", 1), ("limit", 2)] {
                    found.put(key, captures.get(at).and_then(|m| size_value(&format!("{}KB", m.as_str()))));
                }
            }
        }
        _ => {}
    }
    for told in sizes {
        let Some(key) = key(kind, told.role) else { continue };
        found.put(key, Some(FailureValue::Size(printed(kind, told))));
    }
    if kind.speaker() == Speaker::Kernel {
        // What a kernel uses is what it asks for.
        found.put("requested", found.failure.get("used").cloned());
    }
    if kind.speaker() == Speaker::Torch {
        processes(found, window);
        if found.failure.get("limit").is_some() && kind == Kind::TorchCuda {
            found.failure.kind = Kind::TorchCudaLimit;
        }
    }
    if kind == Kind::TorchNpu {
        found.put("npu", group(&NPU).and_then(|n| count_value(&n)));
    } else {
        found.put("gpu", group(&GPU).and_then(|n| count_value(&n)));
    }
    found.put("op", group(&OP).map(FailureValue::Text));
    if matches!(kind.speaker(), Speaker::Cuda | Speaker::Rocm | Speaker::Xla | Speaker::Graphics) {
        found.put("driver_error", group(&DRIVER_ERROR).map(FailureValue::Text));
    }
    match kind {
        Kind::TorchMps => {
            found.put("pool", group(&POOL).map(FailureValue::Text));
        }
        Kind::CudaAsyncAlloc => {
            found.put("allocator", group(&ALLOCATOR).map(FailureValue::Text));
            found.put("in_use", group(&IN_USE).and_then(|n| super::pattern::bytes_value(&n)));
            found.put("max_in_use", group(&MAX_IN_USE).and_then(|n| super::pattern::bytes_value(&n)));
        }
        Kind::OrtArena => {
            found.put("node", group(&NODE).map(FailureValue::Text));
        }
        Kind::CudaLibraryAlloc => {
            let names = [
                ("cublas", "cuBLAS"),
                ("cudnn", "cuDNN"),
                ("cusolver", "cuSOLVER"),
                ("cusparse", "cuSPARSE"),
                ("cufft", "cuFFT"),
                ("hipblas", "hipBLAS"),
                ("rocblas", "rocBLAS"),
            ];
            let lower = group(&LIBRARY).map(|name| name.to_ascii_lowercase());
            let name = lower.and_then(|lower| names.iter().find(|name| name.0 == lower));
            found.put("library", name.map(|name| text_value(name.1)));
        }
        Kind::NcclAlloc => {
            let gpu = NCCL_GPU.captures(prefix).or_else(|| NCCL_GPU.captures(window));
            found.put("gpu", gpu.and_then(|captures| count_value(&captures[1])));
        }
        Kind::NumpyAlloc | Kind::TfOom => {
            if let Some(captures) = ARRAY.captures(window) {
                found.text("shape", &captures, 1).text("type", &captures, 2);
            }
        }
        Kind::TritonSharedMemory => {
            let space = if window.contains("tensor memory") { "tensor memory" } else { "shared memory" };
            found.put("space", Some(text_value(space)));
        }
        Kind::CudaSharedMemory => {
            found.put("space", Some(text_value("shared memory")));
        }
        Kind::VllmKvCache => {
            found.put("max_seq_len", group(&TOKENS).and_then(|n| count_value(&n)));
            found.put("max_tokens", group(&TOKEN_LIMIT).and_then(|n| count_value(&n)));
        }
        Kind::GgmlAlloc => {
            found.put("space", HOST.is_match(window).then(|| text_value("host")));
        }
        Kind::RayOomKill => {
            found.put("program", group(&RAY_TASK).map(FailureValue::Text));
        }
        Kind::XlaRuntimeAlloc | Kind::BfcOom if is_autotuning(window) => {
            found.failure.kind = Kind::XlaAutotuneWarning;
            found.failure.is_error = false;
        }
        _ => {}
    }
}

/// The key of a role in a kind. A kernel's need is what it uses of what there is.
fn key(kind: Kind, role: Role) -> Option<&'static str> {
    Some(match (kind, role) {
        (Kind::TritonSharedMemory | Kind::CudaSharedMemory, Role::Requested | Role::InUse) => "used",
        (Kind::TritonSharedMemory | Kind::CudaSharedMemory, Role::Limit | Role::Free | Role::Capacity) => "capacity",
        (Kind::RayOomKill | Kind::JobMemoryKill, Role::InUse) => "used",
        (Kind::RayOomKill, Role::Requested) => return None,
        (_, role) => role.key(),
    })
}

/// A size as its kind gives it: PyTorch prints even bytes as a text of its own, others plain numbers.
fn printed(kind: Kind, told: &Told) -> PrintedSize {
    let is_text = told.unit == Unit::Scaled
        || (kind.speaker() == Speaker::Torch && !matches!(kind, Kind::TorchCpu | Kind::TorchHpu));
    PrintedSize { text: told.printed.text.clone().filter(|_| is_text), bytes: told.printed.bytes }
}

/// Who else holds memory of the device. In a container the program itself is one of the numbered processes.
fn processes(found: &mut Found, window: &str) {
    let own = OWN.captures(window).and_then(|c| c.get(1)).and_then(|m| super::pattern::size(m.as_str()));
    let mut others: Vec<(i64, PrintedSize)> = PROCESS
        .captures_iter(window)
        .filter_map(|c| Some((c.get(1)?.as_str().parse().ok()?, super::pattern::size(c.get(2)?.as_str())?)))
        .collect();
    found.failure.fields.retain(|(key, _)| *key != "in_use");
    if let Some(own) = own {
        found.put("in_use", Some(FailureValue::Size(own)));
    } else if let Some(allocated) = found.failure.bytes("allocated") {
        let reserved = allocated + found.failure.bytes("unallocated").unwrap_or_default();
        // The one that holds what PyTorch reserved, and the least beside it, is the program itself.
        let itself = (0..others.len()).filter(|&i| others[i].1.bytes >= reserved).min_by_key(|&i| others[i].1.bytes);
        if let Some(itself) = itself {
            let (process, size) = others.remove(itself);
            found.put("in_use", Some(FailureValue::Size(size)));
            found.put("own_process", Some(FailureValue::Count(process)));
        }
    }
    // The first of the largest.
    if let Some((process, size)) = others.iter().rev().max_by_key(|other| other.1.bytes).cloned() {
        let sum = others.iter().map(|other| other.1.bytes).sum();
        if others.len() > 1 {
            found.put("largest_other", Some(FailureValue::Size(size.clone())));
        }
        let text = size.text.filter(|_| others.len() == 1);
        found.put("other_process", Some(FailureValue::Count(process)));
        found.put("other_in_use", Some(FailureValue::Size(PrintedSize { text, bytes: sum })));
        found.put("other_processes", Some(FailureValue::Count(others.len() as i64)));
    }
}

fn neuron(found: &mut Found, window: &str) {
    let exact =
        NEURON_BYTES.captures(window).and_then(|c| c.get(1).or_else(|| c.get(2)).map(|m| m.as_str().to_owned()));
    let printed = NEURON_SIZE.captures(window).and_then(|c| c.get(1).map(|m| m.as_str().to_owned()));
    match printed.filter(|text| !text.ends_with("bytes")).and_then(|text| super::pattern::size(&text)) {
        Some(size) => found.put("requested", Some(FailureValue::Size(size))),
        None => found.put("requested", exact.and_then(|digits| super::pattern::bytes_value(&digits))),
    };
    if let Some(captures) = NEURON_DEVICE.captures(window) {
        found.text("device", &captures, 1);
    }
    found.size_in("in_use", &NEURON_TOTAL, window);
    if let Some(captures) = NEURON_REPORT.captures(window) {
        found.text("report", &captures, 1);
        found.failure.paths.push(captures[1].to_owned());
    }
}

/// What a job manager says of a job: who it is, what was used, what was allowed.
fn job(found: &mut Found, window: &str) {
    let manager = MANAGER.captures(window).map(|captures| match &captures[1] {
        "PBS" => "PBS",
        "LSF" => "LSF",
        "h_vmem" => "Grid Engine",
        "Nomad" | "OOM Killed" => "Nomad",
        "Container killed" => "ECS",
        "using all available RAM" => "Colab",
        "Your notebook" => "Kaggle",
        name if name.starts_with("condor") || name.contains("request_memory") || name.contains("cgroup") => "HTCondor",
        name if name.ends_with("workerpool") => "Vertex AI",
        _ => "Slurm",
    });
    found.put("manager", manager.map(text_value));
}

fn linux(found: &mut Found, window: &str) {
    if let Some(captures) = KILLED.captures(window).or_else(|| CHOSEN.captures(window)) {
        found.count("pid", &captures, 1).text("name", &captures, 2);
    } else if let Some(captures) = TASK.captures(window) {
        found.text("name", &captures, 1).count("pid", &captures, 2);
    } else if let Some(captures) = SIGNALLED.captures(window) {
        found.count("pid", &captures, 1).text("name", &captures, 2);
    } else if let Some(captures) = VICTIM.captures(window) {
        found.text("name", &captures, 1).count("pid", &captures, 2);
    } else if let Some(name) = UNIT.captures(window).and_then(|found| found.get(1).or_else(|| found.get(2))) {
        let unit = name.as_str().rsplit('/').next().unwrap_or_default();
        found.put("unit", Some(text_value(unit)));
    }
    found.size_in("used", &RSS, window);
    if let Some(captures) = SWAPPING.captures(window) {
        found.bytes("used", &captures, 1).bytes("capacity", &captures, 2);
    }
    if let Some(captures) = TOTAL_VM.captures(window) {
        found.size("total_vm", &captures, 1);
    }
    let is_group = window.contains("Memory cgroup") || window.contains("CONSTRAINT_MEMCG");
    found.put("scope", is_group.then(|| text_value("cgroup")));
}
