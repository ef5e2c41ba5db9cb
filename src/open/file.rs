//! Opens one file together with the files beside it that belong to the same module.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::cross_check::join_report;
use crate::decode::{self, Context, DECODERS, DecodeError, Reporter, poplar};
use crate::model::{
    BufferId, Device, DeviceKind, InstructionId, LiveRangeTable, NO_ROW, Note, NoteLevel, Profile, Program,
    ReportedRanges, SourceInfo,
};
use crate::source::{DumpName, Input, Member, Progress, siblings_of};

/// Companions larger than this are not read for their evidence.
const MAX_COMPANION: u64 = 256 << 20;

/// Opens a file.
///
/// # Errors
/// When nothing could be read from it.
pub fn open_path(path: &Path, progress: &Progress) -> Result<Profile, DecodeError> {
    // A Poplar report is a folder of files with fixed names, whichever of them is asked for.
    let report = poplar::report_files(path);
    if !report.is_empty() && (path.is_dir() || !is_named_module(path)) {
        return open_poplar_report(path, &report, progress);
    }
    let input = Input::open(path)?;
    let siblings: Vec<Member> = siblings_of(path).into_iter().map(Member::from).collect();
    let mut profile = open_with(&input, &siblings, progress)?;
    let own_name = profile.name.clone();
    profile.name = case_name(path).unwrap_or(own_name);
    Ok(profile)
}

/// Opens an input together with files that belong to it.
///
/// # Errors
/// When nothing could be read from the input.
pub fn open_with(input: &Input, companions: &[Member], progress: &Progress) -> Result<Profile, DecodeError> {
    let mut profile = open_input(input, progress)?;
    for companion in companions {
        progress.check()?;
        join_companion(&mut profile, companion, progress);
    }
    // A report without live ranges of its own takes those of the live-range report.
    if let (Some(table), [program]) = (&profile.live_ranges, profile.programs.as_mut_slice())
        && !program.reported.is_empty()
        && program.reported_ranges.is_none()
        && program.has_buffer_assignment
        && program.reported.iter().all(|space| space.peak.is_none())
    {
        take_ranges(program, table);
    }
    Ok(profile)
}

/// Whether a path has one of XLA's dump names.
fn is_named_module(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).and_then(DumpName::parse).is_some()
}

/// Opens the files of a Poplar report as one profile. The file that was asked for must be readable; of a folder, one
/// of them.
fn open_poplar_report(path: &Path, files: &[PathBuf], progress: &Progress) -> Result<Profile, DecodeError> {
    let mut opened: Option<Profile> = None;
    let mut failed: Vec<SourceInfo> = Vec::new();
    let mut first_error = None;
    for (at, file) in files.iter().enumerate() {
        progress.check()?;
        match Input::open(file).map_err(DecodeError::from).and_then(|input| open_input(&input, progress)) {
            Ok(other) => match &mut opened {
                None => opened = Some(other),
                Some(profile) => poplar::join(profile, other),
            },
            Err(error) if error.is_cancelled() || (at == 0 && !path.is_dir()) => return Err(error),
            Err(error) => {
                failed.push(SourceInfo {
                    path: file.display().to_string(),
                    format: "unknown".to_owned(),
                    bytes: file.metadata().map_or(0, |data| data.len()),
                    notes: Vec::new(),
                    error: Some(error.to_string()),
                });
                first_error.get_or_insert(error);
            }
        }
    }
    let Some(mut profile) = opened else {
        return Err(first_error.unwrap_or_else(|| DecodeError::Empty("an empty folder".to_owned())));
    };
    // A file beside the one asked for that is not Poplar's was never asked for; in a folder it is said.
    if path.is_dir() {
        profile.sources.extend(failed);
    }
    if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let said =
            if path.is_dir() { None } else { folder.filter(|_| matches!(stem, "profile" | "graph" | "execution")) };
        profile.name = said.unwrap_or(if path.is_dir() { name } else { stem }).to_owned();
    }
    poplar::check_cache(&mut profile);
    Ok(profile)
}

/// Puts the rows of a live-range report to the buffers of the same names.
fn take_ranges(program: &mut Program, table: &LiveRangeTable) {
    let rows: HashMap<&str, (u32, u32)> =
        table.rows.iter().map(|(name, start, end)| (name.strip_suffix("{}").unwrap_or(name), (*start, *end))).collect();
    let mut instructions: HashMap<String, u32> = HashMap::new();
    for row in 0..program.instructions.len() {
        let id = InstructionId::from_index(row);
        let name = program.text.instruction_name(id);
        let plain = name.split('{').next().unwrap_or_default().to_owned();
        instructions.entry(plain).or_insert(id.0);
    }
    let ranges = (0..program.buffers.len())
        .map(|row| rows.get(program.buffer_name(BufferId::from_index(row)).as_str()).copied())
        .collect();
    let sequence = table.sequence.iter().map(|name| instructions.get(name).copied().unwrap_or(NO_ROW)).collect();
    program.reported_ranges = Some(ReportedRanges { points: table.max, sequence, ranges });
}

/// Opens an input that stands alone: standard input, dropped bytes.
///
/// # Errors
/// When nothing could be read from it.
pub fn open_input(input: &Input, progress: &Progress) -> Result<Profile, DecodeError> {
    let reporter = Reporter::default();
    let mut profile = decode::decode(input, Context { progress, reporter: &reporter })?;
    let notes = reporter.finish();
    if let Some(source) = profile.sources.first_mut() {
        source.notes.extend(notes.iter().map(ToString::to_string));
    }
    if profile.name.is_empty() {
        profile.name = input.file_name().to_owned();
    }
    profile.notes.extend(notes);
    if let (None, Some(kind)) = (profile.device.kind, kind_by_name(input.file_name())) {
        profile.device.kind = Some(kind);
        profile.device.evidence = Some(format!("from the name of {}", input.file_name()));
    }
    say_what_is_missing(&mut profile, input);
    Ok(profile)
}

/// The kind of device that a dump was compiled for: only XLA's compilers for the CPU and for GPUs say it in the names
/// of the files, a TPU's are plain.
fn kind_by_name(file_name: &str) -> Option<DeviceKind> {
    if file_name.contains(".cpu_after_optimizations") {
        Some(DeviceKind::Cpu)
    } else if file_name.contains("gpu_after_optimizations") {
        Some(DeviceKind::Gpu)
    } else {
        None
    }
}

/// A module without buffer assignment says which file of the same dump has it.
fn say_what_is_missing(profile: &mut Profile, input: &Input) {
    let Some(program) = profile.programs.first() else { return };
    if program.has_buffer_assignment || is_report(program) {
        return;
    }
    let name = input.file_name();
    let better = input.path().map(siblings_of).into_iter().flatten().find(|path| {
        path.file_name().and_then(|n| n.to_str()).and_then(DumpName::parse).is_some_and(|name| name.has_assignment())
    });
    let place = match (better.as_deref().and_then(Path::file_name), DumpName::parse(name)) {
        (Some(better), _) => format!("{} beside it has them", better.to_string_lossy()),
        (None, Some(own)) => format!("{}.after_optimizations.hlo.pb of the same dump would have them", own.stem),
        (None, None) => "the dump's *after_optimizations.hlo.pb would have them".to_owned(),
    };
    let text = format!("This program has no buffer assignment, so there are shapes but no memory; {place}");
    if let Some(source) = profile.sources.first_mut() {
        source.notes.push(text.clone());
    }
    profile.notes.push(Note::new(NoteLevel::Warning, text));
}

/// Adds what a file beside the dump knows. A companion that cannot be read is no error: nobody asked for it.
fn join_companion(profile: &mut Profile, companion: &Member, progress: &Progress) {
    // Programs and JSON of the same module are other views of what is open; only small evidence is joined.
    let name = companion.file_name();
    let is_program = name.trim_end_matches(".gz").trim_end_matches(".zst").ends_with(".hlo.pb");
    if is_program || name.contains(".memory_viewer") || companion.bytes > MAX_COMPANION {
        return;
    }
    let Ok(input) = companion.open() else { return };
    let reporter = Reporter::default();
    let Some(decoder) = DECODERS.iter().find(|decoder| decoder.recognises(&input)) else { return };
    // XLA's own reports on a module are texts too, but hold no messages.
    if decoder.is_fallback() && DumpName::parse(input.file_name()).is_some() {
        return;
    }
    let Ok(other) = decoder.decode(&input, Context { progress, reporter: &reporter }) else { return };
    // What a report says of itself alone does not matter beside the program.
    let mut notes: Vec<String> =
        reporter.finish().iter().filter(|note| note.level > NoteLevel::Info).map(ToString::to_string).collect();
    let mut joined = false;
    if let ([program], [report]) = (profile.programs.as_mut_slice(), other.programs.as_slice())
        && is_report(report)
    {
        joined = true;
        for text in join_report(program, report, name) {
            notes.push(text.clone());
            profile.notes.push(Note::new(NoteLevel::Warning, text));
        }
    }
    if join(profile, other) || joined {
        profile.sources.push(SourceInfo {
            path: input.name().to_owned(),
            format: decoder.format().to_owned(),
            bytes: input.size(),
            notes,
            error: None,
        });
    }
}

/// Whether a program is what a report says of it, not decoded from its own bytes.
fn is_report(program: &Program) -> bool {
    !program.reported.is_empty() || !program.reported_uses.is_empty()
}

/// Adds the messages of a text to the profile of the program that they name.
pub fn join_messages(profile: &mut Profile, text: Profile) {
    profile.sources.extend(text.sources.iter().cloned());
    join(profile, text);
}

/// Joins two profiles of the same thing; returns whether the second knew anything new.
fn join(profile: &mut Profile, mut other: Profile) -> bool {
    let mut joined = false;
    if !other.failures.is_empty() {
        // What the compiler itself printed for this program is better evidence than any table.
        for capacity in std::mem::take(&mut other.device.capacities) {
            profile.device.capacities.retain(|known| known.color != capacity.color);
            profile.device.capacities.push(capacity);
        }
        profile.failures.append(&mut other.failures);
        joined = true;
    }
    joined |= join_device(&mut profile.device, other.device);
    if let (None, Some(table), true) = (&profile.live_ranges, other.live_ranges, !profile.programs.is_empty()) {
        profile.live_ranges = Some(table);
        joined = true;
    }
    joined
}

/// Adds what is not known yet.
pub fn join_device(device: &mut Device, other: Device) -> bool {
    let mut joined = false;
    if device.name.is_none() && other.name.is_some() {
        device.name = other.name;
        device.evidence = other.evidence;
        joined = true;
    }
    if device.kind.is_none() && other.kind.is_some() {
        device.kind = other.kind;
        joined = true;
    }
    for capacity in other.capacities {
        if device.capacity(capacity.color).is_none() {
            device.capacities.push(capacity);
            joined = true;
        }
    }
    joined
}

/// Names of folders that say nothing about what is in them.
const PLAIN_FOLDERS: &[&str] = &["dump", "dumps", "xla_dump", "xla-dump", "hlo", "tmp", "out", "output", "profile"];

/// What a person calls the dump: the name of its folder for one of XLA's long file names, else the file's own.
fn case_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    if DumpName::parse(file).is_none() {
        return Some(file.trim_end_matches(".gz").trim_end_matches(".pb").trim_end_matches(".hlo").to_owned());
    }
    let folder = path.parent()?.file_name()?.to_str()?;
    (!PLAIN_FOLDERS.contains(&folder)).then(|| folder.to_owned())
}
