//! The analysis of a whole profile: every program, and comparisons between the numbers of different tools.

use super::caching_allocator::{CachingAnalysis, live_set};
use super::live_range::LiveRanges;
use super::live_set::LiveAnalysis;
use super::program::{ProgramAnalysis, SpaceAnalysis};
use super::runtime::AllocatorAnalysis;
use super::scene::{ProgramParts, Scene};
use super::stop::{Stop, Stopped};
use super::tiles::TileAnalysis;
use crate::model::{BufferId, Bytes, LiveRangeTable, LiveSet, MemorySpace, Profile, Program, Shortage};

/// Everything computed about a profile.
#[derive(Debug, Default)]
pub struct ProfileAnalysis {
    /// Analysis of each program.
    pub programs: Vec<ProgramAnalysis>,
    /// Results computed on demand, for each program.
    parts: Vec<ProgramParts>,
    /// The tiles of an IPU.
    pub tiles: Option<TileAnalysis>,
    /// Analysis of each allocator history.
    pub runtime: Vec<AllocatorAnalysis>,
    /// Analysis of each device of PyTorch's caching allocator.
    pub caching: Vec<CachingAnalysis>,
    /// Analysis of the snapshot of live memory.
    pub live: Option<LiveAnalysis>,
    /// What lives on the devices of a caching allocator at the failure, or else at the peak.
    live_in_snapshot: Option<(LiveSet, LiveAnalysis)>,
    /// The worst of the out-of-memory messages: its row among the failures of the profile, and its numbers.
    pub shortage: Option<(usize, Shortage)>,
    /// Contradictions between the files of the profile.
    pub notes: Vec<String>,
}

impl ProfileAnalysis {
    /// Steps that [`Self::unless`] counts, at most.
    #[must_use]
    pub fn steps(profile: &Profile) -> u64 {
        profile.programs.iter().map(ProgramAnalysis::steps).sum()
    }

    /// Analyses a profile.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        Self::unless(profile, Stop::NEVER).unwrap_or_default()
    }

    /// As [`Self::new`], unless it is stopped.
    ///
    /// # Errors
    /// If it was.
    pub fn unless(profile: &Profile, stop: Stop<'_>) -> Result<Self, Stopped> {
        let analysed = |program: &Program| ProgramAnalysis::unless(program, &profile.device, stop);
        let programs = profile.programs.iter().map(analysed).collect::<Result<Vec<_>, Stopped>>()?;
        let mut notes = Vec::new();
        if let (Some(table), Some(program), Some(analysis)) =
            (&profile.live_ranges, profile.programs.first(), programs.first())
        {
            notes.extend(analysis.live.as_ref().and_then(|live| live_range_difference(program, live, table)));
        }
        stop.check()?;
        let runtime = profile.runtime.iter().map(AllocatorAnalysis::new).collect();
        stop.check()?;
        let caching = profile.caching.as_ref().map(CachingAnalysis::of).unwrap_or_default();
        stop.check()?;
        let live = profile.live.as_ref().map(LiveAnalysis::new);
        let live_in_snapshot = profile.caching.as_ref().and_then(|snapshot| live_set(snapshot, &caching));
        let live_in_snapshot = live_in_snapshot.map(|set| {
            let analysis = LiveAnalysis::new(&set);
            (set, analysis)
        });
        stop.check()?;
        let tiles = profile.tiles.as_ref().map(TileAnalysis::new);
        let parts = programs.iter().map(ProgramParts::new).collect();
        let shortage = profile.shortage();
        Ok(Self { programs, parts, tiles, runtime, caching, live, live_in_snapshot, shortage, notes })
    }

    /// What lives at one moment, with stacks: the file's own snapshot, else what a caching allocator held at the failure
    /// or the peak.
    #[must_use]
    pub fn live_set<'a>(&'a self, profile: &'a Profile) -> Option<(&'a LiveSet, &'a LiveAnalysis)> {
        let own = profile.live.as_ref().zip(self.live.as_ref());
        own.or_else(|| self.live_in_snapshot.as_ref().map(|(set, analysis)| (set, analysis)))
    }

    /// The memory spaces of a program of the profile that was analysed, ascending by colour; none where there is no
    /// such program.
    pub fn scenes<'a>(&'a self, profile: &'a Profile, program: usize) -> impl Iterator<Item = Scene<'a>> {
        let found = profile.programs.get(program).zip(self.programs.get(program)).zip(self.parts.get(program));
        let scenes = |((program, analysis), parts): ((&'a Program, &'a ProgramAnalysis), &'a ProgramParts)| {
            parts.scenes(program, analysis, &profile.device)
        };
        found.into_iter().flat_map(scenes)
    }

    /// One of them.
    #[must_use]
    pub fn scene<'a>(&'a self, profile: &'a Profile, program: usize, color: MemorySpace) -> Option<Scene<'a>> {
        self.scenes(profile, program).find(|scene| scene.space.color == color)
    }
}

/// Differences between our live ranges and those XLA wrote with the dump; `None` if they agree.
fn live_range_difference(program: &Program, live: &LiveRanges, table: &LiveRangeTable) -> Option<String> {
    use std::collections::HashMap;
    let path = &table.path;
    if live.points() != table.max {
        return Some(format!("{path} counts {} program points, the program has {}", table.max, live.points()));
    }
    let theirs: HashMap<&str, (u32, u32)> =
        table.rows.iter().map(|(name, start, end)| (name.as_str(), (*start, *end))).collect();
    let mut different = 0usize;
    let mut ours = 0usize;
    let mut first = None;
    for row in 0..program.buffers.len() {
        let buffer = BufferId::from_index(row);
        let Some(range) = live.of(buffer) else { continue };
        ours += 1;
        let mut name = program.buffer_name(buffer);
        if !name.ends_with('}') {
            name.push_str("{}");
        }
        if theirs.get(name.as_str()) != Some(&range) {
            different += 1;
            first.get_or_insert(name);
        }
    }
    let missing = table.rows.len().saturating_sub(ours);
    if different + missing == 0 {
        return None;
    }
    let first = first.map(|name| format!(", first {name}")).unwrap_or_default();
    Some(format!("{} of {} live ranges differ from {path}{first}", different + missing, table.rows.len()))
}

/// Bytes by which our peak may be above XProf's without a word: buffers of a few words that its trace leaves out.
const HARDLY_ANY: Bytes = Bytes(1 << 20);

impl SpaceAnalysis {
    /// Why our peak and XProf's differ, or the peak and what is listed at it, in a sentence; `None` if they agree to a
    /// mebibyte.
    #[must_use]
    pub fn peak_difference(&self, program: &Program, live: Option<&LiveRanges>) -> Option<String> {
        if self.at_peak.unlisted > Bytes::ZERO {
            let bytes = self.at_peak.unlisted.short();
            return Some(format!("{bytes} of the peak are in small buffers that the file does not list one by one"));
        }
        let occupancy = self.occupancy.as_ref()?;
        let (ours, theirs) = (occupancy.reserved_peak, self.xprof.peak);
        if ours == theirs || !self.xprof.peak_is_known {
            return None;
        }
        if ours < theirs {
            return Some(format!(
                "XProf's peak is {} higher: its trace counts buffers at the same address twice",
                (theirs - ours).short()
            ));
        }
        let more = ours - theirs;
        if more < HARDLY_ANY {
            return None;
        }
        let (untraced, largest) = self.untraced_at(program, live?, occupancy.reserved_peak_point);
        if untraced == Bytes::ZERO {
            return Some(format!("The peak is {} above XProf's", more.short()));
        }
        // What is larger is counted by XProf under another buffer of its memory.
        let largest = largest.filter(|&buffer| program.buffers.size_of(buffer) <= more);
        let name = largest.map(|buffer| format!(", the largest {}", program.buffer_name(buffer))).unwrap_or_default();
        Some(format!("The peak is {} above XProf's: buffers without heap events are counted too{name}", more.short()))
    }

    /// Bytes of heap buffers that are live at a point but have no heap events, and the largest of them.
    fn untraced_at(&self, program: &Program, live: &LiveRanges, point: u32) -> (Bytes, Option<BufferId>) {
        let mut sum = Bytes::ZERO;
        let mut largest: Option<BufferId> = None;
        for &buffer in &self.buffers {
            let is_live = live.of(buffer).is_some_and(|(start, end)| (start..=end).contains(&point));
            if !is_live || self.span(buffer).is_some() {
                continue;
            }
            let Some(allocation) = program.buffers.allocation_of(buffer) else { continue };
            let allocation = &program.allocations[allocation.index()];
            if allocation.is_indefinite() || allocation.is_thread_local {
                continue;
            }
            let size = program.buffers.size_of(buffer);
            sum += size;
            if size > largest.map_or(Bytes::ZERO, |b| program.buffers.size_of(b)) {
                largest = Some(buffer);
            }
        }
        (sum, largest)
    }
}
