//! Kinds of out-of-memory messages, with report name, source, title and report keys.

/// The software that issued a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// XLA's compiler for TPUs.
    TpuCompiler,
    /// The TPU runtime (libtpu, PJRT).
    TpuRuntime,
    /// XLA on GPUs and CPUs.
    Xla,
    /// The best-fit-with-coalescing (BFC) allocator shared by TensorFlow and XLA.
    Bfc,
    /// AMD's ROCm driver, through XLA or TensorFlow.
    Rocm,
    /// TensorFlow itself, above its allocator.
    TensorFlow,
    /// PyTorch.
    Torch,
    /// Graphcore's Poplar.
    Poplar,
    /// The CUDA driver, runtime and libraries, whatever framework calls them.
    Cuda,
    /// LLM inference servers: vLLM, SGLang, TGI.
    Serving,
    /// ggml: llama.cpp, ollama, whisper.cpp.
    Ggml,
    /// A GPU kernel compiler: Triton, ptxas.
    Kernel,
    /// Other frameworks on GPUs: ONNX Runtime, CuPy, CUDA.jl, Paddle, TensorRT, IREE.
    Framework,
    /// Graphics and compute APIs: Vulkan, Metal, SYCL, OpenCL.
    Graphics,
    /// AWS Neuron.
    Neuron,
    /// The host: its kernel, job schedulers and language runtimes.
    Host,
    /// Unknown.
    Unknown,
}

/// URL of OpenXLA's page on an error code such as `E1000`; `None` if no page is known.
#[must_use]
pub fn error_page(code: &str) -> Option<&'static str> {
    match code {
        "E1000" => Some("https://openxla.org/xla/errors/error_1000"),
        "E1001" => Some("https://openxla.org/xla/errors/error_1001"),
        "E0100" => Some("https://openxla.org/xla/errors/error_0100"),
        "E0101" => Some("https://openxla.org/xla/errors/error_0101"),
        "E3000" => Some("https://openxla.org/xla/errors/error_3000"),
        _ => None,
    }
}

/// Declares [`FailureKind`] and its tables.
macro_rules! kinds {
    ($($variant:ident $name:literal $speaker:ident $title:literal [$($key:literal)*];)*) => {
        /// Kind of an out-of-memory message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub enum FailureKind {
            $(#[doc = $title] $variant,)*
            /// An out-of-memory message of an unknown kind.
            #[default]
            Unknown,
        }

        impl FailureKind {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$variant,)* Self::Unknown];

            /// Name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* Self::Unknown => "unknown" }
            }

            /// Title: who issued it and what failed.
            #[must_use]
            pub const fn title(self) -> &'static str {
                match self { $(Self::$variant => $title,)* Self::Unknown => "Out of memory" }
            }

            /// The software that issues it.
            #[must_use]
            pub const fn speaker(self) -> Speaker {
                match self { $(Self::$variant => Speaker::$speaker,)* Self::Unknown => Speaker::Unknown }
            }

            /// Report keys present for every failure of this kind; `null` if the message lacks the value.
            #[must_use]
            pub const fn keys(self) -> &'static [&'static str] {
                match self { $(Self::$variant => &[$($key),*],)* Self::Unknown => &[] }
            }
        }
    };
}

kinds! {
    TpuHbmListing "tpu_hbm_listing" TpuCompiler "TPU compiler: the program does not fit, with its largest allocations"
        ["space" "used" "capacity" "exceeded" "total" "reserved" "program" "arguments" "output" "output_shared" "fragmentation"];
    TpuHbmUsage "tpu_hbm_listing" TpuCompiler "TPU compiler: the program does not fit, with a breakdown"
        ["space" "used" "capacity" "exceeded" "total" "reserved" "program" "arguments" "output" "output_shared" "fragmentation"];
    TpuHbmOneline "tpu_hbm_oneline" TpuCompiler "TPU compiler: the program does not fit in HBM"
        ["space" "used" "capacity" "exceeded"];
    TpuHbmEarly "tpu_hbm_early" TpuCompiler "TPU compiler: the program does not fit in HBM"
        ["space" "used" "capacity" "module"];
    TpuVmemOneline "tpu_vmem_oneline" TpuCompiler "TPU compiler: a kernel does not fit in VMEM"
        ["space" "used" "capacity" "exceeded"];
    TpuSmemOneline "tpu_smem_oneline" TpuCompiler "TPU compiler: a kernel does not fit in SMEM"
        ["space" "used" "capacity" "exceeded"];
    TpuSpaceOneline "tpu_space_oneline" TpuCompiler "TPU compiler: a memory space is too small"
        ["space" "used" "capacity" "exceeded"];
    TpuScopedVmem "tpu_scoped_vmem" TpuCompiler "TPU compiler: a kernel's scratch does not fit in VMEM"
        ["space" "used" "capacity" "shape" "tag"];
    TpuAllocExceeds "tpu_alloc_exceeds" TpuCompiler "TPU compiler: one array is larger than the memory"
        ["space" "used" "capacity" "shape" "tag"];
    TpuCompileAbort "tpu_compile_abort" TpuCompiler "TPU compiler: gave up early, the program cannot fit"
        ["used" "capacity"];
    TpuTcScHbm "tpu_tc_sc_hbm" TpuCompiler "TPU compiler: TensorCore and SparseCore together need too much"
        ["tensorcore" "sparsecore" "capacity"];
    TpuRuntimeAlloc "tpu_runtime_alloc" TpuRuntime "TPU runtime: no room for a buffer"
        ["requested" "free" "largest_free" "device" "replica" "partition"];
    TpuRuntimeReserve "tpu_runtime_reserve" TpuRuntime "TPU runtime: no room to run a program"
        ["requested" "free" "reserved_now" "reservable" "capacity" "allocated" "program"];
    TpuRuntimeLoad "tpu_runtime_load" TpuRuntime "TPU runtime: no room to load a program"
        ["program" "requested" "free" "reserved_now" "reservable" "replica" "partition"];
    XlaRuntimeAlloc "xla_runtime_alloc" Xla "XLA runtime: an allocation failed"
        ["requested" "device"];
    XlaGpuPeakBuffers "xla_gpu_peak_buffers" Xla "XLA: an allocation failed, with the buffers at the peak"
        ["requested" "parameters" "constants" "maybe_live_out" "temporaries" "temporaries_fragmentation" "total" "fragmentation"];
    XlaRematWarning "xla_remat_warning" Xla "XLA: rematerialisation could not reach its limit"
        [];
    RocmAlloc "rocm_alloc" Rocm "ROCm driver: an allocation failed"
        ["requested" "device"];
    BfcDump "bfc_dump" Bfc "BFC allocator: out of memory, with its chunks"
        ["allocator" "requested" "rounded" "in_use" "free"];
    BfcStats "bfc_stats" Bfc "BFC allocator: out of memory, with its statistics"
        ["limit" "in_use" "max_in_use"];
    BfcOom "bfc_oom" Bfc "BFC allocator: out of memory"
        ["allocator" "requested" "rounded"];
    BfcSoftWarning "bfc_soft_warning" Bfc "BFC allocator: short of memory, but not failing"
        ["allocator" "requested" "rounded"];
    TfOom "tf_oom" TensorFlow "TensorFlow: no room for a tensor"
        ["shape" "type" "device" "allocator"];
    TfUsageReport "tf_usage_report" TensorFlow "TensorFlow: tensors in memory"
        ["total" "top" "device" "allocator"];
    TorchCuda "torch_cuda" Torch "PyTorch: CUDA out of memory"
        ["requested" "gpu" "capacity" "free" "allocated"];
    TorchHip "torch_hip" Torch "PyTorch: HIP out of memory"
        ["requested" "gpu" "capacity" "free" "allocated"];
    TorchXpu "torch_xpu" Torch "PyTorch: XPU out of memory"
        ["requested" "gpu" "capacity" "free" "allocated"];
    TorchMemorySummary "torch_memory_summary" Torch "PyTorch: memory summary"
        ["ooms" "allocated" "peak" "reserved"];
    IpuTile "ipu_tile" Poplar "Poplar: a tile's memory is too small"
        ["tile" "used" "capacity"];
    IpuAllowOom "ipu_allow_oom" Poplar "Poplar: variables do not fit on their tiles"
        [];
    IpuExchange "ipu_exchange" Poplar "Poplar: an exchange brings a tile more data than it can hold"
        ["tile" "exchange"];
    IpuCode "ipu_code" Poplar "Poplar: too much code for a tile"
        ["tile" "cause"];
    IpuStream "ipu_stream" Poplar "Poplar: a stream does not fit in its host buffer"
        ["requested" "buffer"];
    IpuHostBuffer "ipu_host_buffer" Poplar "Poplar: the host's buffers are full"
        ["buffer" "requested" "free"];
    TpuVmemListing "tpu_vmem_listing" TpuCompiler "TPU compiler: a kernel does not fit in VMEM, with its largest allocations"
        ["space" "used" "capacity" "exceeded" "total" "reserved" "program" "arguments" "output" "output_shared" "fragmentation"];
    TpuVmemNosize "tpu_vmem_nosize" TpuCompiler "TPU compiler: VMEM ran out, without numbers"
        ["space"];
    TpuSparsecore "tpu_sparsecore" TpuCompiler "TPU compiler: a SparseCore memory is too small"
        ["code" "space" "used_words" "capacity_words" "requested_words"];
    XlaConstantAlloc "xla_constant_alloc" Xla "XLA: no room for a constant of the program"
        ["requested"];
    XlaAutotuneWarning "xla_autotune_warning" Xla "XLA: an algorithm that does not fit was tried; the program continues"
        ["requested"];
    TorchCudaLimit "torch_cuda_limit" Torch "PyTorch: CUDA out of memory, below a limit set for the process"
        ["requested" "gpu" "capacity" "free" "allocated" "limit"];
    TorchMps "torch_mps" Torch "PyTorch: MPS out of memory"
        ["requested" "allocated" "other" "limit" "pool"];
    TorchCpu "torch_cpu" Torch "PyTorch: out of host memory"
        ["requested"];
    TorchNpu "torch_npu" Torch "PyTorch: NPU out of memory"
        ["requested" "npu" "capacity" "free" "allocated"];
    TorchHpu "torch_hpu" Torch "PyTorch: HPU out of memory"
        ["requested"];
    CudaDriverAlloc "cuda_driver_alloc" Cuda "CUDA driver: an allocation failed"
        ["requested" "driver_error"];
    CudaHostAlloc "cuda_host_alloc" Cuda "CUDA driver: no page-locked memory on the host"
        ["requested"];
    CudaAsyncAlloc "cuda_async_alloc" Cuda "CUDA's asynchronous allocator: out of memory"
        ["allocator" "requested" "free" "capacity" "in_use"];
    CudaModuleLoad "cuda_module_load" Cuda "CUDA driver: no room to load a program"
        ["driver_error"];
    CudaErrorOom "cuda_error_oom" Cuda "CUDA: out of memory, without numbers"
        ["driver_error"];
    CudaLibraryAlloc "cuda_library_alloc" Cuda "A CUDA library ran out of memory"
        ["library" "driver_error"];
    NcclAlloc "nccl_alloc" Cuda "NCCL: an allocation failed"
        ["requested" "gpu"];
    RmmAlloc "rmm_alloc" Cuda "RAPIDS memory manager: out of memory"
        ["requested"];
    HipErrorOom "hip_error_oom" Rocm "HIP: out of memory, without numbers"
        ["driver_error"];
    VllmKvCache "vllm_kv_cache" Serving "vLLM: no room for the KV cache"
        ["requested" "free"];
    VllmStartup "vllm_startup" Serving "vLLM: too little memory is free at startup"
        ["requested" "free" "capacity"];
    SglangMemory "sglang_memory" Serving "SGLang: not enough memory"
        ["requested"];
    TgiMemory "tgi_memory" Serving "TGI: not enough memory for a prefill"
        ["requested"];
    GgmlAlloc "ggml_alloc" Ggml "ggml: no room for a buffer"
        ["requested" "gpu"];
    TritonSharedMemory "triton_shared_memory" Kernel "Triton: a kernel needs more on-chip memory than available"
        ["space" "used" "capacity"];
    CudaSharedMemory "cuda_shared_memory" Kernel "CUDA compiler: a kernel needs more shared memory than available"
        ["space" "used" "capacity"];
    OrtArena "ort_arena" Framework "ONNX Runtime: out of memory"
        ["requested" "op"];
    CupyAlloc "cupy_alloc" Framework "CuPy: out of memory"
        ["requested" "allocated" "limit"];
    JuliaCuda "julia_cuda" Framework "CUDA.jl: out of memory"
        ["requested" "in_use" "capacity"];
    PaddleAlloc "paddle_alloc" Framework "Paddle: out of memory"
        ["requested" "gpu" "allocated" "free"];
    TensorrtAlloc "tensorrt_alloc" Framework "TensorRT: out of memory"
        ["requested"];
    IreeAlloc "iree_alloc" Framework "IREE: out of memory"
        ["driver_error"];
    VulkanAlloc "vulkan_alloc" Graphics "Vulkan: out of memory"
        ["requested" "driver_error"];
    MetalAlloc "metal_alloc" Graphics "Metal: out of memory"
        ["requested" "limit"];
    SyclAlloc "sycl_alloc" Graphics "SYCL or OpenCL: out of memory"
        ["requested" "driver_error"];
    MindsporeAlloc "mindspore_alloc" Framework "MindSpore: out of memory"
        ["requested" "capacity" "free"];
    XgboostAlloc "xgboost_alloc" Framework "XGBoost: out of memory"
        ["requested" "free"];
    DirectmlAlloc "directml_alloc" Graphics "DirectML: no room for a tensor"
        ["requested"];
    NeuronAlloc "neuron_alloc" Neuron "AWS Neuron: no room for a buffer"
        ["requested" "in_use" "device"];
    LinuxOomKill "linux_oom_kill" Host "Linux ended a process because memory ran out"
        ["pid" "name" "used" "total_vm"];
    SlurmOomKill "slurm_oom_kill" Host "Slurm: a step ran out of memory"
        ["step" "used" "limit"];
    KubernetesOomKill "kubernetes_oom_kill" Host "Kubernetes: a container ran out of memory"
        [];
    RayOomKill "ray_oom_kill" Host "Ray ended a worker because its node ran out of memory"
        ["used" "capacity"];
    RayObjectStore "ray_object_store" Host "Ray: the object store is full"
        ["requested"];
    JobMemoryKill "job_memory_kill" Host "A job manager ended a job because it used too much memory"
        ["manager" "used" "limit"];
    YarnMemoryKill "yarn_memory_kill" Host "YARN ended a container because it used too much memory"
        ["used" "limit"];
    TorchSharedMemory "torch_shared_memory" Host "PyTorch: no shared memory for data loader workers"
        [];
    NumpyAlloc "numpy_alloc" Host "NumPy: no memory for an array"
        ["requested" "shape" "type"];
    WindowsCommit "windows_commit" Host "Windows: no memory left to commit"
        [];
    HostBadAlloc "host_bad_alloc" Host "A process ran out of host memory"
        ["requested"];
}

impl FailureKind {
    /// OpenXLA's error code for this kind, whether or not the message prints it.
    #[must_use]
    pub const fn error_code(self) -> Option<&'static str> {
        Some(match self {
            Self::TpuHbmListing
            | Self::TpuHbmUsage
            | Self::TpuHbmOneline
            | Self::TpuHbmEarly
            | Self::TpuCompileAbort
            | Self::TpuTcScHbm => "E1000",
            Self::TpuScopedVmem | Self::TpuVmemOneline | Self::TpuVmemListing => "E1001",
            Self::TpuSparsecore => "E3000",
            Self::TpuRuntimeAlloc => "E0100",
            Self::TpuRuntimeReserve | Self::TpuRuntimeLoad => "E0101",
            _ => return None,
        })
    }

    /// Whether the message is a memory report, printed even if nothing failed.
    #[must_use]
    pub const fn is_account(self) -> bool {
        matches!(self, Self::XlaRematWarning | Self::TorchMemorySummary | Self::TfUsageReport)
    }

    /// Whether the message reports a total over capacity rather than a failed request.
    #[must_use]
    pub const fn is_total(self) -> bool {
        matches!(self, Self::TpuTcScHbm | Self::XlaGpuPeakBuffers)
    }
}
