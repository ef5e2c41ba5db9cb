//! Our own HLO proto decoder compared with prost: whatever prost accepts, ours accepts, with the same fields.

use std::collections::HashMap;

use highwater::decode::hlo::proto::{
    BufferAllocationProto, BufferAssignmentProto, DotDimensionNumbers, HeapSimulatorTrace, HloComputationProto,
    HloInstructionProto, HloModuleProto, HloProto, HloScheduleProto, LayoutProto, LogicalBufferProto, OpMetadata,
    ShapeProto, buffer_allocation_proto, heap_simulator_trace, hlo_schedule_proto, layout_proto, logical_buffer_proto,
};
use highwater::decode::wire::Reader;
use highwater::decode::{Reporter, hlo};
use highwater::model::{
    ConvolutionNumbers, DimensionNumbers, DotNumbers, EventKind, GatherNumbers, InstructionId, NO_ROW, Program,
    ScatterNumbers, Shape,
};
use highwater::source::Progress;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message as _;

use crate::common;

type Check = Result<(), String>;

fn equal<T: PartialEq + std::fmt::Debug>(what: &str, ours: &T, theirs: &T) -> Check {
    if ours == theirs { Ok(()) } else { Err(format!("{what}: {ours:?} instead of {theirs:?}")) }
}

fn bytes_of(size: i64) -> u64 {
    u64::try_from(size).unwrap_or(0)
}

/// The shape decoded by prost, flattened like ours.
fn same_shape(ours: &Shape, node: u32, theirs: &ShapeProto) -> Check {
    let own = &ours.nodes[node as usize];
    equal("element type", &own.element_type.0, &u8::try_from(theirs.element_type as u64).unwrap_or(0))?;
    equal("dimensions", &own.dimensions, &theirs.dimensions)?;
    let dynamic =
        if theirs.is_dynamic_dimension.contains(&true) { theirs.is_dynamic_dimension.clone() } else { vec![] };
    equal("dynamic", &own.dynamic, &dynamic)?;
    equal("a layout", &own.layout.is_some(), &theirs.layout.is_some())?;
    if let (Some(own), Some(layout)) = (&own.layout, &theirs.layout) {
        let order: Vec<u32> = layout.minor_to_major.iter().map(|&n| u32::try_from(n).unwrap_or(u32::MAX)).collect();
        equal("minor to major", &own.minor_to_major, &order)?;
        let tiles: Vec<Vec<i64>> = layout.tiles.iter().map(|tile| tile.dimensions.clone()).collect();
        equal("tiles", &own.tiles, &tiles)?;
        equal("memory space", &own.memory_space, &layout.memory_space)?;
        let bits = u32::try_from(layout.element_size_in_bits as u64).unwrap_or(0);
        equal("element size", &own.element_size_in_bits, &bits)?;
        equal("tail", &own.tail_padding_alignment, &layout.tail_padding_alignment_in_elements)?;
    }
    // Elements of a shape that is not a tuple have no meaning.
    if own.is_tuple() {
        equal("elements", &own.children.len(), &theirs.tuple_shapes.len())?;
        for (&child, theirs) in own.children.iter().zip(&theirs.tuple_shapes) {
            same_shape(ours, child, theirs)?;
        }
    }
    Ok(())
}

fn same_instruction(program: &Program, row: u32, theirs: &HloInstructionProto) -> Check {
    let id = InstructionId(row);
    equal("name", &program.text.instruction_name(id), &theirs.name)?;
    // What takes an argument out of the tuple of all of them is its parameter.
    let is_argument = program.are_arguments_in_tuple && theirs.opcode == "get-tuple-element" && program.is_in_entry(id);
    if !is_argument {
        equal("opcode", &program.opcode_name(id), &theirs.opcode.as_str())?;
    }
    match &theirs.shape {
        Some(shape) => same_shape(program.shape_of(id).ok_or("no shape")?, 0, shape)?,
        None => equal("no shape", &program.shape_of(id).is_none_or(|s| *s == Shape::default()), &true)?,
    }
    let metadata = program.text.metadata(id);
    let their_metadata = theirs.metadata.clone().unwrap_or_default();
    equal("op name", &metadata.op_name, &their_metadata.op_name)?;
    equal("op type", &metadata.op_type, &their_metadata.op_type)?;
    if !their_metadata.source_file.is_empty() {
        let source = metadata.source.ok_or("no source")?;
        equal("source", &(source.file, source.line), &(their_metadata.source_file, their_metadata.source_line))?;
    }
    equal("target", &program.text.custom_call_target(id), &theirs.custom_call_target)?;
    same_dimension_numbers(&program.text.dimension_numbers(id), theirs)
}

fn same_dimension_numbers(own: &DimensionNumbers, theirs: &HloInstructionProto) -> Check {
    equal("dimension numbers", &own.dimensions, &theirs.dimensions)?;
    let convolution = theirs.convolution_dimension_numbers.clone().unwrap_or_default();
    let convolution = ConvolutionNumbers {
        input_batch: convolution.input_batch_dimension,
        input_spatial: convolution.input_spatial_dimensions,
        kernel_output_feature: convolution.kernel_output_feature_dimension,
        kernel_spatial: convolution.kernel_spatial_dimensions,
        output_batch: convolution.output_batch_dimension,
        output_feature: convolution.output_feature_dimension,
        output_spatial: convolution.output_spatial_dimensions,
    };
    equal("those of a convolution", &own.convolution, &convolution)?;
    let dot = theirs.dot_dimension_numbers.clone().unwrap_or_default();
    let dot = DotNumbers {
        lhs_contracting: dot.lhs_contracting_dimensions,
        rhs_contracting: dot.rhs_contracting_dimensions,
        lhs_batch: dot.lhs_batch_dimensions,
        rhs_batch: dot.rhs_batch_dimensions,
    };
    equal("those of a dot", &own.dot, &dot)?;
    let gather = theirs.gather_dimension_numbers.clone().unwrap_or_default();
    let gather = GatherNumbers {
        offset: gather.offset_dims,
        collapsed: gather.collapsed_slice_dims,
        index_vector: gather.index_vector_dim,
        operand_batching: gather.operand_batching_dims,
    };
    equal("those of a gather", &own.gather, &gather)?;
    let scatter = theirs.scatter_dimension_numbers.clone().unwrap_or_default();
    let scatter = ScatterNumbers {
        update_window: scatter.update_window_dims,
        inserted_window: scatter.inserted_window_dims,
        input_batching: scatter.input_batching_dims,
    };
    equal("those of a scatter", &own.scatter, &scatter)
}

fn same_module(program: &Program, module: &HloModuleProto) -> Check {
    equal("module", &program.name, &module.name)?;
    equal("module id", &program.id, &(module.id != 0).then(|| module.id.to_string()))?;
    equal("computations", &program.computations.len(), &module.computations.len())?;
    let sequences = module.schedule.as_ref().map(|schedule| &schedule.sequences);
    let count = |number: i64| module.computations.iter().filter(|c| c.id == number).count();
    let mut row = 0;
    for (ours, theirs) in program.computations.iter().zip(&module.computations) {
        equal("first row", &ours.start, &row)?;
        // If a damaged file has two computations with the same id, either may be used.
        if count(theirs.id) == 1 && theirs.id != 0 {
            equal("computation id", &ours.number, &theirs.id)?;
        }
        // Of two instructions with the same id, the later one is used.
        let rows: HashMap<i64, u32> = theirs.instructions.iter().zip(row..).map(|(i, row)| (i.id, row)).collect();
        let find = |number: &i64| rows.get(number).copied().unwrap_or(NO_ROW);
        for instruction in &theirs.instructions {
            same_instruction(program, row, instruction).map_err(|e| format!("instruction {row}: {e}"))?;
            let operands: Vec<u32> = instruction.operand_ids.iter().map(find).collect();
            equal("operands", &program.instructions.operands_of(InstructionId(row)).to_vec(), &operands)?;
            row += 1;
        }
        equal("last row", &ours.end, &row)?;
        equal("root", &ours.root, &find(&theirs.root_id))?;
        if count(theirs.id) == 1 && ours.number == theirs.id {
            let sequence = sequences.and_then(|s| s.get(&theirs.id));
            equal("scheduled", &ours.is_scheduled, &sequence.is_some())?;
            let order: Vec<u32> = sequence.map_or(&[][..], |s| &s.instruction_ids).iter().map(find).collect();
            let order: Vec<u32> = order.into_iter().filter(|&row| row != NO_ROW).collect();
            equal("schedule", &ours.schedule, &order)?;
        }
    }
    Ok(())
}

fn same_assignment(program: &Program, module: &HloModuleProto, assignment: &BufferAssignmentProto) -> Check {
    let buffers = &program.buffers;
    equal("buffers", &buffers.len(), &assignment.logical_buffers.len())?;
    let mut instructions: HashMap<i64, Vec<u32>> = HashMap::new();
    for (i, instruction) in module.computations.iter().flat_map(|c| &c.instructions).enumerate() {
        instructions.entry(instruction.id).or_default().push(i as u32);
    }
    let mut rows = HashMap::new();
    for (row, theirs) in assignment.logical_buffers.iter().enumerate() {
        let ours = (buffers.number[row], buffers.size[row].0, buffers.color[row].0);
        equal("buffer", &ours, &(theirs.id, bytes_of(theirs.size), theirs.color))?;
        let defined = theirs.defined_at.clone().unwrap_or_default();
        match instructions.get(&defined.instruction_id).map(Vec::as_slice) {
            Some(&[one]) => equal("defining instruction", &buffers.instruction[row], &one)?,
            None => equal("defining instruction", &buffers.instruction[row], &NO_ROW)?,
            // For an id used twice, any of them.
            Some(many) => equal("defining instruction", &many.contains(&buffers.instruction[row]), &true)?,
        }
        rows.insert(theirs.id, row as u32);
    }
    let find = |number: i64| rows.get(&number).copied().unwrap_or(NO_ROW);
    equal("allocations", &program.allocations.len(), &assignment.buffer_allocations.len())?;
    for (ours, theirs) in program.allocations.iter().zip(&assignment.buffer_allocations) {
        let own = (ours.index, ours.size.0, ours.color.0, ours.is_thread_local, ours.is_tuple, ours.is_constant);
        let expected = (
            theirs.index,
            bytes_of(theirs.size),
            theirs.color,
            theirs.is_thread_local,
            theirs.is_tuple,
            theirs.is_constant,
        );
        equal("allocation", &own, &expected)?;
        let own = (ours.is_parameter, ours.parameter_number, ours.maybe_live_out, ours.is_parameter_aliased);
        let in_tuple = program.are_arguments_in_tuple && theirs.is_entry_computation_parameter;
        let (number, index) = match theirs.parameter_shape_index[..] {
            [place] if in_tuple => (place, Vec::new()),
            _ => (theirs.parameter_number, theirs.parameter_shape_index.clone()),
        };
        let expected = (
            theirs.is_entry_computation_parameter,
            number,
            theirs.maybe_live_out,
            theirs.is_parameter_aliased_with_output,
        );
        equal("allocation", &own, &expected)?;
        equal("parameter index", &ours.parameter_shape_index.to_vec(), &index)?;
        let own: Vec<(u32, u64)> = program.assigned_to(ours).iter().map(|a| (a.buffer.0, a.offset)).collect();
        let assigned = theirs.assigned.iter().map(|a| (find(a.logical_buffer_id), bytes_of(a.offset)));
        equal("assigned", &own, &assigned.filter(|&(row, _)| row != NO_ROW).collect())?;
    }
    equal("traces", &program.traces.len(), &assignment.heap_simulator_traces.len())?;
    for (ours, theirs) in program.traces.iter().zip(&assignment.heap_simulator_traces) {
        equal("whole module", &ours.whole_module, &theirs.whole_module_simulation)?;
        let own: Vec<_> = ours.events.iter().map(|e| (e.kind, e.buffer, e.canonical)).collect();
        let expected = theirs.events.iter().map(|event| {
            let kind = match event.kind {
                0 => EventKind::Alloc,
                1 => EventKind::Free,
                2 => EventKind::ShareWith,
                _ => EventKind::Other,
            };
            let canonical = if event.kind == 2 { find(event.share_with_canonical_id) } else { NO_ROW };
            (kind, find(event.buffer_id), canonical)
        });
        equal("events", &own, &expected.collect())?;
    }
    Ok(())
}

/// Compares the two if prost accepts the bytes; returns whether it did.
fn compare(bytes: &[u8]) -> Result<bool, String> {
    let Ok(theirs) = HloProto::decode(bytes) else {
        // Ours may return a partial result, but must terminate.
        let _ = hlo::decode(&bytes.to_vec().into(), &Progress::default(), &Reporter::default());
        return Ok(false);
    };
    let Some(module) = &theirs.hlo_module else { return Ok(false) };
    let program = hlo::decode(&bytes.to_vec().into(), &Progress::default(), &Reporter::default())
        .map_err(|e| format!("prost accepts it: {e}"))?;
    same_module(&program, module)?;
    equal("a buffer assignment", &program.has_buffer_assignment, &theirs.buffer_assignment.is_some())?;
    same_assignment(&program, module, &theirs.buffer_assignment.unwrap_or_default())?;
    Ok(true)
}

fn any_number() -> impl Strategy<Value = i64> {
    prop_oneof![8 => 0i64..6, 2 => -3i64..300, 1 => (1i64 << 32)..(1 << 32) + 8, 1 => any::<i64>().prop_filter(
        "stands for what could not be read", |n| *n != i64::MIN)]
}

fn any_shape() -> impl Strategy<Value = ShapeProto> {
    let layout = (vec(0i64..4, 0..4), vec(vec(prop_oneof![Just(8i64), Just(128), Just(-1)], 0..3), 0..2), any_number());
    let layout = layout.prop_map(|(minor_to_major, tiles, memory_space)| LayoutProto {
        minor_to_major,
        tiles: tiles.into_iter().map(|dimensions| layout_proto::TileProto { dimensions }).collect(),
        memory_space,
        ..LayoutProto::default()
    });
    let array = (0i32..30, vec(any_number(), 0..4), proptest::option::of(layout), vec(any::<bool>(), 0..3));
    let array = array.prop_map(|(element_type, dimensions, layout, is_dynamic_dimension)| ShapeProto {
        element_type,
        dimensions,
        layout,
        is_dynamic_dimension,
        ..ShapeProto::default()
    });
    array.prop_recursive(3, 12, 3, |inner| {
        vec(inner, 1..4).prop_map(|tuple_shapes| ShapeProto { element_type: 13, tuple_shapes, ..ShapeProto::default() })
    })
}

fn any_instruction() -> impl Strategy<Value = HloInstructionProto> {
    let metadata = ("[a-z/]{0,6}", "[a-z]{0,3}\\.py|", any::<i32>()).prop_map(|(op_name, source_file, source_line)| {
        OpMetadata { op_name, source_file, source_line, ..OpMetadata::default() }
    });
    (
        "[a-z.0-9é]{0,5}",
        prop_oneof![Just("parameter"), Just("add"), Just("get-tuple-element"), Just("tuple"), Just("")],
        proptest::option::of(any_shape()),
        proptest::option::of(metadata),
        (any_number(), any_number(), any_number()),
        (vec(any_number(), 0..4), vec(any_number(), 0..2)),
        (vec(any_number(), 0..3), proptest::option::of((vec(any_number(), 0..2), vec(any_number(), 0..2)))),
    )
        .prop_map(|(name, opcode, shape, metadata, numbers, (operands, called), (dimensions, dot))| {
            let (id, parameter_number, tuple_index) = numbers;
            HloInstructionProto {
                dimensions,
                dot_dimension_numbers: dot.map(|(lhs_batch_dimensions, rhs_contracting_dimensions)| {
                    DotDimensionNumbers {
                        lhs_batch_dimensions,
                        rhs_contracting_dimensions,
                        ..DotDimensionNumbers::default()
                    }
                }),
                name,
                opcode: opcode.to_owned(),
                shape,
                metadata,
                id,
                parameter_number,
                tuple_index,
                operand_ids: operands,
                called_computation_ids: called,
                ..HloInstructionProto::default()
            }
        })
}

fn any_module() -> impl Strategy<Value = HloModuleProto> {
    let computation = (any_number(), any_number(), vec(any_instruction(), 0..6), proptest::option::of(any_number()));
    let computation = computation.prop_map(|(id, root_id, mut instructions, runs_from)| {
        // Ids are mostly consecutive.
        if let Some(first) = runs_from {
            for (i, instruction) in instructions.iter_mut().enumerate() {
                instruction.id = first.saturating_add(i as i64);
            }
        }
        HloComputationProto { id, root_id, instructions, ..HloComputationProto::default() }
    });
    let schedule = proptest::collection::hash_map(any_number(), vec(any_number(), 0..5), 0..3);
    ("[a-z]{0,4}", vec(computation, 0..4), any_number(), proptest::option::of(schedule)).prop_map(
        |(name, computations, id, schedule)| HloModuleProto {
            name,
            computations,
            id,
            schedule: schedule.map(|sequences| HloScheduleProto {
                sequences: sequences
                    .into_iter()
                    .map(|(key, instruction_ids)| (key, hlo_schedule_proto::InstructionSequence { instruction_ids }))
                    .collect(),
            }),
            ..HloModuleProto::default()
        },
    )
}

fn any_assignment() -> impl Strategy<Value = BufferAssignmentProto> {
    let buffer = (any_number(), any_number(), any_number(), vec(any_number(), 0..3), any_number()).prop_map(
        |(id, size, instruction_id, shape_index, color)| LogicalBufferProto {
            id,
            size,
            color,
            defined_at: Some(logical_buffer_proto::Location { instruction_id, shape_index }),
        },
    );
    let assigned = (any_number(), any_number()).prop_map(|(logical_buffer_id, offset)| {
        buffer_allocation_proto::Assigned { logical_buffer_id, offset, ..Default::default() }
    });
    let allocation = (any_number(), any_number(), any_number(), vec(assigned, 0..5), any::<[bool; 5]>()).prop_map(
        |(index, size, color, assigned, [local, parameter, out, tuple, constant])| BufferAllocationProto {
            index,
            size,
            color,
            assigned,
            is_thread_local: local,
            is_entry_computation_parameter: parameter,
            maybe_live_out: out,
            is_tuple: tuple,
            is_constant: constant,
            ..Default::default()
        },
    );
    let event = (0i32..4, any_number(), any_number()).prop_map(|(kind, buffer_id, share_with_canonical_id)| {
        heap_simulator_trace::Event { kind, buffer_id, share_with_canonical_id }
    });
    let trace = (vec(event, 0..12), any::<bool>()).prop_map(|(events, whole_module_simulation)| HeapSimulatorTrace {
        events,
        whole_module_simulation,
        ..HeapSimulatorTrace::default()
    });
    (vec(buffer, 0..8), vec(allocation, 0..4), vec(trace, 0..3)).prop_map(
        |(logical_buffers, buffer_allocations, heap_simulator_traces)| BufferAssignmentProto {
            logical_buffers,
            buffer_allocations,
            heap_simulator_traces,
            ..BufferAssignmentProto::default()
        },
    )
}

fn any_proto() -> impl Strategy<Value = HloProto> {
    (any_module(), proptest::option::of(any_assignment()))
        .prop_map(|(module, buffer_assignment)| HloProto { hlo_module: Some(module), buffer_assignment })
}

/// Walks a message like the decoders, skipping every field.
fn walks(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes, 0);
    loop {
        match reader.tag() {
            Ok(None) => return true,
            Ok(Some(tag)) if reader.skip(tag).is_ok() => {}
            _ => return false,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_proto_has_the_same_fields(proto in any_proto()) {
        prop_assert_eq!(compare(&proto.encode_to_vec()), Ok(true));
    }

    /// Two concatenated messages are merged, as protobuf requires.
    #[test]
    fn messages_in_parts_are_merged(a in any_proto(), b in any_proto()) {
        let bytes = [a.encode_to_vec(), b.encode_to_vec()].concat();
        prop_assert_eq!(compare(&bytes), Ok(true));
    }

    #[test]
    fn changed_bytes_have_the_same_fields_where_prost_accepts_them(
        proto in any_proto(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in proptest::option::weighted(0.2, any::<prop::sample::Index>()),
    ) {
        let mut bytes = proto.encode_to_vec();
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let (Some(cut), false) = (cut, bytes.is_empty()) {
            bytes.truncate(cut.index(bytes.len()));
        }
        let result = compare(&bytes);
        prop_assert!(result.is_ok(), "{:?}", result);
    }

    /// A message type without fields skips everything: the walker accepts whatever prost accepts.
    #[test]
    fn any_bytes_are_walked_as_prost_walks_them(bytes in vec(any::<u8>(), 0..60)) {
        prop_assert!(walks(&bytes) || <()>::decode(&bytes[..]).is_err());
    }
}

#[test]
fn the_samples_have_the_same_fields() {
    for path in common::sample_programs() {
        assert_eq!(compare(&common::bytes(&path)), Ok(true), "{}", common::name(&path));
    }
}
