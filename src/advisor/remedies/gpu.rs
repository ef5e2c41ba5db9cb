//! Remedies on GPUs: XLA's and TensorFlow's allocators, PyTorch's caching allocator.

use super::remedy::{Remedy, remedy};
use crate::advisor::finding::ChangesResults::{Maybe, No, Yes};
use crate::analysis::failure::Cause;
use crate::model::{Failure, FailureKind};

const TORCH: &str = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management";
const JAX_GPU: &str = "https://docs.jax.dev/en/latest/gpu_memory_allocation.html";

/// Free memory that is in pieces, in an allocator that can have it so.
pub fn pieces(cause: Cause) -> Vec<Remedy> {
    if cause != Cause::Fragmentation {
        return Vec::new();
    }
    vec![remedy(
        "The free memory is in pieces: try the asynchronous allocator (`TF_GPU_ALLOCATOR=cuda_malloc_async`; for JAX `XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async`)",
        No,
        "the free memory that is in pieces",
        "free memory is larger than the request, the largest block smaller",
        JAX_GPU,
    )]
}

/// XLA's and the BFC allocator's messages on a GPU.
pub fn gpu(failure: &Failure, cause: Cause) -> Vec<Remedy> {
    let mut out = pieces(cause);
    if failure.text("allocator").is_some_and(|name| name.contains("host")) {
        out.push(remedy(
            "This is page-locked memory of the host, not the GPU's: fewer or smaller transfers at a time",
            No,
            "",
            "the allocator's name says host",
            "",
        ));
    }
    out.push(remedy("Check that no other process holds memory of the GPU; JAX reserves 75 % unless `XLA_PYTHON_CLIENT_MEM_FRACTION` says otherwise", No, "", "the limit is far below the card's memory", JAX_GPU));
    out.push(remedy(
        "A smaller batch, recomputed activations (`jax.checkpoint`), donated arguments",
        Maybe,
        "",
        "temporaries with the batch as a dimension",
        "",
    ));
    out
}

/// PyTorch on any device.
pub fn torch(failure: &Failure, cause: Cause) -> Vec<Remedy> {
    let mut out = Vec::new();
    let variable = match failure.kind {
        FailureKind::TorchHip => Some("PYTORCH_HIP_ALLOC_CONF"),
        FailureKind::TorchNpu => Some("PYTORCH_NPU_ALLOC_CONF"),
        FailureKind::TorchXpu | FailureKind::TorchMps | FailureKind::TorchHpu => None,
        _ => Some("PYTORCH_CUDA_ALLOC_CONF"),
    };
    if failure.kind == FailureKind::TorchMps {
        out.push(remedy(
            "Close other programs: the GPU shares the memory of the host",
            No,
            "what they hold",
            "'other allocations' is large",
            "",
        ));
    }
    if failure.kind == FailureKind::TorchCudaLimit {
        out.push(remedy(
            "The process may use only a share of the card: raise it (`torch.cuda.set_per_process_memory_fraction`)",
            No,
            "up to the card's memory",
            "the limit is below the capacity",
            TORCH,
        ));
    }
    if let Some(variable) = variable.filter(|_| matches!(cause, Cause::CachedInPieces | Cause::Fragmentation)) {
        out.push(remedy(
            format!("Let segments grow instead of leaving pieces: `{variable}=expandable_segments:True`"),
            No,
            "what PyTorch reserved but does not use",
            "'reserved but unallocated' is large",
            TORCH,
        ));
    }
    if failure.bytes("other_in_use").is_some_and(|bytes| bytes.0 > 0) {
        out.push(remedy(
            "Another process holds memory of the same device: end it, or use another device",
            No,
            "what it holds",
            "nvidia-smi shows two processes",
            TORCH,
        ));
    }
    if failure.bytes("private_pools").is_some_and(|bytes| bytes.0 > 0) {
        out.push(remedy(
            "Some memory is held by private pools (CUDA graphs): capture fewer graphs or share one pool",
            No,
            "the private pools",
            "'allocated in private pools'",
            TORCH,
        ));
    }
    out.push(remedy(
        "A smaller batch, or gradients summed over micro-batches",
        Maybe,
        "in proportion",
        "activations with the batch as a dimension",
        TORCH,
    ));
    out.push(remedy(
        "Recompute activations (`torch.utils.checkpoint`)",
        No,
        "often half of the activations",
        "",
        TORCH,
    ));
    out.push(remedy("Lower precision (`torch.autocast` with bfloat16)", Yes, "up to half", "float32 tensors", TORCH));
    out
}
