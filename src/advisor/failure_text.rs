//! Rules on out-of-memory messages: what the message alone shows about the cause.

use super::finding::{ChangesResults, Finding, Severity};
use super::remedies::remedies;
use super::subject::{Rule, Subject};
use crate::analysis::names::scope;
use crate::model::{Bytes, Failure, FailureKind, MemorySpace};

/// The rules.
pub const RULES: &[Rule] = &[
    Rule { name: "fragmentation", run: runtime_allocation },
    Rule { name: "program_size", run: program_load },
    Rule { name: "sparsecore_balance", run: cores },
    Rule { name: "scoped_vmem", run: scoped_vmem },
    Rule { name: "hbm_scenario", run: listing },
];

const ERROR_0100: &str = "E0100: runtime buffer allocation failure, https://openxla.org/xla/errors/error_0100";
const ERROR_0101: &str = "E0101: runtime program allocation failure, https://openxla.org/xla/errors/error_0101";
const ERROR_1001: &str = "E1001: scoped VMEM OOM, https://openxla.org/xla/errors/error_1001";

/// Failures of the given kinds, with their rows.
fn errors<'a>(subject: &Subject<'a>, kinds: &'static [FailureKind]) -> impl Iterator<Item = (usize, &'a Failure)> {
    let failures = subject.profile.failures.iter().enumerate();
    failures.filter(move |(_, failure)| failure.is_error && kinds.contains(&failure.kind))
}

/// The main finding about a failure, with its remedies.
fn critical(rule: &'static str, reference: &'static str, subject: &Subject<'_>, row: usize) -> Finding {
    let change = remedies(&subject.profile.failures[row], subject.profile).change;
    let advice = change.into_iter().map(|remedy| remedy.text).collect();
    Finding { severity: Severity::Critical, reference, failure: Some(row), advice, ..Finding::new(rule) }
}

/// E0100: too little memory is free, or it is fragmented.
fn runtime_allocation(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (row, failure) in errors(subject, &[FailureKind::TpuRuntimeAlloc]) {
        let (Some(wanted), Some(free)) = (failure.bytes("requested"), failure.bytes("free")) else { continue };
        let hole = failure.bytes("largest_free");
        if free >= wanted {
            let mut finding = critical("fragmentation", ERROR_0100, subject, row);
            finding.title = format!("{} are free, but not as one block of {}", free.short(), wanted.short());
            finding.why = match hole {
                Some(hole) => format!(
                    "The largest free block is {}. Many small, long-lived arrays lie between the free blocks; the runtime has already tried to move them.",
                    hole.short()
                ),
                None => "More is free than was requested, so the free memory is fragmented: many small, long-lived arrays lie between the free blocks.".to_owned(),
            };
            findings.push(finding);
        } else {
            let mut finding = critical("hbm_shortage", ERROR_0100, subject, row);
            finding.title = format!("{} are free, {} were requested: not enough", free.short(), wanted.short());
            finding.why = "The runtime has already waited for arrays to be freed and has unloaded programs to make room; what is left is held by arrays that are still referenced.".to_owned();
            finding.at_stake_bytes = Some(wanted.saturating_sub(free));
            findings.push(finding);
        }
    }
}

/// E0101: the program itself does not fit.
fn program_load(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (row, failure) in errors(subject, &[FailureKind::TpuRuntimeLoad, FailureKind::TpuRuntimeReserve]) {
        let Some(wanted) = failure.bytes("requested") else { continue };
        let name = failure.text("program").map(|name| format!(" `{name}`")).unwrap_or_default();
        let mut finding = critical("program_size", ERROR_0101, subject, row);
        finding.title = format!("The program{name} itself needs {} and does not fit", wanted.short());
        let part = |key: &str, words: &str| failure.bytes(key).map(|bytes| format!("{} {words}", bytes.short()));
        let parts: Vec<String> =
            [part("free", "free"), part("reserved_now", "reserved already"), part("reservable", "could be reserved")]
                .into_iter()
                .flatten()
                .collect();
        finding.why = format!(
            "A loaded program needs memory for its code, constants and temporaries in addition to the arrays{}. Arrays can evict programs, so one that loaded once can fail later.",
            if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) }
        );
        finding.at_stake_bytes = failure.bytes("free").map(|free| wanted.saturating_sub(free));
        findings.push(finding);
    }
}

/// E1000, scenario 1: TensorCore and SparseCore together.
fn cores(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (row, failure) in errors(subject, &[FailureKind::TpuTcScHbm]) {
        let (Some(tensor), Some(sparse)) = (failure.bytes("tensorcore"), failure.bytes("sparsecore")) else { continue };
        let capacity = failure.bytes("capacity");
        let over = capacity.map(|c| (tensor + sparse).saturating_sub(c));
        let mut finding = critical("sparsecore_balance", super::program_context::ERROR_1000, subject, row);
        let of = capacity.map(|c| format!(" of {}", c.short())).unwrap_or_default();
        finding.title = format!("SparseCore needs {}, TensorCore {}{of}", sparse.short(), tensor.short());
        let mostly_sparse = sparse.0 / 2 >= tensor.0;
        let mostly_tensor = tensor.0 / 2 >= sparse.0;
        finding.why = if mostly_sparse {
            "Embedding tables and their stacks on the SparseCore are by far the larger part.".to_owned()
        } else if mostly_tensor {
            "The TensorCore's part is by far the larger: activations, parameters and optimizer state.".to_owned()
        } else {
            "Neither part alone is excessive; together they exceed the memory.".to_owned()
        };
        finding.at_stake_bytes = over;
        finding.changes_results = ChangesResults::No;
        findings.push(finding);
    }
}

/// E1001: a kernel's scratch.
fn scoped_vmem(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (row, failure) in errors(subject, &[FailureKind::TpuScopedVmem]) {
        let mut finding = critical("scoped_vmem", ERROR_1001, subject, row);
        finding.color = MemorySpace::VMEM;
        let (used, limit) = (failure.bytes("used"), failure.bytes("capacity"));
        finding.title = match (used, limit) {
            (Some(used), Some(limit)) => {
                format!("A kernel needs {} of scratch, the limit is {}", used.short(), limit.short())
            }
            _ => "A kernel needs more scratch than VMEM allows".to_owned(),
        };
        finding.why = format!(
            "Scratch of a single kernel has a limit of its own, below the size of VMEM{}.",
            failure.text("tag").map(|tag| format!("; it is for {tag}")).unwrap_or_default()
        );
        finding.at_stake_bytes = used.zip(limit).map(|(used, limit)| used.saturating_sub(limit));
        findings.push(finding);
    }
}

/// E1000, scenarios 2 and 3: one huge allocation, or the sum of many. Only if no dump shows more.
fn listing(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    if subject.profile.shows_buffers() {
        return;
    }
    for (row, failure) in errors(subject, &[FailureKind::TpuHbmListing]) {
        let Some(capacity) = failure.bytes("capacity").filter(|c| c.0 > 0) else { continue };
        let mut sizes: Vec<(Bytes, Option<&str>)> = failure
            .allocations
            .iter()
            .filter_map(|a| Some((a.size.as_ref()?.bytes, a.op_name.as_deref().or(a.label_head.as_deref()))))
            .collect();
        sizes.sort_by_key(|row| std::cmp::Reverse(row.0));
        let padding = failure.allocations.iter().filter_map(|a| a.padding.as_ref()).map(|p| p.bytes.0);
        let padding = padding.fold(0, u64::saturating_add);
        let Some(&(largest, name)) = sizes.first() else { continue };
        if largest.0 > capacity.0 / 2 {
            let mut finding = critical("oversized", super::program_context::ERROR_1000, subject, row);
            finding.title = format!("One allocation takes {}, more than half of {}", largest.short(), capacity.short());
            finding.why = format!(
                "The largest is {}. One allocation above half of the memory is rarely a matter of capacity: usually something is replicated, sharded over the wrong mesh shape, or kept for debugging.",
                name.map_or_else(|| "not named".to_owned(), |name| format!("`{}`", scope::without_attributes(name)))
            );
            finding.at_stake_bytes = Some(largest);
            finding.changes_results = ChangesResults::Maybe;
            findings.push(finding);
        } else {
            let mut finding = critical("aggregate", super::program_context::ERROR_1000, subject, row);
            finding.title =
                format!("No allocation stands out: the sum of many is too large (the largest {})", largest.short());
            finding.why =
                "Each listed allocation is under half of the memory; the program is too large as a whole.".to_owned();
            finding.at_stake_bytes = failure.bytes("exceeded");
            finding.changes_results = ChangesResults::Maybe;
            findings.push(finding);
        }
        if padding.saturating_mul(10) > capacity.0 {
            // The previous finding lists the remedies.
            let mut finding =
                Finding { advice: Vec::new(), ..critical("padding", super::program_context::ERROR_1000, subject, row) };
            finding.title = format!("{} of the listed allocations are padding", Bytes(padding).short());
            finding.why = "Small minor dimensions are padded to the tile (128 lanes, 8 rows).".to_owned();
            finding.at_stake_bytes = Some(Bytes(padding));
            finding.changes_results = ChangesResults::Maybe;
            findings.push(finding);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::ProfileAnalysis;
    use crate::model::{FailureValue, ListedAllocation, PrintedSize, Profile};

    const GIB: u64 = 1 << 30;

    fn failure(kind: FailureKind, sizes: &[(&'static str, u64)]) -> Failure {
        let size = |bytes| FailureValue::Size(PrintedSize { text: None, bytes: Bytes(bytes) });
        let fields = sizes.iter().map(|&(key, bytes)| (key, size(bytes))).collect();
        Failure { kind, is_error: true, fields, ..Failure::default() }
    }

    fn rules(failure: Failure) -> Vec<&'static str> {
        let profile = Profile { failures: vec![failure], ..Profile::default() };
        let analysis = ProfileAnalysis::new(&profile);
        super::super::advise(&profile, &analysis).findings.into_iter().map(|f| f.rule).collect()
    }

    #[test]
    fn shortage_and_fragmentation_are_told_apart() {
        let request = |free| failure(FailureKind::TpuRuntimeAlloc, &[("requested", 8 << 20), ("free", free)]);
        assert_eq!(rules(request(6 << 20)), ["hbm_shortage"]);
        assert_eq!(rules(request(9 << 20)), ["fragmentation"]);
        let warning = Failure { is_error: false, ..request(6 << 20) };
        assert!(rules(warning).is_empty());
    }

    #[test]
    fn programs_cores_and_kernels_have_their_rules() {
        assert_eq!(
            rules(failure(FailureKind::TpuRuntimeLoad, &[("requested", GIB), ("free", 1 << 20)])),
            ["program_size"]
        );
        let cores = [("tensorcore", 35 * GIB), ("sparsecore", 174 * GIB), ("capacity", 95 * GIB)];
        assert_eq!(rules(failure(FailureKind::TpuTcScHbm, &cores)), ["sparsecore_balance"]);
        assert_eq!(
            rules(failure(FailureKind::TpuScopedVmem, &[("used", 20 << 20), ("capacity", 16 << 20)])),
            ["scoped_vmem"]
        );
        assert!(rules(failure(FailureKind::TorchCuda, &[("requested", GIB)])).is_empty());
    }

    #[test]
    fn a_listing_has_one_giant_or_many() {
        let listed = |sizes: &[u64]| {
            let mut listing = failure(FailureKind::TpuHbmListing, &[("capacity", 16 * GIB), ("exceeded", GIB)]);
            listing.allocations = sizes
                .iter()
                .map(|&bytes| ListedAllocation {
                    size: Some(PrintedSize { text: None, bytes: Bytes(bytes) }),
                    ..ListedAllocation::default()
                })
                .collect();
            listing
        };
        assert_eq!(rules(listed(&[10 * GIB, GIB])), ["oversized"]);
        assert_eq!(rules(listed(&[5 * GIB, 5 * GIB, 5 * GIB])), ["aggregate"]);
    }
}
