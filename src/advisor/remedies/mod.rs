//! What to do about a failure: the remedies from its documentation, in the order to try them, and steps to get more
//! information. The only place where advice on out-of-memory messages is written.

mod gpu;
mod ipu;
mod known;
mod learn;
mod others;
mod remedy;
#[cfg(test)]
mod tests;
mod tpu;

pub use learn::NextStep;
pub use remedy::Remedy;

use known::Known;
use remedy::remedy;

use super::finding::ChangesResults::{Maybe, No, Yes};
use crate::analysis::failure::{Cause, cause};
use crate::model::{Failure, FailureKind, Profile, Speaker};

/// What to do about a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Remedies {
    /// What to change, in the order to try it.
    pub change: Vec<Remedy>,
    /// How to get more information.
    pub learn: Vec<NextStep>,
}

/// The remedies for a failure of a profile.
#[must_use]
pub fn remedies(failure: &Failure, profile: &Profile) -> Remedies {
    Remedies { change: change(failure, cause(failure), Known::of(profile)), learn: learn::next_steps(failure, profile) }
}

fn change(failure: &Failure, cause: Cause, known: Known) -> Vec<Remedy> {
    use FailureKind as Kind;
    match failure.kind {
        Kind::TpuTcScHbm => tpu::sparsecore(failure, known),
        Kind::TpuScopedVmem
        | Kind::TpuVmemOneline
        | Kind::TpuVmemListing
        | Kind::TpuVmemNosize
        | Kind::TpuSmemOneline
        | Kind::TpuSpaceOneline => tpu::kernel(failure),
        Kind::TpuSparsecore => tpu::sparsecore_scratch(),
        Kind::TorchCpu => others::host(failure),
        Kind::TpuAllocExceeds if failure.text("space") != Some("hbm") => tpu::kernel(failure),
        Kind::XlaRematWarning => vec![remedy(
            "The program exceeds the limit even after rematerialisation; keep less between forward and backward pass (`jax.checkpoint`, `torch.utils.checkpoint`), or use a smaller batch",
            Maybe,
            "",
            "",
            "",
        )],
        kind if !failure.is_error && !kind.is_account() => vec![remedy(
            "Nothing has to change: the program continues without what did not fit, perhaps more slowly",
            No,
            "",
            "",
            "",
        )],
        kind => match kind.speaker() {
            Speaker::TpuCompiler => tpu::compile_hbm(failure, known),
            Speaker::TpuRuntime => tpu::runtime(failure, cause, known),
            // The allocator names the operation for TensorFlow only.
            Speaker::Bfc | Speaker::Rocm
                if failure.text("framework") == Some("tensorflow")
                    || failure.get("op").is_some()
                    || failure.get("tensor_shape").is_some() =>
            {
                let mut out = gpu::pieces(cause);
                out.extend(tensorflow());
                out
            }
            Speaker::Rocm if kind == Kind::HipErrorOom => others::cuda(failure),
            Speaker::Xla | Speaker::Rocm | Speaker::Bfc => gpu::gpu(failure, cause),
            Speaker::Torch => gpu::torch(failure, cause),
            Speaker::Cuda => others::cuda(failure),
            Speaker::Serving => others::serving(failure),
            Speaker::Ggml => others::ggml(failure),
            Speaker::Kernel => others::kernel(),
            Speaker::Framework => others::framework(failure, cause),
            Speaker::Graphics => others::graphics(failure),
            Speaker::Neuron => others::neuron(failure),
            Speaker::Host => others::host(failure),
            Speaker::Poplar => ipu::ipu(failure),
            Speaker::TensorFlow => tensorflow(),
            Speaker::Unknown => unknown(),
        },
    }
}

/// A message that nobody knows: what is true of any memory.
fn unknown() -> Vec<Remedy> {
    vec![
        remedy(
            "Hold less at once: a smaller batch or input, or fewer tasks side by side",
            Maybe,
            "in proportion",
            "it fails only with large inputs",
            "",
        ),
        remedy(
            "Check what else uses the same memory, and end what is left over from earlier runs",
            No,
            "what it holds",
            "memory is in use before the program starts",
            "",
        ),
    ]
}

fn tensorflow() -> Vec<Remedy> {
    vec![
        remedy("A smaller batch, or smaller inputs", Yes, "in proportion", "tensors with the batch as a dimension", ""),
        remedy("Recompute activations (`tf.recompute_grad`)", No, "", "activations of many layers in the list", ""),
        remedy(
            "Let the memory grow as needed, where other processes share the card (`tf.config.experimental.set_memory_growth`)",
            No,
            "",
            "another process on the card",
            "",
        ),
    ]
}
