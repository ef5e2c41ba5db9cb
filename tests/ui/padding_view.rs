//! The Padding view: savings of a shape at the peak, the whole program, and the scatter plot of size against waste.

use egui::Role;
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;

use crate::common;
use crate::gui::{self, says, words};

fn open(sample: &str, size: [f32; 2], theme: ThemeChoice) -> Harness<'static, App> {
    let path = common::sample_programs()
        .into_iter()
        .find(|path| path.to_string_lossy().contains(sample))
        .expect("a sample of that name");
    let link = DeepLink { view: Some("padding".to_owned()), ..DeepLink::default() };
    gui::window(&[&path], size, theme, link)
}

#[test]
fn the_card_says_what_a_shape_wastes_and_what_it_saves_at_the_peak() {
    let harness = open("v6e_dlrm_repl_d3", [1600.0, 1000.0], ThemeChoice::Light);
    // The table's gradient in the wrong layout: 3 columns padded to 128, twice, by the tile formula.
    assert!(says(&harness, "Each takes 488 MiB, 512,000,000 B"), "{:?}", words(&harness));
    assert!(says(&harness, "Useful 11.4 MiB, 12,000,000 B"));
    assert!(says(&harness, "Expansion \u{d7}42.7"));
    // 1,040,438,816 B at the peak, 2 x 500,000,000 B less; the two of that shape at other times change, too.
    assert!(says(&harness, "Costs at the peak 954 MiB, 2 buffers elsewhere"), "{:?}", words(&harness));
    // 2 x 488.3 MiB become 2 x 15.3 MiB: 4 rows of 1,000,064 lanes, as the compiler lays out the argument itself.
    assert!(says(&harness, "layout {0,1:T(4,128)}: same data, peak \u{2212}946 MiB"), "{:?}", words(&harness));
}

#[test]
fn a_mark_that_is_clicked_chooses_its_card() {
    let mut harness = open("v5e_pad_cloud_oom", [1600.0, 1000.0], ThemeChoice::Light);
    assert!(says(&harness, "Size against waste of "));
    let label = words(&harness)
        .into_iter()
        .find(|words| words.starts_with("Shape f32[20000000,3] "))
        .expect("a mark of the narrow table");
    harness.get_by_role_and_label(Role::Button, &label).click();
    harness.run_ok();
    assert!(says(&harness, "Expansion \u{d7}1.33"), "{:?}", words(&harness));
    let open = harness.state().files.current().expect("open");
    assert!(open.shared.selected.is_some(), "a buffer of the shape is selected everywhere");
}

#[test]
fn the_whole_program_has_a_total_of_its_own() {
    let mut harness = open("v5e_gpt_m_oom", [1600.0, 1000.0], ThemeChoice::Dark);
    harness.get_by_role_and_label(Role::RadioButton, "Whole program").click();
    harness.run_ok();
    assert!(says(&harness, "of all buffers is padding"));
    assert!(says(&harness, "The most at one time is"), "{:?}", words(&harness));
    harness.get_by_role_and_label(Role::RadioButton, "At the peak").click();
    harness.run_ok();
    assert!(says(&harness, "of the peak is padding"));
}

#[test]
fn the_share_of_padding_is_written_on_the_tiles() {
    let harness = open("v6e_dlrm_repl_d3", [1600.0, 1000.0], ThemeChoice::Light);
    let on_tiles = |part: &str| gui::painted(&harness).iter().any(|text| text.words == part);
    assert!(on_tiles("97.7\u{2009}% of the tiles is padding"), "{:?}", words(&harness));
}

#[test]
fn little_padding_is_told_in_a_unit_in_which_it_is_more_than_nothing() {
    let harness = open("v5e_mlp_f32", [1280.0, 800.0], ThemeChoice::Light);
    let painted = gui::painted(&harness);
    let head = |begin: &str| painted.iter().find(|text| text.words.starts_with(begin)).expect("a head");
    let (size, padding) = (head("Size, "), head("Padding, "));
    assert!(size.words.ends_with("MiB") && padding.words.ends_with("KiB"), "{} {}", size.words, padding.words);
    let first = painted.iter().filter(|text| text.place.top() > padding.place.bottom());
    let first = first.filter(|text| text.place.right() <= padding.place.right() + 4.0 && !text.words.is_empty());
    let first: Vec<_> = first.filter(|text| text.place.left() > size.place.right()).take(1).collect();
    assert!(!first.is_empty() && first[0].words != "under 0.1", "{:?}", first[0].words);
    assert!(painted.iter().any(|text| text.words == "of the peak is padding"), "{:?}", words(&harness));
}
