//! What messages of one or a few sentences begin with: a phrase, who says it, and what must stand beside it.
//!
//! The first row that fits a line names the kind; the roles of the sizes beside it give the numbers. A line that fits no
//! row and says all the same that memory ran out is of no known kind, and its numbers are given too.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, MatchKind};

use crate::model::FailureKind as Kind;

/// What a phrase needs beside it to be a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The size that was asked for.
    Requested,
    /// Any size with a role.
    Size,
    /// Nothing; then the line must look like a report of a failure, not like prose about one.
    Words,
    /// Nothing; then the line must begin as a report does: with the class of an error, or the level of a log.
    Report,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// The kind it names.
    pub kind: Kind,
    /// What must stand beside it.
    pub need: Need,
    /// Lines that belong to the message, with the one of the phrase.
    pub lines: usize,
    /// Phrases, any of them.
    pub phrases: &'static [&'static str],
    /// What the message contains as well; may be empty.
    pub with: &'static str,
}

const fn form(kind: Kind, need: Need, lines: usize, phrases: &'static [&'static str], with: &'static str) -> Form {
    Form { kind, need, lines, phrases, with }
}

/// Every form, the most specific first.
#[rustfmt::skip]
pub const FORMS: &[Form] = &[
    form(Kind::TorchMps, Need::Requested, 2, &["MPS backend out of memory", "Invalid buffer size:"], ""),
    form(Kind::TorchNpu, Need::Requested, 6, &["NPU out of memory"], ""),
    form(Kind::TorchNpu, Need::Words, 6, &["Memory_Allocation_Failure(EL0004)", "EL0004: "], ""),
    form(Kind::TorchXpu, Need::Words, 6, &["XPU out of memory", "out of device memory on current platform"], ""),
    form(Kind::TorchHip, Need::Requested, 8, &["HIP out of memory"], ""),
    form(Kind::TorchCuda, Need::Requested, 8, &["CUDA out of memory"], "ried to allocate"),
    form(Kind::TorchCuda, Need::Report, 1, &["Allocation on device"], ""),
    form(Kind::TorchHpu, Need::Requested, 1, &["llocation failed for size::"], ""),
    form(Kind::TorchCpu, Need::Requested, 2, &[
        "can't allocate memory: you tried to allocate", "not enough memory: you tried to allocate", "unable to mmap ",
    ], ""),
    form(Kind::TorchCpu, Need::Words, 1, &["posix_memalign("], "12 vs 0"),
    form(Kind::TorchSharedMemory, Need::Words, 2, &[
        "are out of shared memory", "caused by insufficient shared memory",
    ], ""),
    form(Kind::DirectmlAlloc, Need::Requested, 2, &["ould not allocate tensor with"], ""),
    form(Kind::DirectmlAlloc, Need::Words, 1, &["8007000E", "not enough GPU video memory"], ""),
    form(Kind::PaddleAlloc, Need::Requested, 3, &["Out of memory error on "], ""),
    form(Kind::MindsporeAlloc, Need::Requested, 1, &["alloc device memory failed"], ""),
    form(Kind::CupyAlloc, Need::Requested, 2, &["Out of memory allocating", "out of memory to allocate"], " bytes ("),
    form(Kind::XlaRuntimeAlloc, Need::Requested, 1, &["Out of memory allocating"], "bytes"),
    form(Kind::JuliaCuda, Need::Words, 5, &["Out of GPU memory"], ""),
    form(Kind::OrtArena, Need::Requested, 1, &["requested buffer of size", "is smaller than requested bytes of"], ""),
    form(Kind::TensorrtAlloc, Need::Words, 2, &[
        "Error Code 2: OutOfMemory", "Requested amount of GPU memory", "Requested amount of memory",
        "insufficient to use tactic", "insufficient memory on requested size", "OutOfMemory Error in ",
        "Cuda Error in allocate", "DefaultAllocator::allocate", "Cuda Runtime (out of memory)",
        "cuda Runtime (out of memory)", "user allocator error allocating",
    ], ""),
    form(Kind::TensorrtAlloc, Need::Words, 6, &["xecutor creation failed due to insufficient GPU memory"], ""),
    form(Kind::TritonSharedMemory, Need::Size, 2, &["out of resource: "], "Required"),
    form(Kind::CudaSharedMemory, Need::Size, 1, &[
        "too much shared data", "Shared memory size limit exceeded", "shared memory size limit exceeded",
        "exceeds available shared memory",
    ], ""),
    form(Kind::NeuronAlloc, Need::Words, 8, &[
        "Failed to alloc DEVICE memory", "Failed to alloc HOST memory", "on DEVICE for", "(usage: ", ", usage: ",
        "status=4 message=",
    ], "lloc"),
    form(Kind::NcclAlloc, Need::Words, 3, &[
        "Failed to CUDA calloc", "Failed to CUDA host alloc", "Failed to CUDA malloc",
        "Cuda failure 'out of memory'", "Cuda failure 2 'out of memory'",
    ], ""),
    form(Kind::CudaAsyncAlloc, Need::Requested, 14, &[
        "cuMemAllocAsync failed to allocate", "cudaMallocAsync failed to allocate",
    ], ""),
    form(Kind::CudaHostAlloc, Need::Size, 1, &[
        "bytes on host: CUDA_ERROR_OUT_OF_MEMORY", "could not allocate pinned host memory",
        "of pinned memory: out of memory",
    ], ""),
    form(Kind::CudaModuleLoad, Need::Words, 1, &[
        "in-memory CUBIN", "cuModuleLoad", "ailed to load module", "ailed to load PTX",
    ], "OUT_OF_MEMORY"),
    form(Kind::CudaDriverAlloc, Need::Requested, 1, &[
        "from device: CUDA_ERROR_OUT_OF_MEMORY", "Failed to cudaMalloc", "failed to cudaMalloc",
    ], ""),
    form(Kind::XlaConstantAlloc, Need::Requested, 1, &["bytes for new constant"], ""),
    form(Kind::GgmlAlloc, Need::Size, 2, &[
        "cudaMalloc failed: out of memory", "alloc_tensor_range: failed to allocate", "ggml_gallocr_reserve",
        "ggml_vulkan: Device memory allocation of size", "more system memory", "model request too large for system",
        "ggml_aligned_malloc: insufficient memory", "context's memory pool", "buffer for kv cache",
    ], ""),
    form(Kind::GgmlAlloc, Need::Size, 2, &["ggml_backend_", "ggml_metal"], "ailed"),
    form(Kind::GgmlAlloc, Need::Words, 1, &[
        "unable to allocate backend buffer", "unable to allocate CUDA", "unable to allocate ROCm",
        "unable to allocate CPU", "unable to allocate SYCL", "unable to allocate Vulkan", "unable to allocate Metal",
        "failed to allocate compute", "failed to allocate buffer for kv cache", "memory layout cannot be allocated",
    ], ""),
    form(Kind::VllmKvCache, Need::Words, 6, &[
        "No available memory for the cache blocks", "that can be stored in KV cache", "KV cache is needed",
    ], ""),
    form(Kind::VllmStartup, Need::Words, 3, &["on startup is less than", "when warming up sampler"], ""),
    form(Kind::SglangMemory, Need::Words, 2, &[
        "Not enough memory. Please try", "Not enough memory; please try",
    ], "mem-fraction-static"),
    form(Kind::SglangMemory, Need::Words, 3, &["Prefill out of memory", "Decode out of memory"], ""),
    form(Kind::TgiMemory, Need::Words, 2, &["Not enough memory to handle"], "tokens"),
    form(Kind::CudaLibraryAlloc, Need::Words, 1, &[
        "_STATUS_ALLOC_FAILED", "CUFFT_ALLOC_FAILED", "DEVICE_ALLOCATION_FAILED", "rocblas_status_memory_error",
        "cuFFT failed to allocate", "handle: the resource allocation failed",
    ], ""),
    form(Kind::XgboostAlloc, Need::Requested, 3, &["Memory allocation error on worker"], ""),
    form(Kind::RmmAlloc, Need::Words, 1, &[
        "out_of_memory: CUDA error", "aximum pool size exceeded", "RMM_ERROR_OUT_OF_MEMORY",
        "bad_alloc: CUDA error at", "RMM failure",
    ], ""),
    form(Kind::IreeAlloc, Need::Words, 2, &["RESOURCE_EXHAUSTED; "], ""),
    form(Kind::RayOomKill, Need::Words, 6, &["running low on memory", "System memory low at node", "Workers (tasks / actors) killed due to memory pressure"], ""),
    form(Kind::RayObjectStore, Need::Words, 6, &["object store is full", "object store because it is full"], ""),
    form(Kind::YarnMemoryKill, Need::Words, 2, &[
        "for exceeding memory limits", "beyond physical memory limits", "exceeding physical memory limits",
    ], ""),
    form(Kind::SlurmOomKill, Need::Words, 1, &[
        "oom-kill event", "oom_kill event", "xceeded job memory limit", "xceeded step memory limit",
        "exceeded memory limit", "DUE TO MEMORY LIMIT",
    ], ""),
    form(Kind::SlurmOomKill, Need::Words, 1, &["Out Of Memory"], ": task "),
    form(Kind::KubernetesOomKill, Need::Words, 1, &["OOMKilled"], ""),
    form(Kind::KubernetesOomKill, Need::Words, 2, &["The node was low on resource: memory"], ""),
    form(Kind::LinuxOomKill, Need::Words, 3, &[
        "ut of memory: Kill", "oom-kill:constraint", "has been killed by the OOM killer", "result 'oom-kill'",
        "invoked oom-killer", "systemd-oomd killed", "System OOM encountered", "Low Memory! At or below sig",
    ], ""),
    form(Kind::LinuxOomKill, Need::Words, 2, &["low memory! at or below SIG"], ""),
    form(Kind::LinuxOomKill, Need::Words, 1, &["Killed /"], "due to memory "),
    form(Kind::JobMemoryKill, Need::Words, 2, &[
        "PBS: job killed: mem", "PBS: job killed: vmem", "PBS: job killed: pmem", "PBS: job killed: pvmem",
        "TERM_MEMLIMIT: job killed", "hard limit \"h_vmem\"", "hard limit \"h_rss\"", "hard limit \"h_data\"",
        "has gone over memory limit of", "gone over cgroup memory limit of", "memory usage exceeded request_memory",
        "emory usage exceeded memory limit", "Container killed due to memory usage", "error OOM Killed", "\"OOM Killed\"",
        "ran out-of-memory and exited", "ran out of memory and exited", "crashed after using all available RAM",
        "tried to allocate more memory than is available",
    ], ""),
    form(Kind::JobMemoryKill, Need::Size, 1, &["Memory limit of ", "emory quota "], "xceeded"),
    form(Kind::NumpyAlloc, Need::Requested, 1, &["nable to allocate"], "array with shape"),
    form(Kind::WindowsCommit, Need::Words, 1, &["paging file is too small", "WinError 8]", "WinError 1455]", "os error 1455)"], ""),
    form(Kind::MetalAlloc, Need::Words, 2, &[
        "maximum allowed buffer size", "CallbackErrorOutOfMemory", "Insufficient Memory (0", "[malloc_or_wait]",
    ], ""),
    form(Kind::VulkanAlloc, Need::Words, 2, &[
        "VK_ERROR_OUT_OF_DEVICE_MEMORY", "VK_ERROR_OUT_OF_HOST_MEMORY", "ErrorOutOfDeviceMemory",
        "ErrorOutOfHostMemory", "OutOfDeviceMemoryError",
    ], ""),
    form(Kind::SyclAlloc, Need::Words, 1, &[
        "ERROR_OUT_OF_DEVICE_MEMORY", "PI_ERROR_OUT_OF_RESOURCES", "ERROR_OUT_OF_HOST_MEMORY", "UR_RESULT_ERROR_OUT_OF_RESOURCES",
        "CL_MEM_OBJECT_ALLOCATION_FAILURE", "CL_OUT_OF_RESOURCES", "CL_OUT_OF_HOST_MEMORY",
    ], ""),
    form(Kind::HipErrorOom, Need::Words, 2, &[
        "hipErrorOutOfMemory", "HIP error: out of memory", "hipErrorMemoryAllocation",
        "HSA_STATUS_ERROR_OUT_OF_RESOURCES",
    ], ""),
    form(Kind::TfOom, Need::Words, 1, &["failed to allocate memory [Op:", "Dst tensor is not initialized"], ""),
    form(Kind::CudaErrorOom, Need::Words, 2, &[
        "CUDA_ERROR_OUT_OF_MEMORY", "cudaErrorMemoryAllocation", "cuda runtime error (2)", "CUDA error 2 at",
        "error=2 : out of memory", "CUDA failure 2", "CUDA Error: out of memory", "CUDA error: out of memory",
        "CUDA error: Out of memory", "CUDA driver error: out of memory", "CUDA runtime error: out of memory",
        "cuMemAlloc failed: out of memory", "cudaMalloc failed: out of memory", "cudaMalloc retry failed: out of memory",
        "failed with error out of memory", "CUDA runtime error in", "CUDA out of memory",
        "parallel_for failed: out of memory", "cudaSuccess (2 vs. 0)", "CNMEM_STATUS_OUT_OF_MEMORY",
    ], ""),
    form(Kind::HostBadAlloc, Need::Requested, 1, &["memory allocation of "], "bytes failed"),
    form(Kind::HostBadAlloc, Need::Requested, 1, &["cannot allocate vector of size"], ""),
    form(Kind::HostBadAlloc, Need::Words, 1, &[
        "std::bad_alloc", "java.lang.OutOfMemoryError",
        "fatal error: runtime: out of memory", "runtime: out of memory: cannot allocate", "[Errno 12]", "(os error 12)", "JavaScript heap out of memory",
        "MemoryError", "Native memory allocation (", "insufficient memory for the Java Runtime",
    ], ""),
    form(Kind::HostBadAlloc, Need::Report, 1, &[": Cannot allocate memory"], ""),
];

/// What a line is that fits no row and says that memory ran out.
pub const ANY_VENDOR: Form = form(Kind::Unknown, Need::Words, 2, &[], "");

#[expect(clippy::expect_used, reason = "the phrases are constants; a test builds them")]
static PHRASES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    let phrases = FORMS.iter().flat_map(|form| form.phrases);
    AhoCorasickBuilder::new().match_kind(MatchKind::Standard).build(phrases).expect("valid phrases")
});

/// The row of each phrase.
static ROWS: LazyLock<Vec<usize>> = LazyLock::new(|| {
    FORMS.iter().enumerate().flat_map(|(row, form)| std::iter::repeat_n(row, form.phrases.len())).collect()
});

/// (place, row of [`FORMS`]) of every phrase in a text, by place.
pub fn hits(text: &str) -> Vec<(usize, usize)> {
    let mut hits: Vec<(usize, usize)> =
        PHRASES.find_overlapping_iter(text).map(|found| (found.start(), ROWS[found.pattern().as_usize()])).collect();
    hits.sort_unstable();
    hits
}

/// Whether any phrase is in a text.
pub fn any(text: &str) -> bool {
    PHRASES.is_match(text)
}
