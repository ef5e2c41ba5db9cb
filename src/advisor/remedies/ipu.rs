//! Remedies on IPUs: Graphcore's guide to memory.

use super::remedy::{Remedy, remedy};
use crate::advisor::finding::ChangesResults::{Maybe, No, Yes};
use crate::model::{Failure, FailureKind};

const IPU: &str =
    "https://docs.graphcore.ai/projects/memory-performance-optimisation/en/latest/debug-out-of-memory-exception.html";

/// Poplar's messages.
pub fn ipu(failure: &Failure) -> Vec<Remedy> {
    match failure.kind {
        FailureKind::IpuCode => vec![
            remedy(
                "Outline repeated parts so that their code is shared",
                No,
                "repeated code",
                "code is large on the tile",
                IPU,
            ),
            remedy("Split the model over more IPUs", No, "", "", IPU),
        ],
        FailureKind::IpuStream | FailureKind::IpuHostBuffer => vec![remedy(
            "These are host buffers, not tile memory: use fewer or smaller streams, and fetch less ahead",
            No,
            "",
            "the message names a buffer or a stream",
            IPU,
        )],
        _ => vec![
            remedy(
                "A smaller (micro) batch: most models were written for devices with room for a larger one",
                Maybe,
                "not-always-live memory in proportion",
                "not-always-live memory is large",
                IPU,
            ),
            remedy(
                "A lower available-memory proportion for convolutions and matrix products",
                No,
                "temporary memory of those operations",
                "a peak at one such operation",
                IPU,
            ),
            remedy("float16 computations and partial results", Yes, "up to half", "float32 variables", IPU),
            remedy(
                "Recompute activations, or offload optimizer state to streaming memory",
                No,
                "",
                "always-live memory is large",
                IPU,
            ),
            remedy(
                "Split the model over more IPUs; as a rule of thumb, if it needs more than twice the memory available",
                No,
                "",
                "",
                IPU,
            ),
        ],
    }
}
