//! `torch_expandable_segments`: free memory in pieces that no request can use.

use super::evidence::{devices, finding, place};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::Cause;
use crate::model::{Bytes, counted};

/// Least slack, in bytes and as a share of what is reserved.
const SLACK: (u64, f64) = (512 << 20, 0.10);

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
        let found = device.in_expandable_segments(snapshot);
        let peak = device.replay.peaks.reserved.bytes;
        // With the failed request the reserved bytes must stay below what was reserved and what the driver had.
        let needed = found.with_request.unwrap_or(found.peak);
        let saved = if failed.is_some() {
            failed.map_or(0, |failure| failure.free_same_pool.saturating_add(failure.requested))
        } else {
            peak.saturating_sub(needed)
        };
        if saved == 0 {
            continue;
        }
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
        let pinned = "A segment that holds a single block cannot be returned or joined with others";
        finding.why = match failed {
            Some(failure) => {
                let short = |bytes: u64| Bytes(bytes).short();
                let (reserved, active, room) = (failure.totals.reserved, failure.totals.active, failure.room());
                let told = match (needed <= room, failure.is_limited()) {
                    (true, _) => "the request would have been served".to_owned(),
                    (false, true) => format!("{} more than had been reserved until then", short(needed - room)),
                    (false, false) => {
                        format!("{} more than there was, unless whole pages are given back first", short(needed - room))
                    }
                };
                format!(
                    "{pinned}. In use were {}, with the request {}, of {} reserved. Placed in expandable segments the same \
                     allocations and the request need about {}: {told}",
                    short(active),
                    short(active.saturating_add(failure.requested)),
                    short(reserved),
                    short(needed)
                )
            }
            None => format!(
                "{pinned}. Placed in expandable segments the same allocations need about {} instead of {}: {} less",
                Bytes(needed).short(),
                Bytes(peak).short(),
                Bytes(saved).short()
            ),
        };
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
        finding.at_most = Some(
            if failed.is_some() {
                "at most: the request, and what was free for its pool and size"
            } else {
                "about: the allocations of this history, placed as PyTorch places them; pages that are given back do not count"
            }
            .to_owned(),
        );
        finding.reference = "PyTorch notes on CUDA memory management, docs.pytorch.org/docs/stable/notes/cuda.html";
        findings.push(finding);
    }
}
