//! A walk through every view on a real out-of-memory dump, once by mouse and once by keyboard only, checked by
//! accessible labels.

use std::path::PathBuf;

use egui::{Key, Modifiers, Role};

use crate::common;
use crate::walk::Walk;

/// The sample that does not fit.
fn dump() -> PathBuf {
    let mut all = common::sample_programs().into_iter();
    all.find(|path| path.to_string_lossy().contains("gpt_m_oom")).expect("the sample that does not fit")
}

fn open(view: &str) -> Walk {
    Walk::new(&[dump()], view)
}

fn ipu(view: &str) -> Walk {
    Walk::new(&[common::samples().join("ipu_over.cbor")], view)
}

fn made(name: &str, view: &str) -> Walk {
    Walk::new(&[common::samples().join("made").join(name)], view)
}

#[test]
fn overview() {
    let mut walk = open("overview");
    assert!(walk.says("Does not fit") && walk.says("Needs 25.9 GiB"), "{:?}", walk.words());
    walk.key(Key::End);
    let row = walk.first(Role::Row, "");
    walk.click(Role::Row, &row);
    assert!(walk.selected().is_some() && walk.says("Shape and padding"));
    walk.right_click(Role::Row, &row);
    walk.click(Role::MenuItem, "Show in Timeline");
    assert_eq!(walk.view(), "timeline");

    let mut walk = open("overview");
    let table = walk.go_to_field("Table of largest");
    assert!(!table.contains(';'), "no row has it yet: {table}");
    walk.key(Key::ArrowDown);
    assert!(walk.focused().contains(&row), "{} says {row}", walk.focused());
    assert!(walk.selected().is_some() && walk.says("Shape and padding"));
    walk.menu();
    assert_eq!(walk.focused(), "Copy name");
    walk.key(Key::ArrowDown);
    walk.key(Key::Escape);
    assert!(!walk.says("Copy name"), "Esc closes the menu");
    walk.tab_to(Role::Link, "open Buffers");
    walk.key(Key::Enter);
    assert_eq!(walk.view(), "buffers");

    // Enter opens a folded row, and again closes it; on a single buffer it leads to the timeline.
    let mut walk = open("overview");
    let rows = walk.all(Role::Row, "").len();
    walk.go_to_field("Table of largest");
    walk.key(Key::ArrowDown);
    walk.key(Key::Enter);
    assert!(walk.all(Role::Row, "").len() > rows, "the row is open: {:?}", walk.all(Role::Row, ""));
    walk.key(Key::ArrowDown);
    walk.key(Key::Enter);
    assert_eq!(walk.view(), "timeline");
}

#[test]
fn failure() {
    // The message lies next to the dump.
    let mut walk = open("failure");
    assert!(walk.says("Out of HBM"), "{:?}", walk.words());
    assert!(walk.says("25.9"));
    walk.click(Role::Tab, "Overview");
    assert_eq!(walk.view(), "overview");

    let mut walk = open("failure");
    walk.tab_to(Role::Button, "Copy.");
    walk.press(Modifiers::NONE, Key::Enter);
    assert!(walk.copied().contains("Ran out of memory on HBM"), "the message is copied as it was");
}

#[test]
fn timeline() {
    let mut walk = open("timeline");
    let map = walk.starting("Memory map, ");
    walk.click_at(&map, 0.3, 0.7);
    let by_mouse = walk.selected().expect("a click on the map selects what is there");
    assert!(walk.says("Lifetime"));
    walk.key(Key::Escape);
    let curve = walk.starting("Live bytes over the program");
    walk.click_at(&curve, 0.3, 0.5);
    assert!(walk.step().is_some() && walk.says("Largest at this step"));

    let mut walk = open("timeline");
    walk.shift(Key::ArrowLeft);
    let step = walk.step().expect("Shift and an arrow choose the step before the peak");
    walk.shift(Key::ArrowRight);
    assert_eq!(walk.step(), Some(step + 1));
    walk.key(Key::OpenBracket);
    for _ in 0..5 {
        walk.shift(Key::ArrowRight);
    }
    walk.key(Key::CloseBracket);
    assert_eq!(walk.shared().measured, Some((step + 1, step + 6)));
    let comes_to = |words: &String| words.starts_with("in ") && words.ends_with(" buffers");
    assert!(walk.words().iter().any(comes_to), "what the range comes to: {:?}", walk.words());
    walk.key(Key::Period);
    let next = walk.selected().expect("the next allocation");
    walk.key(Key::Comma);
    assert_ne!(walk.selected(), Some(next));
    walk.key(Key::F);
    assert!(walk.shared().range.is_some(), "F shows the whole life");
    walk.key(Key::Num0);
    assert_eq!(walk.shared().range, None);
    walk.tab_to(Role::RadioButton, "Lifetimes");
    walk.key(Key::Enter);
    walk.go_to_field("Lifetimes of ");
    walk.key(Key::Home);
    let largest = walk.selected();
    walk.key(Key::ArrowDown);
    assert!(walk.selected().is_some() && walk.selected() != largest);
    walk.menu();
    assert_eq!(walk.focused(), "Copy name");
    walk.press(Modifiers::NONE, Key::Enter);
    let name = walk.name_of(walk.selected().unwrap());
    assert_eq!(walk.copied(), name);
    assert!(walk.focused().starts_with("Lifetimes of "), "the rows have the focus again");
    let _ = by_mouse;
}

#[test]
fn treemap_and_icicle() {
    let mut walk = open("treemap");
    let layers = walk.starting("layer_*  \u{d7}");
    assert!(layers.contains("GiB") && layers.contains(" B,") && layers.contains("buffers"), "{layers}");
    walk.click_head(&layers);
    assert_eq!(walk.path(), ["layer_*"]);
    let map = walk.starting("Treemap of ");
    walk.right_click(Role::Image, &map);
    walk.click(Role::MenuItem, "Zoom out");
    assert!(walk.path().is_empty());

    for form in ["Treemap", "Icicle"] {
        let mut walk = open("treemap");
        walk.tab_to(Role::RadioButton, form);
        walk.key(Key::Enter);
        let at = walk.go_to_field(if form == "Treemap" { "Treemap of " } else { "Icicle of " });
        let said = at.split("; ").nth(1).expect("the box that has the focus").to_owned();
        assert!(said.contains("GiB"), "{said}");
        let mut seen = vec![said];
        for key in [Key::ArrowRight, Key::ArrowRight, Key::ArrowLeft] {
            walk.key(key);
            seen.push(walk.focused().split("; ").nth(1).expect("a box").to_owned());
        }
        assert!(seen.iter().any(|one| *one != seen[0]), "{form}: the arrows go to the neighbour: {seen:?}");
        // Find the folded layers, zoom in, and out again.
        for key in [Key::Home, Key::ArrowRight, Key::ArrowDown, Key::ArrowRight, Key::ArrowDown, Key::ArrowLeft] {
            if walk.focused().contains("; layer_*") {
                break;
            }
            walk.key(key);
        }
        if walk.focused().contains("; layer_*") {
            walk.key(Key::Enter);
            assert_eq!(walk.path(), ["layer_*"], "{form}");
            walk.key(Key::Backspace);
            assert!(walk.path().is_empty(), "{form}");
            assert!(walk.focused().contains("; layer_*"), "{form}: back at what was left: {}", walk.focused());
        } else {
            walk.key(Key::Enter);
            assert!(!walk.path().is_empty() || walk.selected().is_some(), "{form}: Enter goes in or selects");
            walk.key(Key::Backspace);
            assert!(walk.path().is_empty(), "{form}");
        }
        walk.menu();
        assert_eq!(walk.focused(), "Copy name", "{form}");
        walk.key(Key::Escape);
        let back = if form == "Treemap" { "Treemap of " } else { "Icicle of " };
        assert!(walk.focused().starts_with(back), "{form}: closing gives the focus back: {}", walk.focused());
    }
}

#[test]
fn heat_map() {
    let mut walk = open("heatmap");
    let panel = walk.starting("Heat map of HBM");
    walk.click_at(&panel, 0.4, 0.9);
    assert!(walk.step().is_some() && walk.selected().is_some());

    let mut walk = open("heatmap");
    let at = walk.go_to_field("Heat map of HBM");
    assert!(at.contains("% filled"), "{at}");
    walk.key(Key::ArrowLeft);
    let beside = walk.focused();
    assert_ne!(at, beside, "the arrows go from cell to cell");
    walk.key(Key::ArrowUp);
    assert_ne!(beside, walk.focused());
    walk.key(Key::ArrowDown);
    assert_eq!(beside, walk.focused());
    walk.key(Key::Enter);
    let step = walk.step().expect("Enter pins the step");
    assert!(walk.focused().contains(&step.to_string()));
    assert!(walk.selected().is_some(), "and selects what is largest there");
    walk.menu();
    assert_eq!(walk.focused(), "Copy name");
    walk.key(Key::Escape);
    walk.key(Key::F6);
    assert!(walk.focused().starts_with("Heat map of "), "F6 goes on: {}", walk.focused());
}

#[test]
fn padding() {
    let mut walk = open("padding");
    let mark = walk.starting("Shape ");
    walk.click(Role::Button, &mark);
    assert!(walk.says("wastes"), "{:?}", walk.words());
    let row = walk.first(Role::Row, "");
    walk.right_click(Role::Row, &row);
    walk.click(Role::MenuItem, "Show in Buffers");
    assert_eq!(walk.view(), "buffers");

    let mut walk = open("padding");
    let before = walk.words();
    walk.key(Key::ArrowDown);
    assert_ne!(walk.words(), before, "another shape has the card");
    walk.go_to_field("Table of shapes");
    walk.key(Key::End);
    let last = walk.focused();
    walk.key(Key::Home);
    assert_ne!(walk.focused(), last);
    walk.menu();
    assert_eq!(walk.focused(), "Copy name");
    walk.key(Key::Escape);
    walk.tab_to(Role::Button, "Shape ");
    walk.key(Key::Enter);
    assert!(walk.focused().starts_with("Shape "));
}

#[test]
fn buffers() {
    let mut walk = open("buffers");
    let row = walk.first(Role::Row, "");
    walk.click(Role::Row, &row);
    let by_mouse = walk.selected().expect("selected");
    assert!(walk.says("Shape and padding"));
    walk.right_click(Role::Row, &row);
    walk.click(Role::MenuItem, "Hide");
    assert!(walk.says("show 1 hidden"));

    let mut walk = open("buffers");
    walk.go_to_field("Table of buffers");
    walk.key(Key::ArrowDown);
    assert_eq!(walk.selected(), Some(by_mouse), "the first row");
    walk.key(Key::PageDown);
    assert_ne!(walk.selected(), Some(by_mouse));
    walk.key(Key::Home);
    assert_eq!(walk.selected(), Some(by_mouse));
    walk.tab_to(Role::ColumnHeader, "Sort by Size");
    walk.key(Key::Enter);
    assert_ne!(walk.first(Role::Row, ""), row, "the smallest comes first");
    walk.modified(Modifiers::COMMAND, Key::F);
    walk.type_text("Filter buffers", "category:param");
    walk.key(Key::Escape);
    walk.go_to_field("Table of buffers");
    walk.key(Key::Home);
    walk.key(Key::Enter);
    assert_eq!(walk.view(), "timeline", "Enter shows it in time");
}

#[test]
fn what_if() {
    let mut walk = open("whatif");
    let switch = walk.first(Role::Switch, "");
    let before = walk.words();
    walk.click(Role::Switch, &switch);
    assert_ne!(walk.words(), before);
    assert!(!walk.shared().changes.on.is_empty());

    let mut walk = open("whatif");
    walk.tab_to(Role::Switch, &switch);
    walk.key(Key::Space);
    assert!(!walk.shared().changes.on.is_empty(), "the change is on");
    walk.key(Key::Space);
    assert!(walk.shared().changes.on.is_empty(), "and off again");
}

#[test]
fn advisor() {
    let mut walk = open("advisor");
    assert!(walk.says("The plan"), "{:?}", walk.words());
    walk.click_nth(Role::Link, "Show me", 0);
    assert_eq!(walk.view(), "timeline");
    assert!(walk.shared().lit.is_some());

    let mut walk = open("advisor");
    walk.tab_to(Role::Link, "Show it in What if");
    walk.key(Key::Enter);
    assert_eq!(walk.view(), "whatif");
    assert!(!walk.shared().changes.on.is_empty());
}

#[test]
fn report() {
    let mut walk = open("report");
    assert!(walk.says("HBM"), "{:?}", walk.words());
    walk.click(Role::Button, "Copy");
    assert!(walk.copied().contains("GiB"));

    let mut walk = open("report");
    walk.tab_to(Role::Button, "Copy.");
    walk.press(Modifiers::NONE, Key::Enter);
    assert!(walk.copied().contains("GiB"));
    walk.key(Key::Escape);
    let top = walk.report_top();
    walk.key(Key::PageDown);
    assert!(walk.report_top() < top, "a page down: {top} {}", walk.report_top());
}

#[test]
fn tiles() {
    let mut walk = ipu("tiles");
    assert!(walk.says("tiles are over") || walk.says("tiles is over"), "{:?}", walk.words());
    let map = walk.starting("Total with gaps of");
    walk.click_at(&map, 0.31, 0.42);
    let chosen = walk.shared().tiles.clone();
    assert_eq!(chosen.len(), 1);
    walk.right_click_at(&map, 0.31, 0.42);
    walk.click(Role::MenuItem, "Show in Memory");
    assert_eq!(walk.view(), "memory");
    assert_eq!(walk.shared().tiles, chosen);

    let mut walk = ipu("tiles");
    let at = walk.go_to_field("Total with gaps of");
    assert!(at.contains("; tile "), "{at}");
    walk.key(Key::ArrowRight);
    walk.key(Key::ArrowDown);
    assert_ne!(walk.focused(), at);
    walk.key(Key::Enter);
    let one = walk.shared().tiles.clone();
    assert_eq!(one.len(), 1);
    assert!(walk.focused().contains(&format!("; tile {} ", highwater::model::thousands(one[0].into()))));
    walk.key(Key::ArrowRight);
    walk.shift(Key::Enter);
    assert_eq!(walk.shared().tiles.len(), 2, "Shift adds");
    walk.menu();
    assert_eq!(walk.focused(), "Copy name");
    walk.press(Modifiers::NONE, Key::Enter);
    assert!(walk.copied().starts_with("tile "));

    // The wheel magnifies at the pointer: the tile there stays, the next one is further away.
    let mut walk = ipu("tiles");
    let map = walk.starting("Total with gaps of");
    let beside = |walk: &mut Walk| {
        [0.294, 0.31, 0.326].map(|x| {
            walk.click_at(&map, x, 0.42);
            walk.shared().tiles.clone()
        })
    };
    let before = beside(&mut walk);
    assert!(before[0] != before[1] && before[1] != before[2], "three tiles: {before:?}");
    walk.wheel_at(&map, (0.31, 0.42), 400.0);
    let after = beside(&mut walk);
    assert_eq!(after[1], before[1], "the same tile is under the pointer");
    assert!(after[0] == after[1] || after[1] == after[2], "and is wider than before: {after:?}");
    walk.key(Key::Num0);
    assert_eq!(beside(&mut walk), before, "0 shows the whole map");
    // Why it is full, what is free, and what lies there.
    assert!(walk.says("Why this tile") && walk.says("above the mean"), "{:?}", walk.words());
    assert!(walk.says("Headroom"));
    walk.click(Role::Link, "Show variables");
    assert_eq!(walk.view(), "memory");
}

#[test]
fn tile_memory() {
    let mut walk = ipu("memory");
    let row = walk.first(Role::Row, "");
    walk.right_click(Role::Row, &row);
    walk.click(Role::MenuItem, "Copy name");
    assert!(row.starts_with(&walk.copied()));

    let mut walk = ipu("memory");
    let first = walk.go_to_field("Table of ");
    walk.key(Key::ArrowDown);
    assert!(walk.focused().len() > first.len(), "the row is said: {}", walk.focused());
    walk.key(Key::F6);
    assert!(walk.focused().starts_with("Table of "), "the list below: {}", walk.focused());
    walk.key(Key::ArrowDown);
    walk.menu();
    walk.press(Modifiers::NONE, Key::Enter);
    assert!(!walk.copied().is_empty());
}

#[test]
fn liveness() {
    let mut walk = ipu("liveness");
    let row = walk.first(Role::Row, "step ");
    walk.click(Role::Row, &row);
    assert!(walk.step().is_some());
    walk.right_click(Role::Row, &row);
    walk.click(Role::MenuItem, "Copy name");
    assert!(row.contains(&walk.copied()));

    let mut walk = ipu("liveness");
    walk.key(Key::ArrowDown);
    let step = walk.step().expect("the arrows choose a step");
    walk.key(Key::ArrowDown);
    assert_ne!(walk.step(), Some(step));
    walk.go_to_field("Table of program tree");
    walk.key(Key::Home);
    let folded = walk.words().len();
    walk.key(Key::Enter);
    assert_ne!(walk.words().len(), folded, "Enter folds what is below");
}

#[test]
fn ipu_overview() {
    let mut walk = ipu("overview");
    walk.key(Key::PageDown);
    let row = walk.first(Role::Row, "");
    walk.right_click(Role::Row, &row);
    assert!(walk.says("Copy name") && walk.says("Show in Tiles"), "{:?}", walk.words());

    let mut walk = ipu("overview");
    walk.go_to_field("Table of ");
    walk.key(Key::ArrowDown);
    walk.menu();
    assert_eq!(walk.focused(), "Copy name");
    walk.key(Key::Escape);
    let top = walk.top_of("Largest categories");
    walk.key(Key::Escape);
    walk.key(Key::PageDown);
    assert!(walk.top_of("Largest categories") <= top, "the page scrolls");
}

#[test]
fn runtime() {
    let mut walk = made("gpu_training.xplane.pb", "runtime");
    let row = walk.first(Role::Row, "");
    walk.right_click(Role::Row, &row);
    walk.click(Role::MenuItem, "Copy name");
    assert!(row.starts_with(&walk.copied()));

    let mut walk = made("gpu_training.xplane.pb", "runtime");
    walk.go_to_field("Table of in use at the peak");
    walk.key(Key::ArrowDown);
    assert!(walk.focused().contains(&row), "{}", walk.focused());
    walk.menu();
    walk.press(Modifiers::NONE, Key::Enter);
    assert!(row.starts_with(&walk.copied()));
}

#[test]
fn live_arrays() {
    let mut walk = made("tpu_training.prof", "live");
    let frame = walk.starting("init_params ");
    walk.right_click(Role::TreeItem, &frame);
    walk.click(Role::MenuItem, "Search for this");
    assert!(walk.says("frames, "), "{:?}", walk.words());

    let mut walk = made("tpu_training.prof", "live");
    let whole = walk.go_to_field("Stacks of live objects");
    assert!(whole.contains("; "), "{whole}");
    walk.key(Key::Enter);
    assert_ne!(walk.focused().split(',').next(), whole.split(',').next(), "into a frame");
    walk.key(Key::Backspace);
    assert_eq!(walk.focused().split(';').next(), whole.split(';').next(), "and out again");
    walk.menu();
    assert_eq!(walk.focused(), "Copy name");
}

#[test]
fn allocator() {
    let mut walk = made("gpu_0_bfc.memory_dump", "allocator");
    let row = walk.first(Role::Row, "");
    walk.right_click(Role::Row, &row);
    walk.click(Role::MenuItem, "Copy bytes");
    assert!(walk.copied().parse::<u64>().is_ok());

    let mut walk = made("gpu_0_bfc.memory_dump", "allocator");
    let at = walk.go_to_field("Chunks by address");
    walk.key(Key::ArrowRight);
    assert_ne!(walk.focused(), at, "the arrows go from chunk to chunk");
    assert!(walk.focused().contains(" B"), "{}", walk.focused());
    walk.menu();
    walk.key(Key::ArrowDown);
    walk.press(Modifiers::NONE, Key::Enter);
    assert!(walk.copied().starts_with("0x"), "the address");
}

#[test]
fn session_list_panels_and_menus() {
    let mut walk = Walk::new(&[dump(), common::samples().join("ipu_over.cbor")], "overview");
    let files = walk.all(Role::ListItem, "File ");
    assert_eq!(files.len(), 2, "{:?}", walk.words());
    walk.click(Role::ListItem, &files[0]);
    assert_eq!(walk.harness.state().files.current, Some(0));

    walk.tab_to(Role::ListItem, &files[1]);
    walk.key(Key::Enter);
    assert_eq!(walk.harness.state().files.current, Some(1));
    walk.modified(Modifiers::COMMAND, Key::Tab);
    assert_eq!(walk.harness.state().files.current, Some(0));
    // A key after Tab still belongs to the application, not to the control.
    walk.tab_to(Role::Button, "Help");
    walk.key(Key::Num3);
    assert_eq!(walk.view(), "timeline", "the keys of views work wherever the focus is");
    walk.key(Key::B);
    assert!(walk.says("Note of pin 1"), "{:?}", walk.words());
    walk.key(Key::Escape);
    walk.tab_to(Role::Link, "Remove pin 1");
    walk.key(Key::Enter);
    assert!(walk.shared().pins.is_empty());
    walk.tab_to(Role::Button, "View options");
    walk.key(Key::Enter);
    walk.tab_to(Role::MenuItem, "Dark");
    walk.key(Key::Enter);
    assert_eq!(walk.harness.state().options.theme, highwater::ui::session::ThemeChoice::Dark);
}
