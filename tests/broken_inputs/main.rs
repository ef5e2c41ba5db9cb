//! Broken input is normal input: truncated, corrupted or badly compressed files, and files that are not profiles, give
//! a message with a position, never a panic, a hang, or unbounded memory.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

#[path = "../common/mod.rs"]
mod common;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use highwater::analysis::ProfileAnalysis;
use highwater::export::report::{self, Format, Options};
use highwater::model::{Note, NoteCode, Profile, Stream};
use highwater::open;
use highwater::source::{Input, Progress, SharedBytes};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Number of truncations of each sample, and number of bits flipped, one at a time.
const CUTS: usize = 200;
const FLIPS: usize = 2_000;

/// Time limit for anything, even on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// The allocator counts for the whole process, so only one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A small random number generator with a fixed seed (splitmix64), so that failures are reproducible.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Prediction of an input: its notes, or the error.
type Prediction = Result<Vec<Note>, String>;

/// Everything the program does with an input, up to writing the report.
fn everything(bytes: Vec<u8>) -> Prediction {
    let progress = Progress::default();
    let input = Input::from_bytes("broken", bytes.into()).map_err(|error| error.to_string())?;
    let profile = open::open_input(&input, &progress).map_err(|error| error.to_string())?;
    write_report(&profile);
    Ok(profile.notes)
}

fn write_report(profile: &Profile) {
    let analysis = ProfileAnalysis::new(profile);
    let options = Options { top: 20, curve: true, ..Options::default() };
    let report = report::build(&[(profile, &analysis)], &[], &options);
    for format in [Format::Text, Format::Json, Format::Markdown, Format::Html] {
        assert!(!report::write(&report, format).is_empty());
    }
}

/// A worker that processes one input after the other, so that a hang is detected.
struct Worker {
    inputs: mpsc::Sender<Vec<u8>>,
    outcomes: mpsc::Receiver<(Prediction, usize)>,
}

impl Worker {
    fn new() -> Self {
        let (inputs, incoming) = mpsc::channel::<Vec<u8>>();
        let (outgoing, outcomes) = mpsc::channel();
        std::thread::spawn(move || {
            for bytes in incoming {
                let before = ALLOCATOR.current_usage();
                ALLOCATOR.reset_peak_usage();
                let outcome = everything(bytes);
                let taken = ALLOCATOR.peak_usage().saturating_sub(before);
                if outgoing.send((outcome, taken)).is_err() {
                    return;
                }
            }
        });
        Self { inputs, outcomes }
    }

    /// The outcome; panics if the worker panicked, hung, or used too much memory.
    fn run(&self, what: &str, bytes: Vec<u8>) -> Prediction {
        let len = bytes.len();
        assert!(self.inputs.send(bytes).is_ok(), "{what}: the worker is gone");
        match self.outcomes.recv_timeout(PATIENCE) {
            Ok((outcome, taken)) => {
                assert!(taken <= 4 * len + 100_000_000, "{what}: {taken} bytes of memory for a file of {len}");
                outcome
            }
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what}: hangs"),
            Err(mpsc::RecvTimeoutError::Disconnected) => panic!("{what}: panics"),
        }
    }
}

/// An error has a position; the position of a note lies within the file.
fn check(what: &str, outcome: &Prediction, len: usize) {
    match outcome {
        Err(error) => assert!(error.contains("(at byte ") || len == 0, "{what}: no place in: {error}"),
        Ok(notes) => {
            // What a compressed file unpacks to is longer than the file.
            for Note { text, offset, .. } in notes.iter().filter(|note| note.stream != Stream::Unpacked) {
                assert!(offset.is_none_or(|offset| offset <= len as u64), "{what}: {text} at {offset:?} of {len}");
            }
        }
    }
}

fn samples() -> Vec<(String, SharedBytes)> {
    let mut all = common::sample_programs();
    all.extend(common::Files::of_project().named(|name| name.ends_with(".before_optimizations.hlo.pb")));
    all.iter().map(|path| (common::name(path), common::bytes(path))).collect()
}

#[test]
fn every_sample_can_be_cut_anywhere() {
    let _alone = alone();
    let worker = Worker::new();
    for (name, bytes) in samples() {
        let mut read = 0;
        for i in 0..CUTS {
            // Spread over the file, including its first and last bytes.
            let len = if i < 20 { i } else { bytes.len() - 1 - (CUTS - 1 - i) * (bytes.len() - 21) / (CUTS - 20) };
            let what = format!("{name} cut to {len} bytes");
            let outcome = worker.run(&what, bytes[..len].to_vec());
            check(&what, &outcome, len);
            if let Ok(notes) = outcome {
                read += 1;
                assert!(!notes.is_empty(), "{what}: nothing says that something is missing");
            }
        }
        assert!(read > CUTS / 2, "{name}: only {read} of {CUTS} cuts show what is left");
    }
}

#[test]
fn every_sample_survives_flipped_bits() {
    let _alone = alone();
    let worker = Worker::new();
    let mut random = Random(20_240_917);
    for (name, bytes) in samples() {
        for _ in 0..FLIPS {
            let (at, bit) = (random.below(bytes.len()), random.below(8));
            let mut broken = bytes.to_vec();
            broken[at] ^= 1 << bit;
            let what = format!("{name} with bit {bit} of byte {at} flipped");
            check(&what, &worker.run(&what, broken), bytes.len());
        }
    }
}

#[test]
fn many_flipped_bits_at_once() {
    let _alone = alone();
    let worker = Worker::new();
    let mut random = Random(7);
    for (name, bytes) in samples().into_iter().filter(|(_, bytes)| bytes.len() < 100_000) {
        for round in 0..300 {
            let mut broken = bytes.to_vec();
            for _ in 0..=random.below(64) {
                let at = random.below(bytes.len());
                broken[at] = random.next() as u8;
            }
            let what = format!("{name} with many flipped bits, round {round}");
            check(&what, &worker.run(&what, broken), bytes.len());
        }
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("writing to memory");
    encoder.finish().expect("writing to memory")
}

#[test]
fn packed_samples_can_be_cut_and_flipped_too() {
    let _alone = alone();
    let worker = Worker::new();
    let mut random = Random(11);
    for (name, bytes) in samples().into_iter().filter(|(_, bytes)| bytes.len() < 100_000) {
        let packed = gzip(&bytes);
        for i in 0..50 {
            let len = i * packed.len() / 50;
            let what = format!("{name}.gz cut to {len} bytes");
            let outcome = worker.run(&what, packed[..len].to_vec());
            check(&what, &outcome, len);
            let is_said = |note: &Note| note.code == NoteCode::Truncated && note.offset == Some(len as u64);
            assert!(outcome.is_err() || outcome.is_ok_and(|notes| notes.iter().any(is_said)), "{what}: not noticed");
        }
        for _ in 0..100 {
            let mut broken = packed.clone();
            let at = random.below(broken.len());
            broken[at] ^= 1 << random.below(8);
            let what = format!("{name}.gz with byte {at} changed");
            // Positions in the unpacked file may lie beyond the end of the compressed one.
            if let Err(error) = worker.run(&what, broken) {
                assert!(error.contains("(at byte "), "{what}: {error}");
            }
        }
    }
}

#[test]
fn a_packed_bomb_is_refused_before_it_fills_the_memory() {
    let _alone = alone();
    let (_, sample) = samples().swap_remove(0);
    // Starts like a program, then continues for a gigabyte.
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&sample[..HEAD.min(sample.len())]).expect("writing to memory");
    let nothing = vec![0u8; 1 << 20];
    for _ in 0..1024 {
        encoder.write_all(&nothing).expect("writing to memory");
    }
    let bomb = encoder.finish().expect("writing to memory");
    let len = bomb.len();
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let error = everything(bomb).expect_err("refused");
    let taken = ALLOCATOR.peak_usage().saturating_sub(before);
    assert!(error.contains("too large"), "{error}");
    println!("a bomb of {len} bytes took {taken} bytes");
}

/// Enough of a sample for its format to be detected.
const HEAD: usize = 64 << 10;

fn open(path: &Path) -> Result<Profile, String> {
    open::open_path(path, &Progress::default()).map_err(|error| error.to_string())
}

#[test]
fn what_is_no_profile_is_named() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| -> PathBuf {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).expect("written");
        path
    };
    let error = |path: &Path| open(path).err().unwrap_or_else(|| panic!("{} opens", path.display()));
    assert!(error(&folder.path().join("missing.hlo.pb")).contains("cannot read"));
    assert!(error(folder.path()).contains("folder"));
    assert!(error(&file("empty.hlo.pb", b"")).contains("empty"));
    assert!(error(&file("program", b"\x7fELF\x02\x01\x01")).contains("a program, not a profile"));
    assert!(error(&file("picture.hlo.pb", b"\x89PNG\r\n\x1a\n")).contains("a picture"));
    let text = open(&file("notes.txt", b"a text about something else\n")).expect("any text opens");
    assert!(text.failures.is_empty() && text.programs.is_empty());
    assert!(text.notes.iter().any(|note| note.text.contains("No out-of-memory message")), "{:?}", text.notes);
    assert!(error(&file("zeros.hlo.pb", &[0; 4096])).contains("(at byte 0)"));
    let half = open(&file("half.gz", &gzip(b"short")[..12])).expect("what is there opens");
    assert_eq!(half.sources.first().and_then(|source| source.cut_at), Some(12), "{:?}", half.notes);
    assert!(error(&file("none.gz", &gzip(b"short")[..8])).contains("(at byte 8)"));
}

#[test]
fn a_file_that_shrinks_while_it_is_open_shows_what_is_left() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.hlo.pb");
    let (_, sample) = samples().into_iter().max_by_key(|(_, bytes)| bytes.len()).expect("samples");
    // Large enough to be read by two threads. Repeated protobuf messages are merged, so it remains a program.
    let whole: Vec<u8> = sample.iter().copied().cycle().take(3 * sample.len()).collect();
    for (left, when) in [(whole.len() / 3, "opened"), (whole.len() / 2 + 77, "opened"), (0, "opened")] {
        std::fs::write(&path, &whole).expect("written");
        let input = Input::open(&path).expect("opens");
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
        file.set_len(left as u64).expect("cut");
        let progress = Progress::default();
        let loaded = input.load(&progress).expect("reads what is there");
        assert_eq!(loaded.len(), left, "after it was {when}");
        if let Ok(profile) = open::open_input(&input, &progress) {
            write_report(&profile);
        }
    }
    // Truncated and rewritten repeatedly while it is read.
    let whole = Arc::new(whole);
    let (stop, stopped) = mpsc::channel::<()>();
    let writer = std::thread::spawn({
        let (path, whole) = (path.clone(), Arc::clone(&whole));
        move || {
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let _ = std::fs::write(&path, &whole[..whole.len() / 2]);
                let _ = std::fs::write(&path, &whole[..]);
            }
        }
    });
    for _ in 0..20 {
        match open(&path) {
            Ok(profile) => write_report(&profile),
            Err(error) => assert!(error.contains("(at byte ") || error.contains("empty"), "{error}"),
        }
    }
    drop(stop);
    writer.join().expect("the writer");
}
