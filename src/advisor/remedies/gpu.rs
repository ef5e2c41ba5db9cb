//! Remedies on GPUs: XLA's and TensorFlow's allocators, PyTorch's caching allocator.

use super::remedy::{Remedy, remedy};
use crate::advisor::finding::ChangesResults::{Maybe, No, Yes};
use crate::analysis::failure::{Cause, outside};
use crate::model::{Bytes, Failure, FailureKind};

const TORCH: &str = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management";
const JAX_GPU: &str = "https://docs.jax.dev/en/latest/201/gpu-memory.html";

/// Remedy for fragmented free memory, in an allocator that can fragment.
pub fn pieces(cause: Cause) -> Vec<Remedy> {
    if cause != Cause::Fragmentation {
        return Vec::new();
    }
    vec![remedy(
        "The free memory is fragmented: try the asynchronous allocator (`TF_GPU_ALLOCATOR=cuda_malloc_async`; for JAX `XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async`)",
        No,
        "the fragmented free memory",
        "free memory is larger than the request, the largest block smaller",
        JAX_GPU,
    )]
}

/// XLA's and the BFC allocator's messages on a GPU.
pub fn gpu(failure: &Failure, cause: Cause) -> Vec<Remedy> {
    let mut out = if failure.kind == FailureKind::RocmAlloc { Vec::new() } else { pieces(cause) };
    if failure.text("allocator").is_some_and(|name| name.contains("host")) {
        out.push(remedy(
            "This is page-locked host memory, not GPU memory: use fewer or smaller transfers at a time",
            No,
            "",
            "the allocator's name says host",
            "",
        ));
    }
    if failure.flag("tried_kernels") {
        out.push(remedy(
            "Compile before the arrays are made (`jax.jit(f).lower(shapes).compile()`), or without trying out kernels: `XLA_FLAGS=--xla_gpu_autotune_level=0`, which may choose slower ones",
            No,
            "the arrays that autotuning allocates",
            "the error says that it failed to get configs",
            "",
        ));
    }
    let is_jax = failure.text("framework") == Some("jax");
    out.push(remedy(
        if is_jax {
            "Check that no other process holds GPU memory; JAX reserves 75 % unless `XLA_CLIENT_MEM_FRACTION` (in older versions `XLA_PYTHON_CLIENT_MEM_FRACTION`) says otherwise"
        } else {
            "Check that no other process holds GPU memory, and what share of it the framework reserves at startup (JAX: `XLA_CLIENT_MEM_FRACTION`, in older versions `XLA_PYTHON_CLIENT_MEM_FRACTION`; TensorFlow: `tf.config.experimental.set_memory_growth`)"
        },
        No,
        "",
        "the limit is far below the card's memory",
        if is_jax { JAX_GPU } else { "" },
    ));
    out.push(remedy(
        if is_jax {
            "A smaller batch, recomputed activations (`jax.checkpoint`), donated arguments"
        } else {
            "A smaller batch, recomputed activations"
        },
        Maybe,
        "",
        "temporaries with the batch as a dimension",
        "",
    ));
    out
}

/// Setting that keeps PyTorch's caching allocator from fragmenting, where there is one.
fn pieces_of_cache(kind: FailureKind) -> Option<&'static str> {
    match kind {
        FailureKind::TorchHip => Some(
            "Do not split large blocks, which causes fragmentation: `PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:512`",
        ),
        FailureKind::TorchNpu => {
            Some("Let segments grow instead of fragmenting: `PYTORCH_NPU_ALLOC_CONF=expandable_segments:True`")
        }
        FailureKind::TorchXpu | FailureKind::TorchMps | FailureKind::TorchHpu => None,
        _ => Some(
            "Let segments grow instead of fragmenting: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` (on Linux; on Windows `max_split_size_mb:512`)",
        ),
    }
}

/// Sign of another process on the device, by the vendor's tool.
fn sign_of_others(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::TorchHip => "amd-smi or rocm-smi shows two processes",
        FailureKind::TorchNpu => "npu-smi shows two processes",
        FailureKind::TorchXpu => "xpu-smi shows two processes",
        _ => "nvidia-smi shows two processes",
    }
}

/// What to do about memory that is held outside this process, by the vendor's tool and setting.
fn end_others(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::TorchHip => {
            "Something outside PyTorch holds most of the device: see who (`amd-smi process` or `rocm-smi --showpids`), end what is left over from earlier runs, or choose another device (`HIP_VISIBLE_DEVICES`)"
        }
        FailureKind::TorchNpu => {
            "Something outside PyTorch holds most of the device: see who (`npu-smi info`), end what is left over from earlier runs, or choose another device (`ASCEND_RT_VISIBLE_DEVICES`)"
        }
        FailureKind::TorchXpu => {
            "Something outside PyTorch holds most of the device: see who (`xpu-smi ps`), end what is left over from earlier runs, or choose another device (`ZE_AFFINITY_MASK`)"
        }
        _ => {
            "Something outside PyTorch holds most of the device: see who (`nvidia-smi`), end what is left over from earlier runs, or choose another device (`CUDA_VISIBLE_DEVICES`)"
        }
    }
}

/// PyTorch on any device.
pub fn torch(failure: &Failure, cause: Cause) -> Vec<Remedy> {
    let mut out = Vec::new();
    // The page covers CUDA, and HIP through the same interface.
    let page = match failure.kind {
        FailureKind::TorchNpu | FailureKind::TorchXpu | FailureKind::TorchMps | FailureKind::TorchHpu => "",
        _ => TORCH,
    };
    if failure.kind == FailureKind::TorchMps {
        out.push(remedy(
            "Close other programs: the GPU shares memory with the host",
            No,
            "what they hold",
            "'other allocations' is large",
            "",
        ));
        if failure.bytes("limit").is_some() {
            out.push(remedy(
                "Lift PyTorch's own limit: `PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0`; the system may then swap or stop responding",
                No,
                "",
                "the host has memory left",
                "",
            ));
        }
    }
    let limit = failure.bytes("limit").filter(|&limit| failure.bytes("capacity").is_none_or(|all| limit < all));
    if failure.kind == FailureKind::TorchCudaLimit && limit.is_some() {
        out.push(remedy(
            "The process may use only a share of the card: raise it (`torch.cuda.set_per_process_memory_fraction`)",
            No,
            "up to the card's memory",
            "the limit is below the capacity",
            TORCH,
        ));
    }
    let text = pieces_of_cache(failure.kind);
    if let Some(text) = text.filter(|_| matches!(cause, Cause::CachedInPieces | Cause::Fragmentation)) {
        out.push(remedy(
            text,
            No,
            "what PyTorch reserved but does not use",
            "'reserved but unallocated' is large",
            page,
        ));
    }
    let outside = outside(failure);
    if outside.is_some_and(|outside| outside.is_most) {
        out.insert(0, remedy(end_others(failure.kind), No, "what they hold", sign_of_others(failure.kind), page));
    } else if failure.kind != FailureKind::TorchCudaLimit
        && outside.is_some_and(|outside| outside.other_process > Bytes::ZERO)
    {
        // What others hold has no part in a limit set for this process.
        out.push(remedy(
            if failure.count("other_processes").is_none_or(|count| count <= 1) {
                "Another process holds memory on the same device: end it, or use another device"
            } else {
                "Other processes hold memory on the same device: end them, or use another device"
            },
            No,
            "what they hold",
            sign_of_others(failure.kind),
            page,
        ));
    }
    if failure.bytes("private_pools").is_some_and(|bytes| bytes.0 > 0) {
        out.push(remedy(
            "Some memory is held by private pools (CUDA graphs): capture fewer graphs or share one pool",
            No,
            "the private pools",
            "'allocated in private pools'",
            page,
        ));
    }
    out.push(remedy(
        "A smaller batch, or gradients summed over micro-batches",
        Maybe,
        "in proportion",
        "activations with the batch as a dimension",
        page,
    ));
    out.push(remedy("Recompute activations (`torch.utils.checkpoint`)", No, "often half of the activations", "", page));
    out.push(remedy("Lower precision (`torch.autocast` with bfloat16)", Yes, "up to half", "float32 tensors", page));
    out
}
