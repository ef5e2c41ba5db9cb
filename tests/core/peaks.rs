//! Peaks of occupied addresses, heap events in program order, and padded sizes, compared with figures computed from
//! real dumps by other means.

use highwater::analysis::ProgramAnalysis;
use highwater::analysis::events::event_points;
use highwater::analysis::live_range::LiveRanges;
use highwater::model::{BufferId, Device, MemorySpace, Program};

use crate::common::{self, Files};

/// Case, points, allocated, baseline, XProf's peak, reserved peak and its point, content peak and its point (HBM).
pub type Golden = (&'static str, u32, u64, u64, u64, (u64, u32), (u64, u32));

const GOLDEN: &[Golden] = &[
    ("v2_mlp_f32", 40, 286103552, 163779584, 269196288, (269196288, 23), (230886400, 38)),
    ("v4_mlp_f32", 104, 1637321728, 1132923392, 1602685440, (1602685440, 93), (1401358336, 101)),
    ("v5e_mlp_f32", 118, 311142400, 209790464, 310454784, (310462976, 86), (276898816, 115)),
    ("v5e_gpt_s_scan", 803, 2313206784, 506690048, 2270686720, (2270689792, 377), (2270686208, 377)),
    ("v6e_gpt_m_scan_fsdp", 656, 6998326944, 1077067392, 6519383168, (6519407808, 480), (6516100672, 480)),
    ("v7x_decode_fp8kv", 385, 1295289984, 1283722848, 1292635744, (1292898016, 109), (1292895872, 109)),
];

/// Checks the peaks of these programs.
pub fn compare_peaks(files: &Files, golden: &[Golden]) {
    for &(case, points, allocated, baseline, xprof, reserved, content) in golden {
        let program = common::program(&files.case(case));
        let analysis = ProgramAnalysis::new(&program, &Device::default());
        let space = analysis.space(MemorySpace::HBM).expect("HBM");
        let occupancy = space.occupancy.as_ref().expect("a schedule");
        let ours = (
            case,
            analysis.live.as_ref().expect("a schedule").points(),
            space.xprof.allocated.0,
            space.xprof.baseline.0,
            space.xprof.peak.0,
            (occupancy.reserved_peak.0, occupancy.reserved_peak_point),
            (occupancy.content_peak.0, occupancy.content_peak_point),
        );
        assert_eq!(ours, (case, points, allocated, baseline, xprof, reserved, content));
    }
}

#[test]
fn peaks_by_address_union_are_the_known_ones() {
    compare_peaks(&Files::of_project(), GOLDEN);
}

/// Checks that the heap events of every program are monotonic in program order; returns the number of events.
pub fn place_events(files: &Files) -> usize {
    let mut events = 0;
    for path in files.programs() {
        let program = common::program(&path);
        let Some(live) = LiveRanges::new(&program) else { continue };
        for trace in &program.traces {
            let placed = event_points(&program, &live, trace);
            assert_eq!(placed.backwards, 0, "{}", common::name(&path));
            events += placed.points.len();
        }
    }
    events
}

#[test]
fn heap_events_never_run_backwards_on_program_order() {
    assert!(place_events(&Files::of_project()) >= 10_000);
}

/// Exceptions not given by the layout: untiled arrays in TPU scalar memory are rounded up to 1,024 elements, semaphores
/// of host transfers take four bytes.
fn is_known_exception(program: &Program, buffer: BufferId) -> bool {
    let Some(node) = program.buffer_node(buffer) else { return false };
    let color = program.buffers.color[buffer.index()].0;
    let size = program.buffers.size_of(buffer).0;
    let rounded = node.element_count().div_ceil(1024) * 1024 * u64::from(node.element_bits()) / 8;
    let is_scalar_space = node.first_tile().is_empty() && matches!(color, 0 | 4 | 6) && size == rounded;
    let is_semaphore = size == 4 && color == 2;
    is_scalar_space || is_semaphore
}

/// Checks that the padded size of every tiled array's shape is its buffer's size; returns the number of arrays.
pub fn pad_shapes(files: &Files) -> usize {
    let (mut tiled, mut wrong) = (0, Vec::new());
    for path in files.programs() {
        let program = common::program(&path);
        for row in 0..program.buffers.len() as u32 {
            let buffer = BufferId(row);
            let Some(node) = program.buffer_node(buffer) else { continue };
            let Some(padded) = node.padded_size() else { continue };
            if node.first_tile().is_empty() {
                continue;
            }
            tiled += 1;
            if padded != program.buffers.size_of(buffer) && !is_known_exception(&program, buffer) {
                wrong.push(format!("{} {}", common::name(&path), program.buffer_name(buffer)));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {tiled}: {:?}", wrong.len(), &wrong[..wrong.len().min(10)]);
    tiled
}

#[test]
fn padded_size_from_the_shape_is_the_buffers_size() {
    assert!(pad_shapes(&Files::of_project()) >= 5_000);
}
