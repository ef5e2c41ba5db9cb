//! A folder, archive or trace as a list of programs. The files of one module form one entry; programs are decoded on
//! demand and not cached here.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rayon::prelude::*;

use super::file::{join_poplar_files, open_input, open_with};
use super::modules::{
    Told, device_of, dump_entry, glance_member, glance_trace, is_about_another_module, join_attempts, mentions_module,
    told_by_text,
};
use crate::decode::{Context, DECODERS, DecodeError, Family, Reporter, poplar, torch_snapshot, xspace};
use crate::model::{Bytes, Device, Glance, LazyProgram, MemorySpace, Profile, Shortage, SourceInfo, counted};
use crate::source::{ArchiveKind, Cancelled, DumpName, Input, Member, Progress, Stage, Tree, is_run_file};

/// At most this many files without an XLA dump name are examined.
const MAX_UNNAMED: usize = 4096;

/// A folder, an archive, or a trace with many programs.
#[derive(Debug, Default)]
pub struct Collection {
    /// Display name.
    pub name: String,
    /// Programs, and the remaining contents of traces.
    pub entries: Vec<Entry>,
    /// Files that could not be read, with the error.
    pub unread: Vec<SourceInfo>,
    /// What was skipped and why, one sentence each.
    pub notes: Vec<String>,
    /// How many texts it has, if it has nothing but texts without a message.
    pub silent_texts: Option<usize>,
}

/// One item of a collection.
#[derive(Debug)]
pub struct Entry {
    /// Module name; otherwise the file name.
    pub name: String,
    /// Folder relative to the root, or the host of a trace; empty for the root itself.
    pub group: String,
    /// Path of the file it is read from, relative to the root.
    pub file: String,
    /// Size of the file, or of the program in a trace, in bytes.
    pub bytes: u64,
    /// Stage suffixes of the module's other dump files.
    pub others: Vec<String>,
    pub(super) content: Content,
    pub(super) glance: OnceLock<Glance>,
    pub(super) device: OnceLock<Device>,
}

#[derive(Debug)]
pub(super) enum Content {
    /// A file and the files joined to it.
    Files { primary: Member, companions: Vec<Member> },
    /// A program in a trace.
    Module { program: LazyProgram, device: Box<Device>, source: Box<SourceInfo> },
    /// A trace without its programs.
    Trace(Box<Profile>),
}

impl Collection {
    /// Whether a path is a folder or an archive. A folder with nothing but a Poplar report is one profile.
    #[must_use]
    pub fn is_collection(path: &Path) -> bool {
        if path.is_dir() {
            let report = poplar::report_files(path);
            return report.is_empty() || has_other_profiles(path, &report);
        }
        Input::open(path).is_ok_and(|input| ArchiveKind::of(&input).is_some())
    }

    /// Lists a folder or an archive. Traces are decoded to find their programs.
    ///
    /// # Errors
    /// If it cannot be read, contains no profile, or `progress` was cancelled.
    pub fn open(path: &Path, progress: &Progress) -> Result<Self, DecodeError> {
        let tree = if path.is_dir() {
            Tree::folder(path, progress)?
        } else {
            let input = Input::open(path)?;
            let Some(kind) = ArchiveKind::of(&input) else {
                return Err(DecodeError::NotAProfile("neither a folder nor an archive".to_owned()));
            };
            Tree::archive(&input, kind, progress)?
        };
        let name = path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned());
        Self::of(name, tree, progress)
    }

    /// Lists the files of a tree.
    ///
    /// # Errors
    /// If it contains no profile, or `progress` was cancelled.
    pub fn of(name: String, tree: Tree, progress: &Progress) -> Result<Self, DecodeError> {
        progress.begin(Stage::Listing, tree.members.len() as u64);
        let mut collection = Self { name, notes: tree.notes, ..Self::default() };
        let mut dumps: BTreeMap<(String, String), Vec<(DumpName, Member)>> = BTreeMap::new();
        let mut run_files: Vec<Member> = Vec::new();
        let mut unnamed = Vec::new();
        for member in tree.members {
            if member.file_name().ends_with(".highwater") {
                // A session only names profiles.
                continue;
            }
            if let Some(name) = DumpName::parse(member.file_name()) {
                dumps.entry((member.folder().to_owned(), name.stem.clone())).or_default().push((name, member));
            } else if is_run_file(member.file_name()) {
                run_files.push(member);
            } else {
                unnamed.push(member);
            }
        }
        join_attempts(&mut dumps);
        unnamed.retain(|member| !put_to_module(&mut dumps, member));
        let mut claimed = HashSet::new();
        let module_count: BTreeMap<String, usize> = dumps.keys().fold(BTreeMap::new(), |mut counts, (folder, _)| {
            *counts.entry(folder.clone()).or_default() += 1;
            counts
        });
        for ((folder, stem), files) in dumps {
            progress.check()?;
            let is_only_module = module_count.get(&folder).copied().unwrap_or(0) == 1;
            let same_folder = run_files.iter().filter(|member| member.folder() == folder);
            let companions: Vec<Member> = same_folder
                .filter(|member| {
                    (is_only_module && !is_about_another_module(member, &stem, progress))
                        || member.file_name().ends_with(".stats.json")
                        || mentions_module(member, &stem, progress)
                })
                .cloned()
                .collect();
            claimed.extend(companions.iter().map(|member| member.path.clone()));
            collection.entries.extend(dump_entry(folder, &stem, files, companions));
        }
        let unclaimed = run_files.into_iter().filter(|member| !claimed.contains(&member.path));
        unnamed.extend(unclaimed.filter(|member| !member.file_name().ends_with(".stats.json")));
        if unnamed.len() > MAX_UNNAMED {
            collection.notes.push(format!("{} further files were not examined", unnamed.len() - MAX_UNNAMED));
            unnamed.truncate(MAX_UNNAMED);
        }
        let (reports, unnamed) = poplar_reports(unnamed, progress);
        progress.check()?;
        for (primary, companions) in reports {
            collection.entries.push(Entry::of_file(primary, companions));
        }
        let is_text = |member: &&Member| is_run_file(member.file_name());
        let texts: Vec<Member> = unnamed.iter().filter(is_text).cloned().collect();
        let told: Vec<Option<Told>> = unnamed
            .par_iter()
            .map(|member| progress.check().map(|()| told_by_text(member, progress)))
            .collect::<Result<_, Cancelled>>()?;
        let mut silent = Vec::new();
        for (member, told) in unnamed.into_iter().zip(told) {
            progress.check()?;
            match told {
                None => collection.add_unnamed(member, &texts, progress)?,
                // Neither a program nor the message of one: results and notes beside profiles are common.
                Some(Told::Nothing) => silent.push(member),
                Some(Told::Message(glance)) => {
                    let entry = Entry::of_file(member, Vec::new());
                    collection.entries.push(Entry { glance: OnceLock::from(glance), ..entry });
                }
            }
        }
        collection.drop_copies();
        collection.add_silent(silent);
        if collection.entries.is_empty() {
            let what = collection.unread.first().and_then(|source| source.error.clone()).unwrap_or_default();
            return Err(DecodeError::NotAProfile(if what.is_empty() {
                "it contains no profile".to_owned()
            } else {
                format!("none of its profiles could be read: {what}")
            }));
        }
        Ok(collection)
    }

    /// Adds a file without an XLA dump name if its contents are in a known format. One of `texts` in the same folder may
    /// be about a snapshot, which is known once both are decoded.
    fn add_unnamed(&mut self, member: Member, texts: &[Member], progress: &Progress) -> Result<(), DecodeError> {
        // Unrelated files are common beside profiles and are skipped silently.
        let Ok(input) = member.open(&progress.aside()) else { return Ok(progress.check()?) };
        if ArchiveKind::of(&input).is_some() {
            self.notes.push(format!("{} is a nested archive; open it separately", member.path));
            return Ok(());
        }
        let Some(decoder) = DECODERS.iter().find(|decoder| decoder.recognises(&input)) else {
            return Ok(());
        };
        if decoder.format() != xspace::FORMAT {
            let is_beside = |text: &&Member| text.folder() == member.folder();
            let has_texts = decoder.format() == torch_snapshot::FORMAT;
            let companions = texts.iter().filter(|text| has_texts && is_beside(text)).cloned().collect();
            self.entries.push(Entry::of_file(member, companions));
            return Ok(());
        }
        let reporter = Reporter::default();
        match decoder.decode(&input, Context { progress, reporter: &reporter }) {
            Ok(profile) => self.add_trace(&member, profile, reporter),
            Err(error) if error.is_cancelled() => return Err(error),
            Err(error) => self.unread.push(SourceInfo {
                path: member.path,
                format: decoder.format().to_owned(),
                bytes: member.bytes,
                notes: Vec::new(),
                error: Some(error.to_string()),
                cut_at: None,
            }),
        }
        Ok(())
    }

    /// Texts without a message are no programs: beside profiles they are only counted.
    fn add_silent(&mut self, silent: Vec<Member>) {
        if self.entries.is_empty() {
            self.silent_texts = (!silent.is_empty() && self.unread.is_empty()).then_some(silent.len());
            self.entries.extend(silent.into_iter().map(|member| Entry::of_file(member, Vec::new())));
        } else if let Some(first) = silent.first() {
            let path = &first.path;
            self.notes.push(match silent.len() {
                1 => format!("{path} has no out-of-memory message and is left out"),
                files => {
                    let files = counted(files as u64, "text file");
                    format!("{files}, such as {path}, have no out-of-memory message and are left out")
                }
            });
        }
    }

    fn add_trace(&mut self, member: &Member, mut profile: Profile, reporter: Reporter) {
        let notes = reporter.finish();
        let source = SourceInfo {
            path: member.path.clone(),
            format: xspace::FORMAT.to_owned(),
            bytes: member.bytes,
            notes: notes.iter().map(ToString::to_string).collect(),
            error: None,
            cut_at: None,
        };
        profile.notes.extend(notes);
        profile.sources.push(source);
        profile.name = member.file_name().split(".xplane").next().unwrap_or_default().to_owned();
        let host = profile.name.clone();
        let group = if member.folder().is_empty() { host } else { format!("{}/{host}", member.folder()) };
        self.add_programs(&group, member.folder(), profile);
    }

    /// The programs of a trace that was opened directly.
    ///
    /// # Errors
    /// The unchanged profile, unless it has at least two programs and none is decoded.
    pub fn of_trace(profile: Profile) -> Result<Self, Box<Profile>> {
        if profile.modules.len() < 2 || !profile.programs.is_empty() {
            return Err(Box::new(profile));
        }
        let mut collection = Self { name: profile.name.clone(), ..Self::default() };
        collection.add_programs("", "", profile);
        Ok(collection)
    }

    /// Adds one entry for each undecoded program and one for the rest of the trace.
    fn add_programs(&mut self, group: &str, folder: &str, mut profile: Profile) {
        let source = profile.sources.first().cloned().unwrap_or_default();
        let device = profile.device.clone();
        for program in std::mem::take(&mut profile.modules) {
            self.entries.push(Entry {
                name: program.name.clone(),
                group: group.to_owned(),
                file: source.path.clone(),
                bytes: program.bytes,
                others: Vec::new(),
                content: Content::Module {
                    program,
                    device: Box::new(device.clone()),
                    source: Box::new(source.clone()),
                },
                glance: OnceLock::new(),
                device: OnceLock::from(device.clone()),
            });
        }
        if !profile.runtime.is_empty() || !profile.executions.is_empty() || self.entries.is_empty() {
            self.entries.push(Entry {
                name: profile.name.clone(),
                group: folder.to_owned(),
                file: source.path,
                bytes: source.bytes,
                others: Vec::new(),
                content: Content::Trace(Box::new(profile)),
                glance: OnceLock::new(),
                device: OnceLock::from(device),
            });
        }
    }

    /// Drops the copies of a trace's modules that XProf writes next to the trace.
    fn drop_copies(&mut self) {
        let in_traces: HashSet<(String, String)> = self
            .entries
            .iter()
            .filter_map(|entry| match &entry.content {
                Content::Module { program, .. } => {
                    let folder = entry.file.rsplit_once('/').map_or("", |(folder, _)| folder);
                    let id = program.id.as_deref().unwrap_or_default();
                    Some((folder.to_owned(), format!("{}({id}).hlo_proto.pb", program.name)))
                }
                _ => None,
            })
            .collect();
        self.entries.retain(|entry| match &entry.content {
            Content::Files { primary, .. } => {
                !in_traces.contains(&(primary.folder().to_owned(), primary.file_name().to_owned()))
            }
            _ => true,
        });
    }

    /// Decodes an entry. A program is called by the folder or archive that holds nothing else.
    ///
    /// # Errors
    /// As [`Entry::open`]; if there is no such row.
    pub fn open_entry(&self, row: usize, progress: &Progress) -> Result<Profile, DecodeError> {
        let Some(entry) = self.entries.get(row) else {
            return Err(DecodeError::NotAProfile("no such entry".to_owned()));
        };
        let mut profile = entry.open(progress)?;
        if let ([_], Content::Files { .. }) = (&self.entries[..], &entry.content)
            && !self.name.is_empty()
        {
            profile.name.clone_from(&self.name);
        }
        Ok(profile)
    }

    /// Sorts the entries as [`Self::worst_first`] does.
    pub fn sort_worst_first(&mut self) {
        let Ok(order) = self.worst_first(&Progress::default()) else { return };
        let mut entries: Vec<Option<Entry>> = std::mem::take(&mut self.entries).into_iter().map(Some).collect();
        self.entries = order.into_iter().filter_map(|row| entries.get_mut(row)?.take()).collect();
    }

    /// Entry indices by how far HBM is over capacity, those that fail without numbers after them, then by HBM needed, all
    /// descending. Computes every entry's
    /// [`Glance`] in parallel.
    ///
    /// # Errors
    /// If `progress` was cancelled.
    pub fn worst_first(&self, progress: &Progress) -> Result<Vec<usize>, Cancelled> {
        progress.begin(Stage::Scanning, self.entries.len() as u64);
        self.entries.par_iter().try_for_each(|entry| {
            entry.learn(progress)?;
            progress.advance(1)
        })?;
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_cached_key(|&row| {
            let entry = &self.entries[row];
            let needs = entry.needs();
            let over = entry.capacity().map_or(Bytes::ZERO, |capacity| needs.saturating_sub(capacity));
            let shortage = entry.glance().shortage;
            let over = shortage.and_then(|shortage| shortage.over_by).unwrap_or(over);
            let fails = shortage.is_some() || over > Bytes::ZERO;
            std::cmp::Reverse((fails, over, needs, std::cmp::Reverse(row)))
        });
        Ok(order)
    }
}

/// Whether a folder holds profiles of known formats beside the files of a report.
fn has_other_profiles(folder: &Path, report: &[PathBuf]) -> bool {
    let Ok(files) = std::fs::read_dir(folder) else { return false };
    let files = files.take(MAX_UNNAMED).flatten().map(|file| file.path());
    let mut others = files.filter(|path| path.is_file() && !report.contains(path) && !poplar::is_report_file(path));
    let is_profile = |input: Input| {
        DECODERS.iter().find(|decoder| decoder.recognises(&input)).is_some_and(|decoder| !decoder.is_fallback())
    };
    others.any(|path| Input::open(&path).is_ok_and(is_profile))
}

/// The Poplar reports among files, each as its main file and those that are joined to it, and all other files.
fn poplar_reports(files: Vec<Member>, progress: &Progress) -> (Vec<(Member, Vec<Member>)>, Vec<Member>) {
    let is_poplar = |member: &Member| {
        let Ok(input) = member.open(&progress.aside()) else { return false };
        let decoder = DECODERS.iter().find(|decoder| decoder.recognises(&input));
        decoder.is_some_and(|decoder| decoder.reads().family == Family::Poplar)
    };
    let (parts, others): (Vec<Member>, Vec<Member>) =
        files.into_iter().partition(|member| poplar::rank(member.file_name()).is_some() && is_poplar(member));
    let mut folders: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for part in parts {
        folders.entry(part.folder().to_owned()).or_default().push(part);
    }
    let mut reports = Vec::new();
    for mut parts in folders.into_values() {
        parts.sort_by_key(|part| (poplar::rank(part.file_name()), part.path.clone()));
        let number = |part: &Member| poplar::number_of(part.file_name()).map(str::to_owned);
        // Files without a number belong to the first pair.
        let first = parts.iter().find_map(&number);
        let mut pairs: BTreeMap<Option<String>, Vec<Member>> = BTreeMap::new();
        for part in parts {
            pairs.entry(number(&part).or_else(|| first.clone())).or_default().push(part);
        }
        reports.extend(pairs.into_values().map(|mut pair| (pair.remove(0), pair)));
    }
    (reports, others)
}

/// Adds a file to the module it belongs to, by the start of its name or by its folder's name; returns whether one was
/// found.
fn put_to_module(dumps: &mut BTreeMap<(String, String), Vec<(DumpName, Member)>>, member: &Member) -> bool {
    let (parent, own) = member.folder().rsplit_once('/').unwrap_or(("", member.folder()));
    if !own.starts_with("module_") && !member.file_name().starts_with("module_") {
        return false;
    }
    for folder in [member.folder(), parent] {
        let range = (folder.to_owned(), String::new())..;
        for ((_, stem), files) in dumps.range_mut(range).take_while(|entry| entry.0.0 == folder) {
            let own = if folder == parent { own } else { "" };
            if let Some(name) = DumpName::of_module(stem, own, member.file_name()) {
                files.push((name, member.clone()));
                return true;
            }
        }
    }
    false
}

impl Entry {
    /// The entry of a file that is called by its name, and of the files joined to it.
    fn of_file(primary: Member, companions: Vec<Member>) -> Self {
        Self {
            name: primary.file_name().to_owned(),
            group: primary.folder().to_owned(),
            file: primary.path.clone(),
            bytes: primary.bytes,
            others: Vec::new(),
            content: Content::Files { primary, companions },
            glance: OnceLock::new(),
            device: OnceLock::new(),
        }
    }

    /// The name prefixed with its folder in the list: `run_2/jit_train_step`.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.group.is_empty() { self.name.clone() } else { format!("{}/{}", self.group, self.name) }
    }

    /// The program's memory totals, read without decoding it and cached.
    pub fn glance(&self) -> &Glance {
        self.glance.get_or_init(|| self.read_glance(&Progress::default()))
    }

    fn read_glance(&self, progress: &Progress) -> Glance {
        match &self.content {
            Content::Files { primary, .. } => glance_member(primary, progress),
            Content::Module { program, .. } => program.source.glance(),
            Content::Trace(profile) => glance_trace(profile),
        }
    }

    /// Finds out what [`Self::glance`] and [`Self::device`] return, unless it is cancelled.
    fn learn(&self, progress: &Progress) -> Result<(), Cancelled> {
        if self.glance.get().is_none() {
            let glance = self.read_glance(progress);
            progress.check()?;
            self.glance.get_or_init(|| glance);
        }
        if self.device.get().is_none() {
            let device = self.read_device(progress);
            progress.check()?;
            self.device.get_or_init(|| device);
        }
        Ok(())
    }

    /// (HBM needed, HBM capacity), of an IPU those of its fullest tile, if [`Self::glance`] has been computed. Does not block.
    #[must_use]
    pub fn known(&self) -> Option<(Bytes, Option<Bytes>)> {
        let glance = self.glance.get()?;
        if let Some(shortage) = glance.shortage {
            return shortage.needed.map(|needs| (needs, shortage.limit()));
        }
        if glance.fullest_tile.is_some() {
            return glance.fullest_tile;
        }
        let capacity =
            self.device.get().and_then(|device| device.capacity(MemorySpace::HBM)).map(|capacity| capacity.bytes);
        glance.allocated_in(MemorySpace::HBM).map(|needs| (needs, capacity))
    }

    /// Of a text about memory that ran out, the numbers of the worst message, if [`Self::glance`] has been computed.
    #[must_use]
    pub fn known_shortage(&self) -> Option<Shortage> {
        self.glance.get().and_then(|glance| glance.shortage)
    }

    /// The device, if [`Self::device`] has been computed. Does not block.
    #[must_use]
    pub fn known_device(&self) -> Option<&Device> {
        self.device.get()
    }

    /// The device, read from the files joined to the program and cached.
    pub fn device(&self) -> &Device {
        self.device.get_or_init(|| self.read_device(&Progress::default()))
    }

    fn read_device(&self, progress: &Progress) -> Device {
        match &self.content {
            Content::Files { companions, .. } => device_of(companions, progress),
            Content::Module { device, .. } => (**device).clone(),
            Content::Trace(profile) => profile.device.clone(),
        }
    }

    /// Its files on disk: the one it is read from comes first, then those joined to it. Empty for what is in an archive
    /// or a trace.
    #[must_use]
    pub fn files(&self) -> Vec<&Path> {
        match &self.content {
            Content::Files { primary, companions } => {
                std::iter::once(primary).chain(companions).filter_map(Member::on_disk).collect()
            }
            Content::Module { .. } | Content::Trace(_) => Vec::new(),
        }
    }

    /// Whether XLA is still compiling the module, or has given up: all that there is of it was written before its
    /// memory was assigned.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        let Content::Files { primary, .. } = &self.content else { return false };
        DumpName::parse(primary.file_name()).is_some_and(|name| name.stage.starts_with("before_optimizations"))
    }

    /// Takes over what another listing of the same, unchanged file has found out.
    pub(super) fn learn_from(&mut self, old: &Self) {
        if let Some(glance) = old.glance.get() {
            self.glance = OnceLock::from(glance.clone());
        }
        let names = |entry: &Self| entry.companions().iter().map(|member| member.path.clone()).collect::<Vec<_>>();
        if let Some(device) = old.device.get().filter(|_| names(self) == names(old)) {
            self.device = OnceLock::from(device.clone());
        }
    }

    /// Files joined to the program when it is opened.
    #[must_use]
    pub fn companions(&self) -> &[Member] {
        match &self.content {
            Content::Files { companions, .. } => companions,
            Content::Module { .. } | Content::Trace(_) => &[],
        }
    }

    /// HBM the program needs, of an IPU the bytes of its fullest tile; 0 if unknown.
    #[must_use]
    pub fn needs(&self) -> Bytes {
        let glance = self.glance();
        let told = glance.shortage.and_then(|shortage| shortage.needed);
        glance.fullest_tile.map(|tile| tile.0).or(told).or(glance.allocated_in(MemorySpace::HBM)).unwrap_or_default()
    }

    /// HBM capacity of the device, of an IPU that of a tile; `None` if unknown.
    #[must_use]
    pub fn capacity(&self) -> Option<Bytes> {
        if let Some((_, capacity)) = self.glance().fullest_tile {
            return capacity;
        }
        if let Some(shortage) = self.glance().shortage {
            return shortage.limit();
        }
        self.device().capacity(MemorySpace::HBM).map(|capacity| capacity.bytes)
    }

    /// Decodes the entry. The result is not cached.
    ///
    /// # Errors
    /// If it cannot be read, or `progress` was cancelled.
    pub fn open(&self, progress: &Progress) -> Result<Profile, DecodeError> {
        progress.check()?;
        match &self.content {
            Content::Files { primary, companions } => {
                progress.begin(Stage::Reading, primary.bytes);
                let is_report = poplar::rank(primary.file_name()).is_some() && !companions.is_empty();
                let mut profile = if is_report {
                    let first = open_input(&primary.open(progress)?, progress)?;
                    let (mut profile, failed) = join_poplar_files(Some(first), companions, progress)?;
                    profile.sources.extend(failed);
                    profile
                } else {
                    open_with(&primary.open(progress)?, companions, progress)?
                };
                profile.name = if self.group.is_empty() || DumpName::parse(primary.file_name()).is_none() {
                    self.name.clone()
                } else {
                    format!("{}/{}", self.group, self.name)
                };
                Ok(profile)
            }
            Content::Module { program, device, source } => {
                progress.begin(Stage::Decoding, 0);
                let loaded = program.source.load(progress.flag());
                progress.check()?;
                let (decoded, notes) = loaded.map_err(DecodeError::Empty)?;
                Ok(Profile {
                    name: self.name.clone(),
                    sources: vec![(**source).clone()],
                    device: (**device).clone(),
                    programs: vec![decoded],
                    notes,
                    ..Profile::default()
                })
            }
            Content::Trace(profile) => Ok((**profile).clone()),
        }
    }
}
