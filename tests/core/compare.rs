//! Promise: a comparison of two programs adds up to the byte, and finds again what did not change.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use highwater::analysis::compare::{SpaceComparison, StepOf};
use highwater::analysis::{ProfileAnalysis, Scene};
use highwater::model::{BufferId, Bytes, InstructionId, MemorySpace, NO_ROW, Profile, Program};
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
    let by_scope = |of: fn(&highwater::analysis::compare::WaterfallStep) -> i128| -> i128 {
        found.waterfall_by_scope.iter().map(of).sum()
    };
    assert_eq!(by_scope(|step| step.before), allocated(from), "{what}: before, by scope");
    assert_eq!(by_scope(|step| step.after), allocated(to), "{what}: after, by scope");
    let steps = found.waterfall.iter().chain(&found.waterfall_by_scope);
    for step in steps.filter(|step| step.of != StepOf::Unused) {
        let parts = i128::from(step.appeared) - i128::from(step.gone) + step.resized + i128::from(step.came)
            - i128::from(step.left);
        assert_eq!(parts, step.difference(), "{what}: {step:?}");
    }
    let held = held(to) - held(from);
    assert_eq!(found.groups.iter().map(|row| row.difference()).sum::<i128>(), held, "{what}: groups");
    for step in &found.waterfall_by_scope {
        if let StepOf::Scope(scope) = &step.of {
            let rows = found.groups.iter().filter(|row| row.scope == *scope);
            let (was, is) = rows.fold((0, 0), |(was, is), row| (was + row.before, is + row.after));
            assert_eq!((i128::from(was), i128::from(is)), (step.before, step.after), "{what}: {scope}");
        }
    }
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

/// What a buffer is called in the file itself, without help from the program under test: the framework's name without
/// what recomputation and loops put around it, its element type and dimensions. Its place in a tuple is no part of it: that
/// changes with what the compiler fuses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Words {
    name: String,
    shape: String,
}

/// Parts of a name that say how an operation is run.
const HOW: [&str; 8] =
    ["checkpoint", "rematted_computation", "remat", "while", "body", "cond", "closed_call", "custom_partitioning"];

/// How an operation's name is written for comparing, from that in the file.
pub type Naming = fn(&str) -> String;

/// Without the parts that say how it is run.
pub fn plain(name: &str) -> String {
    let parts: Vec<&str> = name.split('/').filter(|part| !HOW.contains(part)).collect();
    parts.join("/")
}

/// Largest buffers of each side whose counterparts are looked at.
const LOOKED_AT: usize = 100;

/// The name of the operation that makes a buffer; of one of several results of a fusion, that of the operation inside of it.
fn own_name(program: &Program, buffer: BufferId, at: InstructionId) -> String {
    let name = program.text.op_name(at);
    let (index, called) = (program.buffer_index(buffer), program.instructions.called_by(at));
    let (Some(&place), [fused], "fusion") = (index.first(), called, program.opcode_name(at)) else { return name };
    let operand = |at: InstructionId, place: usize| {
        program.instructions.operands_of(at).get(place).filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row))
    };
    let root = InstructionId(program.computations[fused.index()].root);
    let mut inside = operand(root, place as usize);
    // What the compiler adds has no name.
    while let Some(own) = inside {
        let own_name = program.text.op_name(own);
        if !own_name.is_empty() {
            return own_name;
        }
        inside = operand(own, 0);
    }
    name
}

fn words(scene: Scene<'_>, buffer: BufferId, naming: Naming) -> Words {
    let program = scene.program;
    let name = program.buffers.instruction_of(buffer).map(|at| own_name(program, buffer, at)).unwrap_or_default();
    let shape = program.buffer_shape(buffer).map(|(shape, node)| shape.short_text_of(node)).unwrap_or_default();
    Words { name: naming(&name), shape }
}

impl Words {
    /// The name with every number replaced: equal for the same operation of two layers.
    fn of_any_layer(&self) -> String {
        self.name.chars().filter(|c| !c.is_ascii_digit()).collect()
    }

    fn rank(&self) -> usize {
        self.shape.matches(',').count()
    }
}

/// How well two programs are matched, by the words in their files.
#[derive(Debug)]
struct Score {
    /// Bytes of the buffers that both have, with equal words.
    common: u64,
    /// Of these, the bytes of those that have a counterpart with equal words.
    found: u64,
    /// Pairs looked at, of the largest of each side.
    looked_at: usize,
    /// Those of them that are not the same buffer.
    wrong: Vec<String>,
}

fn score(before: Scene<'_>, after: Scene<'_>, found: &SpaceComparison, naming: Naming) -> Score {
    let size = |scene: Scene<'_>, buffer: BufferId| scene.program.buffers.size_of(buffer).0;
    let all = |scene: Scene<'_>| -> HashMap<BufferId, Words> {
        scene.space.buffers.iter().map(|&buffer| (buffer, words(scene, buffer, naming))).collect()
    };
    let (named_before, named_after) = (all(before), all(after));
    let mut counts: HashMap<&Words, [usize; 2]> = HashMap::new();
    for (side, named) in [&named_before, &named_after].into_iter().enumerate() {
        for words in named.values().filter(|words| !words.name.is_empty()) {
            counts.entry(words).or_default()[side] += 1;
        }
    }
    // How many pairs have equal words, of those that could.
    let mut equal: HashMap<&Words, usize> = HashMap::new();
    for (from, to) in &found.matched {
        if named_before[from] == named_after[to] {
            *equal.entry(&named_before[from]).or_default() += 1;
        }
    }
    let (mut common, mut same) = (0, 0);
    let mut seen: HashMap<&Words, usize> = HashMap::new();
    for &buffer in &before.space.buffers {
        let words = &named_before[&buffer];
        let both = counts.get(words).map_or(0, |count| count[0].min(count[1]));
        let place = seen.entry(words).or_default();
        *place += 1;
        if *place <= both {
            common += size(before, buffer);
            same += if *place <= equal.get(words).copied().unwrap_or(0) { size(before, buffer) } else { 0 };
        }
    }
    // Whether a counterpart with equal words was to be had.
    let is_left = |words: &Words| {
        let both = counts.get(words).map_or(0, |count| count[0].min(count[1]));
        equal.get(words).copied().unwrap_or(0) < both
    };
    let largest = |scene: Scene<'_>| -> HashSet<BufferId> {
        let mut buffers = scene.space.buffers.clone();
        buffers.sort_by_key(|&buffer| std::cmp::Reverse(size(scene, buffer)));
        buffers.into_iter().take(LOOKED_AT).collect()
    };
    let (large_before, large_after) = (largest(before), largest(after));
    let (mut looked_at, mut wrong) = (0, Vec::new());
    for (from, to) in &found.matched {
        if !large_before.contains(from) && !large_after.contains(to) {
            continue;
        }
        looked_at += 1;
        let (was, is) = (&named_before[from], &named_after[to]);
        if was == is || was.name.is_empty() || is.name.is_empty() {
            continue;
        }
        let why = if is_left(was) || is_left(is) {
            "another has equal words"
        } else if was.name != is.name && was.of_any_layer() == is.of_any_layer() && was.name.contains("layer") {
            "another layer"
        } else if was.name != is.name && was.rank() != is.rank() {
            "another operation and another number of dimensions"
        } else {
            continue;
        };
        wrong.push(format!("{why}: {} {was:?} and {is:?}", Bytes(size(before, *from)).short()));
    }
    Score { common, found: same, looked_at, wrong }
}

/// Large pairs known to be wrong: values of the forward pass matched with the copies that are recomputed after the change,
/// or with their gradients, of one shape and beside them.
const KNOWN_WRONG: &[(&str, usize)] =
    &[("scores_over_v5e/", 5), ("mt_llama3_8b_v5e16_oom/", 2), ("adapters_whole_v5p/", 1)];

/// Compares two programs, and checks that at least 95 % of the bytes that did not change are found again, and that none
/// of the largest pairs is wrong.
pub fn match_pair(before: &Path, after: &Path, naming: Naming) {
    let (before, after) = (side(before), side(after));
    let what = format!("{} to {}", before.name, after.name);
    let found = add_up(&before, &after);
    let score = score(before.scene(), after.scene(), &found, naming);
    // A pair of which every buffer has another size has nothing in common.
    let percent = if score.common == 0 { 100.0 } else { score.found as f64 * 100.0 / score.common as f64 };
    println!(
        "{what}: {} of the bytes before in common, {percent:.2} % of them found, {} of {} large pairs wrong; \
         {} matched before, {} after",
        highwater::model::percent(score.common, found.matching.bytes[0]),
        score.wrong.len(),
        score.looked_at,
        highwater::model::percent(found.matching.matched_bytes[0], found.matching.bytes[0]),
        highwater::model::percent(found.matching.matched_bytes[1], found.matching.bytes[1]),
    );
    assert!(score.looked_at > 0, "{what}: nothing is matched");
    assert!(percent >= 95.0, "{what}: {} of {} in common are found", score.found, score.common);
    let known = KNOWN_WRONG.iter().find(|row| what.starts_with(row.0)).map_or(0, |row| row.1);
    assert!(score.wrong.len() <= known, "{what}: {} wrong:\n{}", score.wrong.len(), score.wrong.join("\n"));
}

/// Pairs of one program before and after a change really made.
pub fn match_what_did_not_change(files: &Files, pairs: &[(&str, &str)]) -> usize {
    for (before, after) in pairs {
        match_pair(&files.case(before), &files.case(after), plain);
    }
    pairs.len()
}

/// Every folder with a dump named `before` and one named `after`.
pub fn match_pairs(files: &Files) -> usize {
    let before = files.named(|name| name.starts_with("before.hlo.pb"));
    for before in &before {
        let after = before
            .parent()
            .expect("a folder")
            .join(before.file_name().expect("a name").to_string_lossy().replace("before", "after"));
        match_pair(before, &after, plain);
    }
    before.len()
}

#[test]
fn what_did_not_change_is_found_again() {
    let files = Files::of_project();
    assert_eq!(match_what_did_not_change(&files, &[("v5e_mlp_f32", "v5e_mlp_f32_debugprint")]), 1);
    assert!(match_pairs(&files) >= 2, "the pairs of the samples are missing");
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
