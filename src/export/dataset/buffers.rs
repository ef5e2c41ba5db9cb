//! Rows of the table of buffers.

use std::collections::HashMap;

use super::chunk::word;
use super::origin::Origin;
use super::rows::Rows;
use crate::analysis::{ProfileAnalysis, Scene, has_no_shape};
use crate::model::{Profile, Program};

pub(super) fn add(profile: &Profile, analysis: &ProfileAnalysis, origin: &Origin, rows: &mut Rows<'_>) {
    for (place, program) in profile.programs.iter().enumerate() {
        let key = origin.key(Some(program));
        for scene in analysis.scenes(profile, place) {
            add_space(scene, program, (origin, &key), rows);
        }
    }
}

fn add_space(scene: Scene<'_>, program: &Program, (origin, key): (&Origin, &str), rows: &mut Rows<'_>) {
    let table = scene.table();
    let classes = scene.analysis.classes(program);
    let mut at_peak: HashMap<u32, u64> = HashMap::new();
    for (buffer, bytes) in scene.live(None) {
        *at_peak.entry(buffer.0).or_default() += bytes.0;
    }
    for row in 0..table.len() {
        let buffer = table.buffers[row];
        let has_shape = !has_no_shape(program, buffer);
        let padding = has_shape.then_some(table.padding[row]);
        let is_placed = !program.is_listing;
        let step = |step: u32| (step != u32::MAX).then_some(step);
        let [key, file, name] = origin.cells(key, Some(program));
        rows.push(&[
            key,
            file,
            name,
            word(&scene.space.name),
            table.number[row].into(),
            word(table.name.at(row)),
            table.size[row].into(),
            padding.map(|padding| (table.size[row] as i64).saturating_sub(padding)).into(),
            padding.into(),
            word(table.shape.at(row)),
            word(table.element_type.at(row)),
            table.category[row].name().into(),
            table.class[row].name().into(),
            classes.reason(buffer).certainty().words().into(),
            word(table.opcode.at(row)),
            word(table.op.at(row)),
            word(table.scope.at(row)),
            word(table.source.at(row)),
            // Negative numbers are our own, for allocations that have none in the report.
            Some(table.allocation[row]).filter(|&index| index >= 0).into(),
            is_placed.then_some(table.offset[row]).into(),
            step(table.start[row]).into(),
            step(table.end[row]).into(),
            at_peak.get(&buffer.0).copied().unwrap_or(0).into(),
        ]);
    }
}
