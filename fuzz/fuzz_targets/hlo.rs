//! Decodes arbitrary bytes as an HLO proto, then analyses and reports the result.
#![no_main]

use highwater::analysis::ProfileAnalysis;
use highwater::decode;
use highwater::export::report::{self, Format, Options};
use highwater::open;
use highwater::source::{Input, Progress};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(input) = Input::from_bytes("fuzz.hlo.pb", bytes.to_vec().into()) else { return };
    // Inputs detected as other formats have their own targets.
    if !decode::hlo::recognises(input.head()) {
        return;
    }
    let Ok(profile) = open::open_input(&input, &Progress::default()) else { return };
    let analysis = ProfileAnalysis::new(&profile);
    let options = Options { top: 20, curve: true, buffers: true, ..Options::default() };
    let report = report::build(&[(&profile, &analysis)], &[], &options);
    for format in [Format::Text, Format::Json, Format::Markdown] {
        assert!(!report::write(&report, format).is_empty());
    }
});
