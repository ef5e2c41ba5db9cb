//! Rules of the architecture: which folder may import which, import cycles, length and first line of files.

#[path = "../common/imports.rs"]
mod imports;

use std::fs;
use std::path::{Path, PathBuf};

use imports::{Sources, circles, graph};

const MAX_LINES: usize = 700;

/// Maximum number of files in an import cycle.
const MAX_CIRCLE: usize = 3;

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
    // The binary sees the library from outside.
    ("cli", &[]),
];

/// Folder, and the folders that it must not import.
const NEVER: &[(&str, &[&str])] = &[
    ("ui/widget/", &["model/", "analysis/", "ui/session/", "ui/work/", "ui/part/", "ui/view/", "ui/app/"]),
    ("ui/session/", &["ui/work/", "ui/part/", "ui/view/", "ui/app/"]),
    ("ui/work/", &["ui/part/", "ui/view/", "ui/app/"]),
    ("ui/chart/", &["ui/part/", "ui/view/", "ui/app/"]),
    ("ui/part/", &["ui/view/", "ui/app/"]),
    ("ui/view/", &["ui/app/"]),
    ("analysis/names/", &["analysis/class/", "analysis/packing/", "analysis/what_if/", "analysis/table/"]),
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

/// All files of `src/`.
fn sources() -> Sources {
    let files = source_files(&root().join("src"));
    files.iter().map(|path| (relative(path), fs::read_to_string(path).expect("readable"))).collect()
}

/// Top-level folder of a file; files outside of folders (`lib.rs`, `main.rs`) may import everything.
fn folder(file: &str) -> Option<&str> {
    file.split_once('/').map(|(folder, _)| folder)
}

/// The view that a file belongs to, or `mod` for the list of views.
fn view_of(file: &str) -> Option<&str> {
    file.strip_prefix("ui/view/")?.split(['/', '.']).next()
}

/// All imports that break a rule, with their lines.
fn broken_rules(sources: &Sources) -> Vec<String> {
    let mut wrong = Vec::new();
    for (file, imports) in graph(sources) {
        for (target, line) in imports {
            let mut say = |rule: &str| wrong.push(format!("{file}:{line}: {rule}: {target}"));
            if let (Some(from), Some(to)) = (folder(&file), folder(&target)) {
                match MAY_IMPORT.iter().find(|(own, _)| *own == from) {
                    Some((_, allowed)) if from != to && !allowed.contains(&to) => say("against the arrows"),
                    None => say("a folder the design does not know"),
                    _ => {}
                }
            }
            for (room, never) in NEVER {
                if file.starts_with(room) && never.iter().any(|never| target.starts_with(never)) {
                    say("a room above");
                }
            }
            match (view_of(&file), view_of(&target)) {
                (Some(own), Some("mod")) if own != "mod" => say("the list of views"),
                (Some(own), Some(other)) if own != other && own != "mod" => say("another view"),
                _ => {}
            }
        }
    }
    wrong
}

#[test]
fn imports_follow_the_rules() {
    let wrong = broken_rules(&sources());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_circle_is_larger_than_three_files() {
    let circles = circles(&graph(&sources()), MAX_CIRCLE);
    let wrong: Vec<_> = circles.iter().map(|circle| circle.join("\n  ")).collect();
    assert!(wrong.is_empty(), "{} circles:\n  {}", wrong.len(), wrong.join("\n\n  "));
}

/// Synthetic files: path below `src/`, text.
fn made_up(files: &[(&str, &str)]) -> Sources {
    files.iter().map(|(file, text)| ((*file).to_owned(), (*text).to_owned())).collect()
}

const VIEW_A: (&str, &str) = ("ui/view/a/mod.rs", "pub fn show() {}");
const LIST: (&str, &str) = ("ui/view/mod.rs", "mod a;\nmod b;\npub const VIEWS: u8 = 0;");

#[test]
fn every_rule_can_fail() {
    let cases: &[(&str, &str, &str)] = &[
        ("ui/view/b.rs", "use crate::ui::view::a;", "another view"),
        ("ui/view/b.rs", "use super::a::show;", "another view"),
        ("ui/view/b.rs", "fn f() { super::a::show(); }", "another view"),
        ("ui/view/b/deep.rs", "use super::super::a;", "another view"),
        ("ui/view/b.rs", "use crate::{model, ui::view::{a::show as other}};", "another view"),
        ("ui/view/b.rs", "use super::VIEWS;", "the list of views"),
        ("ui/view/b.rs", "use crate::ui::{\n    app,\n    view::VIEWS,\n};", "the list of views"),
        ("ui/part/menu.rs", "use crate::ui::view::a;", "a room above"),
        ("ui/part/mod.rs", "pub use super::view::a::show;", "a room above"),
        ("ui/widget/table.rs", "use crate::model::Bytes;", "a room above"),
        ("ui/session/mod.rs", "use super::work::Job;", "a room above"),
        ("decode/hlo/mod.rs", "use crate::analysis::names;", "against the arrows"),
        ("decode/mod.rs", "fn f() { super::analysis::names::path(); }", "against the arrows"),
        ("analysis/names/mod.rs", "use super::what_if::Edit;", "a room above"),
        ("elsewhere/mod.rs", "use crate::model::Bytes;", "a folder the design does not know"),
    ];
    for (file, text, rule) in cases {
        let mut files = made_up(&[
            VIEW_A,
            LIST,
            ("model/mod.rs", "pub struct Bytes;"),
            ("analysis/names/mod.rs", "pub fn path() {}"),
            ("analysis/what_if/mod.rs", "pub struct Edit;"),
            ("ui/work/mod.rs", "pub struct Job;"),
        ]);
        files.insert((*file).to_owned(), (*text).to_owned());
        let wrong = broken_rules(&files);
        assert!(wrong.iter().any(|line| line.starts_with(file) && line.contains(rule)), "{file}: {text}: {wrong:?}");
    }
}

#[test]
fn what_is_allowed_breaks_no_rule() {
    let files = made_up(&[
        VIEW_A,
        LIST,
        ("ui/view/a/part.rs", "use super::show;\n// use crate::ui::view::b;\nconst S: &str = \"crate::ui::app\";"),
        ("ui/view/b.rs", "use crate::ui::part::menu;\n#[cfg(test)]\nmod tests {\n    use super::super::a;\n}\n"),
        ("ui/part/menu.rs", "use crate::model::Bytes;"),
        ("model/mod.rs", "mod bytes;\npub use bytes::Bytes;"),
        ("model/bytes.rs", "pub struct Bytes;"),
    ]);
    assert_eq!(broken_rules(&files), Vec::<String>::new());
    // A re-exported item counts for the file that declares it.
    assert!(graph(&files)["ui/part/menu.rs"].contains_key("model/bytes.rs"));
}

#[test]
fn circles_are_found() {
    let around = |n: usize, file: fn(usize) -> String| {
        let module = |i: usize| file(i).trim_end_matches(".rs").replace('/', "::");
        (0..n).map(|i| (file(i), format!("use crate::{}::X;", module((i + 1) % n)))).collect::<Sources>()
    };
    let in_one_folder = |i| format!("model/f{i}.rs");
    let in_several_folders = |i| format!("model/f{i}/part.rs");
    for file in [in_one_folder, in_several_folders] {
        assert!(circles(&graph(&around(3, file)), MAX_CIRCLE).is_empty());
        assert_eq!(circles(&graph(&around(4, file)), MAX_CIRCLE)[0].len(), 4);
    }
}

#[test]
fn a_module_whose_files_import_it_is_a_circle() {
    let parent = "mod b;\nmod c;\nmod d;\nuse b::B;\nuse c::C;\nuse d::D;\npub struct A;";
    let mut files = made_up(&[
        ("model/a/mod.rs", parent),
        ("model/a/b.rs", "use super::A;"),
        ("model/a/c.rs", "use super::A;"),
        ("model/a/d.rs", "use super::A;"),
    ]);
    assert_eq!(circles(&graph(&files), MAX_CIRCLE)[0].len(), 4);
    // With the shared type in a file of its own, re-exported by the module, there is no cycle.
    let parent = parent.replace("pub struct A;", "mod e;\npub use e::A;");
    files.insert("model/a/mod.rs".to_owned(), parent);
    files.insert("model/a/e.rs".to_owned(), "pub struct A;".to_owned());
    assert!(circles(&graph(&files), MAX_CIRCLE).is_empty());
}

/// Parameters of type `bool` in the public functions of a file, as `line: function(parameter)`.
fn bare_bools(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let starts = text.match_indices("fn ").filter(|(at, _)| {
        let line = &text[text[..*at].rfind('\n').map_or(0, |i| i + 1)..*at];
        line.trim_start().starts_with("pub") && !line.contains("//")
    });
    for (at, _) in starts {
        let (name, rest) = text[at + 3..].split_once('(').unwrap_or_default();
        let name = name.split('<').next().unwrap_or(name);
        // Up to the closing bracket of the list: the return type is not a parameter.
        let mut depth = 1;
        let end = rest.find(|c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            depth == 0
        });
        let parameters = &rest[..end.unwrap_or(0)];
        for parameter in parameters.split([',', '(', ')']).map(str::trim) {
            if let Some((parameter, "bool")) = parameter.split_once(": ") {
                found.push(format!("{}: {name}({parameter})", text[..at].lines().count()));
            }
        }
    }
    found
}

#[test]
fn public_functions_of_the_window_take_no_bare_bool() {
    let mut wrong = Vec::new();
    for path in source_files(&root().join("src/ui")) {
        let text = fs::read_to_string(&path).expect("readable");
        wrong.extend(bare_bools(&text).into_iter().map(|place| format!("{}:{place}", relative(&path))));
    }
    assert!(wrong.is_empty(), "name it: an enum, a structure, two functions:\n{}", wrong.join("\n"));
}

#[test]
fn bare_bools_are_found() {
    assert_eq!(bare_bools("pub fn a(on: bool) {}"), ["1: a(on)"]);
    assert_eq!(
        bare_bools("\n    pub(super) const fn a<T>(\n  &self,\n  x: (u8, u8),\n  on: bool,\n) -> bool {"),
        ["2: a(on)"]
    );
    assert_eq!(bare_bools("fn own(on: bool) {}\npub fn a(On(on): On) -> bool {\n    let x: bool = on;\n}"), [""; 0]);
    assert_eq!(bare_bools("pub fn a(f: impl Fn(bool) -> bool, g: bool) {}"), ["1: a(g)"]);
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
            // A label that truncates itself, or a layout that omits text.
            let cuts = ["TextWrapping", "TextWrapMode::Truncate", "truncate_at_width", ".elided", ".truncate()"];
            if name.starts_with("ui/") && name != only && cuts.iter().any(|cut| code.contains(cut)) {
                places.push(format!("{name}:{}: {}", i + 1, code.trim()));
            }
        }
    }
    assert!(places.is_empty(), "text is cut outside of {only}: {places:#?}");
}
