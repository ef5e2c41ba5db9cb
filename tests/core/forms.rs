//! All forms of a program give the same numbers: HLO proto, trace, XProf's JSON, XLA's reports.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use highwater::analysis::{ProfileAnalysis, ProgramAnalysis, SpaceAnalysis};
use highwater::model::{Allocation, BufferId, Bytes, MemorySpace, Profile, Program};
use highwater::open;
use highwater::source::{Input, Progress};

use crate::common::{self, Files};
use crate::xla_made;

/// Opens a file without its companion files.
pub fn alone(path: &Path) -> Profile {
    let input = Input::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    open::open_input(&input, &Progress::default()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Dumps with buffer assignment, each with its companion files that have one of the endings.
fn pairs(files: &Files, ends: &[&str]) -> Vec<(PathBuf, PathBuf)> {
    let mut pairs = Vec::new();
    for proto in files.programs() {
        let stem = proto.to_string_lossy().trim_end_matches(".gz").trim_end_matches(".hlo.pb").to_owned();
        for end in ends {
            pairs.extend(common::packed_or_not(&format!("{stem}{end}")).map(|other| (proto.clone(), other)));
        }
    }
    pairs
}

fn space(analysis: &ProgramAnalysis, color: MemorySpace) -> &SpaceAnalysis {
    analysis.space(color).unwrap_or_else(|| panic!("no memory space {color}"))
}

fn analysed(program: &Program) -> ProgramAnalysis {
    ProgramAnalysis::new(program, &highwater::model::Device::default())
}

/// Buffers of at least 16 KiB at the peak; XProf's JSON merges smaller ones.
fn large_at_peak(
    program: &Program,
    analysis: &ProgramAnalysis,
    space: &SpaceAnalysis,
) -> Vec<(i64, String, u64, &'static str)> {
    let row = |b: BufferId| {
        let category = highwater::analysis::category(program, b).name();
        (program.buffers.number[b.index()], program.buffer_name(b), program.buffers.size_of(b).0, category)
    };
    let mut rows: Vec<_> =
        space.at_xprof_peak(program, &analysis.traces).buffers().map(row).filter(|row| row.2 >= 16384).collect();
    rows.sort_by(|a, b| (b.2, a.0).cmp(&(a.2, b.0)));
    rows
}

/// Compares XProf's JSON with the dumps; returns the number of files.
pub fn compare_memory_viewer_json(files: &Files) -> usize {
    let ends: Vec<String> = std::iter::once(".memory_viewer.json".to_owned())
        .chain((1..14).map(|color| format!(".memory_viewer.ms{color}.json")))
        .collect();
    let ends: Vec<&str> = ends.iter().map(String::as_str).collect();
    let mut protos: HashMap<PathBuf, (Program, ProgramAnalysis)> = HashMap::new();
    let mut compared = 0;
    for (proto, json) in pairs(files, &ends) {
        let (program, ours) = protos.entry(proto.clone()).or_insert_with(|| {
            let program = common::program(&proto);
            let analysis = analysed(&program);
            (program, analysis)
        });
        let name = common::name(&json);
        let profile = alone(&json);
        let [theirs] = profile.programs.as_slice() else { panic!("{name}: no program") };
        let analysis = analysed(theirs);
        let color = theirs.reported[0].color;
        let (a, b) = (space(ours, color), space(&analysis, color));
        assert_eq!(program.name, theirs.name, "{name}");
        for (what, a, b) in [
            ("allocated", a.xprof.allocated, b.xprof.allocated),
            ("always live", a.xprof.always_live, b.xprof.always_live),
            ("peak", a.xprof.peak, b.xprof.peak),
            ("unpadded peak", a.xprof.peak_unpadded, b.xprof.peak_unpadded),
            ("parameters", a.xprof.parameters, b.xprof.parameters),
            ("results", a.xprof.live_out, b.xprof.live_out),
            ("not reusable", a.xprof.non_reusable, b.xprof.non_reusable),
            ("fragmentation", a.xprof_fragmentation(), b.xprof_fragmentation()),
        ] {
            assert_eq!(a, b, "{name}: {what}");
        }
        assert_eq!(a.xprof.peak_event, b.xprof.peak_event, "{name}");
        assert_eq!(a.event_count(), b.event_count(), "{name}");
        assert_eq!(a.xprof.curve, b.xprof.curve, "{name}");
        // For other memory spaces, XProf lists only the heap at the peak.
        let rows = |program: &Program, analysis: &ProgramAnalysis, space: &SpaceAnalysis| {
            let mut rows = large_at_peak(program, analysis, space);
            rows.sort();
            rows
        };
        assert_eq!(rows(program, ours, a), rows(theirs, &analysis, b), "{name}");
        compared += 1;
    }
    compared
}

#[test]
fn memory_viewer_json() {
    assert!(compare_memory_viewer_json(&Files::of_project()) >= 18);
}

/// Compares XLA's buffer-assignment reports with the dumps; returns the number of reports.
pub fn compare_buffer_assignments(files: &Files) -> usize {
    let mut compared = 0;
    for (proto, text) in pairs(files, &["-buffer-assignment.txt"]) {
        let name = common::name(&text);
        let ours = common::program(&proto);
        let profile = alone(&text);
        assert!(profile.notes.iter().all(|note| note.offset.is_none()), "{name}: {:?}", profile.notes);
        let [theirs] = profile.programs.as_slice() else { panic!("{name}: no program") };
        let properties = |a: &Allocation| {
            (a.index, a.size, a.color, a.is_thread_local, a.is_parameter, a.is_constant, a.maybe_live_out)
        };
        let list = |program: &Program| {
            let mut list: Vec<_> = program.allocations.iter().map(properties).collect();
            list.sort();
            list
        };
        assert_eq!(list(&ours), list(theirs), "{name}");
        let buffers = |program: &Program| -> BTreeMap<i64, (u64, u64, i64, String, Option<String>)> {
            (0..program.buffers.len())
                .map(BufferId::from_index)
                .filter(|&b| program.buffers.allocation_of(b).is_some())
                .map(|b| {
                    let row = b.index();
                    let shape = program.buffer_shape(b).map(|(shape, node)| shape.text_of(node));
                    let values = &program.buffers;
                    let name = program.buffer_name(b);
                    (values.number[row], (values.size[row].0, values.offset[row], values.color[row].0, name, shape))
                })
                .collect()
        };
        let (a, b) = (buffers(&ours), buffers(theirs));
        assert_eq!(a.len(), b.len(), "{name}");
        for (number, a) in &a {
            assert_eq!(Some(a), b.get(number), "{name}: buffer {number}");
        }
        let (a, b) = (analysed(&ours), analysed(theirs));
        for a in &a.spaces {
            let b = space(&b, a.color);
            assert_eq!((a.xprof.allocated, a.xprof.always_live), (b.xprof.allocated, b.xprof.always_live), "{name}");
            assert_eq!((a.xprof.parameters, a.xprof.live_out), (b.xprof.parameters, b.xprof.live_out), "{name}");
            assert!(!b.peak_is_known(), "{name}: a peak from nothing");
        }
        compared += 1;
    }
    compared
}

#[test]
fn buffer_assignment_text() {
    assert!(compare_buffer_assignments(&Files::of_project()) >= 2);
}

/// Compares buffer assignments and their live ranges with the dumps; returns their number.
pub fn compare_assignments_with_ranges(files: &Files) -> usize {
    let mut compared = 0;
    for (proto, text) in pairs(files, &["-buffer-assignment.txt"]) {
        let ranges = PathBuf::from(text.to_string_lossy().replace("-buffer-assignment.txt", "-live-range.txt"));
        if !ranges.exists() {
            continue;
        }
        let name = common::name(&text);
        let ours = common::program(&proto);
        let input = Input::open(&text).expect("readable");
        let profile = open::open_with(&input, &[ranges.into()], &Progress::default()).expect("a report");
        let (a, b) = (analysed(&ours), analysed(&profile.programs[0]));
        for a in &a.spaces {
            let b = space(&b, a.color);
            let (Some(a), Some(b)) = (&a.occupancy, &b.occupancy) else { panic!("{name}: no live ranges") };
            assert_eq!((a.reserved_peak, a.reserved_peak_point), (b.reserved_peak, b.reserved_peak_point), "{name}");
            assert_eq!(a.content_peak, b.content_peak, "{name}");
        }
        compared += 1;
    }
    compared
}

#[test]
fn buffer_assignment_with_live_ranges_has_the_peak() {
    assert!(compare_assignments_with_ranges(&Files::of_project()) >= 2);
}

/// Bytes of all allocations of a memory space, including thread-local ones.
fn total(program: &Program, color: MemorySpace) -> Bytes {
    program.allocations.iter().filter(|a| a.color == color).map(|a| a.size).sum()
}

/// Compares XLA's memory-usage reports (protobuf) with the dumps; returns the number of reports.
pub fn compare_usage_protobufs(files: &Files) -> usize {
    let mut compared = 0;
    for (proto, report) in pairs(files, &["-memory-usage-report.pb"]) {
        let name = common::name(&report);
        let ours = common::program(&proto);
        let profile = alone(&report);
        let theirs = &profile.programs[0];
        assert!(!theirs.reported.is_empty(), "{name}");
        for space in &theirs.reported {
            assert_eq!(space.allocated, Some(total(&ours, space.color)), "{name}: memory space {}", space.color);
        }
        let sizes: HashMap<i64, (Bytes, MemorySpace)> =
            ours.allocations.iter().map(|a| (a.index, (a.size, a.color))).collect();
        for allocation in &theirs.allocations {
            assert_eq!(sizes.get(&allocation.index), Some(&(allocation.size, allocation.color)), "{name}");
        }
        compared += 1;
    }
    compared
}

#[test]
fn memory_usage_protobuf() {
    assert!(compare_usage_protobufs(&Files::of_project()) >= 2);
}

/// Compares XLA's memory-usage reports (text) with the dumps; returns the number of reports.
pub fn compare_usage_texts(files: &Files) -> usize {
    let mut compared = 0;
    for (proto, report) in pairs(files, &["-memory-usage-report.txt"]) {
        let name = common::name(&report);
        let ours = common::program(&proto);
        let profile = alone(&report);
        let theirs = &profile.programs[0];
        let exact = theirs.reported.iter().any(|space| space.allocated.is_some());
        for space in &theirs.reported {
            let expected = total(&ours, space.color);
            if exact {
                assert_eq!(space.allocated, Some(expected), "{name}: memory space {}", space.color);
            } else {
                // The older form prints sizes with two decimals.
                let printed = total(theirs, space.color);
                let error = printed.0.abs_diff(expected.0) as f64 / expected.0.max(1) as f64;
                assert!(error < 0.01, "{name}: {printed:?} for {expected:?}");
            }
        }
        if !exact {
            let properties = |p: &Program| {
                let mut list: Vec<_> =
                    p.allocations.iter().map(|a| (a.index, a.color, a.is_parameter, a.is_thread_local)).collect();
                list.sort_unstable();
                list
            };
            assert_eq!(properties(&ours), properties(theirs), "{name}");
        }
        compared += 1;
    }
    compared
}

#[test]
fn memory_usage_text() {
    assert!(compare_usage_texts(&Files::of_project()) >= 2);
}

/// Compares the modules of traces with XProf's results for them; returns the number of modules.
pub fn compare_traces(files: &Files) -> usize {
    let mut compared = 0;
    for trace in files.named(|name| name.ends_with(".xplane.pb")) {
        let profile = alone(&trace);
        for module in &profile.modules {
            let name = format!("{}: {}", common::name(&trace), module.name);
            let (program, notes) =
                module.source.load(&std::sync::Arc::default()).unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(notes.is_empty(), "{name}: {notes:?}");
            let glance = module.source.glance();
            assert_eq!(glance.has_buffer_assignment, program.has_buffer_assignment, "{name}");
            let analysis = analysed(&program);
            for space in &analysis.spaces {
                let thread_local_alone =
                    program.allocations.iter().all(|a| a.color != space.color || a.is_thread_local);
                if !thread_local_alone {
                    assert_eq!(glance.allocated_in(space.color), Some(space.xprof.allocated), "{name}");
                }
            }
            // XProf's own result for the module, if it lies next to the trace.
            let key = format!("{}({})", module.name, module.id.as_deref().unwrap_or_default());
            let host = trace.file_name().and_then(|n| n.to_str()).unwrap_or_default().replace(".xplane.pb", "");
            let json = trace.with_file_name(format!("{host}.{key}.memory_viewer.json"));
            if json.exists() {
                let theirs = alone(&json);
                let theirs = analysed(&theirs.programs[0]);
                assert_eq!(
                    space(&analysis, MemorySpace::HBM).xprof.peak,
                    space(&theirs, MemorySpace::HBM).xprof.peak,
                    "{name}"
                );
                assert_eq!(
                    space(&analysis, MemorySpace::HBM).xprof.curve,
                    space(&theirs, MemorySpace::HBM).xprof.curve,
                    "{name}"
                );
            }
            compared += 1;
        }
    }
    compared
}

#[test]
fn traces() {
    assert!(compare_traces(&Files::of_project()) >= 16);
}

#[test]
fn modules_of_a_trace_equal_their_dumps() {
    let samples = ["/v5e_mlp_f32/", "/v6e_replicated_oom/", "/v6e_dlrm_repl_d3/"];
    let dumps = samples.map(|part| common::bytes(&common::sample_program(part)).to_vec());
    let trace = xla_made::trace_of_modules(&[("a", 1, &dumps[0]), ("b", 2, &dumps[1]), ("c", 3, &dumps[2])]);
    let input = Input::from_bytes("three.xplane.pb", trace.into()).expect("not empty");
    let profile = open::open_input(&input, &Progress::default()).expect("a trace");
    assert_eq!(profile.modules.len(), 3);
    for (module, dump) in profile.modules.iter().zip(&dumps) {
        assert_eq!(module.bytes, dump.len() as u64, "{}", module.name);
        let (inside, notes) = module.source.load(&std::sync::Arc::default()).expect("decodes");
        assert!(notes.is_empty(), "{notes:?}");
        let input = Input::from_bytes("x.hlo.pb", dump.clone().into()).expect("not empty");
        let alone = &open::open_input(&input, &Progress::default()).expect("a dump").programs[0];
        let peaks = |program: &Program| {
            let spaces = analysed(program).spaces;
            spaces.iter().map(|space| (space.color, space.xprof.peak, space.xprof.allocated)).collect::<Vec<_>>()
        };
        assert_eq!((&inside.name, peaks(&inside)), (&alone.name, peaks(alone)));
    }
}

/// Checks that the reports in a dump agree with it; returns the number of dumps.
pub fn compare_reports_beside(files: &Files) -> usize {
    let mut opened = 0;
    for proto in files.programs() {
        let profile = open::open_path(&proto, &Progress::default()).unwrap_or_else(|e| panic!("{e}"));
        let disagree: Vec<String> =
            profile.notes.iter().map(ToString::to_string).filter(|note| note.contains("disagrees")).collect();
        assert!(disagree.is_empty(), "{}: {disagree:?}", common::name(&proto));
        assert!(ProfileAnalysis::new(&profile).programs.len() == 1);
        opened += 1;
    }
    opened
}

#[test]
fn reports_beside_their_proto_agree_with_it() {
    assert!(compare_reports_beside(&Files::of_project()) >= 24);
}

#[test]
fn a_disagreement_is_shown() {
    let (proto, text) = pairs(&Files::of_project(), &["-buffer-assignment.txt"]).swap_remove(0);
    let folder = std::env::temp_dir().join(format!("highwater-forms-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let name = |path: &Path| path.file_name().map(|n| folder.join(n)).expect("a name");
    fs::copy(&proto, name(&proto)).expect("copied");
    let changed = fs::read_to_string(&text).expect("readable").replacen("offset=0)", "offset=64)", 1);
    fs::write(name(&text), changed).expect("written");
    let profile = open::open_path(&name(&proto), &Progress::default()).expect("opens");
    fs::remove_dir_all(&folder).expect("removed");
    let notes: Vec<String> = profile.notes.iter().map(ToString::to_string).collect();
    assert!(notes.iter().any(|note| note.contains("disagrees with the HLO proto in 1 of")), "{notes:?}");
}
