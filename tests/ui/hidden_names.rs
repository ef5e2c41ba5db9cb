//! Names are also hidden in formats other than XLA dumps: IPU reports, traces, live arrays, messages.

use std::collections::BTreeSet;
use std::path::Path;

use egui::Role;
use egui_kittest::kittest::{NodeT as _, Queryable as _};
use highwater::analysis::names::hide::is_common;
use highwater::model::{Profile, StringId, Strings};
use highwater::open;
use highwater::source::Progress;
use highwater::ui::app::DeepLink;
use highwater::ui::session::{Options, ThemeChoice};
use highwater::ui::view::VIEWS;

use crate::common;
use crate::gui;
use crate::poplar_files::{self, Spec, Tree};

/// Names given by a profile's author, other than those of programs.
fn own_texts(profile: &Profile) -> Vec<String> {
    let all = |strings: &Strings| -> Vec<String> {
        (0..strings.len()).map(|i| strings.get(StringId::from_index(i)).to_owned()).collect()
    };
    let mut own = Vec::new();
    for trace in &profile.runtime {
        own.extend(all(&trace.strings));
    }
    own.extend(profile.executions.iter().map(|execution| execution.name.clone()));
    if let Some(live) = &profile.live {
        own.extend(all(&live.strings));
        own.extend(live.frames.iter().flat_map(|frame| [frame.file.clone(), frame.function.clone()]));
    }
    if let Some(tiles) = &profile.tiles {
        own.extend(all(&tiles.variables.strings));
        own.extend(all(&tiles.liveness.strings));
        for rows in [&tiles.vertex_types, &tiles.exchanges, &tiles.compute_sets] {
            own.extend(rows.rows.iter().map(|row| row.name.clone()));
        }
    }
    for failure in &profile.failures {
        own.extend(failure.allocations.iter().flat_map(|a| [a.op_name.clone(), a.label.clone()]).flatten());
        own.extend(failure.paths.clone());
    }
    own.extend(profile.programs.iter().map(|program| program.name.clone()));
    own
}

/// Words of these names that are not the framework's.
fn own_words(profile: &Profile) -> BTreeSet<String> {
    let texts = own_texts(profile);
    let words = texts.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_'));
    // Words that the window itself uses.
    let ours = [
        "step", "name", "left", "table", "model", "time", "total", "layer", "data", "code", "stack", "loss", "message",
        "array",
    ];
    words
        .filter(|word| word.chars().count() > 4 && word.chars().any(char::is_alphabetic))
        .filter(|word| !is_common(word) && !ours.contains(word))
        .map(str::to_owned)
        .collect()
}

fn check(path: &Path) {
    let profile = open::open_path(path, &Progress::default()).expect("readable");
    let own = own_words(&profile);
    let options = Options { theme: ThemeChoice::Light, names_hidden: true, ..Options::default() };
    let mut harness = gui::window_with(&[path], [1600.0, 1000.0], options, DeepLink::default());
    let views: Vec<&str> = {
        let open = harness.state().files.current().expect("open");
        VIEWS.shown_for(&open.document).map(|view| view.title).collect()
    };
    let mut leaked = BTreeSet::new();
    for view in views {
        harness.get_all_by_role_and_label(Role::Tab, view).next().expect("its tab").click();
        harness.run_ok();
        let nodes = harness.get_all(egui_kittest::kittest::by());
        let shown: Vec<String> =
            nodes.flat_map(|node| [node.accesskit_node().label(), node.accesskit_node().value()]).flatten().collect();
        let words: BTreeSet<&str> =
            shown.iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric() && c != '_')).collect();
        leaked.extend(own.iter().filter(|word| words.contains(word.as_str())).map(|word| format!("{word} ({view})")));
    }
    assert!(leaked.is_empty(), "{}: {leaked:?}", path.display());
}

#[test]
fn names_of_an_ipu_report_are_hidden() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("graph.cbor");
    let mut tree = Tree::new(Vec::new(), true);
    poplar_files::write_graph(&mut tree, &Spec::mk2()).unwrap();
    std::fs::write(&path, tree.finish().unwrap()).expect("written");
    check(&path);
}

#[test]
fn names_of_traces_and_live_arrays_are_hidden() {
    let samples = common::samples();
    for path in
        ["jax_cpu_trace/plugins/profile/2026_11_21_03_07_16/vm.xplane.pb", "cpu/memory.prof", "made/tpu_training.prof"]
    {
        check(&samples.join(path));
    }
}

#[test]
fn names_in_messages_are_hidden() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("train.log");
    let message = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. \
                   Used 25.90G of 15.75G hbm. Exceeded hbm capacity by 10.15G.\n\n\
                   Total hbm usage >= 26.40G:\n    reserved        516.00M \n    program          25.90G \n    \
                   arguments            0B \n\nProgram hbm requirement 25.90G:\n    \
                   HLO temp         25.90G (100.0% utilization: Unpadded (25.00G) Padded (25.00G))\n\n  \
                   Largest program allocations in hbm:\n\n  1. Size: 3.07G\n     \
                   Operator: op_name=\"jit(secret_step)/secretformer/block_3/router/dot_general\" \
                   source_file=\"/home/someone/secretproject/model.py\" source_line=120\n     \
                   Shape: bf16[32,1024,50257]{1,2,0:T(8,128)(2,1)}\n     Unpadded size: 3.07G\n     \
                   XLA label: fusion.1900 = fusion(secret_param.1), kind=kOutput\n     \
                   Allocation type: HLO temp\n     ==========================\n\n";
    std::fs::write(&path, message).expect("written");
    let profile = open::open_path(&path, &Progress::default()).expect("readable");
    assert!(!profile.failures.is_empty());
    check(&path);
    let options = Options { theme: ThemeChoice::Light, names_hidden: true, ..Options::default() };
    let harness = gui::window_with(&[&path], [1600.0, 1000.0], options, DeepLink::default());
    let nodes = harness.get_all(egui_kittest::kittest::by());
    let shown: Vec<String> =
        nodes.flat_map(|node| [node.accesskit_node().label(), node.accesskit_node().value()]).flatten().collect();
    let leaked: Vec<&String> =
        shown.iter().filter(|text| text.contains("secret") || text.contains("train.log")).collect();
    assert!(leaked.is_empty(), "{leaked:?}");
    assert!(shown.iter().any(|text| text.contains("Out of HBM")), "{shown:?}");
}
