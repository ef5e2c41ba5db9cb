//! Promise: a comparison of two programs adds up to the byte, and finds again what did not change.

use std::collections::HashMap;
use std::path::Path;

use highwater::analysis::compare::SpaceComparison;
use highwater::analysis::{ProfileAnalysis, Scene};
use highwater::model::{MemorySpace, Profile};
use highwater::open;
use highwater::source::Progress;

use crate::common::{self, Files};

struct Side {
    name: String,
    profile: Profile,
    analysis: ProfileAnalysis,
}

fn side(path: &Path) -> Side {
    let name = common::name(path);
    let profile = open::open_path(path, &Progress::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
    let analysis = ProfileAnalysis::new(&profile);
    Side { name, profile, analysis }
}

impl Side {
    fn scene(&self) -> Scene<'_> {
        self.analysis.scene(&self.profile, 0, MemorySpace::HBM).unwrap_or_else(|| panic!("{}: no HBM", self.name))
    }
}

fn held(scene: Scene<'_>) -> i128 {
    scene.live(None).iter().map(|row| i128::from(row.1.0)).sum()
}

/// Compares two programs; every sum must hold whatever they are.
fn add_up(before: &Side, after: &Side) -> SpaceComparison {
    let what = format!("{} to {}", before.name, after.name);
    let (from, to) = (before.scene(), after.scene());
    let found = SpaceComparison::new(from, to);
    let allocated = |scene: Scene<'_>| i128::from(scene.space.xprof.allocated.0);
    let sum =
        |of: fn(&highwater::analysis::compare::WaterfallStep) -> i128| found.waterfall.iter().map(of).sum::<i128>();
    assert_eq!(sum(|step| step.before), allocated(from), "{what}: before");
    assert_eq!(sum(|step| step.after), allocated(to), "{what}: after");
    for step in found.waterfall.iter().filter(|step| step.class.is_some()) {
        let parts = i128::from(step.appeared) - i128::from(step.gone) + step.resized + i128::from(step.came)
            - i128::from(step.left);
        assert_eq!(parts, step.difference(), "{what}: {step:?}");
    }
    let held = held(to) - held(from);
    assert_eq!(found.groups.iter().map(|row| row.difference()).sum::<i128>(), held, "{what}: groups");
    assert_eq!(found.buffers.iter().map(|row| row.difference()).sum::<i128>(), held, "{what}: buffers");
    let mut seen = std::collections::HashSet::new();
    for row in &found.buffers {
        assert!(row.before.is_none_or(|buffer| seen.insert((0, buffer))), "{what}: {row:?} twice");
        assert!(row.after.is_none_or(|buffer| seen.insert((1, buffer))), "{what}: {row:?} twice");
    }
    found
}

#[test]
fn a_program_is_equal_to_itself() {
    for path in common::sample_programs() {
        let (one, other) = (side(&path), side(&path));
        let found = add_up(&one, &other);
        let name = &one.name;
        assert_eq!(found.matching.unmatched, [0, 0], "{name}");
        assert_eq!(found.matching.matched_bytes, found.matching.bytes, "{name}");
        assert!(found.buffers.is_empty(), "{name}: {:?}", found.buffers.first());
        assert!(found.waterfall.iter().all(|step| step.difference() == 0), "{name}: {:?}", found.waterfall);
    }
}

#[test]
fn any_two_programs_add_up() {
    let programs: Vec<Side> = common::sample_programs().iter().map(|path| side(path)).collect();
    let mut compared = 0;
    for (place, before) in programs.iter().enumerate() {
        for after in &programs[place + 1..] {
            add_up(before, after);
            compared += 1;
        }
    }
    assert!(compared >= 15, "{compared} pairs");
}

/// Bytes that two programs have in common by the words in their files alone: as many buffers with one framework name
/// and shape as both have.
fn in_common(before: Scene<'_>, after: Scene<'_>) -> u64 {
    let count = |scene: Scene<'_>| {
        let program = scene.program;
        let mut rows: HashMap<(String, String), (usize, u64)> = HashMap::new();
        for &buffer in &scene.space.buffers {
            let Some(instruction) = program.buffers.instruction_of(buffer) else { continue };
            let Some((shape, node)) = program.buffer_shape(buffer) else { continue };
            let name = program.text.op_name(instruction);
            if !name.is_empty() {
                let size = program.buffers.size_of(buffer).0;
                let entry = rows.entry((name, shape.text_of(node))).or_insert((0, size));
                entry.0 += 1;
            }
        }
        rows
    };
    let (before, after) = (count(before), count(after));
    let both = |(key, (number, size)): (&(String, String), &(usize, u64))| {
        after.get(key).map_or(0, |other| (*number).min(other.0) as u64 * (*size).min(other.1))
    };
    before.iter().map(both).sum()
}

/// Pairs of one program before and after a change really made. At least 95 % of what both have must be matched.
pub fn match_what_did_not_change(files: &Files, pairs: &[(&str, &str)]) -> usize {
    for (before, after) in pairs {
        let (before, after) = (side(&files.case(before)), side(&files.case(after)));
        let found = add_up(&before, &after);
        let common = in_common(before.scene(), after.scene());
        let matched = found.matching.matched_bytes.iter().min().copied().unwrap_or(0);
        let what = format!("{} to {}", before.name, after.name);
        assert!(common > 0, "{what}: nothing in common");
        assert!(matched as f64 >= common as f64 * 0.95, "{what}: {matched} of {common} in common are matched");
    }
    pairs.len()
}

#[test]
fn what_did_not_change_is_found_again() {
    let files = Files::of_project();
    assert_eq!(match_what_did_not_change(&files, &[("v5e_mlp_f32", "v5e_mlp_f32_debugprint")]), 1);
}

#[test]
fn another_type_of_number_is_the_same_buffer_with_another_size() {
    let folder = common::samples().join("pairs/bf16_mlp_v5p");
    let (before, after) = (side(&folder.join("before.hlo.pb.gz")), side(&folder.join("after.hlo.pb.gz")));
    let found = add_up(&before, &after);
    let [bytes, matched] = [found.matching.bytes, found.matching.matched_bytes];
    assert!(matched[0] * 100 >= bytes[0] * 90 && matched[1] * 100 >= bytes[1] * 90, "{matched:?} of {bytes:?}");
    assert!(found.groups.iter().any(|row| row.before > 0 && row.after > 0 && row.after < row.before));
}

#[test]
fn a_donated_argument_takes_its_result_away() {
    let folder = common::samples().join("pairs/donate_mlp_v4");
    let (before, after) = (side(&folder.join("before.hlo.pb.gz")), side(&folder.join("after.hlo.pb.gz")));
    let found = add_up(&before, &after);
    let change: i128 = found.waterfall.iter().map(|step| step.difference()).sum();
    assert!(change < 0, "{change}");
    let weights = found.groups.iter().filter(|row| row.class == highwater::analysis::class::Class::Weight);
    assert!(weights.clone().count() > 0 && weights.clone().all(|row| row.after > 0), "weights stay");
}
