//! Model of one memory space of a program that what-if edits apply to: always-live allocations, families of
//! temporaries, and what the compiler adds.

use std::sync::{Arc, OnceLock};

use rayon::prelude::*;

use super::base::{Base, Role};
use super::batch::{DataArgument, trains};
use super::borrowed::{Borrowed, borrowed};
use super::edit::Arguments;
use super::followers::{Followers, Temporaries};
use super::follows::{Divided, Follows};
use super::global_batch::GlobalBatch;
use super::head_size::Heads;
use super::lodgers::{Housed, Lodger, end_early, is_alike, lodgers_of};
use super::named::ArgumentRows;
use super::pages;
use super::postponed::Postponed;
use super::recomputed::Recomputed;
use super::resize;
use super::saved_for_backward::{SavedForBackward, is_among};
use super::segments::{self, Named, Segments};
use super::shapes::Shapes;
use super::turn::Turn;
use crate::analysis::class::{Class, Classes};
use crate::analysis::flow::node_at;
use crate::analysis::names::lookup::is_rematerialised;
use crate::analysis::names::pass::Pass;
use crate::analysis::once::once;
use crate::analysis::packing::{self, Block, Families};
use crate::analysis::recent::Recent;
use crate::analysis::{ProgramAnalysis, SpaceAnalysis};
use crate::model::{
    Allocation, AllocationId, BufferId, Device, DeviceKind, FastMap, FastSet, InstructionId, MemorySpace, NO_ROW,
    Opcode, Program, ShapeIndex, ShapeNode, TpuGeneration,
};

/// Temporaries below this fraction (1/20) of what is allocated leave the compiler nothing to save.
pub(super) const HARDLY_ANY: u64 = 20;

/// Part of the largest temporary from which on what is recomputed shows that layers are checkpointed.
const OF_LAYERS: u64 = 16;

/// A buffer whose size a change may alter.
#[derive(Debug, Clone, Copy)]
pub struct Item {
    /// The buffer.
    pub buffer: BufferId,
    /// Row of [`Memory::base`] or of the families.
    pub owner: Owner,
}

/// What an [`Item`] belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// Row of [`Memory::base`].
    Base(u32),
    /// Row of the families.
    Family(u32),
}

/// What a row of [`Memory::base`] is for, in short.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ShortRole {
    /// Whether it is an argument.
    pub is_argument: bool,
    /// Whether a result reuses its memory.
    pub is_donated: bool,
    /// Whether it is a trained weight.
    pub is_trained: bool,
    /// Class of its own buffer.
    pub class: Class,
    /// Whether its result, if it is one, is the largest in it, or another form of the same array.
    pub is_own: bool,
}

/// One memory space of a program, as edits see it.
#[derive(Debug, Clone)]
pub struct Memory {
    /// The memory space.
    pub color: MemorySpace,
    /// Always-live allocations.
    pub base: Vec<Base>,
    /// Temporaries with heap events.
    pub families: Families,
    /// Everything a change may resize.
    pub items: Vec<Item>,
    /// Bytes of the heap in the dump.
    pub heap: u64,
    /// Bytes allocated for temporaries outside the heap; taken as constant.
    pub rest: u64,
    /// Peak bytes as XProf computes them.
    pub peak: u64,
    /// Total allocated bytes as XProf computes them.
    pub allocated: u64,
    /// Bytes of XProf's peak beyond base and live families: negative where the memory of a family is free between two of
    /// its buffers.
    pub correction: i64,
    /// Bytes a program may use; `None` if unknown.
    pub capacity: Option<u64>,
    /// Bytes of VMEM on each core; 0 where the device is no TPU.
    pub vmem: u64,
    /// Short name of the generation of TPUs, such as `v5e`, where it is known.
    pub generation: Option<&'static str>,
    /// Whether it is the memory of a GPU, whose compiler computes less again than the TPU's.
    pub is_gpu: bool,
    /// Arguments that hold a batch.
    pub data: Vec<DataArgument>,
    /// Trained weights (rows of [`Self::base`], ascending), each with a gradient of the same size.
    pub trained: Vec<usize>,
    /// Framework op name of the instruction that makes each family's root, by family.
    family_names: Vec<String>,
    /// What the forward pass keeps for the backward pass.
    pub kept: SavedForBackward,
    /// Number of families made by rematerialisation, according to their names.
    pub rematerialised: usize,
    /// Program point of each heap event, if the program has a schedule.
    pub points: Vec<u32>,
    /// Arguments (rows of [`Self::base`]) that were donated but could not be paired with a result.
    pub donors: Vec<u32>,
    /// Last program point that reads an argument, by row of [`Self::base`]; 0 for the others.
    pub last_read: Vec<u32>,
    /// Program point at which a result is written, by row of [`Self::base`]; the last one where that is not known.
    pub(super) written: Vec<u32>,
    /// Buffers in a result's memory that are neither the result nor a copy of an argument, by row of [`Self::base`].
    pub(super) lodgers: Vec<Vec<Lodger>>,
    /// Copies of arguments that are in the memory of others.
    pub(super) borrowed: Vec<Borrowed>,
    /// Pairs of instruction and family: the instruction makes a member of the family. Ascending.
    makers: Vec<(u32, u32)>,
    /// First item of each row of [`Self::base`].
    first_items: Vec<u32>,
    /// Row of [`Self::data`] by row of [`Self::base`], or `NO_ROW`.
    data_rows: Vec<u32>,
    /// Shapes of the items.
    pub(super) shapes: Shapes,
    /// Row of the shape, by item; `NO_ROW` for what is no array.
    pub(super) shape_of: Vec<u32>,
    /// Bytes by item.
    pub(super) item_bytes: Vec<u64>,
    /// Bytes by row of [`Self::base`].
    pub(super) base_bytes: Vec<u64>,
    /// Bytes by family, those of its largest item.
    pub(super) family_bytes: Vec<u64>,
    /// First and last time by family: twice the heap events.
    pub(super) spans: Vec<(u32, u32)>,
    /// What each row of [`Self::base`] is for, in short.
    pub(super) roles: Vec<ShortRole>,
    /// What may be divided with arguments, once somebody asked: see [`super::divide`].
    pub(super) to_divide: OnceLock<Temporaries>,
    /// Arguments by the names that changes gave them last.
    pub(super) named_arguments: Recent<Arguments, ArgumentRows, 16>,
    /// The sum of [`Self::base_bytes`].
    always_live: u64,
    /// The segments of the patterns of layers that were asked for last.
    pub(super) segments: Recent<String, Segments, 8>,
    /// Bytes of the heap packed by size, by the blocks that were packed last.
    pub(super) packed_by_size: Recent<Vec<Block>, u64, 4>,
    /// What is computed again, once somebody asked: see [`super::recompute`].
    pub(super) recomputed: OnceLock<Recomputed>,
    /// What the compiler may postpone, once somebody asked: see [`super::recompute`].
    pub(super) postponable: OnceLock<Vec<u32>>,
    /// Where the values of arguments are found again, once somebody asked: see [`super::follow`].
    pub(super) followers: OnceLock<Followers>,
    /// Outlines of the arguments that hold no batch, once somebody asked: see [`super::batch::weights`].
    pub(super) weights: OnceLock<FastSet<Vec<i64>>>,
    /// How the global batch is recognised, once somebody asked.
    pub(super) global_batch: OnceLock<Option<GlobalBatch>>,
    /// Heads that kernels of block-wise attention pad, by the dimensions of their scores.
    padded_heads: Recent<Vec<i64>, Option<Heads>, 16>,
    /// Numbers of elements of the arrays whose random bits the default generator of JAX makes.
    pub(super) drawn: OnceLock<FastSet<u64>>,
    /// Whether anything is of a backward pass, once somebody asked.
    has_backward: OnceLock<bool>,
    /// See [`Self::has_checkpoints`].
    has_checkpoints: OnceLock<bool>,
    /// Batch below which convolutions are folded, once somebody asked.
    pub(super) folded: OnceLock<Option<i64>>,
    /// Part of the batch that the step runs on, once somebody asked.
    pub(super) part_of_batch: OnceLock<Option<i64>>,
    /// See [`Self::leaves_samples_out`].
    pub(super) leaves_samples_out: OnceLock<bool>,
    /// Parts of the batch that the program has the passes of beside each other, once somebody asked.
    pub(super) parts_beside: OnceLock<Option<i64>>,
    /// Dimensions that follow those of arguments of the sizes that were asked for last, by item.
    pub(super) followed_sizes: Recent<(i64, bool), Vec<Follows>, 4>,
    /// Dimensions that follow the batch, by item, once somebody asked: see [`super::followed`].
    pub(super) followed: OnceLock<Vec<Follows>>,
    /// See [`Self::divided`].
    pub(super) divided: OnceLock<Divided>,
    /// Lengths of sorted vectors with several rows for each token, once somebody asked.
    pub(super) sorted_rows: OnceLock<Vec<i64>>,
    /// What loops recompute in each step, once somebody asked: see [`super::in_loops`].
    pub(super) recomputed_in_loops: OnceLock<Vec<u32>>,
    /// How many parts of the batch a loop adds up gradients of, as its steps tell; 0 where that is not known.
    pub(super) parts_of_loop: Option<i64>,
    /// See [`Self::gradient`].
    pub(super) gradient: OnceLock<Option<u32>>,
    /// See [`Self::casts_to_16_bits`].
    pub(super) casts: OnceLock<bool>,
    /// What layers pass on, once somebody asked: see [`super::put_off`].
    pub(super) residual_stream: OnceLock<Option<(u32, f64)>>,
    /// Whether each row of [`Self::base`] is divided over the devices of the batch, once somebody asked.
    pub(super) divided_with_batch: OnceLock<Vec<bool>>,
    /// What is kept for gradients of weights alone, once somebody asked.
    pub(super) postponed: OnceLock<Vec<Postponed>>,
    /// Results by their place in the program's result: rows of [`Self::base`].
    pub(super) results: Vec<u32>,
    /// The same, ascending.
    pub(super) results_by_row: Vec<u32>,
    /// Number of the array that the program returns, by row of [`Self::base`]; `NO_ROW` where it is not known.
    returned_arrays: Vec<u32>,
}

impl Memory {
    /// Prepares a memory space.
    #[must_use]
    pub fn new(program: &Program, analysis: &ProgramAnalysis, space: &SpaceAnalysis, device: &Device) -> Self {
        // What is always live, and what buffers are for: neither needs the other.
        let (base, (families, classes)) = rayon::join(
            || bases(program, analysis, space.color),
            || {
                let families = space.xprof.trace.and_then(|trace| Families::new(program, trace)).unwrap_or_default();
                (families, analysis.classes(program))
            },
        );
        let (start, end) = families.extent(program);
        let heap = end - start;
        let temporaries = (space.xprof.allocated - space.xprof.always_live).0;
        let mut items: Vec<Item> = Vec::new();
        let mut first_items = Vec::with_capacity(base.len());
        for (i, base) in base.iter().enumerate() {
            first_items.push(items.len() as u32);
            items.push(Item { buffer: base.buffer, owner: Owner::Base(i as u32) });
            if base.largest != base.buffer {
                items.push(Item { buffer: base.largest, owner: Owner::Base(i as u32) });
            }
        }
        let mut members: Vec<Item> = families
            .member_of
            .iter()
            .map(|&(buffer, family)| Item { buffer: BufferId(buffer), owner: Owner::Family(family) })
            .collect();
        members.sort_by_key(|item| (item.owner, item.buffer));
        let mut makers: Vec<(u32, u32)> = families
            .member_of
            .iter()
            .filter_map(|&(buffer, family)| Some((program.buffers.instruction_of(BufferId(buffer))?.0, family)))
            .collect();
        makers.sort_unstable();
        items.append(&mut members);
        let (mut shapes, shape_of) = Shapes::of_buffers(program, items.iter().map(|item| item.buffer));
        let returned_arrays =
            base.iter().map(|base| base.returned.as_ref().map_or(NO_ROW, |node| shapes.array_of(node))).collect();
        let item_bytes: Vec<u64> = items.iter().map(|item| program.buffers.size_of(item.buffer).0).collect();
        let base_bytes: Vec<u64> = base.iter().map(|base| base.size).collect();
        let mut family_bytes = vec![0u64; families.list.len()];
        for (item, &bytes) in items.iter().zip(&item_bytes) {
            if let Owner::Family(row) = item.owner {
                let size = &mut family_bytes[row as usize];
                *size = bytes.max(*size);
            }
        }
        let spans = families.list.iter().map(|family| (2 * family.first, 2 * family.last)).collect();
        let place = |row: &u32| match &base[*row as usize].role {
            Role::Result(place) => Some(place.as_slice()),
            _ => None,
        };
        let results_by_row: Vec<u32> = (0..base.len() as u32).filter(|row| place(row).is_some()).collect();
        let mut results = results_by_row.clone();
        results.sort_by_key(place);
        let live = crate::analysis::packing::most_live(&families.blocks()).0;
        let always = base_bytes.iter().fold(0u64, |sum, &size| sum.saturating_add(size));
        let roots = || families.list.iter().map(|family| program.buffers.instruction_of(family.root));
        let labels = analysis.labels(program);
        let family_names = segments::family_names(program, labels, &families);
        let rematerialised = roots().flatten().filter(|&root| is_rematerialised(program, root)).count();
        let mut kept_arguments: FastMap<(i64, &[i64]), u32> = FastMap::default();
        for (row, base) in base.iter().enumerate() {
            if let Role::Argument { number, is_donated: false, .. } = &base.role {
                let own = &program.allocations[base.allocation.index()];
                kept_arguments.entry((*number, own.parameter_shape_index.as_slice())).or_insert(row as u32);
            }
        }
        let donors = program
            .donors
            .iter()
            .filter_map(|donor| kept_arguments.get(&(donor.parameter, donor.parameter_index.as_slice())).copied())
            .collect();
        let is_tpu = device.kind.is_none_or(|kind| kind == DeviceKind::Tpu);
        let generation = device.name.as_deref().and_then(TpuGeneration::by_name);
        let vmem_mib = || generation.map_or(128, |row| row.vmem_mib);
        let vmem = if is_tpu { vmem_mib() << 20 } else { 0 };
        let data = pages::data_arguments(program, classes, &base, (&families, labels));
        let points = space.events.as_ref().map(|e| e.points.clone()).unwrap_or_default();
        let (kept, (last_read, lodgers)) = rayon::join(
            || SavedForBackward::new(program, analysis, (&base, &data), &families, (&family_names, &points)),
            || {
                let mut lodgers: Vec<_> = base.iter().map(|base| lodgers_of(program, analysis, base)).collect();
                let is_over = space.capacity.as_ref().is_some_and(|c| space.xprof.allocated > c.bytes);
                if let Some(live) = analysis.live.as_ref().filter(|_| is_over) {
                    end_early(program, live, &mut lodgers);
                }
                (last_reads(program, analysis, &base), lodgers)
            },
        );
        let written = |own: &Base| analysis.live.as_ref()?.of(own.buffer).map(|life| life.0);
        let written: Vec<u32> = base.iter().map(|own| written(own).unwrap_or(u32::MAX)).collect();
        let trains = trains(classes, &base);
        let is_weight =
            |base: &Base| matches!(base.role, Role::Argument { .. }) && classes.of(base.buffer) == Class::Weight;
        let trained: Vec<usize> = (0..base.len()).filter(|&row| trains && is_weight(&base[row])).collect();
        let mut roles: Vec<ShortRole> = base.iter().map(|base| short_role(program, classes, base)).collect();
        for &row in &trained {
            roles[row].is_trained = true;
        }
        let mut data_rows = vec![NO_ROW; base.len()];
        for (row, data) in data.iter().enumerate().rev() {
            data_rows[data.base as usize] = row as u32;
        }
        Self {
            borrowed: if is_tpu { borrowed(program, analysis, &base, space.xprof.allocated.0) } else { Vec::new() },
            lodgers,
            color: space.color,
            heap,
            rest: temporaries.saturating_sub(heap),
            peak: space.xprof.peak.0,
            allocated: space.xprof.allocated.0,
            correction: i64::try_from(i128::from(space.xprof.peak.0) - i128::from(always.saturating_add(live)))
                .unwrap_or(0),
            capacity: space.capacity.as_ref().map(|c| c.bytes.0),
            vmem,
            generation: generation.map(|row| row.name),
            is_gpu: device.kind == Some(DeviceKind::Gpu),
            data,
            trained,
            family_names,
            kept,
            rematerialised,
            points,
            donors,
            last_read,
            written,
            makers,
            first_items,
            data_rows,
            shapes,
            shape_of,
            item_bytes,
            base_bytes,
            family_bytes,
            spans,
            roles,
            to_divide: OnceLock::new(),
            named_arguments: Recent::default(),
            always_live: always,
            results,
            results_by_row,
            returned_arrays,
            segments: Recent::default(),
            packed_by_size: Recent::default(),
            recomputed: OnceLock::new(),
            postponable: OnceLock::new(),
            followers: OnceLock::new(),
            weights: OnceLock::new(),
            global_batch: OnceLock::new(),
            padded_heads: Recent::default(),
            drawn: OnceLock::new(),
            folded: OnceLock::new(),
            part_of_batch: OnceLock::new(),
            leaves_samples_out: OnceLock::new(),
            parts_beside: OnceLock::new(),
            followed: OnceLock::new(),
            divided: OnceLock::new(),
            followed_sizes: Recent::default(),
            sorted_rows: OnceLock::new(),
            recomputed_in_loops: OnceLock::new(),
            postponed: OnceLock::new(),
            parts_of_loop: labels.steps.micro_batches,
            gradient: OnceLock::new(),
            casts: OnceLock::new(),
            residual_stream: OnceLock::new(),
            divided_with_batch: OnceLock::new(),
            has_backward: OnceLock::new(),
            has_checkpoints: OnceLock::new(),
            base,
            families,
            items,
        }
    }

    /// Framework op name of the instruction that makes a family's root; empty if there is none.
    #[must_use]
    pub fn family_name(&self, family: usize) -> &str {
        self.family_names.get(family).map_or("", String::as_str)
    }

    /// The families with their names and passes.
    pub(super) fn named(&self) -> Named<'_> {
        Named { families: &self.families, names: &self.family_names, passes: &self.kept.passes, makers: &self.makers }
    }

    /// What a pattern names to checkpoint, worked out once for the patterns that were asked for last.
    pub(super) fn segments_of(&self, program: &Program, turn: &Turn, pattern: &str) -> Arc<Segments> {
        self.segments.value(pattern, || Segments::new(program, self.named(), turn, pattern))
    }

    /// The time of a program point: twice the heap event, or the point where there is no heap.
    pub(super) fn time_of(&self, point: u32) -> u32 {
        if self.points.is_empty() { point } else { 2 * self.points.partition_point(|&p| p < point) as u32 }
    }

    /// What is in a result's memory while the argument to be donated to it is still read, as bytes and first and last time
    /// (program points where there is no heap), but for [`Self::relaid_lodgers`].
    pub(super) fn other_lodgers(&self, argument: usize, result: usize) -> Vec<Housed> {
        let last = self.last_read.get(argument).copied().unwrap_or(0);
        self.lodgers_where(result, last, |lodger| !lodger.is_relaid)
    }

    /// What is in a result's memory besides the result, at any time; as [`Self::other_lodgers`].
    pub(super) fn all_lodgers(&self, result: usize) -> Vec<Housed> {
        self.lodgers_until(result, u32::MAX)
    }

    /// As [`Self::all_lodgers`], without arrays of the result's own shape: what a loop collects into the result.
    pub(super) fn lodgers_unlike(&self, result: usize) -> Vec<Housed> {
        self.lodgers_where(result, u32::MAX, |lodger| !lodger.is_like_result)
    }

    fn lodgers_until(&self, result: usize, last: u32) -> Vec<Housed> {
        self.lodgers_where(result, last, |_| true)
    }

    fn lodgers_where(&self, result: usize, last: u32, is_meant: impl Fn(&Lodger) -> bool) -> Vec<Housed> {
        let own = self.lodgers.get(result).map_or(&[] as &[Lodger], Vec::as_slice);
        // What has another layout than the argument is never written in its place, such as the state of a loop.
        let until = |lodger: &Lodger| if lodger.is_relaid { lodger.last } else { lodger.last.min(last) };
        let conflicts = own.iter().filter(|lodger| (lodger.first < last || lodger.is_relaid) && is_meant(lodger));
        let life = |lodger: &Lodger| self.times_of(lodger.first, until(lodger));
        let housed = |own: &Lodger| Housed {
            block: Block { size: own.size, start: life(own).0, end: life(own).1 },
            buffer: own.buffer,
        };
        conflicts.map(housed).collect()
    }

    /// Whether a family of the forward pass is live when the backward pass begins.
    #[must_use]
    pub fn is_kept(&self, family: usize) -> bool {
        let row = self.families.list.get(family);
        self.kept.turn.as_ref().zip(row).is_some_and(|(turn, row)| (2 * row.first..2 * row.last).contains(&turn.at))
    }

    /// Whether an instruction makes a member of a family.
    #[must_use]
    pub fn makes(&self, instruction: InstructionId, family: usize) -> bool {
        u32::try_from(family).is_ok_and(|family| self.makers.binary_search(&(instruction.0, family)).is_ok())
    }

    /// The item for a row of [`Self::base`] itself.
    #[must_use]
    pub fn item_of(&self, row: usize) -> Option<usize> {
        self.first_items.get(row).map(|&item| item as usize)
    }

    /// Number of the array that the program returns for a result, where it is known.
    pub(super) fn returned_array(&self, row: usize) -> Option<u32> {
        self.returned_arrays.get(row).copied().filter(|&array| array != NO_ROW)
    }

    /// The batch that a row of [`Self::base`] holds, if it does.
    #[must_use]
    pub fn data_of(&self, row: usize) -> Option<&DataArgument> {
        self.data.get(*self.data_rows.get(row)? as usize)
    }

    /// Whether a row of [`Self::base`] is an argument that holds a batch.
    #[must_use]
    pub fn is_data(&self, row: usize) -> bool {
        self.data_of(row).is_some()
    }

    /// Always-live bytes.
    #[must_use]
    pub const fn always_live(&self) -> u64 {
        self.always_live
    }

    /// Peak bytes of temporaries.
    #[must_use]
    pub fn temporaries(&self) -> u64 {
        self.peak.saturating_sub(self.always_live())
    }

    /// Share of the available memory that is allocated (1 is full); `None` if the capacity is unknown.
    #[must_use]
    pub fn pressure(&self) -> Option<f64> {
        self.capacity.filter(|&c| c > 0).map(|capacity| self.allocated as f64 / capacity as f64)
    }

    /// Whether the program does not fit.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.capacity.is_some_and(|capacity| self.allocated > capacity)
    }

    /// The array that the root of a family is.
    pub(super) fn node_of_family<'p>(&self, program: &'p Program, family: u32) -> Option<&'p ShapeNode> {
        program.buffer_node(self.families.list.get(family as usize)?.root)
    }

    /// The largest attention scores.
    pub(super) fn largest_scores<'p>(&self, program: &'p Program) -> Option<&'p ShapeNode> {
        let family = self.kept.scores.iter().max_by_key(|&&row| self.family_bytes.get(row as usize))?;
        self.node_of_family(program, *family)
    }

    /// Heads, of which these are the scores, that the kernels of a TPU pad.
    pub(super) fn padded_heads(&self, program: &Program, scores: &ShapeNode) -> Option<Heads> {
        if self.is_gpu {
            return None;
        }
        *self.padded_heads.value(&scores.dimensions[..], || Heads::padded(program, scores))
    }

    /// Elements of a head, where the kernels of block-wise attention pad those of which these are the scores.
    #[must_use]
    pub fn small_heads(&self, program: &Program, scores: &ShapeNode) -> Option<i64> {
        self.padded_heads(program, scores).map(|heads| heads.elements)
    }

    /// Whether anything is of a backward pass: whether the program trains.
    #[must_use]
    pub fn has_backward(&self) -> bool {
        *once(&self.has_backward, || self.kept.passes.contains(&Pass::Backward))
    }

    /// Whether layers are checkpointed already: more is recomputed than a loss in parts alone does.
    #[must_use]
    pub fn has_checkpoints(&self) -> bool {
        let is_any = || {
            let rows = || self.families.list.iter().enumerate().filter(|row| !is_among(&self.kept.logits, row.0));
            // A stack is of all layers.
            let one = rows().filter(|row| !self.kept.is_stack(row.0));
            let largest = one.map(|row| row.1.size).max().unwrap_or(0);
            rows().any(|(row, family)| {
                self.kept.passes.get(row) == Some(&Pass::Recomputed) && family.size >= largest / OF_LAYERS
            })
        };
        *once(&self.has_checkpoints, is_any)
    }

    /// Whether the compiler was already short of memory, and so packed by size and rematerialised.
    #[must_use]
    pub fn is_under_pressure(&self) -> bool {
        let is_full = || self.pressure().is_some_and(|share| share > self.full_from());
        // With hardly any temporaries there is nothing to save.
        self.rematerialised > 0 || (self.temporaries() > self.allocated / HARDLY_ANY && is_full())
    }

    /// Alignment of the heap's blocks in bytes.
    #[must_use]
    pub const fn alignment(&self) -> u64 {
        if self.is_gpu { packing::GPU_ALIGNMENT } else { packing::ALIGNMENT }
    }

    /// Share of the available memory, 0 to 1, from which on the compiler computes values again.
    #[must_use]
    pub const fn full_from(&self) -> f64 {
        packing::full_from(self.is_gpu)
    }

    /// Rows of the arguments whose path passes a test.
    pub fn arguments<'a>(&'a self, accept: impl Fn(&str) -> bool + 'a) -> impl Iterator<Item = usize> + 'a {
        self.base.iter().enumerate().filter_map(move |(i, base)| match &base.role {
            Role::Argument { path, .. } if accept(path) => Some(i),
            _ => None,
        })
    }
}

/// What a row of the base is for, but for whether it is trained.
fn short_role(program: &Program, classes: &Classes, base: &Base) -> ShortRole {
    let (is_argument, is_donated) = match base.role {
        Role::Argument { is_donated, .. } => (true, is_donated),
        _ => (false, false),
    };
    let count = |buffer| resize::node_of(program, buffer).map(|node| (node.element_count(), node.element_type));
    let size = |buffer| program.buffers.size_of(buffer);
    let is_own = base.largest == base.buffer
        || (size(base.largest) == size(base.buffer) && count(base.largest) == count(base.buffer));
    ShortRole { is_argument, is_donated, is_own, is_trained: false, class: classes.of(base.buffer) }
}

/// The always-live allocations of a space.
fn bases(program: &Program, analysis: &ProgramAnalysis, color: MemorySpace) -> Vec<Base> {
    let paths = analysis.argument_paths(program);
    // The result each allocation holds.
    let mut results: FastMap<u32, (ShapeIndex, BufferId)> = FastMap::default();
    for (place, buffer) in analysis.live.as_ref().map(|live| live.results(program)).unwrap_or_default() {
        if let Some(allocation) = program.buffers.allocation_of(buffer) {
            results.entry(allocation.0).or_insert((place, buffer));
        }
    }
    let entry = program.entry_computation();
    let entry_root = entry.map(|entry| entry.root).filter(|&root| root != NO_ROW).map(InstructionId);
    let base = |(row, allocation): (usize, &Allocation)| {
        if allocation.color != color || allocation.is_thread_local || !allocation.is_indefinite() {
            return None;
        }
        let assigned = program.assigned_to(allocation);
        let largest = assigned.iter().map(|a| a.buffer);
        let mut largest = largest.max_by_key(|&b| (program.buffers.size_of(b), std::cmp::Reverse(b)))?;
        let argument = |buffer: &BufferId| {
            let instruction = program.buffers.instruction_of(*buffer);
            instruction.is_some_and(|i| program.instructions.opcode.get(i.index()) == Some(&Opcode::PARAMETER))
        };
        let (buffer, role) = if allocation.is_parameter {
            let buffer = assigned.iter().map(|a| a.buffer).find(argument).unwrap_or(largest);
            let path = paths.get(&allocation.parameter_number).cloned().unwrap_or_default();
            let is_donated = allocation.maybe_live_out;
            (buffer, Role::Argument { number: allocation.parameter_number, path, is_donated })
        } else if let (Some((place, buffer)), true) = (results.get(&(row as u32)), allocation.maybe_live_out) {
            (*buffer, Role::Result(place.clone()))
        } else {
            (largest, Role::Other)
        };
        // A buffer of the same size and shape is the same data on its way to the result, not a temporary that hosts.
        if largest != buffer && is_alike(program, largest, buffer) {
            largest = buffer;
        }
        let returned = match &role {
            Role::Result(place) => entry_root.and_then(|root| node_at(program, root, place)).cloned(),
            _ => None,
        };
        Some(Base { allocation: AllocationId(row as u32), size: allocation.size.0, buffer, largest, role, returned })
    };
    program.allocations.par_iter().enumerate().filter_map(base).collect()
}

/// Last point at which each argument is read, through views and prefetches.
fn last_reads(program: &Program, analysis: &ProgramAnalysis, base: &[Base]) -> Vec<u32> {
    let mut last = vec![0; base.len()];
    let (Some(live), Some(entry)) = (&analysis.live, program.entry_computation()) else {
        return last;
    };
    // The argument that each instruction of the entry computation passes on, or NO_ROW.
    let mut stands_for: FastMap<u32, u32> = FastMap::default();
    let mut by_number: FastMap<i64, u32> = FastMap::default();
    for (i, base) in base.iter().enumerate() {
        let Role::Argument { number, .. } = base.role else { continue };
        if program.are_arguments_in_tuple {
            by_number.insert(number, i as u32);
        } else if let Some(instruction) = program.buffers.instruction_of(base.buffer) {
            stands_for.insert(instruction.0, i as u32);
        }
    }
    // What takes an argument out of the tuple of all of them.
    for row in (entry.start..entry.end).filter(|_| program.are_arguments_in_tuple) {
        let is_argument = program.instructions.opcode.get(row as usize) == Some(&Opcode::PARAMETER)
            && !program.instructions.operands_of(InstructionId(row)).is_empty();
        let number = program.instructions.argument.get(row as usize).copied().map(i64::from);
        if let Some(&argument) = number.filter(|_| is_argument).and_then(|number| by_number.get(&number)) {
            stands_for.insert(row, argument);
        }
    }
    // Arguments in a tuple: whatever takes the tuple reads them until it ends.
    let mut held: FastMap<u32, Vec<u32>> = FastMap::default();
    for &row in &entry.schedule {
        let opcode = program.instructions.opcode[row as usize];
        let passes_on =
            matches!(opcode, Opcode::BITCAST | Opcode::GET_TUPLE_ELEMENT | Opcode::COPY_START | Opcode::COPY_DONE);
        let point = live.point_of(row).unwrap_or(0);
        for &operand in program.instructions.operands_of(InstructionId(row)) {
            if operand == NO_ROW {
                continue;
            }
            let calls = matches!(opcode, Opcode::WHILE | Opcode::CONDITIONAL | Opcode::CALL);
            for &argument in held.get(&operand).into_iter().flatten().filter(|_| calls) {
                last[argument as usize] = last[argument as usize].max(point);
            }
            if let Some(&argument) = stands_for.get(&operand) {
                if opcode == Opcode::TUPLE {
                    held.entry(row).or_default().push(argument);
                }
                if opcode != Opcode::TUPLE {
                    last[argument as usize] = last[argument as usize].max(point);
                }
                // A prefetched copy is a buffer of its own; only views alias the argument.
                if passes_on && opcode != Opcode::COPY_DONE {
                    stands_for.insert(row, argument);
                }
            }
        }
    }
    last
}
