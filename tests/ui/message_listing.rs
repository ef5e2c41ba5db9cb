//! A message that lists its largest allocations: shapes that say why they are padded, and names of operations without the
//! attributes that old versions of JAX write behind them over several lines, in every view.

use egui_kittest::Harness;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::ui::app::{App, DeepLink};
use highwater::ui::session::ThemeChoice;
use highwater::ui::view::VIEWS;

use crate::gui::{self, painted, says, words};

const MESSAGE: &str = r#"RuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 9.20G of 7.48G hbm. Exceeded hbm capacity by 1.72G.

Total hbm usage >= 9.72G:
    reserved        530.00M
    program           9.20G
    arguments            0B

Output size 0B; shares 0B with arguments.

Program hbm requirement 9.20G:
    HLO temp          9.20G (1.4% utilization: Unpadded (132.40M) Padded (9.20G), 0.0% fragmentation (0B))

  Largest program allocations in hbm:

  1. Size: 3.75G
     Operator: op_type="conv_general_dilated" op_name="jit(conv_general_dilated)/tower_1/conv_general_dilated[\n  batch_group_count=1\n  dimension_numbers=ConvDimensionNumbers(lhs_spec=(0, 4, 1, 2, 3), rhs_spec=(4, 3, 0, 1, 2))\n  precision=None\n]" source_file="model.py" source_line=12
     Shape: f32[1,4,1920,1024,2]{4,3,2,1,0:T(8,128)}
     Unpadded size: 60.00M
     Extra memory due to padding: 3.69G (64.0x expansion)
     XLA label: %convolution.2 = f32[1,4,1920,1024,2]{4,3,2,1,0:T(8,128)} convolution(...)
     Allocation type: HLO temp
     ==========================

  2. Size: 3.75G
     Shape: f32[4,1920,1024,1]{3,2,1,0:T(8,128)}
     Unpadded size: 30.00M
     Extra memory due to padding: 3.72G (128.0x expansion)
     XLA label: %copy.9 = f32[4,1920,1024,1]{3,2,1,0:T(8,128)} copy(...)
     Allocation type: HLO temp
     ==========================
"#;

fn window(view: &str, size: [f32; 2]) -> Harness<'static, App> {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("train.log");
    std::fs::write(&log, MESSAGE).expect("written");
    let link = DeepLink { view: Some(view.to_owned()), ..DeepLink::default() };
    gui::window(&[&log], size, ThemeChoice::Light, link)
}

#[test]
fn attributes_of_an_operation_are_in_no_view() {
    let first = window("failure", [1440.0, 900.0]);
    let document = first.state().files.current().expect("open").document.clone();
    let views: Vec<&str> = VIEWS.shown_for(&document).map(|view| view.id).collect();
    assert!(views.contains(&"buffers") && views.contains(&"treemap") && views.contains(&"report"), "{views:?}");
    for view in views {
        let mut harness = window(view, [1440.0, 900.0]);
        let row = harness.query_all_by_role(egui::Role::Row).next().map(|row| row.rect().center());
        if let Some(row) = row.filter(|_| view == "buffers") {
            harness.drag_at(row);
            harness.drop_at(row);
            harness.run_ok();
            assert!(says(&harness, "Shape and padding"), "its details: {:?}", words(&harness));
        }
        // The text of the instruction is as the compiler has it; a line of it that is wrapped has a node of its own.
        let nodes = harness.get_all(egui_kittest::kittest::by());
        let nodes = nodes.filter(|node| node.accesskit_node().role() != egui::Role::TextRun);
        let said = nodes.flat_map(|node| [node.accesskit_node().label(), node.accesskit_node().value()]).flatten();
        let mut said = said.chain(painted(&harness).into_iter().map(|text| text.words));
        let found = said.find(|words| words.contains("batch_group_count") && !words.contains("metadata={"));
        assert_eq!(found, None, "{view}");
        assert!(says(&harness, "conv_general_dilated") || !matches!(view, "buffers" | "failure" | "report"), "{view}");
    }
}

#[test]
fn shapes_are_whole_where_they_say_why_they_are_padded() {
    for size in [[1280.0, 800.0], [1440.0, 900.0]] {
        let harness = window("failure", size);
        for shape in ["f32[1,4,1920,1024,2]", "f32[4,1920,1024,1]"] {
            let found = painted(&harness).into_iter().find(|text| text.words == shape && !text.cut);
            assert!(found.is_some(), "{size:?}: {shape}: {:?}", words(&harness));
        }
        assert!(!painted(&harness).iter().any(|text| text.words.starts_with("same as")), "other names of one size");
    }
}

#[test]
fn a_listing_has_no_steps_in_any_view() {
    for view in ["buffers", "treemap"] {
        let harness = window(view, [1440.0, 900.0]);
        let said = words(&harness);
        let about_steps = ["step 0", "Sort by From", "Sort by To", "Sort by Life", "At the peak", "at the peak"];
        let found = about_steps.into_iter().find(|part| said.iter().any(|words| words.contains(part)));
        assert_eq!(found, None, "{view}: {said:?}");
        assert!(says(&harness, "listed"), "{view}: {said:?}");
    }
}
