//! What views compute from a document, on workers, and keep: memory map, stacked curves, contributors.

use std::collections::HashMap;
use std::sync::Arc;

use super::finding::Hits;
use super::job::{Job, Work};
use crate::advisor::{Advice, advise_against};
use crate::analysis::contributors::Contributor;
use crate::analysis::map::MemoryMap;
use crate::analysis::stacked_curves::{Grouping, StackedCurves};
use crate::analysis::table::BufferTable;
use crate::analysis::what_if::{Edit, Memory};
use crate::model::{BufferId, Bytes, MemorySpace};
use crate::ui::session::Document;
use crate::ui::work::Related;
use crate::ui::work::WhatIfResult;

/// What is computed for a memory space.
pub struct SpaceData {
    /// Buffers by address and time.
    pub map: Arc<MemoryMap>,
    /// Curves by class.
    pub by_class: Arc<StackedCurves>,
    /// What stands at the peak, folded.
    pub contributors: Arc<[Contributor]>,
}

impl SpaceData {
    /// Computes everything for a memory space; `None` where the document has no such space.
    #[must_use]
    pub fn new(document: &Document, program: usize, color: MemorySpace) -> Option<Self> {
        let scene = document.scene(program, color)?;
        Some(Self {
            map: Arc::clone(scene.map()),
            by_class: Arc::clone(scene.curves(Grouping::Class)),
            contributors: Arc::clone(scene.contributors()),
        })
    }

    /// The place of a buffer.
    #[must_use]
    pub fn box_of(&self, buffer: BufferId) -> Option<&crate::analysis::map::MapBox> {
        self.map.box_of(buffer)
    }
}

/// A result that is shared with the workers that need it.
type Kept<T> = Job<Option<Arc<T>>>;

/// What changes were result out: program, capacity, changes.
type WhatIfKey = (usize, Option<u64>, Vec<Edit>);

/// What was looked for: program, memory space, words.
type FoundOf = (usize, MemorySpace, String);

/// Results by what they belong to.
#[derive(Default)]
pub struct Derived {
    /// What surrounds the selected buffer and the chosen step.
    pub related: Related,
    finding: Option<(FoundOf, Kept<Hits>)>,
    /// What was found last: shown until the next is there.
    found: Option<(FoundOf, Arc<Hits>)>,
    advice: Option<(Option<u64>, Job<Arc<Advice>>)>,
    memories: HashMap<(usize, Option<u64>), Kept<Memory>>,
    what_if_job: Option<(WhatIfKey, Job<Option<Arc<WhatIfResult>>>)>,
    /// The last outcome: shown until the next is there.
    what_if_result: Option<(usize, Arc<WhatIfResult>)>,
    spaces: HashMap<(usize, MemorySpace), Kept<SpaceData>>,
    stacked_curves: HashMap<(usize, MemorySpace, Grouping), Kept<StackedCurves>>,
    tables: HashMap<(usize, MemorySpace), Kept<BufferTable>>,
}

impl Derived {
    /// What is found by words in a memory space; while that is looked for, what was found before in the same space.
    pub fn hits(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        program: usize,
        color: MemorySpace,
        words: &str,
    ) -> Option<Arc<Hits>> {
        let words = words.trim();
        if words.is_empty() {
            (self.finding, self.found) = (None, None);
            return None;
        }
        let key: FoundOf = (program, color, words.to_owned());
        // One search at a time: while a person types, those in between are never begun.
        let is_busy = self.finding.as_ref().is_some_and(|(_, job)| job.is_running());
        if !is_busy && self.finding.as_ref().is_none_or(|(of, _)| *of != key) {
            let table = self.table(work, document, program, color)?;
            let document = Arc::clone(document);
            let words = words.to_owned();
            let job =
                Job::start(work, "find", move || Hits::new(&document, program, color, &table, &words).map(Arc::new));
            self.finding = Some((key.clone(), job));
        }
        if let Some((of, job)) = &mut self.finding
            && let Some(Some(hits)) = job.poll()
        {
            self.found = Some((of.clone(), Arc::clone(hits)));
        }
        let is_here = |(of, _): &&(FoundOf, Arc<Hits>)| (of.0, of.1) == (program, color);
        self.found.as_ref().filter(is_here).map(|(_, hits)| Arc::clone(hits))
    }

    /// What the advisor says, once it is there; against another capacity of HBM where one is chosen.
    pub fn advice(&mut self, work: &Work, document: &Arc<Document>, capacity: Option<u64>) -> Option<Arc<Advice>> {
        if self.advice.as_ref().is_none_or(|(of, _)| *of != capacity) {
            let document = Arc::clone(document);
            let job = Job::start(work, "advisor", move || {
                Arc::new(advise_against(&document.profile, &document.analysis, capacity.map(Bytes)))
            });
            self.advice = Some((capacity, job));
        }
        self.advice.as_mut()?.1.poll().cloned()
    }

    /// What changes to a program's HBM come to; while they are worked out, the last outcome.
    pub fn what_if(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        program: usize,
        capacity: Option<u64>,
        edits: &[Edit],
    ) -> Option<Arc<WhatIfResult>> {
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
                WhatIfResult::new(&document, program, memory, &edits).map(Arc::new)
            });
            self.what_if_job = Some((key, job));
        }
        if let Some((_, job)) = &mut self.what_if_job
            && let Some(Some(result)) = job.poll()
        {
            self.what_if_result = Some((program, Arc::clone(result)));
        }
        self.what_if_result.as_ref().filter(|(of, _)| *of == program).map(|(_, result)| Arc::clone(result))
    }

    /// What is computed for a memory space, once it is there.
    pub fn space(
        &mut self,
        work: &Work,
        document: &Arc<Document>,
        program: usize,
        color: MemorySpace,
    ) -> Option<Arc<SpaceData>> {
        let job = self.spaces.entry((program, color)).or_insert_with(|| {
            let document = Arc::clone(document);
            Job::start(work, "memory map", move || SpaceData::new(&document, program, color).map(Arc::new))
        });
        job.poll()?.clone()
    }

    /// All buffers of a memory space in columns, once they are read.
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

    /// Stacked curves by a grouping other than category, once they are there.
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
