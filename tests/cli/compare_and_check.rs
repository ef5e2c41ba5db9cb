//! `highwater diff` and `highwater check`: what they print, and how they end.

use serde_json::Value;

use super::command_line::{path, run, stderr, stdout};
use crate::common;

fn pair(folder: &str) -> [String; 2] {
    ["before.hlo.pb.gz", "after.hlo.pb.gz"].map(|name| {
        let path = common::samples().join("pairs").join(folder).join(name);
        path.to_str().expect("UTF-8").to_owned()
    })
}

#[test]
fn a_comparison_answers_first_and_adds_up() {
    let [before, after] = pair("donate_mlp_v4");
    let output = run(&["diff", &before, &after]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("less than before"), "{text}");
    assert!(text.contains("allocated, by class at the peak") && text.contains("matched: "), "{text}");
    let output = run(&["diff", "--format", "json", &before, &after]);
    let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(diff["schema"], "highwater.diff/1");
    let space = &diff["pairs"][0]["spaces"][0];
    let steps = space["waterfall"].as_array().expect("steps");
    let sum: i64 = steps.iter().map(|step| step["difference"].as_i64().expect("a number")).sum();
    assert_eq!(Some(sum), space["allocated"]["difference"].as_i64());
    assert!(sum < 0);
    let scopes = space["waterfall_by_scope"].as_array().expect("steps");
    assert!(scopes.len() > 2 && scopes.iter().all(|step| step["scope"].is_string()), "{scopes:?}");
    let by_scope: i64 = scopes.iter().map(|step| step["difference"].as_i64().expect("a number")).sum();
    assert_eq!(by_scope, sum);
    let largest = scopes[0]["scope"].as_str().expect("a name");
    let (_, listed) = text.split_once("allocated, by scope at the peak").expect("the waterfall by scope");
    assert!(listed.lines().nth(1).is_some_and(|line| line.contains(largest)), "{largest}: {listed}");
    assert_eq!(stdout(&run(&["report", &after, "--against", &before])), text, "the same by another name");
    let output = run(&["diff", "--format", "markdown", &before, &after]);
    assert!(stdout(&output).contains("| allocated | "), "{}", stdout(&output));
}

#[test]
fn folders_are_compared_program_by_program_and_three_files_as_columns() {
    let folder = common::samples().join("pairs");
    let folder = folder.to_str().expect("UTF-8");
    let output = run(&["diff", "--format", "json", folder, folder]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let pairs = diff["pairs"].as_array().expect("pairs");
    let allocated: Vec<&Value> =
        pairs.iter().filter_map(|pair| pair["spaces"].get(0)).map(|space| &space["allocated"]["difference"]).collect();
    assert_eq!(allocated.len(), 4, "the programs of the folder");
    assert!(allocated.iter().all(|difference| **difference == 0), "{allocated:?}");
    let [one, two] = [path("v5e_mlp_f32"), path("v5e_gpt_m_oom")];
    let output = run(&["diff", &one, &two, &one]);
    let text = stdout(&output);
    assert!(text.contains("does not fit") && text.lines().any(|line| line.starts_with("allocated")), "{text}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let output = run(&["diff", &path("v5e_mlp_f32"), "/nonexistent.pb"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("/nonexistent.pb"), "{}", stderr(&output));
    let output = run(&["check", "/nonexistent.pb"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("/nonexistent.pb"), "{}", stdout(&output));
    assert_eq!(run(&["diff", &path("v5e_mlp_f32")]).status.code(), Some(2), "one file is nothing to compare");
}

#[test]
fn the_gate_ends_with_what_a_build_goes_by() {
    let [before, after] = pair("donate_mlp_v4");
    let (fits, over) = (path("v5e_mlp_f32"), path("v5e_gpt_m_oom"));
    for (args, expected) in [
        (&["check", &fits][..], 0),
        (&["check", &over], 1),
        (&["check", &fits, "--max-peak", "1TiB", "--max-of-capacity", "92%"], 0),
        (&["check", &fits, "--max-peak", "1KiB"], 1),
        (&["check", &over, "--max-of-capacity", "300%"], 0),
        (&["check", &after, "--against", &before, "--max-growth", "0%"], 0),
        (&["check", &before, "--against", &after, "--max-growth", "2%"], 1),
        (&["check", &before, "--against", &before, "--no-new", "hint"], 0),
        (&["check", &before, "--against", &after, "--no-new", "hint"], 1),
        (&["check", &fits, "--max-growth", "2%"], 2),
        (&["check", &fits, "--no-new", "grave", "--against", &fits], 2),
        (&["check", &fits, "--max-of-capacity", "much"], 2),
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(expected), "{args:?}\n{}{}", stdout(&output), stderr(&output));
    }
    let output = run(&["check", &over, &fits]);
    let text = stdout(&output);
    assert!(text.contains(&over) && text.contains(&fits), "every line names its file: {text}");
    assert_eq!(text.lines().count(), 2, "a line for each limit: {text}");
    assert!(text.lines().any(|line| line.starts_with("FAILED")) && text.lines().any(|line| line.starts_with("ok")));
}

#[test]
fn the_gate_reads_folders_and_messages() {
    let folder = common::samples().join("pairs");
    let output = run(&["check", "--capacity", "16GiB", folder.to_str().expect("UTF-8")]);
    let text = stdout(&output);
    assert_eq!(
        (output.status.code(), text.lines().count()),
        (Some(0), 4),
        "no line for the README beside them: {text}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("train.log");
    let message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of \
                   79.15 GiB of which 1.20 GiB is free.\n";
    std::fs::write(&log, message).expect("written");
    let output = run(&["check", log.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    // What the message lists is less than there is; it did not fit all the same.
    let listing = "RESOURCE_EXHAUSTED: Attempting to reserve 3.80G at the bottom of memory. That was not possible. There are 1.92G free, 0B reserved, and 1.92G reservable.\n\nProgram hbm requirement 4.20G:\n    HLO temp          3.80G (97.4% utilization: Unpadded (3.69G) Padded (3.79G), 0.4% fragmentation (14.68M))\n\n  Largest program allocations in hbm:\n\n  1. Size: 392.00M\n     Shape: f32[64,512,56,56]{1,0,3,2:T(8,128)}\n     Unpadded size: 392.00M\n     XLA label: %fusion.70 = f32[64,512,56,56]{1,0,3,2:T(8,128)} fusion(...)\n     Allocation type: HLO temp\n     ==========================\n";
    std::fs::write(&log, listing).expect("written");
    let log = log.to_str().expect("UTF-8");
    let output = run(&["check", "--capacity", "16GiB", log]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    let report = stdout(&run(&["report", "--capacity", "16GiB", log]));
    assert!(report.contains("Did not fit") && !report.contains("Fits:"), "{report}");
}

#[test]
fn the_gate_speaks_to_ci_systems() {
    let over = path("v5e_gpt_m_oom");
    let junit = stdout(&run(&["check", &over, "--format", "junit"]));
    assert!(junit.starts_with("<?xml") && junit.contains("failures=\"1\"") && junit.contains("<failure message="));
    let sarif: Value =
        serde_json::from_slice(&run(&["check", &over, "--format", "sarif"]).stdout).expect("SARIF is JSON");
    assert_eq!(sarif["version"], "2.1.0");
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&"fits".into(), &"error".into()));
    let json: Value = serde_json::from_slice(&run(&["check", &over, "--format", "json"]).stdout).expect("JSON");
    assert_eq!(json["checks"][0]["outcome"], "failed");
}

/// Charts as SVG: a document of its own with the words as text and no picture but those of charts.
#[test]
fn views_are_written_as_svg() {
    let folder = tempfile::tempdir().expect("a folder");
    let compared = pair("donate_mlp_v4");
    let ipu = common::samples().join("ipu_over.cbor");
    let program = path("v5e_mlp_f32");
    let cases: [(&str, Vec<&str>, &str); 4] = [
        ("timeline", vec![&program], "<path d=\"M"),
        ("treemap", vec![&program], "everything"),
        ("tiles", vec![ipu.to_str().expect("UTF-8")], "<path d=\"M"),
        ("compare", compared.iter().map(String::as_str).collect(), "before to after"),
    ];
    for (view, files, expected) in cases {
        let out = folder.path().join(format!("{view}.svg"));
        let out = out.to_str().expect("UTF-8");
        let output = run(&[&["screenshot", "--view", view, "--out", out, "--size", "900x600"], &files[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{view}: {}", stderr(&output));
        let svg = std::fs::read_to_string(out).expect("written");
        let head = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\" height=\"600\"";
        assert!(svg.starts_with(head) && svg.ends_with("</svg>\n"), "{view}: {}", &svg[..200]);
        assert!(svg.contains(expected) && svg.matches("<text ").count() > 20, "{view}");
        for (open, close) in [("<g ", "</g>"), ("<text ", "</text>"), ("<clipPath ", "</clipPath>")] {
            assert_eq!(svg.matches(open).count(), svg.matches(close).count(), "{view}: {open}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{view}");
        assert!(!svg.contains("http://") || svg.matches("http://").count() == 1, "{view}: nothing is fetched");
    }
}

#[test]
fn a_message_is_compared_with_the_dump_of_its_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("error.txt");
    let words = "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. \
                 Used 38.15G of 15.25G hbm. Exceeded hbm capacity by 22.90G.";
    std::fs::write(&file, words).expect("written");
    let output = run(&["diff", file.to_str().expect("UTF-8"), &path("v5e_gpt_m_oom"), "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let diff: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let numbers = diff["pairs"][0]["numbers"].as_array().expect("numbers");
    let needed = numbers.iter().find(|number| number["what"] == "main memory: needed").expect("what it needs");
    assert_eq!(needed["value"]["before"].as_u64().map(|bytes| bytes >> 20), Some(39_065), "38.15 GiB: {needed}");
    assert!(needed["value"]["after"].as_u64() > Some(0), "{needed}");
}
