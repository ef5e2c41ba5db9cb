//! Comparisons that need something outside the project: a larger collection of dumps and messages, an X server. Each
//! set runs when an environment variable asks for it, and then fails if anything is missing; otherwise one line says
//! how many comparisons were skipped. The checks are those of `tests/core`, where they run over the project's files.
//!
//! `HIGHWATER_PROFILES=DIR HIGHWATER_OOM_TEXTS=DIR HIGHWATER_DISPLAY=1 HIGHWATER_PYTHON=PROGRAM HIGHWATER_BROWSER=PROGRAM cargo test --release --test outside
//! [WORDS]`
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]
#![allow(dead_code, unused_imports, reason = "what runs over the project's own files is built in tests/core")]

use std::panic::catch_unwind;
use std::process::ExitCode;

use rayon::prelude::*;

use common::{Files, asked_for};

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/poplar_files.rs"]
mod poplar_files;
#[path = "../common/xla_made.rs"]
mod xla_made;

#[path = "../core/advisor.rs"]
mod advisor;
#[path = "../core/at_the_peak.rs"]
mod at_the_peak;
mod browser;
#[path = "../core/caching_allocator.rs"]
mod caching_allocator;
#[path = "../core/compare.rs"]
mod compare;
mod duckdb;
#[path = "../core/formats.rs"]
mod formats;
#[path = "../core/forms.rs"]
mod forms;
#[path = "../core/heat_columns.rs"]
mod heat_columns;
#[path = "../core/live_ranges.rs"]
mod live_ranges;
#[path = "../core/memory_map.rs"]
mod memory_map;
#[path = "../core/oom_texts.rs"]
mod oom_texts;
mod others;
#[path = "../core/packing.rs"]
mod packing;
#[path = "../core/pairs.rs"]
mod pairs;
#[path = "../core/parity_xprof.rs"]
mod parity_xprof;
#[path = "../core/peaks.rs"]
mod peaks;
#[path = "../core/poplar.rs"]
mod poplar;
#[path = "../core/runtime.rs"]
mod runtime;
mod window;

mod real_runs;

/// What a comparison requires.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Dumps with the numbers of other tools.
    Profiles,
    /// Out-of-memory messages with the expected contents of their reports.
    Texts,
    /// An X server started by the test.
    Display,
    /// A Python with jax, libtpu, duckdb and pytz.
    Python,
    /// A Python with tensorflow.
    TensorFlow,
    /// A Chromium without a window.
    Browser,
}

impl Needs {
    const ALL: [Self; 6] = [Self::Profiles, Self::Texts, Self::Display, Self::Python, Self::TensorFlow, Self::Browser];

    fn variable(self) -> &'static str {
        match self {
            Self::Profiles => "HIGHWATER_PROFILES",
            Self::Texts => "HIGHWATER_OOM_TEXTS",
            Self::Display => "HIGHWATER_DISPLAY",
            Self::Python => "HIGHWATER_PYTHON",
            Self::TensorFlow => "HIGHWATER_TENSORFLOW",
            Self::Browser => "HIGHWATER_BROWSER",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::Profiles => "comparisons with the shared collection of profiles",
            Self::Texts => "comparisons with the shared collection of messages",
            Self::Display => "walks through a window on a real X server",
            Self::Python => "runs of real programs, and questions to exported tables, in Python",
            Self::TensorFlow => "runs of TensorFlow",
            Self::Browser => "HTML reports in a browser",
        }
    }

    fn is_asked_for(self) -> bool {
        std::env::var_os(self.variable()).is_some_and(|value| !value.is_empty())
    }
}

/// A comparison over files, of which there must be at least one.
fn some(compare: fn(&Files) -> usize) {
    assert!(compare(&Files::of_collection()) > 0, "nothing was compared");
}

/// As [`some`], over one folder of the collection only; programs elsewhere need not pass.
fn some_below(folder: &str, compare: fn(&Files) -> usize) {
    assert!(compare(&Files::of_collection().below(folder)) > 0, "nothing was compared");
}

fn all(compare: fn(&Files)) {
    compare(&Files::of_collection());
}

fn messages(check: fn(&[oom_texts::OomText])) {
    check(&oom_texts::texts(&asked_for("HIGHWATER_OOM_TEXTS")));
}

type Comparison = (&'static str, Needs, fn());

const COMPARISONS: &[Comparison] = &[
    ("advisor::rules", Needs::Profiles, || all(others::rules)),
    ("advisor::what_if", Needs::Profiles, || some(advisor::findings_are_their_what_if)),
    ("advisor::causes", Needs::Profiles, || some_below("xla", advisor::causes_come_first)),
    ("at_the_peak::add_up", Needs::Profiles, || some(at_the_peak::add_up)),
    ("caching_allocator::expected", Needs::Profiles, || {
        some_below("pytorch", caching_allocator::compare_with_expected);
    }),
    ("caching_allocator::hostile", Needs::Profiles, || some_below("pytorch", others::hostile_pickles)),
    ("browser::reports_open_without_network", Needs::Browser, browser::reports_open_without_network),
    ("compare::compilers", Needs::Profiles, || all(others::compilers)),
    ("compare::matching", Needs::Profiles, || all(others::matching)),
    ("compare::pairs", Needs::Profiles, || some(compare::match_pairs)),
    ("formats::content_decides", Needs::Profiles, || some(formats::open_without_a_name)),
    ("forms::memory_viewer_json", Needs::Profiles, || some(forms::compare_memory_viewer_json)),
    ("forms::buffer_assignments", Needs::Profiles, || some(forms::compare_buffer_assignments)),
    ("forms::assignments_with_ranges", Needs::Profiles, || some(forms::compare_assignments_with_ranges)),
    ("forms::usage_protobufs", Needs::Profiles, || some(forms::compare_usage_protobufs)),
    ("forms::usage_texts", Needs::Profiles, || some(forms::compare_usage_texts)),
    ("forms::traces", Needs::Profiles, || some(forms::compare_traces)),
    ("forms::reports_beside", Needs::Profiles, || some(forms::compare_reports_beside)),
    ("forms::wrapped_trace", Needs::Profiles, || all(others::wrapped_trace)),
    ("heat_columns::add_up", Needs::Profiles, || some(heat_columns::add_up_columns)),
    ("live_ranges::equal", Needs::Profiles, || some(live_ranges::compare_live_ranges)),
    ("memory_map::add_up", Needs::Profiles, || some(memory_map::add_up_groups)),
    ("packing::reproduced", Needs::Profiles, || {
        let (online, fallback) = packing::pack_again(&Files::of_collection());
        assert!(online > 0 && fallback > 0, "{online} and {fallback}");
    }),
    ("pairs::predictions", Needs::Profiles, || all(others::predictions)),
    ("pairs::unchanged", Needs::Profiles, || some(pairs::unchanged_programs)),
    ("parity_xprof::memory_spaces", Needs::Profiles, || some(parity_xprof::compare_memory_spaces)),
    ("peaks::known", Needs::Profiles, || all(others::known_peaks)),
    ("peaks::events", Needs::Profiles, || some_below("xla", peaks::place_events)),
    ("peaks::padded_sizes", Needs::Profiles, || some(peaks::pad_shapes)),
    ("poplar::totals", Needs::Profiles, || some_below("poplar", poplar::compare_totals)),
    ("poplar::genuine_cache", Needs::Profiles, || all(others::genuine_cache)),
    ("scaling::largest_batches", Needs::Profiles, others::largest_batches),
    ("report::sentences", Needs::Profiles, others::sentences),
    ("runtime::histories", Needs::Profiles, || some(runtime::compare_histories)),
    ("oom_texts::keys", Needs::Texts, || messages(oom_texts::keys_are_reported)),
    ("oom_texts::wrapped", Needs::Texts, || messages(oom_texts::wrapped_texts_say_the_same)),
    ("oom_texts::cut", Needs::Texts, || messages(oom_texts::cut_texts_do_not_contradict)),
    ("oom_texts::printed_listings", Needs::Texts, || {
        assert!(oom_texts::every_entry_is_listed(&oom_texts::printed_listings(&asked_for("HIGHWATER_OOM_TEXTS"))) > 0);
    }),
    ("duckdb::answers", Needs::Python, duckdb::answers_the_questions_of_the_readme),
    ("real_runs::on_the_processor", Needs::Python, real_runs::on_the_processor),
    ("real_runs::out_of_memory_on_a_tpu", Needs::Python, real_runs::out_of_memory_on_a_tpu),
    ("real_runs::torch_stand_in", Needs::Python, real_runs::torch_stand_in),
    ("real_runs::two_processes", Needs::Python, real_runs::two_processes),
    ("real_runs::tensorflow", Needs::TensorFlow, real_runs::tensorflow),
    ("window::opens_takes_keys_and_quits", Needs::Display, window::opens_takes_keys_and_quits),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let is_wanted = |comparison: &&Comparison| {
        comparison.1.is_asked_for() && (words.is_empty() || words.iter().any(|word| comparison.0.contains(*word)))
    };
    let wanted: Vec<&Comparison> = COMPARISONS.iter().filter(is_wanted).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        for (name, ..) in wanted {
            println!("{name}: test");
        }
        return ExitCode::SUCCESS;
    }
    for needs in Needs::ALL.into_iter().filter(|needs| !needs.is_asked_for()) {
        let count = COMPARISONS.iter().filter(|comparison| comparison.1 == needs).count();
        println!("{count} {} left out: {} is not set", needs.what(), needs.variable());
    }
    println!("\nrunning {} comparisons", wanted.len());
    std::panic::set_hook(Box::new(|info| eprintln!("{info}")));
    // Window tests run alone: a busy machine loses key presses.
    let (walks, comparisons): (Vec<_>, Vec<_>) = wanted.into_iter().partition(|wanted| wanted.1 == Needs::Display);
    let mut failed: Vec<String> = comparisons.into_par_iter().filter_map(failure).collect();
    failed.extend(walks.into_iter().filter_map(failure));
    println!("\n{} failed", failed.len());
    for failure in &failed {
        println!("{failure}");
    }
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one comparison; returns its message if it failed.
fn failure((name, _, run): &Comparison) -> Option<String> {
    let panic = catch_unwind(run).err();
    println!("test {name} ... {}", if panic.is_some() { "FAILED" } else { "ok" });
    let panic = panic?;
    let text = panic.downcast_ref::<String>().map(String::as_str);
    Some(format!("{name}: {}", text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")))
}
