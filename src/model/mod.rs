//! The profile in a format-independent form: plain data without I/O or drawing. Decoders fill in what their format has.

mod buffer;
mod caching;
mod device;
mod dimension_numbers;
mod element_type;
mod failure;
mod fast;
mod ids;
mod lazy;
mod live_set;
mod note;
mod opcode;
mod profile;
mod program;
mod reported;
mod runtime;
mod shape;
mod shape_parse;
mod shape_text;
mod sharding;
mod strings;
mod tiles;
mod tpu;
mod units;

pub use buffer::{Allocation, Assigned, Buffers, Category, EventKind, HeapEvent, HeapTrace};
pub use caching::{
    AllocatorSettings, Annotation, Block, BlockState, CachingAction, CachingDevice, CachingEvents, CachingSnapshot,
    Frame, Segment, SizeClass, StackId, Stacks,
};
pub use device::{Capacity, Device, DeviceKind, MemorySpace, Topology};
pub use dimension_numbers::{ConvolutionNumbers, DimensionNumbers, DotNumbers, GatherNumbers, ScatterNumbers};
pub use element_type::ElementType;
pub use failure::{
    BfcBin, BfcChunk, Failure, FailureKind, FailureValue, ListedAllocation, PeakBuffer, PrintedSize, RematWarning,
    Shortage, Speaker, error_page, without_escaped_quotes,
};
pub use fast::{FastMap, FastSet};
pub use ids::{AllocationId, BufferId, ComputationId, InstructionId, NO_ROW, ShapeId, StringId};
pub use lazy::{Glance, LazyProgram, ProgramSource};
pub use live_set::{Bin, Chunk, HeapMap, HeapStats, LiveEntry, LiveSet};
pub use note::{Note, NoteCode, NoteLevel, Stream};
pub use opcode::{Opcode, OpcodeTable};
pub use profile::{Fact, LiveRangeTable, Profile, SourceInfo};
pub use program::{
    BufferDonor, Computation, InputOutputAlias, Instructions, Metadata, Operands, OutputOperandAlias, Program,
    ProgramText, ProgramTextHandle, ScopedMemory, SourceLine, SparseLists,
};
pub use reported::{ReportedPeak, ReportedRanges, ReportedSpace, ReportedUse};
pub use runtime::{
    AllocatorActivity, AllocatorEvent, AllocatorStats, AllocatorTrace, Clock, Execution, GivenPeak, LiveAllocation,
};
pub use shape::{COMBINE, DimensionPadding, Layout, Shape, ShapeIndex, ShapeNode, outline};
pub use sharding::{DeviceOrder, Sharding, ShardingKind};
pub use strings::Strings;
pub use tiles::{
    ExecutionProfile, LARGEST_ROWS, LiveNode, Liveness, TileCategory, TileColumn, TileMemory, TileProgram, TileRow,
    TileRows, TileTarget, TileVariables, in_words,
};
pub use tpu::{TPU_GENERATIONS, TpuGeneration};
pub use units::{Bytes, UnitSystem, capitalised, counted, factor, parse_size, percent, thousands};
