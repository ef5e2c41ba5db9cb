//! Groups dump files by module and reads totals, devices and module names without decoding programs.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::collection::{Content, Entry};
use super::file::join_device;
use crate::decode::xla_report::assemble::module_name;
use crate::decode::{Context, DECODERS, Family, Reporter, hlo};
use crate::model::{AllocatorTrace, Bytes, Device, Glance, MemorySpace, Profile};
use crate::source::{DumpName, Member, Packing, Progress, SharedBytes};

/// Logs and statistics with more bytes than this are skipped.
const MAX_TEXT: u64 = 16 << 20;

/// Poplar profiles with more bytes than this are not decoded only to put them in order.
const MAX_TILES: u64 = 16 << 20;

/// Texts with more bytes than this are listed without a look at what they say.
const MAX_LOOKED_THROUGH: u64 = 1 << 20;

/// What a text says of memory that ran out; `None` for other files, and for texts that are packed or large.
pub fn told_by_text(member: &Member, progress: &Progress) -> Option<Told> {
    let input = member.open(&progress.aside()).ok().filter(|input| input.size() <= MAX_LOOKED_THROUGH)?;
    let decoder = DECODERS.iter().find(|decoder| decoder.recognises(&input))?;
    if !decoder.is_fallback() || input.packing() != Packing::None {
        return None;
    }
    let (progress, reporter) = (progress.aside(), Reporter::default());
    let profile = decoder.decode(&input, Context { progress: &progress, reporter: &reporter }).ok()?;
    Some(match profile.failures[..] {
        [] => Told::Nothing,
        _ => Told::Message(Glance { shortage: profile.shortage().map(|worst| worst.1), ..Glance::default() }),
    })
}

/// What there is in a text.
pub enum Told {
    /// No message about memory.
    Nothing,
    /// Messages, with the numbers of the worst.
    Message(Glance),
}

/// Memory totals of a dump file, read without decoding it; empty if it is not an HLO proto, or was cancelled.
pub fn glance_member(member: &Member, progress: &Progress) -> Glance {
    let name = member.file_name().to_ascii_lowercase();
    let ends = |end: &str| name.strip_suffix(end).is_some();
    if let Some(path) = member.on_disk()
        && ends(".pb")
    {
        return hlo::glance_file(path).unwrap_or_default();
    }
    if [".json", ".cbor", ".pop", "_json"].iter().any(|end| ends(end) || ends(&format!("{end}.gz"))) {
        return glance_tiles(member, progress).unwrap_or_default();
    }
    if !(ends(".pb") || ends(".pb.gz") || ends(".pb.zst")) {
        return Glance::default();
    }
    let bytes = member.open(&progress.aside()).and_then(|input| input.load(&progress.aside()));
    bytes.map(|bytes| hlo::glance(&bytes)).unwrap_or_default()
}

/// The fullest tile of a Poplar profile, which has to be decoded for it; `None` for other files and large ones.
fn glance_tiles(member: &Member, progress: &Progress) -> Option<Glance> {
    let input = member.open(&progress.aside()).ok().filter(|_| member.bytes <= MAX_TILES)?;
    let decoder = DECODERS.iter().find(|decoder| decoder.recognises(&input))?;
    if decoder.reads().family != Family::Poplar {
        return None;
    }
    let (progress, reporter) = (progress.aside(), Reporter::default());
    let tiles = decoder.decode(&input, Context { progress: &progress, reporter: &reporter }).ok()?.tiles?;
    let fullest = tiles.must_fit()?.iter().copied().max()?;
    let capacity = tiles.target.bytes_per_tile.map(Bytes);
    Some(Glance { fullest_tile: Some((Bytes(fullest), capacity)), ..Glance::default() })
}

/// Memory totals of a trace: the highest use of any one allocator.
pub fn glance_trace(profile: &Profile) -> Glance {
    let highest = |trace: &AllocatorTrace| {
        let events = trace.events.iter().map(|event| event.stats.in_use()).max().unwrap_or(0);
        trace.given.as_ref().map_or(events, |given| given.stats.in_use())
    };
    let most = profile.runtime.iter().map(highest).max();
    Glance {
        allocated: most.map(|bytes| (MemorySpace::HBM, Bytes::from_wire(bytes))).into_iter().collect(),
        ..Glance::default()
    }
}

/// The device described by `*.stats.json` and by the files of a dump that say what it was compiled for.
pub fn device_of(companions: &[Member], progress: &Progress) -> Device {
    let mut device = Device::default();
    for member in companions {
        let name = member.file_name();
        let tells = name.ends_with(".stats.json") || DumpName::parse(name).is_some_and(|name| name.tells_of_device());
        if !tells || member.bytes > MAX_TEXT {
            continue;
        }
        let Ok(input) = member.open(&progress.aside()) else { continue };
        let (progress, reporter) = (progress.aside(), Reporter::default());
        let Some(decoder) = DECODERS.iter().find(|decoder| decoder.recognises(&input)) else { continue };
        if let Ok(profile) = decoder.decode(&input, Context { progress: &progress, reporter: &reporter }) {
            join_device(&mut device, profile.device);
        }
    }
    device
}

/// Whether a log mentions the module of a dump.
pub fn mentions_module(member: &Member, stem: &str, progress: &Progress) -> bool {
    text_of(member, progress).is_some_and(|text| mentions(&text, &module_of(stem)))
}

/// Whether a text says which module it is about, and it is another one than that of the dump files with this stem.
pub fn is_about_another_module(member: &Member, stem: &str, progress: &Progress) -> bool {
    let module = module_of(stem);
    let Some(text) = text_of(member, progress).filter(|_| !module.is_empty()) else { return false };
    let mut named = memchr::memmem::find_iter(&text, NAMED).map(|at| {
        let name = &text[at + NAMED.len()..];
        let end = name.iter().position(|b| !b.is_ascii_alphanumeric() && *b != b'_').unwrap_or(name.len());
        &name[..end]
    });
    let first = named.next();
    first.is_some() && first.into_iter().chain(named).all(|name| name != module.as_bytes())
}

/// How messages of the compiler name their module.
const NAMED: &[u8] = b"HLO module: ";

fn module_of(stem: &str) -> String {
    module_name(&format!("{stem}.after_optimizations.hlo.pb"))
}

/// The bytes of a text, unless it is too large to be looked through.
fn text_of(member: &Member, progress: &Progress) -> Option<SharedBytes> {
    if member.bytes > MAX_TEXT {
        return None;
    }
    member.open(&progress.aside()).and_then(|input| input.load(&progress.aside())).ok()
}

fn mentions(bytes: &[u8], module: &str) -> bool {
    if module.is_empty() {
        return false;
    }
    let is_word = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.'));
    memchr::memmem::find_iter(bytes, module.as_bytes()).any(|at| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        // The name may end a sentence.
        let after = bytes.get(at + module.len()).filter(|&&b| b != b'.');
        !is_word(before) && !is_word(after)
    })
}

/// Rank of a dump file by how much it tells about memory: 0 is most, `u32::MAX` nothing.
fn rank(name: &DumpName) -> u32 {
    let stage = name.stage.as_str();
    if name.has_assignment() {
        0
    } else if stage.ends_with("-buffer-assignment.txt") {
        1
    } else if stage.ends_with(".memory_viewer.json") {
        2
    } else if stage.ends_with("-memory-usage-report.pb") {
        3
    } else if stage.ends_with("-memory-usage-report.txt") {
        4
    } else if stage.ends_with("buffer-info.csv") || stage.ends_with("-buffer-info") {
        5
    } else if stage.ends_with("after_buffer_assignment.hlo.pb") {
        6
    } else if stage.ends_with(".hlo.pb") {
        7
    } else if stage.ends_with("-live-range.txt") || stage.ends_with("-buffer-assignment-values.txt") {
        8
    } else {
        u32::MAX
    }
}

/// Dump files by folder and module.
pub type Dumps = BTreeMap<(String, String), Vec<(DumpName, Member)>>;

/// Joins what belongs to one compile of the TPU's compiler: when memory runs out it tries again, and numbers the last
/// attempt, which has the buffer assignment, higher than the files that it wrote at the beginning.
pub fn join_attempts(dumps: &mut Dumps) {
    let has = |files: &[(DumpName, Member)], of: fn(&DumpName) -> bool| files.iter().any(|(name, _)| of(name));
    let begins = |name: &DumpName| name.stage.starts_with("before_optimizations");
    let mut starts: BTreeMap<(String, String), (String, String)> = BTreeMap::new();
    let mut joined: Vec<((String, String), (String, String))> = Vec::new();
    // Modules are in the order of their numbers.
    for (key, files) in &*dumps {
        let (folder, stem) = key;
        let name = stem.split_once('.').map_or("", |(_, name)| name).to_owned();
        match (has(files, begins), has(files, DumpName::has_assignment)) {
            (true, false) => {
                starts.insert((folder.clone(), name), key.clone());
            }
            (false, true) => joined.extend(starts.remove(&(folder.clone(), name)).map(|start| (start, key.clone()))),
            (true, true) => {
                starts.remove(&(folder.clone(), name));
            }
            (false, false) => {}
        }
    }
    for (start, end) in joined {
        let files = dumps.remove(&start).unwrap_or_default();
        dumps.entry(end).or_default().extend(files);
    }
}

/// The entry of one module: its most informative file, with the others of that stage as companions. `None` if none of
/// the files can be opened as a profile.
pub fn dump_entry(
    folder: String,
    stem: &str,
    mut files: Vec<(DumpName, Member)>,
    run_files: Vec<Member>,
) -> Option<Entry> {
    files.sort_by_key(|(name, member)| (rank(name), member.path.clone()));
    if rank(&files.first()?.0) == u32::MAX {
        return None;
    }
    let (first, primary) = files.remove(0);
    let others = files.iter().map(|(name, _)| name.stage.clone()).collect();
    let stage = first.stage.split(['.', '-']).next().unwrap_or_default();
    // Reports of an earlier stage describe a different program.
    let mut companions: Vec<Member> = files
        .into_iter()
        .filter(|(name, _)| name.stage.starts_with(stage) || name.tells_of_device())
        .filter(|(name, _)| !name.stage.ends_with(".hlo.pb") && !name.stage.contains(".memory_viewer"))
        .map(|(_, member)| member)
        .collect();
    companions.extend(run_files);
    let module = module_name(primary.file_name());
    Some(Entry {
        name: if module.is_empty() { stem.to_owned() } else { module },
        group: folder,
        file: primary.path.clone(),
        bytes: primary.bytes,
        others,
        content: Content::Files { primary, companions },
        glance: OnceLock::new(),
        device: OnceLock::new(),
    })
}
