//! Dependencies comply with `deny.toml`: licences, sources, bans and duplicate versions, according to cargo's metadata.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A list of strings in `deny.toml`: every quoted word between `key = [` and `]`.
fn list<'a>(toml: &'a str, key: &str) -> BTreeSet<&'a str> {
    let start = format!("\n{key} = [");
    let (_, rest) = toml.split_once(&start).unwrap_or_else(|| panic!("no {key} in deny.toml"));
    let (inside, _) = rest.split_once(']').expect("the end of a list");
    let found: BTreeSet<&str> = inside.split('"').skip(1).step_by(2).collect();
    assert!(!found.is_empty(), "{key} in deny.toml is empty");
    found
}

/// The packages in the dependency tree on this machine.
fn packages() -> Vec<Value> {
    let version = Command::new("rustc").arg("-vV").output().expect("rustc");
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline", "--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let nodes = metadata["resolve"]["nodes"].as_array().expect("nodes");
    let used: BTreeSet<&str> = nodes.iter().filter_map(|node| node["id"].as_str()).collect();
    let all = metadata["packages"].as_array().expect("packages").iter();
    all.filter(|package| package["id"].as_str().is_some_and(|id| used.contains(id))).cloned().collect()
}

/// Whether a licence expression is satisfied by the allowed licences: one part of each `OR`, every part of an `AND`. An
/// exception (`WITH`) only adds permissions.
fn is_allowed(expression: &str, allowed: &BTreeSet<&str>) -> bool {
    let plain = expression.replace(['(', ')'], "").replace('/', " OR ");
    plain.split(" AND ").all(|part| {
        part.split(" OR ").any(|licence| {
            let name = licence.split(" WITH ").next().unwrap_or_default().trim();
            allowed.contains(name)
        })
    })
}

#[test]
fn dependencies_obey_the_rules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deny.toml");
    let rules = fs::read_to_string(path).expect("deny.toml");
    let (licences, banned, registries) = (list(&rules, "allow"), list(&rules, "deny"), list(&rules, "allow-registry"));
    let doubled = list(&rules, "skip");
    let packages = packages();
    assert!(packages.len() > 100, "only {} packages", packages.len());
    let mut versions: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for package in &packages {
        let name = package["name"].as_str().expect("a name");
        *versions.entry(name).or_default() += 1;
        let licence = package["license"].as_str().unwrap_or_default();
        if !is_allowed(licence, &licences) {
            wrong.push(format!("{name}: licence {licence:?}"));
        }
        if banned.contains(name) {
            wrong.push(format!("{name} is banned"));
        }
        let source = package["source"].as_str().map(|source| source.trim_start_matches("registry+"));
        if source.is_some_and(|source| !registries.contains(source)) {
            wrong.push(format!("{name}: from {source:?}"));
        }
    }
    let twice = versions.iter().filter(|(_, count)| **count > 1).map(|(name, _)| *name);
    wrong.extend(twice.filter(|name| !doubled.contains(name)).map(|name| format!("{name}: several versions")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn licence_expressions_are_understood() {
    let allowed: BTreeSet<&str> = ["MIT", "Unicode-3.0"].into();
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0 OR MIT", true),
        ("Apache-2.0/MIT", true),
        ("(Apache-2.0 OR MIT) AND Unicode-3.0", true),
        ("MIT AND GPL-3.0", false),
        ("Apache-2.0 WITH LLVM-exception", false),
        ("", false),
    ] {
        assert_eq!(is_allowed(expression, &allowed), expected, "{expression}");
    }
}
