//! A change has one verdict: what a finding's change comes to is said in the same words by Overview, Advisor, What if and
//! the report.

use highwater::analysis::ProfileAnalysis;
use highwater::export::report;
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::DeepLink;
use highwater::ui::session::ThemeChoice;
use serde_json::Value;

use crate::common;
use crate::gui::{self, words};

/// What the change of the first finding that has one comes to, as the report says it: `fits with 3.73 GiB to spare`;
/// `None` for a program that fits, of which the overview and a closed finding say only what is saved.
fn first_verdict(path: &std::path::Path) -> Option<String> {
    let profile = open::open_path(path, &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let report = report::build(&[(&profile, &analysis)], &[], &report::Options::default());
    let json: Value = serde_json::from_str(&report::write(&report, report::Format::Json)).expect("JSON");
    let profile = &json["profiles"][0];
    if profile["programs"].as_array().is_none_or(|programs| programs.len() != 1) {
        return None;
    }
    let effects = profile["findings"].as_array()?.iter().filter_map(|finding| finding["effect"].as_str());
    let mut verdicts = effects.filter_map(|effect| {
        let behind = effect.split_once("; with th")?.1;
        Some(behind.split_once(" alone")?.1.split_once(": ")?.1.to_owned())
    });
    let spaces = profile["programs"][0]["spaces"].as_array()?;
    verdicts.next().filter(|_| spaces.iter().any(|space| space["verdict"] == "over"))
}

#[test]
fn what_a_finding_comes_to_is_the_same_in_three_views_and_the_report() {
    let mut compared = 0;
    for path in common::sample_profiles() {
        let Some(verdict) = first_verdict(&path) else { continue };
        let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
        for (view, said) in [
            ("overview", vec![format!("then {verdict}"), format!("then still {verdict}")]),
            ("advisor", vec![format!("; {verdict}.")]),
            ("whatif", vec![verdict.clone()]),
        ] {
            harness.state_mut().files.current_mut().expect("open").shared.show_view(view);
            harness.run_ok();
            let labels = words(&harness);
            let is_said = labels.iter().any(|label| said.iter().any(|words| label.contains(words)));
            assert!(is_said, "{}, {view}: nothing says {said:?} in {labels:#?}", path.display());
        }
        compared += 1;
    }
    assert!(compared >= 3, "{compared} programs that do not fit");
}
