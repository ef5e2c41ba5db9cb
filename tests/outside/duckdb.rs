//! The README's questions to exported tables, asked with DuckDB.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::common;

/// Runs the queries on its standard input's file, in the folder that has `tables`; prints the rows as JSON.
const SCRIPT: &str = r"
import duckdb, json, sys
queries = [q for q in open(sys.argv[1]).read().split(';') if q.strip()]
print(json.dumps([[list(map(str, row)) for row in duckdb.sql(q).fetchall()] for q in queries]))
";

pub fn answers_the_questions_of_the_readme() {
    let python = common::asked_for_file("HIGHWATER_PYTHON");
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("the README");
    let (_, rest) = readme.split_once("```sql\n").expect("the queries");
    let (queries, _) = rest.split_once("```").expect("their end");

    // The same step a fortnight ago and now, after it had grown.
    let folder = tempfile::tempdir().expect("a folder");
    let pair = common::samples().join("pairs/donate_mlp_v4");
    let now = SystemTime::now();
    let weeks = Duration::from_hours(14 * 24);
    for (name, week, time) in [("after", "old", now - weeks), ("before", "new", now)] {
        fs::create_dir_all(folder.path().join(week)).expect("a folder");
        let copy = folder.path().join(week).join("step.after_optimizations.hlo.pb.gz");
        fs::copy(pair.join(format!("{name}.hlo.pb.gz")), &copy).expect("copied");
        File::options().write(true).open(&copy).and_then(|file| file.set_modified(time)).expect("its time");
    }
    let samples = common::samples();
    let tables = folder.path().join("tables");
    let status = Command::new(env!("CARGO_BIN_EXE_highwater"))
        .arg("export")
        .args([&folder.path().join("old"), &folder.path().join("new"), &samples.join("v5e_gpt_m_oom")])
        .arg("--out")
        .arg(&tables)
        .status()
        .expect("the program runs");
    assert!(status.success(), "{status}");
    fs::write(folder.path().join("queries.sql"), queries).expect("written");
    let output = Command::new(python)
        .args(["-c", SCRIPT, "queries.sql"])
        .current_dir(folder.path())
        .output()
        .expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers: Vec<Vec<Vec<String>>> =
        serde_json::from_slice::<Value>(&output.stdout).and_then(serde_json::from_value).expect("rows");
    let [worst, growth, padding, scopes] = &answers[..] else { panic!("{} answers", answers.len()) };
    assert!(
        worst[0][1].contains("v5e_gpt_m_oom") && worst[0][4].parse::<i64>().is_ok_and(|over| over > 0),
        "{worst:?}"
    );
    assert_eq!(worst.len(), 3, "{worst:?}");
    assert!(growth[0][3].parse::<i64>().is_ok_and(|bytes| bytes > 0), "the step grew: {growth:?}");
    assert!(padding[0][3].parse::<i64>().is_ok_and(|bytes| bytes > 0), "{padding:?}");
    assert!(scopes[0][2].parse::<i64>().is_ok_and(|bytes| bytes > 0), "{scopes:?}");
}
