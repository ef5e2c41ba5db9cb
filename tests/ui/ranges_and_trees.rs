//! The figures of a range of steps and of the tree of live memory on screen equal those in the report to the byte.

use std::path::PathBuf;
use std::process::Command;

use egui::Role;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::ProfileAnalysis;
use highwater::analysis::tree::{Tree, TreeKind};
use highwater::model::{Bytes, counted};
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::DeepLink;
use highwater::ui::session::ThemeChoice;
use serde_json::Value;

use crate::common;
use crate::gui::{self, words};

fn dump() -> PathBuf {
    let mut samples = common::sample_programs().into_iter();
    samples.find(|path| path.to_string_lossy().contains("gpt_m_oom")).expect("a sample that does not fit")
}

fn run(arguments: &[&str]) -> String {
    let output =
        Command::new(env!("CARGO_BIN_EXE_highwater")).arg("report").args(arguments).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// HBM of a file's first program.
fn space(file: &str, arguments: &[&str]) -> Value {
    let mut all = vec!["--format", "json", "--space", "HBM", file];
    all.extend(arguments);
    let report: Value = serde_json::from_str(&run(&all)).expect("JSON");
    report["profiles"][0]["programs"][0]["spaces"][0].clone()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_measured_range_says_what_the_report_says() {
    let path = dump();
    let file = path.to_str().expect("UTF-8");
    for (from, to) in [(100, 400), (0, 1), (257, 999)] {
        let report = space(file, &["--from", &from.to_string(), "--to", &to.to_string()]);
        let range = &report["range"];
        assert_eq!((number(&range["from"]), number(&range["to"])), (from, to), "{range}");
        assert_eq!(range["steps"], "program_point");
        let link = DeepLink { view: Some("timeline".to_owned()), ..DeepLink::default() };
        let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link);
        let open = harness.state_mut().files.current_mut().expect("a file");
        open.shared.measure((from as u32, to as u32));
        harness.run_ok();
        let said = words(&harness);
        let bytes = |key: &str| Bytes(number(&range[key]));
        let in_buffers = |key: &str| format!("in {}", counted(number(&range[key]), "buffer"));
        let mut wanted = vec![
            bytes("allocated_bytes").short(),
            in_buffers("allocations"),
            bytes("freed_bytes").short(),
            in_buffers("frees"),
            bytes("live_before_bytes").short(),
            format!("{} after", bytes("live_after_bytes").short()),
            bytes("peak_bytes").short(),
            format!("step {}", number(&range["peak_step"])),
        ];
        let grew = range["grew"].as_array().expect("ways to divide");
        let by: Vec<&str> = grew.iter().filter_map(|grew| grew["by"].as_str()).collect();
        assert_eq!(by, ["class", "category", "scope", "op", "dtype", "source"]);
        for group in grew[0]["groups"].as_array().expect("groups").iter().take(4) {
            let name = group["name"].as_str().expect("a name");
            wanted.push(format!("{name} grew by {}", Bytes(number(&group["bytes"])).short()));
        }
        for words in wanted {
            assert!(said.contains(&words), "no '{words}' in {said:?}");
        }
    }
}

#[test]
fn a_range_is_cut_to_the_program_and_may_be_open() {
    let path = dump();
    let file = path.to_str().expect("UTF-8");
    let whole = space(file, &["--from", "0"]);
    let last = number(&whole["time_count"]);
    assert_eq!(number(&whole["range"]["to"]), last, "one point after the last instruction, as the timeline has it");
    assert_eq!(whole["range"]["peak_bytes"], whole["reserved_peak_bytes"]);
    assert_eq!(whole["range"]["peak_step"], whole["reserved_peak_time"]);
    let beyond = space(file, &["--from", "100", "--to", "4000000001"]);
    assert_eq!(number(&beyond["range"]["to"]), last);
    assert!(space(file, &[]).get("range").is_none(), "only for those who ask");
    let text = run(&[file, "--from", "100", "--to", "400"]);
    assert!(text.contains("    steps 100 to 400\n") && text.contains("peak in range"), "{text}");
    let markdown = run(&[file, "--from", "100", "--to", "400", "--format", "markdown"]);
    assert!(markdown.contains("Steps 100 to 400:"), "{markdown}");
}

/// Compares a reported node with one of the tree, level by level.
fn same(reported: &Value, tree: &Tree, at: usize, depth: usize) {
    let node = &tree.nodes[at];
    assert_eq!(reported["name"], node.name.as_str());
    assert_eq!(number(&reported["bytes"]), node.bytes.0, "{}", node.name);
    assert_eq!(number(&reported["padding_bytes"]), node.padding.0, "{}", node.name);
    assert_eq!(number(&reported["buffers"]), node.count as u64);
    assert_eq!(number(&reported["folded"]), node.folded as u64);
    assert_eq!(number(&reported["child_count"]), node.children.len() as u64);
    let below = reported["children"].as_array().expect("a list");
    assert_eq!(below.len(), if depth == 0 { 0 } else { node.children.len() }, "{}", node.name);
    for (reported, &child) in below.iter().zip(&node.children) {
        same(reported, tree, child, depth - 1);
    }
}

#[test]
fn trees_are_the_treemaps_to_the_depth_asked_for() {
    let path = dump();
    let file = path.to_str().expect("UTF-8");
    let profile = open::open_path(&path, &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let (program, own) = (&profile.programs[0], &analysis.programs[0]);
    let main = own.main_space().expect("HBM");
    let mut arguments = vec!["--top", "0", "--depth", "2"];
    arguments.extend(TreeKind::ALL.iter().flat_map(|kind| ["--tree", kind.word()]));
    for unfolded in [false, true] {
        if unfolded {
            arguments.push("--unfolded");
        }
        let report = space(file, &arguments);
        let trees = report["trees"].as_array().expect("trees");
        assert_eq!(trees.len(), TreeKind::ALL.len());
        for (reported, kind) in trees.iter().zip(TreeKind::ALL) {
            assert_eq!(reported["by"], kind.word());
            let tree = Tree::new(program, own, &main.at_peak.rows, kind, !unfolded);
            same(&reported["root"], &tree, 0, 2);
        }
    }
    assert!(space(file, &[]).get("trees").is_none(), "only for those who ask");
    let few = space(file, &["--tree", "scope", "--top", "1"]);
    let root = &few["trees"][0]["root"];
    assert_eq!(root["children"].as_array().expect("a list").len(), 1);
    assert!(number(&root["child_count"]) > 1, "what is left out is counted");
    let bad = Command::new(env!("CARGO_BIN_EXE_highwater")).args(["report", "--tree", "colour", file]).output();
    let bad = bad.expect("the program runs");
    assert_eq!(bad.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("scope, class, category"));
}

#[test]
fn the_icicle_shows_the_bytes_of_the_report_at_the_peak_and_at_a_step() {
    let path = dump();
    let file = path.to_str().expect("UTF-8");
    for step in [None, Some(300)] {
        let text = step.map(|step: u32| step.to_string());
        let mut arguments = vec!["--tree", "scope", "--depth", "2"];
        if let Some(text) = &text {
            arguments.extend(["--step", text]);
        }
        let report = space(file, &arguments);
        let root = &report["trees"][0]["root"];
        assert_eq!(report["trees"][0]["step"].as_u64(), step.map(u64::from));
        let link = DeepLink { view: Some("treemap".to_owned()), step, ..DeepLink::default() };
        let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link);
        harness.get_by_role_and_label(Role::RadioButton, "Icicle").click();
        harness.run_ok();
        let items: Vec<String> =
            harness.get_all_by_role(Role::TreeItem).filter_map(|item| item.accesskit_node().label()).collect();
        let shown = root["children"].as_array().expect("nodes");
        // Boxes too narrow for a label have no accessible entry of their own.
        let least = number(&root["bytes"]) / 16;
        let shown: Vec<&Value> = shown.iter().filter(|node| number(&node["bytes"]) >= least).collect();
        assert!(shown.len() > 1, "{root}");
        for node in shown {
            let name = node["name"].as_str().expect("a name");
            let folded = number(&node["folded"]);
            let name =
                if folded > 1 && name.ends_with('*') { format!("{name}  \u{d7}{folded}") } else { name.to_owned() };
            let spoken = format!("{name} {}", Bytes(number(&node["bytes"])).short());
            assert!(items.iter().any(|item| item.starts_with(&spoken)), "no '{spoken}' in {items:?}");
        }
    }
}
