//! An open profile with its analysis, immutable and shared by views and workers.

use std::path::PathBuf;
use std::sync::Arc;

use crate::analysis::{ProfileAnalysis, ProgramAnalysis, Scene, SpaceAnalysis, Verdict};
use crate::model::{Bytes, MemorySpace, Profile, Program};

/// A profile and its analysis.
#[derive(Debug)]
pub struct Document {
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
    /// The document; it is not compared with anything itself.
    pub document: Arc<Document>,
}

impl Document {
    /// Analyses a profile.
    #[must_use]
    pub fn new(path: Option<PathBuf>, profile: Profile) -> Self {
        let analysis = ProfileAnalysis::new(&profile);
        Self { path, profile: Arc::new(profile), analysis: Arc::new(analysis), before: None }
    }

    /// The same profile, compared with another document or with none.
    #[must_use]
    pub fn compared_with(&self, before: Option<Before>) -> Self {
        let Self { path, profile, analysis, .. } = self;
        Self { path: path.clone(), profile: Arc::clone(profile), analysis: Arc::clone(analysis), before }
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
            || self.profile.programs.iter().any(|program| !program.has_buffer_assignment)
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
        has(&|one| one.analysis.programs.iter().any(|program| !program.spaces.is_empty()) && one.has_times())
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
