//! Padding, heap replay and occupied bytes, compared with naive reference implementations.

use std::sync::Arc;

use highwater::analysis::ProgramAnalysis;
use highwater::decode::hlo::proto::{
    BufferAllocationProto, BufferAssignmentProto, HeapSimulatorTrace, HloComputationProto, HloInstructionProto,
    HloModuleProto, HloProto, HloScheduleProto, LogicalBufferProto, ShapeProto, buffer_allocation_proto,
    heap_simulator_trace, hlo_schedule_proto, logical_buffer_proto,
};
use highwater::decode::{Reporter, hlo};
use highwater::model::{BufferId, Device, ElementType, Layout, MemorySpace, Program, ShapeNode};
use highwater::source::Progress;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message as _;

/// An f32 array with a tile over its minor-most dimensions.
fn tiled(dimensions: Vec<i64>, order: Vec<u32>, tile: Vec<i64>) -> ShapeNode {
    let tiles = if tile.is_empty() { Vec::new() } else { vec![tile] };
    let layout = Layout { minor_to_major: order, tiles, ..Layout::default() };
    ShapeNode { layout: Some(Arc::new(layout)), ..ShapeNode::array(ElementType::F32, dimensions) }
}

/// Counts the tiles that hold at least one element, element by element.
fn count_by_tiles(dimensions: &[i64], order: &[u32], tile: &[i64]) -> u64 {
    let mut tiles = std::collections::BTreeSet::new();
    let total: i64 = dimensions.iter().product();
    for mut element in 0..total {
        let mut key = vec![0; dimensions.len()];
        for (d, &size) in dimensions.iter().enumerate().rev() {
            key[d] = element % size;
            element /= size;
        }
        for (k, &d) in order.iter().enumerate() {
            if let Some(at) = tile.len().checked_sub(k + 1) {
                key[d as usize] /= tile[at];
            }
        }
        tiles.insert(key);
    }
    tiles.len() as u64 * tile.iter().product::<i64>() as u64
}

fn order_of(rank: usize, seed: u64) -> Vec<u32> {
    let mut left: Vec<u32> = (0..rank as u32).collect();
    let mut order = Vec::new();
    let mut seed = seed;
    while !left.is_empty() {
        order.push(left.remove((seed % left.len() as u64) as usize));
        seed /= 7;
    }
    order
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn padding_counts_whole_tiles(dims in vec(1i64..9, 0..4), seed: u64, tile in vec(1i64..7, 0..4)) {
        let order = order_of(dims.len(), seed);
        let node = tiled(dims.clone(), order.clone(), tile.clone());
        let padded = node.padded_size().expect("an array").0;
        prop_assert_eq!(padded, 4 * count_by_tiles(&dims, &order, &tile));
        prop_assert!(padded >= node.unpadded_size().0);
    }

    #[test]
    fn padding_of_dimensions_multiplies_to_the_whole(dims in vec(1i64..3000, 1..4), seed: u64, tile in vec(1i64..200, 1..3)) {
        let order = order_of(dims.len(), seed);
        let node = tiled(dims, order, tile.clone());
        let by_dimension: u64 = node.padding_by_dimension().iter().map(|d| d.padded).product();
        // A tile of higher rank than the array pads a non-existent dimension.
        let beyond: u64 = tile.iter().rev().skip(node.dimensions.len()).map(|&t| t as u64).product();
        prop_assert_eq!(node.padded_size().map(|b| b.0), Some(4 * by_dimension * beyond));
        for dimension in node.padding_by_dimension() {
            prop_assert!(dimension.padded % dimension.tile == 0 && dimension.padded - dimension.size < dimension.tile);
        }
    }

    /// Sizes do not overflow, whatever a file claims.
    #[test]
    fn padding_of_nonsense_is_bounded(dims in vec(any::<i64>(), 0..6), order in vec(any::<u32>(), 0..6), tile in vec(any::<i64>(), 0..4)) {
        let node = tiled(dims, order, tile);
        let _ = (node.padded_size(), node.unpadded_size(), node.padding_by_dimension());
    }

    #[test]
    fn replay_and_occupancy_equal_a_byte_by_byte_count(plan in any_plan()) {
        check(&plan)?;
    }
}

/// A straight-line program with a heap for the results of its operations.
#[derive(Debug, Clone)]
struct Plan {
    /// Operands of each operation, as distances back from it; size and offset of its result.
    operations: Vec<(Vec<usize>, u64, u64)>,
    /// The order in which results are freed, as indices to choose from.
    frees: Vec<usize>,
}

fn any_plan() -> impl Strategy<Value = Plan> {
    let operation = (vec(1usize..6, 0..3), 1u64..40, 0u64..100);
    (vec(operation, 1..14), vec(0usize..100, 28)).prop_map(|(operations, frees)| Plan { operations, frees })
}

impl Plan {
    /// An alloc event for every result in order, each followed by frees chosen by the plan.
    fn events(&self) -> Vec<(i32, usize)> {
        let mut events = Vec::new();
        let mut live = Vec::new();
        let mut choice = self.frees.iter().copied();
        for i in 0..self.operations.len() {
            events.push((0, i));
            live.push(i);
            if let Some(which) = choice.next().filter(|which| which % 3 > 0 && !live.is_empty()) {
                events.push((1, live.swap_remove(which % live.len())));
            }
        }
        while !live.is_empty() {
            let which = choice.next().unwrap_or(0) % live.len();
            events.push((1, live.swap_remove(which)));
        }
        events
    }

    fn program(&self) -> Program {
        let shape = |size: u64| ShapeProto { element_type: 6, dimensions: vec![size as i64], ..ShapeProto::default() };
        let instructions = self.operations.iter().enumerate().map(|(i, (back, size, _))| HloInstructionProto {
            name: format!("op.{i}"),
            opcode: "custom-call".to_owned(),
            shape: Some(shape(*size)),
            id: 100 + i as i64,
            operand_ids: back.iter().filter_map(|back| i.checked_sub(*back)).map(|o| 100 + o as i64).collect(),
            ..HloInstructionProto::default()
        });
        let ids: Vec<i64> = (0..self.operations.len() as i64).map(|i| 100 + i).collect();
        let root_id = ids.last().copied().unwrap_or(0);
        let computation =
            HloComputationProto { name: "main".into(), id: 1, root_id, instructions: instructions.collect() };
        let sequence = hlo_schedule_proto::InstructionSequence { instruction_ids: ids };
        let module = HloModuleProto {
            name: "plan".to_owned(),
            entry_computation_name: "main".to_owned(),
            entry_computation_id: 1,
            computations: vec![computation],
            schedule: Some(HloScheduleProto { sequences: [(1, sequence)].into() }),
            ..HloModuleProto::default()
        };
        let buffers = self.operations.iter().enumerate().map(|(i, (_, size, _))| LogicalBufferProto {
            id: i as i64,
            size: *size as i64,
            color: 0,
            defined_at: Some(logical_buffer_proto::Location { instruction_id: 100 + i as i64, shape_index: vec![] }),
        });
        let assigned =
            self.operations.iter().enumerate().map(|(i, (_, size, offset))| buffer_allocation_proto::Assigned {
                logical_buffer_id: i as i64,
                offset: *offset as i64,
                size: *size as i64,
            });
        let heap = BufferAllocationProto { size: 200, assigned: assigned.collect(), ..Default::default() };
        let events = self.events().into_iter().map(|(kind, buffer)| heap_simulator_trace::Event {
            kind,
            buffer_id: buffer as i64,
            ..Default::default()
        });
        let trace = HeapSimulatorTrace { events: events.collect(), ..HeapSimulatorTrace::default() };
        let assignment = BufferAssignmentProto {
            logical_buffers: buffers.collect(),
            buffer_allocations: vec![heap],
            heap_simulator_traces: vec![trace],
            ..BufferAssignmentProto::default()
        };
        let proto = HloProto { hlo_module: Some(module), buffer_assignment: Some(assignment) };
        hlo::decode(&proto.encode_to_vec().into(), &Progress::default(), &Reporter::default()).expect("a program")
    }

    /// Last use of each result: the last operation that reads it, its own position if none does, the end for the root.
    fn last_uses(&self) -> Vec<usize> {
        let count = self.operations.len();
        let mut last: Vec<usize> = (0..count).collect();
        for (i, (back, ..)) in self.operations.iter().enumerate() {
            for operand in back.iter().filter_map(|back| i.checked_sub(*back)) {
                last[operand] = last[operand].max(i);
            }
        }
        last[count - 1] = count;
        last
    }
}

fn check(plan: &Plan) -> Result<(), TestCaseError> {
    let program = plan.program();
    let analysis = ProgramAnalysis::new(&program, &Device::default());
    let space = analysis.space(MemorySpace::HBM).expect("the heap");

    // XProf's replay: sizes added and subtracted event by event.
    let (mut heap, mut peak, mut peak_event) = (0u64, 0u64, 0);
    let mut curve = vec![0];
    for (t, (kind, buffer)) in plan.events().into_iter().enumerate() {
        let size = plan.operations[buffer].1;
        heap = if kind == 0 { heap + size } else { heap - size };
        if heap > peak {
            (peak, peak_event) = (heap, t as u32);
        }
        curve.push(heap);
    }
    let ours: Vec<u64> = space.xprof.curve.iter().map(|point| point.0).collect();
    prop_assert_eq!(ours, curve);
    prop_assert_eq!((space.xprof.peak.0, space.xprof.peak_event), (peak, peak_event));

    // Live ranges of operations that share nothing, and the bytes they occupy, byte by byte.
    let live = analysis.live.as_ref().expect("a schedule");
    let last = plan.last_uses();
    let count = plan.operations.len();
    prop_assert_eq!(live.points() as usize, count);
    for (i, &end) in last.iter().enumerate() {
        prop_assert_eq!(live.of(BufferId(i as u32)), Some((i as u32, end as u32)));
    }
    let occupancy = space.occupancy.as_ref().expect("a schedule");
    let mut highest = (0, 0);
    for point in 0..=count {
        let mut bytes = [false; 256];
        for (i, (_, size, offset)) in plan.operations.iter().enumerate() {
            if (i..=last[i]).contains(&point) {
                bytes[*offset as usize..(offset + size) as usize].fill(true);
            }
        }
        let occupied = bytes.iter().filter(|&&taken| taken).count() as u64;
        prop_assert_eq!(occupancy.reserved.at(point as u32), occupied);
        prop_assert_eq!(occupancy.content.at(point as u32), occupied);
        if occupied > highest.0 {
            highest = (occupied, point as u32);
        }
    }
    prop_assert_eq!((occupancy.reserved_peak.0, occupancy.reserved_peak_point), highest);
    Ok(())
}
