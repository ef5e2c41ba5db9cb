//! How to get a dump, by framework: what to set, what to open afterwards.

/// How to get a file that says where the memory of a program went.
pub struct Recipe {
    /// The framework.
    pub name: &'static str,
    /// The steps.
    pub steps: &'static [Step],
    /// Where it is documented.
    pub source: &'static str,
    /// How far the steps were tried.
    pub tried: &'static str,
}

/// One of the ways, or one step of it.
pub struct Step {
    /// What to do and why.
    pub words: &'static str,
    /// What to type, to copy.
    pub code: &'static str,
}

const fn step(words: &'static str, code: &'static str) -> Step {
    Step { words, code }
}

const RUN: &str = "highwater run -- python train.py";
const XLA_FLAGS: &str = "XLA_FLAGS=\"--xla_dump_to=/tmp/dump --xla_dump_hlo_as_proto\" python train.py";

/// All recipes.
pub const RECIPES: &[Recipe] = &[
    Recipe {
        name: "Any command",
        steps: &[
            step(
                "Runs the command as it is and says at the end what did not fit: everything that XLA or Poplar compiles, \
                 and out-of-memory messages in what it prints.",
                RUN,
            ),
            step(
                "Or follow the folder that a running program dumps to: programs appear as they are complete.",
                "highwater --follow /tmp/dump",
            ),
            step(
                "Or give it only the messages: paste them here with Ctrl V, drop the log, or pipe it.",
                "python train.py 2>&1 | highwater -",
            ),
        ],
        source: "highwater run --help",
        tried: "Tried with JAX, TensorFlow, and commands that are not Python.",
    },
    Recipe {
        name: "JAX",
        steps: &[
            step(
                "XLA writes every program that it compiles, also one that then does not fit. The flags are read when JAX \
                 first uses a device. Programs from JAX's compilation cache leave nothing: \
                 JAX_ENABLE_COMPILATION_CACHE=false. Then open /tmp/dump.",
                XLA_FLAGS,
            ),
            step(
                "One function, without any environment variable and without a restart.",
                "jax.jit(step).lower(*args).compile(\n    compiler_options={\"xla_dump_to\": \"/tmp/dump\", \"xla_dump_hlo_as_proto\": True})",
            ),
            step(
                "For a TPU, on a machine without one: libtpu compiles ahead of time. Needs pip install highwater libtpu.",
                "import highwater\nhighwater.fits_on(step, *args, topologies=[\"v5e:2x2\", \"v6e:2x2\"])",
            ),
            step(
                "What is live now, with the Python stacks that made it. Then open memory.prof.",
                "jax.profiler.save_device_memory_profile(\"memory.prof\")",
            ),
        ],
        source: "docs.jax.dev/en/latest/device_memory_profiling.html",
        tried: "Tried with JAX 0.10.2 on the processor, and for TPUs with libtpu 0.0.42.",
    },
    Recipe {
        name: "TensorFlow",
        steps: &[
            step(
                "On a TPU everything is compiled by XLA, elsewhere what asks for it: \
                 @tf.function(jit_compile=True). Then open /tmp/dump.",
                XLA_FLAGS,
            ),
            step(
                "On a GPU without XLA: the allocator writes its chunks whenever a request fails. Then open the newest \
                 /tmp/bfc_GPU_0_bfc.*",
                "TF_BFC_MEMORY_DUMP=/tmp/bfc python train.py",
            ),
            step(
                "A profile of some steps, for TensorBoard. Then open the folder /tmp/profile.",
                "tf.profiler.experimental.start(\"/tmp/profile\")\ntrain_some_steps()\ntf.profiler.experimental.stop()",
            ),
        ],
        source: "www.tensorflow.org/xla, www.tensorflow.org/guide/profiler",
        tried: "Tried with TensorFlow 2.21 on the processor, whose allocator is the same one with TF_CPU_ALLOCATOR_USE_BFC=1; not on a GPU or a TPU.",
    },
    Recipe {
        name: "PyTorch/XLA",
        steps: &[
            step(
                "Set the flags before torch_xla is imported: they are read once. A graph is compiled at torch_xla.sync() \
                 or when a value is read. Then open /tmp/dump.",
                "PJRT_DEVICE=TPU XLA_FLAGS=\"--xla_dump_to=/tmp/dump --xla_dump_hlo_as_proto\" python train.py",
            ),
            step("Or without setting anything.", RUN),
        ],
        source: "docs.pytorch.org/xla/release/r2.8/learn/troubleshoot.html",
        tried: "Tried with PyTorch/XLA 2.9 on the processor (PJRT_DEVICE=CPU); not on a TPU.",
    },
    Recipe {
        name: "PyTorch CUDA",
        steps: &[
            step(
                "The message of the failure has the numbers: what was asked for, what the device has, what PyTorch holds. \
                 Paste it here with Ctrl V, or open the log.",
                "python train.py 2> train.log; highwater train.log",
            ),
            step(
                "Printed before it fails, the allocator's statistics can be opened in the same way.",
                "print(torch.cuda.memory_summary())",
            ),
            step(
                "To see who holds the memory and why a request failed, record every allocation from before the model is \
                 built, and write a snapshot after the failure. Then open snapshot.pickle.",
                "torch.cuda.memory._record_memory_history(max_entries=100_000)\n\
                 torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")",
            ),
        ],
        source: "docs.pytorch.org/docs/stable/generated/torch.cuda.memory.memory_summary.html",
        tried: "Not tried on a GPU. PyTorch 2.9 takes the calls, and snapshots written by PyTorch 2.0 to 2.15 open.",
    },
    Recipe {
        name: "Poplar, IPU",
        steps: &[
            step(
                "Poplar writes profile.pop and what belongs to it, also with PyTorch, TensorFlow and PopART. A compilation \
                 that runs out of memory leaves one too: debug.allowOutOfMemory is on while profiling. Then open the \
                 folder.",
                "POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\", \"autoReport.directory\":\"./profile\"}' python train.py",
            ),
            step(
                "Without the execution trace the report is much smaller, and has all that concerns memory.",
                "POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\", \"autoReport.outputExecutionProfile\":\"false\"}' python train.py",
            ),
        ],
        source: "docs.graphcore.ai/projects/graph-analyser-userguide/en/latest/capturing-ipu-reports.html",
        tried: "Not tried: Poplar could not be had. Written after its documentation.",
    },
    Recipe {
        name: "XProf",
        steps: &[
            step(
                "A trace holds the programs that ran and, on a GPU or TPU, what the allocators did. Then open the folder \
                 /tmp/profile, or a file *.xplane.pb in it.",
                "with jax.profiler.trace(\"/tmp/profile\"):\n    step(*args).block_until_ready()",
            ),
            step(
                "What TensorBoard or XProf has collected already is in its log folder.",
                "highwater LOGDIR/plugins/profile",
            ),
        ],
        source: "docs.jax.dev/en/latest/profiling.html",
        tried: "Tried with JAX 0.10.2 on the processor.",
    },
];
