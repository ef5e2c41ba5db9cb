//! Finds the files of a folder that belong to one Poplar report.

use std::fs;
use std::path::{Path, PathBuf};

use super::recognise::{Kind, kind};
use super::sql::SqlDecoder;
use crate::decode::Decoder as _;
use crate::source::Input;

/// Most entries of a folder that are examined.
const MAX_ENTRIES: usize = 20_000;

/// Fixed names, the main ones first.
const NAMES: &[&str] = &[
    "profile.pop",
    "graph.json",
    "graph.cbor",
    "execution.json",
    "execution.cbor",
    "vars.json",
    "profile.json",
    "profile.pop_cache",
    "debug.cbor",
    "debug.json",
    "framework.json",
    "app.json",
    "profile_info.json",
    "archive_info.json",
    "tile_mapping.json",
];

/// The place of a name in the order in which files of a report are joined; nothing for other files.
#[must_use]
pub fn rank(name: &str) -> Option<usize> {
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    if let Some(at) = NAMES.iter().position(|known| *known == plain) {
        return Some(at);
    }
    // Pairs of the poplibs tools: 0.graph_json, 0.exec_json.
    match plain.rsplit_once('.') {
        Some((_, "graph_json")) => Some(1),
        Some((_, "exec_json")) => Some(3),
        _ => None,
    }
}

/// Whether a file's name is one that Poplar's reports use.
#[must_use]
pub fn is_report_file(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).and_then(rank).is_some()
}

/// The files of the report that a path belongs to or, for a folder, contains: the main file first, then those that
/// are joined to it. Empty where there is none. A folder whose reports lie in folders of its own (`training`,
/// `inference`) gives the largest of them.
#[must_use]
pub fn report_files(path: &Path) -> Vec<PathBuf> {
    let files = named_files(path);
    // A name alone is not enough: other programs write a graph.json too.
    let asked = if path.is_dir() { &files[..] } else { &files[..files.len().min(1)] };
    if asked.iter().any(|file| Input::open(file).is_ok_and(|input| is_report(&input))) { files } else { Vec::new() }
}

/// Whether an input is one of a report's main files, by its bytes.
fn is_report(input: &Input) -> bool {
    SqlDecoder.recognises(input) || kind(input).is_some_and(|kind| kind != Kind::Facts)
}

/// The same by names alone.
fn named_files(path: &Path) -> Vec<PathBuf> {
    if path.is_dir() {
        let own = files_in(path, None);
        if !own.is_empty() {
            return own;
        }
        return fs::read_dir(path)
            .into_iter()
            .flatten()
            .take(MAX_ENTRIES)
            .flatten()
            .map(|entry| entry.path())
            .filter(|path| path.is_dir())
            .map(|folder| files_in(&folder, None))
            .max_by_key(|files| files.first().and_then(|file| file.metadata().ok()).map_or(0, |data| data.len()))
            .unwrap_or_default();
    }
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    if rank(name).is_none() {
        return Vec::new();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut files = vec![path.to_owned()];
    files.extend(files_in(folder, Some(name)).into_iter().filter(|other| other.file_name() != path.file_name()));
    files
}

/// The number of a pair of files, which tells the reports of a folder apart.
#[must_use]
pub fn number_of(name: &str) -> Option<&str> {
    name.split_once(".graph_json").or_else(|| name.split_once(".exec_json")).map(|parts| parts.0)
}

/// The report files of a folder in order. Of numbered pairs only those of the number that is asked for, else of the
/// first.
fn files_in(folder: &Path, asked: Option<&str>) -> Vec<PathBuf> {
    let mut found: Vec<(usize, String, PathBuf)> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .take(MAX_ENTRIES)
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.to_owned();
            let path = entry.path();
            Some((rank(&name)?, name, path)).filter(|(.., path)| path.is_file())
        })
        .collect();
    found.sort();
    let number = |name: &str| number_of(name).map(str::to_owned);
    let wanted = asked.and_then(number).or_else(|| found.iter().find_map(|(_, name, _)| number(name)));
    found.retain(|(_, name, _)| number(name).is_none_or(|own| Some(own) == wanted));
    found.into_iter().map(|(.., path)| path).collect()
}
