//! The window around the views: palette, menus, presenter mode, hidden names, pins, find, several files, settings kept
//! between runs.

use std::path::{Path, PathBuf};

use egui::{Key, Modifiers, Role};
use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::names::hide::is_common;
use highwater::analysis::tree::TreeKind;
use highwater::model::InstructionId;
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::{App, COMMANDS, Command, DeepLink, SettingsStore};
use highwater::ui::session::settings::SettingsFile;
use highwater::ui::session::{Options, Pin, PinOn, Settings, ThemeChoice};
use highwater::ui::view::{PANELS, VIEWS};

use crate::common;
use crate::gui::{self, says, words};

const SHIFT: Modifiers = Modifiers::COMMAND.plus(Modifiers::SHIFT);

fn dump() -> PathBuf {
    let mut all = common::sample_programs().into_iter();
    all.find(|path| path.to_string_lossy().contains("gpt_m_oom")).expect("the sample that does not fit")
}

fn open(view: &str) -> Harness<'static, App> {
    let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
    gui::window(&[&dump()], [1600.0, 1000.0], ThemeChoice::Light, link)
}

fn key(harness: &mut Harness<'_, App>, modifiers: Modifiers, key: Key) {
    harness.key_press_modifiers(modifiers, key);
    harness.run_ok();
}

fn go_to(harness: &mut Harness<'_, App>, text: &str) {
    key(harness, Modifiers::COMMAND, Key::P);
    harness.get_by_label("Go to").type_text(text);
    harness.run_ok();
}

/// Presses a key for the next frame only.
pub fn press(harness: &mut Harness<'_, App>, modifiers: Modifiers, key: Key) {
    let event = egui::Event::Key { key, physical_key: None, pressed: true, repeat: false, modifiers };
    harness.input_mut().events.push(event);
}

/// Text put on the clipboard in the next frames; an event takes a frame or two.
fn copied(harness: &mut Harness<'_, App>) -> Option<egui::OutputCommand> {
    for _ in 0..8 {
        harness.step();
        let commands = &harness.output().platform_output.commands;
        let is_copy = |command: &&egui::OutputCommand| {
            matches!(command, egui::OutputCommand::CopyText(_) | egui::OutputCommand::CopyImage(_))
        };
        if let Some(command) = commands.iter().find(is_copy) {
            return Some(command.clone());
        }
    }
    None
}

/// The text put on the clipboard in the next frames.
pub fn copied_text(harness: &mut Harness<'_, App>) -> String {
    match copied(harness) {
        Some(egui::OutputCommand::CopyText(text)) => text,
        _ => panic!("no text was copied"),
    }
}

#[test]
fn the_palette_has_every_command_view_and_buffer_and_needs_no_mouse() {
    let mut harness = open("overview");
    key(&mut harness, Modifiers::COMMAND, Key::P);
    for entry in COMMANDS.iter().filter(|entry| entry.key.is_none()) {
        harness.get_by_label("Go to").type_text(entry.words);
        harness.run_ok();
        let found = says(&harness, entry.words);
        assert!(found, "no '{}': {:?}", entry.words, words(&harness));
        key(&mut harness, Modifiers::COMMAND, Key::A);
        key(&mut harness, Modifiers::NONE, Key::Backspace);
    }
    key(&mut harness, Modifiers::NONE, Key::Escape);
    assert!(!says(&harness, "Go to"), "Esc closes it");
    go_to(&mut harness, "timel");
    key(&mut harness, Modifiers::NONE, Key::Enter);
    assert!(says(&harness, "Memory map, "), "{:?}", words(&harness));
    go_to(&mut harness, "fusion.504");
    assert!(says(&harness, "fusion.504"));
    key(&mut harness, Modifiers::NONE, Key::Enter);
    let open = harness.state().files.current().expect("open");
    let selected = open.shared.selected.expect("the buffer is selected");
    let name = open.document.program(0).expect("a program").0.buffer_name(selected);
    assert!(name.starts_with("fusion.504"), "{name}");
    go_to(&mut harness, "theme");
    key(&mut harness, Modifiers::NONE, Key::ArrowDown);
    let lit: Vec<String> = harness
        .get_all_by_role(Role::ListItem)
        .filter(|line| line.accesskit_node().toggled() == Some(egui::accesskit::Toggled::True))
        .filter_map(|line| line.accesskit_node().label())
        .filter(|label| !label.starts_with("File "))
        .collect();
    assert_eq!(lit.len(), 1);
    key(&mut harness, Modifiers::NONE, Key::Enter);
    assert!(!says(&harness, "Go to"));
}

#[test]
fn the_sheet_of_keys_is_the_list_of_commands() {
    let mut harness = open("overview");
    harness.get_by_role_and_label(Role::Button, "Help").click();
    harness.run_ok();
    for entry in COMMANDS.iter().filter(|entry| entry.key.is_some() && !matches!(entry.command, Command::View(_))) {
        assert!(says(&harness, entry.words), "{}", entry.words);
        assert!(says(&harness, entry.keys), "{}", entry.keys);
    }
}

#[test]
fn presenter_mode_is_larger_and_shows_keys() {
    let mut harness = open("overview");
    let before = harness.get_by_role_and_label(Role::Tab, "Timeline").rect().height() * harness.ctx.zoom_factor();
    key(&mut harness, Modifiers::NONE, Key::F5);
    harness.run_ok();
    assert!(harness.state().options.presenter);
    assert!((harness.ctx.zoom_factor() - Options::PRESENTER).abs() < 1e-6);
    let after = harness.get_by_role_and_label(Role::Tab, "Timeline").rect().height() * harness.ctx.zoom_factor();
    assert!((after / before - Options::PRESENTER).abs() < 0.01, "{before} {after}");
    assert!(!says(&harness, "or drop files anywhere"), "the list of files is a rail");
    harness.key_press_modifiers(Modifiers::COMMAND, Key::D);
    harness.step();
    assert!(says(&harness, "Keys: Ctrl D"), "{:?}", words(&harness));
    key(&mut harness, Modifiers::NONE, Key::F5);
    assert!((harness.ctx.zoom_factor() - 1.0).abs() < 1e-6);
}

#[test]
fn the_ring_of_presenter_mode_is_at_the_pointer_before_it_moves() {
    let mut harness = open("overview");
    let at = egui::Pos2::new(810.0, 540.0);
    harness.hover_at(at);
    harness.run_ok();
    key(&mut harness, Modifiers::NONE, Key::F5);
    harness.run_ok();
    let rings = harness.output().shapes.iter().filter_map(|shape| match &shape.shape {
        egui::Shape::Circle(circle) if (circle.radius - 20.0).abs() < 0.1 => Some(circle.center),
        _ => None,
    });
    let rings: Vec<egui::Pos2> = rings.collect();
    let expected = (at.to_vec2() / Options::PRESENTER).to_pos2();
    assert!(!rings.is_empty() && rings.iter().all(|ring| ring.distance(expected) < 1.0), "{rings:?}, {expected}");
}

/// Words that a profile's author chose: parts of scopes, files, functions, modules.
fn own_words(path: &Path) -> Vec<String> {
    let profile = open::open_path(path, &Progress::default()).expect("a sample");
    let mut own: Vec<String> = vec![profile.name.clone()];
    own.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    for program in &profile.programs {
        own.push(program.name.clone());
        for row in 0..program.instructions.len() {
            let instruction = InstructionId(row as u32);
            let metadata = program.text.metadata(instruction);
            let lines = metadata.source.iter().chain(&metadata.stack);
            own.extend(lines.flat_map(|line| [line.file.clone(), line.function.clone()]));
            let texts = [metadata.op_name, program.text.instruction_name(instruction)];
            for text in texts {
                own.extend(text.split(|c: char| !c.is_alphanumeric() && c != '_').map(str::to_owned));
            }
        }
    }
    own.sort();
    own.dedup();
    // Words that the window itself uses; a scope of that name reveals nothing.
    let ours = ["step", "loss", "layer", "layers", "model", "time", "name", "left", "table", "cells", "down"];
    own.retain(|word| word.chars().count() > 3 && !is_common(word) && !ours.contains(&word.as_str()));
    own.retain(|word| word.chars().any(char::is_alphabetic));
    own
}

#[test]
fn with_names_hidden_nothing_on_the_screen_names_what_is_the_authors() {
    for path in common::sample_programs() {
        let own = own_words(&path);
        assert!(!own.is_empty());
        let mut harness = gui::window(&[&path], [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
        let named = words(&harness).join("\n");
        let is_word = |text: &str, word: &str| {
            text.match_indices(word).any(|(at, _)| {
                let edge = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() && c != '_');
                edge(text[..at].chars().next_back()) && edge(text[at + word.len()..].chars().next())
            })
        };
        assert!(own.iter().any(|word| is_word(&named, word)), "they are there before: {}", path.display());
        let peak = words(&harness).into_iter().find(|label| label.starts_with("Peak ")).expect("a peak");
        key(&mut harness, SHIFT, Key::H);
        let views: Vec<&str> = {
            let document = &harness.state().files.current().expect("open").document;
            VIEWS.shown_for(document).map(|view| view.title).collect()
        };
        assert!(words(&harness).contains(&peak), "numbers stay");
        let mut all = std::collections::BTreeSet::new();
        for view in views {
            // A panel may have the same name as a view; the view's tab comes first.
            harness.get_all_by_role_and_label(Role::Tab, view).next().expect("its tab").click();
            harness.run_ok();
            for panel in PANELS.0 {
                let tabs: Vec<_> = harness.get_all_by_role(Role::Tab).collect();
                if let Some(tab) =
                    tabs.into_iter().filter(|tab| tab.accesskit_node().label().as_deref() == Some(panel.title)).last()
                {
                    tab.click();
                    harness.run_ok();
                }
                let shown = words(&harness).join("\n");
                let leaked: Vec<&String> = own.iter().filter(|word| is_word(&shown, word)).collect();
                all.extend(leaked.iter().map(|word| format!("{word} ({view}, {})", panel.title)));
            }
            harness.get_by_role_and_label(Role::Tab, "Details").click();
            harness.run_ok();
        }
        assert!(all.is_empty(), "{}: {all:?}", path.display());
        key(&mut harness, SHIFT, Key::H);
        assert!(own.iter().any(|word| is_word(&words(&harness).join("\n"), word)), "and they come back");
    }
}

#[test]
fn pins_have_numbers_and_notes_and_go_along_with_the_link() {
    let mut harness = open("buffers");
    harness.get_all_by_role(Role::Row).next().expect("rows").click();
    harness.run_ok();
    key(&mut harness, Modifiers::NONE, Key::B);
    harness.get_by_label("Note of pin 1").type_text("the logits");
    harness.run_ok();
    key(&mut harness, Modifiers::NONE, Key::Enter);
    key(&mut harness, Modifiers::NONE, Key::Escape);
    key(&mut harness, Modifiers::NONE, Key::B);
    assert!(says(&harness, "Pin 2"), "{:?}", words(&harness));
    key(&mut harness, Modifiers::NONE, Key::Enter);
    harness.get_by_role_and_label(Role::Tab, "Timeline").click();
    harness.run_ok();
    assert!(says(&harness, ": the logits") && says(&harness, "Pin 2 on step"), "{:?}", words(&harness));
    let pins = harness.state().files.current().expect("open").shared.pins.clone();
    assert_eq!(pins.len(), 2);
    assert_eq!(pins[0].note, "the logits");
    assert!(matches!(pins[0].on, PinOn::Buffer(_)) && matches!(pins[1].on, PinOn::Step(_)));
    press(&mut harness, Modifiers::COMMAND, Key::L);
    let link = copied_text(&mut harness);
    assert!(link.contains(&format!("--pin '{}'", pins[0])), "{link}");
    harness.run_ok();
    let shared = &mut harness.state_mut().files.current_mut().expect("open").shared;
    shared.measure((10, 20));
    shared.zoom_to((5.5, 40.0));
    shared.divide_tree(TreeKind::Class);
    press(&mut harness, Modifiers::COMMAND, Key::L);
    let link = copied_text(&mut harness);
    assert!(link.contains("--from 10 --to 20 --zoom 5-40 --tree class"), "{link}");
    harness.run_ok();
    harness.get_by_label("Remove pin 1").click();
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("open").shared.pins.len(), 1);
}

#[test]
fn finding_lights_the_same_buffers_in_every_view() {
    let mut harness = open("treemap");
    key(&mut harness, Modifiers::COMMAND, Key::F);
    harness.get_by_label("Find").type_text("logits params");
    harness.run_ok();
    assert!(says(&harness, "0 of "), "{:?}", words(&harness));
    harness.get_by_label("Close").click();
    harness.run_ok();
    key(&mut harness, Modifiers::COMMAND, Key::F);
    harness.get_by_label("Find").type_text("embed");
    harness.run_ok();
    let count = words(&harness)
        .into_iter()
        .find(|label| label.contains(" match, ") && label.ends_with(" at the peak"))
        .expect("a count of hits");
    key(&mut harness, Modifiers::NONE, Key::F3);
    let first = harness.state().files.current().expect("open").shared.selected.expect("the first hit");
    key(&mut harness, Modifiers::NONE, Key::F3);
    let second = harness.state().files.current().expect("open").shared.selected.expect("the second hit");
    assert_ne!(first, second);
    key(&mut harness, Modifiers::SHIFT, Key::F3);
    assert_eq!(harness.state().files.current().expect("open").shared.selected, Some(first));
    let total = count.split(" match").next().expect("a number").to_owned();
    for view in ["Overview", "Timeline", "Padding"] {
        harness.get_by_role_and_label(Role::Tab, view).click();
        harness.run_ok();
        assert!(says(&harness, &format!("{total} match")), "{view}: {:?}", words(&harness));
    }
    key(&mut harness, Modifiers::NONE, Key::F3);
    key(&mut harness, Modifiers::NONE, Key::Escape);
    key(&mut harness, Modifiers::NONE, Key::Escape);
    key(&mut harness, Modifiers::NONE, Key::Escape);
    assert!(!says(&harness, "Next match"), "Esc clears it");
}

#[test]
fn the_find_field_stands_in_the_bar_where_there_is_room() {
    for (width, in_bar) in [(1600.0, true), (1280.0, true), (640.0, false)] {
        let link = DeepLink { view: Some("timeline".to_owned()), ..DeepLink::default() };
        let mut harness = gui::window(&[&dump()], [width, 800.0], ThemeChoice::Light, link);
        assert_eq!(harness.query_by_label("Find").is_some(), in_bar, "{width} wide");
        key(&mut harness, Modifiers::COMMAND, Key::F);
        let field = harness.get_by_label("Find");
        assert_eq!(field.rect().top() < 44.0, in_bar, "{width} wide: {:?}", field.rect());
        field.type_text("attn");
        harness.run_ok();
        assert!(says(&harness, " match"), "{:?}", words(&harness));
        harness.event(egui::Event::Text(" siz>3".to_owned()));
        harness.run_ok();
        assert!(says(&harness, "Unknown field 'siz'"), "{:?}", words(&harness));
    }
}

#[test]
fn a_search_in_a_view_without_buffers_leads_to_the_table() {
    let mut harness = open("whatif");
    harness.get_by_label("Find").focus();
    harness.run_ok();
    for letter in ["a", "t", "t", "n"] {
        harness.event(egui::Event::Text(letter.to_owned()));
        harness.run_ok();
    }
    key(&mut harness, Modifiers::NONE, Key::Enter);
    let open = harness.state().files.current().expect("open");
    assert_eq!((open.shared.view, open.shared.filter.as_str()), ("buffers", "attn"));
}

#[test]
fn the_menu_of_a_buffer_copies_filters_hides_pins_and_leads_on() {
    let mut harness = open("buffers");
    let row = harness.get_all_by_role(Role::Row).next().expect("rows").rect().center();
    let ask = |harness: &mut Harness<'_, App>| {
        harness.hover_at(row);
        harness.run_ok();
        for pressed in [true, false] {
            harness.event(egui::Event::PointerButton {
                pos: row,
                button: egui::PointerButton::Secondary,
                pressed,
                modifiers: Modifiers::NONE,
            });
        }
        harness.run_ok();
    };
    ask(&mut harness);
    for item in ["Copy name", "Filter to this", "Hide", "Pin with a note", "Show in Timeline", "Show in Treemap"] {
        assert!(says(&harness, item), "no '{item}': {:?}", words(&harness));
    }
    let width = harness.get_by_label("Copy name").rect().width();
    assert!(width <= 240.0, "no wider than its words need: {width}");
    harness.get_by_label("Copy name").click();
    assert!(copied_text(&mut harness).contains("fusion"));
    harness.run_ok();
    ask(&mut harness);
    harness.get_by_label("Copy row").click();
    let row_text = copied_text(&mut harness);
    assert_eq!(row_text.split('\t').count(), 7, "{row_text}");
    harness.run_ok();
    ask(&mut harness);
    harness.get_by_label("Hide").click();
    harness.run_ok();
    assert!(says(&harness, "show 1 hidden"));
    harness.get_by_label("show 1 hidden").click();
    harness.run_ok();
    ask(&mut harness);
    harness.get_by_label("Pin with a note").click();
    harness.run_ok();
    assert!(says(&harness, "Note of pin 1"));
    key(&mut harness, Modifiers::NONE, Key::Enter);
    ask(&mut harness);
    harness.get_by_label("Show in Treemap").click();
    harness.run_ok();
    let shared = &harness.state().files.current().expect("open").shared;
    assert_eq!(shared.view, "treemap");
    assert!(shared.selected.is_some());
}

#[test]
fn files_lie_side_by_side() {
    let files = common::sample_programs();
    let paths: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    let mut harness = gui::window(&paths, [1600.0, 1000.0], ThemeChoice::Light, DeepLink::default());
    let last = files.len() - 1;
    assert_eq!(harness.state().files.current, Some(last));
    key(&mut harness, Modifiers::COMMAND, Key::Tab);
    assert_eq!(harness.state().files.current, Some(0), "round to the first");
    key(&mut harness, SHIFT, Key::Tab);
    assert_eq!(harness.state().files.current, Some(last));
    let names: Vec<String> = words(&harness).into_iter().filter(|label| label.starts_with("File ")).collect();
    let at = harness.get_by_label(&names[0]).rect().center();
    harness.hover_at(at);
    for pressed in [true, false] {
        harness.event(egui::Event::PointerButton {
            pos: at,
            button: egui::PointerButton::Middle,
            pressed,
            modifiers: Modifiers::NONE,
        });
    }
    harness.run_ok();
    assert_eq!(harness.state().files.entries.len(), last, "the middle button closes");
    key(&mut harness, Modifiers::COMMAND, Key::W);
    assert_eq!(harness.state().files.entries.len(), last - 1);
}

#[test]
fn a_picture_of_the_view_has_a_title_and_is_copied_whole() {
    for (view, theme) in
        [("overview", ThemeChoice::Light), ("timeline", ThemeChoice::Dark), ("treemap", ThemeChoice::Dark)]
    {
        let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
        let mut harness = gui::window(&[&dump()], [1600.0, 1000.0], theme, link);
        let before = harness.render().expect("a picture of the window");
        press(&mut harness, SHIFT, Key::C);
        let Some(egui::OutputCommand::CopyImage(image)) = copied(&mut harness) else { panic!("no picture was copied") };
        assert!(image.width() > 1600 && image.height() > 1200, "{:?}", image.size);
        let colours: std::collections::HashSet<_> = image.pixels.iter().collect();
        assert!(colours.len() > 50, "there is something on it");
        harness.run_ok();
        assert!(says(&harness, "Overview"));
        // The window is unchanged, except for the status bar.
        let after = harness.render().expect("a picture of the window");
        let differ = before.enumerate_pixels().filter(|(x, y, p)| *y < 970 && after.get_pixel(*x, *y) != *p).count();
        assert_eq!(differ, 0, "{view}");
    }
}

#[test]
fn the_empty_window_offers_the_sample() {
    let mut harness = gui::window(&[], [1000.0, 640.0], ThemeChoice::Light, DeepLink::default());
    assert!(says(&harness, "Nothing leaves this machine"));
    harness.get_by_label("Open the sample").click();
    harness.run_ok();
    assert!(says(&harness, "Does not fit"), "{:?}", words(&harness));
}

#[test]
fn every_view_of_buffers_has_the_menu() {
    let mut harness = open("overview");
    for view in ["Timeline", "Treemap", "Padding", "Buffers"] {
        harness.get_by_role_and_label(Role::Tab, view).click();
        harness.run_ok();
        let at = match view {
            "Padding" | "Buffers" => harness.get_all_by_role(Role::Row).next().expect("rows").rect().center(),
            _ => {
                let is_plot = |label: &String| label.starts_with("Memory map, ") || label.starts_with("Treemap of ");
                let label = words(&harness).into_iter().find(is_plot).expect("a plot");
                let rect = harness.get_by_label(&label).rect();
                // At a third of the height, a buffer is live at the peak.
                egui::Pos2::new(rect.left() + rect.width() * 0.2, rect.top() + rect.height() * 0.62)
            }
        };
        harness.hover_at(at);
        harness.run_ok();
        for pressed in [true, false] {
            harness.event(egui::Event::PointerButton {
                pos: at,
                button: egui::PointerButton::Secondary,
                pressed,
                modifiers: Modifiers::NONE,
            });
        }
        harness.run_ok();
        assert!(says(&harness, "Copy name"), "{view}: {:?}", words(&harness));
        assert!(says(&harness, "Show in Overview"), "{view}");
        key(&mut harness, Modifiers::NONE, Key::Escape);
        assert!(!says(&harness, "Copy name"), "{view}: Esc closes it");
        key(&mut harness, Modifiers::NONE, Key::Escape);
    }
}

fn window_that_keeps(file: &Path, paths: &[&Path]) -> Harness<'static, App> {
    let sources: Vec<_> = paths.iter().map(|path| highwater::open::Target::Path(path.to_path_buf())).collect();
    let file = file.to_owned();
    let mut harness = Harness::builder().with_size([1600.0, 1000.0]).with_max_steps(40).build_eframe(move |creation| {
        let options = Options { theme: ThemeChoice::Light, synchronous: true, ..Options::default() };
        let mut app = App::new(&creation.egui_ctx, options);
        app.use_settings(SettingsStore::new(SettingsFile::at(file)));
        for source in sources {
            app.open(source);
        }
        app
    });
    harness.run_ok();
    harness
}

#[test]
fn settings_views_and_pins_are_there_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("settings.json");
    {
        let mut harness = window_that_keeps(&file, &[&dump()]);
        harness.get_by_role_and_label(Role::Button, "View options").click();
        harness.run_ok();
        harness.get_by_label("High contrast, dark").click();
        harness.run_ok();
        harness.get_by_role_and_label(Role::Button, "View options").click();
        harness.run_ok();
        harness.get_by_label("GB: powers of 1000").click();
        harness.run_ok();
        key(&mut harness, Modifiers::COMMAND, Key::Plus);
        harness.get_by_role_and_label(Role::Tab, "Treemap").click();
        harness.run_ok();
        key(&mut harness, Modifiers::NONE, Key::B);
        harness.get_by_label("Note of pin 1").type_text("here");
        harness.run_ok();
        key(&mut harness, Modifiers::NONE, Key::Enter);
        harness.get_by_role_and_label(Role::Tab, "Buffers").click();
        harness.run_ok();
        harness.get_by_label("Columns").click();
        harness.run_ok();
        harness.get_by_label("Source").click();
        harness.run_ok();
        key(&mut harness, Modifiers::NONE, Key::Escape);
        harness.get_by_role_and_label(Role::Tab, "Treemap").click();
        harness.run_ok();
    }
    let settings = SettingsFile::at(file.clone()).load();
    assert_eq!(settings.theme, ThemeChoice::ContrastDark);
    assert!((settings.zoom - 1.1).abs() < 1e-6);
    assert_eq!(settings.recent.len(), 1);
    let columns = settings.kept.get("buffers.columns").expect("columns");
    assert!(columns.split(';').any(|column| column == "Source"), "{columns}");
    assert_eq!(settings.recent[0].pins[0].note, "here");
    let harness = window_that_keeps(&file, &[]);
    assert!(says(&harness, "Recent files"));
    assert!(harness.state().options.units == highwater::model::UnitSystem::Decimal);
    let again = words(&harness).into_iter().find(|label| label.contains("module_0000")).expect("the file");
    harness.get_by_label(&again).click();
    let mut harness = harness;
    harness.run_ok();
    let open = harness.state().files.current().expect("open");
    assert_eq!(open.shared.view, "treemap");
    assert_eq!(open.shared.pins.len(), 1);
}

#[test]
fn pictures_and_tests_do_not_touch_settings() {
    let harness = open("overview");
    assert!(!says(&harness, "Recent files"));
    drop(harness);
    assert_eq!(Settings::parse("not JSON"), Settings::default());
    let pin: Pin = "step 3: why?".parse().expect("a pin");
    let link = DeepLink { pins: vec![pin], filter: Some("embed".to_owned()), ..DeepLink::default() };
    let harness = gui::window(&[&dump()], [1600.0, 1000.0], ThemeChoice::Light, link);
    assert_eq!(harness.state().files.current().expect("open").shared.pins.len(), 1);
    assert!(says(&harness, " match"));
}

#[test]
fn every_control_can_be_reached_by_tab_and_has_a_name() {
    let mut harness = open("timeline");
    let mut reached: Vec<String> = Vec::new();
    for _ in 0..120 {
        key(&mut harness, Modifiers::NONE, Key::Tab);
        let focused = harness.get_all(egui_kittest::kittest::by()).find(|node| node.accesskit_node().is_focused());
        if let Some(label) = focused.and_then(|node| node.accesskit_node().label()) {
            reached.push(label);
        }
    }
    // The arrows go from the tab of the view that is shown to the others.
    for wanted in
        ["Back", "Forward", "Help", "View options", "Open menu", "Timeline", "Details", "Pins", "Hide details"]
    {
        assert!(reached.iter().any(|label| label == wanted), "'{wanted}' is not among {reached:?}");
    }
    for part in ["Program: ", "Memory: ", "File "] {
        assert!(reached.iter().any(|label| label.starts_with(part)), "'{part}' is not among {reached:?}");
    }
}

#[test]
fn files_over_the_window_are_told_what_will_happen() {
    let mut harness = open("overview");
    let file = |name: &str| egui::HoveredFile { path: Some(name.into()), ..egui::HoveredFile::default() };
    harness.input_mut().hovered_files = vec![file("/tmp/train.log"), file("/tmp/run.zip")];
    harness.step();
    assert!(says(&harness, "Drop to open 2 files"));
    assert!(says(&harness, "train.log: text: out-of-memory messages in it"), "{:?}", words(&harness));
    harness.input_mut().hovered_files.clear();
}

/// The name and the place of the widget that has the focus.
fn focused(harness: &Harness<'_, App>) -> Option<(String, egui::Rect)> {
    let id = harness.ctx.memory(egui::Memory::focused)?;
    let place = harness.ctx.read_response(id)?.rect;
    let named = harness.get_all(egui_kittest::kittest::by()).filter(|node| node.accesskit_node().is_focused());
    Some((named.filter_map(|node| node.accesskit_node().label()).next_back().unwrap_or_default(), place))
}

#[test]
fn tab_goes_through_the_bars_in_the_order_in_which_they_are_read() {
    let mut harness = gui::window(&[], [1280.0, 800.0], ThemeChoice::Light, DeepLink::default());
    key(&mut harness, Modifiers::NONE, Key::Tab);
    let first = focused(&harness).expect("a focus");
    assert_eq!(first.0, "Open menu", "what one needs first");

    let mut harness = open("overview");
    let tabs = harness.get_by_role_and_label(Role::Tab, "Overview").rect();
    let mut places = Vec::new();
    for _ in 0..40 {
        key(&mut harness, Modifiers::NONE, Key::Tab);
        let (_, place) = focused(&harness).expect("a focus");
        places.push(place);
        if place.center().y > tabs.bottom() && place.left() > tabs.left() {
            break;
        }
    }
    let in_bar: Vec<f32> =
        places.iter().filter(|place| place.center().y < tabs.top()).map(|place| place.center().x).collect();
    assert!(in_bar.len() > 5 && in_bar.is_sorted(), "{in_bar:?}");
    let in_tabs = places.iter().filter(|place| (place.center().y - tabs.center().y).abs() < 2.0);
    assert_eq!(in_tabs.filter(|place| place.left() < 1200.0).count(), 1, "the tabs are one stop: {places:?}");

    let mut harness = open("overview");
    let view = |harness: &Harness<'_, App>| harness.state().files.current().expect("open").shared.view;
    harness.get_by_role_and_label(Role::Tab, "Overview").focus();
    harness.run_ok();
    key(&mut harness, Modifiers::NONE, Key::ArrowRight);
    let second = view(&harness);
    assert_ne!(second, "overview");
    key(&mut harness, Modifiers::NONE, Key::ArrowRight);
    assert!(!["overview", second].contains(&view(&harness)), "the focus goes along");
    key(&mut harness, Modifiers::NONE, Key::Home);
    assert_eq!(view(&harness), "overview");
}

#[test]
fn a_text_without_a_message_is_told_and_what_was_open_stays() {
    let folder = tempfile::tempdir().expect("a folder");
    let notes = folder.path().join("notes.txt");
    std::fs::write(&notes, "hello world\n").expect("written");
    let mut harness = open("timeline");
    let before = harness.state().files.entries.len();
    gui::drop_files(&mut harness, &[&notes]);
    harness.run_ok();
    assert_eq!(harness.state().files.entries.len(), before, "{:?}", words(&harness));
    assert!(says(&harness, "Could not read notes.txt") && says(&harness, "No out-of-memory message"));
    assert_eq!(harness.state().files.current().expect("open").shared.view, "timeline");
}

#[test]
fn pins_are_counted_on_the_folded_panel_too() {
    let mut harness = open("timeline");
    key(&mut harness, Modifiers::NONE, Key::B);
    if harness.query_by_label("Hide details").is_some() {
        harness.get_by_label("Hide details").click();
        harness.run_ok();
    }
    assert!(says(&harness, "Open Pins 1"), "{:?}", words(&harness));
}

#[test]
fn a_search_without_a_match_at_the_peak_leads_to_where_one_lives() {
    let mut harness = open("treemap");
    let open = harness.state().files.current().expect("open");
    let document = open.document.clone();
    let (program, analysis) = document.program(0).expect("a program");
    let space = analysis.space(open.shared.color).expect("a memory");
    let at_peak: std::collections::HashSet<_> = space.at_peak.buffers().collect();
    let name_of = |buffer| program.buffer_name(buffer);
    let away = space.buffers.iter().copied().find(|buffer| {
        let name = name_of(*buffer);
        !at_peak.contains(buffer) && !space.buffers.iter().any(|b| b != buffer && name_of(*b).contains(&name))
    });
    let away = name_of(away.expect("a buffer that does not live at the peak"));
    harness.state_mut().files.current_mut().expect("open").shared.find(away);
    harness.run_ok();
    assert!(says(&harness, "none at the peak"), "{:?}", words(&harness));
    harness.get_by_label("show the largest in Timeline").click();
    harness.run_ok();
    assert_eq!(harness.state().files.current().expect("open").shared.view, "timeline");
    assert!(harness.state().files.current().expect("open").shared.selected.is_some());
}

#[test]
fn a_folder_of_texts_without_a_message_is_told_in_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("notes.txt"), "hello world\n").expect("written");
    std::fs::write(folder.path().join("a.json"), "{\"a\":1}").expect("written");
    let mut harness = open("timeline");
    let before = harness.state().files.entries.len();
    gui::drop_files(&mut harness, &[folder.path()]);
    harness.run_ok();
    assert_eq!(harness.state().files.entries.len(), before, "{:?}", words(&harness));
    assert!(says(&harness, "2 texts without an out-of-memory message"), "{:?}", words(&harness));
    assert_eq!(harness.state().files.current().expect("open").shared.view, "timeline");
}
