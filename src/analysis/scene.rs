//! One memory space of one program, with results that are computed on demand and cached. Report, advisor and window all
//! use it, so their numbers agree and nothing is computed twice.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::alternatives::{Form, forms, forms_of_listed};
use super::contributors::{Contributor, contributors};
use super::live_at::{LiveBuffer, live_at, with_span};
use super::map::MemoryMap;
use super::once::once;
use super::packing::{Reproduction, reproduce};
use super::program::{ProgramAnalysis, SpaceAnalysis, unpadded};
use super::shape_groups::{ShapeGroup, rank, shape_groups};
use super::stacked_curves::{Grouping, StackedCurves};
use super::steps::Steps;
use super::table::BufferTable;
use super::what_if::{Depth, Edit, Memory, Prediction, WhatIfResult};
use crate::model::{BufferId, Bytes, Device, DeviceKind, Program};

/// Share of the peak (one in so many) that a shape's padding must cost for the layouts that the compiler chooses to be looked
/// for.
const SHARE: u64 = 100;

/// Cached results of a memory space, each computed on first use.
#[derive(Debug, Default)]
pub struct SceneParts {
    map: OnceLock<Arc<MemoryMap>>,
    curves: [OnceLock<Arc<StackedCurves>>; Grouping::ALL.len()],
    contributors: OnceLock<Arc<[Contributor]>>,
    table: OnceLock<Arc<BufferTable>>,
    shapes: OnceLock<Arc<[ShapeGroup]>>,
    padded_shapes: OnceLock<Arc<[ShapeGroup]>>,
    memory: OnceLock<Arc<Memory>>,
    /// What-if prediction of the unchanged program, by capacity.
    unchanged: Mutex<Vec<(Option<u64>, Arc<Prediction>)>>,
}

/// Cached results of every memory space of one program.
#[derive(Debug)]
pub struct ProgramParts(Vec<SceneParts>);

impl ProgramParts {
    /// An empty cache.
    #[must_use]
    pub fn new(analysis: &ProgramAnalysis) -> Self {
        Self(analysis.spaces.iter().map(|_| SceneParts::default()).collect())
    }

    /// The memory spaces of the program that these parts were made for, ascending by colour.
    pub fn scenes<'a>(
        &'a self,
        program: &'a Program,
        analysis: &'a ProgramAnalysis,
        device: &'a Device,
    ) -> impl Iterator<Item = Scene<'a>> {
        let spaces = analysis.spaces.iter().zip(&self.0);
        spaces.map(move |(space, parts)| Scene { program, analysis, space, device, parts })
    }
}

/// A memory space of a program.
///
/// Methods that return an [`Arc`] compute on the first call, which may take a second for a large program: not for the
/// window's thread.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The program.
    pub program: &'a Program,
    /// Its analysis.
    pub analysis: &'a ProgramAnalysis,
    /// The memory space.
    pub space: &'a SpaceAnalysis,
    /// The device.
    pub device: &'a Device,
    parts: &'a SceneParts,
}

impl<'a> Scene<'a> {
    /// Every buffer by address and time.
    #[must_use]
    pub fn map(self) -> &'a Arc<MemoryMap> {
        once(&self.parts.map, || Arc::new(MemoryMap::new(self.program, self.analysis, self.space)))
    }

    /// Live bytes over time by group.
    #[must_use]
    pub fn curves(self, grouping: Grouping) -> &'a Arc<StackedCurves> {
        once(&self.parts.curves[grouping as usize], || {
            Arc::new(StackedCurves::new(self.program, self.analysis, self.space, self.map(), grouping))
        })
    }

    /// Reserved bytes over time, to which the curves of every grouping add up.
    #[must_use]
    pub fn total(self) -> &'a Steps {
        match &self.space.occupancy {
            Some(occupancy) => &occupancy.reserved,
            None => &self.curves(Grouping::Class).curves.total,
        }
    }

    /// What is live at a step, or at the peak without one, with the bytes that count for it, which add up to the curve
    /// ([`super::live_at`]).
    #[must_use]
    pub fn live(self, step: Option<u32>) -> Vec<(BufferId, Bytes)> {
        match step {
            Some(step) if !self.is_peak(step) => {
                self.live_at(step).iter().map(|live| (live.buffer, live.bytes)).collect()
            }
            _ => self.space.at_peak.rows.clone(),
        }
    }

    /// Whether a step is that of the peak.
    fn is_peak(self, step: u32) -> bool {
        self.space.occupancy.is_some() && step == self.space.peak_point()
    }

    /// What has memory at a step, largest first, with when it is written ([`super::live_at`]). Computed anew at each
    /// call.
    #[must_use]
    pub fn live_at(self, step: u32) -> Vec<LiveBuffer> {
        if self.is_peak(step) {
            return self.space.at_peak.rows.iter().copied().map(with_span(self.map())).collect();
        }
        live_at(self.program, self.space, self.map(), step)
    }

    /// Contributors to the peak, with layers folded; most bytes first.
    #[must_use]
    pub fn contributors(self) -> &'a Arc<[Contributor]> {
        once(&self.parts.contributors, || contributors(self.program, self.analysis, &self.space.at_peak.rows).into())
    }

    /// The buffer table.
    #[must_use]
    pub fn table(self) -> &'a Arc<BufferTable> {
        once(&self.parts.table, || Arc::new(BufferTable::new(self.program, self.analysis, self.space, self.map())))
    }

    /// The what-if model of the memory, with the device's capacity.
    #[must_use]
    pub fn memory(self) -> &'a Arc<Memory> {
        once(&self.parts.memory, || Arc::new(Memory::new(self.program, self.analysis, self.space, self.device)))
    }

    /// Some buffers with the bytes that count for each by shape and layout, with what each shape would save at the peak
    /// without its padding; what saves most comes first. Computed anew at each call.
    #[must_use]
    pub fn shapes(self, rows: &[(BufferId, Bytes)]) -> Vec<ShapeGroup> {
        let mut groups = shape_groups(self.program, self.analysis, rows);
        let all = once(&self.parts.shapes, || shape_groups(self.program, self.analysis, &self.every_buffer()).into());
        self.rank(&mut groups, all);
        groups
    }

    /// Every buffer of the space with its size.
    #[must_use]
    pub fn every_buffer(self) -> Vec<(BufferId, Bytes)> {
        self.space.buffers.iter().map(|&buffer| (buffer, self.program.buffers.size_of(buffer))).collect()
    }

    /// The shapes at the peak that waste something, as [`Self::shapes`] orders them. The map is laid out only where one
    /// does.
    #[must_use]
    pub fn wasting_shapes(self) -> Vec<ShapeGroup> {
        // What all buffers of a shape have, one has.
        let padded = |rows: &[(BufferId, Bytes)]| -> Vec<ShapeGroup> {
            let size = |buffer| self.program.buffers.size_of(buffer);
            let is_padded =
                |row: &&(BufferId, Bytes)| unpadded(self.program, &self.analysis.traces, row.0) < size(row.0);
            let rows: Vec<_> = rows.iter().filter(is_padded).copied().collect();
            shape_groups(self.program, self.analysis, &rows)
        };
        let mut groups = padded(&self.space.at_peak.rows);
        groups.retain(|group| group.waste > Bytes::ZERO);
        if !groups.is_empty() {
            let all = once(&self.parts.padded_shapes, || padded(&self.every_buffer()).into());
            self.rank(&mut groups, all);
        }
        groups
    }

    fn rank(self, groups: &mut [ShapeGroup], all: &[ShapeGroup]) {
        if self.program.is_listing {
            // What a message lists has no steps: all of it counts.
            for group in &mut *groups {
                group.everywhere.clone_from(&group.buffers);
                group.saves = group.waste;
            }
            return;
        }
        rank(groups, all, self.map(), self.total());
        let least = self.space.peak().0 / SHARE;
        if groups.iter().any(|group| group.saves.0 > least) {
            let chosen = self.analysis.chosen_layouts(self.program);
            let softmax = self.analysis.labels(self.program).softmaxes.of(self.program);
            for group in groups {
                group.fixed_by = chosen.of_most(self.program, softmax, &group.buffers);
            }
        }
    }

    /// Alternative forms of a shape, with the peak for each; for a listing, with what is listed in total. None for a shape
    /// whose layout the compiler chooses.
    #[must_use]
    pub fn forms(self, group: &ShapeGroup) -> Vec<Form> {
        if group.fixed_by.is_some() {
            return Vec::new();
        }
        if self.program.is_listing {
            return forms_of_listed(group, self.space.peak());
        }
        forms(group, self.map(), self.total())
    }

    /// As [`Self::memory`], with another capacity if one is given.
    #[must_use]
    pub fn memory_against(self, capacity: Option<Bytes>) -> Arc<Memory> {
        let memory = self.memory();
        match capacity.map(|bytes| bytes.0) {
            Some(bytes) if memory.capacity != Some(bytes) => {
                let mut memory = Memory::clone(memory);
                memory.capacity = Some(bytes);
                Arc::new(memory)
            }
            _ => Arc::clone(memory),
        }
    }

    /// Prediction of the unchanged program, for memory from [`Self::memory_against`]; computed once per capacity.
    #[must_use]
    pub fn unchanged(self, memory: &Memory) -> Arc<Prediction> {
        let known = || self.parts.unchanged.lock().unwrap_or_else(PoisonError::into_inner);
        let found = |(capacity, prediction): &(_, Arc<Prediction>)| {
            (*capacity == memory.capacity).then(|| Arc::clone(prediction))
        };
        if let Some(prediction) = known().iter().find_map(found) {
            return prediction;
        }
        let prediction = Arc::new(memory.evaluate(self.program, &[], Depth::Verdict));
        known().push((memory.capacity, Arc::clone(&prediction)));
        prediction
    }

    /// Prediction of changes, repacked, with the device's capacity.
    #[must_use]
    pub fn what_if(self, edits: &[Edit]) -> Prediction {
        self.memory().evaluate(self.program, edits, Depth::Packed)
    }

    /// The same with everything that a view draws of it, on memory that [`Self::memory_against`] gave.
    #[must_use]
    pub fn what_if_result(self, memory: Arc<Memory>, edits: &[Edit]) -> WhatIfResult {
        let before = self.unchanged(&memory);
        WhatIfResult::new(self, memory, before, edits)
    }

    /// How the compiler's packing is reproduced; `None` without a heap trace. Computed anew at each call.
    #[must_use]
    pub fn packing(self) -> Option<Reproduction> {
        reproduce(self.program, self.space, self.device.kind == Some(DeviceKind::Gpu))
    }
}
