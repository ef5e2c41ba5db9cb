//! `torch_expandable_segments`: free memory in pieces that no request can use.

use std::collections::BTreeMap;

use super::evidence::{devices, finding, place};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::Cause;
use crate::model::{Bytes, counted};

/// Least slack, in bytes and as a share of what is reserved.
const SLACK: (u64, f64) = (512 << 20, 0.10);

/// Pages of expandable segments.
const PAGE: u64 = 20 << 20;

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    for (snapshot, device) in devices(subject) {
        if snapshot.settings.expandable_segments == Some(true) || snapshot.is_cut {
            continue;
        }
        let (_, segments) = device.fragmentation(snapshot);
        let reserved: u64 = segments.iter().map(|segment| segment.reserved.size).sum();
        let slack: u64 = segments.iter().filter(|segment| !segment.is_whole()).map(|segment| segment.free).sum();
        let failed = device.failure().filter(|failure| failure.cause == Cause::Fragmentation);
        let is_wasteful = slack > SLACK.0 && slack as f64 > SLACK.1 * reserved as f64;
        if failed.is_none() && (device.failure().is_some() || !is_wasteful) {
            continue;
        }
        // With expandable segments each stream needs its active bytes, in whole pages.
        let mut active: BTreeMap<(i64, (i64, i64)), u64> = BTreeMap::new();
        for segment in &segments {
            *active.entry((segment.reserved.stream, segment.reserved.pool)).or_default() += segment.active;
        }
        let needed: u64 = active.values().filter_map(|bytes| bytes.checked_next_multiple_of(PAGE)).sum();
        // The moment with most reserved comes before what was reserved for is handed out.
        let needed = needed.max(device.replay.peaks.active.bytes);
        let saved = reserved.saturating_sub(needed);
        let mut finding = finding("torch_expandable_segments", device, true);
        finding.title = match failed {
            Some(failure) => format!(
                "{} are free in {}, but none holds {}",
                Bytes(failure.free_same_pool).short(),
                counted(failure.holes_same_pool, "hole"),
                Bytes(failure.requested).short()
            ),
            None => format!(
                "{} of {} reserved are free in partly used segments",
                Bytes(slack).short(),
                Bytes(reserved).short()
            ),
        };
        finding.why = format!(
            "A segment that holds a single block cannot be returned or joined with others. Expandable segments would \
             need at most {} here, up to {} less",
            Bytes(needed).short(),
            Bytes(saved).short()
        );
        if let Some(pin) = device.pins(&segments, 1).first() {
            let lifetime = &device.replay.lifetimes[pin.lifetime];
            finding.why = format!(
                "{}. The block that holds back the most, {} in a segment with {} free, was allocated in {}",
                finding.why,
                Bytes(lifetime.size).short(),
                Bytes(pin.free).short(),
                place(snapshot, lifetime.stack)
            );
        }
        finding.advice = vec![
            "Set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` (`PYTORCH_ALLOC_CONF` from PyTorch 2.9 on) before the program starts".to_owned(),
            "Allocate what lives long before what lives briefly, so that it does not end up between free blocks".to_owned(),
        ];
        finding.at_stake_bytes = Some(Bytes(saved));
        finding.at_most = Some("at most: pages that are only partly used are counted once for each stream".to_owned());
        finding.reference = "PyTorch notes on CUDA memory management, docs.pytorch.org/docs/stable/notes/cuda.html";
        findings.push(finding);
    }
}
