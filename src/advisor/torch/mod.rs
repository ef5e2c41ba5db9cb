//! Rules for snapshots of PyTorch's caching allocator. What a rule saves is found by replaying the events without the
//! allocations it is about, or is said to be an upper bound.

mod checkpoint;
mod evidence;
mod expandable_segments;
mod leak;
mod logits;
mod optimizer_foreach;
mod other_process;
mod record_earlier;
mod set_to_none;

use super::subject::Rule;

/// The rules.
pub const RULES: &[Rule] = &[
    Rule { name: "torch_expandable_segments", run: expandable_segments::run },
    Rule { name: "torch_leak", run: leak::run },
    Rule { name: "torch_checkpoint", run: checkpoint::run },
    Rule { name: "torch_logits", run: logits::run },
    Rule { name: "torch_set_to_none", run: set_to_none::run },
    Rule { name: "torch_optimizer_foreach", run: optimizer_foreach::run },
    Rule { name: "torch_other_process", run: other_process::run },
    Rule { name: "torch_record_earlier", run: record_earlier::run },
];
