//! The advisor's findings for real programs: for one that does not fit, the cause is the first or second finding; for
//! one that fits, no finding is critical.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use highwater::advisor::{Severity, advise, advise_against, advise_unless};
use highwater::analysis::what_if::{Depth, Edit};
use highwater::analysis::{ProfileAnalysis, ProgramAnalysis, Stop, Stopped, Verdict};
use highwater::model::{Bytes, Capacity, MemorySpace};
use highwater::open::open_path;
use highwater::source::Progress;

use crate::common::{self, Files};

/// Whether a memory space of a program exceeds its capacity.
fn is_over(program: &ProgramAnalysis) -> bool {
    program.spaces.iter().any(|space| matches!(space.verdict(), Verdict::Over { .. }))
}

/// Case, and rules of which one must come first or second.
const CAUSES: &[(&str, &[&str])] = &[
    ("v3_mlp2_oom", &["activations"]),
    ("v4_dlrm_oom", &["replicated"]),
    ("v5e_gpt_m_oom", &["attention_scores"]),
    ("v5e_gpt_scan_oom", &["activations", "attention_scores"]),
    ("v5e_inverse_oom", &["activations"]),
    ("v5e_mlp_oom", &["activations"]),
    ("v5e_moe_oom", &["unsharded_activations"]),
    ("v5e_pad_129_oom", &["donation"]),
    ("v5e_pad_cloud_oom", &["padding"]),
    ("v5e_pad_points_oom", &["oversized"]),
    ("v5e_prefill_oom", &["attention_scores"]),
    ("v6e_replicated_oom", &["replicated"]),
];

/// Rule, a case in which it must fire, and a capacity in MiB to assume (0 for the case's own).
const FIRES: &[(&str, &str, u64)] = &[
    ("replicated", "v6e_replicated_oom", 0),
    ("unsharded_activations", "v5e_moe_oom", 0),
    ("unsharded_activations", "v6e_gpt_m_scan_fsdp", 0),
    ("oversized", "v5e_pad_cloud_oom", 0),
    ("attention_scores", "v5e_gpt_m_oom", 0),
    ("logits", "v5e_gpt_m_oom", 0),
    // The vocabulary is that of a frozen model.
    ("logits", "v6e_lora", 0),
    // As many positions in a part of the loss as weights are wide.
    ("logits", "v5e_loss_in_parts", 0),
    ("donation", "v4_wave", 0),
    ("padding", "v6e_dlrm_repl_d3", 0),
    ("padding", "v5e_pad_cloud_oom", 0),
    ("donation", "v5e_mlp_f32", 0),
    ("activations", "v5e_mlp_oom", 0),
    ("precision", "v5e_mlp_f32", 0),
    ("state_in_place", "v6e_decode_b128", 0),
    ("arguments", "v6e_replicated_oom", 0),
    ("debug_callback", "v5e_mlp_f32_debugprint", 0),
    ("offload", "v5e_gpt_s_nodonate", 450),
    ("batch", "v5e_gpt_m_oom", 0),
    // Heads of one sequence, whose keys and values come from a cache.
    ("attention_scores", "v6e_prefill_chunk", 0),
];

/// Rule, and a case in which it must not fire.
const SILENT: &[(&str, &str)] = &[
    ("replicated", "v5e_pad_cloud_oom"),
    ("unsharded_activations", "v5e_gpt_m_oom"),
    ("unsharded_activations", "v5e_mlp_f32"),
    // As many windows of its own pictures as there are pictures on all devices, which exchange nothing but gradients.
    ("unsharded_activations", "v5e_windows"),
    ("oversized", "v5e_gpt_m_oom"),
    ("duplicate", "v5e_pad_129"),
    // Buffers that have a finding of their own are not reported again as a series.
    ("duplicate", "v5e_gpt_m_oom"),
    ("attention_scores", "v5e_mlp_f32"),
    ("logits", "v5e_mlp_f32"),
    // Layouts in which the awkward dimension costs nothing.
    ("padding", "v5e_pad_129_oom"),
    ("padding", "v5e_pad_2050"),
    ("padding", "v5e_mlp_f32"),
    ("donation", "v5e_mlp_f32_debugprint"),
    ("donation", "v6e_replicated_oom"),
    ("activations", "v6e_replicated_oom"),
    ("activations", "v6e_dlrm_repl_d3"),
    // Most of what its forward pass makes and keeps is a weight in bfloat16.
    ("activations", "v5e_loss_in_parts"),
    ("precision", "v6e_mlp_bf16_big"),
    ("state_in_place", "v5e_gpt_m_oom"),
    ("arguments", "v5e_gpt_m_oom"),
    ("debug_callback", "v5e_mlp_f32"),
    ("offload", "v5e_gpt_s_nodonate"),
    ("batch", "v5e_mlp_f32"),
    // Rows of a grid are no batch, and a solver is no neural network.
    ("batch", "v5e_inverse_oom"),
    ("precision", "v5e_inverse_oom"),
    ("precision", "v4_wave"),
    ("offload", "v5e_speculate"),
    ("fragmentation", "v5e_gpt_m_oom"),
    ("layout_copy", "v5e_gpt_m_oom"),
    ("scoped_vmem", "v5e_gpt_m_oom"),
    // The next positions of one sequence are no batch.
    ("batch", "v6e_prefill_chunk"),
    // Exponentials of what is kept within bounds are decays.
    ("attention_scores", "v5e_decays"),
];

fn rules_of(path: &Path, capacity_mib: u64) -> Vec<&'static str> {
    let mut profile = open_path(path, &Progress::default()).expect("opens");
    if capacity_mib > 0 {
        profile.device.capacities.retain(|c| c.color != MemorySpace::HBM);
        let bytes = Bytes(capacity_mib << 20);
        profile.device.capacities.push(Capacity { color: MemorySpace::HBM, bytes, evidence: "of the test".to_owned() });
    }
    let analysis = ProfileAnalysis::new(&profile);
    advise(&profile, &analysis).findings.into_iter().map(|f| f.rule).collect()
}

/// Checks that rules fire for the first cases, and not for the second.
pub fn check_rules(files: &Files, fires: &[(&str, &str, u64)], silent: &[(&str, &str)]) {
    let mut wrong = Vec::new();
    for &(rule, case, capacity) in fires {
        let rules = rules_of(&files.case(case), capacity);
        if !rules.contains(&rule) {
            wrong.push(format!("{rule} is silent about {case}: {rules:?}"));
        }
    }
    for &(rule, case) in silent {
        let rules = rules_of(&files.case(case), 0);
        if rules.contains(&rule) {
            wrong.push(format!("{rule} fires on {case}: {rules:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rules_fire_on_evidence_and_are_silent_without() {
    check_rules(&Files::of_project(), FIRES, SILENT);
}

#[test]
fn a_scan_that_runs_several_layers_in_a_step_is_one_over_groups_of_layers() {
    let profile = open_path(&Files::of_project().case("v5e_layer_groups"), &Progress::default()).expect("opens");
    let analysis = ProfileAnalysis::new(&profile);
    let findings = advise(&profile, &analysis).findings;
    let titles: Vec<&str> = findings.iter().map(|finding| finding.title.as_str()).collect();
    assert!(titles.iter().any(|title| title.starts_with("The scan over 6 groups of layers saves")), "{titles:?}");
}

#[test]
fn a_loss_that_is_computed_in_parts_is_offered_more_of_them() {
    let logits = |case: &str| {
        let profile = open_path(&Files::of_project().case(case), &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let mut findings = advise(&profile, &analysis).findings.into_iter();
        findings.find(|finding| finding.rule == "logits").map(|finding| finding.to_string()).unwrap_or_default()
    };
    let (whole, parts) = (logits("v5e_gpt_m_oom"), logits("v5e_loss_in_parts"));
    assert!(whole.contains("for all positions at once") && whole.contains("for 8 parts"), "{whole}");
    assert!(parts.contains("for one part of the positions") && parts.contains("8 times as many"), "{parts}");
}

#[test]
fn a_scan_whose_steps_pass_on_what_they_save_is_checkpointed_in_segments() {
    let profile = open_path(&Files::of_project().case("v5e_waves"), &Progress::default()).expect("opens");
    let analysis = ProfileAnalysis::new(&profile);
    let findings = advise(&profile, &analysis).findings;
    let saved =
        findings.iter().find(|finding| finding.rule == "activations").map(ToString::to_string).unwrap_or_default();
    assert!(saved.contains("a scan in a scan") && !saved.contains("only the input of each step is kept"), "{saved}");
}

#[test]
fn a_checkpoint_that_the_compiler_undoes_is_told() {
    let of = |name: &str| {
        let path = Files::of_project().ending(&format!("pairs/idle_checkpoint_v5e/{name}.hlo.pb"));
        let profile = open_path(&path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let findings = advise(&profile, &analysis).findings;
        findings.iter().find(|finding| finding.rule == "idle_checkpoint").map(|finding| finding.title.clone())
    };
    let told = of("before").unwrap_or_default();
    assert!(told.starts_with("The checkpoint around layer_* has no effect: 1.21 GiB less"), "{told}");
    assert_eq!(of("after"), None, "without `prevent_cse=False`");
}

#[test]
fn micro_batches_that_are_in_memory_at_once_are_told() {
    let of = |name: &str| {
        let path = Files::of_project().ending(&format!("pairs/written_out_v5e/{name}.hlo.pb"));
        let profile = open_path(&path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        advise(&profile, &analysis).findings
    };
    let written_out = of("before");
    let told = written_out.iter().find(|finding| finding.rule == "micro_batches").map(ToString::to_string);
    let told = told.unwrap_or_default();
    assert!(told.contains("The 2 micro-batches are in memory at once: 1.86 GiB less in a loop"), "{told}");
    let words: Vec<String> = written_out.iter().map(ToString::to_string).collect();
    assert!(!words.iter().any(|words| words.contains("one after the other, so the batch")), "{words:?}");
    assert!(of("after").iter().all(|finding| finding.rule != "micro_batches"), "a scan runs them one after the other");
}

#[test]
fn samples_that_the_step_collects_itself_are_not_divided_into_micro_batches() {
    let path = Files::of_project().ending("pairs/rollout_v5e/before.hlo.pb");
    let profile = open_path(&path, &Progress::default()).expect("opens");
    let analysis = ProfileAnalysis::new(&profile);
    let advice = advise_against(&profile, &analysis, Some(Bytes(3 << 30)));
    let words: Vec<String> = advice.findings.iter().map(ToString::to_string).collect();
    assert!(words.iter().any(|words| words.contains("shuffle the indices, not the samples")), "{words:?}");
    assert!(words.iter().any(|words| words.contains("each update then learns from fewer samples")), "{words:?}");
    assert!(!words.iter().any(|words| words.contains("micro") || words.contains("global batch")), "{words:?}");
    let plans: Vec<String> = advice.plans.iter().map(|plan| plan.summary.clone()).collect();
    assert!(plans.iter().all(|plan| !plan.contains("micro")) && !plans.is_empty(), "{plans:?}");
}

#[test]
fn kernels_that_cannot_shift_scores_are_offered_with_that_said() {
    let path = Files::of_project().ending("pairs/relative_xl_v4/before.hlo.pb");
    let profile = open_path(&path, &Progress::default()).expect("opens");
    let analysis = ProfileAnalysis::new(&profile);
    let findings = advise(&profile, &analysis).findings;
    let scores = findings.iter().find(|finding| finding.rule == "attention_scores").map(ToString::to_string);
    assert!(scores.is_some_and(|words| words.contains("a bias to its scores")));
}

#[test]
fn advice_that_nobody_waits_for_is_not_given() {
    let profile = open_path(&Files::of_project().case("v5e_gpt_m_oom"), &Progress::default()).expect("opens");
    let analysis = ProfileAnalysis::new(&profile);
    let asked = |stop: Stop<'_>| advise_unless(&profile, &analysis, None, stop).map(|advice| advice.findings.len());
    assert_eq!(asked(Stop::once(&AtomicBool::new(true))), Err(Stopped));
    let whole = advise(&profile, &analysis).findings.len();
    assert_eq!(asked(Stop::once(&AtomicBool::new(false))), Ok(whole), "what was stopped leaves nothing behind");
}

/// Checks that the first two findings of every program contain the known cause; returns the number of causes checked.
pub fn causes_come_first(files: &Files) -> usize {
    let mut wrong = Vec::new();
    let mut causes = 0;
    for path in
        files.named(|name| name.starts_with("module_0000") && common::ends_with(name, "after_optimizations.hlo.pb"))
    {
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
                finding.saves_bytes().map(|b| b.short()).unwrap_or_default(),
                finding.fits_after(),
                finding.title,
                finding.edits().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            );
        }
        for plan in &advice.plans {
            println!("    plan: {}", plan.summary);
        }
        let first: Vec<&str> = advice.findings.iter().map(|f| f.rule).take(2).collect();
        if let Some((case, rules)) = CAUSES.iter().find(|(case, _)| name.starts_with(&format!("{case}/"))) {
            causes += 1;
            if !rules.iter().any(|rule| first.contains(rule)) {
                wrong.push(format!("{case}: {first:?} instead of {rules:?}"));
            }
        } else if analysis.programs.iter().all(|program| !is_over(program))
            && advice.findings.iter().any(|f| f.severity == Severity::Critical)
        {
            wrong.push(format!("{name}: something critical about a program that fits"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    causes
}

#[test]
fn causes_come_first_or_second_and_nothing_is_critical_where_it_fits() {
    assert!(causes_come_first(&Files::of_project()) >= CAUSES.len());
}

/// Checks that every finding saves what the what-if of its changes says, and that one without changes saves nothing, is
/// not critical and is in no plan; returns the number of findings with changes.
pub fn findings_are_their_what_if(files: &Files) -> usize {
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for path in files.named(|name| common::ends_with(name, "after_optimizations.hlo.pb")) {
        let Ok(profile) = open_path(&path, &Progress::default()) else { continue };
        let analysis = ProfileAnalysis::new(&profile);
        let advice = advise(&profile, &analysis);
        let name = common::name(&path);
        for finding in &advice.findings {
            let Some(row) = finding.program else { continue };
            let said = format!("{name}: {}", finding.title);
            if finding.edits().is_empty() {
                if finding.saves_bytes().is_some() || finding.allocated_after_bytes().is_some() {
                    wrong.push(format!("{said}: saves something without a change"));
                }
                if finding.severity == Severity::Critical {
                    wrong.push(format!("{said}: critical without a change"));
                }
                continue;
            }
            let Some(scene) = analysis.scene(&profile, row, MemorySpace::HBM) else { continue };
            let memory = scene.memory_against(None);
            let before = memory.evaluate(scene.program, &[], Depth::Verdict);
            let after = memory.evaluate(scene.program, finding.edits(), Depth::Verdict);
            let saved = Bytes(before.peak.0.saturating_sub(after.peak.0));
            let is = (finding.saves_bytes(), finding.peak_after_bytes(), finding.allocated_after_bytes());
            let keeps_arguments = matches!(finding.edits(), [Edit::Compute(_)]);
            let says_so = finding.advice.first().is_some_and(|first| first.contains("keep the parameters in f32"));
            if says_so && !keeps_arguments {
                wrong.push(format!("{said}: the first advice is another change than {:?}", finding.edits()));
            }
            if is != (Some(saved), Some(after.peak), Some(after.expected())) {
                wrong.push(format!("{said}: {is:?}, its what-if {saved:?}, {:?}, {:?}", after.peak, after.expected()));
            }
            looked_at += 1;
        }
        for plan in &advice.plans {
            let without = advice.findings.iter().filter(|f| f.program == Some(plan.program) && f.edits().is_empty());
            for finding in without.filter(|f| plan.rules.contains(&f.rule)) {
                let has_another = advice.findings.iter().any(|f| f.rule == finding.rule && !f.edits().is_empty());
                if !has_another {
                    wrong.push(format!("{name}: the plan has {}, which has no change", finding.rule));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    looked_at
}

#[test]
fn a_finding_saves_what_the_what_if_of_its_changes_says() {
    assert!(findings_are_their_what_if(&Files::of_project()) >= 20);
}

/// A cache that a loop over layers makes anew takes what was really saved by carrying it through the loop, donated.
#[test]
fn a_cache_that_is_made_anew_takes_what_a_real_change_saved() {
    let open = |case: &str| {
        let path = Files::of_project().case(case);
        let profile = open_path(&path, &Progress::default()).expect("opens");
        let analysis = ProfileAnalysis::new(&profile);
        let found = advise(&profile, &analysis).findings.into_iter().find(|finding| finding.rule == "collected_cache");
        let space = analysis.programs[0].main_space().expect("HBM");
        (found.and_then(|finding| finding.at_stake_bytes), space.xprof.allocated.0)
    };
    let ((said, before), (none, after)) = (open("v6e_collected_cache"), open("v6e_carried_cache"));
    let saved = before - after;
    let said = said.expect("a finding").0;
    assert!(said.abs_diff(saved) < saved / 100, "{said} of {saved}");
    assert_eq!(none, None);
}
