//! Input of the rules about one program: its memory model, the buffers live at the peak, and helpers that fill in a
//! finding's predicted savings.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, OnceLock};

use super::effect::Effect;
use super::finding::{Finding, Severity};
use super::in_the_way::InTheWay;
use super::libraries::Library;
use super::tried::Tried;
use crate::analysis::class::Class;
use crate::analysis::flow::steps::Steps;
use crate::analysis::names::pass::Pass;
use crate::analysis::once::once;
use crate::analysis::packing::Family;
use crate::analysis::what_if::saved_for_backward::{Stack, is_among};
use crate::analysis::what_if::{Base, Depth, Edit, Memory, Prediction, Role, Trial, TryVerdict};
use crate::analysis::{ProgramAnalysis, Scene, SpaceAnalysis, Stop};
use crate::model::{BufferId, Bytes, Device, ElementType, FastSet, Program, ShapeNode, percent, thousands};

/// Reference of most rules, for the compiler of TPUs.
pub const ERROR_1000: &str = "E1000: compile time HBM OOM, https://openxla.org/xla/errors/error_1000";

/// What is saved of the bytes that a finding is about, as a share from and up to which it goes without saying.
const LESS: f64 = 0.85;
const NEARLY_ALL: f64 = 0.9;
const MORE: f64 = 1.015;

/// Fewer than one in so many bytes do not matter.
const NEXT_TO_NOTHING: u64 = 1000;

/// Fewer than one in so many bytes need no word where a sum is explained.
const NOT_TO_SPEAK_OF: u64 = 50;

/// What is allocated is this fraction (1/20) above the bytes that are live at once, or more, where the compiler fills the
/// memory with what it need not compute again.
const FILLED: u64 = 20;

/// Share of allocated bytes below which a saving is not worth a finding.
pub const WORTH: f64 = 0.05;

/// A program's HBM, as the rules see it.
pub struct ProgramContext<'a> {
    /// Row of the program in its profile.
    pub row: usize,
    /// The program.
    pub program: &'a Program,
    /// Its analysis.
    pub analysis: &'a ProgramAnalysis,
    /// The memory space.
    pub space: &'a SpaceAnalysis,
    /// The device.
    pub device: &'a Device,
    /// The what-if model of the space.
    pub memory: Arc<Memory>,
    /// What-if prediction of the unchanged program.
    pub before: Arc<Prediction>,
    /// Temporaries at the peak, largest first.
    pub peak: Vec<AtPeak>,
    /// The largest batch that fits, computed on first use.
    pub(super) largest_batch: OnceLock<Option<i64>>,
    /// What of the model's attention is in the way of other attention, if anything is.
    pub(super) in_the_way: OnceLock<Option<InTheWay>>,
    /// Whether attention probabilities are dropped, computed on first use.
    pub(super) drops_probabilities: OnceLock<bool>,
    /// Whether a batch normalisation is in the program, computed on first use.
    normalises: OnceLock<bool>,
    /// The library that made the program, recognised on first use.
    pub(super) library: OnceLock<Library>,
    /// Changes that were worked out.
    tried: Tried,
    /// Once it says so, changes are not worked out any more.
    stop: Stop<'a>,
}

/// A temporary at the peak.
#[derive(Debug, Clone, Copy)]
pub struct AtPeak {
    /// Row of the families.
    pub family: usize,
    /// The largest of its buffers that is live at the peak.
    pub buffer: BufferId,
    /// Its bytes.
    pub size: u64,
}

impl<'a> ProgramContext<'a> {
    /// Prepares the HBM of a program, with `capacity` in place of the device's if given. Once it is to stop, changes come
    /// to what there is without them, for which no rule searches long.
    #[must_use]
    pub fn new(row: usize, scene: Scene<'a>, capacity: Option<Bytes>, stop: Stop<'a>) -> Self {
        let Scene { program, analysis, space, device, .. } = scene;
        let memory = scene.memory_against(capacity);
        let before = scene.unchanged(&memory);
        let at = before.peak_event;
        // A family is counted from its first to its last buffer; between two of them its memory may be free.
        let mut at_peak: Vec<(usize, BufferId)> =
            space.at_peak.buffers().filter_map(|buffer| Some((memory.families.of(buffer)?, buffer))).collect();
        // Of each, the largest buffer that is live then, the root before others.
        let size = |buffer: BufferId| program.buffers.size_of(buffer);
        at_peak.sort_unstable_by_key(|&(row, buffer)| {
            let is_other = memory.families.list.get(row).is_none_or(|family| family.root != buffer);
            (row, std::cmp::Reverse(size(buffer)), is_other, buffer)
        });
        at_peak.dedup_by_key(|row| row.0);
        let live = |row: usize, family: &Family| {
            if at_peak.is_empty() {
                return (family.first <= at && at <= family.last).then_some(family.root);
            }
            at_peak.binary_search_by_key(&row, |own| own.0).ok().map(|own| at_peak[own].1)
        };
        let mut peak: Vec<AtPeak> = memory
            .families
            .list
            .iter()
            .enumerate()
            .filter(|(_, family)| family.size > 0)
            .filter_map(|(row, family)| Some(AtPeak { family: row, buffer: live(row, family)?, size: family.size }))
            .collect();
        peak.sort_by_key(|row| (std::cmp::Reverse(row.size), row.buffer));
        let (largest_batch, normalises, library) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        let tried = Tried::default();
        Self {
            row,
            program,
            analysis,
            space,
            device,
            memory,
            before,
            peak,
            largest_batch,
            in_the_way: OnceLock::new(),
            drops_probabilities: OnceLock::new(),
            normalises,
            library,
            tried,
            stop,
        }
    }

    /// Allocated bytes.
    #[must_use]
    pub fn allocated(&self) -> u64 {
        self.memory.allocated
    }

    /// Whether the program fits as the compiler has packed it; `None` if the capacity is unknown.
    #[must_use]
    pub fn fits_already(&self) -> Option<bool> {
        self.memory.capacity.map(|_| !self.memory.is_over())
    }

    /// Temporaries at the peak that belong to `families` (ascending), largest first.
    #[must_use]
    pub fn held(&self, families: &[u32]) -> Vec<&AtPeak> {
        self.peak.iter().filter(|held| is_among(families, held.family)).collect()
    }

    /// Whether `bytes` are worth a finding.
    #[must_use]
    pub fn is_worth(&self, bytes: u64) -> bool {
        self.is_share(bytes, WORTH)
    }

    /// Whether `bytes` are at least this share (0 to 1) of allocated bytes.
    #[must_use]
    pub fn is_share(&self, bytes: u64, share: f64) -> bool {
        bytes > 0 && bytes as f64 >= self.allocated() as f64 * share
    }

    /// Whether `bytes` are at least this share (0 to 1) of the available memory.
    #[must_use]
    pub fn is_share_of_capacity(&self, bytes: u64, share: f64) -> bool {
        self.memory.capacity.is_some_and(|capacity| bytes as f64 >= capacity as f64 * share)
    }

    /// Bytes relative to the available memory, in words: `63.5 % of the available memory`.
    #[must_use]
    pub fn of_capacity(&self, bytes: u64) -> String {
        let capacity = self.memory.capacity.unwrap_or(0).max(1);
        let times = bytes / capacity;
        if times >= 10 {
            return format!("{} times the available memory", thousands(times));
        }
        format!("{} of the available memory", percent(bytes, capacity))
    }

    /// Severity by how tight the program is: never critical if it fits, and only a hint if it fits with room to spare.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self.memory.pressure() {
            Some(share) if share > 1.0 => Severity::Critical,
            Some(share) if share > self.memory.full_from() => Severity::Warning,
            _ => Severity::Hint,
        }
    }

    /// A finding about this program. It is at most a warning until [`Self::fill`] attaches a change that helps.
    #[must_use]
    pub fn finding(&self, rule: &'static str) -> Finding {
        Finding {
            program: Some(self.row),
            color: self.space.color,
            severity: self.severity().min(Severity::Warning),
            reference: if self.memory.is_gpu { "" } else { ERROR_1000 },
            ..Finding::new(rule)
        }
    }

    /// A finding that is a way to save rather than a cause; never critical.
    #[must_use]
    pub fn remedy(&self, rule: &'static str) -> Finding {
        Finding { is_remedy: true, ..self.finding(rule) }
    }

    /// What changes come to, worked out once; without its blocks.
    #[must_use]
    pub fn try_out(&self, edits: &[Edit]) -> Arc<Prediction> {
        self.try_to(edits, Depth::Verdict)
    }

    /// As [`Self::try_out`], to another depth.
    #[must_use]
    pub fn try_to(&self, edits: &[Edit], depth: Depth) -> Arc<Prediction> {
        if self.stop.check().is_err() {
            return Arc::clone(&self.before);
        }
        self.tried.prediction(&self.memory, self.program, edits, depth)
    }

    /// As [`Self::try_to`]; `None` where more is live at once than there is memory, which takes no packing to tell.
    #[must_use]
    pub fn try_if_it_can_fit(&self, edits: &[Edit], depth: Depth) -> Option<Arc<Prediction>> {
        self.try_within(edits, depth, Bytes(self.memory.capacity?))
    }

    /// As [`Self::try_to`]; `None` where more than `most` bytes are live at once.
    pub(super) fn try_within(&self, edits: &[Edit], depth: Depth, most: Bytes) -> Option<Arc<Prediction>> {
        self.stop.check().ok()?;
        self.tried.prediction_within(&self.memory, self.program, edits, (depth, most))
    }

    /// Changes applied, where not even the fewest bytes after them are known yet.
    pub(super) fn untried(&self, edits: &[Edit]) -> Option<Trial<'_>> {
        self.stop.check().ok()?;
        self.tried.known_least(edits).is_none().then(|| Trial::new(&self.memory, self.program, edits))
    }

    /// Keeps the fewest bytes after changes that were applied, for [`Self::least`].
    pub(super) fn remember_least(&self, edits: &[Edit], least: Bytes) {
        self.tried.remember(edits, least);
    }

    /// As [`Self::try_to`], of changes that have been applied.
    pub(super) fn try_applied(&self, trial: &Trial<'_>, depth: Depth) -> Arc<Prediction> {
        self.tried.prediction_of(trial, depth)
    }

    /// The fewest bytes that any packer can allocate after some changes.
    #[must_use]
    pub fn least(&self, edits: &[Edit]) -> Bytes {
        if self.stop.check().is_err() {
            return self.before.least;
        }
        self.tried.least(&self.memory, self.program, edits)
    }

    /// Whether the program surely fits with some changes.
    #[must_use]
    pub fn fits_with(&self, edits: &[Edit], depth: Depth) -> bool {
        self.try_if_it_can_fit(edits, depth).is_some_and(|prediction| prediction.verdict == TryVerdict::Fits)
    }

    /// Bytes by which the peak falls; 0 where that cannot be told.
    #[must_use]
    pub fn saved(&self, prediction: &Prediction) -> u64 {
        if prediction.undecided.is_some() && !prediction.is_bound {
            return 0;
        }
        self.before.peak.0.saturating_sub(prediction.peak.0)
    }

    /// Attaches changes to a finding with their predicted effect; returns the bytes saved.
    pub fn fill(&self, finding: &mut Finding, edits: Vec<Edit>) -> u64 {
        let (effect, prediction) = Effect::of(self, edits);
        if prediction.undecided.is_some() && !prediction.is_bound {
            return 0;
        }
        let saved = effect.saves().0;
        // What saves nothing is no change to offer.
        if saved == 0 {
            return 0;
        }
        if !finding.is_remedy {
            finding.severity = self.severity();
        }
        finding.warnings.extend(prediction.warnings.iter().cloned());
        finding.effect = Some(effect);
        saved
    }

    /// As [`Self::fill`], for changes that show only how much there is to gain at most: they are no recipe, and that
    /// the program would fit is not promised.
    pub fn fill_at_most(&self, finding: &mut Finding, edits: Vec<Edit>) -> u64 {
        let saved = self.fill(finding, edits);
        finding.at_most = Some("at most, if all of it goes".to_owned());
        saved
    }

    /// Says what there is to gain at most when some temporaries are not there. No change can be named that does just
    /// this, so nothing is saved for sure; `how` stands behind the bytes: `, if none of the copies is made`.
    pub fn at_stake_without(&self, finding: &mut Finding, families: &[usize], how: &str) {
        if self.stop.check().is_err() {
            return;
        }
        let most = self.memory.without(self.program, families);
        let is_elsewhere = most.peak_event != self.before.peak_event;
        let meant: FastSet<usize> = families.iter().copied().collect();
        let all = self.peak.iter().filter(|t| meant.contains(&t.family)).map(|t| t.size).total();
        // Where the peak stays, it is all of them less, whatever else is counted there.
        let saved = if is_elsewhere { self.saved(&most) } else { self.saved(&most).max(all) };
        finding.at_stake_bytes = finding.at_stake_bytes.or((saved > 0).then_some(Bytes(saved)));
        let is_less = (saved as f64) < all as f64 * NEARLY_ALL;
        let elsewhere = if is_less && is_elsewhere { "; the peak is elsewhere then" } else { "" };
        finding.at_most = Some(match saved {
            0 => how.trim_start_matches([',', ':', ' ']).to_owned(),
            _ => format!("at most {} less{how}{elsewhere}", Bytes(saved).short()),
        });
    }

    /// The peak, which shares refer to.
    #[must_use]
    pub fn at_peak(&self) -> u64 {
        self.space.peak().0.max(1)
    }

    /// Fills a finding with bytes at the peak that no change of this program's own takes away for sure.
    pub fn stake(&self, finding: &mut Finding, bytes: u64) {
        finding.at_stake_bytes = Some(Bytes(bytes));
    }

    /// How many steps the scans have that save most for the backward pass, and what these are; of the scans whose stacks
    /// are `meant`.
    #[must_use]
    pub fn main_scan(&self, meant: &dyn Fn(&Stack) -> bool) -> (i64, Steps) {
        let size = |row: u32| self.memory.families.list.get(row as usize).map_or(0, |family| family.size);
        let mut by_scan: BTreeMap<(i64, Steps), u64> = BTreeMap::new();
        for stack in self.memory.kept.stacks.iter().filter(|stack| meant(stack)) {
            let sum = by_scan.entry((stack.layers, stack.steps)).or_default();
            *sum = sum.saturating_add(size(stack.family));
        }
        by_scan.into_iter().max_by_key(|row| row.1).map(|row| row.0).unwrap_or_default()
    }

    /// Whether all that is known to repeat are steps of loops that are no layers, such as those of a simulation.
    #[must_use]
    pub fn has_steps_alone(&self) -> bool {
        let kept = &self.memory.kept;
        let has_layers = kept.turn.as_ref().is_some_and(|turn| !turn.layers.is_empty());
        !has_layers && !kept.stacks.is_empty() && kept.stacks.iter().all(|stack| !stack.steps.are_layers())
    }

    /// The families that a pass makes.
    pub(super) fn families_of(&self, pass: Pass) -> impl Iterator<Item = usize> {
        let passes = &self.memory.kept.passes;
        (0..self.memory.families.list.len()).filter(move |&row| passes.get(row) == Some(&pass))
    }

    /// Whether a temporary is of the forward pass and kept for the backward pass.
    pub(super) fn is_kept_of_forward(&self, t: &AtPeak) -> bool {
        self.memory.kept.passes.get(t.family) == Some(&Pass::Forward) && self.memory.is_kept(t.family)
    }

    /// The buffer that a temporary's memory is made with, where it is not the one that is live at the peak.
    #[must_use]
    pub(super) fn root(&self, t: &AtPeak) -> BufferId {
        self.memory.families.list.get(t.family).map_or(t.buffer, |family| family.root)
    }

    /// Whether a temporary is made in a loop: it is that of one step.
    #[must_use]
    pub fn is_in_loop(&self, t: &AtPeak) -> bool {
        let made = self.program.buffers.instruction_of(t.buffer);
        made.is_some_and(|made| !self.program.is_in_entry(made))
    }

    /// Framework op name of a temporary.
    #[must_use]
    pub fn name(&self, family: usize) -> &str {
        self.memory.family_name(family)
    }

    /// The array a buffer holds.
    #[must_use]
    pub fn node(&self, buffer: BufferId) -> Option<&ShapeNode> {
        self.program.buffer_node(buffer).filter(|node| node.element_type.is_array())
    }

    /// A buffer in words: `f32[4,512,512] dot.3 (jvp(layer_0)/attn/dot_general)`.
    #[must_use]
    pub fn describe(&self, buffer: BufferId) -> String {
        let shape =
            self.program.buffer_shape(buffer).map(|(shape, node)| shape.short_text_of(node)).unwrap_or_default();
        let name = self.program.buffer_name(buffer);
        let op = self.analysis.op_name(self.program, buffer);
        if op.is_empty() { format!("{shape} `{name}`") } else { format!("{shape} `{op}`") }
    }

    /// What makes a buffer or takes it as it is, in words, if the compiler chooses the layout for that.
    #[must_use]
    pub fn layout_chosen_for(&self, buffer: BufferId) -> Option<&'static str> {
        let softmax = self.analysis.labels(self.program).softmaxes.of(self.program);
        self.analysis.chosen_layouts(self.program).of_buffer(self.program, softmax, buffer)
    }

    /// The decomposition of matrices that makes a buffer or takes it as it is, in words.
    #[must_use]
    pub fn decomposed_by(&self, buffer: BufferId) -> Option<&'static str> {
        self.analysis.chosen_layouts(self.program).decomposed_by(self.program, buffer)
    }

    /// Whether the names of operations show batch normalisation, whose results depend on how the batch is divided.
    #[must_use]
    pub fn normalises_over_the_batch(&self) -> bool {
        let is_one = |family: usize| {
            // With the statistics of earlier batches, nothing is reduced in the forward pass.
            let name = self.name(family).to_ascii_lowercase();
            ["batchnorm", "batch_norm", "_bn/"].iter().any(|word| name.contains(word))
                && ["reduce", "mean", "var"].iter().any(|word| name.contains(word))
                && self.memory.kept.passes.get(family) != Some(&Pass::Backward)
        };
        *once(&self.normalises, || (0..self.memory.families.list.len()).any(is_one))
    }

    /// Whether tokens go to experts, as the paths of arguments and what is sorted or scattered show.
    #[must_use]
    pub fn has_experts(&self) -> bool {
        let is_of_experts = |path: &str| {
            let path = path.to_ascii_lowercase();
            ["expert", "router", "moe"].iter().any(|word| path.contains(word))
        };
        self.memory.sends_rows(self.program) && self.arguments().any(|argument| is_of_experts(argument.1))
    }

    /// Describes the first (largest) temporary; empty if there is none.
    #[must_use]
    pub fn describe_first(&self, held: &[&AtPeak]) -> String {
        held.first().map(|t| self.describe(t.buffer)).unwrap_or_default()
    }

    /// What to add where the changes of a finding to some arguments save more than the `alone` bytes that they take off
    /// the `named` bytes of these, as results of as many elements that have memory of their own shrink too: by how much
    /// both do, and what other values take of that. Empty where there are none.
    #[must_use]
    pub fn counted_twice(&self, finding: &Finding, rows: &[usize], (named, alone): (u64, u64)) -> String {
        let mut wanted: BTreeMap<(ElementType, u64), usize> = BTreeMap::new();
        for node in rows.iter().filter_map(|&row| self.node(self.memory.base[row].buffer)) {
            *wanted.entry((node.element_type, node.element_count())).or_default() += 1;
        }
        let mut is_next_value = |base: &&Base| {
            let node = self.node(base.buffer).filter(|_| matches!(base.role, Role::Result(_)));
            let left = node.and_then(|node| wanted.get_mut(&(node.element_type, node.element_count())));
            left.filter(|left| **left > 0).map(|left| *left -= 1).is_some()
        };
        let results = self.memory.base.iter().filter(|base| is_next_value(base)).map(|base| base.size).total();
        let saved = finding.saves_bytes().filter(|saved| saved.0 > alone && finding.is_told());
        let Some(saved) = saved.filter(|_| self.is_worth(results)) else { return String::new() };
        let after = self.try_out(finding.edits());
        let of_both = self.before.base.0.saturating_sub(after.base.0);
        let others = of_both.saturating_sub(saved.0);
        let others = match others {
            _ if others <= of_both / NOT_TO_SPEAK_OF => String::new(),
            _ => format!(
                "; {} of that are set against what takes their place, such as weights that are gathered",
                Bytes(others).short()
            ),
        };
        format!(
            " The change shrinks the arguments ({}) and results that are not written in their place ({}, which donation saves as well), by {} together{others}.",
            Bytes(named).short(),
            Bytes(results).short(),
            Bytes(of_both).short()
        )
    }

    /// Why the changes of a finding save more or less than the bytes that it is about, in a sentence; empty where they save
    /// about as much.
    #[must_use]
    pub fn unlike(&self, finding: &Finding, bytes: u64) -> String {
        let saved = finding.saves_bytes().map_or(0, |saved| saved.0);
        if saved == 0 {
            return String::new();
        }
        if !finding.is_told() {
            return if saved as f64 >= bytes as f64 * MORE {
                " It may save more than these bytes, as other buffers at the peak become smaller or end earlier with them."
            } else {
                ""
            }
            .to_owned();
        }
        let after = self.try_out(finding.edits());
        // Packed by size, hardly more is allocated than is live.
        let is_filled = self.memory.rematerialised > 0 && after.expected().0 > after.least.0 + after.least.0 / FILLED;
        let is_elsewhere = after.peak_event != self.before.peak_event;
        let share = saved as f64 / bytes.max(1) as f64;
        match share {
            ..LESS if is_filled => {
                " It saves less than these bytes, as with room the compiler no longer recomputes what it recomputes now."
            }
            ..LESS if is_elsewhere && self.memory.rematerialised > 0 && after.verdict != TryVerdict::Over => {
                " It saves less than these bytes: the peak is elsewhere then, or with room the compiler no longer recomputes what it recomputes now."
            }
            ..LESS if is_elsewhere => " It saves less than these bytes, as the peak is elsewhere then.",
            MORE.. => " It saves more than these bytes: other buffers at the peak become smaller or end earlier with them.",
            _ => "",
        }
        .to_owned()
    }

    /// The shortest names that cover the given arguments but none of the others that `is_other` accepts.
    #[must_use]
    pub fn names_of(&self, rows: &[usize], is_other: impl Fn(usize) -> bool) -> Vec<String> {
        let rows: HashSet<usize> = rows.iter().copied().collect();
        let paths = |accept: &dyn Fn(usize) -> bool| -> Vec<&str> {
            self.arguments().filter(|argument| accept(argument.0)).map(|argument| argument.1).collect()
        };
        let meant = paths(&|row| rows.contains(&row));
        short_names(&meant, &paths(&|row| !rows.contains(&row) && is_other(row)))
    }

    /// As [`Self::names_of`], of arguments in 32-bit floats whose type changes: what is of another type beside them keeps it,
    /// and next to nothing may go with them.
    #[must_use]
    pub fn names_of_wide(&self, rows: &[usize]) -> Vec<String> {
        let is_wide =
            |row: usize| self.node(self.memory.base[row].buffer).is_some_and(|node| node.element_type.is_wide_float());
        let bytes = rows.iter().map(|&row| self.memory.base[row].size).total();
        self.names_of(rows, |row| is_wide(row) && self.counts_beside(row, bytes))
    }

    /// Whether an argument counts beside others of so many bytes: what is next to nothing may go by their name.
    #[must_use]
    pub fn counts_beside(&self, row: usize, bytes: u64) -> bool {
        self.memory.base[row].size.saturating_mul(NEXT_TO_NOTHING) >= bytes
    }

    /// Bytes of the weights that are 32-bit floats, and of all.
    #[must_use]
    pub fn wide_of_weights(&self) -> (u64, u64) {
        let classes = self.analysis.classes(self.program);
        let (mut wide, mut all) = (0u64, 0u64);
        for base in self.memory.base.iter().filter(|base| classes.of(base.buffer) == Class::Weight) {
            all = all.saturating_add(base.size);
            if self.node(base.buffer).is_some_and(|node| node.element_type.is_wide_float()) {
                wide = wide.saturating_add(base.size);
            }
        }
        (wide, all)
    }

    /// Arguments that have a path and a number: (row of the base, path, number, whether donated).
    pub fn arguments(&self) -> impl Iterator<Item = (usize, &str, i64, bool)> + '_ {
        self.memory.base.iter().enumerate().filter_map(|(i, base)| match &base.role {
            Role::Argument { number, path, is_donated } => Some((i, path.as_str(), *number, *is_donated)),
            _ => None,
        })
    }

    /// Bytes of the arguments by class.
    #[must_use]
    pub fn argument_bytes(&self) -> BTreeMap<Class, u64> {
        let classes = self.analysis.classes(self.program);
        let mut sums = BTreeMap::new();
        for (row, ..) in self.arguments() {
            let base = &self.memory.base[row];
            let sum: &mut u64 = sums.entry(classes.of(base.buffer)).or_default();
            *sum = sum.saturating_add(base.size);
        }
        sums
    }

    /// Whether an argument holds a batch.
    #[must_use]
    pub fn is_data(&self, row: usize) -> bool {
        self.memory.is_data(row)
    }

    /// File numbers of the largest of some buffers, as edits refer to them.
    #[must_use]
    pub fn drop_all(&self, buffers: &[BufferId]) -> Vec<Edit> {
        buffers.iter().map(|b| Edit::Drop(self.program.buffers.number[b.index()])).collect()
    }
}

/// Saturating sums: sizes come from files that may be malicious.
pub trait Total: Iterator<Item = u64> + Sized {
    /// The sum, at most `u64::MAX`.
    fn total(self) -> u64 {
        self.fold(0, u64::saturating_add)
    }
}

impl<I: Iterator<Item = u64>> Total for I {}

/// The shortest names that cover paths: their first components (`params`, `opt_state`), or the paths themselves where
/// others with the same first word are not meant.
#[must_use]
pub fn short_names<'a>(meant: &[&'a str], others: &[&'a str]) -> Vec<String> {
    let mut others = others.to_vec();
    others.sort_unstable();
    let is_start_of_another = |start: &str| {
        let at = others.partition_point(|&other| other < start);
        others.get(at).is_some_and(|other| other.starts_with(start))
    };
    let mut known = HashSet::new();
    let mut names: Vec<String> = Vec::new();
    for path in meant.iter().filter(|path| !path.is_empty()) {
        // Cut points: the whole path, and before each bracket, shortest first.
        let cuts = path.char_indices().filter(|(_, c)| *c == '[').map(|(i, _)| i).chain([path.len()]);
        let name = cuts.map(|cut| &path[..cut]).find(|start| !is_start_of_another(start)).unwrap_or(path);
        if known.insert(name) {
            names.push(name.to_owned());
        }
    }
    names
}

/// A count with its noun: `1 temporary`, `3 temporaries`.
#[must_use]
pub fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// The first `most` names in backquotes, and how many more there are.
#[must_use]
pub fn listed(names: &[String], most: usize) -> String {
    let shown = names.iter().take(most).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    if names.len() > most { format!("{shown} and {} more", names.len() - most) } else { shown }
}

/// `a`, `a and b`, `a, b and c`.
#[must_use]
pub fn in_a_row(mut words: Vec<String>) -> String {
    match words.pop() {
        Some(last) if words.is_empty() => last,
        Some(last) => format!("{} and {last}", words.join(", ")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_named_as_shortly_as_can_be() {
        let meant = ["params['a']", "params['b']", "opt_state[0]['a']"];
        assert_eq!(short_names(&meant, &["x", "opt_state[1]"]), ["params", "opt_state[0]"]);
        assert_eq!(short_names(&["x"], &["xs"]), ["x"]);
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()], 2), "`a`, `b` and 1 more");
    }
}
