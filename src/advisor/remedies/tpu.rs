//! Remedies for TPU programs, from OpenXLA's pages on E1000, E1001, E0100 and E0101.

use super::known::Known;
use super::remedy::{Remedy, remedy};
use crate::advisor::finding::ChangesResults::{Maybe, No, Yes};
use crate::analysis::failure::Cause;
use crate::model::{Bytes, Failure, FailureKind};

const E1000: &str = "https://openxla.org/xla/errors/error_1000";
const E1001: &str = "https://openxla.org/xla/errors/error_1001";
const E3000: &str = "https://openxla.org/xla/errors/error_3000";
const E0100: &str = "https://openxla.org/xla/errors/error_0100";
const E0101: &str = "https://openxla.org/xla/errors/error_0101";

/// A program that does not fit in HBM.
pub fn compile_hbm(failure: &Failure, known: Known) -> Vec<Remedy> {
    let mut out = Vec::new();
    let capacity = failure.bytes("capacity").unwrap_or_default();
    let half = |bytes: Bytes| capacity.0 > 0 && bytes.0 > capacity.0 / 2;
    let sizes = failure.allocations.iter().filter_map(|entry| entry.size.as_ref());
    let huge = sizes.filter(|size| half(size.bytes)).count() > 0 || failure.kind == FailureKind::TpuAllocExceeds;
    let padding: Bytes =
        failure.allocations.iter().filter_map(|entry| entry.padding.as_ref()).map(|padding| padding.bytes).sum();
    if huge {
        out.push(remedy(
            "One allocation takes more than half of the memory: check that it is sharded as intended (mesh shape, sharding annotations); without annotations XLA replicates it on every chip",
            No,
            "up to the number of chips",
            "a single tensor far larger than the others",
            E1000,
        ));
        out.push(remedy(
            "Remove left-over `jax.debug.print` calls: they make XLA keep the whole tensor in memory",
            No,
            "",
            "a large allocation used by a print",
            E1000,
        ));
    }
    if padding.0 > 0 && padding.0 >= failure.bytes("exceeded").unwrap_or_default().0 / 4 {
        out.push(remedy(
            format!(
                "{} of the listed bytes are padding: make the last dimension a multiple of 128 and the one before a multiple of 8, or move a large dimension to the end",
                padding.short()
            ),
            Maybe,
            "up to the padding",
            "a large factor after 'Extra memory due to padding'",
            E1000,
        ));
    }
    if known.can_donate != Some(false) {
        out.push(donation(E1000));
    }
    if known.trains != Some(false) {
        out.push(remedy(
            "Recompute activations instead of keeping them (`jax.checkpoint` around each layer)",
            No,
            "often half of the activations",
            "several tensors of the same size, 'jvp' in the op name",
            E1000,
        ));
        out.push(remedy(
            "Split the batch into micro-batches and sum their gradients",
            No,
            "activations, divided by the number of micro-batches",
            "many tensors with the batch as a dimension",
            E1000,
        ));
    }
    out.push(remedy("A smaller batch", Yes, "in proportion", "temporaries with the batch as a dimension", E1000));
    out.push(remedy(
        "bfloat16 instead of float32 for the largest tensors",
        Yes,
        "up to half",
        "the largest tensors are f32",
        E1000,
    ));
    out.push(remedy(
        "Shard over more chips, or offload to the host",
        No,
        "",
        "parameters and optimizer state alone nearly fill the memory",
        E1000,
    ));
    out
}

fn donation(page: &'static str) -> Remedy {
    remedy(
        "Donate arguments that are not needed afterwards (`donate_argnums`)",
        No,
        "the size of the donated arguments",
        "results have the shapes of arguments but memory of their own",
        page,
    )
}

/// TensorCore and SparseCore together need too much.
pub fn sparsecore(failure: &Failure, known: Known) -> Vec<Remedy> {
    let (tc, sc) = (failure.bytes("tensorcore").unwrap_or_default(), failure.bytes("sparsecore").unwrap_or_default());
    let mut out = Vec::new();
    if sc.0 >= tc.0 / 2 {
        out.push(remedy(
            "Serialise embedding tables with `--xla_sc_num_serialized_tables_to_optimize_hbm`; their stack grows with feature width, `max_unique_nz_per_row` and replicas",
            No,
            "the stack of tables that no longer run together",
            "SparseCore needs the most",
            E1000,
        ));
        out.push(remedy(
            "Combine features narrower than 8 floats: table rows are padded to 32 bytes",
            Maybe,
            "up to the padding",
            "widths under 8",
            E1000,
        ));
        out.push(remedy(
            "Lower `maximum_parallel_iterations`, so that less input is fetched ahead",
            No,
            "",
            "a large SparseCore heap",
            E1000,
        ));
        out.push(remedy(
            "Check that the tables are sharded over all chips",
            No,
            "up to the number of chips",
            "a full copy of a table on each chip",
            E1000,
        ));
    }
    if tc.0 >= sc.0 / 2 {
        out.extend(compile_hbm(failure, known));
    }
    out
}

/// A program too large for a memory of the SparseCore (E3000).
pub fn sparsecore_scratch() -> Vec<Remedy> {
    vec![
        remedy(
            "Check that the tables are sharded over all chips, or lower `max_ids_per_partition` and `max_unique_ids_per_partition`",
            Maybe,
            "",
            "the message names memory space 203, which is HBM",
            E3000,
        ),
        remedy(
            "Smaller `scratch_shapes` in the Pallas kernel",
            No,
            "in proportion",
            "another memory space, in a kernel of your own",
            E3000,
        ),
        remedy(
            "Keep collectives off the SparseCore: `--xla_tpu_enable_sparse_core_collective_offload_all_gather=false`, or `…_all_reduce=false`, in `LIBTPU_INIT_ARGS`",
            No,
            "",
            "another memory space, in a collective",
            E3000,
        ),
    ]
}

/// A kernel that does not fit in VMEM or SMEM.
pub fn kernel(failure: &Failure) -> Vec<Remedy> {
    let smem = failure.text("space") == Some("smem");
    let mut out = vec![remedy(
        if smem {
            "Keep less in scalar memory: smaller scalar-prefetch arguments and index tables of the kernel"
        } else {
            "Use smaller blocks in the kernel: what it holds at once is block size times buffers (two of each for pipelining)"
        },
        No,
        "in proportion to the block",
        "one kernel is over its limit",
        E1001,
    )];
    if !smem {
        out.push(remedy(
            "Give the kernel a higher limit where the chip has more VMEM: `vmem_limit_bytes` in its compiler parameters, or `LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=…`",
            No,
            "up to the VMEM of the chip",
            "the limit is below the chip's VMEM",
            E1001,
        ));
    }
    out
}

/// The runtime could not allocate a buffer or load a program.
pub fn runtime(failure: &Failure, cause: Cause, known: Known) -> Vec<Remedy> {
    let page = if failure.kind == FailureKind::TpuRuntimeAlloc { E0100 } else { E0101 };
    let mut out = Vec::new();
    if cause == Cause::Fragmentation {
        out.push(remedy(
            "Allocate the large, long-lived arrays first, before small ones break up the free memory",
            No,
            "",
            "free memory is larger than the request, the largest block smaller",
            page,
        ));
        out.push(remedy(
            "Combine many small arrays into a few large ones, and keep no references to small results, which split up the free memory",
            No,
            "",
            "many small live arrays",
            page,
        ));
        out.push(remedy(
            "Restart the process between phases that allocate differently (evaluation, then training)",
            No,
            "",
            "",
            page,
        ));
    }
    out.push(remedy(
        "Look for arrays that are kept alive by accident (`jax.live_arrays()`) and release them (`del`, smaller scopes)",
        No,
        "what they hold",
        "memory in use grows from step to step",
        page,
    ));
    if known.can_donate != Some(false) {
        out.push(donation(page));
    }
    out.push(remedy(
        "Shard parameters over more chips, shorten sequences, or use a smaller batch",
        Maybe,
        "in proportion",
        "",
        page,
    ));
    if failure.kind == FailureKind::TpuRuntimeAlloc {
        out.push(remedy(
            "Save checkpoints piece by piece instead of copying the whole state at once",
            No,
            "",
            "it fails while a checkpoint is written",
            page,
        ));
    } else {
        out.push(remedy(
            "Keep fewer compiled variants loaded: pad inputs to a few shapes",
            No,
            "",
            "many programs of different shapes",
            page,
        ));
        out.push(remedy(
            "Make the program smaller: a `scan` over layers instead of an unrolled loop, constants as arguments",
            No,
            "",
            "the program is large for what it computes",
            page,
        ));
        out.push(remedy("Buffers can evict programs from memory, so a program that ran once may not fit later: free memory before calling it again", No, "", "it was loaded before", page));
    }
    out
}
