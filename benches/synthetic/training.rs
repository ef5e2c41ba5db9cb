//! A training step with every layer unrolled, in the proportions of real ones: weights and two moments for each as
//! arguments, results that take over the memory of some of them, activations kept for the backward pass, updates in
//! place, loops, values that the compiler computes again, and fusions with bodies and long names.

use std::collections::BTreeMap;

use highwater::analysis::packing::{Block, online};
use highwater::decode::hlo::proto::{
    BufferAllocationProto, BufferAssignmentProto, HeapSimulatorTrace, HloComputationProto, HloInstructionProto,
    HloModuleProto, HloProto, HloScheduleProto, LayoutProto, LogicalBufferProto, OpMetadata, ShapeProto,
    buffer_allocation_proto::Assigned, heap_simulator_trace::Event, hlo_schedule_proto::InstructionSequence,
    layout_proto::TileProto, logical_buffer_proto::Location,
};
use prost::Message as _;

/// `F32`, `S32` and `TUPLE` in `PrimitiveType`.
const F32: i32 = 11;
const S32: i32 = 4;
const TUPLE: i32 = 13;

const BATCH: i64 = 4;
const TOKENS: i64 = 512;
const WIDTH: i64 = 512;
const HEADS: i64 = 8;
const WORDS: i64 = 32_000;

/// Weights of a layer: name and dimensions.
const WEIGHTS: [(&str, [i64; 2]); 6] = [
    ("attn_qkv", [WIDTH, 3 * WIDTH]),
    ("attn_out", [WIDTH, WIDTH]),
    ("mlp_in", [WIDTH, 4 * WIDTH]),
    ("mlp_out", [4 * WIDTH, WIDTH]),
    ("norm_scale", [1, WIDTH]),
    ("norm_bias", [1, WIDTH]),
];

/// Where a value lies.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Argument,
    /// A result: in the memory of an argument, or in memory of its own.
    Result(Option<usize>),
    Temporary,
    /// In the memory of an operand.
    Shared(usize),
}

struct Value {
    dimensions: Vec<i64>,
    place: Place,
}

/// A program under construction: a row for each value, whose instruction has the number of the row and one.
#[derive(Default)]
struct Step {
    instructions: Vec<HloInstructionProto>,
    bodies: Vec<HloComputationProto>,
    values: Vec<Value>,
    arguments: usize,
}

fn shape(element_type: i32, dimensions: &[i64]) -> ShapeProto {
    let minor_to_major = (0..dimensions.len() as i64).rev().collect();
    let tiles = vec![TileProto { dimensions: vec![8, 128] }];
    let layout = Some(LayoutProto { minor_to_major, tiles, ..LayoutProto::default() });
    ShapeProto { element_type, dimensions: dimensions.to_vec(), layout, ..ShapeProto::default() }
}

/// Bytes of an array of four-byte elements in tiles of 8×128.
fn bytes(dimensions: &[i64]) -> i64 {
    let padded = dimensions.iter().rev().enumerate().map(|(k, &size)| match k {
        0 => (size + 127) / 128 * 128,
        1 => (size + 7) / 8 * 8,
        _ => size,
    });
    padded.product::<i64>() * 4
}

impl Step {
    fn push(&mut self, opcode: &str, name: String, op_name: String, value: Value, operands: &[usize]) -> usize {
        let row = self.values.len();
        let element_type = if opcode == "parameter" && op_name.starts_with("tokens") { S32 } else { F32 };
        self.instructions.push(HloInstructionProto {
            name,
            opcode: opcode.to_owned(),
            shape: Some(shape(element_type, &value.dimensions)),
            metadata: Some(OpMetadata {
                op_name,
                source_file: "training/model/transformer_block.py".to_owned(),
                source_line: 40 + (row % 90) as i32,
                ..OpMetadata::default()
            }),
            id: row as i64 + 1,
            operand_ids: operands.iter().map(|&row| row as i64 + 1).collect(),
            ..HloInstructionProto::default()
        });
        self.values.push(value);
        row
    }

    fn argument(&mut self, path: String, dimensions: &[i64]) -> usize {
        let value = Value { dimensions: dimensions.to_vec(), place: Place::Argument };
        let row = self.push("parameter", format!("param.{}", self.arguments), path, value, &[]);
        self.instructions[row].parameter_number = self.arguments as i64;
        self.arguments += 1;
        row
    }

    /// A fusion, or a loop, with a body of its own.
    fn call(&mut self, opcode: &str, op_name: &str, (dimensions, place): (&[i64], Place), operands: &[usize]) -> usize {
        let again = if op_name.ends_with("(again)") { ".remat" } else { "" };
        let name = format!("{opcode}.{}{again}", self.values.len());
        let op_name = op_name.trim_end_matches(" (again)");
        let value = Value { dimensions: dimensions.to_vec(), place };
        let row = self.push(opcode, name, op_name.to_owned(), value, operands);
        // Numbers of bodies and what lies in them begin where the entry's cannot reach.
        let first = (1 << 40) + self.bodies.len() as i64 * 16;
        let inner = |place: i64, opcode: &str, operands: Vec<i64>| HloInstructionProto {
            name: format!("{opcode}.{}", first + place),
            opcode: opcode.to_owned(),
            shape: Some(shape(F32, dimensions)),
            metadata: Some(OpMetadata { op_name: format!("{op_name}/{opcode}"), ..OpMetadata::default() }),
            id: first + place,
            operand_ids: operands,
            ..HloInstructionProto::default()
        };
        self.bodies.push(HloComputationProto {
            name: format!("{opcode}_computation.{row}"),
            instructions: vec![
                inner(1, "parameter", Vec::new()),
                inner(2, "multiply", vec![first + 1, first + 1]),
                inner(3, "exponential", vec![first + 2]),
                inner(4, "add", vec![first + 3, first + 1]),
            ],
            id: first,
            root_id: first + 4,
        });
        self.instructions[row].called_computation_ids = vec![first];
        row
    }
}

/// An encoded HLO proto of a training step of so many layers.
#[must_use]
pub fn program(layers: usize) -> Vec<u8> {
    let mut step = Step::default();
    let mut named = vec![("['embed']".to_owned(), [WORDS, WIDTH])];
    for layer in 0..layers {
        named.extend(WEIGHTS.iter().map(|(name, size)| (format!("['layer_{layer}']['{name}']['kernel']"), *size)));
    }
    let mut state: Vec<Vec<usize>> = Vec::new();
    for part in ["params", "opt_state[0].mu", "opt_state[0].nu"] {
        state.push(named.iter().map(|(name, size)| step.argument(format!("{part}{name}"), size)).collect());
    }
    let tokens = step.argument("tokens".to_owned(), &[BATCH, TOKENS]);
    let hidden = [BATCH, TOKENS, WIDTH];
    let wide = [BATCH, TOKENS, 4 * WIDTH];
    let scores = [BATCH, HEADS, TOKENS, TOKENS];
    let temporary = Place::Temporary;
    let embedded = step.call("fusion", "jit(train_step)/jvp(embed)/take", (&hidden, temporary), &[tokens, state[0][0]]);
    let mut at = embedded;
    let mut kept = Vec::new();
    for layer in 0..layers {
        let weight = |k: usize| state[0][1 + layer * WEIGHTS.len() + k];
        let name = |op: &str| format!("jit(train_step)/jvp(layer_{layer})/{op}");
        let norm = step.call("fusion", &name("norm/reduce_sum"), (&hidden, temporary), &[at, weight(4), weight(5)]);
        let dots = "attn/bthk,bshk->bhts/dot_general";
        let attention = step.call("fusion", &name(dots), (&scores, temporary), &[norm, weight(0)]);
        let softmax = step.call("fusion", &name("attn/softmax/exp"), (&scores, Place::Shared(attention)), &[attention]);
        let out = step.call("fusion", &name("attn/out/dot_general"), (&hidden, temporary), &[softmax, weight(1), at]);
        let mlp = step.call("fusion", &name("mlp/in/dot_general"), (&wide, temporary), &[out, weight(2)]);
        let turned = step.call("while", &name("mlp/gelu/while"), (&wide, Place::Shared(mlp)), &[mlp]);
        at = step.call("fusion", &name("mlp/out/dot_general"), (&hidden, temporary), &[turned, weight(3), out]);
        kept.push([norm, softmax, out, turned]);
    }
    let logits_name = "jit(train_step)/jvp(head)/bth,hv->btv/dot_general";
    let logits = step.call("fusion", logits_name, (&[BATCH, TOKENS, WORDS], temporary), &[at, state[0][0]]);
    let loss = step.call("fusion", "jit(train_step)/transpose(jvp(head))/sub", (&hidden, temporary), &[logits]);
    let mut gradient = loss;
    let mut gradients = vec![loss];
    let mut of_weights = vec![Vec::new(); layers];
    for layer in (0..layers).rev() {
        let weight = |k: usize| state[0][1 + layer * WEIGHTS.len() + k];
        let name = |op: &str| format!("jit(train_step)/transpose(jvp(layer_{layer}))/{op}");
        let [norm, softmax, out, turned] = kept[layer];
        let mlp = step.call("fusion", &name("mlp/out/dot_general"), (&wide, temporary), &[gradient, weight(3), turned]);
        let inner = step.call("fusion", &name("mlp/in/dot_general"), (&hidden, temporary), &[mlp, weight(2), out]);
        let again = step.call("fusion", &name("attn/softmax/exp (again)"), (&scores, temporary), &[softmax]);
        let attention = step.call("fusion", &name("attn/dot_general"), (&scores, temporary), &[inner, again]);
        for (k, (part, size)) in WEIGHTS.iter().enumerate() {
            let read = if k < 2 { attention } else { mlp };
            let made = step.call("fusion", &name(&format!("{part}/dot_general")), (size, temporary), &[read, norm]);
            of_weights[layer].push(made);
        }
        gradient = step.call("fusion", &name("add_any"), (&hidden, temporary), &[attention, weight(0), inner]);
    }
    gradients.extend(of_weights.into_iter().flatten());
    let mut results = Vec::new();
    for (row, (name, size)) in named.iter().enumerate() {
        let read = gradients[row];
        // Moments take over the memory of their arguments in every other row; weights have memory of their own.
        let host = |part: usize| Place::Result((part > 0 && row % 2 == 0).then(|| state[part][row]));
        let mut parts = Vec::new();
        for part in [1, 2, 0] {
            let operands: Vec<usize> = [state[part][row], read].into_iter().chain(parts.last().copied()).collect();
            let op_name = format!("jit(train_step)/update{name}/add");
            parts.push(step.call("fusion", &op_name, (size, host(part)), &operands));
        }
        results.push(parts);
    }
    finish(step, &[2, 0, 1].map(|part: usize| results.iter().map(|parts| parts[part]).collect::<Vec<_>>()).concat())
}

/// The root, the memory of every value, and when temporaries come and go.
fn finish(mut step: Step, results: &[usize]) -> Vec<u8> {
    let steps = step.values.len();
    let mut root_of: Vec<usize> = (0..steps).collect();
    let mut last_use: Vec<usize> = (0..steps).collect();
    for row in 0..steps {
        if let Place::Shared(with) = step.values[row].place {
            root_of[row] = root_of[with];
        }
        for &id in &step.instructions[row].operand_ids {
            last_use[id as usize - 1] = row;
        }
    }
    let mut dying: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (row, (value, &last)) in step.values.iter().zip(&last_use).enumerate() {
        if matches!(value.place, Place::Temporary | Place::Shared(_)) {
            dying.entry(last).or_default().push(row);
        }
    }
    let logical = |row: usize, size: i64| LogicalBufferProto {
        id: row as i64 + 1,
        size,
        defined_at: Some(Location { instruction_id: row as i64 + 1, shape_index: Vec::new() }),
        ..LogicalBufferProto::default()
    };
    let assign = |row: usize, offset: i64, size: i64| Assigned { logical_buffer_id: row as i64 + 1, offset, size };
    let mut logical_buffers = Vec::with_capacity(steps);
    let mut allocations: Vec<BufferAllocationProto> = Vec::new();
    let mut allocation_of = vec![0usize; steps];
    let mut events: Vec<Event> = Vec::new();
    // A block for each temporary that others may share, from the first event of them to the last.
    let mut blocks = vec![Block::default(); steps];
    for row in 0..steps {
        let size = bytes(&step.values[row].dimensions);
        logical_buffers.push(logical(row, size));
        let index = allocations.len() as i64;
        let own = BufferAllocationProto { index, size, assigned: vec![assign(row, 0, size)], ..Default::default() };
        let mut happens = |kind: i32, row: usize, share_with_canonical_id: i64| {
            events.push(Event { kind, buffer_id: row as i64 + 1, share_with_canonical_id });
            2 * (events.len() as u32 - 1)
        };
        match step.values[row].place {
            Place::Argument => {
                allocation_of[row] = allocations.len();
                let parameter_number = step.instructions[row].parameter_number;
                allocations.push(BufferAllocationProto {
                    is_entry_computation_parameter: true,
                    parameter_number,
                    ..own
                });
            }
            Place::Result(Some(host)) => {
                let host = &mut allocations[allocation_of[host]];
                host.maybe_live_out = true;
                host.assigned.push(assign(row, 0, size));
            }
            Place::Result(None) => allocations.push(BufferAllocationProto { maybe_live_out: true, ..own }),
            Place::Temporary => {
                let start = happens(0, row, 0);
                blocks[row] = Block { size: size as u64, start, end: start };
            }
            Place::Shared(_) => {
                happens(2, row, root_of[row] as i64 + 1);
            }
        }
        for &dead in dying.get(&row).into_iter().flatten() {
            blocks[root_of[dead]].end = happens(1, dead, 0);
        }
    }
    let placement = online(&blocks);
    let is_temporary = |row: &usize| matches!(step.values[*row].place, Place::Temporary | Place::Shared(_));
    let place = |row: usize| assign(row, placement.offsets[root_of[row]] as i64, bytes(&step.values[row].dimensions));
    let assigned = (0..steps).filter(is_temporary).map(place).collect();
    let heap = placement.heap as i64;
    let index = allocations.len() as i64;
    allocations.push(BufferAllocationProto { index, size: heap, assigned, ..BufferAllocationProto::default() });
    let root_id = steps as i64 + 1;
    let tuple_shapes = results.iter().map(|&row| shape(F32, &step.values[row].dimensions)).collect();
    step.instructions.push(HloInstructionProto {
        name: "tuple.results".to_owned(),
        opcode: "tuple".to_owned(),
        shape: Some(ShapeProto { element_type: TUPLE, tuple_shapes, ..ShapeProto::default() }),
        id: root_id,
        operand_ids: results.iter().map(|&row| row as i64 + 1).collect(),
        ..HloInstructionProto::default()
    });
    let order = InstructionSequence { instruction_ids: (1..=root_id).collect() };
    let entry = HloComputationProto { name: "main".to_owned(), instructions: step.instructions, id: 1, root_id };
    let module = HloModuleProto {
        name: "jit_train_step".to_owned(),
        entry_computation_name: "main".to_owned(),
        entry_computation_id: 1,
        id: 1,
        computations: step.bodies.into_iter().chain([entry]).collect(),
        schedule: Some(HloScheduleProto { sequences: [(1, order)].into_iter().collect() }),
        ..HloModuleProto::default()
    };
    let trace = HeapSimulatorTrace { events, whole_module_simulation: true, buffer_allocation_index: index };
    let buffer_assignment = BufferAssignmentProto {
        logical_buffers,
        buffer_allocations: allocations,
        heap_simulator_traces: vec![trace],
        ..BufferAssignmentProto::default()
    };
    HloProto { hlo_module: Some(module), buffer_assignment: Some(buffer_assignment) }.encode_to_vec()
}
