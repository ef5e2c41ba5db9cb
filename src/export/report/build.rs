//! Fills the report from the profiles and their analysis.

use std::sync::Arc;

use super::buffer::{buffer_report, standing};
use super::options::Options;
use super::requested::Requested;
use super::schema::{
    CategoryReport, ClassReport, DeviceReport, PeakReport, ProfileReport, ProgramReport, Report, SCHEMA, Source,
    SpaceReport,
};
use super::{findings, runtime, what_if};
use crate::advisor::advise;
use crate::analysis::class::{Certainty, Class};
use crate::analysis::live_at::unwritten;
use crate::analysis::{PeakContents, ProfileAnalysis, ProgramAnalysis, ProgramParts, Scene, Verdict};
use crate::model::{BufferId, Bytes, Category, InstructionId, MemorySpace, Note, Profile, Program, SourceInfo};

/// Builds a report profile by profile, so that only one needs to be in memory at a time.
#[derive(Debug)]
pub struct Builder<'a> {
    options: &'a Options,
    report: Report,
    failed: Vec<Source>,
    requested: Requested,
}

impl<'a> Builder<'a> {
    /// An empty report.
    #[must_use]
    pub fn new(options: &'a Options) -> Self {
        let report = Report { schema: SCHEMA, sources: Vec::new(), profiles: Vec::new() };
        Self { options, report, failed: Vec::new(), requested: Requested::default() }
    }

    /// Adds a profile. Programs not decoded yet are decoded one at a time.
    pub fn profile(&mut self, profile: &Profile, analysis: &ProfileAnalysis) {
        for info in &profile.sources {
            let source = source(info);
            // Programs of one trace have the same file as their source.
            if !self.report.sources.iter().any(|known| known.path == source.path && known.error == source.error) {
                self.report.sources.push(source);
            }
        }
        let mut built = profile_report(profile, analysis, self.options);
        for (row, program) in profile.programs.iter().enumerate() {
            let is_wanted = is_wanted(&program.name, program.id.as_deref(), self.options);
            self.requested.program(&program.name, is_wanted);
            if is_wanted {
                analysis.scenes(profile, row).for_each(|scene| self.requested.space(scene, self.options));
            }
        }
        for module in &profile.modules {
            let is_wanted = is_wanted(&module.name, module.id.as_deref(), self.options);
            self.requested.program(&module.name, is_wanted);
            if !is_wanted {
                continue;
            }
            match module.source.load(&Arc::default()) {
                Ok((program, notes)) => {
                    let analysis = ProgramAnalysis::new(&program, &profile.device);
                    let parts = ProgramParts::new(&analysis);
                    let scenes = || parts.scenes(&program, &analysis, &profile.device);
                    scenes().for_each(|scene| self.requested.space(scene, self.options));
                    built.programs.push(program_report(&program, scenes(), self.options));
                    built.notes.extend(notes.iter().map(|note| format!("{}: {note}", module.name)));
                }
                Err(error) => self.failed.push(Source {
                    path: format!(
                        "{}#{}",
                        profile.sources.first().map_or("", |source| source.path.as_str()),
                        module.name
                    ),
                    format: "XLA HLO proto".to_owned(),
                    bytes: module.bytes,
                    notes: Vec::new(),
                    error: Some(error),
                }),
            }
        }
        built.programs.iter().for_each(|program| self.requested.shown(program));
        self.report.profiles.push(built);
    }

    /// Adds a source that could not be read.
    pub fn failed(&mut self, info: &SourceInfo) {
        self.failed.push(source(info));
    }

    /// Programs, memory spaces and steps that the options name and nothing read has, in sentences.
    #[must_use]
    pub fn unmet(&self) -> Vec<String> {
        if self.report.profiles.is_empty() { Vec::new() } else { self.requested.unmet(self.options) }
    }

    /// The report, and whether everything could be read.
    #[must_use]
    pub fn finish(mut self) -> (Report, bool) {
        let whole = self.failed.is_empty() && self.report.sources.iter().all(|source| source.error.is_none());
        self.report.sources.append(&mut self.failed);
        (self.report, whole)
    }
}

/// Whether a program was requested: by name, or as XProf's `name(id)`.
fn is_wanted(name: &str, id: Option<&str>, options: &Options) -> bool {
    options.program.as_ref().is_none_or(|wanted| {
        wanted == name || id.is_some_and(|id| wanted.strip_prefix(name) == Some(format!("({id})").as_str()))
    })
}

fn source(info: &SourceInfo) -> Source {
    Source {
        path: info.path.clone(),
        format: info.format.clone(),
        bytes: info.bytes,
        notes: info.notes.clone(),
        error: info.error.clone(),
    }
}

fn profile_report(profile: &Profile, analysis: &ProfileAnalysis, options: &Options) -> ProfileReport {
    let device = &profile.device;
    let programs = || {
        profile
            .programs
            .iter()
            .enumerate()
            .filter(|(_, program)| is_wanted(&program.name, program.id.as_deref(), options))
            .map(|(row, program)| program_report(program, analysis.scenes(profile, row), options))
            .collect()
    };
    // Both halves need these, and would both work them out.
    for scene in (0..profile.programs.len()).filter_map(|row| analysis.scene(profile, row, MemorySpace::HBM)) {
        let memory = scene.memory();
        rayon::join(|| scene.unchanged(memory), || scene.map());
    }
    let (advice, programs) = rayon::join(|| advise(profile, analysis), programs);
    ProfileReport {
        name: profile.name.clone(),
        device: DeviceReport {
            name: device.name.clone(),
            kind: device.kind.map(crate::model::DeviceKind::name),
            evidence: device.evidence.clone(),
            chips_per_host: device.topology.map(|topology| topology.chips_per_host),
            hosts: device.topology.map(|topology| topology.hosts),
        },
        programs,
        runtime: profile
            .runtime
            .iter()
            .zip(&analysis.runtime)
            .map(|(trace, allocator)| runtime::allocator(trace, allocator, options.rows()))
            .collect(),
        caching_allocators: profile
            .caching
            .iter()
            .flat_map(|snapshot| {
                analysis.caching.iter().map(|device| super::caching::report(snapshot, device, options))
            })
            .collect(),
        live: profile
            .live
            .as_ref()
            .zip(analysis.live.as_ref())
            .map(|(set, live)| runtime::snapshot(set, live, options.rows())),
        tiles: profile.tiles.as_ref().zip(analysis.tiles.as_ref()).map(|(memory, tiles)| {
            super::tiles::report(memory, tiles, if options.top == 0 { usize::MAX } else { options.top })
        }),
        failures: profile.failures.iter().map(|f| super::failure::report(f, profile, options.top)).collect(),
        findings: findings::findings(profile, &advice, if options.top == 0 { usize::MAX } else { options.top }),
        plans: findings::plans(profile, &advice),
        batches: findings::batches(profile, &advice),
        partly_read: Note::of_missing(&profile.notes).map(ToString::to_string),
        notes: profile.notes.iter().map(ToString::to_string).chain(analysis.notes.iter().cloned()).collect(),
    }
}

fn program_report<'a>(program: &Program, scenes: impl Iterator<Item = Scene<'a>>, options: &Options) -> ProgramReport {
    let is_wanted = |scene: &Scene<'_>| {
        options.space.as_ref().is_none_or(|text| scene.space.color.is_named(text, scene.device.kind))
    };
    ProgramReport {
        name: program.name.clone(),
        id: program.id.clone(),
        devices: program.knows_devices().then(|| program.devices()),
        has_buffer_assignment: program.has_buffer_assignment,
        spaces: scenes.filter(is_wanted).map(|scene| space_report(scene, options)).collect(),
        instructions: super::instruction::reports(program, options),
    }
}

fn space_report(scene: Scene<'_>, options: &Options) -> SpaceReport {
    let Scene { program, analysis, space, .. } = scene;
    let (verdict, over_by_bytes) = match space.verdict() {
        Verdict::Fits { .. } => ("fits", Some(0)),
        Verdict::Over { by } => ("over", Some(by.0)),
        Verdict::Unknown => ("unknown", None),
    };
    let top = options.rows();
    let row = |&buffer: &BufferId| buffer_report(scene, buffer);
    let xprof = &space.xprof;
    let at_xprof_peak = space.at_xprof_peak(program, &analysis.traces);
    let occupancy = space.occupancy.as_ref();
    let instruction = occupancy.and_then(|occupancy| {
        let live = analysis.live.as_ref()?;
        let row = *live.sequence().get(occupancy.reserved_peak_point as usize)?;
        Some(program.text.instruction_name(InstructionId(row)))
    });
    let (outcome, what_if_sets) = what_if::what_if(scene, options);
    let unpredicted = outcome.as_ref().and_then(|outcome| outcome.as_ref().err().cloned());
    let mut notes = xprof.inconsistencies.clone();
    notes.extend(space.peak_difference(program, analysis.live.as_ref()).map(|note| {
        let differs = xprof.peak_is_known && occupancy.is_some_and(|occupancy| occupancy.reserved_peak != xprof.peak);
        // The two are next to each other there under names that do not tell them apart.
        let json = "; in JSON, peak_bytes is XProf's and peak.bytes the one said here";
        if differs { format!("{note}{json}") } else { note }
    }));
    SpaceReport {
        color: space.color.0,
        name: space.name.clone(),
        capacity_bytes: space.capacity.as_ref().map(|c| c.bytes.0),
        capacity_evidence: space.capacity.as_ref().map(|c| c.evidence.clone()),
        verdict,
        over_by_bytes,
        allocated_bytes: xprof.allocated.0,
        always_live_bytes: xprof.always_live.0,
        peak_bytes: xprof.peak_is_known.then_some(xprof.peak.0),
        peak_event: xprof.peak_is_known.then_some(xprof.peak_event),
        xprof_peak_unpadded_bytes: xprof.peak_is_known.then_some(xprof.peak_unpadded.0),
        padding_at_peak_bytes: space.peak_is_known().then_some(at_xprof_peak.padding.0),
        time_count: analysis.live.as_ref().map(crate::analysis::live_range::LiveRanges::points),
        reserved_peak_bytes: occupancy.map(|o| o.reserved_peak.0),
        reserved_peak_time: occupancy.map(|o| o.reserved_peak_point),
        reserved_peak_instruction: instruction,
        content_peak_bytes: occupancy.map(|o| o.content_peak.0),
        fragmentation_bytes: (space.peak_is_known() && !program.is_listing).then(|| space.xprof_fragmentation().0),
        parameter_bytes: xprof.parameters.0,
        output_bytes: xprof.live_out.0,
        event_count: space.event_count(),
        buffer_count: space.buffers.len(),
        buffers_without_lifetime: space.without_lifetime,
        notes,
        peak: peak_report(scene, top),
        at_peak: at_xprof_peak.buffers().take(top).map(|buffer| row(&buffer)).collect(),
        at_peak_count: at_xprof_peak.len(),
        by_category: by_category(&at_xprof_peak),
        by_class: by_class(scene, &at_xprof_peak),
        padding_by_shape: super::padding::padding(scene, top),
        packing: what_if::packing(scene),
        what_if: outcome.and_then(Result::ok),
        what_if_names_nothing: unpredicted.as_ref().is_some_and(|no| no.names_nothing),
        what_if_unpredicted: unpredicted.as_ref().map(|no| no.sentence.clone()),
        what_if_undecided: unpredicted.map(|no| no.why),
        what_if_sets,
        other_chips: what_if::other_chips(space),
        range: options.range.and_then(|range| super::range::report(scene, range)),
        trees: super::tree::reports(scene, options),
        curve: options.curve.then(|| {
            xprof.curve.iter().enumerate().map(|(event, &(bytes, unpadded))| (event, bytes, unpadded)).collect()
        }),
        picture: super::picture::picture(scene, options),
        buffers: options.buffers.then(|| {
            let mut buffers = space.buffers.clone();
            buffers.sort_by_key(|b| program.buffers.number[b.index()]);
            buffers.iter().map(row).collect()
        }),
    }
}

/// The peak that people read, and what stands at it.
fn peak_report(scene: Scene<'_>, top: usize) -> PeakReport {
    let Scene { program, space, .. } = scene;
    let at_peak = &space.at_peak;
    let known = space.peak_is_known();
    let peak = space.occupancy.as_ref().map(|occupancy| occupancy.reserved_peak_point);
    PeakReport {
        bytes: space.known_peak().map(|peak| peak.0),
        step: peak,
        padding_bytes: known.then_some(at_peak.padding.0),
        fragmentation_bytes: (known && !program.is_listing).then(|| space.fragmentation().0),
        unwritten_bytes: peak.map(|step| unwritten(&scene.live_at(step), step).0),
        unlisted_bytes: at_peak.unlisted.0,
        buffers: at_peak.rows.iter().take(top).map(|row| standing(scene, *row)).collect(),
        buffer_count: at_peak.len(),
        by_category: by_category(at_peak),
        by_class: by_class(scene, at_peak),
        is_listing: program.is_listing,
    }
}

/// Bytes of some rows by category.
fn by_category(rows: &PeakContents) -> Vec<CategoryReport> {
    let of = |&(category, bytes, buffers): &(Category, Bytes, usize)| CategoryReport {
        category: category.name(),
        bytes: bytes.0,
        buffers,
    };
    rows.by_category.iter().map(of).collect()
}

/// Bytes of some rows by class.
fn by_class(scene: Scene<'_>, rows: &PeakContents) -> Vec<ClassReport> {
    let classes = scene.analysis.classes(scene.program);
    let is_guess = |row: &(BufferId, Bytes)| classes.reason(row.0).certainty() == Certainty::Guess;
    let guesses = classes.sums(rows.rows.iter().copied().filter(is_guess));
    let sums = classes.sums(rows.rows.iter().copied());
    let of = |(class, bytes, buffers): (Class, Bytes, usize)| ClassReport {
        class: class.name(),
        bytes: bytes.0,
        buffers,
        guess_bytes: guesses.iter().find(|row| row.0 == class).map_or(0, |row| row.1.0),
    };
    sums.into_iter().map(of).collect()
}
