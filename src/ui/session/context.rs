//! What a view is given: the document, the shared state, and ways to ask for more.

use std::sync::Arc;

use super::derived::{Derived, SpaceData};
use super::document::Document;
use super::job::Work;
use super::locals::Locals;
use super::options::Options;
use super::shared::Shared;
use super::tried::Tried;
use crate::advisor::Advice;
use crate::analysis::{ProgramAnalysis, SpaceAnalysis, Verdict};
use crate::model::{BufferId, Bytes, Capacity, InstructionId, Program};

/// What a view wants done outside of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Show another view.
    View(&'static str),
    /// Put words on the clipboard.
    Copy(String),
    /// Open a file.
    Open(std::path::PathBuf),
    /// Write a text into a file that the person names.
    SaveText {
        /// Name to suggest.
        name: String,
        /// What goes into it.
        text: String,
    },
    /// Read sets of changes out of a file that the person names.
    ReadSets,
}

/// Everything a view may see and change.
pub struct ViewContext<'a> {
    /// The profile with its analysis.
    pub document: &'a Arc<Document>,
    /// What the views share.
    pub shared: &'a mut Shared,
    /// What belongs to single views.
    pub locals: &'a mut Locals,
    /// Results of workers.
    pub derived: &'a mut Derived,
    /// Options of the program.
    pub options: &'a Options,
    /// How work is to be done.
    pub work: &'a Work,
    /// What the view wants done.
    pub actions: &'a mut Vec<Action>,
}

/// The chosen program and memory space.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The program.
    pub program: &'a Program,
    /// What was computed about it.
    pub analysis: &'a ProgramAnalysis,
    /// The memory space.
    pub space: &'a SpaceAnalysis,
}

impl<'a> ViewContext<'a> {
    /// The chosen program and memory space; `None` where the profile has none.
    #[must_use]
    pub fn scene(&self) -> Option<Scene<'a>> {
        let document: &'a Arc<Document> = self.document;
        let (program, analysis) = document.program(self.shared.program)?;
        let space = analysis.space(self.shared.color)?;
        Some(Scene { program, analysis, space })
    }

    /// Memory map, curves and contributors of the chosen space, once they are computed.
    pub fn data(&mut self) -> Option<Arc<SpaceData>> {
        self.derived.space(self.work, self.document, self.shared.program, self.shared.color)
    }

    /// What the advisor says, once it is there.
    pub fn advice(&mut self) -> Option<Arc<Advice>> {
        let capacity = self.shared.capacity.get(&0).map(|c| c.bytes.0);
        self.derived.advice(self.work, self.document, capacity)
    }

    /// What the changes that are on come to, once it is there.
    pub fn tried(&mut self) -> Option<Arc<Tried>> {
        let capacity = self.shared.capacity.get(&0).map(|c| c.bytes.0);
        let (program, edits) = (self.shared.program, self.shared.changes.on.clone());
        self.derived.tried(self.work, self.document, program, capacity, &edits)
    }

    /// The capacity that counts: the one chosen in the window, else the document's.
    #[must_use]
    pub fn capacity(&self) -> Option<Capacity> {
        let chosen = self.shared.capacity.get(&self.shared.color).cloned();
        chosen.or_else(|| self.scene().and_then(|scene| scene.space.capacity.clone()))
    }

    /// Allocated bytes against that capacity.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let Some(scene) = self.scene() else { return Verdict::Unknown };
        scene.space.verdict_against(self.capacity().map(|capacity| capacity.bytes))
    }

    /// The step every view shows: the pinned one, else the peak.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.shared.step.or_else(|| self.scene().map(|scene| scene.space.peak_point())).unwrap_or(0)
    }

    /// The instruction that runs at a step.
    #[must_use]
    pub fn instruction_at(&self, step: u32) -> Option<String> {
        let scene = self.scene()?;
        let row = *scene.analysis.live.as_ref()?.sequence().get(step as usize)?;
        Some(scene.program.text.instruction_name(InstructionId(row)))
    }

    /// Three significant digits with the unit.
    #[must_use]
    pub fn short(&self, bytes: Bytes) -> String {
        self.options.units.short(bytes)
    }

    /// Selects a buffer.
    pub fn select(&mut self, buffer: BufferId) {
        self.shared.selected = Some(buffer);
    }

    /// Shows another view.
    pub fn go(&mut self, view: &'static str) {
        self.actions.push(Action::View(view));
    }
}
