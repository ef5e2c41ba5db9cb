//! Field numbers of HLO protos, by message, as XLA's
//! [`hlo.proto`](https://github.com/openxla/xla/blob/main/xla/service/hlo.proto) and
//! [`xla_data.proto`](https://github.com/openxla/xla/blob/main/xla/xla_data.proto) name them.

/// `HloProto`.
pub mod hlo_proto {
    pub const HLO_MODULE: u32 = 1;
    pub const BUFFER_ASSIGNMENT: u32 = 3;
}

/// `HloModuleProto`.
pub mod module {
    pub const NAME: u32 = 1;
    pub const ENTRY_COMPUTATION_NAME: u32 = 2;
    pub const COMPUTATIONS: u32 = 3;
    pub const ID: u32 = 5;
    pub const ENTRY_COMPUTATION_ID: u32 = 6;
    pub const SCHEDULE: u32 = 7;
    pub const INPUT_OUTPUT_ALIAS: u32 = 8;
    pub const SPMD_OUTPUT_SHARDING: u32 = 12;
    pub const SPMD_PARAMETERS_SHARDINGS: u32 = 14;
    pub const DEVICE_ASSIGNMENT: u32 = 15;
    pub const STACK_FRAME_INDEX: u32 = 17;
    pub const BUFFER_DONOR: u32 = 18;
    pub const FRONTEND_ATTRIBUTES: u32 = 19;
}

/// `HloScheduleProto`.
pub mod schedule {
    pub const SEQUENCES: u32 = 1;
}

/// An entry of `HloScheduleProto.sequences`, a map.
pub mod sequence_entry {
    pub const KEY: u32 = 1;
    pub const VALUE: u32 = 2;
}

/// `HloScheduleProto.InstructionSequence`.
pub mod sequence {
    pub const INSTRUCTION_IDS: u32 = 1;
}

/// `HloComputationProto`.
pub mod computation {
    pub const NAME: u32 = 1;
    pub const INSTRUCTIONS: u32 = 2;
    pub const ID: u32 = 5;
    pub const ROOT_ID: u32 = 6;
}

/// `HloInstructionProto`.
pub mod instruction {
    pub const NAME: u32 = 1;
    pub const OPCODE: u32 = 2;
    pub const SHAPE: u32 = 3;
    pub const METADATA: u32 = 7;
    pub const PARAMETER_NUMBER: u32 = 9;
    pub const TUPLE_INDEX: u32 = 13;
    pub const DIMENSIONS: u32 = 14;
    pub const CONVOLUTION_DIMENSION_NUMBERS: u32 = 16;
    pub const CUSTOM_CALL_TARGET: u32 = 28;
    pub const DOT_DIMENSION_NUMBERS: u32 = 30;
    pub const GATHER_DIMENSION_NUMBERS: u32 = 33;
    pub const ID: u32 = 35;
    pub const OPERAND_IDS: u32 = 36;
    pub const CALLED_COMPUTATION_IDS: u32 = 38;
    pub const SHARDING: u32 = 40;
    pub const BACKEND_CONFIG: u32 = 43;
    pub const SCATTER_DIMENSION_NUMBERS: u32 = 48;
    pub const OUTPUT_OPERAND_ALIASING: u32 = 74;
}

/// `DotDimensionNumbers`.
pub mod dot {
    pub const LHS_CONTRACTING: u32 = 1;
    pub const RHS_CONTRACTING: u32 = 2;
    pub const LHS_BATCH: u32 = 3;
    pub const RHS_BATCH: u32 = 4;
}

/// `ConvolutionDimensionNumbers`.
pub mod convolution {
    pub const KERNEL_OUTPUT_FEATURE: u32 = 4;
    pub const KERNEL_SPATIAL: u32 = 6;
    pub const INPUT_BATCH: u32 = 7;
    pub const OUTPUT_BATCH: u32 = 9;
    pub const OUTPUT_FEATURE: u32 = 10;
    pub const INPUT_SPATIAL: u32 = 11;
    pub const OUTPUT_SPATIAL: u32 = 12;
}

/// `GatherDimensionNumbers`.
pub mod gather {
    pub const OFFSET: u32 = 1;
    pub const COLLAPSED_SLICE: u32 = 2;
    pub const INDEX_VECTOR: u32 = 4;
    pub const OPERAND_BATCHING: u32 = 5;
}

/// `ScatterDimensionNumbers`.
pub mod scatter {
    pub const UPDATE_WINDOW: u32 = 1;
    pub const INSERTED_WINDOW: u32 = 2;
    pub const INPUT_BATCHING: u32 = 5;
}

/// `OutputOperandAliasing`.
pub mod output_alias {
    pub const OUTPUT_SHAPE_INDEX: u32 = 1;
    pub const OPERAND_INDEX: u32 = 2;
    pub const OPERAND_SHAPE_INDEX: u32 = 3;
}

/// `OpMetadata`.
pub mod metadata {
    pub const OP_TYPE: u32 = 1;
    pub const OP_NAME: u32 = 2;
    pub const SOURCE_FILE: u32 = 3;
    pub const SOURCE_LINE: u32 = 4;
    pub const STACK_FRAME_ID: u32 = 15;
    pub const SOURCE_COLUMN: u32 = 18;
}

/// `ShapeProto`.
pub mod shape {
    pub const ELEMENT_TYPE: u32 = 2;
    pub const DIMENSIONS: u32 = 3;
    pub const TUPLE_SHAPES: u32 = 4;
    pub const LAYOUT: u32 = 5;
    pub const IS_DYNAMIC_DIMENSION: u32 = 6;
}

/// `LayoutProto`.
pub mod layout {
    pub const MINOR_TO_MAJOR: u32 = 1;
    pub const TILES: u32 = 6;
    pub const ELEMENT_SIZE_IN_BITS: u32 = 7;
    pub const MEMORY_SPACE: u32 = 8;
    pub const DYNAMIC_SHAPE_METADATA_PREFIX_BYTES: u32 = 15;
    pub const TAIL_PADDING_ALIGNMENT_IN_ELEMENTS: u32 = 16;
    pub const SPLIT_CONFIGS: u32 = 17;
}

/// `TileProto`.
pub mod tile {
    pub const DIMENSIONS: u32 = 1;
}

/// `SplitConfigProto`.
pub mod split {
    pub const DIMENSION: u32 = 1;
    pub const SPLIT_INDICES: u32 = 2;
}

/// `BufferAssignmentProto`.
pub mod assignment {
    pub const LOGICAL_BUFFERS: u32 = 1;
    pub const BUFFER_ALLOCATIONS: u32 = 3;
    pub const HEAP_SIMULATOR_TRACES: u32 = 4;
    pub const PEAK_BUFFERS: u32 = 5;
}

/// `LogicalBufferProto`.
pub mod logical_buffer {
    pub const ID: u32 = 1;
    pub const SIZE: u32 = 2;
    pub const DEFINED_AT: u32 = 3;
    pub const COLOR: u32 = 4;
}

/// `LogicalBufferProto.Location`.
pub mod location {
    pub const SHAPE_INDEX: u32 = 3;
    pub const INSTRUCTION_ID: u32 = 4;
}

/// `BufferAllocationProto`.
pub mod allocation {
    pub const INDEX: u32 = 1;
    pub const SIZE: u32 = 2;
    pub const IS_THREAD_LOCAL: u32 = 3;
    pub const IS_ENTRY_COMPUTATION_PARAMETER: u32 = 5;
    pub const PARAMETER_NUMBER: u32 = 6;
    pub const MAYBE_LIVE_OUT: u32 = 7;
    pub const COLOR: u32 = 8;
    pub const ASSIGNED: u32 = 9;
    pub const PARAMETER_SHAPE_INDEX: u32 = 10;
    pub const IS_TUPLE: u32 = 11;
    pub const IS_CONSTANT: u32 = 12;
    pub const IS_PARAMETER_ALIASED_WITH_OUTPUT: u32 = 13;
}

/// `BufferAllocationProto.Assigned`.
pub mod assigned {
    pub const LOGICAL_BUFFER_ID: u32 = 1;
    pub const OFFSET: u32 = 2;
}

/// `HeapSimulatorTrace`.
pub mod trace {
    pub const EVENTS: u32 = 1;
    pub const WHOLE_MODULE_SIMULATION: u32 = 2;
}

/// `HeapSimulatorTrace.Event`.
pub mod event {
    pub const KIND: u32 = 1;
    pub const BUFFER_ID: u32 = 2;
    pub const SHARE_WITH_CANONICAL_ID: u32 = 5;
}

/// `PeakBuffers`.
pub mod peak_buffers {
    pub const INDEX: u32 = 1;
    pub const LOGICAL_BUFFER_IDS: u32 = 2;
}
