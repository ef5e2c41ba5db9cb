//! Conventions of tests and package: no test returns early, and every declared dependency is used.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Rust files below the folders.
fn rust_files(folders: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = folders.iter().map(|folder| root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())).flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Lines of each test in a file, with the number of the first line.
fn tests_of(text: &str) -> Vec<(usize, Vec<&str>)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut tests = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if line.trim() != "#[test]" {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        let body = lines[i..].iter().take_while(|line| **line != end).copied().collect();
        tests.push((i + 1, body));
    }
    tests
}

#[test]
fn no_test_returns_early() {
    let mut wrong = Vec::new();
    let mut tests = 0;
    for path in rust_files(&["tests", "src"]) {
        let text = fs::read_to_string(&path).expect("readable");
        for (start, body) in tests_of(&text) {
            tests += 1;
            for (i, line) in body.iter().enumerate() {
                let code = line.split("//").next().unwrap_or_default();
                let returns = (code.contains("else { return }") || code.trim() == "return;") && !code.contains('"');
                let skips = code.trim().starts_with("#[ignore") || code.trim().starts_with("println!(\"skipped");
                if returns || skips {
                    wrong.push(format!("{}:{}: {}", path.display(), start + i, code.trim()));
                }
            }
        }
        let may_ask = ["tests/common/mod.rs", "tests/outside/main.rs"];
        if !may_ask.iter().any(|file| path.ends_with(file)) {
            let asks = path.starts_with(root().join("tests")) && text.contains(&["env", "::var"].concat());
            if asks {
                wrong.push(format!("{}: a test depends on the environment", path.display()));
            }
        }
    }
    assert!(tests > 200, "only {tests} tests were found: is this test blind?");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names of the packages declared in the manifest, by section.
fn declared(manifest: &str) -> Vec<(String, String)> {
    let mut section = String::new();
    let mut found = Vec::new();
    for line in manifest.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').to_owned();
        } else if section.ends_with("dependencies")
            && let Some((name, _)) = line.split_once(" = ")
            && !name.starts_with('#')
        {
            found.push((section.clone(), name.to_owned()));
        }
    }
    found
}

#[test]
fn every_declared_dependency_is_used() {
    let manifest = fs::read_to_string(root().join("Cargo.toml")).expect("a manifest");
    let read = |folders: &[&str]| -> String {
        rust_files(folders).iter().map(|path| fs::read_to_string(path).expect("readable")).collect()
    };
    let (source, tests, build) = (read(&["src"]), read(&["tests", "benches", "examples"]), read(&["proto"]));
    let mut unused = BTreeSet::new();
    let declared = declared(&manifest);
    assert!(declared.len() > 20, "{declared:?}");
    for (section, name) in declared {
        let text = match section.as_str() {
            "build-dependencies" => &build,
            "dev-dependencies" => &tests,
            _ => &source,
        };
        let name = name.replace('-', "_");
        let is_used = [format!("{name}::"), format!("use {name};")].iter().any(|words| text.contains(words.as_str()));
        if !is_used {
            unused.insert(format!("{section}: {name}"));
        }
    }
    assert!(unused.is_empty(), "declared and not used: {unused:?}");
}
