//! A compiled program (an HLO module): computations, instructions and their schedule as columns, and what a single
//! row says in words, which is read from the file's bytes only when it is looked at.

use std::sync::Arc;

use super::buffer::{Allocation, Assigned, Buffers, HeapTrace};
use super::ids::{BufferId, ComputationId, InstructionId, NO_ROW, ShapeId};
use super::opcode::{Opcode, OpcodeTable};
use super::profile::MemorySpace;
use super::reported::{ReportedRanges, ReportedSpace, ReportedUse};
use super::shape::{Shape, ShapeNode};

/// A program and its memory. Formats that know less leave columns empty.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Name of the module.
    pub name: String,
    /// The number under which a trace knows it.
    pub id: Option<String>,
    /// Interned shapes; a row is a [`ShapeId`].
    pub shapes: Vec<Shape>,
    /// Names of the opcodes.
    pub opcodes: OpcodeTable,
    /// Instructions.
    pub instructions: Instructions,
    /// Computations.
    pub computations: Vec<Computation>,
    /// The entry computation.
    pub entry: Option<ComputationId>,
    /// Logical buffers.
    pub buffers: Buffers,
    /// Allocations.
    pub allocations: Vec<Allocation>,
    /// Buffers by allocation; [`Allocation::assigned_start`] and `assigned_end` are its rows.
    pub assigned: Vec<Assigned>,
    /// Heap traces, in the file's order.
    pub traces: Vec<HeapTrace>,
    /// XLA's own list of the buffers at the peak, by allocation number.
    pub peak_buffers: Vec<(i64, Vec<BufferId>)>,
    /// Results that take over the memory of an argument.
    pub aliases: Vec<InputOutputAlias>,
    /// Arguments that were donated but found no result to pair with.
    pub donors: Vec<BufferDonor>,
    /// How the arguments are divided over devices, by argument number; empty where the file does not say.
    pub parameter_shardings: Vec<Sharding>,
    /// How the result is divided.
    pub output_sharding: Option<Sharding>,
    /// Copies of the program that run side by side on the same data split, and parts it is split into.
    pub replicas: u32,
    /// Parts the program is divided into.
    pub partitions: u32,
    /// Attributes of the module that JAX and others put there.
    pub attributes: Vec<(String, String)>,
    /// What single rows say in words.
    pub text: ProgramTextHandle,
    /// What another tool's report says of its memory spaces; empty for a program that is decoded from its own bytes.
    pub reported: Vec<ReportedSpace>,
    /// Live ranges of a report, for a program without instructions of its own.
    pub reported_ranges: Option<ReportedRanges>,
    /// Readers of buffers as a report prints them, by buffer.
    pub reported_uses: Vec<ReportedUse>,
    /// Whether the file carries a buffer assignment; without it there are shapes but no memory.
    pub has_buffer_assignment: bool,
    /// Whether it is only a list of the largest buffers, out of a message: neither times nor places are known.
    pub is_listing: bool,
}

/// Instructions as columns; a row is an [`InstructionId`], in the file's order.
#[derive(Debug, Clone, Default)]
pub struct Instructions {
    /// Opcode.
    pub opcode: Vec<Opcode>,
    /// Shape.
    pub shape: Vec<ShapeId>,
    /// `parameter_number` of a parameter, `tuple_index` of a get-tuple-element, else 0.
    pub argument: Vec<u32>,
    /// Operands in chunks.
    pub operands: Operands,
    /// Called computations, sorted by instruction.
    pub called: SparseLists<ComputationId>,
    /// Results that share memory with an operand, sorted by instruction.
    pub output_aliases: SparseLists<OutputOperandAlias>,
}

impl Instructions {
    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.opcode.len()
    }

    /// Whether there is no row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.opcode.is_empty()
    }

    /// Rows of the operands, [`NO_ROW`] for one that is not in the computation.
    #[must_use]
    pub fn operands_of(&self, instruction: InstructionId) -> &[u32] {
        self.operands.of(instruction.index())
    }

    /// Computations an instruction calls.
    #[must_use]
    pub fn called_by(&self, instruction: InstructionId) -> &[ComputationId] {
        self.called.of(instruction.0)
    }
}

/// Operand rows of all instructions.
#[derive(Debug, Clone, Default)]
pub struct Operands {
    /// One past the last operand of each row.
    pub ends: Vec<u32>,
    /// Operands of all rows.
    pub items: Vec<u32>,
}

impl Operands {
    /// The operands of a row.
    #[must_use]
    #[inline]
    pub fn of(&self, row: usize) -> &[u32] {
        let Some(&end) = self.ends.get(row) else { return &[] };
        self.items.get(self.start(row)..end as usize).unwrap_or(&[])
    }

    /// The operands of rows `first..end`, to change.
    pub fn range_mut(&mut self, first: usize, end: usize) -> &mut [u32] {
        let start = self.start(first);
        let end = if end > first { self.ends.get(end - 1).map_or(start, |&end| end as usize) } else { start };
        self.items.get_mut(start..end).unwrap_or(&mut [])
    }

    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end as usize)
    }
}

/// Lists for few rows of many.
#[derive(Debug, Clone)]
pub struct SparseLists<T> {
    /// (row, first item), ascending by row.
    pub rows: Vec<(u32, u32)>,
    /// Items of all rows.
    pub items: Vec<T>,
}

impl<T> Default for SparseLists<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), items: Vec::new() }
    }
}

impl<T> SparseLists<T> {
    /// The items of a row.
    #[must_use]
    pub fn of(&self, row: u32) -> &[T] {
        let Ok(i) = self.rows.binary_search_by_key(&row, |&(row, _)| row) else { return &[] };
        let start = self.rows[i].1 as usize;
        let end = self.rows.get(i + 1).map_or(self.items.len(), |&(_, start)| start as usize);
        self.items.get(start..end).unwrap_or(&[])
    }

    /// Begins a row; rows come in ascending order.
    pub fn begin(&mut self, row: u32) {
        if self.rows.last().is_none_or(|&(last, _)| last != row) {
            self.rows.push((row, u32::try_from(self.items.len()).unwrap_or(u32::MAX)));
        }
    }
}

/// A computation.
#[derive(Debug, Clone, Default)]
pub struct Computation {
    /// Its number in the file.
    pub number: i64,
    /// First row of its instructions.
    pub start: u32,
    /// One past the last row.
    pub end: u32,
    /// Row of the root, [`NO_ROW`] where it is not known.
    pub root: u32,
    /// Rows in the order of the schedule; empty where it is not scheduled.
    pub schedule: Vec<u32>,
    /// Whether the file gives it a schedule.
    pub is_scheduled: bool,
}

/// A result that takes over an argument's memory (`HloInputOutputAliasProto`).
#[derive(Debug, Clone, Default)]
pub struct InputOutputAlias {
    /// Place in the result.
    pub output_index: Vec<i64>,
    /// Argument.
    pub parameter: i64,
    /// Place in the argument.
    pub parameter_index: Vec<i64>,
    /// Whether the compiler must (not only may) alias them.
    pub must: bool,
}

/// A donated argument without partner (`HloBufferDonorProto`).
#[derive(Debug, Clone, Default)]
pub struct BufferDonor {
    /// Argument.
    pub parameter: i64,
    /// Place in it.
    pub parameter_index: Vec<i64>,
}

/// A result of an instruction that lies where an operand lay.
#[derive(Debug, Clone, Default)]
pub struct OutputOperandAlias {
    /// Place in the result.
    pub output_index: Vec<i64>,
    /// Operand number.
    pub operand: i64,
    /// Place in the operand.
    pub operand_index: Vec<i64>,
}

/// How one value is divided over devices (`OpSharding`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sharding {
    /// Kind of division.
    pub kind: ShardingKind,
    /// Into how many parts each dimension is divided; a last number beyond the rank counts copies.
    pub tiles: Vec<i64>,
    /// Whether the last number of `tiles` counts copies.
    pub replicate_on_last: bool,
    /// Shardings of a tuple's elements.
    pub elements: Vec<Self>,
}

/// Kinds of [`Sharding`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShardingKind {
    /// Whole on every device.
    #[default]
    Replicated,
    /// Whole on one device.
    Maximal,
    /// A tuple.
    Tuple,
    /// Divided.
    Tiled,
    /// By hand.
    Manual,
    /// Anything else.
    Unknown,
}

impl Sharding {
    /// In words: `replicated`, `divided 4 × 1`.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self.kind {
            ShardingKind::Replicated => "replicated".to_owned(),
            ShardingKind::Maximal => "whole on one device".to_owned(),
            ShardingKind::Tuple => "by element".to_owned(),
            ShardingKind::Manual => "by hand".to_owned(),
            ShardingKind::Unknown => "not said".to_owned(),
            ShardingKind::Tiled if self.parts() <= 1 => "replicated".to_owned(),
            ShardingKind::Tiled => {
                let copies = if self.replicate_on_last { self.tiles.split_last() } else { None };
                let dims = copies.map_or(&self.tiles[..], |(_, dims)| dims);
                let words: Vec<String> = dims.iter().take(16).map(ToString::to_string).collect();
                let copies = copies.map(|(&n, _)| n).filter(|&n| n > 1).map(|n| format!(", {n} copies"));
                format!("divided {}{}", words.join(" \u{d7} "), copies.unwrap_or_default())
            }
        }
    }

    /// Into how many different parts the data is divided: 1 for replicated.
    #[must_use]
    pub fn parts(&self) -> i64 {
        if self.kind != ShardingKind::Tiled {
            return 1;
        }
        let dims =
            if self.replicate_on_last { self.tiles.split_last().map_or(&[][..], |(_, d)| d) } else { &self.tiles };
        dims.iter().fold(1i64, |n, &d| n.saturating_mul(d.max(1)))
    }
}

/// What an instruction says about where it comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Framework's name of the operation: `jit(step)/jvp(layer_3)/attn/dot_general`, or an argument's path.
    pub op_name: String,
    /// Framework's kind of operation.
    pub op_type: String,
    /// Innermost source line.
    pub source: Option<SourceLine>,
    /// Source lines, innermost first.
    pub stack: Vec<SourceLine>,
}

/// A place in a source file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    /// File.
    pub file: String,
    /// Function, empty where it is not known.
    pub function: String,
    /// Line, 0 where it is not known.
    pub line: i32,
    /// Column, 0 where it is not known.
    pub column: i32,
}

/// Scratch an instruction reserves, from its backend configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopedMemory {
    /// Memory space.
    pub color: MemorySpace,
    /// Bytes.
    pub size: super::units::Bytes,
    /// Whether it is what the instruction uses (else: what it may use).
    pub used: bool,
}

/// What single rows say in words. Implementations read it from the file's bytes at each call.
pub trait ProgramText: Send + Sync + std::fmt::Debug {
    /// Name of an instruction.
    fn instruction_name(&self, instruction: InstructionId) -> String;
    /// Name of a computation.
    fn computation_name(&self, computation: ComputationId) -> String;
    /// Where an instruction comes from.
    fn metadata(&self, instruction: InstructionId) -> Metadata;
    /// Only the framework's name of the operation: cheaper than [`Self::metadata`].
    fn op_name(&self, instruction: InstructionId) -> String {
        self.metadata(instruction).op_name
    }
    /// `custom_call_target`; empty where there is none.
    fn custom_call_target(&self, instruction: InstructionId) -> String;
    /// Scratch memory of an instruction.
    fn scoped_memory(&self, instruction: InstructionId) -> Vec<ScopedMemory>;
    /// How an instruction's value is divided over devices, where the instruction itself says.
    fn sharding(&self, instruction: InstructionId) -> Option<Sharding>;
}

/// A [`ProgramText`] to share; the default knows nothing.
#[derive(Debug, Clone)]
pub struct ProgramTextHandle(pub Arc<dyn ProgramText>);

impl Default for ProgramTextHandle {
    fn default() -> Self {
        Self(Arc::new(NoText))
    }
}

impl std::ops::Deref for ProgramTextHandle {
    type Target = dyn ProgramText;
    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

#[derive(Debug)]
struct NoText;

impl ProgramText for NoText {
    fn instruction_name(&self, _: InstructionId) -> String {
        String::new()
    }
    fn computation_name(&self, _: ComputationId) -> String {
        String::new()
    }
    fn metadata(&self, _: InstructionId) -> Metadata {
        Metadata::default()
    }
    fn custom_call_target(&self, _: InstructionId) -> String {
        String::new()
    }
    fn scoped_memory(&self, _: InstructionId) -> Vec<ScopedMemory> {
        Vec::new()
    }
    fn sharding(&self, _: InstructionId) -> Option<Sharding> {
        None
    }
}

impl Program {
    /// The computation an instruction belongs to.
    #[must_use]
    pub fn computation_of(&self, instruction: InstructionId) -> Option<ComputationId> {
        let i = self.computations.partition_point(|computation| computation.end <= instruction.0);
        self.computations.get(i).filter(|c| c.start <= instruction.0).map(|_| ComputationId(i as u32))
    }

    /// Shape of an instruction.
    #[must_use]
    pub fn shape_of(&self, instruction: InstructionId) -> Option<&Shape> {
        self.instructions.shape.get(instruction.index()).and_then(|id| self.shapes.get(id.index()))
    }

    /// Name of the opcode of an instruction.
    #[must_use]
    pub fn opcode_name(&self, instruction: InstructionId) -> &str {
        self.instructions.opcode.get(instruction.index()).map_or("", |&opcode| self.opcodes.name(opcode))
    }

    /// The shape of a buffer: the defining instruction's, and the node in it.
    #[must_use]
    pub fn buffer_shape(&self, buffer: BufferId) -> Option<(&Shape, u32)> {
        let shape = self.shape_of(self.buffers.instruction_of(buffer)?)?;
        let node = *self.buffers.node.get(buffer.index())?;
        (node != NO_ROW).then_some((shape, node))
    }

    /// The array or tuple a buffer holds.
    #[must_use]
    pub fn buffer_node(&self, buffer: BufferId) -> Option<&ShapeNode> {
        let (shape, node) = self.buffer_shape(buffer)?;
        shape.nodes.get(node as usize)
    }

    /// The place of a buffer in its instruction's value.
    #[must_use]
    pub fn buffer_index(&self, buffer: BufferId) -> Vec<i64> {
        if let Ok(i) = self.buffers.odd_index.binary_search_by_key(&buffer.0, |&(row, _)| row) {
            return self.buffers.odd_index[i].1.clone();
        }
        self.buffer_shape(buffer).map_or_else(Vec::new, |(shape, node)| shape.index_of(node))
    }

    /// `instruction` or `instruction{i,j}`, as XProf writes a buffer.
    #[must_use]
    pub fn buffer_name(&self, buffer: BufferId) -> String {
        let Some(instruction) = self.buffers.instruction_of(buffer) else {
            return format!("buffer {}", self.buffers.number.get(buffer.index()).copied().unwrap_or_default());
        };
        let name = self.text.instruction_name(instruction);
        let index = self.buffer_index(buffer);
        if index.is_empty() {
            return name;
        }
        let index: Vec<String> = index.iter().map(ToString::to_string).collect();
        format!("{name}{{{}}}", index.join(","))
    }

    /// The buffers assigned to an allocation.
    #[must_use]
    pub fn assigned_to(&self, allocation: &Allocation) -> &[Assigned] {
        self.assigned.get(allocation.assigned_start as usize..allocation.assigned_end as usize).unwrap_or(&[])
    }

    /// Parts the program is divided into over devices, at least 1.
    #[must_use]
    pub fn devices(&self) -> u32 {
        self.replicas.max(1).saturating_mul(self.partitions.max(1))
    }
}
