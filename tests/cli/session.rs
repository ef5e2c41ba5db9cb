//! `highwater session`: what is saved opens again, plain and packed.

use std::fs;

use serde_json::Value;

use super::command_line::{path, run, stderr, stdout};

fn names(report: &[u8]) -> Vec<String> {
    let report: Value = serde_json::from_slice(report).expect("JSON");
    let profiles = report["profiles"].as_array().expect("profiles");
    profiles.iter().map(|profile| profile["programs"][0]["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_session_opens_what_it_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("step.after_optimizations.hlo.pb");
    fs::copy(path("v5e_mlp_f32"), &copy).expect("copied");
    let copy = copy.to_str().expect("UTF-8");
    let saved = folder.path().join("look.highwater");
    let out = saved.to_str().expect("UTF-8");
    let other = path("v5e_gpt_m_oom");
    let output = run(&[
        "session",
        copy,
        &other,
        "--out",
        out,
        "--view",
        "timeline",
        "--step",
        "3",
        "--pin",
        "step 3: here",
        "--edit",
        "donate params",
        "--compare",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let session: Value = serde_json::from_slice(&fs::read(&saved).expect("the session")).expect("JSON");
    assert_eq!(session["schema"], "highwater.session/1");
    assert_eq!(session["profiles"][0]["path"], "step.after_optimizations.hlo.pb", "beside the session");
    assert_eq!(session["profiles"][1]["path"], other.as_str(), "elsewhere");
    assert_eq!(session["profiles"][0]["pins"][0], "step 3: here");
    assert_eq!(session["comparisons"], serde_json::json!([[0, 1]]));

    let expected = names(&run(&["report", "--format", "json", copy, &other]).stdout);
    let output = run(&["report", "--format", "json", out]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!((names(&output.stdout), stderr(&output)), (expected, String::new()));

    // A changed profile is told, and still opens; a missing one is an error, and the other opens.
    let mut bytes = fs::read(copy).expect("readable");
    bytes.extend([0x0a, 0x00]);
    fs::write(copy, bytes).expect("written");
    let output = run(&["report", out]);
    assert!(stderr(&output).contains("has changed since the session was saved"), "{}", stderr(&output));
    fs::remove_file(copy).expect("removed");
    let output = run(&["report", out]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stdout(&output).contains("v5e_gpt_m_oom"), "{}", stdout(&output));
}

#[test]
fn a_packed_session_needs_nothing_else() {
    let folder = tempfile::tempdir().expect("a folder");
    let copy = folder.path().join("secret_model.after_optimizations.hlo.pb");
    fs::copy(path("v5e_mlp_f32"), &copy).expect("copied");
    let expected = names(&run(&["report", "--format", "json", copy.to_str().expect("UTF-8")]).stdout);
    for hide in [false, true] {
        let saved = folder.path().join("hand_on.highwater");
        let out = saved.to_str().expect("UTF-8");
        let pin = "step 3: ask Ada";
        let mut args = vec!["session", copy.to_str().expect("UTF-8"), "--out", out, "--pack", "--pin", pin];
        args.extend(hide.then_some("--hide-names"));
        let output = run(&args);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let elsewhere = tempfile::tempdir().expect("a folder");
        let moved = elsewhere.path().join("moved.highwater");
        fs::rename(&saved, &moved).expect("moved");
        let output = run(&["report", "--format", "json", moved.to_str().expect("UTF-8")]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(names(&output.stdout), expected);
        let bytes = fs::read(&moved).expect("the archive");
        let names_file = memchr::memmem::find(&bytes, b"secret_model").is_some();
        assert_eq!(names_file, !hide, "the file's name");
        let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).expect("a zip");
        let session: Value = serde_json::from_reader(archive.by_name("session.highwater").expect("it")).expect("JSON");
        assert_eq!(session["names_hidden"], hide);
        assert_eq!(session["profiles"][0]["pins"][0], if hide { "step 3" } else { pin });
    }
}

#[test]
fn what_is_no_session_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bad.highwater");
    let name = file.to_str().expect("UTF-8");
    let many =
        format!("{{\"schema\":\"highwater.session/1\",\"profiles\":[{}{{}}]}}", "{\"path\":\"a\"},".repeat(10_001));
    let long = format!("{{\"schema\":\"highwater.session/1\",\"note\":\"{}\"}}", "x".repeat(5 << 20));
    for (text, expected) in [
        ("{\"schema\":\"highwater.session/1\",\"profiles\":[", "not a session"),
        ("{\"schema\":\"highwater.session/2\",\"profiles\":[]}", "its schema is highwater.session/2"),
        (many.as_str(), "session"),
        (long.as_str(), "which no session has"),
    ] {
        fs::write(&file, text).expect("written");
        let output = run(&["report", name]);
        assert_eq!(output.status.code(), Some(3), "{expected}");
        assert!(stderr(&output).contains(expected), "{expected}: {}", stderr(&output));
    }
    assert_eq!(run(&["session", "/nonexistent.pb", "--out", name]).status.code(), Some(3));
    assert_eq!(run(&["session", "/nonexistent.pb"]).status.code(), Some(2), "nowhere to save it");
}

#[cfg(feature = "window")]
#[test]
fn a_picture_of_a_session_shows_the_view_with_its_changes_and_pins() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (saved, of_session, of_file, plain) = (at("look.highwater"), at("a.svg"), at("b.svg"), at("c.svg"));
    let file = path("v5e_gpt_m_oom");
    let look = ["--view", "whatif", "--edit", "donate params", "--pin", "step 3: here"];
    let size = ["--size", "1280x800"];
    assert_eq!(run(&[&["session", &file, "--out", &saved], &look[..]].concat()).status.code(), Some(0));
    for (args, out) in [
        (vec!["screenshot", saved.as_str()], &of_session),
        ([&["screenshot", file.as_str()], &look[..]].concat(), &of_file),
        (vec!["screenshot", file.as_str()], &plain),
    ] {
        let output = run(&[&args[..], &["--out", out.as_str()], &size[..]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    let [of_session, of_file, plain] = [of_session, of_file, plain].map(|svg| fs::read_to_string(svg).expect("drawn"));
    assert!(of_session == of_file && of_session != plain, "the session says where to look");
    let output = run(&["screenshot", &saved, "--view", "overview", "--out", &at("d.svg"), "--size", "1280x800"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(fs::read_to_string(at("d.svg")).expect("drawn") != of_session, "arguments go before it");
}
