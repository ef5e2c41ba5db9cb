//! No line goes through words: neither that of the capacity nor that of the chosen step, in whatever view and size; what
//! is marked is marked where it is.

use egui::{Color32, Key, Modifiers, Rect, Shape};
use egui_kittest::Harness;
use egui_kittest::kittest::Queryable as _;
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;
use highwater::ui::widget::theme::Theme;

use crate::common;
use crate::gui::{self, painted, says};

fn open(sample: &str, view: &str, size: [f32; 2], edits: &[&str]) -> Harness<'static, App> {
    let mut all = common::sample_programs().into_iter();
    let path = all.find(|path| path.to_string_lossy().contains(sample)).expect("a sample of that name");
    let edits = edits.iter().map(|edit| edit.parse().expect("an edit")).collect();
    let link = DeepLink { view: Some(view.to_owned()), edits, ..DeepLink::default() };
    gui::window(&[&path], size, ThemeChoice::Light, link)
}

/// Thin lines of a colour, as they are seen.
fn lines(shape: &Shape, clip: Rect, color: Color32, found: &mut Vec<Rect>) {
    let line = match shape {
        Shape::Vec(shapes) => {
            for shape in shapes {
                lines(shape, clip, color, found);
            }
            return;
        }
        Shape::LineSegment { points, stroke } if stroke.color == color => {
            Rect::from_two_pos(points[0], points[1]).expand(stroke.width / 2.0)
        }
        Shape::Rect(shape) if shape.fill == color => shape.rect,
        _ => return,
    };
    let line = line.intersect(clip);
    let (short, long) = (line.width().min(line.height()), line.width().max(line.height()));
    if short > 0.0 && short <= 4.0 && long >= 30.0 {
        found.push(line);
    }
}

/// Words that a line of a colour goes through.
fn crossed(harness: &Harness<'_, App>, color: Color32) -> (usize, Vec<String>) {
    let mut all = Vec::new();
    for shape in &harness.output().shapes {
        lines(&shape.shape, shape.clip_rect, color, &mut all);
    }
    let texts = painted(harness);
    let through =
        |text: &&gui::Painted| all.iter().any(|line| line.intersects(text.place.shrink2(egui::vec2(1.0, 4.0))));
    let found = texts.iter().filter(through).map(|text| format!("{} at {:?}", text.words, text.place)).collect();
    (all.len(), found)
}

#[test]
fn the_line_of_the_capacity_goes_through_no_words() {
    let mut seen = 0;
    for sample in ["v5e_gpt_m_oom", "v5e_pad_cloud_oom", "v6e_replicated_oom"] {
        for view in ["overview", "timeline", "whatif"] {
            for size in [[1000.0, 640.0], [1280.0, 800.0], [1600.0, 1000.0]] {
                let harness = open(sample, view, size, &[]);
                let (count, found) = crossed(&harness, Theme::LIGHT.over);
                assert!(found.is_empty(), "{sample}, {view}, {size:?}: {found:#?}");
                seen += count;
            }
        }
    }
    assert!(seen >= 27, "{seen} lines seen");
}

#[test]
fn the_line_of_the_chosen_step_goes_through_no_words() {
    for size in [[1000.0, 640.0], [1280.0, 800.0], [1600.0, 1000.0]] {
        let mut harness = open("v5e_gpt_m_oom", "timeline", size, &[]);
        for bands in ["Memory map", "Lifetimes"] {
            harness.get_by_role_and_label(egui::Role::RadioButton, bands).click();
            harness.run_ok();
            harness.remove_cursor();
            harness.run_ok();
            let (count, found) = crossed(&harness, Theme::LIGHT.ink);
            assert!(count > 0, "the line of the peak is seen");
            assert!(found.is_empty(), "{bands}, {size:?}: {found:#?}");
        }
    }
}

#[test]
fn the_largest_hole_is_marked_where_it_is_and_nowhere_else() {
    let mut harness = open("v5e_gpt_m_oom", "timeline", [1600.0, 1000.0], &[]);
    let marked =
        |harness: &Harness<'_, App>| painted(harness).iter().any(|text| text.words.starts_with("largest hole"));
    assert!(marked(&harness), "all addresses are seen");
    // A buffer at the other end of the addresses fills the map.
    let open = harness.state_mut().files.current_mut().expect("open");
    let (program, analysis) = open.document.program(0).expect("a program");
    let space = analysis.main_space().expect("HBM");
    let is_argument = |buffer| {
        let allocation = program.buffers.allocation_of(buffer);
        allocation.is_some_and(|id| program.allocations[id.index()].is_parameter)
    };
    let argument = space.at_peak.buffers().find(|&buffer| is_argument(buffer));
    open.shared.select(argument.expect("an argument at the peak"));
    harness.run_ok();
    harness.key_press(Key::F);
    harness.run_ok();
    assert!(!marked(&harness), "the hole is out of sight");
}

#[test]
fn a_key_shows_what_frames_stages_and_jobs_take() {
    let mut harness = open("v5e_gpt_m_oom", "timeline", [1600.0, 1000.0], &[]);
    assert!(harness.query_by_label("Opening this file").is_none());
    harness.key_press(Key::F12);
    harness.run_ok();
    for label in ["Frames", "Opening this file", "decoding", "Last jobs"] {
        assert!(harness.query_by_label(label).is_some(), "{label}");
    }
    assert!(harness.query_by_label_contains("Processor time of frames: median").is_some());
    harness.key_press(Key::F12);
    harness.run_ok();
    assert!(harness.query_by_label("Last jobs").is_none());
}

#[test]
fn the_bytes_are_fitted_to_what_is_visible_by_button_and_key() {
    let mut harness = open("v5e_gpt_m_oom", "timeline", [1600.0, 1000.0], &[]);
    let flag =
        |harness: &Harness<'_, App>| painted(harness).iter().any(|text| text.words.starts_with("capacity 15.75 GiB, "));
    assert!(!flag(&harness));
    harness.state_mut().files.current_mut().expect("open").shared.zoom_to((5.0, 40.0));
    harness.run_ok();
    harness.get_by_label("Fit").click();
    harness.run_ok();
    assert!(flag(&harness), "the limit is a flag at the edge");
    harness.key_press(Key::Num0);
    harness.run_ok();
    assert!(!flag(&harness), "0 shows everything, up to the limit");
    harness.state_mut().files.current_mut().expect("open").shared.zoom_to((5.0, 40.0));
    harness.key_press_modifiers(Modifiers::SHIFT, Key::Num0);
    harness.run_ok();
    assert!(flag(&harness), "Shift 0 as well");
}

#[test]
fn the_program_band_names_passes_and_layers() {
    let harness = open("v5e_gpt_m_oom", "timeline", [1600.0, 1000.0], &[]);
    let words: Vec<String> = painted(&harness).into_iter().map(|text| text.words).collect();
    for name in ["forward", "backward"] {
        assert!(words.iter().any(|text| text == name), "no {name}: {words:?}");
    }
    assert!(words.iter().any(|text| text == "Layers"), "{words:?}");
}

#[test]
fn every_tool_of_the_timeline_is_inside_the_view() {
    for size in [[1000.0, 640.0], [1280.0, 800.0], [1600.0, 1000.0]] {
        let harness = open("v5e_gpt_m_oom", "timeline", size, &[]);
        let mut places: Vec<(&str, Rect)> = ["Memory map", "Lifetimes", "Both", "Padding", "Fit", "All", "Peak"]
            .into_iter()
            .map(|name| {
                let mut found = harness.query_all_by_label(name).map(|node| node.rect());
                (
                    name,
                    found.find(|rect| (88.0..118.0).contains(&rect.center().y)).unwrap_or_else(|| panic!("no {name}")),
                )
            })
            .collect();
        places.sort_by(|a, b| a.1.left().total_cmp(&b.1.left()));
        for pair in places.windows(2) {
            assert!(pair[0].1.right() <= pair[1].1.left() + 0.5, "{size:?}: {pair:?}");
        }
        let panel = harness.query_by_label("Hide details").map_or(size[0], |fold| fold.rect().right() - 336.0);
        let last = places.last().expect("tools").1.right();
        assert!(last <= panel, "{size:?}: {last} is under the panel at {panel}");
    }
    assert!(says(&open("v5e_gpt_m_oom", "timeline", [1000.0, 640.0], &[]), "Group: Class"));
}
