//! The buffer table: filter language, completion, groups, columns, several sort keys, copying; compared with a plain
//! loop over the buffers.

use std::path::PathBuf;

use egui::{Event, Key, Modifiers};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::map::MemoryMap;
use highwater::analysis::table::{self, BufferTable, Column, Counted, Filter, Order, arrange};
use highwater::analysis::{ProfileAnalysis, category, unpadded};
use highwater::export::table::{Form, write};
use highwater::model::{BufferId, Bytes, Profile, thousands};
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, words};

fn sample(name: &str) -> PathBuf {
    common::sample_programs().into_iter().find(|path| path.to_string_lossy().contains(name)).expect("a sample")
}

/// A filter, and the buffers it must keep.
type Case<'a> = (&'a str, Box<dyn Fn(BufferId) -> bool + 'a>);

struct Read {
    profile: Profile,
    analysis: ProfileAnalysis,
    map: MemoryMap,
    table: BufferTable,
    peak: u32,
}

fn read(name: &str) -> Read {
    let profile = open::open_path(&sample(name), &Progress::default()).expect("a sample");
    let analysis = ProfileAnalysis::new(&profile);
    let space = analysis.programs[0].main_space().expect("HBM");
    let map = MemoryMap::new(&profile.programs[0], &analysis.programs[0], space);
    let table = BufferTable::new(&profile.programs[0], &analysis.programs[0], space, &map);
    let peak = space.peak_point();
    Read { profile, analysis, map, table, peak }
}

fn kept(read: &Read, filter: &str) -> Vec<BufferId> {
    let all: Vec<u32> = (0..read.table.len() as u32).collect();
    let rows = Filter::parse(filter).expect(filter).keep(&read.table, &all, read.peak);
    rows.into_iter().map(|row| read.table.buffers[row as usize]).collect()
}

#[test]
fn each_key_keeps_what_a_walk_keeps() {
    for name in ["gpt_m_oom", "pad_cloud"] {
        let read = read(name);
        let program = &read.profile.programs[0];
        let traces = &read.analysis.programs[0].traces;
        let size = |b: BufferId| program.buffers.size_of(b).0;
        let waste = |b: BufferId| size(b) as i64 - unpadded(program, traces, b).0 as i64;
        let place = |b: BufferId| read.map.boxes.iter().find(|item| item.buffer == b).copied();
        // Arguments and results have their memory throughout, whenever they are written.
        let lives = |b: BufferId, step: u32| {
            place(b).is_some_and(|item| {
                let region = &read.map.regions[item.region as usize];
                let throughout = region.always_live && region.largest == Some(b);
                throughout || (item.start <= step && step <= item.end)
            })
        };
        // Copies, and stacks saved by a scan, are found by what they hold.
        let labels = read.analysis.programs[0].labels(program);
        let op_name =
            |b: BufferId| program.buffers.instruction_of(b).map(|i| program.text.op_name(i)).unwrap_or_default();
        let op = |b: BufferId| labels.of(program, b).map_or_else(|| op_name(b), |label| label.text.clone());
        let kind = |b: BufferId| program.buffers.instruction_of(b).map_or("", |i| program.opcode_name(i));
        let cases: Vec<Case<'_>> = vec![
            ("size>1MiB", Box::new(|b| size(b) > 1 << 20)),
            ("size<=4096", Box::new(|b| size(b) <= 4096)),
            ("padding>50%", Box::new(|b| waste(b) * 2 > size(b) as i64)),
            ("padding>1KiB", Box::new(|b| waste(b) > 1024)),
            ("category:temp", Box::new(|b| category(program, b).name() == "Temporary")),
            ("-category:temp", Box::new(|b| category(program, b).name() != "Temporary")),
            ("kind:fusion size>1MiB", Box::new(|b| kind(b).contains("fusion") && size(b) > 1 << 20)),
            ("op:/layer_[02]/", Box::new(|b| op(b).contains("layer_0") || op(b).contains("layer_2"))),
            ("op:ATTN", Box::new(|b| op(b).to_lowercase().contains("attn"))),
            ("name:fusion.1", Box::new(|b| program.buffer_name(b).contains("fusion.1"))),
            ("live@peak", Box::new(|b| lives(b, read.peak))),
            ("live@100", Box::new(|b| lives(b, 100))),
            ("from>=50 to<200", Box::new(|b| read.map.held(b).is_some_and(|held| held.0 >= 50 && held.1 < 200))),
        ];
        let mut found_any = 0;
        for (filter, holds) in &cases {
            let slow: Vec<BufferId> = read.table.buffers.iter().copied().filter(|&b| holds(b)).collect();
            assert_eq!(kept(&read, filter), slow, "{name}: {filter}");
            found_any += usize::from(!slow.is_empty());
        }
        assert!(found_any >= 8, "{name}: the filters find hardly anything");
    }
}

#[test]
fn groups_add_up_and_sorting_is_stable() {
    let read = read("gpt_m_oom");
    let all: Vec<u32> = (0..read.table.len() as u32).collect();
    let keys =
        vec![table::Key { column: Column::Category, down: false }, table::Key { column: Column::Size, down: true }];
    let order = Order { keys, ..Order::default() };
    let shown = arrange(&read.table, all.clone(), &order, &Counted::default());
    let value = |row: u32| {
        let row = row as usize;
        (read.table.category[row], std::cmp::Reverse(read.table.size[row]), row)
    };
    let rows: Vec<u32> =
        shown.lines.iter().map(|line| if let table::Line::Row(row) = line { *row } else { panic!("no row") }).collect();
    assert!(rows.windows(2).all(|pair| value(pair[0]) < value(pair[1])));
    for column in Column::ALL.into_iter().filter(|column| column.can_group()) {
        let order = Order { group: Some(column), ..Order::default() };
        let grouped = arrange(&read.table, all.clone(), &order, &Counted::default());
        assert!(!grouped.groups.is_empty(), "{column:?}");
        assert_eq!(grouped.lines.len(), grouped.groups.len(), "groups are closed at first");
        assert_eq!(grouped.groups.iter().map(|g| g.count).sum::<usize>(), all.len(), "{column:?}");
        assert_eq!(grouped.groups.iter().map(|g| g.size).sum::<u64>(), shown.size, "{column:?}");
        assert_eq!(grouped.groups.iter().map(|g| g.padding).sum::<i64>(), shown.padding, "{column:?}");
        assert!(grouped.groups.is_sorted_by_key(|g| std::cmp::Reverse(g.size)), "{column:?}");
    }
}

#[test]
fn exports_hold_exact_values() {
    let read = read("gpt_m_oom");
    let space = read.analysis.programs[0].main_space().expect("HBM");
    let rows: Vec<u32> = space.at_peak.buffers().take(40).filter_map(|b| read.table.row_of(b)).collect();
    let columns = Column::ALL;
    let json: serde_json::Value = serde_json::from_str(&write(&read.table, &columns, &rows, Form::Json)).expect("JSON");
    let objects = json.as_array().expect("a list");
    assert_eq!(objects.len(), rows.len());
    for (object, buffer) in objects.iter().zip(space.at_peak.buffers()) {
        assert_eq!(object["size_bytes"].as_u64(), Some(read.profile.programs[0].buffers.size_of(buffer).0));
        assert_eq!(object["name"].as_str(), Some(read.profile.programs[0].buffer_name(buffer).as_str()));
    }
    let csv = write(&read.table, &columns, &rows, Form::Csv);
    assert_eq!(csv.lines().count(), rows.len() + 1);
    // Shapes contain commas, so they are quoted.
    assert!(csv.lines().nth(1).expect("a row").contains("\"bf16[32,1024,50257]\""), "{csv}");
    let theirs = write(&read.table, &columns, &rows, Form::XprofCsv);
    assert!(theirs.starts_with(
        "InstructionName,UnpaddedSizeMiB,SizeMiB,AllocAt,FreeAt,TfOpName,OpCode,Shape,AllocationType\r\n"
    ));
    let tsv = write(&read.table, &columns, &rows, Form::Tsv);
    assert!(tsv.lines().all(|line| line.split('\t').count() == columns.len()), "{tsv}");
    let markdown = write(&read.table, &columns[..3], &rows, Form::Markdown);
    assert!(markdown.lines().nth(1) == Some("| --- | ---: | ---: |"), "{markdown}");
}

fn open(size: [f32; 2], theme: ThemeChoice) -> Harness<'static, App> {
    let link = DeepLink { view: Some("buffers".to_owned()), ..DeepLink::default() };
    gui::window(&[&sample("gpt_m_oom")], size, theme, link)
}

fn rows(harness: &Harness<'_, App>) -> Vec<String> {
    harness.query_all_by_role(egui::Role::Row).filter_map(|row| row.accesskit_node().label()).collect()
}

fn type_filter(harness: &mut Harness<'_, App>, text: &str) {
    harness.get_by_label("Filter buffers").focus();
    harness.run_ok();
    harness.event(Event::Text(text.to_owned()));
    harness.run_ok();
}

#[test]
fn a_filter_is_completed_with_tab_and_counts_its_hits() {
    let mut harness = open([1600.0, 1000.0], ThemeChoice::Light);
    type_filter(&mut harness, "cat");
    assert!(words(&harness).iter().any(|label| label.starts_with("category:")), "{:?}", words(&harness));
    harness.key_press(Key::Tab);
    harness.run_ok();
    harness.event(Event::Text("par".to_owned()));
    harness.run_ok();
    harness.key_press(Key::Tab);
    harness.run_ok();
    assert_eq!(harness.state().files.current().unwrap().shared.filter, "category:parameter ");
    let read = read("gpt_m_oom");
    let space = read.analysis.programs[0].main_space().expect("HBM");
    let program = &read.profile.programs[0];
    let count = space.at_peak.buffers().filter(|&b| category(program, b).name() == "Parameter").count();
    let wanted = format!("{} of {}", thousands(count as u64), thousands(space.at_peak.len() as u64));
    assert!(words(&harness).contains(&wanted), "no '{wanted}'");
    let sum: Bytes =
        space.at_peak.rows.iter().filter(|row| category(program, row.0).name() == "Parameter").map(|row| row.1).sum();
    assert!(rows(&harness)[0].starts_with("param"), "{:?}", rows(&harness));
    assert!(sum > Bytes::ZERO);
}

#[test]
fn buffers_are_found_and_grouped_by_class() {
    let read = read("gpt_m_oom");
    let (program, own) = (&read.profile.programs[0], &read.analysis.programs[0]);
    let space = own.main_space().expect("HBM");
    let classes = own.classes(program);
    let state: Vec<BufferId> = space.at_peak.buffers().filter(|&b| classes.of(b).name() == "Optimizer state").collect();
    let found = kept(&read, "class:optimizer live@peak");
    assert!(state.iter().all(|buffer| found.contains(buffer)), "{} of {}", found.len(), state.len());
    assert!(found.iter().all(|&buffer| classes.of(buffer).name() == "Optimizer state"));
    let mut harness = open([1600.0, 1000.0], ThemeChoice::Light);
    type_filter(&mut harness, "class:opt");
    let wanted = format!("{} of {}", thousands(state.len() as u64), thousands(space.at_peak.len() as u64));
    assert!(words(&harness).contains(&wanted), "no '{wanted}'");
}

#[test]
fn a_filter_that_cannot_be_read_says_why_and_lists_nothing() {
    let mut harness = open([1600.0, 1000.0], ThemeChoice::Light);
    let before = rows(&harness);
    type_filter(&mut harness, "size>");
    assert_eq!(rows(&harness), before, "a term that is being typed changes nothing");
    type_filter(&mut harness, "lots");
    assert!(words(&harness).iter().any(|label| label.contains("'lots' is not a size")), "{:?}", words(&harness));
    assert_eq!(rows(&harness), [] as [String; 0], "not the rows of what can be read of it");
}

#[test]
fn groups_open_and_close() {
    let mut harness = open([1600.0, 1000.0], ThemeChoice::Light);
    harness.get_by_label("Group").click();
    harness.run_ok();
    harness.get_by_label("Element type").click();
    harness.run_ok();
    let heads = rows(&harness);
    assert!(heads.iter().all(|row| row.ends_with("closed")), "{heads:?}");
    let first = heads[0].clone();
    harness.get_by_label(&first).click();
    harness.run_ok();
    assert!(rows(&harness)[0].ends_with("open"));
    assert!(rows(&harness).len() > heads.len());
}

#[test]
fn shift_click_sorts_by_one_more_column() {
    let mut harness = open([1600.0, 1000.0], ThemeChoice::Light);
    harness.get_by_label_contains("Sort by Class").click();
    harness.run_ok();
    harness.get_by_label_contains("Sort by Size").click_modifiers(Modifiers::SHIFT);
    harness.run_ok();
    let heads: Vec<String> = words(&harness).into_iter().filter(|label| label.starts_with("Sort by")).collect();
    assert!(heads.iter().any(|head| head.ends_with("\u{2191}1")), "{heads:?}");
    assert!(heads.iter().any(|head| head.ends_with("\u{2193}2")), "{heads:?}");
    assert!(rows(&harness)[0].starts_with("param"), "{:?}", rows(&harness)[0]);
}

#[test]
fn columns_are_chosen() {
    let mut harness = open([1600.0, 1000.0], ThemeChoice::Light);
    assert!(harness.query_by_label_contains("Sort by Source").is_none());
    harness.get_by_label("Columns").click();
    harness.run_ok();
    harness.get_by_label("Source").click();
    harness.run_ok();
    assert!(harness.query_by_label_contains("Sort by Source").is_some());
}

#[test]
fn the_table_says_the_same_as_the_report() {
    for path in common::sample_programs() {
        let profile = open::open_path(&path, &Progress::default()).expect("a sample");
        let analysis = ProfileAnalysis::new(&profile);
        let options = highwater::export::report::Options {
            top: 20,
            buffers: true,
            ..highwater::export::report::Options::default()
        };
        let report = highwater::export::report::build(&[(&profile, &analysis)], &[], &options);
        let written = highwater::export::report::write(&report, highwater::export::report::Format::Json);
        let json: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        let space = &json["profiles"][0]["programs"][0]["spaces"][0];
        let link = DeepLink { view: Some("buffers".to_owned()), ..DeepLink::default() };
        let harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link);
        let peak = space["peak"]["buffers"].as_array().expect("what stands at the peak");
        let shown = rows(&harness);
        assert!(!shown.is_empty(), "{}", path.display());
        for (row, buffer) in shown.iter().zip(peak) {
            // Buffers of equal size may be in a different order.
            let bytes = Bytes(buffer["bytes"].as_u64().expect("a size")).short();
            assert!(row.ends_with(&bytes), "{}: {row} is not {buffer}", path.display());
        }
    }
}

#[test]
fn timeline_and_padding_say_the_same_as_the_report() {
    for path in common::sample_programs() {
        let profile = open::open_path(&path, &Progress::default()).expect("a sample");
        let analysis = ProfileAnalysis::new(&profile);
        let report = highwater::export::report::build(
            &[(&profile, &analysis)],
            &[],
            &highwater::export::report::Options::default(),
        );
        let written = highwater::export::report::write(&report, highwater::export::report::Format::Json);
        let json: serde_json::Value = serde_json::from_str(&written).expect("JSON");
        let space = &json["profiles"][0]["programs"][0]["spaces"][0];
        let bytes = |key: &str| Bytes(space[key].as_u64().expect(key));
        let shown = |view: &str| {
            let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
            words(&gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link))
        };
        let peak = bytes("reserved_peak_bytes");
        let timeline = shown("timeline");
        let wanted = format!("Live bytes over the program, peak {}", peak.short());
        let is_said = timeline.iter().any(|label| label.starts_with(&wanted));
        assert!(is_said, "{}: no '{wanted}'", path.display());
        let point = space["reserved_peak_time"].as_u64().expect("a point");
        let wanted = format!(" {point}");
        let title = timeline.iter().find(|label| label.starts_with("The peak, ")).expect("the peak's card");
        assert!(title.ends_with(&wanted), "{}: {title} is not{wanted}", path.display());
        let padding = Bytes(space["peak"]["padding_bytes"].as_u64().expect("padding"));
        let wanted = format!("{} of {} at the peak", padding.short(), peak.short());
        let said = shown("padding");
        assert!(said.iter().any(|label| label.contains(&wanted)), "{}: no '{wanted}'", path.display());
    }
}

#[test]
fn the_table_draws_the_life_of_each_buffer_with_the_step_in_it() {
    let mut harness = open([1600.0, 1000.0], ThemeChoice::Light);
    assert!(harness.query_by_label_contains("Sort by Life").is_some(), "a column of its own");
    let before = harness.render().expect("a picture");
    let head = harness.get_by_label_contains("Sort by Life").rect();
    harness.state_mut().files.current_mut().expect("open").shared.choose_step(40);
    harness.run_ok();
    let after = harness.render().expect("a picture");
    let column = |picture: &image::RgbaImage| -> Vec<image::Rgba<u8>> {
        let (left, right) = (head.left() as u32, head.right() as u32);
        let rows = head.bottom() as u32..head.bottom() as u32 + 200;
        rows.flat_map(|y| (left..right).map(move |x| (x, y))).map(|(x, y)| *picture.get_pixel(x, y)).collect()
    };
    let colors: std::collections::HashSet<_> = column(&before).into_iter().collect();
    assert!(colors.len() > 4, "tracks, lives and a mark: {colors:?}");
    assert_ne!(column(&before), column(&after), "the mark goes along with the step");
    harness.get_by_label_contains("Sort by Life").click();
    harness.run_ok();
    let read = read("gpt_m_oom");
    let first = rows(&harness)[0].clone();
    let row =
        (0..read.table.len()).find(|&row| first.starts_with(&format!("{} ", read.table.name.at(row)))).expect("a row");
    assert_eq!(read.table.start[row], 0, "sorted by where lives begin: {first}");
}

#[test]
fn operations_have_the_room_left_over_and_columns_without_room_are_told() {
    let widths = [1280.0, 1600.0].map(|width| {
        let harness = open([width, 900.0], ThemeChoice::Light);
        harness.get_by_label("Sort by Op").rect().width()
    });
    assert!(widths[1] > widths[0] + 30.0, "{widths:?}");
    let mut harness = open([900.0, 600.0], ThemeChoice::Light);
    assert!(harness.query_by_label_contains("Sort by Name").is_none());
    harness.get_by_label("Columns").click();
    harness.run_ok();
    assert!(harness.query_by_label("Name, no room").is_some(), "{:?}", words(&harness));
}

#[test]
fn what_tells_operations_apart_is_not_cut() {
    let harness = open([900.0, 600.0], ThemeChoice::Light);
    let place = harness.get_by_label("Sort by Op").rect();
    let texts = gui::painted(&harness);
    let inside = |text: &&gui::Painted| place.x_range().contains(text.place.left()) && text.words.contains("attn");
    let mut shown: Vec<&str> = texts.iter().filter(inside).map(|text| text.words.as_str()).collect();
    // What all of them are gives way to where each is.
    assert!(shown.contains(&"layer_10/attn/exp"), "{:?}", words(&harness));
    let all = shown.len();
    shown.sort_unstable();
    shown.dedup();
    assert!(shown.len() * 2 > all, "most differ: {shown:?}");
}
