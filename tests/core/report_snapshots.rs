//! Snapshots of the report of every sample: text, Markdown and JSON, with five rows in every list; and that advice is the
//! same each time.

use highwater::advisor::advise_against;
use highwater::analysis::ProfileAnalysis;
use highwater::export::report::{self, Format, Options};
use highwater::model::{Bytes, MemorySpace};
use highwater::open;
use highwater::source::Progress;

use crate::common::{self, Files};

#[test]
fn the_reports_of_the_samples_stay_as_they_were_read() {
    let root = common::samples();
    for path in common::sample_programs() {
        let mut profile = open::open_path(&path, &Progress::default()).expect("opens");
        for source in &mut profile.sources {
            source.path = source.path.replace(&format!("{}/", root.display()), "");
        }
        let analysis = ProfileAnalysis::new(&profile);
        let options = Options { top: 5, ..Options::default() };
        let report = report::build(&[(&profile, &analysis)], &[], &options);
        let case = profile.name.clone();
        for (format, name) in [(Format::Text, "text"), (Format::Markdown, "markdown"), (Format::Json, "json")] {
            insta::assert_snapshot!(format!("{case}.{name}"), report::write(&report, format));
        }
    }
}

/// Hashes are seeded anew each time, so an order that rests on one shows.
#[test]
fn advice_is_the_same_each_time() {
    let mut compared = 0;
    for path in Files::of_project().named(|name| common::ends_with(name, ".hlo.pb")) {
        let profile = open::open_path(&path, &Progress::default()).expect("opens");
        let advise = || {
            let analysis = ProfileAnalysis::new(&profile);
            let scene = analysis.scene(&profile, 0, MemorySpace::HBM)?;
            // So little memory that plans are made.
            let capacity = Bytes(scene.space.xprof.allocated.0 / 10 * 7);
            Some(format!("{:?}", advise_against(&profile, &analysis, Some(capacity))))
        };
        let first = advise();
        for _ in 0..2 {
            assert_eq!(first, advise(), "{}", path.display());
        }
        compared += usize::from(first.is_some());
    }
    assert!(compared >= 30, "{compared}");
}
