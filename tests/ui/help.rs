//! The help: recipes, the glossary and the way to it from the screen, the report of a problem, versions.

use std::path::{Path, PathBuf};

use egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::model::InstructionId;
use highwater::ui::app::help::{HelpPage, terms};
use highwater::ui::app::{App, Command, DeepLink};
use highwater::ui::session::ThemeChoice;
use highwater::ui::view::VIEWS;

use crate::common;
use crate::gui::{self, painted, says, words};

fn open(paths: &[&Path], size: [f32; 2], view: &str) -> Harness<'static, App> {
    let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
    gui::window(paths, size, ThemeChoice::Light, link)
}

fn sample() -> PathBuf {
    common::sample_program("v5e_gpt_m_oom")
}

fn show(harness: &mut Harness<'_, App>, page: HelpPage) {
    harness.state_mut().run(Command::Help(page));
    harness.run_ok();
}

#[test]
fn recipes_are_found_from_the_first_screen_and_what_to_type_is_copied() {
    let mut harness = gui::window(&[], [1000.0, 700.0], ThemeChoice::Dark, DeepLink::default());
    harness.get_by_label("How do I get a dump?").click();
    harness.run_ok();
    assert!(says(&harness, "highwater run -- python train.py"));
    harness.get_by_role_and_label(Role::RadioButton, "TensorFlow").click();
    harness.run_ok();
    assert!(says(&harness, "jit_compile=True") && says(&harness, "TF_BFC_MEMORY_DUMP"));
    harness.get_all_by_role_and_label(Role::Button, "Copy").next().expect("a button").click();
    harness.step();
    let copied = harness.output().platform_output.commands.iter().find_map(|command| match command {
        egui::OutputCommand::CopyText(text) => Some(text.clone()),
        _ => None,
    });
    assert!(copied.is_some_and(|text| text.starts_with("XLA_FLAGS=")));
    harness.key_press(Key::Escape);
    harness.run_ok();
    assert!(!says(&harness, "jit_compile=True"));
}

#[test]
fn every_page_fits_into_every_window() {
    let path = sample();
    for size in [[760.0, 560.0], [1000.0, 700.0], [3840.0, 2160.0]] {
        let mut harness = open(&[&path], size, "overview");
        for page in [HelpPage::Keys, HelpPage::Dump, HelpPage::Glossary, HelpPage::Problem, HelpPage::About] {
            show(&mut harness, page);
            let close = harness.get_by_role_and_label(Role::Button, "Close").rect();
            let screen = egui::Rect::from_min_size(egui::Pos2::ZERO, size.into());
            assert!(screen.contains_rect(close), "{page:?} in {size:?}: {close}");
            let out =
                painted(&harness).into_iter().find(|text| text.place.right() > size[0] || text.place.left() < 0.0);
            assert!(out.is_none(), "{page:?} in {size:?}: {:?}", out.map(|text| text.words));
        }
    }
}

#[test]
fn f1_on_a_word_of_the_screen_opens_the_glossary_at_it() {
    let path = sample();
    let mut harness = open(&[&path], [1600.0, 1000.0], "overview");
    let place = painted(&harness).into_iter().find(|text| text.words == "Fragmentation").expect("a readout").place;
    harness.hover_at(place.center());
    harness.run_ok();
    harness.key_press_modifiers(Modifiers::NONE, Key::F1);
    harness.run_ok();
    assert!(says(&harness, "Allocated bytes that hold nothing at the peak"));
    assert!(!says(&harness, "The small memory beside the cores"), "only what was asked for");
    harness.get_by_label("Show all").click();
    harness.run_ok();
    harness.get_by_role_and_label(Role::TextInput, "Search terms").focus();
    harness.run_ok();
    harness.get_by_role_and_label(Role::TextInput, "Search terms").type_text("donate");
    harness.run_ok();
    assert!(says(&harness, "An argument that the caller gives up"));
    harness.key_press(Key::F1);
    harness.run_ok();
    assert!(!says(&harness, "An argument that the caller gives up"), "F1 closes it");
}

/// Lets the pointer rest until whatever appears then is there.
fn rest(harness: &mut Harness<'_, App>) {
    for _ in 0..12 {
        harness.step();
    }
}

fn tooltips(harness: &Harness<'_, App>) -> usize {
    harness.query_all_by_role(Role::Tooltip).count()
}

#[test]
fn what_was_clicked_is_not_explained_until_the_pointer_comes_back() {
    const MEANING: &str = "areas in proportion to bytes";
    let path = sample();
    let mut harness = open(&[&path], [1600.0, 1000.0], "overview");
    let tab = harness.get_by_role_and_label(Role::Tab, "Treemap").rect().center();
    harness.hover_at(tab);
    rest(&mut harness);
    assert!(says(&harness, MEANING), "{:?}", words(&harness));
    harness.drag_at(tab);
    harness.drop_at(tab);
    rest(&mut harness);
    assert!(!says(&harness, MEANING), "it would cover what was opened");
    harness.hover_at(tab + egui::Vec2::new(0.0, 400.0));
    rest(&mut harness);
    harness.hover_at(tab);
    rest(&mut harness);
    assert!(says(&harness, MEANING), "{:?}", words(&harness));
}

#[test]
fn no_tooltip_from_below_lies_over_a_sheet() {
    let path = sample();
    let mut harness = open(&[&path], [1600.0, 1000.0], "overview");
    let bar = words(&harness).into_iter().find(|label| label.starts_with("Temporary  ")).expect("a part of the bar");
    let place = harness.get_all_by_label(&bar).next().expect("it").rect().center();
    harness.hover_at(place);
    rest(&mut harness);
    assert_eq!(tooltips(&harness), 1, "{:?}", words(&harness));
    harness.key_press(Key::F1);
    rest(&mut harness);
    assert!(says(&harness, "Search terms"));
    assert_eq!(tooltips(&harness), 0, "{:?}", words(&harness));
}

#[test]
fn the_tooltip_of_a_file_says_where_it_is_and_how_to_compare_it_and_no_more() {
    let (first, second) = (sample(), common::sample_program("v5e_mlp_f32"));
    let mut harness = open(&[&first, &second], [1600.0, 1000.0], "overview");
    let row = words(&harness).into_iter().find(|label| label.starts_with("File v5e_gpt_m_oom")).expect("a row");
    let row = harness.get_by_label(&row).rect().center();
    harness.hover_at(row);
    rest(&mut harness);
    let said = words(&harness).into_iter().find(|words| words.contains("\nCtrl click: compare")).expect("a tooltip");
    assert!(said.lines().count() <= 3 && said.contains("v5e_gpt_m_oom"), "{said}");
}

#[test]
fn every_column_of_every_view_is_in_the_glossary() {
    let samples = common::samples();
    let sources = [
        sample(),
        samples.join("ipu_over.cbor"),
        samples.join("made/tpu_training.prof"),
        samples.join("made/gpu_training.xplane.pb"),
        samples.join("made/gpu_0_bfc.memory_dump"),
    ];
    let mut titles = 0;
    for source in &sources {
        let mut harness = open(&[source], [1900.0, 1000.0], "overview");
        let document = harness.state().files.current().expect("it opens").document.clone();
        for view in VIEWS.shown_for(&document) {
            harness.state_mut().files.current_mut().expect("open").shared.show_view(view.id);
            harness.run_ok();
            for node in harness.query_all_by_role(Role::ColumnHeader) {
                let label = node.accesskit_node().label().unwrap_or_default();
                let title = label.strip_prefix("Sort by ").unwrap_or(&label).to_owned();
                titles += 1;
                assert!(terms::of_label(&title).is_some(), "{title} in {} of {}", view.id, source.display());
            }
        }
    }
    assert!(titles > 10, "{titles}");
}

#[test]
fn the_report_of_a_problem_holds_no_name_of_the_profile() {
    let mut paths = common::sample_programs();
    paths.push(common::samples().join("ipu_over.cbor"));
    let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
    let mut harness = open(&paths, [1400.0, 900.0], "timeline");
    show(&mut harness, HelpPage::Problem);
    let report = harness.state().problem_report();
    assert!(words(&harness).iter().any(|words| words.contains("What I did")), "it can be read before it is shared");
    let mut names: Vec<String> = paths.iter().map(|path| common::name(path)).collect();
    for entry in &harness.state().files.entries {
        let highwater::ui::app::FileState::Open(open) = &entry.state else { continue };
        let profile = &open.document.profile;
        names.push(profile.name.clone());
        for program in &profile.programs {
            names.push(program.name.clone());
            for row in (0..program.instructions.len()).step_by(7) {
                names.push(program.text.instruction_name(InstructionId::from_index(row)));
                names.push(program.text.op_name(InstructionId::from_index(row)));
            }
        }
    }
    // Short names such as `p0` or `a` say nothing, and occur in any text.
    names.retain(|name| name.len() > 5);
    names.sort();
    names.dedup();
    assert!(names.len() > 1000, "{}", names.len());
    for name in &names {
        assert!(!report.contains(name.as_str()), "{name} in\n{report}");
    }
    assert!(report.contains("buffers") && report.contains("View: overview"), "{report}");
}

#[test]
fn the_box_about_the_program_has_its_versions() {
    let mut harness = gui::window(&[], [1000.0, 700.0], ThemeChoice::Light, DeepLink::default());
    show(&mut harness, HelpPage::About);
    for version in [env!("CARGO_PKG_VERSION"), "highwater.report/1", "highwater.dataset/1", "highwater.session/1"] {
        assert!(says(&harness, version), "{version}");
    }
}

#[test]
fn what_names_a_part_of_memory_a_finding_or_a_view_is_in_the_glossary() {
    use highwater::analysis::class::Class;
    use highwater::analysis::stacked_curves::Grouping;
    let mut words: Vec<String> = Class::ALL.iter().map(|class| class.name().to_owned()).collect();
    words.extend(Grouping::ALL.iter().map(|grouping| grouping.name().to_owned()));
    words.extend(highwater::advisor::PROGRAM_RULES.iter().map(|rule| rule.name.replace('_', " ")));
    words.extend(VIEWS.0.iter().map(|view| view.title.to_owned()));
    words.extend(
        ["Forward", "Backward", "Critical", "Warning", "Hint", "Same results", "Changes results"].map(str::to_owned),
    );
    // The categories of an IPU's memory, as its overview names them.
    let mut harness = open(&[&common::samples().join("ipu_over.cbor")], [1900.0, 1000.0], "overview");
    harness.run_ok();
    let profile = harness.state().files.current().expect("it opens").document.profile.clone();
    let tiles = profile.tiles.as_ref().expect("tiles");
    let spaced = |key: &str| -> String {
        key.chars().flat_map(|c| c.is_uppercase().then_some(' ').into_iter().chain([c.to_ascii_lowercase()])).collect()
    };
    words.extend(tiles.categories.iter().map(|category| spaced(&category.name)));
    let missing: Vec<String> = words.into_iter().filter(|word| terms::within(word).is_none()).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn keys_stand_in_groups_by_where_they_work() {
    let mut harness = open(&[&sample()], [1440.0, 1000.0], "overview");
    show(&mut harness, HelpPage::Keys);
    let said = words(&harness);
    let place = |heading: &str| said.iter().position(|words| words == heading);
    let headings = ["Everywhere", "Charts and tables", "Heat map"].map(|heading| {
        let last = said.iter().rposition(|words| words == heading);
        last.or(place(heading)).unwrap_or_else(|| panic!("{heading}: {said:?}"))
    });
    assert!(headings.is_sorted(), "{said:?}");
    // The heading says of which view they are, and zooming is that of charts.
    assert!(!says(&harness, "Timeline: zoom at the pointer") && says(&harness, "Zoom at the pointer"));
    assert!(says(&harness, "Larger text") && !says(&harness, "Reset zoom"));
}
