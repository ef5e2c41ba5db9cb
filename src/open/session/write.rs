//! Writes a session file, plain or packed with its profiles.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::format::{SCHEMA, SavedProfile, Session};
use super::read::MEMBER;
use crate::source::{Progress, Tree};

/// What a packed session leaves out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PackOptions {
    /// Paths, file names, notes and search texts. What the profiles themselves say stays in them, and is hidden when
    /// the session is opened.
    pub hides_names: bool,
}

/// Writes a session. Paths below its folder become relative.
///
/// # Errors
/// If it cannot be written.
pub fn write(session: &Session, path: &Path) -> io::Result<()> {
    let folder = std::path::absolute(path)?.parent().map(Path::to_owned).unwrap_or_default();
    let relative = |saved: &SavedProfile| {
        if saved.text.is_some() {
            return Ok(saved.clone());
        }
        let absolute = std::path::absolute(&saved.path)?;
        let shown = absolute.strip_prefix(&folder).unwrap_or(&absolute).display().to_string();
        Ok(SavedProfile { path: shown, ..saved.clone() })
    };
    let profiles = session.profiles.iter().map(relative).collect::<io::Result<Vec<_>>>()?;
    let session = Session { schema: SCHEMA.to_owned(), profiles, ..session.clone() };
    in_place(path, |out| out.write_all(json(&session)?.as_bytes()))
}

/// Writes a session and its profiles into one archive, to hand on.
///
/// # Errors
/// If a profile cannot be read, the archive not be written, or names in a pasted text were to be hidden.
pub fn pack(session: &Session, path: &Path, options: PackOptions) -> io::Result<()> {
    if options.hides_names && session.profiles.iter().any(|saved| saved.text.is_some()) {
        return Err(io::Error::other("names in pasted texts cannot be hidden"));
    }
    let names: Vec<String> = session
        .profiles
        .iter()
        .enumerate()
        .map(|(row, saved)| {
            let name = Path::new(&saved.path).file_name().map(|name| name.to_string_lossy().into_owned());
            let name = name.filter(|_| !options.hides_names).unwrap_or_else(|| "profile".to_owned());
            format!("{}_{name}", row + 1)
        })
        .collect();
    let mut packed = Session { schema: SCHEMA.to_owned(), ..session.clone() };
    for (saved, name) in packed.profiles.iter_mut().zip(&names) {
        saved.path = name.clone();
        if options.hides_names {
            saved.filter = None;
            saved.pins.iter_mut().for_each(|pin| *pin = pin.split(':').next().unwrap_or_default().to_owned());
        }
    }
    packed.names_hidden |= options.hides_names;
    in_place(path, |out| {
        let mut zip = ZipWriter::new(out);
        // Dumps are large: zip's second form has no limit of 4 GiB.
        let large = SimpleFileOptions::default().large_file(true);
        zip.start_file(MEMBER, SimpleFileOptions::default())?;
        zip.write_all(json(&packed)?.as_bytes())?;
        for (saved, name) in session.profiles.iter().zip(&names).filter(|(saved, _)| saved.text.is_none()) {
            let source = Path::new(&saved.path);
            if source.is_dir() {
                let tree = Tree::folder(source, &Progress::default()).map_err(io::Error::other)?;
                for member in tree.members {
                    zip.start_file(format!("{name}/{}", member.path), large)?;
                    let input = member.on_disk().map(File::open);
                    io::copy(&mut input.unwrap_or_else(|| Err(io::ErrorKind::NotFound.into()))?, &mut zip)?;
                }
            } else {
                // Formats are told by contents; companions are found by names, so a dump keeps its ending.
                let ending = source.file_name().and_then(|name| name.to_str()?.split_once('.').map(|parts| parts.1));
                let inside = match (options.hides_names, ending) {
                    (true, Some(ending)) => format!("{name}/module_0000.program.{}", module_ending(ending)),
                    (true, None) => format!("{name}/profile"),
                    (false, _) => format!("{name}/{}", source.file_name().unwrap_or_default().to_string_lossy()),
                };
                zip.start_file(inside, large)?;
                io::copy(&mut File::open(source)?, &mut zip)?;
            }
        }
        zip.finish()?;
        Ok(())
    })
}

/// The part of a dump's name after its module: `after_optimizations.hlo.pb`.
fn module_ending(ending: &str) -> &str {
    ending.find("after_optimizations").and_then(|at| ending.get(at..)).unwrap_or(ending)
}

fn json(session: &Session) -> io::Result<String> {
    Ok(format!("{}\n", serde_json::to_string_pretty(session)?))
}

/// Writes a file under its name only when it is whole.
fn in_place(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".part");
    let draft = Path::new(&draft);
    let written = File::create(draft).map(BufWriter::new).and_then(|mut out| {
        write(&mut out)?;
        out.flush()
    });
    let named = written.and_then(|()| fs::rename(draft, path));
    if named.is_err() {
        let _ = fs::remove_file(draft);
    }
    named
}
