//! Shared body of the targets: decoding, analysis and report.

use highwater::analysis::ProfileAnalysis;
use highwater::decode::{Context, Decoder, Reporter};
use highwater::export::report::{self, Format, Options};
use highwater::source::{Input, Progress};

/// Decodes bytes with one decoder, analyses the profile and writes the report in every format.
pub fn through(decoder: &dyn Decoder, bytes: &[u8]) {
    let Ok(input) = Input::from_bytes("fuzz", bytes.to_vec().into()) else { return };
    let (progress, reporter) = (Progress::default(), Reporter::default());
    let _ = decoder.recognises(&input);
    let Ok(profile) = decoder.decode(&input, Context { progress: &progress, reporter: &reporter }) else { return };
    let analysis = ProfileAnalysis::new(&profile);
    let options = Options { top: 20, curve: true, buffers: true, ..Options::default() };
    let report = report::build(&[(&profile, &analysis)], &[], &options);
    for format in [Format::Text, Format::Json, Format::Markdown] {
        assert!(!report::write(&report, format).is_empty());
    }
}
