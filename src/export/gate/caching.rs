//! A snapshot of PyTorch's caching allocator held against the limits.

use super::limits::{Gate, LimitOutcome, Limits, outcome, share_text};
use crate::analysis::caching_allocator::CachingAnalysis;
use crate::export::diff::Side;
use crate::model::{Bytes, MemorySpace, UnitSystem, percent};

impl Gate {
    /// Holds every device of a snapshot to the limits. Without any, no request may have failed.
    pub(super) fn devices(&mut self, file: &str, side: Side<'_>, before: Option<Side<'_>>, limits: &Limits) {
        for device in &side.analysis.caching {
            let name = format!("cuda:{}", device.device.index);
            let peaks = &device.replay.peaks;
            let mut is_limited = false;
            if let Some(limit) = limits.max_peak {
                let peak = Bytes(peaks.allocated.bytes);
                let words = format!("peak {} allocated, at most {}", peak.short(), UnitSystem::Binary.capacity(limit));
                self.add(file, &name, "max-peak", (outcome(peak <= limit), words));
                is_limited = true;
            }
            if let Some(share) = limits.max_of_capacity {
                self.add(file, &name, "max-of-capacity", of_capacity(side, device, share));
                is_limited = true;
            }
            if let Some(share) = limits.max_growth {
                self.add(file, &name, "max-growth", growth(device, before, share));
                is_limited = true;
            }
            if !is_limited && limits.no_new.is_none() {
                self.add(file, &name, "fits", fits(side, device));
            }
        }
    }
}

fn fits(side: Side<'_>, device: &CachingAnalysis) -> (LimitOutcome, String) {
    let is_cut = side.profile.caching.as_ref().is_some_and(|snapshot| snapshot.is_cut);
    match device.failure() {
        Some(failure) => (LimitOutcome::Failed, failure.headline()),
        None if is_cut => (LimitOutcome::Unknown, "the end of the history is missing".to_owned()),
        None => {
            let reserved = Bytes(device.replay.peaks.reserved.bytes).short();
            (LimitOutcome::Passed, format!("no request failed, at most {reserved} reserved"))
        }
    }
}

fn of_capacity(side: Side<'_>, device: &CachingAnalysis, share: f64) -> (LimitOutcome, String) {
    let Some(capacity) = side.profile.device.capacity(MemorySpace::HBM) else {
        return (LimitOutcome::Unknown, "capacity unknown; give it with --capacity".to_owned());
    };
    let reserved = device.replay.peaks.reserved.bytes;
    let words = format!(
        "{} of {} reserved, {} of the capacity, at most {}",
        Bytes(reserved).short(),
        UnitSystem::Binary.capacity(capacity.bytes),
        percent(reserved, capacity.bytes.0),
        share_text(share)
    );
    (outcome(reserved as f64 <= capacity.bytes.0 as f64 * share), words)
}

fn growth(device: &CachingAnalysis, before: Option<Side<'_>>, share: f64) -> (LimitOutcome, String) {
    let devices = before.map(|before| &before.analysis.caching).into_iter().flatten();
    let Some(before) = devices.into_iter().find(|other| other.device.index == device.device.index) else {
        return (LimitOutcome::Unknown, "no snapshot of this device to compare with".to_owned());
    };
    let [was, is] = [before, device].map(|device| device.replay.peaks.allocated.bytes);
    let change = i128::from(is) - i128::from(was);
    let words = format!(
        "{} \u{2192} {} allocated at the peak ({}), at most {} more",
        Bytes(was).short(),
        Bytes(is).short(),
        UnitSystem::Binary.signed(change),
        share_text(share)
    );
    (outcome(change as f64 <= was as f64 * share), words)
}
