//! The arrows of the design: who may import whom, how long a file may be, what every file begins with.

use std::fs;
use std::path::{Path, PathBuf};

const MAX_LINES: usize = 700;

/// Folder of `src/`, and the folders it may import from.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("source", &[]),
    ("model", &[]),
    ("decode", &["source", "model"]),
    ("open", &["source", "decode", "model"]),
    ("analysis", &["model"]),
    ("advisor", &["analysis", "model"]),
    ("export", &["advisor", "analysis", "model"]),
    ("ui", &["source", "decode", "open", "model", "analysis", "advisor", "export"]),
    // The program sees the library from outside.
    ("cli", &[]),
];

/// Inside `ui/`: part, and the parts it may not import.
const NEVER_INSIDE_UI: &[(&str, &[&str])] = &[
    ("ui/widget", &["crate::model", "crate::analysis", "crate::ui::view", "crate::ui::app", "crate::ui::session"]),
    ("ui/session", &["crate::ui::view", "crate::ui::app"]),
    ("ui/view", &["crate::ui::app"]),
];

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn relative(path: &Path) -> String {
    path.strip_prefix(root().join("src")).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

/// Folders of `src/` that a file names by `crate::folder`, each with the line.
fn imports(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        for (at, _) in code.match_indices("crate::") {
            let word: String = code[at + 7..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            found.push((word, i + 1));
        }
    }
    found
}

#[test]
fn imports_follow_the_arrows() {
    let mut wrong = Vec::new();
    for path in source_files(&root().join("src")) {
        let name = relative(&path);
        let Some((folder, _)) = name.split_once('/') else { continue };
        let text = fs::read_to_string(&path).expect("readable");
        let Some((_, allowed)) = MAY_IMPORT.iter().find(|(own, _)| *own == folder) else {
            panic!("{name}: a folder the design does not know");
        };
        for (import, line) in imports(&text) {
            if import != folder && !allowed.contains(&import.as_str()) {
                wrong.push(format!("{name}:{line}: {folder} imports {import}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn parts_of_the_window_do_not_import_each_other() {
    let mut wrong = Vec::new();
    for path in source_files(&root().join("src/ui")) {
        let name = relative(&path);
        let text = fs::read_to_string(&path).expect("readable");
        for (part, never) in NEVER_INSIDE_UI {
            if !name.starts_with(part) {
                continue;
            }
            for (i, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                for import in *never {
                    if code.contains(import) {
                        wrong.push(format!("{name}:{}: {import}", i + 1));
                    }
                }
            }
        }
        // A view knows the views beside it only through the session.
        if let Some(own) = name.strip_prefix("ui/view/").and_then(|rest| rest.split(['/', '.']).next())
            && own != "mod"
        {
            for (i, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                if let Some((_, rest)) = code.split_once("crate::ui::view::")
                    && !rest.starts_with(own)
                    && rest.chars().next().is_some_and(char::is_lowercase)
                {
                    wrong.push(format!("{name}:{}: another view", i + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_the_window_knows_egui() {
    for path in source_files(&root().join("src")) {
        let name = relative(&path);
        if name.starts_with("ui/") || name == "lib.rs" || name.starts_with("cli/") || name == "main.rs" {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        for (i, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            assert!(!code.contains("egui"), "{name}:{}: egui outside ui/", i + 1);
        }
    }
}

#[test]
fn colours_are_declared_in_the_theme_alone() {
    for path in source_files(&root().join("src/ui")) {
        let name = relative(&path);
        if name.starts_with("ui/widget/theme") || name.contains("paint") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("readable");
        for (i, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            for word in ["Color32::from_rgb", "Color32::from_hex", "Color32::RED", "Color32::from_gray", "hex_color!"] {
                assert!(!code.contains(word), "{name}:{}: {word} belongs into the theme", i + 1);
            }
        }
    }
}

#[test]
fn files_have_one_subject_and_a_bounded_length() {
    let mut wrong = Vec::new();
    for folder in ["src", "tests", "benches"] {
        for path in source_files(&root().join(folder)) {
            let text = fs::read_to_string(&path).expect("readable");
            let lines = text.lines().count();
            if lines > MAX_LINES {
                wrong.push(format!("{}: {lines} lines", path.display()));
            }
            if !text.starts_with("//! ") {
                wrong.push(format!("{}: the first line does not say what the file is about", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn text_is_cut_in_one_place_which_shows_it_whole_on_hover() {
    let only = "ui/widget/cut.rs";
    let mut places = Vec::new();
    for file in source_files(&root().join("src")) {
        let name = relative(&file);
        let text = fs::read_to_string(&file).expect("a source file");
        for (i, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            // A label that cuts by itself, a layout that leaves words out.
            let cuts = ["TextWrapping", "TextWrapMode::Truncate", "truncate_at_width", ".elided", ".truncate()"];
            if name.starts_with("ui/") && name != only && cuts.iter().any(|cut| code.contains(cut)) {
                places.push(format!("{name}:{}: {}", i + 1, code.trim()));
            }
        }
    }
    assert!(places.is_empty(), "text is cut outside of {only}: {places:#?}");
}
