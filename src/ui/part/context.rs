//! The context passed to views: document, shared state, results of workers, and requests to the window.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::text_file::TextFile;
use super::view::Views;
use crate::advisor::Advice;
use crate::analysis::table::BufferTable;
use crate::analysis::{Scene, Verdict};
use crate::model::{BufferId, Bytes, Capacity, InstructionId, MemorySpace};
use crate::ui::session::pins::{Pin, PinOn};
use crate::ui::session::{Document, Locals, Options, Shared};
use crate::ui::widget::theme::Theme;
use crate::ui::work::{
    Derived, Highlight, RelatedToBuffer, RelatedToStep, SearchResults, SpaceData, WhatIfResult, Work,
};

/// A request from a view to the window.
#[derive(Debug, Clone)]
pub enum Action {
    /// Show another view.
    View(&'static str),
    /// Copy text to the clipboard.
    Copy(String),
    /// Exchange before and after in the comparison.
    SwapCompared,
    /// End the comparison.
    EndComparison,
    /// Compare with another of the columns: the entry that has this number.
    CompareColumn(u64),
    /// Compare two programs of the folders that are compared: the entries before and after.
    ComparePrograms(u64, u64),
    /// Open a file.
    Open(std::path::PathBuf),
    /// Write a text file; the user chooses where.
    Save(TextFile),
    /// Import sets of changes from a file the user chooses.
    ReadSets,
    /// Show a panel on the right.
    Panel(&'static str),
}

/// Key of what is highlighted, for cached pictures.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FindKey {
    hits: Option<(String, usize)>,
    hidden: usize,
}

/// Everything a view can read and change.
pub struct ViewContext<'a> {
    /// All views.
    pub views: Views,
    /// The profile with its analysis.
    pub document: &'a Arc<Document>,
    /// Colours and sizes.
    pub theme: &'a Theme,
    /// State shared by all views.
    pub shared: &'a mut Shared,
    /// State of individual views.
    pub locals: &'a mut Locals,
    /// Results of workers.
    pub derived: &'a mut Derived,
    /// Application options.
    pub options: &'a Options,
    /// The context for background work.
    pub work: &'a Work,
    /// Requests made by the view.
    pub actions: &'a mut Vec<Action>,
    /// Search results; `None` if there is no search.
    pub hits: Option<Arc<SearchResults>>,
    /// Settings of views kept between runs, by key, such as the columns of a table.
    pub kept: &'a mut BTreeMap<String, String>,
}

impl<'a> ViewContext<'a> {
    /// The chosen program and memory space; `None` if the profile has none.
    #[must_use]
    pub fn scene(&self) -> Option<Scene<'a>> {
        let document: &'a Arc<Document> = self.document;
        document.scene(self.shared.program, self.shared.color)
    }

    /// The number of the document and the program of it that is chosen: whose names are cached.
    #[must_use]
    pub fn program_id(&self) -> (u64, usize) {
        (self.document.id(), self.shared.program)
    }

    /// Memory map, curves and contributors of the chosen space; `None` until computed.
    pub fn data(&mut self) -> Option<Arc<SpaceData>> {
        self.derived.space(self.work, self.document, self.shared.program, self.shared.color)
    }

    /// All buffers of the chosen space in columns; `None` until computed.
    pub fn table(&mut self) -> Option<Arc<BufferTable>> {
        self.derived.table(self.work, self.document, self.shared.program, self.shared.color)
    }

    /// The advisor's findings; `None` until computed.
    pub fn advice(&mut self) -> Option<Arc<Advice>> {
        let capacity = self.shared.capacity.get(&MemorySpace::HBM).map(|c| c.bytes.0);
        self.derived.advice(self.work, self.document, capacity)
    }

    /// The result of the changes that are on, with a number that no other result has; `None` until computed.
    pub fn what_if(&mut self) -> Option<(Arc<WhatIfResult>, u64)> {
        let capacity = self.shared.capacity.get(&MemorySpace::HBM).map(|c| c.bytes.0);
        let (program, edits) = (self.shared.program, self.shared.changes.on.clone());
        self.derived.what_if(self.work, self.document, program, capacity, &edits)
    }

    /// What is related to a buffer of the chosen space; `None` until computed.
    pub fn related_to_buffer(&mut self, buffer: BufferId) -> Option<Arc<RelatedToBuffer>> {
        let data = self.data()?;
        let space = (self.shared.program, self.shared.color);
        self.derived.related.buffer(self.work, self.document, &data, space, buffer)
    }

    /// What is related to the chosen step; `None` until computed.
    pub fn related_to_step(&mut self) -> Option<Arc<RelatedToStep>> {
        let data = self.data()?;
        let space = (self.shared.program, self.shared.color);
        let step = self.step();
        self.derived.related.step(self.work, self.document, &data, space, step)
    }

    /// The effective capacity: the one chosen in the window, else the document's.
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

    /// The current step of every view: the chosen one, else the peak.
    #[must_use]
    pub fn step(&self) -> u32 {
        self.shared.step.or_else(|| self.scene().map(|scene| scene.space.peak_point())).unwrap_or(0)
    }

    /// Moves the chosen step by `by`, within `points` steps.
    pub fn step_by(&mut self, by: i64, points: u32) {
        if by != 0 {
            let to = (i64::from(self.step()) + by).clamp(0, i64::from(points.max(1)) - 1);
            self.shared.choose_step(to as u32);
        }
    }

    /// The instruction that runs at a step.
    #[must_use]
    pub fn instruction_at(&self, step: u32) -> Option<String> {
        let scene = self.scene()?;
        let row = *scene.analysis.live.as_ref()?.sequence().get(step as usize)?;
        Some(scene.program.text.instruction_name(InstructionId(row)))
    }

    /// Bytes with three significant digits and the unit.
    #[must_use]
    pub fn short(&self, bytes: Bytes) -> String {
        self.options.units.short(bytes)
    }

    /// What the advisor says, in the units of the window and without the quotes that mark code.
    #[must_use]
    pub fn said(&self, text: &str) -> String {
        self.options.units.restated(text).replace('`', "")
    }

    /// Whether a buffer is highlighted: it is not hidden, and it matches the search, if any.
    #[must_use]
    pub fn matches(&self, buffer: BufferId) -> bool {
        !self.shared.hidden.contains(&buffer) && self.hits.as_ref().is_none_or(|hits| hits.has(buffer))
    }

    /// Whether any buffer is dimmed.
    #[must_use]
    pub fn is_finding(&self) -> bool {
        self.hits.is_some() || !self.shared.hidden.is_empty()
    }

    /// The highlighted buffers, for drawing workers; `None` if none is dimmed.
    #[must_use]
    pub fn lit(&self) -> Option<Highlight> {
        self.is_finding().then(|| Highlight { hits: self.hits.clone(), hidden: self.shared.hidden.clone() })
    }

    /// Changes whenever the set of highlighted buffers does; part of the keys of cached pictures.
    #[must_use]
    pub fn find_key(&self) -> FindKey {
        let hits = self.hits.as_ref().map(|hits| (hits.words.clone(), hits.list.len()));
        FindKey { hits, hidden: self.shared.hidden.len() }
    }

    /// The pins of the chosen program with their numbers.
    #[must_use]
    pub fn pins(&self) -> Vec<(usize, &Pin)> {
        let pins = self.shared.pins.iter().enumerate().map(|(i, pin)| (i + 1, pin));
        pins.filter(|(_, pin)| pin.program == self.shared.program).collect()
    }

    /// Pins a buffer, and shows the list of pins.
    pub fn pin(&mut self, buffer: BufferId) {
        let number = self.scene().and_then(|scene| scene.program.buffers.number.get(buffer.index()).copied());
        if let Some(number) = number
            && let Some(pin) = self.shared.pin(PinOn::Buffer(number))
        {
            self.locals.get::<crate::ui::session::pins::Asked>().0 = Some(pin);
            self.actions.push(Action::Panel("pins"));
        }
    }

    /// Selects a buffer.
    pub fn select(&mut self, buffer: BufferId) {
        self.shared.select(buffer);
    }

    /// Shows another view.
    pub fn go(&mut self, view: &'static str) {
        self.actions.push(Action::View(view));
    }
}
