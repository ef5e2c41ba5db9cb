//! State of the comparison: what was compared, by a worker, and what of it is chosen.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::map::Map;
use super::tree::Differences;
use super::words::{self, Words};
use crate::analysis::compare::{Aligned, Change, ProgramName, pair_programs};
use crate::analysis::stacked_curves::{Grouping, StackedCurves};
use crate::analysis::tiles::FloorPlan;
use crate::export::diff::{
    AllocatorDiff, BytesDiff, FindingsDiff, PairDiff, Side, SpaceDiff, Sweep, compare_findings, compare_memory,
};
use crate::export::report::Options;
use crate::model::{Bytes, MemorySpace, TileMemory};
use crate::ui::part::ViewContext;
use crate::ui::session::{Before, Document, number};
use crate::ui::widget::icicle::IcicleState;
use crate::ui::widget::raster::CachedRaster;
use crate::ui::widget::table::TableState;
use crate::ui::work::Job;

/// What is compared: both profiles, program, memory space, capacity chosen in the window, allocator.
type Key = (Vec<u64>, u64, usize, MemorySpace, Option<u64>, Option<usize>);

/// What a worker found.
pub struct Found {
    /// A number that nothing else has, for the pictures of it.
    pub number: u64,
    /// The numbers, as `highwater diff` prints them.
    pub pair: PairDiff,
    /// The allocator that is shown; `None` while a memory space of a program is.
    pub allocator: Option<usize>,
    /// The same as a memory space.
    held: Option<SpaceDiff>,
    /// Both curves, where both programs have them.
    pub curves: Option<Curves>,
    /// The largest difference of a row, in bytes.
    pub largest: u128,
    /// Allocated bytes of the other memory spaces that either program has.
    pub others: Vec<(MemorySpace, String, BytesDiff)>,
    /// Before, further columns and after side by side; `None` of two only.
    pub sweep: Option<Sweep>,
    /// Tiles, where both are profiles of equal IPUs.
    pub tiles: Option<TileDifference>,
}

/// Bytes of each tile before and after.
pub struct TileDifference {
    /// Number of IPUs, and of tiles of each.
    pub ipus: usize,
    /// Tiles of an IPU.
    pub per_ipu: usize,
    /// Where the tiles of an IPU are drawn.
    pub plan: FloorPlan,
    /// Bytes before.
    pub before: Vec<u64>,
    /// Bytes after.
    pub after: Vec<u64>,
    /// After less before.
    pub values: Vec<i64>,
}

impl TileDifference {
    /// `None` where one has no tiles, or not as many.
    fn new(before: Option<&TileMemory>, after: Option<&TileMemory>) -> Option<Self> {
        let (was, is) = before.zip(after)?;
        let (before, after) = (was.must_fit()?.to_vec(), is.must_fit()?.to_vec());
        let is_alike = was.target.ipus == is.target.ipus && was.target.tiles_per_ipu == is.target.tiles_per_ipu;
        if !is_alike || before.len() != after.len() {
            return None;
        }
        let values = before.iter().zip(&after).map(|(&was, &is)| is.cast_signed().saturating_sub(was.cast_signed()));
        Some(Self {
            ipus: is.target.ipus as usize,
            per_ipu: is.target.tiles_per_ipu as usize,
            plan: FloorPlan::new(is, 0),
            values: values.collect(),
            before,
            after,
        })
    }
}

/// Live bytes of both programs on one axis.
pub struct Curves {
    /// The axis.
    pub aligned: Aligned,
    /// Live bytes before.
    pub before: Arc<StackedCurves>,
    /// Live bytes after.
    pub after: Arc<StackedCurves>,
    /// Highest value before, and its step.
    pub peak_before: (u64, u32),
    /// Highest value after, and its step.
    pub peak_after: (u64, u32),
    /// What a step is called.
    pub unit: &'static str,
}

impl Found {
    /// The limit to draw charts to.
    pub fn limit(&self) -> Option<u64> {
        self.space().and_then(|space| space.capacity.after)
    }

    /// The memory space or allocator that is compared; `None` where one of the two does not have it.
    pub fn space(&self) -> Option<&SpaceDiff> {
        self.held.as_ref().or_else(|| space_of_both(&self.pair))
    }

    /// The allocator that is shown.
    pub fn allocator(&self) -> Option<&AllocatorDiff> {
        self.pair.allocators.get(self.allocator?)
    }

    /// What its parts are called.
    pub fn words(&self) -> &'static Words {
        match self.allocator().map(|allocator| allocator.held_by) {
            None => &words::PROGRAM,
            Some("stack") => &words::STACKS,
            Some(_) => &words::OPERATIONS,
        }
    }
}

/// The memory space that both have.
fn space_of_both(pair: &PairDiff) -> Option<&SpaceDiff> {
    pair.spaces.first().filter(|space| space.allocated.difference.is_some())
}

/// A column of the table to sort by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum By {
    /// What became of a row.
    Change,
    /// Its scope.
    Scope,
    /// Its class.
    Class,
    /// Bytes before.
    Before,
    /// Bytes after.
    After,
    /// The difference; by its amount, whatever its sign.
    #[default]
    Difference,
    /// The number of buffers.
    Count,
    /// The shape.
    Shape,
}

/// Which rows are listed, in which order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// Words that a row must contain.
    pub words: String,
    /// What became of a row; `None` for anything.
    pub change: Option<Change>,
    /// The column it is sorted by.
    pub by: By,
    /// Whether the order of the column is reversed.
    pub is_reversed: bool,
}

/// What the chart on the left shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Chart {
    /// The waterfall by class.
    #[default]
    Classes,
    /// The waterfall by scope.
    Scopes,
    /// The treemap by class and scope.
    Map,
    /// The same as an icicle.
    Tree,
    /// Before, further columns and after side by side.
    Columns,
    /// The curves, where there is room for one chart only.
    Curves,
}

/// What is listed below the charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum List {
    /// What differs at the peaks.
    #[default]
    Differences,
    /// Padding by shape.
    Padding,
    /// Findings of the advisor.
    Findings,
    /// Before, further columns and after.
    Columns,
    /// Programs of the folders that are compared.
    Programs,
}

/// State of the view.
#[derive(Default)]
pub struct State {
    key: Option<Key>,
    job: Option<Job<Arc<Found>>>,
    findings: Option<Job<Arc<FindingsDiff>>>,
    /// Which rows the table lists.
    pub wanted: Wanted,
    /// The rows listed, and what they were listed for.
    pub listed: Option<(Wanted, Vec<u32>)>,
    /// The chosen row of the comparison.
    pub chosen: Option<u32>,
    /// The table.
    pub table: TableState,
    /// The picture of the curves.
    pub raster: CachedRaster,
    /// The table of padding.
    pub padding: TableState,
    /// The chart that is shown on the left, or alone where there is room for one.
    pub chart: Chart,
    /// The treemap as it is placed, and the cell under the keyboard cursor.
    pub map: Option<Map>,
    /// See [`Self::map`].
    pub map_at: Option<usize>,
    /// The tree of differences.
    pub tree: Option<Differences>,
    /// Where one looks in it.
    pub icicle: IcicleState,
    /// The table of columns.
    pub columns: TableState,
    /// The table of programs.
    pub programs: TableState,
    /// What is listed.
    pub list: List,
    /// The allocator that is asked for, by its place; `None` for the memory of a program, if there is one.
    pub allocator: Option<usize>,
    /// Whether the field takes the focus in this frame.
    pub focus: bool,
}

impl State {
    /// Chooses a row of what differs, and lists it.
    pub fn choose(&mut self, row: u32) {
        self.chosen = Some(row);
        self.list = List::Differences;
        let place = |rows: &[u32]| rows.iter().position(|listed| *listed == row);
        self.table.reveal = self.listed.as_ref().and_then(|(_, rows)| place(rows));
    }

    /// Starts comparing whenever what is compared changes.
    pub fn update(&mut self, context: &ViewContext<'_>, before: &Before) {
        let document = context.document;
        let capacity = context.shared.capacity.get(&context.shared.color).map(|capacity| capacity.bytes.0);
        let (program, color) = (context.shared.program, context.shared.color);
        let sides = std::iter::once(&before.document).chain(before.beside.iter().map(|side| &side.document));
        let key = (sides.map(|side| side.id()).collect(), document.id(), program, color, capacity, self.allocator);
        if self.key.as_ref() != Some(&key) {
            let had = self.key.as_ref().map_or(1, |key| key.0.len());
            let is_other_allocator = self
                .key
                .as_ref()
                .is_some_and(|was| (&was.0, was.1, was.2, was.3, was.4) == (&key.0, key.1, key.2, key.3, key.4));
            self.key = Some(key);
            self.listed = None;
            self.chosen = None;
            (self.map, self.map_at, self.tree) = (None, None, None);
            if before.beside.is_empty() {
                self.chart = if self.chart == Chart::Columns { Chart::default() } else { self.chart };
                self.list = if self.list == List::Columns { List::default() } else { self.list };
            } else if had <= before.beside.len() {
                (self.chart, self.list) = (Chart::Columns, List::Columns);
            }
            if before.programs.is_empty() && self.list == List::Programs {
                self.list = List::default();
            }
            let (was, is, allocator) = (before.clone(), Arc::clone(document), self.allocator);
            self.job = Some(Job::start(context.work, "comparison", move || {
                let sweep = sweep(&was, &is, program);
                Arc::new(Found {
                    sweep,
                    ..compared((&was.document, &is), program, color, capacity.map(Bytes), allocator)
                })
            }));
            if !is_other_allocator {
                let (was, is) = (Arc::clone(&before.document), Arc::clone(document));
                self.findings = Some(Job::start(context.work, "comparison of findings", move || {
                    let (from, to) = (program_before(&was, &is, program), program);
                    Arc::new(compare_findings(side(&was, from), side(&is, to)))
                }));
            }
        }
    }

    /// What was found; `None` until it is.
    pub fn found(&mut self) -> Option<Arc<Found>> {
        self.job.as_mut()?.poll().cloned()
    }

    /// Whether the comparison failed.
    pub fn has_failed(&self) -> bool {
        self.job.as_ref().is_some_and(Job::has_failed)
    }

    /// Findings gone, new and kept; `None` until they are known.
    pub fn findings(&mut self) -> Option<Arc<FindingsDiff>> {
        self.findings.as_mut()?.poll().cloned()
    }
}

fn side(document: &Document, program: usize) -> Side<'_> {
    Side { profile: &document.profile, analysis: &document.analysis, program }
}

/// The program before that is the same as a program after: by name, else the one that needs the most.
fn program_before(before: &Document, after: &Document, program: usize) -> usize {
    let names = |document: &Document| -> Vec<ProgramName> {
        let programs = document.profile.programs.iter();
        programs.map(|program| ProgramName { group: String::new(), name: program.name.clone() }).collect()
    };
    let found = pair_programs(&names(before), &names(after));
    let pair = found.pairs.iter().find(|pair| pair.1 == program);
    pair.map_or_else(|| before.main().0, |pair| pair.0)
}

fn compared(
    (before, after): (&Document, &Document),
    program: usize,
    color: MemorySpace,
    capacity: Option<Bytes>,
    allocator: Option<usize>,
) -> Found {
    let from = program_before(before, after, program);
    let options = Options { top: 0, space: Some(color.0.to_string()), ..Options::default() };
    let mut pair = compare_memory(side(before, from), side(after, program), &options);
    if let (Some(space), Some(limit)) = (pair.spaces.first_mut(), capacity) {
        space.against(limit);
    }
    let tiles = TileDifference::new(before.profile.tiles.as_ref(), after.profile.tiles.as_ref());
    // Without memory of a program, the first allocator that both have.
    let first = || pair.allocators.iter().position(|held| held.total.difference.is_some());
    let has_own = space_of_both(&pair).is_some() || tiles.is_some();
    let allocator = allocator.or_else(|| if has_own { None } else { first() });
    let held = allocator.and_then(|at| pair.allocators.get(at)).map(AllocatorDiff::as_space);
    let both = before.scene(from, color).zip(after.scene(program, color)).filter(|_| held.is_none());
    let curves = both.map(|(was, is)| Curves {
        aligned: Aligned::new(was, is),
        before: Arc::clone(was.curves(Grouping::Class)),
        after: Arc::clone(is.curves(Grouping::Class)),
        peak_before: (was.space.peak().0, was.space.peak_point()),
        peak_after: (is.space.peak().0, is.space.peak_point()),
        unit: is.map().axis.unit(),
    });
    let groups = held.as_ref().or_else(|| pair.spaces.first()).map_or(&[][..], |space| &space.groups);
    let largest = groups.iter().map(|row| row.difference.unsigned_abs()).max().unwrap_or(0);
    let others = others(before, from, after, program, color);
    Found { number: number::fresh(), pair, allocator, held, curves, largest, others, sweep: None, tiles }
}

/// The same program of every document that is compared.
fn sweep(before: &Before, after: &Document, program: usize) -> Option<Sweep> {
    if before.beside.is_empty() {
        return None;
    }
    let mut sweep = Sweep::default();
    let first = std::iter::once((&before.name, &before.document));
    for (name, document) in first.chain(before.beside.iter().map(|side| (&side.name, &side.document))) {
        sweep.add_program(name, side(document, program_before(document, after, program)));
    }
    sweep.add_program(&before.after, side(after, program));
    Some(sweep)
}

/// Allocated bytes of the memory spaces of both programs other than the one that is compared.
fn others(
    before: &Document,
    from: usize,
    after: &Document,
    program: usize,
    color: MemorySpace,
) -> Vec<(MemorySpace, String, BytesDiff)> {
    let mut found: BTreeMap<MemorySpace, (String, [Option<u64>; 2])> = BTreeMap::new();
    for (side, (document, row)) in [(before, from), (after, program)].into_iter().enumerate() {
        let Some((_, analysis)) = document.program(row) else { continue };
        for space in analysis.spaces.iter().filter(|space| space.color != color) {
            let entry = found.entry(space.color).or_insert_with(|| (space.name.clone(), [None; 2]));
            entry.1[side] = Some(space.xprof.allocated.0);
        }
    }
    let rows = found.into_iter().map(|(color, (name, [was, is]))| (color, name, BytesDiff::new(was, is)));
    rows.filter(|row| row.2.before.unwrap_or(0) > 0 || row.2.after.unwrap_or(0) > 0).collect()
}
