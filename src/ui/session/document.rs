//! An open profile with its analysis, immutable and shared by views and workers.

use std::path::PathBuf;
use std::sync::Arc;

use super::number;
use crate::analysis::{ProfileAnalysis, ProgramAnalysis, Scene, SpaceAnalysis, Stop, Stopped, Verdict};
use crate::model::{Bytes, MemorySpace, Profile, Program};

/// A profile and its analysis.
#[derive(Debug)]
pub struct Document {
    /// What tells its profile from every other one, also from one that is read after it is gone.
    id: u64,
    /// Path of the file; `None` for piped or pasted input.
    pub path: Option<PathBuf>,
    /// The decoded profile.
    pub profile: Arc<Profile>,
    /// Its analysis.
    pub analysis: Arc<ProfileAnalysis>,
    /// The document that it is compared with.
    pub before: Option<Before>,
}

/// The document before, in a comparison.
#[derive(Debug, Clone)]
pub struct Before {
    /// Name of the file.
    pub name: String,
    /// Name of the file after, which tells the two apart.
    pub after: String,
    /// The document; it is not compared with anything itself.
    pub document: Arc<Document>,
    /// Further documents, columns between the one before and the one that is shown.
    pub beside: Vec<Beside>,
    /// If programs of two folders are compared: all programs of both, the largest change first.
    pub programs: Arc<Vec<PairedProgram>>,
}

/// A further document in a comparison.
#[derive(Debug, Clone)]
pub struct Beside {
    /// What tells its entry from the others.
    pub id: u64,
    /// Name of the file.
    pub name: String,
    /// The document; it is not compared with anything itself.
    pub document: Arc<Document>,
}

/// A program of one folder or of both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairedProgram {
    /// Its name.
    pub name: String,
    /// The program before; `None` if only the folder after has it.
    pub before: Option<ListedProgram>,
    /// The program after; `None` if only the folder before has it.
    pub after: Option<ListedProgram>,
}

/// A program of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListedProgram {
    /// What tells its entry from the others.
    pub id: u64,
    /// Bytes that it allocates; `None` while unknown.
    pub needs: Option<Bytes>,
}

impl Document {
    /// Analyses a profile.
    #[must_use]
    pub fn new(path: Option<PathBuf>, profile: Profile) -> Self {
        let analysis = ProfileAnalysis::new(&profile);
        Self::of(path, profile, analysis)
    }

    /// As [`Self::new`], unless it is stopped.
    ///
    /// # Errors
    /// If it was.
    pub fn unless(path: Option<PathBuf>, profile: Profile, stop: Stop<'_>) -> Result<Self, Stopped> {
        let analysis = ProfileAnalysis::unless(&profile, stop)?;
        Ok(Self::of(path, profile, analysis))
    }

    fn of(path: Option<PathBuf>, profile: Profile, analysis: ProfileAnalysis) -> Self {
        Self { id: number::fresh(), path, profile: Arc::new(profile), analysis: Arc::new(analysis), before: None }
    }

    /// Tells its profile from every other one of this process, for whatever is kept with it. Not 0. Comparing it with
    /// another does not change it.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// The same profile, compared with another document or with none.
    #[must_use]
    pub fn compared_with(&self, before: Option<Before>) -> Self {
        let Self { id, path, profile, analysis, .. } = self;
        Self { id: *id, path: path.clone(), profile: Arc::clone(profile), analysis: Arc::clone(analysis), before }
    }

    /// A program with its analysis.
    #[must_use]
    pub fn program(&self, index: usize) -> Option<(&Program, &ProgramAnalysis)> {
        self.profile.programs.get(index).zip(self.analysis.programs.get(index))
    }

    /// Whether any program has buffers with sizes.
    #[must_use]
    pub fn has_buffers(&self) -> bool {
        self.analysis.programs.iter().any(|program| !program.spaces.is_empty())
    }

    /// Whether a program lacks its buffer assignment, as in a file that was cut: nothing is known of its memory.
    #[must_use]
    pub fn lacks_memory(&self) -> bool {
        self.profile.programs.iter().any(|program| !program.has_buffer_assignment)
    }

    /// Whether any program has buffers with live ranges, which a listing in a message does not have.
    #[must_use]
    pub fn has_times(&self) -> bool {
        self.has_buffers() && self.profile.programs.iter().any(|program| !program.is_listing)
    }

    /// Whether both have memory of the same kind: programs with live ranges, tiles, or histories of allocators.
    #[must_use]
    pub fn is_comparable_with(&self, other: &Self) -> bool {
        let has = |has: &dyn Fn(&Self) -> bool| has(self) && has(other);
        has(&Self::has_times)
            || has(&Self::has_tiles)
            || has(&|one| !one.analysis.runtime.is_empty())
            || has(&|one| one.profile.caching.is_some())
            || has(&|one| one.profile.live.is_some())
    }

    /// Whether there is memory by IPU tile.
    #[must_use]
    pub fn has_tiles(&self) -> bool {
        self.profile.tiles.as_ref().is_some_and(|tiles| tiles.must_fit().is_some())
    }

    /// A memory space of a program.
    #[must_use]
    pub fn space(&self, program: usize, color: MemorySpace) -> Option<&SpaceAnalysis> {
        self.program(program)?.1.space(color)
    }

    /// A memory space of a program as a [`Scene`].
    #[must_use]
    pub fn scene(&self, program: usize, color: MemorySpace) -> Option<Scene<'_>> {
        self.analysis.scene(&self.profile, program, color)
    }

    /// Whether memory ran out, and that is all there is: an out-of-memory message means so even if the capacity is
    /// unknown.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        let profile = &self.profile;
        let has_failed = profile.failures.iter().any(|failure| failure.is_error)
            || self.analysis.caching.iter().any(|device| device.failure().is_some());
        let is_alone = self.analysis.tiles.is_none() && profile.programs.iter().all(|program| program.is_listing);
        has_failed && is_alone
    }

    /// The program and memory space that need the most memory, which are shown first.
    #[must_use]
    pub fn main(&self) -> (usize, MemorySpace) {
        let by_need = |&(_, space): &(usize, &SpaceAnalysis)| match space.verdict() {
            Verdict::Over { by } => (2, by),
            _ => (1, space.xprof.allocated),
        };
        let spaces = self.analysis.programs.iter().enumerate();
        spaces
            .filter_map(|(i, program)| Some((i, program.main_space()?)))
            .max_by_key(|item| (by_need(item), std::cmp::Reverse(item.0)))
            .map_or((0, MemorySpace::HBM), |(i, space)| (i, space.color))
    }

    /// Bytes the main memory space needs.
    #[must_use]
    pub fn need(&self) -> Option<Bytes> {
        let (program, color) = self.main();
        Some(self.space(program, color)?.xprof.allocated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_read_after_another_is_gone_is_not_taken_for_it() {
        let mut seen = std::collections::HashSet::new();
        for _ in 0..100 {
            // Each is gone before the next one is made, which may have its address.
            let document = Document::new(None, Profile::default());
            assert!(seen.insert(document.id()), "{}", document.id());
            assert_eq!(document.compared_with(None).id(), document.id(), "the same profile");
        }
    }
}
