//! Every format opens under its own name and under any other, and its decoded form equals the reviewed one.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use highwater::analysis::ProfileAnalysis;
use highwater::export::report::{self, Format, Options};
use highwater::model::{BufferId, DeviceKind, Profile};
use highwater::open;
use highwater::source::{Input, Progress};

use crate::common::{self, Files};
use crate::xla_made;

/// Ending of a file name, and the format of such files.
const KNOWN: &[(&str, &str)] = &[
    (".hlo.pb", "XLA HLO proto"),
    (".xplane.pb", "XSpace trace"),
    (".prof", "pprof device memory profile"),
    ("-memory-usage-report.pb", "XLA memory-usage report (protobuf)"),
    ("-memory-usage-report.txt", "XLA memory-usage report (text)"),
    ("-buffer-assignment.txt", "XLA buffer-assignment report"),
    ("-buffer-assignment-values.txt", "XLA report of values and uses"),
    ("-live-range.txt", "XLA live-range report"),
    (".memory_profile.json", "XProf memory profile (JSON)"),
    (".target_arguments.txt", "XLA target arguments"),
    (".gpu_target_config.pbtxt", "XLA GPU target"),
    (".stats.json", "compile statistics"),
];

fn known_format(name: &str) -> Option<&'static str> {
    #[expect(clippy::case_sensitive_file_extension_comparisons, reason = "the names are ours")]
    if name.contains(".memory_viewer") && name.ends_with(".json") {
        return Some("XProf memory viewer (JSON)");
    }
    KNOWN.iter().find(|(end, _)| name.ends_with(end)).map(|(_, format)| *format)
}

fn open_as(name: &str, bytes: Vec<u8>) -> Profile {
    let input = Input::from_bytes(name, bytes.into()).unwrap_or_else(|e| panic!("{name}: {e}"));
    open::open_input(&input, &Progress::default()).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("in memory");
    encoder.finish().expect("in memory")
}

/// Checks that every file opens as its format, whatever its name and compression; returns the number of formats seen.
pub fn open_without_a_name(files: &Files) -> usize {
    let mut formats = BTreeSet::new();
    for path in files.named(|name| known_format(name).is_some()) {
        let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        let expected = known_format(name).unwrap_or_default();
        let bytes = fs::read(&path).expect("readable");
        // Compressed files are not compressed again.
        let small = bytes.len() < 1 << 20 && !bytes.starts_with(&[0x1f, 0x8b]);
        let mut forms = vec![(name.to_owned(), bytes.clone()), ("unknown.bin".to_owned(), bytes.clone())];
        if small {
            forms.push(("unknown.bin".to_owned(), gzip(&bytes)));
            forms.push(("unknown.bin".to_owned(), zstd::stream::encode_all(&bytes[..], 1).expect("packed")));
        }
        for (name, bytes) in forms {
            let profile = open_as(&name, bytes);
            assert_eq!(profile.sources[0].format, expected, "{} as {name}", path.display());
        }
        formats.insert(expected);
    }
    formats.len()
}

#[test]
fn the_content_decides_not_the_name() {
    assert_eq!(open_without_a_name(&Files::of_project()), KNOWN.len() + 1);
}

/// A short text form of the decoded profile.
fn describe(profile: &Profile) -> String {
    let mut out = String::new();
    let device = &profile.device;
    let _ = writeln!(out, "device {:?} {:?}", device.name, device.kind);
    for capacity in &device.capacities {
        let _ = writeln!(out, "  capacity of {}: {}", capacity.color, capacity.bytes.exact());
    }
    for program in &profile.programs {
        let _ = writeln!(
            out,
            "program {} {:?}: {} buffers, {} allocations, {} traces, assignment {}",
            program.name,
            program.id,
            program.buffers.len(),
            program.allocations.len(),
            program.traces.len(),
            program.has_buffer_assignment
        );
        for space in &program.reported {
            let peak = space.peak.as_ref().map(|peak| {
                format!(
                    "{} at {} ({} unpadded), {} + {} buffers, {} points, {} spans, folded {}",
                    peak.bytes.exact(),
                    peak.event,
                    peak.unpadded.exact(),
                    peak.always_live.len(),
                    peak.heap.len(),
                    peak.curve.len(),
                    peak.spans.len(),
                    peak.folded.exact()
                )
            });
            let _ = writeln!(out, "  space {}: {:?}, peak {peak:?}", space.color, space.allocated.map(|b| b.exact()));
        }
        for (row, allocation) in program.allocations.iter().enumerate().take(4) {
            let _ = writeln!(
                out,
                "  allocation {} of {}, {:?}, {} buffers",
                allocation.index,
                allocation.size.exact(),
                allocation.category(),
                program.assigned_to(&program.allocations[row]).len()
            );
        }
        for row in (0..program.buffers.len()).take(4) {
            let buffer = BufferId::from_index(row);
            let shape = program.buffer_shape(buffer).map(|(shape, node)| shape.text_of(node));
            let _ = writeln!(
                out,
                "  buffer {} {}: {} at {}, {shape:?}",
                program.buffers.number[row],
                program.buffer_name(buffer),
                program.buffers.size[row].exact(),
                program.buffers.offset[row]
            );
        }
        for reader in program.reported_uses.iter().take(3) {
            let _ = writeln!(out, "  use of {}: {}", program.buffer_name(reader.buffer), reader.text);
        }
    }
    for module in profile.modules.iter().take(4) {
        let _ = writeln!(out, "module {} {:?}: {} bytes", module.name, module.id, module.bytes);
    }
    for trace in &profile.runtime {
        let _ = writeln!(out, "allocator {}: {} events", trace.name, trace.events.len());
        for event in trace.events.iter().take(2) {
            let text = |id| trace.strings.get(id);
            let _ = writeln!(
                out,
                "  {} {:?} {} of {} at {:x}, step {}: {} {} {} {}",
                event.time_ps,
                event.activity,
                event.allocated,
                event.stats.heap,
                event.address,
                event.step,
                text(event.op),
                text(event.region),
                text(event.data_type),
                text(event.shape)
            );
        }
    }
    if let Some(live) = &profile.live {
        let _ = writeln!(out, "live: {} entries, {} frames", live.entries.len(), live.frames.len());
        for entry in live.entries.iter().take(4) {
            let innermost = live.stack(entry).next().map(|frame| format!("{} line {}", frame.function, frame.line));
            let _ = writeln!(
                out,
                "  {} × {}: {} {}, {} frames, {innermost:?}",
                entry.bytes.exact(),
                entry.count,
                live.strings.get(entry.kind),
                live.strings.get(entry.device),
                entry.stack.len()
            );
        }
    }
    if let Some(heap) = profile.live.as_ref().and_then(|live| live.heap.as_ref()) {
        let free = heap.chunks.iter().filter(|chunk| !chunk.in_use).count();
        let _ = writeln!(
            out,
            "heap of {}: {} chunks, {free} free, {} bins, {:?}",
            heap.allocator,
            heap.chunks.len(),
            heap.bins.len(),
            heap.stats
        );
        for chunk in heap.chunks.iter().take(3) {
            let _ = writeln!(out, "  {:x} {} of {} bin {}", chunk.address, chunk.requested.0, chunk.size.0, chunk.bin);
        }
        for bin in heap.bins.iter().filter(|bin| bin.chunks > 0).take(2) {
            let _ = writeln!(out, "  {bin:?}");
        }
    }
    if let Some(snapshot) = &profile.caching {
        let _ = writeln!(
            out,
            "caching allocator: {} segments, {} blocks, {} events, {} stacks, {} frames, {} annotations, {} texts",
            snapshot.segments.len(),
            snapshot.blocks.len(),
            snapshot.events.len(),
            snapshot.stacks.len(),
            snapshot.stacks.frames.len(),
            snapshot.annotations.len(),
            snapshot.metadata.len()
        );
        let settings = &snapshot.settings;
        let _ = writeln!(out, "  settings {settings:?}");
        for device in &snapshot.devices {
            let _ = writeln!(out, "  device {}: events {:?}", device.index, device.events);
            for row in device.events.clone().take(3) {
                let events = &snapshot.events;
                let innermost = snapshot.frames(events.stack[row]).next().map(|frame| snapshot.frame_words(frame));
                let _ = writeln!(
                    out,
                    "    {} {:x} {} at {:?}: {innermost:?}",
                    events.action[row].name(),
                    events.address[row],
                    events.size[row],
                    events.time_us.get(row)
                );
            }
        }
        for segment in snapshot.segments.iter().take(2) {
            let _ = writeln!(out, "  {segment:?}");
        }
    }
    for run in profile.executions.iter().take(2) {
        let _ = writeln!(out, "run {} on {}: {} to {}", run.name, run.device, run.start_ps, run.end_ps);
    }
    for fact in profile.facts.iter().take(4) {
        let _ = writeln!(out, "fact {} {}: {}", fact.group, fact.key, fact.value);
    }
    if let Some(table) = &profile.live_ranges {
        let _ = writeln!(out, "live ranges: {} points, {} rows", table.max, table.rows.len());
        for (name, start, end) in table.rows.iter().take(2) {
            let _ = writeln!(out, "  {name}: {start}-{end}");
        }
    }
    for note in &profile.notes {
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// Name and unpacked bytes of the project file whose path has this ending.
fn sample(end: &str) -> (String, Vec<u8>) {
    let path = Files::of_project().ending(end);
    let name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    (name.trim_end_matches(".gz").to_owned(), common::bytes(&path).to_vec())
}

#[test]
fn decoded_forms() {
    let mlp = "v5e_mlp_f32/module_0000.jit_train_step.cl_1003875606.after_optimizations";
    let cpu = "xla_cpu_dump/module_0030.jit_train_step.cpu_after_optimizations";
    let old = "jax0.4.38_libtpu0.0.6/v4_dlrm_oom/module_0001.jit_dlrm_step.after_optimizations";
    for (name, end) in [
        ("memory_viewer_json", format!("{mlp}.memory_viewer.json")),
        ("memory_profile_json", "2026_11_21_03_31_11/vm.memory_profile.json".to_owned()),
        ("xspace_tensorflow", "2026_11_21_03_31_11/vm.xplane.pb".to_owned()),
        ("xspace_jax", "2026_11_21_03_07_16/vm.xplane.pb".to_owned()),
        ("pprof", "cpu/memory.prof".to_owned()),
        ("buffer_assignment_tpu", format!("{mlp}-buffer-assignment.txt")),
        ("buffer_assignment_cpu", format!("{cpu}-buffer-assignment.txt")),
        ("values_and_uses", format!("{cpu}-buffer-assignment-values.txt")),
        ("memory_usage_protobuf", format!("{mlp}-memory-usage-report.pb")),
        ("memory_usage_text", format!("{mlp}-memory-usage-report.txt")),
        ("memory_usage_text_old", format!("{old}-memory-usage-report.txt")),
        ("live_range", format!("{cpu}-live-range.txt")),
        ("hlo_proto", format!("{mlp}.hlo.pb")),
        ("target_arguments", "v5e_mlp_f32/module_0000.jit_train_step.cl_1003875606.target_arguments.txt".to_owned()),
        ("compile_statistics", "v5e_mlp_f32/v5e_mlp_f32.stats.json".to_owned()),
        ("torch_snapshot", "torch/pools_2_15.pickle".to_owned()),
        ("torch_snapshot_old", "torch/train_2_0.pickle".to_owned()),
        ("bfc_dump", "made/gpu_0_bfc.memory_dump".to_owned()),
        ("xspace_made", "made/gpu_training.xplane.pb".to_owned()),
        ("pprof_made", "made/tpu_training.prof".to_owned()),
        ("buffer_table", "made/module_0001.jit_f.after_optimizations-buffer-info.csv".to_owned()),
    ] {
        let (file, bytes) = sample(&end);
        let profile = open_as(&file, bytes);
        insta::assert_snapshot!(name, describe(&profile));
        // All of it can be reported.
        let analysis = ProfileAnalysis::new(&profile);
        let options = Options { top: 5, ..Options::default() };
        let report = report::build(&[(&profile, &analysis)], &[], &options);
        for format in [Format::Text, Format::Json, Format::Markdown, Format::Html] {
            assert!(!report::write(&report, format).is_empty(), "{name}");
        }
    }
}

#[test]
fn a_buffer_table_alone_has_its_peak() {
    let csv = "buffer_id,buffer_name,offset,size,definition_time,end_time,num_uses,use_times,use_names\n\
               0,a,0,1024,0,3,1,3,c\n1,b,1024,512,1,2,1,2,c\n2,c,1024,256,3,5,0,,\n";
    let profile = open_as("module_0001.jit_f.after_optimizations-buffer-info.csv", csv.as_bytes().to_vec());
    let analysis = ProfileAnalysis::new(&profile);
    let space = &analysis.programs[0].spaces[0];
    let occupancy = space.occupancy.as_ref().expect("live ranges");
    assert_eq!((occupancy.reserved_peak.0, occupancy.reserved_peak_point), (1536, 1));
    assert_eq!(space.at_peak.len(), 2);
}

#[test]
fn programs_of_the_host_live_in_ram() {
    let cpu = "xla_cpu_dump/module_0030.jit_train_step.cpu_after_optimizations";
    for (end, kind) in [
        ("2026_11_21_03_07_16/vm.xplane.pb".to_owned(), DeviceKind::Cpu),
        (format!("{cpu}.memory_viewer.json"), DeviceKind::Cpu),
        (format!("{cpu}-buffer-assignment.txt"), DeviceKind::Cpu),
        (format!("{cpu}.hlo.pb"), DeviceKind::Cpu),
    ] {
        let (file, bytes) = sample(&end);
        let profile = open_as(&file, bytes);
        assert_eq!(profile.device.kind, Some(kind), "{end}");
        let said = profile.device.evidence.unwrap_or_default();
        assert!(said.contains(&file), "{end}: {said}");
    }
    // No device plane either, but no thread of the CPU client: the device is unknown.
    let dump = common::bytes(&common::sample_program("/v6e_replicated_oom/"));
    let profile = open_as("three.xplane.pb", xla_made::trace_of_modules(&[("jit_a", 1, &dump)]));
    assert_eq!((profile.device.kind, profile.device.evidence), (None, None));
}

#[test]
fn the_last_attempt_of_a_compile_is_joined_to_its_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let sample = common::samples().join("v5e_mlp_f32");
    let files: Vec<_> = std::fs::read_dir(&sample).expect("the sample").flatten().map(|entry| entry.path()).collect();
    let of = |end: &str| files.iter().find(|path| path.to_string_lossy().ends_with(end)).expect("a file of the sample");
    let copy = |path: &std::path::Path, name: &str| std::fs::copy(path, folder.path().join(name)).expect("a copy");
    copy(of("after_optimizations.hlo.pb"), "module_0003.jit_f.cl_933746096.after_optimizations.hlo.pb");
    copy(of("after_optimizations.hlo.pb"), "module_0000.jit_f.cl_933746096.before_optimizations.hlo.pb");
    copy(of("target_arguments.txt"), "module_0000.jit_f.cl_933746096.target_arguments.txt");
    let message = "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory on HBM, the total memory required for \
                   HLO temporaries (400.00G) exceeds available HBM (15.75G).\n";
    std::fs::write(folder.path().join("output.err.txt"), message).expect("written");
    let list = open::Collection::open(folder.path(), &Progress::default()).expect("a folder");
    let names: Vec<&str> = list.entries.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["jit_f"], "the message and both numbers are one program");
    assert!(list.entries[0].device().name.is_some(), "of the beginning: {:?}", list.entries[0].device());
}
