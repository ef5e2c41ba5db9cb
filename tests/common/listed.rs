//! Checks that every test written is run: the number of `#[test]` in a program's files equals the number its harness
//! lists, and none is ignored. Otherwise a file without a `mod` line or a test behind a `cfg` would go unnoticed.

use std::fs;
use std::path::Path;
use std::process::Command;

/// Number of tests written in the files of a folder.
fn written(folder: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).flatten() {
        let path = entry.path();
        if path.is_dir() {
            count += written(&path);
        } else if path.extension().is_some_and(|end| end == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            count += text.lines().filter(|line| line.trim() == "#[test]").count();
        }
    }
    count
}

/// Number of tests that this program's harness lists.
fn listed(only: &[&str]) -> usize {
    let program = std::env::current_exe().unwrap_or_else(|e| panic!("this program: {e}"));
    let output = Command::new(program).args(["--list", "--format", "terse"]).args(only).output();
    let output = output.unwrap_or_else(|e| panic!("this program lists its tests: {e}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().filter(|line| line.ends_with(": test")).count()
}

#[test]
fn every_test_that_is_written_runs() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let expected = written(&tests.join(env!("CARGO_CRATE_NAME"))) + written(&tests.join("common"));
    assert_eq!(listed(&[]), expected, "written and listed");
    assert_eq!(listed(&["--ignored"]), 0, "ignored");
}
