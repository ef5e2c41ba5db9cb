//! What a run has left behind, in a few lines: which program needs how much of what there is.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use highwater::advisor::advise_against;
use highwater::analysis::ProfileAnalysis;
use highwater::analysis::caching_allocator::{CachingAnalysis, FailedRequest};
use highwater::export::report::{self, Format, Options};
use highwater::model::{Bytes, MemorySpace, Profile, UnitSystem};
use highwater::open::{Collection, open_path};
use highwater::source::{Progress, Tree};

use crate::cli::inputs::override_capacity;

/// Programs over capacity that get a line of their own.
const MOST_LINES: usize = 5;

/// What was found after a run.
#[derive(Default)]
pub struct Found {
    /// Programs with a memory assignment, the worst first.
    programs: Vec<Program>,
    /// The worst program, or else the first other thing that was found, decoded.
    worst: Option<Profile>,
    /// The out-of-memory message in what the command printed, if it is not part of `worst`.
    message: Option<Profile>,
    /// Paths to open to see it all.
    pub paths: Vec<PathBuf>,
}

struct Program {
    name: String,
    needs: Bytes,
    capacity: Option<Bytes>,
}

impl Program {
    fn over(&self) -> Bytes {
        self.capacity.map_or(Bytes::ZERO, |capacity| self.needs.saturating_sub(capacity))
    }

    /// `jit_step needs 25.9 of 15.75 GiB: does not fit`.
    fn line(&self) -> String {
        let Some(capacity) = self.capacity else { return format!("{} needs {}", self.name, self.needs.short()) };
        let (needs, limit) = (UnitSystem::Binary.beside(self.needs, capacity), UnitSystem::Binary.capacity(capacity));
        // One unit is enough if it is that of both.
        let unit = limit.rsplit_once(' ').map_or("", |(_, unit)| unit);
        let needs = needs.strip_suffix(unit).map_or(needs.as_str(), str::trim_end);
        let verdict = if self.needs > capacity { "does not fit" } else { "fits" };
        format!("{} needs {needs} of {limit}: {verdict}", self.name)
    }
}

impl Found {
    /// Looks through the folder of a run and through the user's own folders, of which only files written since `since`
    /// count. `message` is the file that holds what the command printed, if there is a message in it.
    pub fn look(
        run: &Path,
        users: &[PathBuf],
        since: SystemTime,
        message: Option<&Path>,
        capacity: Option<Bytes>,
    ) -> Self {
        let mut found = Self::default();
        let mut most: Option<(Bytes, Bytes)> = None;
        for (folder, since) in [(run, None)].into_iter().chain(users.iter().map(|path| (path.as_path(), Some(since)))) {
            let Some(collection) = written(folder, since) else { continue };
            if folder == run || !collection.entries.is_empty() {
                found.paths.push(folder.to_owned());
            }
            let Ok(order) = collection.worst_first(&Progress::default()) else { continue };
            for row in &order {
                let entry = &collection.entries[*row];
                let Some(needs) = entry.glance().allocated_in(MemorySpace::HBM) else { continue };
                let capacity = capacity.or_else(|| entry.capacity());
                found.programs.push(Program { name: entry.full_name(), needs, capacity });
            }
            // What the command printed is joined to its program, or stands alone, below.
            let is_message = |row: &usize| message.is_some_and(|path| path.ends_with(&collection.entries[*row].file));
            let Some(first) = order.into_iter().find(|row| !is_message(row)) else { continue };
            let entry = &collection.entries[first];
            let rank = (capacity.or_else(|| entry.capacity()), entry.needs());
            let rank = (rank.0.map_or(Bytes::ZERO, |capacity| rank.1.saturating_sub(capacity)), rank.1);
            if most.is_none_or(|most| rank > most) {
                most = Some(rank);
                found.worst = collection.open_entry(first, &Progress::default()).ok();
            }
        }
        found.programs.sort_by_key(|program| std::cmp::Reverse((program.over(), program.needs)));
        if let (Some(worst), Some(bytes)) = (&mut found.worst, capacity) {
            override_capacity(worst, bytes);
        }
        // The message may know better than the table what the program could have had.
        if let (Some(worst), Some(program)) = (&found.worst, found.programs.first_mut())
            && let Some(limit) = worst.device.capacity(MemorySpace::HBM)
        {
            program.capacity = Some(limit.bytes);
        }
        let is_told = found.worst.as_ref().is_some_and(|worst| worst.failures.iter().any(|failure| failure.is_error));
        if let Some(path) = message.filter(|_| !is_told) {
            found.message = open_path(path, &Progress::default()).ok();
        }
        if let Some(path) = message.filter(|path| !path.starts_with(run) || found.paths.is_empty()) {
            found.paths.push(path.to_owned());
        }
        found
    }

    /// Whether nothing at all was found.
    pub const fn is_empty(&self) -> bool {
        self.worst.is_none() && self.message.is_none()
    }

    /// Whether memory ran out, or would have.
    pub fn has_failed(&self) -> bool {
        self.message.is_some()
            || self.programs.iter().any(|program| program.over() > Bytes::ZERO)
            || self.worst.as_ref().is_some_and(|worst| worst.failures.iter().any(|failure| failure.is_error))
            || self.failed_request().is_some()
    }

    /// What a snapshot of PyTorch's allocator says, if one was left behind.
    fn snapshot_line(&self) -> Option<String> {
        let snapshot = self.worst.as_ref()?.caching.as_ref()?;
        let devices = CachingAnalysis::of(snapshot);
        let failed = devices.iter().find_map(|device| device.failure().map(FailedRequest::headline));
        failed.or_else(|| {
            let peaks = devices.iter().map(|device| device.replay.peaks).max_by_key(|peaks| peaks.allocated.bytes)?;
            let (allocated, reserved) = (Bytes(peaks.allocated.bytes).short(), Bytes(peaks.reserved.bytes).short());
            Some(format!("PyTorch allocated at most {allocated} of {reserved} reserved"))
        })
    }

    /// Why a request of PyTorch's allocator failed, if a snapshot was left behind.
    fn failed_request(&self) -> Option<String> {
        let snapshot = self.worst.as_ref()?.caching.as_ref()?;
        CachingAnalysis::of(snapshot).iter().find_map(|device| device.failure().map(FailedRequest::headline))
    }

    /// A line for each program that matters: those that do not fit, or else the one that needs most; the last line says
    /// what to open.
    pub fn lines(&self) -> Vec<String> {
        let over = self.programs.iter().filter(|program| program.over() > Bytes::ZERO).count();
        let shown = self.programs.iter().take(over.clamp(1, MOST_LINES));
        let mut lines: Vec<String> = shown.map(Program::line).collect();
        if over > MOST_LINES {
            lines.push(format!("{} more programs do not fit", over - MOST_LINES));
        }
        if lines.is_empty() {
            lines.extend(self.snapshot_line());
        }
        if lines.is_empty() {
            let words = match (&self.worst, &self.message) {
                (_, Some(_)) => "out of memory; no program was dumped, the message alone is there",
                (Some(worst), None) => worst.name.as_str(),
                (None, None) => return lines,
            };
            lines.push(words.to_owned());
        }
        if let Some(last) = lines.last_mut() {
            last.push_str("; highwater");
            for path in &self.paths {
                let _ = write!(last, " {}", in_shell(path));
            }
        }
        lines
    }

    /// What to change in the worst program, if it does not fit: the plan, or else the first finding with its advice.
    pub fn what_to_change(&self) -> Option<String> {
        let is_over = self.programs.first().is_some_and(|program| program.over() > Bytes::ZERO);
        let worst = self.worst.as_ref().filter(|_| is_over || self.failed_request().is_some())?;
        let advice = advise_against(worst, &ProfileAnalysis::new(worst), None);
        let words = match (advice.plans.first(), advice.findings.first()) {
            (Some(plan), _) => format!("plan: {}", plan.in_words()),
            (None, Some(finding)) => {
                let first = finding.advice.first().map(|words| format!("; {words}")).unwrap_or_default();
                format!("{}{first}", finding.title)
            }
            (None, None) => return None,
        };
        Some(words.replace('`', ""))
    }

    /// Whether a program needs more than this share of its capacity, with a line for each that does; `None` if no
    /// capacity is known.
    pub fn over_share(&self, share: f64) -> Option<Vec<String>> {
        let known: Vec<_> = self.programs.iter().filter_map(|program| Some((program, program.capacity?))).collect();
        let is_over = |(program, capacity): &(&Program, Bytes)| program.needs.0 as f64 > capacity.0 as f64 * share;
        let line = |(program, capacity): (&Program, Bytes)| {
            let percent = program.needs.0 as f64 * 100.0 / capacity.0.max(1) as f64;
            format!("{} needs {percent:.1}\u{2009}% of {}", program.name, UnitSystem::Binary.capacity(capacity))
        };
        (!known.is_empty()).then(|| known.into_iter().filter(is_over).map(line).collect())
    }

    /// The report on the worst program, and on the message if it stands alone.
    pub fn report(&self) -> String {
        let options = Options { top: 10, ..Options::default() };
        let mut builder = report::Builder::new(&options);
        for profile in self.worst.iter().chain(&self.message) {
            builder.profile(profile, &ProfileAnalysis::new(profile));
        }
        report::write(&builder.finish().0, Format::Text)
    }
}

/// The profiles of a folder that were written since a time.
fn written(folder: &Path, since: Option<SystemTime>) -> Option<Collection> {
    let progress = Progress::default();
    let mut tree = Tree::folder(folder, &progress).ok()?;
    if let Some(since) = since {
        let modified = |path: &Path| path.metadata().and_then(|data| data.modified()).ok();
        tree.members.retain(|member| member.on_disk().and_then(modified).is_some_and(|time| time >= since));
    }
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    Collection::of(name, tree, &progress).ok()
}

/// A path as a shell reads it.
fn in_shell(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:@,".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_needed_of_what_there_is() {
        let program = |needs, capacity: Option<u64>| Program {
            name: "jit_step".to_owned(),
            needs: Bytes(needs),
            capacity: capacity.map(Bytes),
        };
        let gib = 1 << 30;
        assert_eq!(
            program(27_806_004_736, Some(63 * gib / 4)).line(),
            "jit_step needs 25.9 of 15.75 GiB: does not fit"
        );
        assert_eq!(program(1 << 20, Some(16 * gib)).line(), "jit_step needs 1.00 MiB of 16 GiB: fits");
        assert_eq!(program(1 << 20, None).line(), "jit_step needs 1.00 MiB");
    }

    #[test]
    fn a_path_can_be_copied_to_a_shell() {
        assert_eq!(in_shell(Path::new("/tmp/run-1")), "/tmp/run-1");
        assert_eq!(in_shell(Path::new("/tmp/my run's")), r"'/tmp/my run'\''s'");
    }
}
