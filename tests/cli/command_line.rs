//! The command line: output of `highwater report`, output streams, and exit codes.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common;

fn highwater() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY").env_remove("WAYLAND_SOCKET").stdin(Stdio::null());
    command
}

pub fn run(args: &[&str]) -> Output {
    highwater().args(args).output().expect("the program runs")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

/// A sample by the name of its folder.
fn sample(folder: &str) -> PathBuf {
    common::sample_programs()
        .into_iter()
        .find(|path| path.parent().is_some_and(|parent| parent.ends_with(folder)))
        .expect("a sample of this name")
}

pub fn path(folder: &str) -> String {
    sample(folder).to_str().expect("UTF-8").to_owned()
}

fn json(args: &[&str]) -> Value {
    let mut all = vec!["report", "--format", "json"];
    all.extend(args);
    let output = run(&all);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn spaces(report: &Value) -> &Vec<Value> {
    report["profiles"][0]["programs"][0]["spaces"].as_array().expect("spaces")
}

#[test]
fn a_report_answers_first() {
    let output = run(&["report", &path("v5e_gpt_m_oom")]);
    assert_eq!(output.status.code(), Some(0), "a program that does not fit is no failure of the report");
    let text = stdout(&output);
    assert!(text.starts_with("v5e_gpt_m_oom  (TPU v5e)\n"), "{text}");
    assert!(text.lines().nth(2).is_some_and(|line| line.contains("Does not fit: 10.1 GiB over")), "{text}");
    assert!(text.contains("27,806,004,736 B"), "{text}");
    assert!(stderr(&output).is_empty(), "standard error holds nothing where nothing is wrong");
}

#[test]
fn several_files_make_one_report_and_one_that_is_missing_does_not_spoil_it() {
    let (first, second) = (path("v5e_mlp_f32"), path("xla_cpu_dump"));
    let output = run(&["report", &first, "/nonexistent/x.hlo.pb", &second]);
    assert_eq!(output.status.code(), Some(3));
    let text = stdout(&output);
    assert!(text.contains("v5e_mlp_f32") && text.contains("xla_cpu_dump"), "{text}");
    let errors = stderr(&output);
    let lines: Vec<&str> = errors.lines().collect();
    assert!(matches!(&lines[..], [line] if line.starts_with("error: /nonexistent/x.hlo.pb: ")), "{errors}");
    let output = run(&["report", "--format", "json", &first, "/nonexistent/x.hlo.pb"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let sources = report["sources"].as_array().expect("sources");
    let failed: Vec<&Value> = sources.iter().filter(|source| !source["error"].is_null()).collect();
    assert_eq!(failed.len(), 1, "{sources:?}");
    assert_eq!(failed[0]["path"], "/nonexistent/x.hlo.pb");
}

#[test]
fn damage_is_placed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cut, zeros) = (folder.path().join("cut.hlo.pb"), folder.path().join("zeros.pb"));
    let bytes = common::bytes(&sample("v5e_mlp_f32"));
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).expect("written");
    std::fs::write(&zeros, [0; 100]).expect("written");
    let output = run(&["report", cut.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(3), "it was not read to its end");
    assert!(
        stdout(&output).contains(&format!("(at byte {})", highwater::model::thousands(bytes.len() as u64 / 2))),
        "{}",
        stdout(&output)
    );
    assert!(!stdout(&output).contains("instead"), "no advice to open what it is: {}", stdout(&output));
    let place = format!("cut.hlo.pb: it is cut at byte {}: ", highwater::model::thousands(bytes.len() as u64 / 2));
    assert!(stderr(&output).contains(&place), "{}", stderr(&output));
    let output = run(&["report", zeros.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(3));
    let errors = stderr(&output);
    assert!(errors.contains("(at byte 0)") && errors.matches("zeros.pb").count() == 1, "{errors}");
}

#[test]
fn a_cut_compressed_dump_is_shown_up_to_the_cut() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes = common::bytes(&sample("v5e_gpt_m_oom"));
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&bytes).expect("written");
    let packed =
        [("gz", gzip.finish().expect("written")), ("zst", zstd::stream::encode_all(&bytes[..], 1).expect("in memory"))];
    for (ending, packed) in packed {
        let path = folder.path().join(format!("cut.hlo.pb.{ending}"));
        let end = packed.len() * 2 / 3;
        std::fs::write(&path, &packed[..end]).expect("written");
        let output = run(&["report", path.to_str().expect("UTF-8")]);
        assert_eq!(output.status.code(), Some(3), "it was not read to its end");
        let place = format!("it is cut at byte {} of the compressed file: ", highwater::model::thousands(end as u64));
        assert!(stderr(&output).contains(&place), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.contains("The file ends inside") && text.contains("of the compressed file)"), "{text}");
        assert!(text.contains("jit_"), "what comes before the cut is shown: {text}");

        let mut damaged = packed;
        damaged[end..end + 2000].fill(0xff);
        std::fs::write(&path, &damaged).expect("written");
        let output = run(&["report", path.to_str().expect("UTF-8")]);
        assert_eq!(output.status.code(), Some(3));
        let errors = stderr(&output);
        assert!(errors.contains("data is damaged") && errors.contains("of the compressed data)"), "{errors}");
        assert!(!errors.contains("cut at"), "{errors}");
    }
}

#[test]
fn standard_input_and_gzip_are_read_like_files() {
    let bytes = common::bytes(&sample("v6e_replicated_oom"));
    let folder = tempfile::tempdir().expect("a folder");
    let packed = folder.path().join("packed.hlo.pb.gz");
    let file = std::fs::File::create(&packed).expect("created");
    let mut encoder = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    encoder.write_all(&bytes).expect("written");
    encoder.finish().expect("written");
    let from_file = json(&[packed.to_str().expect("UTF-8")]);

    let mut child = highwater()
        .args(["report", "--format", "json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program runs");
    child.stdin.take().expect("a pipe").write_all(&bytes).expect("written");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success());
    let from_pipe: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(spaces(&from_file), spaces(&from_pipe));
    assert_eq!(from_file["sources"][0]["bytes"], bytes.len());
    assert_eq!(from_pipe["sources"][0]["bytes"], bytes.len());
}

#[test]
fn wrong_arguments_end_with_two() {
    let (file, layered) = (path("v6e_replicated_oom"), path("v5e_gpt_m_oom"));
    for args in [
        &["report"][..],
        &["report", "--capacity", "lots", &file],
        &["report", "--format", "poem", &file],
        &["report", "--top", "-1", &file],
        &["report", "--nonsense", &file],
        &["report", "--space", "nothing", &file],
        &["report", "--program", "nothing", &file],
        &["report", "--step", "3", &file],
        &["report", "--tree", "class", "--step", "99999999", &file],
        &["report", "--from", "99999998", "--to", "99999999", &file],
        &["report", "--from", "9", "--to", "5", &file],
        &["report", "--edit", "donate nothing", &file],
        &["report", "--edit", "donate nothing", "--edit", "donate *", &file],
        &["report", "--edit", "remat nothing_*", &layered],
        &["report", "--edit", "blockwise nothing", &layered],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn a_capacity_decides_the_verdict() {
    let file = path("v6e_replicated_oom");
    let with = |capacity: &str| {
        let report = json(&["--capacity", capacity, "--space", "HBM", &file]);
        let space = &spaces(&report)[0];
        (
            space["capacity_bytes"].as_u64(),
            space["verdict"].as_str().map(str::to_owned),
            space["over_by_bytes"].as_u64(),
        )
    };
    let allocated = 51808043040_u64;
    let fits = |bytes: u64| (Some(bytes), Some("fits".to_owned()), Some(0));
    let over = |bytes: u64| (Some(bytes), Some("over".to_owned()), Some(allocated - bytes));
    assert_eq!(with("64GiB"), fits(64 << 30));
    assert_eq!(with("64G"), fits(64 << 30));
    assert_eq!(with("15.75GiB"), over(16911433728));
    assert_eq!(with("1024MiB"), over(1 << 30));
    assert_eq!(with("1024M"), over(1 << 30));
    assert_eq!(with("2048KiB"), over(2 << 20));
    assert_eq!(with("2048K"), over(2 << 20));
    assert_eq!(with("51808043040B"), fits(allocated));
    assert_eq!(with("51808043039"), over(allocated - 1));
}

#[test]
fn a_space_is_chosen_by_name_or_colour() {
    let file = path("v6e_dlrm_repl_d3");
    let colours = |args: &[&str]| -> Vec<i64> {
        let mut all = args.to_vec();
        all.push(&file);
        spaces(&json(&all)).iter().filter_map(|space| space["colour"].as_i64()).collect()
    };
    assert_eq!(colours(&[]), [0, 1, 2, 4, 6, 8, 10, 11, 12]);
    assert_eq!(colours(&["--space", "VMEM"]), [1]);
    assert_eq!(colours(&["--space", "vmem"]), [1]);
    assert_eq!(colours(&["--space", "1"]), [1]);
}

#[test]
fn rows_curve_and_buffers_come_as_asked() {
    let file = path("v5e_mlp_f32");
    let rows = |top: &str| {
        let report = json(&["--top", top, "--space", "HBM", &file]);
        let space = &spaces(&report)[0];
        assert!(space.get("curve").is_none() && space.get("buffers").is_none(), "only when asked for");
        (space["at_peak"].as_array().map(Vec::len), space["at_peak_count"].as_u64())
    };
    assert_eq!(rows("3"), (Some(3), Some(22)));
    assert_eq!(rows("0"), (Some(22), Some(22)));
    let report = json(&["--curve", "--buffers", "--space", "HBM", &file]);
    let space = &spaces(&report)[0];
    let curve = space["curve"].as_array().expect("a curve");
    let highest = curve.iter().filter_map(|point| point[1].as_u64()).max();
    assert_eq!(highest, space["peak_bytes"].as_u64());
    let buffers = space["buffers"].as_array().expect("buffers");
    assert_eq!(Some(buffers.len() as u64), space["buffer_count"].as_u64());
    let ids: Vec<i64> = buffers.iter().filter_map(|buffer| buffer["id"].as_i64()).collect();
    assert!(ids.is_sorted() && ids.len() == buffers.len());
}

/// Keys that the report's schema guarantees, and whether each may be null.
const SPACE: &[(&str, bool)] = &[
    ("colour", false),
    ("name", false),
    ("capacity_bytes", true),
    ("capacity_evidence", true),
    ("verdict", false),
    ("over_by_bytes", true),
    ("allocated_bytes", false),
    ("always_live_bytes", false),
    ("peak_bytes", false),
    ("peak_event", false),
    ("xprof_peak_unpadded_bytes", false),
    ("padding_at_peak_bytes", false),
    ("time_count", true),
    ("reserved_peak_bytes", true),
    ("reserved_peak_time", true),
    ("content_peak_bytes", true),
    ("fragmentation_bytes", false),
    ("event_count", false),
    ("buffer_count", false),
    ("buffers_without_lifetime", false),
    ("at_peak", false),
    ("by_category", false),
];

const BUFFER: &[(&str, bool)] = &[
    ("id", false),
    ("name", false),
    ("bytes", false),
    ("unpadded_bytes", true),
    ("shape", true),
    ("category", false),
    ("op_name", true),
    ("source", true),
    ("offset", true),
    ("allocation", true),
    ("start", true),
    ("end", true),
    ("live_start", true),
    ("live_end", true),
    ("lifetime_from", true),
];

fn has(what: &str, object: &Value, keys: &[(&str, bool)]) {
    for &(key, may_be_null) in keys {
        let value = object.get(key).unwrap_or_else(|| panic!("{what} has no {key}"));
        assert!(may_be_null || !value.is_null(), "{what}: {key} is null");
    }
}

#[test]
fn the_json_holds_the_schema_for_every_sample() {
    let paths = common::sample_programs();
    for path in &paths {
        let report = json(&["--buffers", "--curve", path.to_str().expect("UTF-8")]);
        assert_eq!(report["schema"], "highwater.report/1");
        for source in report["sources"].as_array().expect("sources") {
            has(
                "a source",
                source,
                &[("path", false), ("format", false), ("bytes", false), ("notes", false), ("error", true)],
            );
        }
        let profile = &report["profiles"][0];
        has(
            "a profile",
            profile,
            &[
                ("name", false),
                ("device", false),
                ("programs", false),
                ("runtime", false),
                ("live", true),
                ("tiles", true),
                ("failures", false),
                ("findings", false),
            ],
        );
        has("a device", &profile["device"], &[("name", true), ("kind", true), ("evidence", true)]);
        has("a program", &profile["programs"][0], &[("name", false), ("id", true), ("spaces", false)]);
        assert!(!spaces(&report).is_empty(), "{}", path.display());
        for space in spaces(&report) {
            has("a space", space, SPACE);
            assert!(["fits", "over", "unknown"].contains(&space["verdict"].as_str().unwrap_or_default()));
            assert_eq!(space["capacity_bytes"].is_null(), space["verdict"] == "unknown");
            let at_peak = space["at_peak"].as_array().expect("rows");
            for buffer in at_peak.iter().chain(space["buffers"].as_array().expect("rows")) {
                has("a buffer", buffer, BUFFER);
            }
            let order: Vec<_> =
                at_peak.iter().map(|b| (std::cmp::Reverse(b["bytes"].as_u64()), b["id"].as_i64())).collect();
            assert!(order.is_sorted(), "by bytes, largest first, then by id");
        }
    }
}

#[test]
fn without_a_display_the_window_says_so_and_prints_the_report() {
    let file = path("v6e_replicated_oom");
    let output = run(&[&file]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text.contains("Does not fit"), "{text}");
    assert_eq!(text, stdout(&run(&["report", &file])), "the same as the report");
    let errors = stderr(&output);
    assert_eq!(errors.lines().count(), 1, "one line: {errors}");
    assert!(errors.contains("DISPLAY"), "it names what is missing: {errors}");
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let mut child = highwater()
        .args(["report", "--buffers", "--format", "json", &path("v5e_gpt_m_oom")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).is_empty(), "{}", stderr(&output));
}

#[test]
fn sets_of_changes_are_read_from_a_file_and_stand_in_every_form_of_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sets.txt");
    std::fs::write(&file, "# for the meeting\n[over the mesh]\nshard table,stats 4\n[half]\nshard table 2\n")
        .expect("written");
    let sets = file.to_str().expect("UTF-8");
    let sample = path("v6e_replicated_oom");
    let report = json(&[&sample, "--sets", sets]);
    let space = &spaces(&report)[0];
    let names: Vec<&str> =
        space["what_if_sets"].as_array().expect("sets").iter().filter_map(|set| set["name"].as_str()).collect();
    assert_eq!(names, ["over the mesh", "half"]);
    let single = json(&[&sample, "--edit", "shard table,stats 4"]);
    let (set, alone) = (&space["what_if_sets"][0], &spaces(&single)[0]["what_if"]);
    for key in ["peak_bytes", "allocated_bytes", "base_bytes", "fits", "edits", "summary"] {
        assert_eq!(set[key], alone[key], "{key}");
    }
    let text = stdout(&run(&["report", &sample, "--sets", sets]));
    assert!(text.contains("what if over the mesh: shard table,stats 4: fits"), "{text}");
    let markdown = stdout(&run(&["report", &sample, "--sets", sets, "--format", "markdown"]));
    assert!(markdown.contains("What if **half**: `shard table 2`"), "{markdown}");
}

#[test]
fn a_file_without_changes_is_refused_with_its_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("sets.txt");
    std::fs::write(&file, "[a]\nhalve everything\n").expect("written");
    let sample = path("v6e_replicated_oom");
    let output = run(&["report", &sample, "--sets", file.to_str().expect("UTF-8")]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("line 2: Unknown change `halve`"), "{}", stderr(&output));
    let output = run(&["report", &sample, "--sets", "no such file"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("cannot read"), "{}", stderr(&output));
}

#[test]
fn a_mistyped_command_is_an_error_with_a_suggestion() {
    let output = run(&["reprot", "x.hlo.pb"]);
    assert_eq!(output.status.code(), Some(2));
    let errors = stderr(&output);
    assert!(errors.starts_with("error: reprot: ") && errors.contains("`highwater report`"), "{errors}");
    assert_eq!(run(&["nonsense"]).status.code(), Some(2));
}

#[test]
fn completions_and_the_manual_name_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let output = run(&["completions", shell]);
        assert_eq!(output.status.code(), Some(0));
        assert!(["report", "screenshot", "man"].iter().all(|name| stdout(&output).contains(name)), "{shell}");
    }
    let output = run(&["man"]);
    assert!(stdout(&output).contains(".TH highwater 1") && stdout(&output).contains("report"), "{}", stdout(&output));
    let folder = tempfile::tempdir().expect("a folder");
    assert_eq!(run(&["man", "--out", folder.path().to_str().expect("UTF-8")]).status.code(), Some(0));
    let report = std::fs::read_to_string(folder.path().join("highwater-report.1")).expect("a page");
    assert!(report.contains("instruction"), "{report}");
}

#[test]
fn a_width_wraps_the_text_and_loses_nothing() {
    let plain = stdout(&run(&["report", &path("v5e_gpt_m_oom")]));
    let wrapped = stdout(&run(&["report", &path("v5e_gpt_m_oom"), "--width", "80"]));
    assert!(plain.lines().any(|line| line.chars().count() > 80), "there is something to wrap");
    let wide: Vec<&str> = wrapped.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    assert_eq!(squeezed(&plain), squeezed(&wrapped));
    assert!(!plain.contains('\u{1b}') && !plain.contains('`'), "no colour in a pipe, no backquotes");
}

#[test]
fn an_instruction_is_printed_as_hlo_text_with_its_operands() {
    let report = json(&[&path("v5e_gpt_m_oom")]);
    let name = spaces(&report)[0]["reserved_peak_instruction"].as_str().expect("a name").to_owned();
    let report = json(&[&path("v5e_gpt_m_oom"), "--instruction", &name]);
    let found = &report["profiles"][0]["programs"][0]["instructions"][0];
    let text = found["text"].as_str().expect("a line");
    assert!(text.starts_with(&format!("%{name} = ")) && text.contains("metadata={op_name="), "{text}");
    let operands = found["operands"].as_array().expect("operands");
    assert!(!operands.is_empty());
    for operand in operands {
        let line = operand.as_str().expect("a line");
        let own = line.trim_start_matches("ROOT ").split(" = ").next().expect("a name");
        assert!(text.contains(own), "{own} is not in {text}");
    }
    let missing = run(&["report", &path("v5e_gpt_m_oom"), "--instruction", "nonesuch"]);
    assert_eq!(missing.status.code(), Some(2), "as another program or step that is not there");
    assert!(stderr(&missing).contains("no instruction 'nonesuch'"), "{}", stderr(&missing));
}

#[test]
fn a_picture_of_what_is_not_there_is_refused_as_other_wrong_arguments() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("x.png");
    let out = out.to_str().expect("UTF-8");
    for wrong in [["--view", "nonesuch"], ["--select", "nonesuch"]] {
        let output = run(&["screenshot", &path("v5e_gpt_m_oom"), "--out", out, wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
    }
    let missing = folder.path().join("gone.hlo.pb");
    let missing = missing.to_str().expect("UTF-8");
    let output = run(&["screenshot", missing, "--out", out]);
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(stderr(&output).trim(), format!("error: {missing}: cannot read: No such file or directory"));
}

#[test]
fn what_cannot_be_read_is_told_once() {
    let missing = "no/such.hlo.pb";
    for command in ["diff", "scale"] {
        let output = run(&[command, &path("v5e_gpt_m_oom"), missing]);
        assert_eq!(output.status.code(), Some(3), "{command}");
        let told = format!("{}{}", stdout(&output), stderr(&output)).matches("cannot read").count();
        assert_eq!(told, 1, "{command}: {}{}", stdout(&output), stderr(&output));
    }
    let three = ["diff", &path("v5e_gpt_m_oom"), missing, &path("v5e_mlp_f32")];
    let output = run(&three);
    assert_eq!(output.status.code(), Some(3));
    let told = format!("{}{}", stdout(&output), stderr(&output)).matches("cannot read").count();
    assert_eq!(told, 1, "{}{}", stdout(&output), stderr(&output));
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("hello.txt");
    std::fs::write(&text, "hello").expect("written");
    let report = stdout(&run(&["report", text.to_str().expect("UTF-8")]));
    assert!(report.contains("in 1 line (5 bytes)"), "{report}");
    // A text without a program has nothing to show in a column of three.
    let text = text.to_str().expect("UTF-8");
    let output = run(&["diff", text, text, text]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("no program to show as a column"), "{}", stderr(&output));
}
