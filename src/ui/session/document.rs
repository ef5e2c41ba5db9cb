//! An open profile with its analysis. It never changes: views and workers share it.

use std::path::PathBuf;

use crate::analysis::{ProfileAnalysis, ProgramAnalysis, Scene, SpaceAnalysis, Verdict};
use crate::model::{Bytes, MemorySpace, Profile, Program};

/// A profile that was read and analysed.
#[derive(Debug)]
pub struct Document {
    /// Where from; `None` for what was piped or pasted.
    pub path: Option<PathBuf>,
    /// What was read.
    pub profile: Profile,
    /// What was computed.
    pub analysis: ProfileAnalysis,
}

impl Document {
    /// Analyses a profile.
    #[must_use]
    pub fn new(path: Option<PathBuf>, profile: Profile) -> Self {
        let analysis = ProfileAnalysis::new(&profile);
        Self { path, profile, analysis }
    }

    /// A program with its analysis.
    #[must_use]
    pub fn program(&self, index: usize) -> Option<(&Program, &ProgramAnalysis)> {
        self.profile.programs.get(index).zip(self.analysis.programs.get(index))
    }

    /// A memory space of a program.
    #[must_use]
    pub fn space(&self, program: usize, color: MemorySpace) -> Option<&SpaceAnalysis> {
        self.program(program)?.1.space(color)
    }

    /// A memory space of a program with what is worked out about it on demand.
    #[must_use]
    pub fn scene(&self, program: usize, color: MemorySpace) -> Option<Scene<'_>> {
        self.analysis.scene(&self.profile, program, color)
    }

    /// The program and space to show first: the worst.
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

    /// What the main space needs.
    #[must_use]
    pub fn need(&self) -> Option<Bytes> {
        let (program, color) = self.main();
        Some(self.space(program, color)?.xprof.allocated)
    }
}
