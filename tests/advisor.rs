//! What the advisor says of real programs: the cause of each that does not fit first or second, nothing critical about
//! those that do.
#![allow(clippy::expect_used, clippy::panic, reason = "a test says what it expects")]

mod common;

use std::time::Instant;

use highwater::advisor::{Severity, advise};
use highwater::analysis::ProfileAnalysis;
use highwater::decode::open_path;
use highwater::source::Progress;

/// Case, and the rules of which one must come first or second.
const CAUSES: &[(&str, &[&str])] = &[
    ("v3_mlp2_oom", &["activations"]),
    ("v4_dlrm_oom", &["replicated"]),
    ("v5e_gpt_m_oom", &["activations"]),
    ("v5e_gpt_scan_oom", &["activations"]),
    ("v5e_mlp_oom", &["activations"]),
    ("v5e_moe_oom", &["unsharded_activations"]),
    ("v5e_pad_129_oom", &["donation"]),
    ("v5e_pad_cloud_oom", &["padding"]),
    ("v5e_pad_points_oom", &["oversized"]),
    ("v6e_replicated_oom", &["replicated"]),
];

#[test]
fn causes_come_first_or_second_and_nothing_is_critical_where_it_fits() {
    let mut wrong = Vec::new();
    for path in common::files(|name| name.starts_with("module_0000") && name.ends_with("after_optimizations.hlo.pb")) {
        let profile = open_path(&path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let start = Instant::now();
        let advice = advise(&profile, &analysis);
        let took = start.elapsed();
        let name = common::name(&path);
        println!("{name}: {} in {took:?}", profile.device.name.as_deref().unwrap_or("?"));
        for finding in &advice.findings {
            println!(
                "    {:<8} {:<22} {:>10}  fits {:?}  {} [{}]",
                finding.severity.name(),
                finding.rule,
                finding.saves_bytes.map(|b| b.short()).unwrap_or_default(),
                finding.fits_after,
                finding.title,
                finding.edits.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            );
        }
        for plan in &advice.plans {
            println!("    plan: {}", plan.summary);
        }
        let first: Vec<&str> = advice.findings.iter().map(|f| f.rule).take(2).collect();
        if let Some((case, rules)) = CAUSES.iter().find(|(case, _)| name.starts_with(&format!("{case}/"))) {
            if !rules.iter().any(|rule| first.contains(rule)) {
                wrong.push(format!("{case}: {first:?} instead of {rules:?}"));
            }
        } else if !name.contains("oom") && advice.findings.iter().any(|f| f.severity == Severity::Critical) {
            wrong.push(format!("{name}: something critical about a program that fits"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
