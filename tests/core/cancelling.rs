//! Who cancels gets the processor back: every stage of opening looks whether it is still wanted, and keeps nothing that
//! it has only half found out.

use std::cell::Cell;
use std::fs;
use std::io::{self, Read, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use highwater::analysis::live_range::LiveRanges;
use highwater::analysis::{ProfileAnalysis, ProgramAnalysis, Stop, Stopped};
use highwater::decode::{Context, DECODERS, Reporter, hlo};
use highwater::model::{Device, Profile};
use highwater::open::{Collection, Opened, Target, open_path};
use highwater::source::{ArchiveKind, Input, Progress, SourceError, Tree};

use crate::common;
use crate::xla_made;

fn cancelled() -> Progress {
    let progress = Progress::default();
    progress.cancel();
    progress
}

/// A file in a temporary folder, removed when dropped.
struct Made(PathBuf);

impl Made {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("highwater-cancelling-{}-{name}", std::process::id()));
        fs::write(&path, bytes).expect("written");
        Self(path)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn reading_ends_with_the_step_in_which_it_was_cancelled() {
    /// Cancels once some bytes were read, and counts what is still asked for.
    struct Endless<'a> {
        progress: &'a Progress,
        before: u64,
        after: &'a Cell<u64>,
    }
    impl Read for Endless<'_> {
        fn read(&mut self, space: &mut [u8]) -> io::Result<usize> {
            if self.before < 10 << 20 {
                self.before += space.len() as u64;
            } else {
                self.progress.cancel();
                self.after.set(self.after.get() + space.len() as u64);
            }
            space.fill(b'x');
            Ok(space.len())
        }
    }
    let (progress, after) = (Progress::default(), Cell::new(0));
    let result = Input::from_reader("-", Endless { progress: &progress, before: 0, after: &after }, &progress);
    assert!(matches!(result, Err(SourceError::Cancelled)));
    assert!(after.get() <= 4 << 20, "{} bytes after cancelling", after.get());
}

#[test]
fn every_format_stops() {
    let files = common::sample_programs().into_iter().chain(common::sample_profiles());
    for path in files {
        let input = Input::open(&path).expect("readable");
        // What was read already does not keep it from stopping.
        input.load(&Progress::default()).expect("readable");
        let Some(decoder) = DECODERS.iter().find(|decoder| decoder.recognises(&input)) else { continue };
        // These are no larger than what other formats do between two looks.
        if ["XLA HLO proto", "XSpace trace", "out-of-memory text"].iter().all(|format| *format != decoder.format()) {
            continue;
        }
        let (progress, reporter) = (cancelled(), Reporter::default());
        let result = decoder.decode(&input, Context { progress: &progress, reporter: &reporter });
        assert!(result.is_err_and(|error| error.is_cancelled()), "{}", path.display());
    }
}

#[test]
fn a_text_stops() {
    let text = "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 17.09G of 15.75G hbm.\n".repeat(2000);
    let file = Made::new("run.log", text.as_bytes());
    assert!(open_path(&file.0, &cancelled()).is_err_and(|error| error.is_cancelled()));
}

/// Whether each program has a schedule of its own, so that every step of its analysis is taken.
fn analysis_has_ranges(profile: &Profile) -> bool {
    profile.programs.iter().all(|program| program.reported_ranges.is_none() && LiveRanges::new(program).is_some())
}

#[test]
fn analysis_stops_in_each_of_its_parts() {
    let flag = AtomicBool::new(true);
    let stop = Stop::once(&flag);
    for path in common::sample_programs() {
        let program = common::program(&path);
        if LiveRanges::new(&program).is_some() && program.reported_ranges.is_none() {
            assert_eq!(LiveRanges::unless(&program, stop).err(), Some(Stopped), "{}", path.display());
        }
        let profile = open_path(&path, &Progress::default()).expect("a profile");
        assert_eq!(ProgramAnalysis::unless(&program, &Device::default(), stop).err(), Some(Stopped));
        assert_eq!(ProfileAnalysis::unless(&profile, stop).err(), Some(Stopped));
        let (wanted, done) = (AtomicBool::new(false), AtomicU64::new(0));
        assert!(ProfileAnalysis::unless(&profile, Stop::once(&wanted).counting(&done)).is_ok());
        let (done, steps) = (done.into_inner(), ProfileAnalysis::steps(&profile));
        let is_scheduled = analysis_has_ranges(&profile);
        assert!(done <= steps && (done == steps || !is_scheduled), "{done} of {steps} in {}", path.display());
    }
}

#[test]
fn a_program_of_a_trace_stops() {
    let modules = ["/v5e_mlp_f32/", "/v6e_replicated_oom/"];
    let modules = modules.map(|part| common::bytes(&common::sample_program(part)).to_vec());
    let trace = xla_made::trace_of_modules(&[("jit_a", 1, &modules[0]), ("jit_b", 2, &modules[1])]);
    let file = Made::new("two.xplane.pb", &trace);
    assert!(open_path(&file.0, &cancelled()).is_err_and(|error| error.is_cancelled()));
    let whole = Progress::default();
    let opened = Target::Path(file.0.clone()).open(&whole).and_then(|opened| opened.listed(&[], &whole));
    let Ok(Opened::Collection(collection)) = opened else { panic!("{opened:?}") };
    assert!(collection.open_entry(0, &cancelled()).is_err_and(|error| error.is_cancelled()));
    let profile = open_path(&file.0, &whole).expect("a trace");
    assert!(profile.modules[0].source.load(&Arc::new(AtomicBool::new(true))).is_err());
    assert!(profile.modules[0].source.load(&Arc::default()).is_ok());
}

#[test]
fn an_archive_stops_and_is_not_remembered_by_halves() {
    let module = common::bytes(&common::sample_program("/v6e_replicated_oom/")).to_vec();
    let mut zip = zip::ZipWriter::new(io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for number in 0..3 {
        zip.start_file(format!("module_000{number}.jit_f.after_optimizations.hlo.pb"), options).expect("in memory");
        zip.write_all(&module).expect("in memory");
    }
    let file = Made::new("dumps.zip", &zip.finish().expect("in memory").into_inner());
    let input = Input::open(&file.0).expect("readable");
    let tree = Tree::archive(&input, ArchiveKind::Zip, &Progress::default()).expect("an archive");
    assert!(matches!(tree.members[0].open(&cancelled()), Err(SourceError::Cancelled)));
    let whole = Progress::default();
    tree.members[0].open(&whole).expect("a member");
    assert_eq!(whole.counts().0, module.len() as u64, "its bytes are its progress");

    let collection = Collection::open(&file.0, &Progress::default()).expect("an archive");
    assert!(collection.worst_first(&cancelled()).is_err());
    assert!(collection.entries.iter().all(|entry| entry.known().is_none()), "cancelled, nothing is known");
    assert!(collection.open_entry(0, &cancelled()).is_err_and(|error| error.is_cancelled()));
    assert_eq!(collection.worst_first(&Progress::default()).expect("not cancelled").len(), 3);
    assert!(collection.entries.iter().all(|entry| entry.known().is_some_and(|(needs, _)| needs.0 > 0)));
}

#[test]
fn instructions_are_not_decoded_for_nobody() {
    let bytes = common::bytes(&common::sample_program("/v5e_gpt_m_oom/"));
    let reporter = Reporter::default();
    let result = hlo::decode(&bytes, &cancelled(), &reporter);
    assert!(matches!(result, Err(hlo::HloError::Cancelled(_))));
    assert!(reporter.finish().is_empty(), "what was not looked at is not damaged");
}
