//! A synthetic program of any size for benchmarks: a training step with forward and backward pass, packed online by best
//! fit, with padded shapes, name scopes, source lines and a heap trace of two events per buffer.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use highwater::decode::hlo::proto::{
    BufferAllocationProto, BufferAssignmentProto, HeapSimulatorTrace, HloComputationProto, HloInstructionProto,
    HloModuleProto, HloProto, HloScheduleProto, LayoutProto, LogicalBufferProto, OpMetadata, ShapeProto,
    buffer_allocation_proto::Assigned, heap_simulator_trace::Event, hlo_schedule_proto::InstructionSequence,
    layout_proto::TileProto, logical_buffer_proto::Location,
};
use prost::Message as _;

/// `F32` in `PrimitiveType`.
const F32: i32 = 11;
/// One in this many activations is kept for the backward pass.
const KEPT: usize = 12;

/// (dimensions, elements including padding to 8×128 tiles)
const SHAPES: &[([i64; 2], i64)] = &[
    ([128, 1024], 128 * 1024),
    ([1000, 129], 1000 * 256),
    ([512, 512], 512 * 512),
    ([8, 4096], 8 * 4096),
    ([3, 2048], 8 * 2048),
    ([64, 100], 64 * 128),
    ([2048, 128], 2048 * 128),
];
const OPS: &[(&str, &str)] = &[
    ("fusion", "attn/dot_general"),
    ("fusion", "attn/softmax/reduce_max"),
    ("convolution", "mlp/dot_general"),
    ("fusion", "mlp/gelu/tanh"),
    ("copy", "norm/transpose"),
    ("reduce", "norm/reduce_sum"),
];

/// Free gaps, indexed by address and by size.
#[derive(Default)]
struct Heap {
    by_address: BTreeMap<i64, i64>,
    by_length: BTreeSet<(i64, i64)>,
    top: i64,
}

impl Heap {
    fn allocate(&mut self, size: i64) -> i64 {
        let Some(&(length, at)) = self.by_length.range((size, 0)..).next() else {
            self.top += size;
            return self.top - size;
        };
        self.remove(at, length);
        if length > size {
            self.insert(at + size, length - size);
        }
        at
    }

    fn free(&mut self, mut at: i64, mut size: i64) {
        if let Some((&before, &length)) = self.by_address.range(..at).next_back().filter(|(b, l)| **b + **l == at) {
            self.remove(before, length);
            (at, size) = (before, size + length);
        }
        if let Some(&after) = self.by_address.get(&(at + size)) {
            self.remove(at + size, after);
            size += after;
        }
        self.insert(at, size);
    }

    fn insert(&mut self, at: i64, size: i64) {
        self.by_address.insert(at, size);
        self.by_length.insert((size, at));
    }

    fn remove(&mut self, at: i64, size: i64) {
        self.by_address.remove(&at);
        self.by_length.remove(&(size, at));
    }
}

fn shape(row: usize) -> (ShapeProto, i64) {
    // Shift the cycle of shapes every 97 rows, so that the pattern varies.
    let (dimensions, elements) = SHAPES[(row * 7 + row / 97) % SHAPES.len()];
    let layout = LayoutProto {
        minor_to_major: vec![1, 0],
        tiles: vec![TileProto { dimensions: vec![8, 128] }],
        ..LayoutProto::default()
    };
    let shape = ShapeProto {
        element_type: F32,
        dimensions: dimensions.to_vec(),
        layout: Some(layout),
        ..ShapeProto::default()
    };
    (shape, elements * 4)
}

/// An encoded HLO proto with about `buffers` buffers.
#[must_use]
pub fn program(buffers: usize) -> Vec<u8> {
    let parameters = (buffers / 500).max(1);
    let steps = buffers.saturating_sub(parameters).max(4);
    let half = steps / 2;
    let layers = (buffers / 8000).max(2);
    let mut instructions = Vec::with_capacity(buffers);
    let mut buffer_rows = Vec::with_capacity(buffers);
    let mut allocations = Vec::new();
    for row in 0..parameters {
        let (shape, bytes) = shape(row);
        let id = row as i64 + 1;
        instructions.push(HloInstructionProto {
            name: format!("param.{row}"),
            opcode: "parameter".to_owned(),
            shape: Some(shape),
            metadata: Some(OpMetadata {
                op_name: format!("params['layer_{}']['kernel_{}']", row * layers / parameters, row % 7),
                ..OpMetadata::default()
            }),
            parameter_number: row as i64,
            id,
            ..HloInstructionProto::default()
        });
        buffer_rows.push(logical(id, bytes));
        allocations.push(BufferAllocationProto {
            index: row as i64,
            size: bytes,
            is_entry_computation_parameter: true,
            parameter_number: row as i64,
            assigned: vec![Assigned { logical_buffer_id: id, offset: 0, size: bytes }],
            ..BufferAllocationProto::default()
        });
    }
    // Operands: the previous step, a parameter, and in the backward pass an activation kept by the forward pass.
    let mut operands: Vec<Vec<usize>> = Vec::with_capacity(steps);
    let mut last_use: Vec<usize> = (0..steps).collect();
    for step in 0..steps {
        let mut uses = Vec::new();
        if step > 0 {
            uses.push(step - 1);
        }
        let mirror = steps - 1 - step;
        if step > half && mirror < half && mirror.is_multiple_of(KEPT) {
            uses.push(mirror);
        }
        for &operand in &uses {
            last_use[operand] = step;
        }
        operands.push(uses);
    }
    let mut dying: HashMap<usize, Vec<usize>> = HashMap::new();
    for (row, &last) in last_use.iter().enumerate() {
        dying.entry(last).or_default().push(row);
    }
    let mut heap = Heap::default();
    let mut places = vec![0i64; steps];
    let mut sizes = vec![0i64; steps];
    let mut events = Vec::with_capacity(2 * steps);
    let mut assigned = Vec::with_capacity(steps);
    for step in 0..steps {
        let (shape, bytes) = shape(step);
        let id = (parameters + step) as i64 + 1;
        let (opcode, op) = OPS[step % OPS.len()];
        let forward = if step < half { step } else { steps - 1 - step };
        let layer = forward * layers / half.max(1);
        let pass = if step < half { "jvp(model)" } else { "transpose(jvp(model))" };
        let mut operand_ids: Vec<i64> = operands[step].iter().map(|&row| (parameters + row) as i64 + 1).collect();
        operand_ids.push((layer * parameters / layers.max(1)).min(parameters - 1) as i64 + 1);
        instructions.push(HloInstructionProto {
            name: format!("{opcode}.{step}"),
            opcode: opcode.to_owned(),
            shape: Some(shape),
            metadata: Some(OpMetadata {
                op_type: String::new(),
                op_name: format!("jit(step)/{pass}/layer_{layer}/{op}"),
                source_file: format!("model/block_{}.py", step % 3),
                source_line: 40 + (step % OPS.len()) as i32 * 9,
                ..OpMetadata::default()
            }),
            id,
            operand_ids,
            ..HloInstructionProto::default()
        });
        buffer_rows.push(logical(id, bytes));
        (places[step], sizes[step]) = (heap.allocate(bytes), bytes);
        assigned.push(Assigned { logical_buffer_id: id, offset: places[step], size: bytes });
        events.push(Event { kind: 0, buffer_id: id, share_with_canonical_id: 0 });
        for &row in dying.get(&step).map_or(&[][..], Vec::as_slice) {
            heap.free(places[row], sizes[row]);
            let buffer_id = (parameters + row) as i64 + 1;
            events.push(Event { kind: 1, buffer_id, share_with_canonical_id: 0 });
        }
    }
    let index = allocations.len() as i64;
    allocations.push(BufferAllocationProto { index, size: heap.top, assigned, ..BufferAllocationProto::default() });
    let root_id = instructions.len() as i64;
    let order = InstructionSequence { instruction_ids: (1..=root_id).collect() };
    let entry = HloComputationProto { name: "main".to_owned(), instructions, id: 1, root_id };
    let module = HloModuleProto {
        name: "jit_step".to_owned(),
        entry_computation_name: "main".to_owned(),
        entry_computation_id: 1,
        id: 1,
        computations: vec![entry],
        schedule: Some(HloScheduleProto { sequences: [(1, order)].into_iter().collect() }),
        ..HloModuleProto::default()
    };
    let trace = HeapSimulatorTrace { events, whole_module_simulation: true, buffer_allocation_index: index };
    let buffer_assignment = BufferAssignmentProto {
        logical_buffers: buffer_rows,
        buffer_allocations: allocations,
        heap_simulator_traces: vec![trace],
        ..BufferAssignmentProto::default()
    };
    HloProto { hlo_module: Some(module), buffer_assignment: Some(buffer_assignment) }.encode_to_vec()
}

fn logical(id: i64, size: i64) -> LogicalBufferProto {
    LogicalBufferProto {
        id,
        size,
        defined_at: Some(Location { instruction_id: id, shape_index: Vec::new() }),
        ..LogicalBufferProto::default()
    }
}
