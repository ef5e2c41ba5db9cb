//! Variables that make compilers leave their memory pictures in the folder of a run: added to what the user has set,
//! never in its place.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value};

use super::flags::{Flags, quoted};

/// Loaded by every Python that the command starts, see its own first lines.
const HOOK: &str = include_str!("hook.py");

/// Folder of the hook within that of a run; it exists only while the command runs.
const HOOK_FOLDER: &str = ".hook";

/// Where what the command leaves behind will be found.
#[derive(Debug, Default)]
pub struct Places {
    /// The dump folder that the user has set for XLA; `None` if XLA writes to the folder of the run.
    pub users_dump: Option<PathBuf>,
    /// The report folder that the user has set for Poplar.
    pub users_reports: Option<PathBuf>,
    /// What could not be set up, one sentence each.
    pub notes: Vec<String>,
}

/// Names the folder of the run to whatever runs in it.
const RUN: &str = "HIGHWATER_RUN";

/// The folder of the run that this one is part of, if another `highwater run` has started us.
pub fn outer_run() -> Option<PathBuf> {
    std::env::var_os(RUN).map(PathBuf::from).filter(|path| path.is_absolute() && path.is_dir())
}

/// Sets the variables of a command that runs with the folder `run`.
pub fn prepare(command: &mut Command, run: &Path, with_hook: bool) -> Places {
    let mut places = Places::default();
    let outer = outer_run();
    command.env(RUN, run);
    match xla_flags(std::env::var_os("XLA_FLAGS").as_deref(), run, outer.as_deref()) {
        Ok((value, users)) => {
            places.users_dump = users;
            command.env("XLA_FLAGS", value);
        }
        Err(note) => places.notes.push(note),
    }
    match poplar_options(std::env::var_os("POPLAR_ENGINE_OPTIONS").as_deref(), run, outer.as_deref()) {
        Ok((value, users)) => {
            places.users_reports = users;
            command.env("POPLAR_ENGINE_OPTIONS", value);
        }
        Err(note) => places.notes.push(note),
    }
    if with_hook && let Err(error) = add_hook(command, run) {
        places.notes.push(format!("Python's memory is not recorded at the end: {error}"));
    }
    places
}

/// Whether a folder is one that another `highwater run` around this one has set, and not the user.
fn is_outers(folder: &Path, outer: Option<&Path>) -> bool {
    outer.is_some_and(|outer| folder.starts_with(outer))
}

/// Flags for XLA that write every program's buffer assignment as a protobuf, and the user's own dump folder if there is
/// one among those set already. `outer` is the folder of the run around this one.
///
/// # Errors
/// A sentence, if the variable names a file of flags that cannot be read.
fn xla_flags(set: Option<&OsStr>, run: &Path, outer: Option<&Path>) -> Result<(OsString, Option<PathBuf>), String> {
    let set = set.unwrap_or_default();
    let mut value = set.to_owned();
    let text = set.to_string_lossy();
    // Anything that does not begin with a dash is the name of a file with flags.
    if !text.trim_start().is_empty() && !text.trim_start().starts_with('-') {
        let file = text.trim();
        let read = std::fs::read_to_string(file);
        value = read.map_err(|error| format!("XLA_FLAGS names {file}, which cannot be read: {error}"))?.trim().into();
    }
    let text = value.to_string_lossy().into_owned();
    let flags = Flags::parse(&text);
    let set_dump = flags.last("xla_dump_to").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let users_dump = set_dump.filter(|folder| !is_outers(folder, outer));
    let mut added = Vec::new();
    if users_dump.is_none() {
        added.push(format!("--xla_dump_to={}", quoted(&run.to_string_lossy())));
    }
    if flags.last("xla_dump_hlo_as_proto").is_none() {
        // A dump folder without a format means text, which a format that is named would switch off.
        let means_text = users_dump.is_some() && !flags.names().any(|name| name.starts_with("xla_dump_hlo_as_"));
        if means_text {
            added.push("--xla_dump_hlo_as_text".to_owned());
        }
        added.push("--xla_dump_hlo_as_proto".to_owned());
    }
    for flag in added {
        if !value.is_empty() {
            value.push(" ");
        }
        value.push(flag);
    }
    // A relative folder is the command's, which starts where we are.
    Ok((value, users_dump.map(|folder| std::path::absolute(&folder).unwrap_or(folder))))
}

/// Options for Poplar that write the graph profile, and the user's own report folder if there is one among those set.
/// `outer` is the folder of the run around this one.
///
/// # Errors
/// A sentence, if the variable holds no JSON object.
fn poplar_options(set: Option<&OsStr>, run: &Path, outer: Option<&Path>) -> Result<(String, Option<PathBuf>), String> {
    let text = set.map(OsStr::to_string_lossy).unwrap_or_default();
    let mut options: Map<String, Value> = if text.trim().is_empty() {
        Map::new()
    } else {
        serde_json::from_str(&text)
            .map_err(|error| format!("POPLAR_ENGINE_OPTIONS is no JSON object, it was left as it is: {error}"))?
    };
    let directory = options.get("autoReport.directory").and_then(Value::as_str).map(PathBuf::from);
    let directory = directory.filter(|folder| !is_outers(folder, outer));
    if directory.is_none() {
        options.insert("autoReport.directory".to_owned(), run.join("poplar").to_string_lossy().into());
    }
    if !options.contains_key("autoReport.all") {
        options.entry("autoReport.outputGraphProfile").or_insert_with(|| "true".into());
    }
    Ok((Value::Object(options).to_string(), directory))
}

/// Writes the hook and puts it before everything that Python loads.
fn add_hook(command: &mut Command, run: &Path) -> std::io::Result<()> {
    let folder = run.join(HOOK_FOLDER);
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("sitecustomize.py"), HOOK)?;
    let mut path = folder.clone().into_os_string();
    if let Some(own) = std::env::var_os("PYTHONPATH").filter(|own| !own.is_empty()) {
        path.push(if cfg!(windows) { ";" } else { ":" });
        path.push(own);
    }
    command.env("PYTHONPATH", path);
    Ok(())
}

/// Removes what only served the running command.
pub fn clean_up(run: &Path) {
    let _ = std::fs::remove_dir_all(run.join(HOOK_FOLDER));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(set: &str) -> (String, Option<PathBuf>) {
        let (value, users) = xla_flags(Some(OsStr::new(set)), Path::new("/run"), None).expect("flags");
        (value.into_string().expect("UTF-8"), users)
    }

    #[test]
    fn flags_are_added_to_those_that_are_set() {
        assert_eq!(flags(""), ("--xla_dump_to=/run --xla_dump_hlo_as_proto".to_owned(), None));
        let (value, users) = flags("--xla_force_host_platform_device_count=8");
        assert_eq!(value, "--xla_force_host_platform_device_count=8 --xla_dump_to=/run --xla_dump_hlo_as_proto");
        assert_eq!(users, None);
    }

    #[test]
    fn a_dump_folder_of_the_user_is_used_and_keeps_its_text() {
        let (value, users) = flags("--xla_dump_to=/mine");
        assert_eq!(value, "--xla_dump_to=/mine --xla_dump_hlo_as_text --xla_dump_hlo_as_proto");
        assert_eq!(users, Some(PathBuf::from("/mine")));
        let whole = "--xla_dump_to='/my dump' --xla_dump_hlo_as_proto=true";
        assert_eq!(flags(whole), (whole.to_owned(), Some(PathBuf::from("/my dump"))));
        let (value, _) = flags("--xla_dump_to=/mine --xla_dump_hlo_as_html");
        assert_eq!(value, "--xla_dump_to=/mine --xla_dump_hlo_as_html --xla_dump_hlo_as_proto");
    }

    #[test]
    fn flags_in_a_file_are_read_from_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("flags");
        std::fs::write(&file, "--xla_dump_to=/mine --xla_dump_hlo_as_proto\n").expect("written");
        let set = file.to_str().expect("UTF-8");
        assert_eq!(flags(set).1, Some(PathBuf::from("/mine")));
        let error =
            xla_flags(Some(OsStr::new("/nonexistent/flags")), Path::new("/run"), None).expect_err("no such file");
        assert!(error.contains("/nonexistent/flags"), "{error}");
    }

    #[test]
    fn a_run_within_a_run_has_its_own_folder() {
        let (outer, run) = (Path::new("/outer"), Path::new("/outer/run"));
        let set = OsStr::new("--xla_dump_to=/outer/process-7 --xla_dump_hlo_as_proto");
        let (value, users) = xla_flags(Some(set), run, Some(outer)).expect("flags");
        let flags = value.into_string().expect("UTF-8");
        assert!(flags.ends_with("--xla_dump_to=/outer/run"), "the last one counts: {flags}");
        assert_eq!(users, None);
        let set = OsStr::new(r#"{"autoReport.directory":"/outer/poplar"}"#);
        let (value, users) = poplar_options(Some(set), run, Some(outer)).expect("options");
        assert_eq!((value.contains("/outer/run/poplar"), users), (true, None));
        let (_, users) = xla_flags(Some(OsStr::new("--xla_dump_to=/mine")), run, Some(outer)).expect("flags");
        assert_eq!(users, Some(PathBuf::from("/mine")));
    }

    #[test]
    fn options_of_poplar_are_merged() {
        let set = OsStr::new(r#"{"target.syncMethod":"polling","autoReport.outputGraphProfile":"false"}"#);
        let (value, users) = poplar_options(Some(set), Path::new("/run"), None).expect("options");
        let options: Value = serde_json::from_str(&value).expect("JSON");
        assert_eq!(options["target.syncMethod"], "polling");
        assert_eq!(options["autoReport.outputGraphProfile"], "false", "the user's word stands");
        assert_eq!(options["autoReport.directory"], "/run/poplar");
        assert_eq!(users, None);
        let (_, users) =
            poplar_options(Some(OsStr::new(r#"{"autoReport.directory":"/mine"}"#)), Path::new("/run"), None)
                .expect("options");
        assert_eq!(users, Some(PathBuf::from("/mine")));
        assert!(poplar_options(Some(OsStr::new("not JSON")), Path::new("/run"), None).is_err());
    }
}
