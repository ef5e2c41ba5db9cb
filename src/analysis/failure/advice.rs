//! What to change after a failure: the remedies of the pages that describe it, in the order to try them.

use super::{Bytes, Cause, Failure};

/// A remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// What to do, one sentence.
    pub text: String,
    /// Whether results change: `no`, `yes`, `maybe`.
    pub changes_results: &'static str,
    /// What it can bring, where the page says.
    pub gain: &'static str,
    /// How to see that this is the trouble.
    pub sign: &'static str,
    /// Where it is written.
    pub reference: &'static str,
}

const E1000: &str = "https://openxla.org/xla/errors/error_1000";
const E1001: &str = "https://openxla.org/xla/errors/error_1001";
const E0100: &str = "https://openxla.org/xla/errors/error_0100";
const E0101: &str = "https://openxla.org/xla/errors/error_0101";
const TORCH: &str = "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management";
const IPU: &str =
    "https://docs.graphcore.ai/projects/memory-performance-optimisation/en/latest/debug-out-of-memory-exception.html";
const JAX_GPU: &str = "https://docs.jax.dev/en/latest/gpu_memory_allocation.html";

fn item(
    text: impl Into<String>,
    changes_results: &'static str,
    gain: &'static str,
    sign: &'static str,
    reference: &'static str,
) -> Advice {
    Advice { text: text.into(), changes_results, gain, sign, reference }
}

/// The page of an error code.
#[must_use]
pub fn page(code: &str) -> Option<&'static str> {
    match code {
        "E1000" => Some(E1000),
        "E1001" => Some(E1001),
        "E0100" => Some(E0100),
        "E0101" => Some(E0101),
        _ => None,
    }
}

/// The remedies for a failure.
#[must_use]
pub fn advice(failure: &Failure, cause: Cause) -> Vec<Advice> {
    match failure.kind {
        "tpu_tc_sc_hbm" => sparsecore(failure),
        "tpu_hbm_listing" | "tpu_hbm_usage" | "tpu_hbm_oneline" | "tpu_hbm_early" | "tpu_compile_abort" => {
            compile_hbm(failure)
        }
        "tpu_alloc_exceeds" if failure.text("space") == Some("hbm") => compile_hbm(failure),
        "tpu_scoped_vmem" | "tpu_alloc_exceeds" | "tpu_vmem_oneline" | "tpu_smem_oneline" | "tpu_space_oneline" => {
            kernel(failure)
        }
        "tpu_runtime_alloc" | "tpu_runtime_reserve" | "tpu_runtime_load" => runtime(failure, cause),
        "xla_runtime_alloc" | "xla_gpu_peak_buffers" | "rocm_alloc" | "bfc_dump" | "bfc_stats" | "bfc_oom" => {
            gpu(failure, cause)
        }
        kind if kind.starts_with("torch") => torch(failure, cause),
        kind if kind.starts_with("ipu") => ipu(failure),
        kind if kind.starts_with("tf") => vec![
            item(
                "A smaller batch, or smaller inputs",
                "yes",
                "in proportion",
                "tensors with the batch as a dimension",
                "",
            ),
            item("Recompute activations (tf.recompute_grad)", "no", "", "activations of many layers in the list", ""),
            item(
                "Let the memory grow as needed, where other processes share the card (tf.config.experimental.set_memory_growth)",
                "no",
                "",
                "another process on the card",
                "",
            ),
        ],
        "xla_remat_warning" => vec![item(
            "The program needs more than the limit even after recomputing; save less between forward and backward pass (jax.checkpoint), or use a smaller batch",
            "maybe",
            "",
            "",
            "",
        )],
        _ => Vec::new(),
    }
}

fn compile_hbm(failure: &Failure) -> Vec<Advice> {
    let mut out = Vec::new();
    let capacity = failure.bytes("capacity").unwrap_or_default();
    let half = |bytes: Bytes| capacity.0 > 0 && bytes.0 > capacity.0 / 2;
    let sizes = failure.allocations.iter().filter_map(|entry| entry.size.as_ref());
    let huge = sizes.filter(|size| half(size.bytes)).count() > 0 || failure.kind == "tpu_alloc_exceeds";
    let padding: Bytes =
        failure.allocations.iter().filter_map(|entry| entry.padding.as_ref()).map(|padding| padding.bytes).sum();
    if huge {
        out.push(item(
            "One allocation takes more than half of the memory: check that it is sharded as meant (mesh shape, sharding annotations), since without them XLA replicates it on every chip",
            "no",
            "up to the number of chips",
            "a single tensor far larger than the others",
            E1000,
        ));
        out.push(item(
            "Remove left-over jax.debug.print calls: they make XLA keep the whole tensor in memory",
            "no",
            "",
            "a large allocation that a print uses",
            E1000,
        ));
    }
    if padding.0 > 0 && padding.0 >= failure.bytes("exceeded").unwrap_or_default().0 / 4 {
        out.push(item(
            format!(
                "{} of what is listed is padding: make the last dimension a multiple of 128 and the one before a multiple of 8, or move a large dimension to the end",
                padding.short()
            ),
            "maybe",
            "up to the padding",
            "a large factor behind 'Extra memory due to padding'",
            E1000,
        ));
    }
    out.push(item(
        "Donate arguments that are not needed afterwards (donate_argnums)",
        "no",
        "the size of the donated arguments",
        "worth trying always",
        E1000,
    ));
    out.push(item(
        "Recompute activations instead of keeping them (jax.checkpoint)",
        "no",
        "often half of the activations",
        "several tensors of the same size, 'jvp' in the name of the operation",
        E1000,
    ));
    out.push(item(
        "Divide the batch into micro-batches and sum their gradients",
        "no",
        "the activations divided by their number",
        "many tensors with the batch as a dimension",
        E1000,
    ));
    out.push(item("A smaller batch", "yes", "in proportion", "temporaries with the batch as a dimension", E1000));
    out.push(item(
        "bfloat16 instead of float32 for the largest tensors",
        "yes",
        "up to half",
        "the largest tensors are f32",
        E1000,
    ));
    out.push(item(
        "Shard over more chips, or offload to the host",
        "no",
        "",
        "parameters and optimizer state alone nearly fill the memory",
        E1000,
    ));
    out
}

fn sparsecore(failure: &Failure) -> Vec<Advice> {
    let (tc, sc) = (failure.bytes("tensorcore").unwrap_or_default(), failure.bytes("sparsecore").unwrap_or_default());
    let mut out = Vec::new();
    if sc.0 >= tc.0 / 2 {
        out.push(item(
            "Serialise embedding tables with --xla_sc_num_serialized_tables_to_optimize_hbm",
            "no",
            "the stack of tables that no longer run together",
            "SparseCore needs the most",
            E1000,
        ));
        out.push(item(
            "Check the feature widths: tables are padded to 32 bytes (8 floats)",
            "maybe",
            "up to the padding",
            "widths under 8",
            E1000,
        ));
        out.push(item(
            "Lower maximum_parallel_iterations, so that less input is fetched ahead",
            "no",
            "",
            "a large SparseCore heap",
            E1000,
        ));
        out.push(item(
            "Check that the tables are sharded over all chips",
            "no",
            "up to the number of chips",
            "a table in full on each chip",
            E1000,
        ));
    }
    if tc.0 >= sc.0 / 2 {
        out.extend(compile_hbm(failure));
    }
    out
}

fn kernel(failure: &Failure) -> Vec<Advice> {
    let smem = failure.text("space") == Some("smem");
    let mut out = vec![item(
        if smem {
            "Keep less in scalar memory: smaller scalar-prefetch arguments and index tables of the kernel"
        } else {
            "Use smaller blocks in the kernel: what it holds at once is block size times buffers (two of each for pipelining)"
        },
        "no",
        "in proportion to the block",
        "one kernel is over its limit",
        E1001,
    )];
    if !smem {
        out.push(item(
            "Give the kernel a higher limit where the chip has more VMEM: vmem_limit_bytes in its compiler parameters, or --xla_tpu_scoped_vmem_limit_kib",
            "no",
            "up to the VMEM of the chip",
            "the limit is below the chip's VMEM",
            E1001,
        ));
    }
    out
}

fn runtime(failure: &Failure, cause: Cause) -> Vec<Advice> {
    let page = if failure.kind == "tpu_runtime_alloc" { E0100 } else { E0101 };
    let mut out = Vec::new();
    if cause == Cause::Fragmentation {
        out.push(item(
            "Allocate the large, long-lived arrays first, before small ones break up the free memory",
            "no",
            "",
            "free memory is larger than the request, the largest block smaller",
            page,
        ));
        out.push(item(
            "Keep no references to small results longer than needed; they stand between the free blocks",
            "no",
            "",
            "many small live arrays",
            page,
        ));
    }
    out.push(item(
        "Keep no references to jax.Arrays that are not needed any more (del, smaller scopes)",
        "no",
        "what they hold",
        "memory in use grows from step to step",
        page,
    ));
    out.push(item(
        "Donate arguments that are not needed afterwards (donate_argnums)",
        "no",
        "the size of the donated arguments",
        "worth trying always",
        page,
    ));
    out.push(item(
        "Shard parameters over more chips, shorten sequences, or use a smaller batch",
        "maybe",
        "in proportion",
        "",
        page,
    ));
    if failure.kind != "tpu_runtime_alloc" {
        out.push(item("Buffers may push programs out of memory, so a program that ran once may find no room later: free memory before it is called again", "no", "", "it was loaded before", page));
    }
    out
}

fn gpu(failure: &Failure, cause: Cause) -> Vec<Advice> {
    let mut out = Vec::new();
    if cause == Cause::Fragmentation {
        out.push(item("The free memory is in pieces: try the asynchronous allocator (TF_GPU_ALLOCATOR=cuda_malloc_async; for JAX XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async)", "no", "the free memory that is in pieces", "free memory is larger than the request, the largest block smaller", JAX_GPU));
    }
    if failure.text("allocator").is_some_and(|name| name.contains("host")) {
        out.push(item(
            "This is page-locked memory of the host, not the GPU's: fewer or smaller transfers at a time",
            "no",
            "",
            "the allocator's name says host",
            "",
        ));
    }
    out.push(item("Check that no other process holds memory of the GPU; JAX reserves 75 % unless XLA_PYTHON_CLIENT_MEM_FRACTION says otherwise", "no", "", "the limit is far below the card's memory", JAX_GPU));
    out.push(item(
        "A smaller batch, recomputed activations (jax.checkpoint), donated arguments",
        "maybe",
        "",
        "temporaries with the batch as a dimension",
        "",
    ));
    out
}

fn torch(failure: &Failure, cause: Cause) -> Vec<Advice> {
    let mut out = Vec::new();
    if matches!(cause, Cause::CachedInPieces | Cause::Fragmentation) {
        out.push(item(
            "Let segments grow instead of leaving pieces: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            "no",
            "what PyTorch reserved but does not use",
            "'reserved but unallocated' is large",
            TORCH,
        ));
    }
    if failure.bytes("other_in_use").is_some_and(|bytes| bytes.0 > 0) {
        out.push(item(
            "Another process holds memory of the same device: end it, or use another device",
            "no",
            "what it holds",
            "nvidia-smi shows two processes",
            TORCH,
        ));
    }
    if failure.bytes("private_pools").is_some_and(|bytes| bytes.0 > 0) {
        out.push(item(
            "Some memory is held by private pools (CUDA graphs): capture fewer graphs or share one pool",
            "no",
            "the private pools",
            "'allocated in private pools'",
            TORCH,
        ));
    }
    out.push(item(
        "A smaller batch, or gradients summed over micro-batches",
        "maybe",
        "in proportion",
        "activations with the batch as a dimension",
        TORCH,
    ));
    out.push(item("Recompute activations (torch.utils.checkpoint)", "no", "often half of the activations", "", TORCH));
    out.push(item("Lower precision (torch.autocast with bfloat16)", "yes", "up to half", "float32 tensors", TORCH));
    out
}

fn ipu(failure: &Failure) -> Vec<Advice> {
    match failure.kind {
        "ipu_code" => vec![
            item(
                "Outline repeated parts so that their code is shared",
                "no",
                "repeated code",
                "code is large on the tile",
                IPU,
            ),
            item("Divide the model over more IPUs", "no", "", "", IPU),
        ],
        "ipu_stream" | "ipu_host_buffer" => vec![item(
            "This is memory of the host's buffers, not of the tiles: smaller or fewer streams, or a larger buffer in the engine's options",
            "no",
            "",
            "the message names a buffer or a stream",
            IPU,
        )],
        _ => vec![
            item(
                "A smaller (micro) batch: most models are written for processors with a larger one",
                "maybe",
                "not-always-live memory in proportion",
                "not-always-live memory is large",
                IPU,
            ),
            item(
                "A lower available-memory proportion for convolutions and matrix products",
                "no",
                "temporary memory of those operations",
                "a peak at one such operation",
                IPU,
            ),
            item("float16 computations and partial results", "yes", "up to half", "float32 variables", IPU),
            item(
                "Recompute activations, or offload optimizer state to streaming memory",
                "no",
                "",
                "always-live memory is large",
                IPU,
            ),
            item(
                "Divide the model over more IPUs; as a rule, when it needs more than twice what there is",
                "no",
                "",
                "",
                IPU,
            ),
        ],
    }
}
