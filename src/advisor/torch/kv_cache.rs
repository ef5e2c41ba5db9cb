//! `torch_kv_cache`: keys and values that inference keeps.

use super::evidence::{bytes_of, devices, finding, place, share, whole};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::AllocationCategory;
use crate::model::{Bytes, counted};

/// Least share at the main moment.
const SHARE: f64 = 0.2;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let (bytes, all) = (bytes_of(device, AllocationCategory::Cache), whole(device));
        if all == 0 || (bytes as f64) < SHARE * all as f64 {
            continue;
        }
        let groups = device.by_stack_at(device.main_moment());
        let of_cache: Vec<_> = groups.iter().filter(|group| group.category == AllocationCategory::Cache).collect();
        let Some(largest) = of_cache.first() else { continue };
        let blocks: u64 = of_cache.iter().map(|group| group.count).sum();
        let mut finding = finding("torch_kv_cache", device, true);
        finding.title = format!("The KV cache holds {}, {}", Bytes(bytes).short(), share(device, bytes));
        let told = if largest.is_guess() {
            "No backward pass is recorded, and these blocks stay while the rest of each layer is freed"
        } else {
            "Its stacks lead through a cache"
        };
        finding.why = format!("{}, most made in {}. {told}", counted(blocks, "block"), place(snapshot, largest.stack));
        finding.advice = vec![
            "Make it smaller: a lower `max_cache_len` where the cache is made for its full length at once, a shorter context, or a smaller batch".to_owned(),
            "Quantise it, or keep it in host memory: `cache_implementation=\"quantized\"` or `\"offloaded\"` in Transformers' `generate`".to_owned(),
            "Where it grows by `torch.cat`, old and new live at once: allocate it once and write into it".to_owned(),
        ];
        finding.at_stake_bytes = Some(Bytes(bytes));
        finding.at_most =
            Some("at most: the whole cache; half of its length or of the batch is half of that".to_owned());
        finding.is_guess = largest.is_guess();
        finding.reference = "KV cache strategies, huggingface.co/docs/transformers/kv_cache";
        findings.push(finding);
    }
}
