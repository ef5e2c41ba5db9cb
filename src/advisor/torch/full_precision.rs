//! `torch_full_precision`: products in f32 and no autocast, as far as native frames tell.

use super::evidence::{bytes_of, devices, finding, share, whole};
use crate::advisor::finding::{ChangesResults, Finding, Severity};
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::AllocationCategory;
use crate::model::{Bytes, CachingSnapshot};

/// Least share of activations at the main moment.
const SHARE: f64 = 0.4;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        let (activations, all) = (bytes_of(device, AllocationCategory::Activation), whole(device));
        if all == 0 || (activations as f64) < SHARE * all as f64 || !is_full_precision(snapshot) {
            continue;
        }
        let half = activations / 2;
        let mut finding = Finding { severity: Severity::Hint, ..finding("torch_full_precision", device, false) };
        finding.title =
            format!("Activations in f32 hold {}, {}", Bytes(activations).short(), share(device, activations));
        finding.why = format!(
            "Products are computed in f32, and no stack leads through autocast. In bf16 most activations take half: about {} less",
            Bytes(half).short()
        );
        finding.advice = vec![
            "Run the forward pass and the loss under `torch.autocast(\"cuda\", dtype=torch.bfloat16)`; parameters stay in f32".to_owned(),
        ];
        finding.changes_results = ChangesResults::Yes;
        finding.at_stake_bytes = Some(Bytes(half));
        finding.at_most = Some("at most: normalisations and the loss stay in f32".to_owned());
        finding.is_guess = true;
        finding.reference = "Automatic mixed precision, docs.pytorch.org/docs/stable/amp.html";
        findings.push(finding);
    }
}

/// Whether native frames show products of f32, none of a shorter type, and no autocast.
fn is_full_precision(snapshot: &CachingSnapshot) -> bool {
    let mut has_products = false;
    for frame in &snapshot.stacks.frames {
        let name = snapshot.strings.get(frame.name);
        if name.contains("autocast") || name.contains("BFloat16") || name.contains("c10::Half") {
            return false;
        }
        has_products |= name.contains("gemm") && name.contains("<float");
    }
    has_products
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Frame;

    fn is_full(names: &[&str]) -> bool {
        let mut snapshot = CachingSnapshot::default();
        for name in names {
            let name = snapshot.strings.intern(name);
            snapshot.stacks.frames.push(Frame { name, ..Frame::default() });
        }
        is_full_precision(&snapshot)
    }

    #[test]
    fn products_of_floats_without_autocast_are_in_full_precision() {
        let product = "void at::cuda::blas::gemm<float>(char, char, long)";
        assert!(is_full(&["forward", product]));
        assert!(!is_full(&["forward"]), "without native frames nothing tells");
        assert!(!is_full(&[product, "at::autocast::cached_cast"]));
        assert!(!is_full(&[product, "void at::cuda::blas::gemm<c10::BFloat16>(char)"]), "some in a shorter type");
    }
}
