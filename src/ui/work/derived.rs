//! Results computed from a document on workers and cached for the views: memory map, stacked curves, contributors.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::job::{Job, Work};
use super::search::SearchResults;
use crate::advisor::{Advice, advise_unless};
use crate::analysis::contributors::Contributor;
use crate::analysis::map::MemoryMap;
use crate::analysis::phases::Phases;
use crate::analysis::stacked_curves::{Grouping, StackedCurves};
use crate::analysis::table::BufferTable;
use crate::analysis::what_if::{Edit, Memory};
use crate::model::{BufferId, Bytes, MemorySpace};
use crate::ui::session::{Document, Lit, Shared, number};
use crate::ui::work::Related;
use crate::ui::work::WhatIfResult;

/// Results for one memory space.
pub struct SpaceData {
    /// A number that no other results have.
    pub number: u64,
    /// Buffers by address and time.
    pub map: Arc<MemoryMap>,
    /// Curves by class.
    pub by_class: Arc<StackedCurves>,
    /// Contributors at the peak, repeated layers folded.
    pub contributors: Arc<[Contributor]>,
    /// Passes and layers over the steps.
    pub phases: Phases,
}

impl SpaceData {
    /// Computes everything for a memory space; `None` if the document has no such space.
    #[must_use]
    pub fn new(document: &Document, program: usize, color: MemorySpace) -> Option<Self> {
        let scene = document.scene(program, color)?;
        Some(Self {
            number: number::fresh(),
            map: Arc::clone(scene.map()),
            by_class: Arc::clone(scene.curves(Grouping::Class)),
            contributors: Arc::clone(scene.contributors()),
            phases: Phases::new(scene.program, scene.analysis),
        })
    }

    /// The box of a buffer in the memory map; `None` if it has none.
    #[must_use]
    pub fn box_of(&self, buffer: BufferId) -> Option<&crate::analysis::map::MapBox> {
        self.map.box_of(buffer)
    }
}

/// A job whose result is shared with other workers; `None` if there is nothing to compute.
type SharedJob<T> = Job<Option<Arc<T>>>;

/// (program, HBM capacity in bytes, changes)
type WhatIfKey = (usize, Option<u64>, Vec<Edit>);

/// A result of changes, and a number that no other one has.
type NumberedResult = (Arc<WhatIfResult>, u64);

/// (program, memory space, search text)
type SearchKey = (usize, MemorySpace, String, Option<u32>);

/// Cached results by their inputs.
#[derive(Default)]
pub struct Derived {
    /// Data on the selected buffer and step.
    pub related: Related,
    search: Option<(SearchKey, SharedJob<SearchResults>)>,
    /// The last finished search, shown until the next one is done.
    last_hits: Option<(SearchKey, Arc<SearchResults>)>,
    /// What a finding lights.
    lit: Option<(Lit, Arc<SearchResults>)>,
    advice: Option<(Option<u64>, Job<Arc<Advice>>)>,
    memories: HashMap<(usize, Option<u64>), SharedJob<Memory>>,
    what_if_job: Option<(WhatIfKey, Job<Option<NumberedResult>>)>,
    /// The last result, shown until the next one is done.
    what_if_result: Option<(usize, NumberedResult)>,
    spaces: HashMap<(usize, MemorySpace), SharedJob<SpaceData>>,
    stacked_curves: HashMap<(usize, MemorySpace, Grouping), SharedJob<StackedCurves>>,
    tables: HashMap<(usize, MemorySpace), SharedJob<BufferTable>>,
}

/// How long a file that has been analysed waits for its first picture, so that it is shown in one frame.
const PATIENCE: Duration = Duration::from_millis(100);

impl Derived {
    /// Results of a document that has just been analysed, with those for its main memory space unless they take long. Not
    /// for the window's thread.
    #[must_use]
    pub fn begun(work: &Work, document: &Arc<Document>) -> Self {
        let mut derived = Self::default();
        let (program, color) = document.main();
        derived.space_job(work, document, program, color).wait(PATIENCE);
        derived
    }

    /// What is lit in the chosen memory space: what a finding lights, else the search results; while a search runs, the
    /// previous results in the same space. `None` without either, or before the first results.
    pub fn hits(&mut self, work: &Work, document: &Arc<Document>, shared: &Shared) -> Option<Arc<SearchResults>> {
        let (program, color) = (shared.program, shared.color);
        if let Some(lit) = &shared.lit {
            let is_known = self.lit.as_ref().is_some_and(|(of, _)| of == lit);
            if !is_known {
                let count = document.program(program).map_or(0, |(program, _)| program.buffers.len());
                self.lit = Some((lit.clone(), Arc::new(SearchResults::of_list(&lit.words, &lit.buffers, count))));
            }
            return self.lit.as_ref().map(|(_, hits)| Arc::clone(hits));
        }
        let words = shared.filter.trim();
        if words.is_empty() {
            (self.search, self.last_hits) = (None, None);
            return None;
        }
        let step = shared.step;
        let key: SearchKey = (program, color, words.to_owned(), step);
        // One search at a time, so that fast typing skips intermediate texts.
        let is_busy = self.search.as_ref().is_some_and(|(_, job)| job.is_running());
        if !is_busy && self.search.as_ref().is_none_or(|(of, _)| *of != key) {
            let table = self.table(work, document, program, color)?;
            let document = Arc::clone(document);
            let words = words.to_owned();
            let job = Job::start(work, "find", move || {
                SearchResults::new(&document, program, color, &table, (&words, step)).map(Arc::new)
            });
            self.search = Some((key.clone(), job));
        }
        if let Some((of, job)) = &mut self.search
            && let Some(Some(hits)) = job.poll()
        {
            self.last_hits = Some((of.clone(), Arc::clone(hits)));
        }
        let is_same_space = |(of, _): &&(SearchKey, Arc<SearchResults>)| (of.0, of.1) == (program, color);
        self.last_hits.as_ref().filter(is_same_space).map(|(_, hits)| Arc::clone(hits))
    }

    /// The advisor's findings, against `capacity` bytes of HBM if given; `None` until computed.
    pub fn advice(&mut self, work: &Work, document: &Arc<Document>, capacity: Option<u64>) -> Option<Arc<Advice>> {
        if self.advice.as_ref().is_none_or(|(of, _)| *of != capacity) {
            let document = Arc::clone(document);
            let job = Job::start_stoppable(work, "advisor", move |stop| {
                advise_unless(&document.profile, &document.analysis, capacity.map(Bytes), stop).map(Arc::new)
            });
            self.advice = Some((capacity, job));
        }
        self.advice.as_mut()?.1.poll().cloned()
    }

    /// The result of applying `edits` to a program's HBM, with a number that no other result has; while it is computed, the
    /// program's previous result. `capacity` is in bytes and overrides the device's.
    pub fn what_if(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        program: usize,
        capacity: Option<u64>,
        edits: &[Edit],
    ) -> Option<NumberedResult> {
        let memory = self.memories.entry((program, capacity)).or_insert_with(|| {
            let document = Arc::clone(document);
            Job::start(work, "what if", move || {
                Some(document.scene(program, MemorySpace::HBM)?.memory_against(capacity.map(Bytes)))
            })
        });
        let memory = memory.poll()?.clone()?;
        let key: WhatIfKey = (program, capacity, edits.to_vec());
        if self.what_if_job.as_ref().is_none_or(|(of, _)| *of != key) {
            let (document, edits) = (Arc::clone(document), edits.to_vec());
            let job = Job::start(work, "what if", move || {
                let result = document.scene(program, MemorySpace::HBM)?.what_if_result(memory, &edits);
                Some((Arc::new(result), number::fresh()))
            });
            self.what_if_job = Some((key, job));
        }
        if let Some((_, job)) = &mut self.what_if_job
            && let Some(Some(result)) = job.poll()
        {
            self.what_if_result = Some((program, result.clone()));
        }
        self.what_if_result.as_ref().filter(|(of, _)| *of == program).map(|(_, result)| result.clone())
    }

    /// Results for a memory space; `None` until computed.
    pub fn space(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        program: usize,
        color: MemorySpace,
    ) -> Option<Arc<SpaceData>> {
        self.space_job(work, document, program, color).poll()?.clone()
    }

    fn space_job(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        program: usize,
        color: MemorySpace,
    ) -> &mut SharedJob<SpaceData> {
        self.spaces.entry((program, color)).or_insert_with(|| {
            let document = Arc::clone(document);
            Job::start(work, "memory map", move || SpaceData::new(&document, program, color).map(Arc::new))
        })
    }

    /// Whether results for some memory space were shown.
    #[must_use]
    pub fn has_space(&self) -> bool {
        self.spaces.values().any(|job| !job.is_running())
    }

    /// Whether the advisor's findings were shown.
    #[must_use]
    pub fn has_advice(&self) -> bool {
        self.advice.as_ref().is_some_and(|(_, job)| !job.is_running())
    }

    /// Columns of all buffers in a memory space; `None` until computed.
    pub fn table(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        program: usize,
        color: MemorySpace,
    ) -> Option<Arc<BufferTable>> {
        let job = self.tables.entry((program, color)).or_insert_with(|| {
            let document = Arc::clone(document);
            Job::start(work, "table", move || Some(Arc::clone(document.scene(program, color)?.table())))
        });
        job.poll()?.clone()
    }

    /// Curves of live bytes stacked by `grouping`; `None` until computed.
    pub fn stacked_curves(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        program: usize,
        color: MemorySpace,
        grouping: Grouping,
    ) -> Option<Arc<StackedCurves>> {
        let job = self.stacked_curves.entry((program, color, grouping)).or_insert_with(|| {
            let document = Arc::clone(document);
            Job::start(work, "stacked curves", move || {
                Some(Arc::clone(document.scene(program, color)?.curves(grouping)))
            })
        });
        job.poll()?.clone()
    }
}
