//! What lives at the moment a reader asks about first, as a live set: the form that other snapshots of live memory have.

use std::collections::HashMap;

use super::device::CachingAnalysis;
use super::groups::{StackGroup, tell_apart};
use crate::model::{Bytes, CachingSnapshot, LiveEntry, LiveSet, SourceLine};

impl CachingAnalysis {
    /// The moment that a reader asks about first: the last failed request, or else the peak of the requested bytes.
    #[must_use]
    pub fn main_moment(&self) -> u32 {
        self.failure().map_or(self.replay.peaks.requested.moment, |failure| failure.moment)
    }

    /// That moment in words.
    #[must_use]
    pub fn main_moment_in_words(&self) -> &'static str {
        match (self.failure(), self.device.events.is_empty()) {
            (Some(_), _) => "when the request failed",
            (None, true) => "when the snapshot was taken",
            (None, false) => "at the peak",
        }
    }
}

/// What lives on the devices of a snapshot at their main moments; `None` if nothing does.
#[must_use]
pub fn live_set(snapshot: &CachingSnapshot, devices: &[CachingAnalysis]) -> Option<LiveSet> {
    let mut set = LiveSet::default();
    let mut rows: HashMap<u32, u32> = HashMap::new();
    for device in devices {
        let name = set.strings.intern(&format!("cuda:{}", device.device.index));
        let mut groups = device.by_stack_at(device.main_moment());
        tell_apart(snapshot, &mut groups);
        for StackGroup { stack, category, bytes, count, apart, .. } in groups {
            let kind = set.strings.intern(category.words());
            let frames = snapshot.stacks.rows(stack).iter().map(|&row| {
                *rows.entry(row).or_insert_with(|| {
                    let frame = snapshot.stacks.frames.get(row as usize).copied().unwrap_or_default();
                    set.frames.push(SourceLine {
                        file: snapshot.strings.get(frame.file).to_owned(),
                        function: snapshot.strings.get(frame.name).to_owned(),
                        line: i32::try_from(frame.line).unwrap_or(0),
                        column: 0,
                    });
                    set.frames.len() as u32 - 1
                })
            });
            let stack = frames.collect();
            let apart = apart.map(|apart| apart.in_words(snapshot)).unwrap_or_default();
            set.entries.push(LiveEntry { bytes: Bytes(bytes), count, kind, device: name, stack, apart });
        }
    }
    (!set.entries.is_empty()).then_some(set)
}
