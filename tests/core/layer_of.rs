//! The layer of an operation whose name shows none is found by what it reads: as it says where names show layers.

use std::path::Path;

use highwater::analysis::ProfileAnalysis;
use highwater::analysis::layer_of::LayerOf;
use highwater::analysis::names::layer::Layers;
use highwater::model::InstructionId;
use highwater::open;
use highwater::source::Progress;

use crate::common::Files;

/// Numbers in the name of a layer: 2 and 5 of `stages[2][5]`, `stage_2/block_5`.
fn numbers(layer: &str) -> Vec<u32> {
    layer.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// Operations of which both tell the layer, and of these the ones of which they tell another one.
fn compared(path: &Path) -> (usize, Vec<String>) {
    let profile =
        open::open_path(path, &Progress::default()).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
    let analysis = ProfileAnalysis::new(&profile);
    let (mut looked_at, mut wrong) = (0usize, Vec::new());
    for (program, own) in profile.programs.iter().zip(&analysis.programs) {
        let Some(live) = &own.live else { continue };
        let found = LayerOf::by_use(program, own.labels(program), live.sequence());
        let name = |row: u32| program.text.op_name(InstructionId(row));
        let names: Vec<String> = live.sequence().iter().map(|&row| name(row)).collect();
        let layers = Layers::new(names.iter().map(String::as_str));
        for (&row, name) in live.sequence().iter().zip(&names) {
            let (Some(found), Some(named)) = (found.layer(InstructionId(row)), layers.of(name)) else { continue };
            looked_at += 1;
            if numbers(found).last() != numbers(&named.name).last() {
                wrong.push(format!("{}: {found}, {name}", program.text.instruction_name(InstructionId(row))));
            }
        }
    }
    (looked_at, wrong)
}

#[test]
fn the_layer_by_use_is_that_of_the_name() {
    let (mut all, mut wrong) = (0usize, Vec::new());
    for path in Files::of_project().programs() {
        let (looked_at, others) = compared(&path);
        all += looked_at;
        wrong.extend(others);
    }
    assert!(all > 500, "{all} operations were compared");
    // What fuses the end of a layer with the beginning of the next one has the name of either.
    assert!(wrong.len() * 100 <= all, "{} of {all}: {wrong:?}", wrong.len());
}
