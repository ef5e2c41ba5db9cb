//! Arguments that come in one tuple, as JAX passes more than 2,000 of them, are arguments like others.

use highwater::analysis::ProgramAnalysis;
use highwater::analysis::class::Class;
use highwater::decode::hlo::proto::{
    BufferAllocationProto, BufferAssignmentProto, HloComputationProto, HloInstructionProto, HloModuleProto, HloProto,
    HloScheduleProto, LogicalBufferProto, OpMetadata, ShapeProto, buffer_allocation_proto, hlo_schedule_proto,
    logical_buffer_proto,
};
use highwater::decode::{Reporter, hlo};
use highwater::model::{BufferId, Device, Program};
use highwater::source::Progress;
use prost::Message as _;

const F32: i32 = 11;
const S32: i32 = 4;
const TUPLE: i32 = 13;

fn array(element_type: i32, dimensions: &[i64]) -> ShapeProto {
    ShapeProto { element_type, dimensions: dimensions.to_vec(), ..ShapeProto::default() }
}

fn instruction(id: i64, opcode: &str, shape: ShapeProto, operands: &[i64]) -> HloInstructionProto {
    HloInstructionProto {
        name: format!("{opcode}.{id}"),
        opcode: opcode.to_owned(),
        shape: Some(shape),
        id,
        operand_ids: operands.to_vec(),
        ..HloInstructionProto::default()
    }
}

/// Rows of a table, looked up by tokens: both are elements of the only parameter.
fn program() -> (Program, Vec<String>) {
    let (tokens, table) = (array(S32, &[8, 16]), array(F32, &[1024, 64]));
    let both =
        ShapeProto { element_type: TUPLE, tuple_shapes: vec![tokens.clone(), table.clone()], ..ShapeProto::default() };
    let part = |id, shape, tuple_index| HloInstructionProto {
        tuple_index,
        ..instruction(id, "get-tuple-element", shape, &[100])
    };
    let rows = array(F32, &[8, 16, 64]);
    let instructions = vec![
        instruction(100, "parameter", both, &[]),
        part(101, tokens, 0),
        part(102, table, 1),
        HloInstructionProto {
            metadata: Some(OpMetadata {
                op_name: "jit(lookup)/model/embed/gather".to_owned(),
                ..OpMetadata::default()
            }),
            ..instruction(103, "gather", rows, &[102, 101])
        },
    ];
    let ids: Vec<i64> = instructions.iter().map(|instruction| instruction.id).collect();
    let computation = HloComputationProto { name: "main".into(), id: 1, root_id: 103, instructions };
    let sequence = hlo_schedule_proto::InstructionSequence { instruction_ids: ids };
    let module = HloModuleProto {
        name: "jit_lookup".to_owned(),
        entry_computation_name: "main".to_owned(),
        entry_computation_id: 1,
        computations: vec![computation],
        schedule: Some(HloScheduleProto { sequences: [(1, sequence)].into() }),
        ..HloModuleProto::default()
    };
    let buffer = |id: i64, size: i64, instruction_id: i64, shape_index: Vec<i64>| LogicalBufferProto {
        id,
        size,
        color: 0,
        defined_at: Some(logical_buffer_proto::Location { instruction_id, shape_index }),
    };
    let logical_buffers =
        vec![buffer(0, 512, 100, vec![0]), buffer(1, 1 << 18, 100, vec![1]), buffer(2, 1 << 15, 103, vec![])];
    let assigned =
        |logical_buffer_id, size| vec![buffer_allocation_proto::Assigned { logical_buffer_id, offset: 0, size }];
    let argument = |index: i64, size: i64| BufferAllocationProto {
        index,
        size,
        is_entry_computation_parameter: true,
        parameter_shape_index: vec![index],
        assigned: assigned(index, size),
        ..BufferAllocationProto::default()
    };
    let result = BufferAllocationProto {
        index: 2,
        size: 1 << 15,
        maybe_live_out: true,
        assigned: assigned(2, 1 << 15),
        ..Default::default()
    };
    let assignment = BufferAssignmentProto {
        logical_buffers,
        buffer_allocations: vec![argument(0, 512), argument(1, 1 << 18), result],
        ..BufferAssignmentProto::default()
    };
    let proto = HloProto { hlo_module: Some(module), buffer_assignment: Some(assignment) };
    let reporter = Reporter::default();
    let program = hlo::decode(&proto.encode_to_vec().into(), &Progress::default(), &reporter).expect("a program");
    (program, reporter.finish().into_iter().map(|note| note.text).collect())
}

#[test]
fn arguments_in_one_tuple_are_told_apart_and_classed_by_their_use() {
    let (program, notes) = program();
    assert!(program.are_arguments_in_tuple);
    assert!(notes.iter().any(|note| note.contains("2 arguments come in one tuple")), "{notes:?}");
    let numbers: Vec<i64> =
        program.allocations.iter().filter(|own| own.is_parameter).map(|own| own.parameter_number).collect();
    assert_eq!(numbers, [0, 1]);
    let analysis = ProgramAnalysis::new(&program, &Device::default());
    let classes = analysis.classes(&program);
    assert_eq!([classes.of(BufferId(0)), classes.of(BufferId(1))], [Class::Input, Class::Weight]);
    let labels = analysis.labels(&program);
    assert_eq!(labels.op_name(&program, BufferId(1)), "args[1] (model/embed)", "by what reads it");
    assert_eq!(analysis.argument_paths(&program).get(&1).map(String::as_str), Some("args[1]"));
}
