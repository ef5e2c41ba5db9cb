//! Fills the comparison from two analysed profiles.

use rayon::prelude::*;

use super::allocators::allocators;
use super::schema::{
    BufferDiff, BytesDiff, Diff, FindingDiff, FindingsDiff, GroupDiff, MatchedReport, NumberDiff, PairDiff, PhaseDiff,
    ShapeDiff, SpaceDiff, StepDiff, StepName,
};
use crate::advisor::{Finding, advise};
use crate::analysis::compare::{Change, SpaceComparison, StepOf, WaterfallStep};
use crate::analysis::phases::{Phase, Phases};
use crate::analysis::shape_groups::ShapeGroup;
use crate::analysis::{ProfileAnalysis, Scene};
use crate::export::report::Options;
use crate::model::{BufferId, Bytes, Device, MemorySpace, Profile};

/// What is allocated and holds nothing at the peak, the last step of a waterfall.
pub const UNUSED: &str = "unused at the peak";

/// A profile with its analysis.
#[derive(Debug, Clone, Copy)]
pub struct Side<'a> {
    /// What was decoded.
    pub profile: &'a Profile,
    /// What was worked out.
    pub analysis: &'a ProfileAnalysis,
    /// Which of its programs is compared.
    pub program: usize,
}

impl<'a> Side<'a> {
    fn scenes(self) -> Vec<Scene<'a>> {
        self.analysis.scenes(self.profile, self.program).collect()
    }

    fn name(self) -> &'a str {
        self.profile.programs.get(self.program).map_or(&self.profile.name, |program| &program.name)
    }
}

/// A comparison that grows pair by pair, so that no more than two profiles need to be decoded at a time.
#[derive(Debug)]
pub struct Builder {
    diff: Diff,
}

impl Builder {
    /// Nothing is compared yet; the two sides as they were named.
    #[must_use]
    pub const fn new(before: String, after: String) -> Self {
        let diff = Diff {
            schema: "highwater.diff/1",
            before,
            after,
            pairs: Vec::new(),
            only_before: Vec::new(),
            only_after: Vec::new(),
            unread: Vec::new(),
        };
        Self { diff }
    }

    /// Adds a program of both sides.
    pub fn pair(&mut self, pair: PairDiff) {
        self.diff.pairs.push(pair);
    }

    /// Adds names of programs that only one side has: before, after.
    pub fn unpaired(&mut self, before: Vec<String>, after: Vec<String>) {
        self.diff.only_before.extend(before);
        self.diff.only_after.extend(after);
    }

    /// Adds something that could not be read, with why.
    pub fn unread(&mut self, what: String) {
        self.diff.unread.push(what);
    }

    /// The comparison, the largest change first.
    #[must_use]
    pub fn finish(mut self) -> Diff {
        let change = |pair: &PairDiff| {
            let largest =
                pair.spaces.iter().filter_map(|space| space.allocated.difference).map(i128::unsigned_abs).max();
            std::cmp::Reverse(largest.unwrap_or(0))
        };
        self.diff.pairs.sort_by_key(change);
        self.diff
    }
}

/// Compares a program of two profiles, without the findings of the advisor.
#[must_use]
pub fn compare_memory(before: Side<'_>, after: Side<'_>, options: &Options) -> PairDiff {
    let (scenes_before, scenes_after) = (before.scenes(), after.scenes());
    let mut colors: Vec<_> =
        scenes_before.iter().chain(&scenes_after).map(|scene| (scene.space.color, scene.device.kind)).collect();
    colors.sort_by_key(|color| color.0);
    colors.dedup_by_key(|color| color.0);
    colors.retain(|(color, kind)| options.space.as_ref().is_none_or(|text| color.is_named(text, *kind)));
    let passes = [passes(&scenes_before), passes(&scenes_after)];
    let of = |scenes: &[Scene<'_>], color| scenes.iter().position(|scene| scene.space.color == color);
    let spaces = colors.into_par_iter().map(|(color, _)| {
        let sides = (of(&scenes_before, color), of(&scenes_after, color));
        space(sides.0.map(|row| scenes_before[row]), sides.1.map(|row| scenes_after[row]), &passes, options)
    });
    PairDiff {
        before: before.name().to_owned(),
        after: after.name().to_owned(),
        device_before: device(&before.profile.device),
        device_after: device(&after.profile.device),
        spaces: spaces.collect(),
        numbers: numbers(before, after),
        allocators: allocators(before, after, options),
        findings: FindingsDiff::default(),
    }
}

/// Compares what the advisor finds in two profiles. Takes as long as advising on both does.
#[must_use]
pub fn compare_findings(before: Side<'_>, after: Side<'_>) -> FindingsDiff {
    findings(&advise(before.profile, before.analysis).findings, &advise(after.profile, after.analysis).findings)
}

fn device(device: &Device) -> String {
    let kind = || device.kind.map(|kind| kind.name().to_ascii_uppercase());
    device.name.clone().or_else(kind).unwrap_or_else(|| "device unknown".to_owned())
}

fn space(
    before: Option<Scene<'_>>,
    after: Option<Scene<'_>>,
    passes: &[Vec<Phase>; 2],
    options: &Options,
) -> SpaceDiff {
    let verdict = |scene: Scene<'_>| scene.space.verdict().name();
    let both = |of: &dyn Fn(Scene<'_>) -> Option<u64>| BytesDiff::new(before.and_then(of), after.and_then(of));
    let either = after.or(before);
    let mut diff = SpaceDiff {
        color: either.map_or(0, |scene| scene.space.color.0),
        name: either.map(|scene| scene.space.name.clone()).unwrap_or_default(),
        verdict_before: before.map(verdict),
        verdict_after: after.map(verdict),
        capacity: both(&|scene| scene.space.capacity.as_ref().map(|capacity| capacity.bytes.0)),
        allocated: both(&|scene| Some(scene.space.xprof.allocated.0)),
        peak: both(&|scene| scene.space.known_peak().map(|peak| peak.0)),
        padding_at_peak: both(&|scene| scene.space.peak_is_known().then_some(scene.space.at_peak.padding.0)),
        fragmentation: both(&|scene| scene.space.peak_is_known().then(|| scene.space.fragmentation().0)),
        arguments: both(&|scene| Some(scene.space.xprof.parameters.0)),
        outputs: both(&|scene| Some(scene.space.xprof.live_out.0)),
        ..SpaceDiff::default()
    };
    if let (Some(before), Some(after)) = (before, after) {
        compare(&mut diff, before, after, options);
        diff.phases = phases(before, after, passes);
    }
    diff
}

fn compare(diff: &mut SpaceDiff, before: Scene<'_>, after: Scene<'_>, options: &Options) {
    let found = SpaceComparison::new(before, after);
    let matching = &found.matching;
    diff.matched = Some(MatchedReport {
        bytes_before: matching.bytes[0],
        bytes_after: matching.bytes[1],
        matched_before: matching.matched_bytes[0],
        matched_after: matching.matched_bytes[1],
        guessed_after: matching.guessed_bytes[1],
        buffers_only_before: matching.unmatched[0],
        buffers_only_after: matching.unmatched[1],
    });
    let step = |step: &WaterfallStep, unused: StepName| StepDiff {
        name: match &step.of {
            StepOf::Class(class) => StepName::Class(class.name()),
            StepOf::Scope(scope) => StepName::Scope(scope.clone()),
            StepOf::Unused => unused,
        },
        before: step.before,
        after: step.after,
        difference: step.difference(),
        appeared: step.appeared,
        gone: step.gone,
        resized: step.resized,
        came: step.came,
        left: step.left,
    };
    diff.waterfall = found.waterfall.iter().map(|of| step(of, StepName::Class(UNUSED))).collect();
    diff.waterfall_by_scope =
        found.waterfall_by_scope.iter().map(|of| step(of, StepName::Scope(UNUSED.to_owned()))).collect();
    let differs = found.groups.iter().filter(|row| row.change() != Change::Equal);
    diff.group_count = differs.clone().count();
    diff.groups_equal = found.groups.len() - diff.group_count;
    diff.groups = differs
        .take(options.rows())
        .map(|row| GroupDiff {
            change: row.change().name(),
            change_words: row.change().at_peak(),
            class: row.class.name().into(),
            scope: row.scope.clone(),
            before: row.before,
            after: row.after,
            difference: row.difference(),
            count_before: row.count_before,
            count_after: row.count_after,
            shape_before: row.shape_before.clone(),
            shape_after: row.shape_after.clone(),
            is_mixed: row.is_mixed,
            largest_before: row.largest_before,
            largest_after: row.largest_after,
        })
        .collect();
    diff.buffer_count = found.buffers.len();
    let label = |scene: Scene<'_>, buffer: BufferId| scene.analysis.op_name(scene.program, buffer);
    diff.buffers = found
        .buffers
        .iter()
        .take(options.rows())
        .map(|row| BufferDiff {
            before: row.before.map(|buffer| before.program.buffer_name(buffer)),
            after: row.after.map(|buffer| after.program.buffer_name(buffer)),
            label: match (row.before, row.after) {
                (_, Some(buffer)) => label(after, buffer),
                (Some(buffer), None) => label(before, buffer),
                (None, None) => String::new(),
            },
            before_bytes: row.before_bytes.0,
            after_bytes: row.after_bytes.0,
            difference: row.difference(),
        })
        .collect();
    diff.padding_by_shape = padding(before, after);
    diff.padding_by_shape.truncate(options.rows());
}

/// The passes of a program, which are the same for all its memory spaces.
fn passes(scenes: &[Scene<'_>]) -> Vec<Phase> {
    scenes.first().map(|scene| Phases::new(scene.program, scene.analysis).passes).unwrap_or_default()
}

/// The passes that both sides have, with their highest use.
fn phases(before: Scene<'_>, after: Scene<'_>, [passes, there]: &[Vec<Phase>; 2]) -> Vec<PhaseDiff> {
    let peak = |scene: Scene<'_>, (start, end): (u32, u32)| {
        let total = scene.total();
        let rows = total.rows_between(start, end.saturating_sub(1));
        rows.map(|row| total.row(row).1).chain([total.at(start)]).max()
    };
    let find = |name: &str| there.iter().find(|phase| phase.name == name);
    passes
        .iter()
        .filter_map(|phase| {
            let other = find(&phase.name)?;
            let (steps_before, steps_after) = ((phase.start, phase.end), (other.start, other.end));
            let peak = BytesDiff::new(peak(before, steps_before), peak(after, steps_after));
            Some(PhaseDiff { phase: phase.name.clone(), peak, steps_before, steps_after })
        })
        .collect()
}

/// Shapes that pad, of both sides.
fn padding(before: Scene<'_>, after: Scene<'_>) -> Vec<ShapeDiff> {
    let [there, here] = [before.wasting_shapes(), after.wasting_shapes()];
    let is = |group: &ShapeGroup, other: &ShapeGroup| group.shape == other.shape && group.layout == other.layout;
    let row = |was: Option<&ShapeGroup>, now: Option<&ShapeGroup>| {
        let either = now.or(was)?;
        let waste = |group: Option<&ShapeGroup>| group.map_or(0, |group| group.waste.0);
        Some(ShapeDiff {
            shape: either.shape.clone(),
            layout: either.layout.clone(),
            buffers_before: was.map_or(0, |group| group.buffers.len()),
            buffers_after: now.map_or(0, |group| group.buffers.len()),
            waste: BytesDiff::new(Some(waste(was)), Some(waste(now))),
        })
    };
    let kept = here.iter().filter_map(|now| row(there.iter().find(|was| is(was, now)), Some(now)));
    let gone = there.iter().filter(|was| !here.iter().any(|now| is(was, now))).filter_map(|was| row(Some(was), None));
    let mut rows: Vec<ShapeDiff> = kept.chain(gone).filter(|row| row.waste.difference != Some(0)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.waste.difference.unwrap_or(0).unsigned_abs()));
    rows
}

/// Name of the number of bytes that a program needs, as a dump or a message says.
pub const NEEDED: &str = "main memory: needed";

/// The main memory of a side.
fn main_memory(side: Side<'_>) -> Option<Scene<'_>> {
    side.analysis.scene(side.profile, side.program, MemorySpace::HBM)
}

/// What is not a program: tiles, allocators, live arrays, messages.
fn numbers(before: Side<'_>, after: Side<'_>) -> Vec<NumberDiff> {
    let mut rows: Vec<NumberDiff> = Vec::new();
    let mut add = |what: String, is_bytes: bool, before: Option<u64>, after: Option<u64>| {
        if before.is_some() || after.is_some() {
            rows.push(NumberDiff { what, is_bytes, value: BytesDiff::new(before, after) });
        }
    };
    let tiles = [before.analysis.tiles.as_ref(), after.analysis.tiles.as_ref()];
    let [was, is] = tiles;
    let mut tile = |what: &str, of: &dyn Fn(&crate::analysis::tiles::TileAnalysis) -> Option<u64>| {
        add(format!("tiles: {what}"), true, was.and_then(of), is.and_then(of));
    };
    tile("all, without gaps", &|tiles| tiles.total);
    tile("all, with gaps", &|tiles| tiles.total_including_gaps);
    tile("the fullest", &|tiles| tiles.max.map(|max| max.1));
    tile("always live", &|tiles| tiles.always_live);
    tile("peak", &crate::analysis::tiles::TileAnalysis::peak_live);
    if tiles.iter().any(Option::is_some) {
        let over = |tiles: Option<&crate::analysis::tiles::TileAnalysis>| tiles.map(|tiles| tiles.over.len() as u64);
        add("tiles: over their memory".to_owned(), false, over(was), over(is));
    }
    let names = |tiles: Option<&crate::analysis::tiles::TileAnalysis>| -> Vec<(String, u64)> {
        tiles
            .map(|tiles| tiles.categories.iter().map(|row| (row.name.clone(), row.bytes)).collect())
            .unwrap_or_default()
    };
    for (name, [was, is]) in joined(names(was), names(is)) {
        add(format!("tiles: {name}"), true, was, is);
    }
    let peaks = |side: Side<'_>| -> Vec<(String, u64)> {
        side.analysis.runtime.iter().map(|allocator| (allocator.name.clone(), allocator.peak.0)).collect()
    };
    for (name, [was, is]) in joined(peaks(before), peaks(after)) {
        add(format!("allocator {name}: peak"), true, was, is);
    }
    let live = |side: Side<'_>| side.analysis.live.as_ref().map(|live| live.total.0);
    add("live arrays".to_owned(), true, live(before), live(after));
    let failures = |side: Side<'_>| side.profile.failures.len() as u64;
    if failures(before) + failures(after) > 0 {
        add("out-of-memory failures".to_owned(), false, Some(failures(before)), Some(failures(after)));
        let requested = |side: Side<'_>| {
            let failure = side.profile.failures.first();
            failure.and_then(|failure| failure.bytes("requested")).map(|bytes| bytes.0)
        };
        add("first failure: requested".to_owned(), true, requested(before), requested(after));
    }
    // A message has no buffers, but says what its program needs, as a dump does.
    if failures(before) + failures(after) > 0 && [before, after].iter().any(|side| side.profile.programs.is_empty()) {
        let said = |side: Side<'_>, key: &str| side.profile.failures.first().and_then(|failure| failure.bytes(key));
        let needed =
            |side: Side<'_>| said(side, "used").or_else(|| main_memory(side).map(|scene| scene.space.xprof.allocated));
        let limit = |side: Side<'_>| {
            let capacity =
                || main_memory(side).and_then(|scene| scene.space.capacity.as_ref().map(|limit| limit.bytes));
            said(side, "capacity").or_else(capacity)
        };
        let number = |bytes: Option<Bytes>| bytes.map(|bytes| bytes.0);
        add(NEEDED.to_owned(), true, number(needed(before)), number(needed(after)));
        add("main memory: capacity".to_owned(), true, number(limit(before)), number(limit(after)));
    }
    rows
}

/// Values by name, in the order of the first side, then of the second.
fn joined(before: Vec<(String, u64)>, after: Vec<(String, u64)>) -> Vec<(String, [Option<u64>; 2])> {
    let mut rows: Vec<(String, [Option<u64>; 2])> =
        before.into_iter().map(|(name, value)| (name, [Some(value), None])).collect();
    for (name, value) in after {
        match rows.iter_mut().find(|row| row.0 == name) {
            Some(row) => row.1[1] = Some(value),
            None => rows.push((name, [None, Some(value)])),
        }
    }
    rows
}

/// Findings by rule; where a rule has several, in their order.
fn findings(before: &[Finding], after: &[Finding]) -> FindingsDiff {
    let row = |finding: &Finding| FindingDiff {
        rule: finding.rule,
        severity: finding.severity.name(),
        title: finding.title.clone(),
        before: None,
        saves_bytes: finding.saves_bytes().map(|bytes| bytes.0),
    };
    let mut diff = FindingsDiff::default();
    let mut left: Vec<&Finding> = before.iter().collect();
    for finding in after {
        match left.iter().position(|other| other.rule == finding.rule && other.color == finding.color) {
            Some(at) => {
                let other = left.remove(at);
                let before = (other.title != finding.title).then(|| other.title.clone());
                diff.kept.push(FindingDiff { before, ..row(finding) });
            }
            None => diff.new.push(row(finding)),
        }
    }
    diff.gone = left.into_iter().map(row).collect();
    diff
}
