//! The card of a buffer or step: every step, address, buffer, group, shape, padding or source line in it links to the
//! view that shows it.

use egui::{Key, Role};
use egui_kittest::kittest::Queryable as _;
use highwater::analysis::unpadded;
use highwater::model::BufferId;
use highwater::ui::app::DeepLink;
use highwater::ui::session::{RowScope, ThemeChoice};

use crate::common;
use crate::gui::{self, says, words};
use crate::walk::Walk;

fn open(sample: &str) -> Walk {
    open_in(sample, "overview")
}

fn open_in(sample: &str, view: &str) -> Walk {
    let mut all = common::sample_programs().into_iter();
    let path = all.find(|path| path.to_string_lossy().contains(sample)).expect("a sample of that name");
    Walk::new(&[path], view)
}

/// The largest buffer at the peak that has padding, an op name and a source line.
fn padded(walk: &Walk) -> BufferId {
    let open = walk.harness.state().files.current().expect("open");
    let (program, analysis) = open.document.program(0).expect("a program");
    let space = analysis.main_space().expect("a space");
    let fits = |buffer: &BufferId| {
        let instruction = program.buffers.instruction_of(*buffer);
        let metadata = instruction.map(|i| program.text.metadata(i)).unwrap_or_default();
        let waste = program.buffers.size_of(*buffer).0 > unpadded(program, &analysis.traces, *buffer).0;
        waste && metadata.op_name.contains('/') && metadata.source.is_some()
    };
    space.at_peak.buffers().find(fits).expect("a padded buffer with a source line")
}

fn select(walk: &mut Walk, buffer: BufferId) {
    let open = walk.harness.state_mut().files.current_mut().expect("open");
    open.shared.show_view("overview");
    open.shared.select(None);
    open.shared.select(buffer);
    open.shared.set_filter("");
    open.shared.choose_step(None);
    open.shared.zoom_to(None);
    walk.harness.run_ok();
}

/// Scrolls the card to its end or its beginning where a line of it is out of sight.
fn scroll_to(walk: &mut Walk, label: &str) {
    let is_below = walk.rect(label).bottom() > walk.harness.ctx.content_rect().bottom() - 60.0;
    if is_below || walk.rect(label).top() < 90.0 {
        // Over one that is in sight: of the beginning of the card, or of its end.
        let shown = walk.first(Role::Link, if is_below { "Live for " } else { "Source " });
        walk.wheel_at(&shown, (0.5, 0.5), if is_below { -1_000.0 } else { 1_000.0 });
    }
}

#[test]
fn every_number_of_a_buffer_leads_to_the_view_that_shows_it() {
    let mut walk = open("v5e_pad_cloud_oom");
    let buffer = padded(&walk);
    for (start, view, filter) in [
        ("Category ", "buffers", "category:\""),
        ("Instruction ", "buffers", "kind:\""),
        ("Bytes ", "buffers", ""),
        ("Shape ", "buffers", "shape:\""),
        ("Padding ", "padding", ""),
        ("Dimension ", "padding", ""),
        ("Live for ", "timeline", ""),
        ("Address 0x", "heatmap", ""),
        ("Heap events ", "timeline", ""),
        ("Scope ", "buffers", "op:\""),
        ("Source ", "buffers", "source:\""),
    ] {
        select(&mut walk, buffer);
        let label = walk.first(Role::Link, start);
        scroll_to(&mut walk, &label);
        walk.click(Role::Link, &label);
        assert_eq!(walk.view(), view, "{label}");
        assert!(walk.shared().filter.starts_with(filter), "{label}: {}", walk.shared().filter);
        if !filter.is_empty() {
            // The buffer itself is among the remaining rows.
            assert_eq!(walk.shared().rows, RowScope::All);
            assert!(!walk.says("0 of "), "{label}: {} keeps nothing", walk.shared().filter);
        }
        if view == "timeline" {
            assert!(walk.shared().range.is_some(), "{label}: the whole life is in view");
        }
        assert_eq!(walk.selected(), Some(buffer), "{label}: what is selected stays so");
    }
    for start in ["First ", "Last "] {
        select(&mut walk, buffer);
        let label = walk.first(Role::Link, start);
        scroll_to(&mut walk, &label);
        walk.click(Role::Link, &label);
        let step = walk.step().expect("a step is chosen");
        assert_eq!(format!("{start}{step}"), label);
    }
    // The same by keyboard alone.
    select(&mut walk, buffer);
    walk.tab_to(Role::Link, "Padding ");
    walk.key(Key::Enter);
    assert_eq!(walk.view(), "padding");
}

#[test]
fn the_source_and_the_operation_are_copied_whole() {
    let mut walk = open("v5e_pad_cloud_oom");
    let buffer = padded(&walk);
    select(&mut walk, buffer);
    let source = walk.first(Role::Link, "Source ");
    scroll_to(&mut walk, &source);
    walk.click_nth(Role::Link, "Copy", 0);
    assert!(walk.copied().contains('/'), "the operation");
    walk.click_nth(Role::Link, "Copy", 1);
    assert!(walk.copied().contains(".py:"), "the source");
}

#[test]
fn equal_layers_are_one_row_of_the_step_and_a_click_lights_them_all() {
    for step in [None, Some(1_000)] {
        let mut walk = open_in("v5e_gpt_m_oom", "timeline");
        walk.harness.state_mut().files.current_mut().expect("open").shared.choose_step(step);
        walk.harness.run_ok();
        let row = walk.first(Role::Link, "attention scores, layer_*/attn/exp  \u{d7}");
        walk.click(Role::Link, &row);
        let lit = walk.shared().lit.clone().expect("they are lit");
        assert!(lit.buffers.len() >= 10, "{row}: {} buffers", lit.buffers.len());
        assert!(row.ends_with(&lit.buffers.len().to_string()), "{row}");
        assert!(
            walk.says(&format!("{} lit: attention scores, layer_*/attn/exp", lit.buffers.len())),
            "{:?}",
            walk.words()
        );
    }
}

#[test]
fn the_numbers_of_the_step_lead_on_too() {
    for (start, view) in
        [("Bytes ", "buffers"), ("Padding ", "padding"), ("Fragmentation ", "heatmap"), ("all ", "buffers")]
    {
        let mut walk = open_in("gpt_m_oom", "timeline");
        let label = walk.first(Role::Link, start);
        walk.click(Role::Link, &label);
        assert_eq!(walk.view(), view, "{label}");
    }
}

#[test]
fn a_selection_brought_to_the_overview_does_not_cover_it() {
    let mut walk = open_in("v5e_pad_cloud_oom", "buffers");
    let buffer = padded(&walk);
    let shared = |walk: &mut Walk, change: &dyn Fn(&mut highwater::ui::session::Shared)| {
        change(&mut walk.harness.state_mut().files.current_mut().expect("open").shared);
        walk.harness.run_ok();
    };
    shared(&mut walk, &|shared| shared.select(buffer));
    assert!(walk.says("Shape and padding"));
    shared(&mut walk, &|shared| shared.show_view("overview"));
    assert!(walk.selected().is_some() && !walk.says("Shape and padding"));
    shared(&mut walk, &|shared| shared.select(None));
    shared(&mut walk, &|shared| shared.select(buffer));
    assert!(walk.says("Shape and padding"), "selected here");
}

#[test]
fn one_of_equal_buffers_says_how_many_there_are_and_what_they_take() {
    let path = common::sample_program("v5e_gpt_m_oom");
    let link = DeepLink { view: Some("treemap".to_owned()), ..DeepLink::default() };
    let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, link);
    let open = harness.state().files.current().expect("open");
    let document = open.document.clone();
    let scene = document.scene(open.shared.program, open.shared.color).expect("a scene");
    let rows = scene.contributors();
    let size = |buffer| scene.program.buffers.size_of(buffer);
    let row =
        rows.iter().find(|row| row.buffers.len() > 4 && row.buffers.iter().all(|b| size(*b) == size(row.buffers[0])));
    let row = row.expect("equal buffers of several layers");
    let (count, together) = (row.buffers.len(), row.bytes.short());
    let chosen = row.buffers[0];
    harness.state_mut().files.current_mut().expect("open").shared.select(chosen);
    harness.run_ok();
    harness.run_ok();
    let told = format!("1 of {count} equal, {together} together");
    assert!(says(&harness, &told), "{:?}", words(&harness));
    harness.get_by_label(&told).click();
    harness.run_ok();
    let shared = &harness.state().files.current().expect("open").shared;
    assert_eq!((shared.view, shared.lit.as_ref().map(|lit| lit.buffers.len())), ("timeline", Some(count)));
}
