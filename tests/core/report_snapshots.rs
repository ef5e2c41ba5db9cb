//! Snapshots of the report of every sample: text, Markdown and JSON, with five rows in every list.

use highwater::analysis::ProfileAnalysis;
use highwater::export::report::{self, Format, Options};
use highwater::open;
use highwater::source::Progress;

use crate::common;

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
