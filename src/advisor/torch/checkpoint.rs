//! `torch_checkpoint`: activations of equal layers, kept for the backward pass.

use std::collections::BTreeMap;

use super::evidence::{bytes_of, devices, finding, place, whole};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::{AllocationCategory, StackGroup};
use crate::model::{Bytes, percent, thousands};

/// Least share of activations at the peak.
const SHARE: f64 = 0.4;

/// Fewest equal members.
const MEMBERS: u64 = 4;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let activations = bytes_of(device, AllocationCategory::Activation);
        let all = whole(device);
        if (activations as f64) < SHARE * all as f64 || all == 0 {
            continue;
        }
        // Layers of a loop allocate with the same stack, so as many allocations of a stack are as many layers.
        let groups = device.by_stack_at(device.main_moment());
        // What a checkpoint recomputes is under its frames.
        let is_checkpointed = |group: &StackGroup| {
            let mut frames = snapshot.frames(group.stack);
            frames.any(|frame| snapshot.strings.get(frame.file).ends_with("torch/utils/checkpoint.py"))
        };
        let is_repeated = |group: &&StackGroup| {
            group.category == AllocationCategory::Activation
                && group.stack.is_known()
                && group.count >= MEMBERS
                && !is_checkpointed(group)
        };
        let mut layers: BTreeMap<u64, (u64, Option<&StackGroup>)> = BTreeMap::new();
        for group in groups.iter().filter(is_repeated) {
            let (bytes, largest) = layers.entry(group.count).or_default();
            *bytes = bytes.saturating_add(group.bytes);
            largest.get_or_insert(group);
        }
        let Some((members, (bytes, Some(largest)))) = layers.into_iter().max_by_key(|(_, (bytes, _))| *bytes) else {
            continue;
        };
        let saved = bytes - bytes / members;
        let mut finding = finding("torch_checkpoint", device, true);
        let (activations, share) = (Bytes(activations).short(), percent(activations, all));
        finding.title = format!("Activations hold {activations}, {share} of the peak");
        finding.why = format!(
            "{} of them are in {} equal allocations of each stack, most in {}. Recomputed in the backward pass, all but one of them go, {}, and with them what else a checkpointed layer keeps",
            Bytes(bytes).short(),
            thousands(members),
            place(snapshot, largest.stack),
            Bytes(saved).short()
        );
        finding.advice = vec![
            "Wrap each repeated layer in `torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)`".to_owned(),
            "Or make the batch smaller and accumulate gradients over several".to_owned(),
        ];
        finding.at_stake_bytes = Some(Bytes(saved));
        finding.at_most = Some("about: the recomputation of one layer needs memory, too".to_owned());
        finding.is_guess = largest.is_guess();
        finding.reference = "torch.utils.checkpoint, docs.pytorch.org/docs/stable/checkpoint.html";
        findings.push(finding);
    }
}
