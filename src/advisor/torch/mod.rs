//! Rules for snapshots of PyTorch's caching allocator. What a rule saves is found by replaying the events without the
//! allocations it is about, or is said to be an upper bound.

mod attention;
mod checkpoint;
mod evidence;
mod expandable_segments;
mod full_precision;
mod kv_cache;
mod leak;
mod logits;
mod no_grad;
mod optimizer_foreach;
mod optimizer_step;
mod other_process;
mod record_earlier;
mod set_to_none;
mod unused_gradients;

use super::subject::Rule;

/// The rule whose change costs time: layers are computed twice.
pub const CHECKPOINT: &str = checkpoint::NAME;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule { name: "torch_expandable_segments", run: expandable_segments::run },
    Rule { name: "torch_leak", run: leak::run },
    Rule { name: checkpoint::NAME, run: checkpoint::run },
    Rule { name: "torch_no_grad", run: no_grad::run },
    Rule { name: "torch_kv_cache", run: kv_cache::run },
    Rule { name: "torch_attention", run: attention::run },
    Rule { name: "torch_logits", run: logits::run },
    Rule { name: "torch_set_to_none", run: set_to_none::run },
    Rule { name: "torch_optimizer_foreach", run: optimizer_foreach::run },
    Rule { name: "torch_optimizer_state", run: optimizer_step::run },
    Rule { name: "torch_unused_gradients", run: unused_gradients::run },
    Rule { name: "torch_full_precision", run: full_precision::run },
    Rule { name: "torch_other_process", run: other_process::run },
    Rule { name: "torch_record_earlier", run: record_earlier::run },
];
