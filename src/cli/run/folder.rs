//! The folder of one run, which no other process writes to.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::environment::outer_run;

/// Variables in which launchers number the processes of a job.
const RANKS: &[&str] = &[
    "RANK",
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "SLURM_PROCID",
    "JAX_PROCESS_ID",
    "TPU_WORKER_ID",
    "CLOUD_TPU_TASK_ID",
];

/// Folders of one name that are tried.
const MOST: usize = 10_000;

/// Makes the folder of this run: `wanted`, or one named after program, process and time in the folder of the run around
/// this one or else among the temporary files. A
/// folder that holds something already is left alone, and so is one that another process has just made: the name then
/// gets a number.
///
/// # Errors
/// If it cannot be made; the error names it.
pub fn make(wanted: Option<&Path>, program: &OsStr) -> Result<PathBuf, String> {
    let cannot = |path: &Path, error: &io::Error| format!("{}: cannot make the folder: {error}", path.display());
    let first = match wanted {
        Some(path) => std::path::absolute(path).map_err(|error| cannot(path, &error))?,
        None => match outer_run() {
            Some(outer) => outer.join(name(program)),
            None => own_place()?.join(name(program)),
        },
    };
    if let Some(parent) = first.parent() {
        fs::create_dir_all(parent).map_err(|error| cannot(parent, &error))?;
    }
    for number in 1..=MOST {
        let mut path = first.clone();
        if number > 1 {
            let mut name = first.file_name().unwrap_or_default().to_owned();
            name.push(format!("-{number}"));
            path.set_file_name(name);
        }
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(cannot(&path, &error)),
        }
    }
    Err(format!("{}: there are {MOST} of this name", first.display()))
}

/// Our place among the temporary files, which only we may read.
fn own_place() -> Result<PathBuf, String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
        let user = rustix::process::getuid().as_raw();
        let place = std::env::temp_dir().join(format!("highwater-{user}"));
        match fs::DirBuilder::new().mode(0o700).create(&place) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(format!("{}: cannot make the folder: {error}; name one with --out", place.display()));
            }
            _ => {}
        }
        // Anybody may have made it before us.
        match fs::symlink_metadata(&place) {
            Ok(data) if data.is_dir() && data.uid() == user => Ok(place),
            _ => Err(format!("{} belongs to somebody else; name a folder with --out", place.display())),
        }
    }
    #[cfg(not(unix))]
    Ok(std::env::temp_dir().join("highwater"))
}

/// `20261122-160501-train-rank3`: the time (UTC), the program and, in a job of several processes, which one it is.
fn name(program: &OsStr) -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let program = Path::new(program).file_stem().unwrap_or_default().to_string_lossy();
    let program: String = program.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).take(40).collect();
    let rank = RANKS.iter().find_map(|name| std::env::var(name).ok()).filter(|rank| rank.parse::<u32>().is_ok());
    let rank = rank.map(|rank| format!("-rank{rank}")).unwrap_or_default();
    format!("{}-{program}{rank}", timestamp(seconds))
}

/// Seconds since 1970 as `20261122-160501`, UTC.
fn timestamp(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (mut year, mut day) = (1970, days);
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    format!("{year:04}{month:02}{:02}-{:02}{:02}{:02}", day + 1, second / 3600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_dates() {
        assert_eq!(timestamp(0), "19700101-000000");
        assert_eq!(timestamp(951_827_696), "20000229-123456");
        assert_eq!(timestamp(1_795_363_501), "20261122-160501");
    }
}
