//! What a path holds as a list of programs, each decoded when it is asked for.

use std::sync::Arc;

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::compare::ProgramName;
use highwater::export::diff::Side;
use highwater::model::{Bytes, Profile};
use highwater::open::{Collection, Opened, Target};
use highwater::source::{Progress, Stage};

use super::inputs::override_capacity;

/// One side of a comparison: what was opened, and the names of its programs.
pub struct Listed {
    held: Held,
    /// Names of its programs; of a profile without any, its own.
    pub names: Vec<ProgramName>,
}

enum Held {
    /// A profile, analysed already.
    One(Arc<Loaded>),
    /// Programs that are decoded one at a time, with what each may use instead of what its device has.
    Many(Box<Collection>, Option<Bytes>),
}

impl Listed {
    /// Opens a target and lists its programs; `capacity` overrides the device's.
    ///
    /// # Errors
    /// If nothing could be read.
    pub fn open(target: &Target, capacity: Option<Bytes>, progress: &Progress) -> Result<Self, String> {
        let opened = target.open(progress).and_then(|opened| opened.listed(&[], progress));
        Ok(match opened.map_err(|error| error.to_string())? {
            Opened::Profile(profile) => {
                let name = profile.programs.first().map_or(&profile.name, |program| &program.name).clone();
                let name = ProgramName { group: String::new(), name };
                Self { held: Held::One(Arc::new(Loaded::new(*profile, capacity, progress))), names: vec![name] }
            }
            Opened::Collection(collection) => {
                let entries = collection.entries.iter();
                let names =
                    entries.map(|entry| ProgramName { group: entry.group.clone(), name: entry.name.clone() }).collect();
                Self { held: Held::Many(Box::new(collection), capacity), names }
            }
        })
    }

    /// Opens both sides of a comparison; each that cannot be opened is told to `unread` in a sentence.
    pub fn both(
        sides: [&Target; 2],
        capacity: Option<Bytes>,
        progress: &Progress,
        mut unread: impl FnMut(String),
    ) -> Option<[Self; 2]> {
        let mut open = |side| {
            let opened = Self::open(side, capacity, progress);
            opened.map_err(|error| unread(format!("{}: {error}", place(side)))).ok()
        };
        let [first, second] = sides.map(&mut open);
        Some([first?, second?])
    }

    /// Decodes and analyses one of the programs.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(&self, row: usize, progress: &Progress) -> Result<Arc<Loaded>, String> {
        match &self.held {
            Held::One(loaded) => Ok(Arc::clone(loaded)),
            Held::Many(collection, capacity) => {
                let profile = collection.open_entry(row, progress).map_err(|error| error.to_string())?;
                Ok(Arc::new(Loaded::new(profile, *capacity, progress)))
            }
        }
    }
}

/// A program with its analysis.
pub struct Loaded {
    profile: Profile,
    analysis: ProfileAnalysis,
}

impl Loaded {
    fn new(mut profile: Profile, capacity: Option<Bytes>, progress: &Progress) -> Self {
        if let Some(bytes) = capacity {
            override_capacity(&mut profile, bytes);
        }
        progress.begin(Stage::Analysing, 0);
        let analysis = ProfileAnalysis::new(&profile);
        Self { profile, analysis }
    }

    /// For a comparison.
    pub const fn side(&self) -> Side<'_> {
        Side { profile: &self.profile, analysis: &self.analysis, program: 0 }
    }

    /// The file it was read from, where it is one of many; else as it was named.
    pub fn file(&self, named: &str) -> String {
        self.profile.sources.first().map_or_else(|| named.to_owned(), |source| source.path.clone())
    }

    /// What of its files could not be read.
    pub fn errors(&self) -> impl Iterator<Item = String> + '_ {
        let sources = self.profile.sources.iter();
        sources.filter_map(|source| source.error.as_ref().map(|error| format!("{}: {error}", source.path)))
    }
}

/// Where a target is, in words.
pub fn place(target: &Target) -> String {
    target.path().map_or_else(|| target.name(), |path| path.display().to_string())
}
