//! How to get more information: the exact flags, and which file to open afterwards.

use crate::model::{Failure, FailureKind, Profile, Speaker};

/// A step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextStep {
    /// One sentence.
    pub text: String,
    /// Text to copy into a shell or a program.
    pub command: Option<String>,
    /// File or folder to open, which the failure text names.
    pub open: Option<String>,
}

fn step(text: impl Into<String>, command: Option<&str>) -> NextStep {
    NextStep { text: text.into(), command: command.map(ToOwned::to_owned), open: None }
}

/// The flags that make XLA write a dump, through JAX's environment variable.
const DUMP: &str = "XLA_FLAGS=\"--xla_dump_to=/tmp/xla_dump --xla_dump_hlo_as_proto\"";
const POPLAR: &str = "POPLAR_ENGINE_OPTIONS='{\"autoReport.all\":\"true\", \"autoReport.directory\":\"./profile\", \"autoReport.outputExecutionProfile\":\"false\"}'";
const TORCH: &str = "torch.cuda.memory._record_memory_history(max_entries=100_000)";
const TORCH_SAVE: &str = "torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")";

/// The steps for a failure.
#[must_use]
pub fn next_steps(failure: &Failure, profile: &Profile) -> Vec<NextStep> {
    let mut out: Vec<NextStep> = failure
        .paths
        .iter()
        .map(|path| NextStep {
            text: format!("Open {path}, which the text names"),
            command: None,
            open: Some(path.clone()),
        })
        .collect();
    // With the dump of the program open, every buffer is known already.
    let has_dump = profile.programs.iter().any(|program| program.has_buffer_assignment && !program.is_listing);
    match failure.kind {
        kind if kind.speaker() == Speaker::TpuRuntime => {
            out.push(step(
                "Let the runtime list what is allocated when it fails, then open its log",
                Some("LIBTPU_INIT_ARGS=--tpu_log_allocations_on_oom=true"),
            ));
            out.push(step(
                "Or save what is live before the failing step, then open memory.prof",
                Some("jax.profiler.save_device_memory_profile(\"memory.prof\")"),
            ));
        }
        FailureKind::TpuCompileAbort => {
            out.push(step(
                "Let the compiler continue and report what does not fit",
                Some("LIBTPU_INIT_ARGS=--xla_tpu_impure_oom_fast_exit_threshold=-1"),
            ));
            dump(failure, has_dump, &mut out);
        }
        kind if kind.speaker() == Speaker::TpuCompiler => dump(failure, has_dump, &mut out),
        FailureKind::XlaGpuPeakBuffers
        | FailureKind::XlaRuntimeAlloc
        | FailureKind::XlaRematWarning
        | FailureKind::RocmAlloc => {
            dump(failure, has_dump, &mut out);
        }
        kind if kind.speaker() == Speaker::Bfc => {
            if failure.chunks.is_empty() && failure.kind != FailureKind::BfcSoftWarning {
                out.push(step(
                    "Let the allocator dump its chunks when it fails, then open the file it writes",
                    Some("TF_BFC_MEMORY_DUMP=/tmp/bfc"),
                ));
            }
            dump(failure, has_dump, &mut out);
        }
        kind if kind.speaker() == Speaker::TensorFlow && failure.usage_rows.is_empty() => {
            out.push(step(
                "Let TensorFlow list the tensors in memory when it fails (only graphs run in a session, not in eager mode)",
                Some("tf.compat.v1.RunOptions(report_tensor_allocations_upon_oom=True)"),
            ));
        }
        FailureKind::TorchCuda
        | FailureKind::TorchHip
        | FailureKind::TorchCudaLimit
        | FailureKind::TorchMemorySummary => {
            out.push(step("Record every allocation, before the model is built", Some(TORCH)));
            out.push(step("After the failure, write the snapshot, then open snapshot.pickle here: it says why the request failed and who holds the memory", Some(TORCH_SAVE)));
        }
        kind if kind.speaker() == Speaker::Poplar => {
            out.push(step("Let Poplar write a profile, then open profile/profile.pop: it shows each tile and what is live at each step", Some(POPLAR)));
        }
        FailureKind::Unknown => {
            out.push(step(
                "Find out which memory ran out: watch the host's while the program runs again (on Linux)",
                Some("free -h"),
            ));
            out.push(step("Or the device's, by its vendor's tool", Some("nvidia-smi")));
            out.push(step(
                "Or see whether the system ended the program (on Linux)",
                Some("sudo dmesg -T | grep -i -E 'oom|killed process'"),
            ));
        }
        _ => {}
    }
    out
}

fn dump(failure: &Failure, has_dump: bool, out: &mut Vec<NextStep>) {
    if has_dump {
        out.push(step("The dump of this program was read too: its plan and findings say what to change", None));
        return;
    }
    let module = failure.text("module").map(|module| format!("*.{module}.*after_optimizations.hlo.pb"));
    let file = module.unwrap_or_else(|| "*after_optimizations.hlo.pb".to_owned());
    let known = if failure.allocations.is_empty() && failure.peak_buffers.is_empty() {
        "The text names no buffers. Run again with a dump"
    } else {
        "The text names only the largest buffers. For all of them, with their lifetimes, run again with a dump"
    };
    out.push(step(format!("{known}, then open {file} in /tmp/xla_dump (next to *memory-usage-report* and *oom_intermediate_module*, which contain less)"), Some(DUMP)));
}
