//! Picks the program that needs the most memory.

use std::path::Path;

use super::collection::Collection;
use super::file::open_path;
use crate::decode::DecodeError;
use crate::model::{LazyProgram, MemorySpace, Note, NoteLevel, Profile};
use crate::source::Progress;

/// Opens a path as one profile. Of a folder, archive or trace with several programs, opens the one that needs the most
/// memory, with a note that names the others.
///
/// # Errors
/// If nothing could be read, or `progress` was cancelled.
pub fn open_worst(path: &Path, progress: &Progress) -> Result<Profile, DecodeError> {
    if Collection::is_collection(path) {
        let mut collection = Collection::open(path, progress)?;
        collection.sort_worst_first();
        progress.check()?;
        let Some(first) = collection.entries.first() else {
            return Err(DecodeError::NotAProfile("it contains no profile".to_owned()));
        };
        let mut profile = first.open(progress)?;
        let others = collection.entries.iter().skip(1).map(|entry| entry.name.as_str());
        profile.notes.extend(collection.notes.iter().map(|text| info(text.clone())));
        profile.notes.extend(others_note(others));
        return Ok(profile);
    }
    let mut profile = open_path(path, progress)?;
    load_worst(&mut profile, progress)?;
    Ok(profile)
}

/// If none of the profile's programs is decoded, decodes the one that needs the most memory and adds a note that names
/// the others.
///
/// # Errors
/// If it cannot be decoded, or `progress` was cancelled.
pub fn load_worst(profile: &mut Profile, progress: &Progress) -> Result<(), DecodeError> {
    if !profile.programs.is_empty() || profile.modules.is_empty() {
        return Ok(());
    }
    let needs = |module: &LazyProgram| module.source.glance().allocated_in(MemorySpace::HBM).unwrap_or_default();
    let mut order: Vec<usize> = (0..profile.modules.len()).collect();
    order.sort_by_cached_key(|&row| std::cmp::Reverse((needs(&profile.modules[row]), profile.modules[row].bytes)));
    progress.check()?;
    let (program, notes) = profile.modules[order[0]].source.load().map_err(DecodeError::Empty)?;
    let others = others_note(order.iter().skip(1).map(|&row| profile.modules[row].name.as_str()));
    profile.notes.extend(notes);
    profile.notes.extend(others);
    profile.programs.push(program);
    Ok(())
}

/// At most this many names are listed; the rest are counted.
const MAX_NAMED: usize = 8;

fn others_note<'a>(names: impl Iterator<Item = &'a str>) -> Option<Note> {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return None;
    }
    let more = if names.len() > MAX_NAMED { format!(" and {} more", names.len() - MAX_NAMED) } else { String::new() };
    let named = names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ");
    Some(info(format!("Showing the program that needs the most memory; also here: {named}{more}")))
}

fn info(text: String) -> Note {
    Note::new(NoteLevel::Info, text)
}
