//! Opens one file and joins the files of the same module found next to it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::cross_check::join_report;
use super::torch_message::tells_of_snapshot;
use crate::decode::{self, Context, DECODERS, DecodeError, Reporter, poplar};
use crate::model::{
    BufferId, Capacity, Device, DeviceKind, InstructionId, LiveRangeTable, MemorySpace, NO_ROW, Note, NoteCode,
    NoteLevel, Profile, Program, ReportedRanges, SourceInfo, Stream, percent, thousands,
};
use crate::source::{DumpName, Input, Member, Packing, Progress, siblings_of};

/// Companions with more bytes than this are skipped.
const MAX_COMPANION: u64 = 256 << 20;

/// Opens a file, or the Poplar report it belongs to, and joins its siblings.
///
/// # Errors
/// If the file cannot be read or decoded, or `progress` was cancelled.
pub fn open_path(path: &Path, progress: &Progress) -> Result<Profile, DecodeError> {
    // A Poplar report is a folder of files with fixed names; any of them opens the whole report.
    let report = poplar::report_files(path);
    if !report.is_empty() && (path.is_dir() || !has_dump_name(path)) {
        return open_poplar_report(path, &report, progress);
    }
    let input = Input::open(path)?;
    let siblings: Vec<Member> = siblings_of(path).into_iter().map(Member::from).collect();
    let mut profile = open_with(&input, &siblings, progress)?;
    let own_name = profile.name.clone();
    profile.name = case_name(path).unwrap_or(own_name);
    Ok(profile)
}

/// Opens an input and joins `companions`. A companion that cannot be read is skipped.
///
/// # Errors
/// If the input cannot be read or decoded, or `progress` was cancelled.
pub fn open_with(input: &Input, companions: &[Member], progress: &Progress) -> Result<Profile, DecodeError> {
    let mut profile = open_input(input, progress)?;
    for companion in companions {
        progress.check()?;
        join_companion(&mut profile, companion, progress);
    }
    // A report without live ranges gets them from the live-range report.
    if let (Some(table), [program]) = (&profile.live_ranges, profile.programs.as_mut_slice())
        && !program.reported.is_empty()
        && program.reported_ranges.is_none()
        && program.has_buffer_assignment
        && program.reported.iter().all(|space| space.peak.is_none())
    {
        assign_ranges(program, table);
    }
    Ok(profile)
}

/// Whether a file name follows XLA's naming scheme for dumps.
fn has_dump_name(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).and_then(DumpName::parse).is_some()
}

/// Opens the Poplar report that a path belongs to or, as a folder, is. If `path` is a file, it must be readable; if a
/// folder, at least one file in it.
fn open_poplar_report(path: &Path, files: &[PathBuf], progress: &Progress) -> Result<Profile, DecodeError> {
    let (first, rest) = match files {
        [first, rest @ ..] if !path.is_dir() => (Some(first), rest),
        all => (None, all),
    };
    let first = first.map(|first| open_input(&Input::open(first)?, progress)).transpose()?;
    let members: Vec<Member> = rest.iter().cloned().map(Member::from).collect();
    let (mut profile, failed) = join_poplar_files(first, &members, progress)?;
    // Unreadable siblings of a file the user named are not reported; those in a folder the user named are.
    if path.is_dir() {
        profile.sources.extend(failed);
    }
    if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
        let report_name =
            if path.is_dir() { None } else { folder.filter(|_| matches!(stem, "profile" | "graph" | "execution")) };
        profile.name = report_name.unwrap_or(if path.is_dir() { name } else { stem }).to_owned();
    }
    Ok(profile)
}

/// Joins the files of a Poplar report to what was opened of it already; those that cannot be read are returned.
///
/// # Errors
/// If none can be read, or `progress` was cancelled.
pub fn join_poplar_files(
    mut opened: Option<Profile>,
    files: &[Member],
    progress: &Progress,
) -> Result<(Profile, Vec<SourceInfo>), DecodeError> {
    let mut failed: Vec<SourceInfo> = Vec::new();
    let mut first_error = None;
    for file in files {
        progress.check()?;
        match file.open(progress).map_err(DecodeError::from).and_then(|input| open_input(&input, progress)) {
            Ok(other) => match &mut opened {
                None => opened = Some(other),
                Some(profile) => poplar::join(profile, other),
            },
            Err(error) if error.is_cancelled() => return Err(error),
            Err(error) => {
                failed.push(SourceInfo {
                    path: file.on_disk().map_or_else(|| file.path.clone(), |path| path.display().to_string()),
                    format: "unknown".to_owned(),
                    bytes: file.bytes,
                    notes: Vec::new(),
                    error: Some(error.to_string()),
                    cut_at: None,
                });
                first_error.get_or_insert(error);
            }
        }
    }
    let Some(mut profile) = opened else {
        return Err(first_error.unwrap_or_else(|| DecodeError::Empty("the folder is empty".to_owned())));
    };
    poplar::check_cache(&mut profile);
    Ok((profile, failed))
}

/// Assigns the live ranges of a report to the buffers of the same names.
fn assign_ranges(program: &mut Program, table: &LiveRangeTable) {
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

/// Opens an input without companions, such as standard input or dropped bytes.
///
/// # Errors
/// If it cannot be read or decoded, or `progress` was cancelled.
pub fn open_input(input: &Input, progress: &Progress) -> Result<Profile, DecodeError> {
    let reporter = Reporter::default();
    let decoded = decode::decode(input, Context { progress, reporter: &reporter });
    let mut profile = decoded.map_err(|error| of_compressed(error, input))?;
    let mut notes = reporter.finish();
    place_in_compressed(&mut notes, input);
    if let Some(source) = profile.sources.first_mut() {
        source.notes.extend(notes.iter().map(ToString::to_string));
        if let Some((note, end)) = truncation(&notes) {
            source.cut_at = Some(end);
            let (end, stream) = (thousands(end), note.stream.words());
            source.error = Some(format!("it is cut at byte {end}{stream}: {}", lower_first(&note.text)));
        } else if let Some(note) = notes.iter().find(|note| note.code == NoteCode::Damaged) {
            source.error = Some(format!("it is damaged: {}", lower_first(&note.to_string())));
        }
    }
    if profile.name.is_empty() {
        profile.name = input.file_name().to_owned();
    }
    profile.notes.extend(notes);
    if let (None, Some(kind)) = (profile.device.kind, kind_by_name(input.file_name())) {
        profile.device.kind = Some(kind);
        profile.device.evidence = Some(format!("from the name of {}", input.file_name()));
    }
    say_what_there_is(&mut profile.device);
    note_missing_assignment(&mut profile, input);
    Ok(profile)
}

/// An error in what a compressed input unpacks to: says whether it is cut, and which bytes are counted.
fn of_compressed(error: DecodeError, input: &Input) -> DecodeError {
    if error.is_cancelled() || input.packing() == Packing::None {
        return error;
    }
    // Of a file of which nothing can be unpacked, that is what is wrong.
    if input.head().is_empty()
        && let Err(why) = input.load(&Progress::default())
    {
        return why.into();
    }
    let error = match error {
        DecodeError::Source(error) => return error.into(),
        DecodeError::Damaged { what, offset } => DecodeError::DamagedInside { what, offset },
        other => other,
    };
    match input.cut_at() {
        Some(offset) => DecodeError::Cut { why: error.to_string(), offset },
        None => error,
    }
}

/// Says which bytes are counted in notes on a compressed input, and where it is cut.
fn place_in_compressed(notes: &mut Vec<Note>, input: &Input) {
    if input.packing() == Packing::None {
        return;
    }
    let cut = input.cut_at();
    for note in &mut *notes {
        (note.offset, note.stream) = match cut {
            Some(end) if note.code == NoteCode::Truncated => (Some(end), Stream::Compressed),
            _ => (note.offset, Stream::Unpacked),
        };
    }
    if let Some(end) = cut
        && truncation(notes).is_none()
    {
        let text = "The file ends inside its compressed data; what comes before the end is shown";
        notes.push(Note {
            code: NoteCode::Truncated,
            offset: Some(end),
            stream: Stream::Compressed,
            ..Note::new(NoteLevel::Warning, text)
        });
    }
}

/// The first note that says where a file is cut.
fn truncation(notes: &[Note]) -> Option<(&Note, u64)> {
    notes.iter().filter(|note| note.code == NoteCode::Truncated).find_map(|note| Some((note, note.offset?)))
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_lowercase().chain(chars).collect()).unwrap_or_default()
}

/// The kind of device a dump was compiled for, from its file name. XLA marks CPU and GPU dumps; TPU dumps are unmarked.
fn kind_by_name(file_name: &str) -> Option<DeviceKind> {
    if file_name.contains(".cpu_after_optimizations") {
        Some(DeviceKind::Cpu)
    } else if file_name.contains("gpu_after_optimizations") {
        Some(DeviceKind::Gpu)
    } else {
        None
    }
}

/// Adds a note to a module without buffer assignment that names the dump file that has one.
fn note_missing_assignment(profile: &mut Profile, input: &Input) {
    let Some(program) = profile.programs.first() else { return };
    if program.has_buffer_assignment || is_report(program) {
        return;
    }
    let name = input.file_name();
    if truncation(&profile.notes).is_some() {
        let text =
            "The buffer assignment comes after the cut, so memory use is not known; copy or write the file again";
        profile.notes.push(Note::new(NoteLevel::Warning, text));
        return;
    }
    let better = input.path().map(siblings_of).into_iter().flatten().find(|path| {
        path.file_name().and_then(|n| n.to_str()).and_then(DumpName::parse).is_some_and(|name| name.has_assignment())
    });
    let remedy = match (better.as_deref().and_then(Path::file_name), DumpName::parse(name)) {
        (Some(better), _) => format!("open {} next to it instead", better.to_string_lossy()),
        (None, Some(own)) if own.has_assignment() => {
            "files of this name have one, so it may have been cut; write it again".to_owned()
        }
        (None, Some(own)) => format!("open {}.after_optimizations.hlo.pb of the same dump instead", own.stem),
        (None, None) => "open the dump's *after_optimizations.hlo.pb instead".to_owned(),
    };
    let text = format!("This program has no buffer assignment, so its memory use is not known; {remedy}");
    if let Some(source) = profile.sources.first_mut() {
        source.notes.push(text.clone());
    }
    profile.notes.push(Note::new(NoteLevel::Warning, text));
}

/// Joins a file found next to the dump. The user did not name it, so failing to read it is not an error.
fn join_companion(profile: &mut Profile, companion: &Member, progress: &Progress) {
    // HLO protos and Memory Viewer JSON of the same module would only repeat the open program.
    let name = companion.file_name();
    let is_program = name.trim_end_matches(".gz").trim_end_matches(".zst").ends_with(".hlo.pb");
    if is_program || name.contains(".memory_viewer") || companion.bytes > MAX_COMPANION {
        return;
    }
    let Ok(input) = companion.open(&progress.aside()) else { return };
    let reporter = Reporter::default();
    let Some(decoder) = DECODERS.iter().find(|decoder| decoder.recognises(&input)) else { return };
    // XLA's other text reports on a module contain no out-of-memory messages.
    if decoder.is_fallback() && DumpName::parse(input.file_name()).is_some() {
        return;
    }
    let Ok(other) = decoder.decode(&input, Context { progress, reporter: &reporter }) else { return };
    if profile.caching.is_some() && !tells_of_snapshot(profile, &other) {
        return;
    }
    // Informational notes about the report itself are irrelevant next to the program.
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
            cut_at: None,
        });
    }
}

/// Whether a program was read from another tool's report rather than from an HLO proto.
fn is_report(program: &Program) -> bool {
    !program.reported.is_empty() || !program.reported_uses.is_empty()
}

/// Adds the out-of-memory messages of `text` to the profile of the program they name.
pub fn join_messages(profile: &mut Profile, text: Profile) {
    profile.sources.extend(text.sources.iter().cloned());
    join(profile, text);
}

/// Merges `other` into a profile of the same module; returns whether it added anything.
fn join(profile: &mut Profile, mut other: Profile) -> bool {
    let mut joined = false;
    if !other.failures.is_empty() {
        // Capacities printed by the compiler for this program override those from tables.
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

/// Fills in unknown properties of `device` from `other`; returns whether anything was added.
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
    device.all_memory = device.all_memory.or(other.all_memory);
    if device.topology.is_none() && other.topology.is_some() {
        device.topology = other.topology;
        joined = true;
    }
    for capacity in other.capacities {
        if device.capacity(capacity.color).is_none() {
            device.capacities.push(capacity);
            joined = true;
        }
    }
    say_what_there_is(device);
    joined
}

/// Says beside a capacity below a GPU's memory how much that is.
fn say_what_there_is(device: &mut Device) {
    let Some(all) = device.all_memory else { return };
    let is_part = |capacity: &&mut Capacity| capacity.color == MemorySpace::HBM && capacity.bytes < all;
    if let Some(capacity) = device.capacities.iter_mut().find(is_part) {
        let words = format!("{} of the GPU's memory: ", percent(capacity.bytes.0, all.0));
        if !capacity.evidence.starts_with(&words) {
            capacity.evidence.insert_str(0, &words);
        }
    }
}

/// Folder names too generic to serve as a profile's name.
const GENERIC_FOLDERS: &[&str] = &["dump", "dumps", "xla_dump", "xla-dump", "hlo", "tmp", "out", "output", "profile"];

/// Display name of a profile: the folder's name for an XLA dump, otherwise the file's name without extensions. `None`
/// for a dump in a folder with a generic name.
fn case_name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    if DumpName::parse(file).is_none() {
        return Some(file.trim_end_matches(".gz").trim_end_matches(".pb").trim_end_matches(".hlo").to_owned());
    }
    let folder = path.parent()?.file_name()?.to_str()?;
    (!GENERIC_FOLDERS.contains(&folder)).then(|| folder.to_owned())
}
