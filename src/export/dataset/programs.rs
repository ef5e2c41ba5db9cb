//! Rows of the table of programs: the totals of every memory space, tile memory and allocator.

use super::chunk::{Cell, word};
use super::origin::Origin;
use super::rows::Rows;
use super::schema::PROGRAMS;
use crate::analysis::names::lookup::is_rematerialised;
use crate::analysis::{ProfileAnalysis, Scene, Verdict};
use crate::model::{Bytes, Clock, DeviceKind, Profile, Program};

/// Totals of a memory space, a tile memory or an allocator.
struct Totals<'a> {
    kind: &'static str,
    space: &'a str,
    verdict: Verdict,
    capacity: Option<u64>,
    allocated: Option<u64>,
    always_live: Option<u64>,
    arguments: Option<u64>,
    results: Option<u64>,
    peak: Option<u64>,
    reserved_peak: Option<u64>,
    content_peak: Option<u64>,
    padding: Option<u64>,
    fragmentation: Option<u64>,
    peak_step: Option<i64>,
    steps: Option<u32>,
    count: usize,
    tiles_over: Option<usize>,
    rematerialised: Option<usize>,
}

pub(super) fn add(profile: &Profile, analysis: &ProfileAnalysis, origin: &Origin, rows: &mut Rows<'_>) {
    for (place, program) in profile.programs.iter().enumerate() {
        let key = origin.key(Some(program));
        let instructions = program.instructions.ids();
        let rematerialised = instructions.filter(|&instruction| is_rematerialised(program, instruction)).count();
        for scene in analysis.scenes(profile, place) {
            let totals = Totals { rematerialised: Some(rematerialised), ..of_space(scene) };
            rows.push(&row(profile, origin, (&key, Some(program)), &totals));
        }
    }
    let key = origin.key(None);
    if let (Some(memory), Some(tiles)) = (&profile.tiles, &analysis.tiles) {
        let totals = Totals {
            kind: "tiles",
            space: "tile",
            verdict: tiles.verdict(),
            capacity: tiles.limit,
            allocated: tiles.max.map(|max| max.1),
            always_live: None,
            arguments: None,
            results: None,
            peak: None,
            reserved_peak: None,
            content_peak: None,
            padding: None,
            fragmentation: None,
            peak_step: tiles.peak.as_ref().map(|peak| i64::from(peak.step)),
            steps: u32::try_from(memory.liveness.steps.len()).ok().filter(|&steps| steps > 0),
            count: memory.tile_count(),
            tiles_over: Some(tiles.over.len()),
            rematerialised: None,
        };
        rows.push(&row(profile, origin, (&key, None), &totals));
    }
    for allocator in &analysis.runtime {
        let has_times = allocator.clock == Clock::Picoseconds;
        let capacity = allocator.capacity.map(|bytes| bytes.0);
        let totals = Totals {
            kind: "allocator",
            space: &allocator.name,
            verdict: Verdict::Unknown,
            capacity,
            allocated: None,
            always_live: None,
            arguments: None,
            results: None,
            peak: Some(allocator.peak.0),
            reserved_peak: None,
            content_peak: None,
            padding: None,
            fragmentation: None,
            peak_step: has_times.then_some(allocator.peak_time_ps),
            steps: None,
            count: allocator.events,
            tiles_over: None,
            rematerialised: None,
        };
        rows.push(&row(profile, origin, (&key, None), &totals));
    }
}

fn of_space(scene: Scene<'_>) -> Totals<'_> {
    let Scene { analysis, space, .. } = scene;
    let xprof = &space.xprof;
    let occupancy = space.occupancy.as_ref();
    let known = space.peak_is_known();
    Totals {
        kind: "program",
        space: &space.name,
        verdict: space.verdict(),
        capacity: space.capacity.as_ref().map(|capacity| capacity.bytes.0),
        allocated: Some(xprof.allocated.0),
        always_live: Some(xprof.always_live.0),
        arguments: Some(xprof.parameters.0),
        results: Some(xprof.live_out.0),
        peak: xprof.peak_is_known.then_some(xprof.peak.0),
        reserved_peak: occupancy.map(|occupancy| occupancy.reserved_peak.0),
        content_peak: occupancy.map(|occupancy| occupancy.content_peak.0),
        padding: known.then_some(space.at_peak.padding.0),
        fragmentation: known.then(|| space.fragmentation().0),
        peak_step: occupancy.map(|occupancy| i64::from(occupancy.reserved_peak_point)),
        steps: analysis.live.as_ref().map(crate::analysis::live_range::LiveRanges::points),
        count: space.buffers.len(),
        tiles_over: None,
        rematerialised: None,
    }
}

fn row<'a>(
    profile: &'a Profile,
    origin: &'a Origin,
    (key, program): (&'a str, Option<&'a Program>),
    totals: &Totals<'a>,
) -> [Cell<'a>; PROGRAMS.len()] {
    let over = match totals.verdict {
        Verdict::Fits { .. } => Some(0),
        Verdict::Over { by: Bytes(by) } => Some(by),
        Verdict::Unknown => None,
    };
    let [key, file, name] = origin.cells(key, program);
    [
        key,
        file,
        name,
        origin.modified_ms.into(),
        word(&profile.name),
        program.and_then(|program| program.id.as_deref()).into(),
        totals.kind.into(),
        word(totals.space),
        profile.device.name.as_deref().into(),
        profile.device.kind.map(DeviceKind::name).into(),
        program.map(|program| program.replicas.max(1)).into(),
        program.map(|program| program.partitions.max(1)).into(),
        program.map(|program| program.instructions.len()).into(),
        totals.verdict.name().into(),
        totals.capacity.into(),
        totals.allocated.into(),
        over.into(),
        totals.always_live.into(),
        totals.arguments.into(),
        totals.results.into(),
        totals.peak.into(),
        totals.reserved_peak.into(),
        totals.content_peak.into(),
        totals.padding.into(),
        totals.fragmentation.into(),
        totals.peak_step.into(),
        totals.steps.into(),
        totals.count.into(),
        totals.tiles_over.into(),
        totals.rematerialised.into(),
        profile.sources.first().map(|source| source.bytes).into(),
    ]
}
