//! In a narrow window the panel on the right lies over the view: it goes away as easily as a sheet does.

use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui;

#[test]
fn details_that_lie_over_a_narrow_view_are_closed_by_escape_by_a_click_beside_and_by_another_view() {
    let path = common::sample_program("v5e_gpt_m_oom");
    let link = DeepLink { view: Some("buffers".to_owned()), ..DeepLink::default() };
    let mut harness = gui::window(&[&path], [900.0, 600.0], ThemeChoice::Light, link);
    let is_open = |harness: &Harness<'_, App>| harness.query_by_label("Hide details").is_some();
    let open = |harness: &mut Harness<'_, App>| {
        harness.get_by_label("Show details").click();
        harness.run_ok();
        assert!(is_open(harness));
    };
    open(&mut harness);
    harness.key_press(egui::Key::Escape);
    harness.run_ok();
    assert!(!is_open(&harness), "Escape");

    open(&mut harness);
    harness.key_press(egui::Key::Num4);
    harness.run_ok();
    assert!(!is_open(&harness), "another view, whose answer it would cover");
    harness.key_press(egui::Key::Num7);
    harness.run_ok();

    open(&mut harness);
    let row = harness.get_all_by_role(egui::Role::Row).next().expect("rows").rect();
    let row = egui::Pos2::new(row.left() + 20.0, row.center().y);
    harness.drag_at(row);
    harness.drop_at(row);
    harness.run_ok();
    assert!(is_open(&harness), "what was chosen is shown there");
    let above = harness.get_by_label("Filter buffers").rect().left_top() + egui::Vec2::new(10.0, -20.0);
    harness.drag_at(above);
    harness.drop_at(above);
    harness.run_ok();
    assert!(!is_open(&harness), "a click beside it");
}

#[test]
fn which_file_is_shown_is_told_in_a_narrow_window_too() {
    let files = [common::sample_program("v5e_gpt_m_oom"), common::samples().join("torch/oom_shortage_2_15.pickle.gz")];
    for file in &files {
        let harness = gui::window(&[file], [900.0, 600.0], ThemeChoice::Light, DeepLink::default());
        let name = harness.state().files.entries[0].name.clone();
        let picker = harness.get_by_label(&format!("File: {name}")).rect();
        let start: String = name.chars().take(4).collect();
        let texts = gui::painted(&harness);
        let is_painted = texts.iter().any(|text| picker.contains_rect(text.place) && text.words.contains(&start));
        assert!(is_painted, "{name}");
    }
}

#[test]
fn what_is_said_about_a_number_is_whole_in_a_narrow_window() {
    for sample in ["v5e_gpt_m_oom", "v5e_mlp_f32"] {
        let path = common::sample_program(sample);
        let link = DeepLink { view: Some("overview".to_owned()), ..DeepLink::default() };
        let harness = gui::window(&[&path], [900.0, 600.0], ThemeChoice::Light, link);
        let texts = gui::painted(&harness);
        let of = |text: &&gui::Painted| text.words.starts_with("step ") || text.words.contains("at the p");
        let cut: Vec<&String> = texts
            .iter()
            .filter(of)
            .filter(|text| text.cut || text.words.contains('\u{2026}'))
            .map(|text| &text.words)
            .collect();
        assert!(cut.is_empty(), "{sample}: {cut:?}");
    }
}
