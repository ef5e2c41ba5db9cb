//! Remedies for messages of inference servers, libraries, kernel compilers, graphics drivers and the host.

use super::remedy::{Remedy, remedy};
use crate::advisor::finding::ChangesResults::{Maybe, No, Yes};
use crate::analysis::failure::Cause;
use crate::model::{Failure, FailureKind, Speaker};

const VLLM: &str = "https://docs.vllm.ai/en/latest/configuration/conserving_memory.html";
const ORT: &str = "https://onnxruntime.ai/docs/execution-providers/CUDA-ExecutionProvider.html";
const NEURON: &str = "https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-troubleshoot.html";

/// The CUDA driver and libraries, whose messages name no tensors.
pub fn cuda(failure: &Failure) -> Vec<Remedy> {
    match failure.kind {
        FailureKind::CudaHostAlloc => vec![
            remedy(
                "This is page-locked host memory, not GPU memory: use fewer loader workers and smaller prefetch queues",
                No,
                "",
                "the message says host or pinned",
                "",
            ),
            remedy(
                "Lock fewer pages (PyTorch's loader: `pin_memory=False`); on WSL only a part of the memory can be locked",
                No,
                "",
                "the host has memory left",
                "",
            ),
        ],
        FailureKind::CudaModuleLoad => vec![
            remedy(
                "Leave memory for code: the framework allocates its pool before programs are loaded, so make the pool smaller",
                No,
                "",
                "it fails while a program is loaded, not while arrays are allocated",
                "",
            ),
            remedy("Load fewer compiled variants: pad inputs to a few shapes", No, "", "", ""),
        ],
        FailureKind::NcclAlloc => vec![
            remedy(
                "Leave memory outside the framework's pool: NCCL takes its buffers from what is left on the card",
                No,
                "hundreds of MiB per communicator",
                "the framework itself did not fail",
                "",
            ),
            remedy(
                "Fewer communicators or channels (`NCCL_MAX_CTAS`, in older versions `NCCL_MAX_NCHANNELS`), smaller buffers (`NCCL_BUFFSIZE`)",
                No,
                "",
                "",
                "",
            ),
        ],
        FailureKind::RmmAlloc => vec![
            remedy(
                "A larger pool, if the card has room: `maximum_pool_size`, or no maximum",
                No,
                "",
                "the message says that the pool's size is exceeded",
                "",
            ),
            remedy(
                "Let data move to the host: `rmm.reinitialize(managed_memory=True)`, or spilling in cuDF and Dask-CUDA",
                No,
                "",
                "the data is larger than the card's memory",
                "",
            ),
            remedy("Smaller partitions", No, "in proportion", "", ""),
        ],
        FailureKind::CudaLibraryAlloc => vec![remedy(
            "Leave memory outside the framework's pool: the library allocates its handle and workspace from what is left",
            No,
            "",
            "it fails at the first operation of the library",
            "",
        )],
        kind => vec![
            remedy(
                if kind.speaker() == Speaker::Rocm {
                    "Check which processes hold memory on the card (`amd-smi process`, or `rocm-smi --showpids`), including ones left over from earlier runs"
                } else {
                    "Check which processes hold memory on the card (`nvidia-smi`), including ones left over from earlier runs"
                },
                No,
                "what they hold",
                "memory is in use before the program starts",
                "",
            ),
            remedy("A smaller batch, or smaller inputs", Maybe, "in proportion", "", ""),
        ],
    }
}

/// LLM inference servers.
pub fn serving(failure: &Failure) -> Vec<Remedy> {
    let mut out = Vec::new();
    match failure.kind {
        FailureKind::VllmStartup => {
            out.push(remedy(
                "Another process holds memory on the card: wait until it ends, or lower `--gpu-memory-utilization`",
                No,
                "",
                "less is free at startup than the share requested",
                VLLM,
            ));
        }
        FailureKind::SglangMemory if failure.message.contains("mem-fraction-static") => {
            out.push(remedy(
                "Raise `--mem-fraction-static`: weights and cache together do not fit in the share",
                No,
                "",
                "",
                "",
            ));
        }
        FailureKind::SglangMemory => {
            out.push(remedy(
                "Fewer requests at a time (`--max-running-requests`), shorter prompt chunks (`--chunked-prefill-size`)",
                No,
                "",
                "the cache's tokens are used up while requests run",
                "",
            ));
        }
        FailureKind::TgiMemory => {
            out.push(remedy("Lower `--max-batch-prefill-tokens`", No, "in proportion", "", ""));
        }
        _ => {
            out.push(remedy(
                "A shorter context: `--max-model-len`",
                Maybe,
                "the cache, in proportion",
                "the cache for one request is larger than what is left",
                VLLM,
            ));
            out.push(remedy("A larger share of the card: `--gpu-memory-utilization`", No, "", "", VLLM));
        }
    }
    let (shards, quantised) = match failure.kind {
        FailureKind::SglangMemory => (
            "Split the model over more cards (`--tp-size`)",
            "Quantised weights or cache (`--quantization`, `--kv-cache-dtype`)",
        ),
        FailureKind::TgiMemory => {
            ("Split the model over more cards (`--num-shard`)", "Quantised weights (`--quantize`)")
        }
        _ => (
            "Split the model over more cards (`--tensor-parallel-size`)",
            "Quantised weights or cache (`--quantization`, `--kv-cache-dtype fp8`)",
        ),
    };
    out.push(remedy(shards, No, "weights divided by the number of cards", "", ""));
    out.push(remedy(quantised, Yes, "up to half", "", ""));
    out
}

/// llama.cpp, ollama and others based on ggml.
pub fn ggml(failure: &Failure) -> Vec<Remedy> {
    let mut out = Vec::new();
    if failure.text("space") == Some("host") {
        out.push(remedy("A smaller model, or one in a smaller quantisation", Yes, "in proportion", "", ""));
        out.push(remedy(
            "Map the file instead of reading it (omit `--no-mmap` and `--load-mode none`), close other programs",
            No,
            "",
            "the host is short of memory",
            "",
        ));
    } else {
        out.push(remedy(
            "Fewer layers on the GPU: `--n-gpu-layers` (ollama: `num_gpu`)",
            No,
            "the weights of each such layer",
            "",
            "",
        ));
        out.push(remedy(
            "Or only the experts of some layers on the CPU: `--n-cpu-moe`",
            No,
            "their weights",
            "the model is a mixture of experts",
            "",
        ));
    }
    out.push(remedy("A shorter context: `--ctx-size` (ollama: `num_ctx`)", Maybe, "the cache, in proportion", "", ""));
    out.push(remedy(
        "A smaller compute buffer: `--ubatch-size`",
        No,
        "in proportion",
        "the compute buffer did not fit",
        "",
    ));
    out.push(remedy(
        "A quantised cache: `--cache-type-k q8_0 --cache-type-v q8_0` (the second needs flash attention, `--flash-attn on`; ollama: `OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0`)",
        Yes,
        "up to half of the cache",
        "",
        "",
    ));
    out
}

/// A kernel that needs more on-chip memory than available.
pub fn kernel() -> Vec<Remedy> {
    vec![
        remedy("Smaller blocks in the kernel", No, "in proportion to the block", "one kernel is over its limit", ""),
        remedy(
            "Fewer pipeline stages (`num_stages`): each holds a copy of its blocks",
            No,
            "one stage's blocks",
            "",
            "",
        ),
    ]
}

/// Frameworks with allocators of their own.
pub fn framework(failure: &Failure, cause: Cause) -> Vec<Remedy> {
    let mut out = Vec::new();
    match failure.kind {
        FailureKind::OrtArena => {
            out.push(remedy(
                "Let the arena grow only by what is requested: `arena_extend_strategy=kSameAsRequested`, and limit it with `gpu_mem_limit`",
                No,
                "up to half of the arena",
                "the arena doubles",
                ORT,
            ));
        }
        FailureKind::CupyAlloc => {
            out.push(remedy(
                "Release what the pool caches: `cupy.get_default_memory_pool().free_all_blocks()`",
                No,
                "",
                "",
                "",
            ));
        }
        FailureKind::JuliaCuda => {
            out.push(remedy(
                "Release what the pool caches: `GC.gc(); CUDA.reclaim()`",
                No,
                "",
                "more is reserved than used",
                "",
            ));
        }
        FailureKind::PaddleAlloc => {
            out.push(remedy(
                "Allocate as needed: `FLAGS_allocator_strategy=auto_growth`, the default except in builds for inference",
                No,
                "",
                "",
                "",
            ));
        }
        FailureKind::TensorrtAlloc => {
            out.push(remedy(
                "A smaller workspace (`IBuilderConfig::setMemoryPoolLimit`), or close other programs on the card",
                No,
                "",
                "the request is as large as the workspace",
                "",
            ));
        }
        FailureKind::MindsporeAlloc => {
            out.push(remedy(
                "End other processes on the device, or limit how much this one may use (`mindspore.runtime.set_memory(max_size=…)`; before 2.5 `max_device_memory` of `set_context`)",
                No,
                "",
                "`npu-smi info` shows another process",
                "",
            ));
        }
        FailureKind::XgboostAlloc => {
            out.push(remedy(
                "Build the matrix in pieces: `QuantileDMatrix` from an iterator, or external memory (`ExtMemQuantileDMatrix`, since 3.0)",
                No,
                "",
                "it fails while the matrix is built",
                "",
            ));
            return out;
        }
        _ => {}
    }
    if cause == Cause::Fragmentation {
        out.push(remedy("The free memory is fragmented: allocate large arrays first", No, "", "", ""));
    }
    out.push(remedy("A smaller batch, or smaller inputs", Maybe, "in proportion", "", ""));
    out
}

/// Vulkan, Metal, SYCL, OpenCL, DirectML.
pub fn graphics(failure: &Failure) -> Vec<Remedy> {
    let others = "Close other programs that use the graphics card, including the browser";
    let mut out = vec![remedy(others, No, "what they hold", "memory is in use before the program starts", "")];
    let (limit, sign) = match failure.kind {
        FailureKind::VulkanAlloc => (
            "Split the largest buffer: drivers may refuse a single one above `maxMemoryAllocationSize` or `maxBufferSize` (see `vulkaninfo`)",
            "the request is larger than one of these limits, and memory is free",
        ),
        FailureKind::MetalAlloc => (
            "Split the largest buffer: Metal limits the size of a single one (`maxBufferLength` of the device)",
            "the message names a maximum buffer size",
        ),
        FailureKind::SyclAlloc => (
            "Split the largest buffer; on Intel GPUs one above 4 GiB needs `UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1`",
            "the request is above 4 GiB, and memory is free",
        ),
        _ => ("Split the largest buffer: drivers also limit the size of a single allocation", "memory is free"),
    };
    out.push(remedy(limit, No, "", sign, ""));
    if failure.kind == FailureKind::MetalAlloc {
        out.push(remedy(
            "Let the GPU use more of the host's memory: `sudo sysctl iogpu.wired_limit_mb=…`, until the next start",
            No,
            "",
            "the host has memory left",
            "",
        ));
    }
    out.push(remedy("A smaller batch, or smaller inputs", Maybe, "in proportion", "", ""));
    out
}

/// AWS Neuron.
pub fn neuron(failure: &Failure) -> Vec<Remedy> {
    let mut out = Vec::new();
    if failure.message.contains("HOST memory") {
        out.push(remedy(
            "This is the host's memory, not the device's: load fewer models at once, or use an instance with more memory",
            No,
            "",
            "the message says HOST",
            NEURON,
        ));
    }
    out.extend([
        remedy(
            "Check which processes hold memory on the NeuronCores (`neuron-top`, `neuron-ls`), including ones left over from earlier runs",
            No,
            "what they hold",
            "memory is in use before the program starts",
            NEURON,
        ),
        remedy("Split the model over more NeuronCores", No, "", "weights alone nearly fill the core's memory", NEURON),
        remedy("A smaller batch or a shorter sequence", Maybe, "in proportion", "", NEURON),
        remedy("Load fewer compiled graphs at once", No, "", "`model code` or `shared scratchpad` is large", NEURON),
    ]);
    out
}

/// How a job asks its manager for more memory.
fn more_for_a_job(manager: Option<&str>) -> &'static str {
    match manager {
        Some("PBS") => "Ask for more memory: `-l select=1:mem=64gb` (Torque: `-l mem=64gb`)",
        Some("LSF") => "Ask for more memory: `bsub -M` for the limit, `-R \"rusage[mem=…]\"` for what is reserved",
        Some("Grid Engine") => "Ask for more memory: `-l h_vmem=…`, which counts for each slot",
        Some("HTCondor") => "Ask for more memory: `request_memory` in the submit file",
        Some("Nomad") => "Raise the task's `resources` block: `memory`, or `memory_max`",
        Some("ECS") => "Raise `memory` of the container (AWS Batch: `resourceRequirements` of type `MEMORY`)",
        Some("Vertex AI") => "Choose a machine type with more memory for the worker pool",
        Some("Colab") => "Change to a runtime with more memory (Runtime, Change runtime type)",
        _ => "Ask the job manager for more memory",
    }
}

/// Memory of the host.
pub fn host(failure: &Failure) -> Vec<Remedy> {
    // A language runtime (V8, JVM) with a heap limit of its own: the host did not run out of memory.
    let heap = if failure.message.contains("JavaScript heap") {
        Some("A larger heap: `NODE_OPTIONS=--max-old-space-size=8192` (MiB)")
    } else if failure.message.contains("java.lang") {
        Some("A larger heap: `-Xmx` (Spark: `spark.executor.memory`, `spark.driver.memory`)")
    } else {
        None
    };
    if let Some(heap) = heap {
        return vec![remedy(heap, No, "", "the host has memory left", "")];
    }
    let mut out = Vec::new();
    match failure.kind {
        FailureKind::KubernetesOomKill => {
            out.push(remedy("Raise the container's `resources.limits.memory`", No, "", "the node has memory left", ""));
        }
        FailureKind::SlurmOomKill => {
            out.push(remedy("Ask for more memory: `--mem` or `--mem-per-cpu`", No, "", "the node has memory left", ""));
        }
        FailureKind::JobMemoryKill => {
            out.push(remedy(more_for_a_job(failure.text("manager")), No, "", "the node has memory left", ""));
        }
        FailureKind::YarnMemoryKill => {
            out.push(remedy(
                "A larger container: `spark.executor.memoryOverhead`, `spark.executor.memory`",
                No,
                "",
                "the node has memory left",
                "",
            ));
        }
        FailureKind::TorchSharedMemory => {
            out.push(remedy(
                "More shared memory for the container: `docker run --shm-size=8g` or `--ipc=host`; on Kubernetes an `emptyDir` with `medium: Memory` at `/dev/shm`",
                No,
                "",
                "`df /dev/shm` shows 64 MiB",
                "",
            ));
        }
        FailureKind::RayObjectStore => {
            out.push(remedy("Keep fewer references to objects, or raise `object_store_memory`", No, "", "", ""));
        }
        FailureKind::RayOomKill => {
            out.push(remedy("Fewer tasks at a time: ask for more CPUs or `memory` for each", No, "", "", ""));
        }
        FailureKind::WindowsCommit => {
            out.push(remedy("Enlarge the paging file; Windows must back all committed memory", No, "", "", ""));
        }
        FailureKind::LinuxOomKill if failure.text("scope") == Some("cgroup") => {
            out.push(remedy("Raise the memory limit of the container or unit", No, "", "the host has memory left", ""));
        }
        _ => {}
    }
    out.push(remedy(
        "Fewer loader workers, smaller prefetch queues and shuffle buffers",
        No,
        "each worker's copy",
        "many processes",
        "",
    ));
    out.push(remedy(
        "Read data in pieces or map files instead of loading them (`numpy.memmap`, safetensors)",
        No,
        "",
        "",
        "",
    ));
    out
}
