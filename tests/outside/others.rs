//! Tables and checks for files that are only in the shared collection.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::Files;
use crate::pairs::{Allowed, Pair, pair};
use crate::peaks::Golden;
use crate::{advisor, caching_allocator, compare, forms, pairs, peaks, poplar};

/// Rule, and a program for which it must fire.
const FIRES: &[(&str, &str, u64)] =
    &[("unsharded_activations", "v5p_gpt_l_fsdp", 0), ("donation", "v5e_decode_nodonate", 0)];

/// Rule, and a program for which it must not fire.
const SILENT: &[(&str, &str)] = &[("replicated", "v5p_gpt_l_fsdp"), ("unsharded_activations", "v6e_gpt_m")];

pub fn rules(files: &Files) {
    advisor::check_rules(files, FIRES, SILENT);
}

/// Pairs of programs that differ by one change.
const PAIRS: &[Pair] = &[
    pair("donate_gpt_v6e", "v6e", &["donate params,opt_state"], Allowed::Share(0.03), true),
    pair("donate_decode_v5e", "v5e", &["donate cache"], Allowed::Share(0.03), true),
    pair("shard_cache_decode_v6e", "v6e", &["shard cache 4"], Allowed::Share(0.03), true),
    pair("shard_state_v5e", "v5e", &["shard table,stats 4"], Allowed::Share(0.03), true),
    pair("pad_2050_v5e", "v5e", &["dim 2050 2048"], Allowed::Share(0.03), true),
    pair("batch_scan_gpt_v5e", "v5e", &["batch 0.5"], Allowed::ShareOrVmem(0.10), true),
    pair("batch_resnet_v5e", "v5e", &["batch 0.5"], Allowed::ShareOrVmem(0.10), true),
    pair("remat_gpt_v5p", "v5p", &["remat layer_*"], Allowed::Share(0.15), true),
];

pub fn predictions(files: &Files) {
    pairs::compare_predictions(files, PAIRS);
}

/// Peaks computed by other means.
const GOLDEN: &[Golden] = &[
    ("v5e_gpt_s", 2548, 413723136, 204548096, 396374016, (396378624, 627), (396375552, 627)),
    ("v5e_gpt_s_remat", 1809, 301197824, 204548096, 273285120, (273324544, 972), (263324160, 640)),
    ("v5e_resnet18", 1831, 1065217024, 138783232, 1053714432, (1053721088, 702), (1053720064, 702)),
    ("v5e_gpt_offload_opt", 4064, 1815486976, 435232768, 1576083968, (1576097792, 3418), (1500597248, 3418)),
    ("v6e_gpt_m", 4394, 9195430304, 1492263328, 9111982496, (9112048288, 1158), (9112044800, 1158)),
];

pub fn known_peaks(files: &Files) {
    peaks::compare_peaks(files, GOLDEN);
}

/// Checks that the modules in `SYNTHETIC_3_tpu_modules.xplane.pb`, a trace built by another program, equal their dumps.
pub fn wrapped_trace(files: &Files) {
    let trace = files.ending("SYNTHETIC_3_tpu_modules.xplane.pb");
    let profile = forms::alone(&trace);
    let read = |path: &PathBuf| fs::read(path).expect("readable");
    let dumps: Vec<Vec<u8>> = files.programs().iter().map(read).collect();
    let bytes = fs::read(&trace).expect("readable");
    assert_eq!(profile.modules.len(), 3);
    for module in &profile.modules {
        let mut same = dumps.iter().filter(|dump| dump.len() as u64 == module.bytes);
        let found = same.any(|dump| memchr::memmem::find(&bytes, dump).is_some());
        assert!(found, "{}: no dump of {} bytes", module.name, module.bytes);
    }
}

/// The real `profile.pop_cache`, which we may not redistribute.
pub fn genuine_cache(files: &Files) {
    let facts = poplar::facts_of(&files.ending("profile.pop_cache"));
    for (key, value) in [
        ("change counter of profile.pop", "1201"),
        ("OnTileExecute", "1986 blocks"),
        ("IPUs", "2"),
        ("last cycle", "2540750"),
        ("steps", "5396"),
    ] {
        assert_eq!(facts.get(key).map(String::as_str), Some(value), "{key}");
    }
}

/// One program before and after a change that was really made.
const CHANGED: &[(&str, &str)] = &[
    ("v5e_gpt_s", "v5e_gpt_s_nodonate"),
    ("v5e_gpt_s", "v5e_gpt_s_remat"),
    ("v5e_decode", "v5e_decode_nodonate"),
    ("v5e_mlp_f32", "v5e_mlp_f32_debugprint"),
    ("eqx_gpt2_v5p4", "eqx_gpt2_v5p4_donate"),
    ("eqx_gpt2_v5p4", "eqx_gpt2_v5p4_remat"),
    ("gemma2_2b_ft_v5e8_oom", "gemma2_2b_ft_v5e8_constr"),
    ("gemma3_1b_decode_step_v5e1", "gemma3_1b_decode_step_v5e1_donate"),
    ("haiku_resnet50_v5e4", "haiku_resnet50_v5e4_rematall"),
    ("kh_llama_v5e4", "kh_llama_v5e4_fsdp"),
    ("mt_llama3_8b_v5e16_oom", "mt_llama3_8b_v5e16_full"),
    ("mt_qwen3_06b_v5e8", "mt_qwen3_06b_v5e8_tile"),
    ("rpa_llama_v7x4", "rpa_llama_v7x4_nodonate"),
];

pub fn matching(files: &Files) {
    compare::match_what_did_not_change(files, CHANGED);
}

/// Opens the hostile files of a collection; returns how many there were.
pub fn hostile_pickles(files: &Files) -> usize {
    let mut count = 0;
    for path in files.below("hostile").named(|name| crate::common::ends_with(name, ".pickle")) {
        let name = crate::common::name(&path);
        let kinds: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(path.with_file_name("expected.json")).expect("readable"))
                .expect("JSON");
        let expected = path.file_name().and_then(|name| name.to_str()).and_then(|name| kinds[name]["expect"].as_str());
        let opened = highwater::open::open_path(&path, &highwater::source::Progress::default());
        match expected.expect("an expectation") {
            // A text that says nothing of memory is no failure to read; what is cut opens as far as it goes.
            "refuse" => {
                let is_refused = opened.as_ref().map_or(true, |profile| {
                    profile.caching.is_none() || profile.sources.iter().any(|source| source.error.is_some())
                });
                assert!(is_refused, "{name}");
            }
            "accept" | "accept with notes" => assert!(opened.is_ok_and(|profile| profile.caching.is_some()), "{name}"),
            "refuse, name the byte" => {
                let profile = opened.expect("a part");
                let error = profile.sources[0].error.clone().unwrap_or_default();
                assert!(error.contains("byte"), "{name}: {error}");
            }
            _ => {}
        }
        if let Ok(profile) = highwater::open::open_path(&path, &highwater::source::Progress::default()) {
            let _ = caching_allocator::reported(&profile);
        }
        count += 1;
    }
    count
}

/// Parts of a name that only some versions of JAX write: the function that is compiled, differentiation without a scope,
/// loops inside it.
const OF_SOME_VERSIONS: [&str; 6] = [
    "jit(main)",
    "jvp()",
    "transpose(jvp())",
    "jvp(while)",
    "transpose(jvp(while))",
    "jit(dynamic_update_index_in_dim)",
];

/// An operation's name as every version of JAX would write it.
fn of_any_version(name: &str) -> String {
    let name = compare::plain(name);
    let mut parts: Vec<&str> = name.split('/').filter(|part| !OF_SOME_VERSIONS.contains(part)).collect();
    // What is recomputed has its scope twice: transpose(jvp(layer_3))/jvp(layer_3).
    parts.dedup_by(|inner, outer| **outer == format!("transpose({inner})"));
    parts.join("/")
}

/// Every dump `old/COMPILER/CASE` against the dump of `CASE` by the newest compiler.
pub fn compilers(files: &Files) {
    let programs = files.programs();
    let name = |path: &PathBuf, up: usize| {
        path.ancestors().nth(up).and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned())
    };
    let is_old = |path: &&PathBuf| name(path, 3).as_deref() == Some("old");
    let mut compared = 0;
    for old in programs.iter().filter(is_old) {
        let new = programs.iter().find(|path| !is_old(path) && name(path, 1) == name(old, 1));
        compare::match_pair(old, new.unwrap_or_else(|| panic!("no newer {}", old.display())), of_any_version);
        compared += 1;
    }
    assert!(compared > 0, "no dumps of older compilers");
}

/// A batch that no recomputation can bring into the memory does not fit, one that it can may.
pub fn largest_batches() {
    let folder = crate::asked_for("HIGHWATER_PROFILES").join("real");
    let output = Command::new(env!("CARGO_BIN_EXE_highwater"))
        .args(["scale", "--format", "json", "--at", "48,1000"])
        .args(["kh_llama_v5e4_b16", "kh_llama_v5e4"].map(|name| folder.join(name)))
        .output()
        .expect("started");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let points = report["programs"][0]["points"].as_array().expect("points");
    let verdict =
        |value: i64| points.iter().find(|point| point["value"] == value).map(|point| point["verdict"].clone());
    // 48 on each device was compiled and fits, by recomputation.
    assert_eq!((verdict(48), verdict(1000)), (Some("may_fit".into()), Some("over".into())), "{points:?}");
}

/// Sentences of the reports of real programs that tell what stands at their peaks: a program, and what is said first or
/// among the rest.
const SAID: &[(&str, &[&str])] = &[
    ("raw_dump_dir", &["hint: Weights take 67.7", "over 8 it leaves 1.06 GiB on each"]),
    ("gemma2_2b_ft_v5e4", &["Copies of optimizer state and weights in another layout take 18.3"]),
    (
        "mjx_humanoid_v6e1",
        &[
            "(TPU v6e, a topology of 4 chips)",
            " on 1 device\n",
            "no other form: the Cholesky decomposition takes or makes it",
        ],
    ),
    ("rpa_llama_v7x4_nodonate", &["The change shrinks the arguments (4.00 GiB) and results"]),
    ("flash_scan_v7x8_b64", &["(TPU v7x, 4 chips)", " on 8 devices\n"]),
    (
        "gemma3_1b_decode_step_v5e1",
        &["The change shrinks the arguments (6.50 GiB) and results that are not written in their place"],
    ),
    (
        "kh_llama_v5e4_fsdp",
        &[
            "Both kernels pad heads of 64 elements to 128, which the prediction allows for",
            "3.73 GiB less if computed block by block",
        ],
    ),
    ("kh_llama_v5e4_b192", &["By how much the peak falls with that alone cannot be told"]),
    ("kh_llama_v5e4_f32", &["mixed_bfloat16"]),
    ("mt_llama3_8b_v5e16_oom", &["then it needs "]),
    ("mt_llama3_8b_v5e16_full", &["optimizer_memory_host_offload"]),
];

/// What is not said of real programs: there the compiler recomputes the scores of all layers but one already, or a kernel
/// shares heads among queries.
const NOT_SAID: &[(&str, &str)] =
    &[("kh_llama_v5e4_b192", "around the attention alone"), ("rpa_llama_v7x4", "grouped-query attention")];

/// What the reports of real programs say.
pub fn sentences() {
    let folder = crate::asked_for("HIGHWATER_PROFILES").join("real");
    let mut wrong = Vec::new();
    let report = |name: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_highwater")).arg("report").arg(folder.join(name)).output();
        String::from_utf8_lossy(&output.expect("started").stdout).into_owned()
    };
    wrong
        .extend(NOT_SAID.iter().filter(|row| report(row.0).contains(row.1)).map(|row| format!("{}: {}", row.0, row.1)));
    for (name, said) in SAID {
        let text = report(name);
        wrong.extend(said.iter().filter(|words| !text.contains(**words)).map(|words| format!("{name}: {words}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let first = Command::new(env!("CARGO_BIN_EXE_highwater"))
        .args(["report", "--format", "json"])
        .arg(folder.join("raw_dump_dir"))
        .output()
        .expect("started");
    let report: serde_json::Value = serde_json::from_slice(&first.stdout).expect("JSON");
    assert_eq!(report["profiles"][0]["findings"][0]["rule"], "weights");
    assert_eq!(report["profiles"][0]["programs"][0]["devices"], 4);
}
