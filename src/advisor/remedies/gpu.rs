//! Remedies on GPUs: XLA's and TensorFlow's allocators, PyTorch's caching allocator.

use super::{Remedy, remedy};
use crate::advisor::finding::ChangesResults::{Maybe, No, Yes};
use crate::analysis::failure::Cause;
use crate::model::Failure;

const TORCH: &str = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management";
const JAX_GPU: &str = "https://docs.jax.dev/en/latest/gpu_memory_allocation.html";

pub fn gpu(failure: &Failure, cause: Cause) -> Vec<Remedy> {
    let mut out = Vec::new();
    if cause == Cause::Fragmentation {
        out.push(remedy("The free memory is in pieces: try the asynchronous allocator (`TF_GPU_ALLOCATOR=cuda_malloc_async`; for JAX `XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async`)", No, "the free memory that is in pieces", "free memory is larger than the request, the largest block smaller", JAX_GPU));
    }
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

pub fn torch(failure: &Failure, cause: Cause) -> Vec<Remedy> {
    let mut out = Vec::new();
    if matches!(cause, Cause::CachedInPieces | Cause::Fragmentation) {
        out.push(remedy(
            "Let segments grow instead of leaving pieces: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`",
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
