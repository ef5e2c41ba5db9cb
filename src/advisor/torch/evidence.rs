//! What the rules have in common.

use crate::advisor::finding::{Finding, Severity};
use crate::advisor::subject::Subject;
use crate::analysis::caching_allocator::{AllocationCategory, CachingAnalysis, own_frame};
use crate::model::{Bytes, CachingSnapshot, StackId, percent};

/// The devices of a profile's snapshot.
pub fn devices<'a>(subject: &Subject<'a>) -> impl Iterator<Item = (&'a CachingSnapshot, &'a CachingAnalysis)> {
    let (profile, analysis) = (subject.profile, subject.analysis);
    profile.caching.iter().flat_map(|snapshot| analysis.caching.iter().map(move |device| (snapshot, device)))
}

/// A finding about a device: critical only where a request failed.
pub fn finding(rule: &'static str, device: &CachingAnalysis, is_cause: bool) -> Finding {
    let severity = match (device.failure().is_some(), is_cause) {
        (true, true) => Severity::Critical,
        (false, true) | (true, false) => Severity::Warning,
        (false, false) => Severity::Hint,
    };
    Finding { severity, ..Finding::new(rule) }
}

/// Requested bytes of a category at the main moment.
pub fn bytes_of(device: &CachingAnalysis, category: AllocationCategory) -> u64 {
    device.by_category().iter().find(|row| row.0 == category).map_or(0, |row| row.1)
}

/// Requested bytes at the main moment.
pub fn whole(device: &CachingAnalysis) -> u64 {
    device.replay.curves.requested.get(device.main_moment() as usize).copied().unwrap_or(0)
}

/// The innermost frame of the program's own, in words.
pub fn place(snapshot: &CachingSnapshot, stack: StackId) -> String {
    own_frame(snapshot, stack)
        .map_or_else(|| "code without Python frames".to_owned(), |frame| format!("`{}`", snapshot.frame_words(frame)))
}

/// A part of what is live at the main moment, in words: `62 % of the peak`.
pub fn share(device: &CachingAnalysis, bytes: u64) -> String {
    let of = if device.failure().is_some() { "what was live when the request failed" } else { "the peak" };
    format!("{} of {of}", percent(bytes, whole(device)))
}

/// Notes in a finding what the peak of the requested bytes becomes, and says it in a sentence.
pub fn replayed(finding: &mut Finding, device: &CachingAnalysis, after: u64) -> String {
    let before = device.replay.peaks.requested.bytes;
    let saved = Bytes(before.saturating_sub(after));
    if saved.0 > 0 {
        finding.replayed = Some((saved, Bytes(after)));
    }
    finding.at_stake_bytes = Some(saved);
    format!("the peak is {} instead of {}", Bytes(after).short(), Bytes(before).short())
}

/// Whether a frame of a stack has one of some names.
pub fn names(snapshot: &CachingSnapshot, stack: StackId, is_wanted: impl Fn(&str) -> bool) -> bool {
    snapshot.frames(stack).any(|frame| is_wanted(snapshot.strings.get(frame.name)))
}

/// Whether a lifetime belongs to the forward or the backward pass.
pub fn is_of_a_pass(device: &CachingAnalysis, row: usize) -> bool {
    matches!(
        device.categories[row].0,
        AllocationCategory::Activation
            | AllocationCategory::ForwardTemp
            | AllocationCategory::BackwardTemp
            | AllocationCategory::Gradient
    )
}
