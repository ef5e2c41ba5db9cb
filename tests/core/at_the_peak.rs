//! Whatever lists, divides or counts what stands at the peak adds up to the peak of the headline, to the byte.

use highwater::analysis::contributors::contributors;
use highwater::analysis::stacked_curves::Grouping;
use highwater::analysis::table::{Counted, Order, arrange};
use highwater::analysis::tree::{Tree, TreeKind};
use highwater::analysis::{ProfileAnalysis, Scene};
use highwater::export::report::{self, Format, Options};
use highwater::model::{BufferId, Bytes, MemorySpace};
use highwater::open;
use highwater::source::Progress;
use serde_json::Value;

use crate::common::{self, Files};

/// Bytes and buffers of everything that is said of the peak, by what says it.
fn sums(scene: Scene<'_>) -> Vec<(String, Bytes, usize)> {
    let Scene { program, analysis, space, .. } = scene;
    let live = scene.live(None);
    let of = |rows: &[(BufferId, Bytes)]| (rows.iter().map(|row| row.1).sum::<Bytes>(), rows.len());
    let mut said = Vec::new();
    let mut add = |what: &str, (bytes, count): (Bytes, usize)| said.push((what.to_owned(), bytes, count));
    add("the list", of(&live));
    if space.occupancy.is_some() {
        add("the list at its step", of(&scene.live(Some(space.peak_point()))));
        let rows: Vec<_> = scene.live_at(space.peak_point()).iter().map(|live| (live.buffer, live.bytes)).collect();
        add("the step's card", of(&rows));
        let curves = scene.curves(Grouping::Class);
        let bytes = curves.curves.groups.iter().map(|curve| curve.at(space.peak_point())).sum();
        add("the stacked curve", (Bytes(bytes), live.len()));
    }
    let rows = &space.at_peak.by_category;
    add("by category", (rows.iter().map(|row| row.1).sum(), rows.iter().map(|row| row.2).sum()));
    let rows = analysis.classes(program).sums(live.iter().copied());
    add("by class", (rows.iter().map(|row| row.1).sum(), rows.iter().map(|row| row.2).sum()));
    let rows = contributors(program, analysis, &live);
    add("contributors", (rows.iter().map(|row| row.bytes).sum(), rows.iter().map(|row| row.buffers.len()).sum()));
    for kind in TreeKind::ALL {
        let tree = Tree::new(program, analysis, &live, kind, true);
        add(kind.name(), (tree.nodes[0].bytes, tree.nodes[0].count));
        assert_eq!(tree.nodes[0].padding, space.at_peak.padding, "padding by {}", kind.name());
    }
    let table = scene.table();
    let rows: Vec<u32> = live.iter().filter_map(|row| table.row_of(row.0)).collect();
    let shown = arrange(table, rows, &Order::default(), &Counted::new(program, analysis, table, &live));
    add("the table", (Bytes(shown.size), shown.rows));
    assert_eq!(u64::try_from(shown.padding).unwrap_or(0), space.at_peak.padding.0, "padding of the table");
    said
}

/// Files that say what stands at a peak.
fn files_of(files: &Files) -> Vec<std::path::PathBuf> {
    let ends = [".hlo.pb", ".memory_viewer.json", "-buffer-assignment.txt", "-memory-usage-report.txt"];
    files.named(|name| ends.iter().any(|end| common::ends_with(name, end)))
}

/// Holds every sum at the peak of every memory space to the peak; returns how many spaces there were.
pub fn add_up(files: &Files) -> usize {
    let (mut compared, mut wrong) = (0, Vec::new());
    for path in files_of(files) {
        let Ok(profile) = open::open_path(&path, &Progress::default()) else { continue };
        let analysis = ProfileAnalysis::new(&profile);
        for scene in (0..profile.programs.len()).flat_map(|row| analysis.scenes(&profile, row)) {
            let Some(peak) = scene.space.known_peak() else { continue };
            compared += 1;
            let count = scene.space.at_peak.len();
            // XProf's JSON sums up what is smaller than 16 KiB.
            let may_sum_up = scene.space.occupancy.is_none() && path.to_string_lossy().contains(".memory_viewer");
            assert!(may_sum_up || scene.space.at_peak.unlisted == Bytes::ZERO, "{}", common::name(&path));
            for (what, bytes, buffers) in sums(scene) {
                if (bytes + scene.space.at_peak.unlisted, buffers) != (peak, count) {
                    let name = common::name(&path);
                    wrong.push(format!(
                        "{name}, {}: {what} {} B in {buffers}, not {} B in {count}",
                        scene.space.name, bytes.0, peak.0
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
    compared
}

#[test]
fn every_list_adds_up_to_the_peak() {
    assert!(add_up(&Files::of_project()) >= 40);
}

#[test]
fn the_lists_of_the_report_add_up_to_its_peak() {
    for path in common::sample_programs() {
        let profile = open::open_path(&path, &Progress::default()).expect("a sample");
        let analysis = ProfileAnalysis::new(&profile);
        let report = report::build(&[(&profile, &analysis)], &[], &Options::default());
        let json: Value = serde_json::from_str(&report::write(&report, Format::Json)).expect("JSON");
        for space in json["profiles"][0]["programs"][0]["spaces"].as_array().expect("spaces") {
            let peak = &space["peak"];
            for (list, key) in [("buffers", "bytes_at_peak"), ("by_category", "bytes"), ("by_class", "bytes")] {
                let rows = peak[list].as_array().expect("rows");
                let sum: u64 = rows.iter().filter_map(|row| row[key].as_u64()).sum();
                assert_eq!(Some(sum), peak["bytes"].as_u64(), "{list} of {} in {}", space["name"], path.display());
            }
            assert_eq!(peak["bytes"], space["reserved_peak_bytes"], "the headline's peak");
            let allocated = space["allocated_bytes"].as_u64().expect("bytes");
            let lost = peak["fragmentation_bytes"].as_u64().expect("bytes");
            assert_eq!(Some(allocated - lost), peak["bytes"].as_u64(), "fragmentation of {}", path.display());
            // XProf's rows stay XProf's: their sizes, at its own peak.
            let xprof: u64 =
                space["by_category"].as_array().expect("rows").iter().filter_map(|row| row["bytes"].as_u64()).sum();
            assert!(xprof <= space["peak_bytes"].as_u64().expect("XProf's peak"), "{}", path.display());
        }
    }
}

/// After changes, what is listed and what is said besides add up to the peak: to the byte for what the heap trace counts,
/// else but for what it counts otherwise than XProf without changes, too.
#[test]
fn what_is_left_after_changes_adds_up_to_the_new_peak() {
    let edits =
        ["remat *", "remat scan", "batch 0.5", "micro 4", "donate *", "chunk logits 8", "blockwise *", "compute bf16"];
    let (mut compared, mut wrong, mut added) = (0usize, Vec::new(), 0usize);
    for path in Files::of_project().programs() {
        let Ok(profile) = open::open_path(&path, &Progress::default()) else { continue };
        let analysis = ProfileAnalysis::new(&profile);
        for scene in (0..profile.programs.len()).flat_map(|row| analysis.scenes(&profile, row)) {
            if scene.space.color != MemorySpace::HBM || scene.memory().families.list.is_empty() {
                continue;
            }
            let counted_otherwise = scene.memory().correction.unsigned_abs();
            for edit in edits {
                let prediction = scene.what_if(&[edit.parse().expect("an edit")]);
                if prediction.undecided.is_some() {
                    continue;
                }
                let rows = scene.memory().at_peak(scene.analysis, &prediction);
                let listed: i128 = rows.iter().map(|row| i128::from(row.bytes.0)).sum();
                let besides: i128 = prediction.besides.iter().map(|found| i128::from(found.0)).sum();
                let off = (listed + besides - i128::from(prediction.peak.0)).unsigned_abs();
                compared += 1;
                added += usize::from(rows.iter().any(|row| row.added.is_some()));
                if off > u128::from(counted_otherwise) {
                    wrong.push(format!("{} with {edit}: {off} B off", common::name(&path)));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {compared}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 100 && added > 10, "{compared} compared, {added} with what changes add");
}
