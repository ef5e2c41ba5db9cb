//! A compiled program (an HLO module): computations, instructions and their schedule as columns. Names and metadata of
//! single rows are read from the file's bytes on demand.

use std::borrow::Cow;
use std::sync::Arc;

use super::buffer::{Allocation, Assigned, Buffers, HeapTrace};
use super::device::MemorySpace;
use super::dimension_numbers::DimensionNumbers;
use super::ids::{BufferId, ComputationId, InstructionId, NO_ROW, ShapeId};
use super::opcode::{Opcode, OpcodeTable};
use super::reported::{ReportedRanges, ReportedSpace, ReportedUse};
use super::shape::{Shape, ShapeIndex, ShapeNode};
use super::sharding::Sharding;

/// A program and its memory. Columns that a format does not have are empty.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Name of the module.
    pub name: String,
    /// Program id in the trace.
    pub id: Option<String>,
    /// Interned shapes, indexed by [`ShapeId`].
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
    /// Buffers grouped by allocation; [`Allocation::assigned_start`] and `assigned_end` are row bounds.
    pub assigned: Vec<Assigned>,
    /// Heap simulator traces, in file order.
    pub traces: Vec<HeapTrace>,
    /// XLA's list of the buffers at the peak, by allocation index.
    pub peak_buffers: Vec<(i64, Vec<BufferId>)>,
    /// Results that reuse the memory of a parameter.
    pub aliases: Vec<InputOutputAlias>,
    /// Donated parameters without a matching result.
    pub donors: Vec<BufferDonor>,
    /// Whether the arguments come in one tuple, as JAX passes more than 2,000 of them: the number of each is its place
    /// there, and what takes it out is a parameter with the tuple as its operand.
    pub are_arguments_in_tuple: bool,
    /// Shardings of the parameters, by parameter number; empty if not in the file.
    pub parameter_shardings: Vec<Sharding>,
    /// Sharding of the result.
    pub output_sharding: Option<Sharding>,
    /// Number of replicas (data parallelism).
    pub replicas: u32,
    /// Number of partitions (model parallelism by SPMD).
    pub partitions: u32,
    /// Frontend attributes of the module.
    pub attributes: Vec<(String, String)>,
    /// Names and metadata of single rows.
    pub text: ProgramTextHandle,
    /// Totals by memory space from another tool's report; empty for a program decoded from an HLO proto.
    pub reported: Vec<ReportedSpace>,
    /// Live ranges from a report, for a program without instructions.
    pub reported_ranges: Option<ReportedRanges>,
    /// Uses of buffers listed in a report, sorted by buffer.
    pub reported_uses: Vec<ReportedUse>,
    /// Whether the file has a buffer assignment; without one, memory use is unknown.
    pub has_buffer_assignment: bool,
    /// Whether it is only a list of the largest buffers from a message, without live ranges or offsets.
    pub is_listing: bool,
}

/// Columns of instructions in file order, indexed by [`InstructionId`].
#[derive(Debug, Clone, Default)]
pub struct Instructions {
    /// Opcode.
    pub opcode: Vec<Opcode>,
    /// Shape.
    pub shape: Vec<ShapeId>,
    /// `parameter_number` of a parameter, `tuple_index` of a get-tuple-element, otherwise 0.
    pub argument: Vec<u32>,
    /// Operands.
    pub operands: Operands,
    /// Called computations, sorted by instruction.
    pub called: SparseLists<ComputationId>,
    /// Outputs that alias an operand, sorted by instruction.
    pub output_aliases: SparseLists<OutputOperandAlias>,
}

impl Instructions {
    /// Number of instructions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.opcode.len()
    }

    /// Whether there are no instructions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.opcode.is_empty()
    }

    /// All instructions, computation by computation.
    pub fn ids(&self) -> impl ExactSizeIterator<Item = InstructionId> + use<> {
        (0..self.len() as u32).map(InstructionId)
    }

    /// Rows of the operands; [`NO_ROW`] for an operand that is not in the computation.
    #[must_use]
    pub fn operands_of(&self, instruction: InstructionId) -> &[u32] {
        self.operands.of(instruction.index())
    }

    /// Computations called by an instruction.
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
    /// Operands of an instruction; empty if there is no such row.
    #[must_use]
    #[inline]
    pub fn of(&self, row: usize) -> &[u32] {
        let Some(&end) = self.ends.get(row) else { return &[] };
        self.items.get(self.start(row)..end as usize).unwrap_or(&[])
    }

    /// Mutable operands of rows `first..end`.
    pub fn range_mut(&mut self, first: usize, end: usize) -> &mut [u32] {
        let start = self.start(first);
        let end = if end > first { self.ends.get(end - 1).map_or(start, |&end| end as usize) } else { start };
        self.items.get_mut(start..end).unwrap_or(&mut [])
    }

    fn start(&self, row: usize) -> usize {
        row.checked_sub(1).and_then(|before| self.ends.get(before)).map_or(0, |&end| end as usize)
    }
}

/// Rows to one entry of the index of [`SparseLists`].
const BLOCK: u32 = 8;

/// Lists for a small subset of rows.
#[derive(Debug, Clone)]
pub struct SparseLists<T> {
    /// (row, index of its first item), ascending by row.
    pub rows: Vec<(u32, u32)>,
    /// Items of all rows.
    pub items: Vec<T>,
    /// For each block of rows, the first of `rows` in it or behind it, and one more; empty while rows are added.
    blocks: Vec<u32>,
}

impl<T> Default for SparseLists<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), items: Vec::new(), blocks: Vec::new() }
    }
}

impl<T> SparseLists<T> {
    /// The same rows with other items, indexed by their rows.
    #[must_use]
    pub fn map<U>(self, change: impl FnMut(T) -> U) -> SparseLists<U> {
        let count = self.rows.last().map_or(0, |&(last, _)| last / BLOCK + 1);
        let mut blocks = Vec::with_capacity(count as usize + 1);
        for (at, &(row, _)) in (0u32..).zip(&self.rows) {
            while blocks.len() as u32 <= row / BLOCK {
                blocks.push(at);
            }
        }
        blocks.push(u32::try_from(self.rows.len()).unwrap_or(u32::MAX));
        SparseLists { rows: self.rows, items: self.items.into_iter().map(change).collect(), blocks }
    }

    /// Items of a row; empty if it has none.
    #[must_use]
    pub fn of(&self, row: u32) -> &[T] {
        let at = if self.blocks.is_empty() {
            self.rows.binary_search_by_key(&row, |&(row, _)| row).ok()
        } else {
            let block = (row / BLOCK) as usize;
            let Some(&[from, to]) = self.blocks.get(block..block + 2) else { return &[] };
            let own = self.rows.get(from as usize..to as usize).unwrap_or(&[]);
            own.iter().position(|&(known, _)| known == row).map(|place| from as usize + place)
        };
        let Some(at) = at else { return &[] };
        let start = self.rows[at].1 as usize;
        let end = self.rows.get(at + 1).map_or(self.items.len(), |&(_, start)| start as usize);
        self.items.get(start..end).unwrap_or(&[])
    }

    /// Starts a row. Rows must be added in ascending order.
    pub fn begin(&mut self, row: u32) {
        if self.rows.last().is_none_or(|&(last, _)| last != row) {
            self.blocks.clear();
            self.rows.push((row, u32::try_from(self.items.len()).unwrap_or(u32::MAX)));
        }
    }
}

/// A computation.
#[derive(Debug, Clone, Default)]
pub struct Computation {
    /// Id in the file.
    pub number: i64,
    /// First row of its instructions.
    pub start: u32,
    /// One past the last row.
    pub end: u32,
    /// Row of the root instruction; [`NO_ROW`] if unknown.
    pub root: u32,
    /// Rows in schedule order; empty if not scheduled.
    pub schedule: Vec<u32>,
    /// Whether the file has a schedule for it.
    pub is_scheduled: bool,
}

/// A result that reuses a parameter's memory (`HloInputOutputAliasProto`).
#[derive(Debug, Clone, Default)]
pub struct InputOutputAlias {
    /// Shape index in the result.
    pub output_index: ShapeIndex,
    /// Parameter number.
    pub parameter: i64,
    /// Shape index in the parameter.
    pub parameter_index: ShapeIndex,
    /// Whether aliasing is mandatory rather than permitted.
    pub must: bool,
}

/// A donated parameter without a matching result (`HloBufferDonorProto`).
#[derive(Debug, Clone, Default)]
pub struct BufferDonor {
    /// Parameter number.
    pub parameter: i64,
    /// Shape index in the parameter.
    pub parameter_index: ShapeIndex,
}

/// An instruction's output that aliases an operand.
#[derive(Debug, Clone, Default)]
pub struct OutputOperandAlias {
    /// Shape index in the result.
    pub output_index: ShapeIndex,
    /// Operand number.
    pub operand: i64,
    /// Shape index in the operand.
    pub operand_index: ShapeIndex,
}

/// Source information of an instruction.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Framework op name such as `jit(step)/jvp(layer_3)/attn/dot_general`, or the path of a parameter.
    pub op_name: String,
    /// Framework op type.
    pub op_type: String,
    /// Innermost source line.
    pub source: Option<SourceLine>,
    /// Source lines, innermost first.
    pub stack: Vec<SourceLine>,
}

/// A location in a source file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceLine {
    /// Path of the file.
    pub file: String,
    /// Function; empty if unknown.
    pub function: String,
    /// Line; 0 if unknown.
    pub line: i32,
    /// Column; 0 if unknown.
    pub column: i32,
}

/// Scratch memory that an instruction reserves, from its backend configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopedMemory {
    /// Memory space.
    pub color: MemorySpace,
    /// Bytes.
    pub size: super::units::Bytes,
    /// Whether `bytes` is what the instruction uses rather than its limit.
    pub used: bool,
}

/// Names and metadata of single rows. Implementations read them from the file's bytes on each call; missing values are
/// empty.
pub trait ProgramText: Send + Sync + std::fmt::Debug {
    /// Name of an instruction.
    fn instruction_name(&self, _: InstructionId) -> String {
        String::new()
    }
    /// The same as it is in the file; cheaper where it need not be text.
    fn instruction_name_bytes(&self, instruction: InstructionId) -> Cow<'_, [u8]> {
        Cow::Owned(self.instruction_name(instruction).into_bytes())
    }
    /// Name of a computation.
    fn computation_name(&self, _: ComputationId) -> String {
        String::new()
    }
    /// Source information of an instruction.
    fn metadata(&self, _: InstructionId) -> Metadata {
        Metadata::default()
    }
    /// Only the framework op name; cheaper than [`Self::metadata`].
    fn op_name(&self, instruction: InstructionId) -> String {
        self.metadata(instruction).op_name
    }
    /// `custom_call_target`; empty if there is none.
    fn custom_call_target(&self, _: InstructionId) -> String {
        String::new()
    }
    /// Scratch memory that an instruction reserves.
    fn scoped_memory(&self, _: InstructionId) -> Vec<ScopedMemory> {
        Vec::new()
    }
    /// Which dimensions of an instruction belong to which of its operands.
    fn dimension_numbers(&self, _: InstructionId) -> DimensionNumbers {
        DimensionNumbers::default()
    }
    /// Sharding attribute of an instruction; `None` if it has none.
    fn sharding(&self, _: InstructionId) -> Option<Sharding> {
        None
    }
}

/// A shared [`ProgramText`]; the default returns empty text.
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

impl ProgramText for NoText {}

impl Program {
    /// The computation that contains an instruction.
    #[must_use]
    pub fn computation_of(&self, instruction: InstructionId) -> Option<ComputationId> {
        let i = self.computations.partition_point(|computation| computation.end <= instruction.0);
        self.computations.get(i).filter(|c| c.start <= instruction.0).map(|_| ComputationId(i as u32))
    }

    /// Whether arrays are laid out in tiles, as only the TPU's compiler does.
    #[must_use]
    pub fn is_tiled(&self) -> bool {
        self.shapes.iter().flat_map(|shape| &shape.nodes).any(|node| !node.first_tile().is_empty())
    }

    /// Shape of an instruction's value.
    #[must_use]
    pub fn shape_of(&self, instruction: InstructionId) -> Option<&Shape> {
        self.instructions.shape.get(instruction.index()).and_then(|id| self.shapes.get(id.index()))
    }

    /// Opcode name of an instruction; empty if unknown.
    #[must_use]
    pub fn opcode_name(&self, instruction: InstructionId) -> &str {
        self.instructions.opcode.get(instruction.index()).map_or("", |&opcode| self.opcodes.name(opcode))
    }

    /// Whether an instruction joins slices of an array that lie next to each other, such as those of a split prefetch: its
    /// result occupies the addresses of its operands.
    #[must_use]
    pub fn joins_slices(&self, instruction: InstructionId) -> bool {
        self.instructions.opcode.get(instruction.index()) == Some(&Opcode::CUSTOM_CALL)
            && self.text.custom_call_target(instruction) == "ConcatBitcast"
    }

    /// The collective, such as an all-gather, that an instruction begins or ends, where other work runs beside it: the root
    /// of the fusion that does it.
    #[must_use]
    pub fn begun_or_ended(&self, root: InstructionId) -> Option<InstructionId> {
        if self.instructions.opcode.get(root.index()) != Some(&Opcode::CUSTOM_CALL) {
            return None;
        }
        // What is begun is all that the one is given; what is ended comes after the arrays of the collective.
        let place = match self.text.custom_call_target(root).as_str() {
            "AsyncCollectiveStart" => 0,
            "AsyncCollectiveDone" => 2,
            _ => return None,
        };
        self.instructions.operands_of(root).get(place).filter(|&&row| row != NO_ROW).map(|&row| InstructionId(row))
    }

    /// Shape of the defining instruction and the buffer's node in it; `None` if unknown.
    #[must_use]
    pub fn buffer_shape(&self, buffer: BufferId) -> Option<(&Shape, u32)> {
        let shape = self.shape_of(self.buffers.instruction_of(buffer)?)?;
        let node = *self.buffers.node.get(buffer.index())?;
        (node != NO_ROW).then_some((shape, node))
    }

    /// The array or tuple that a buffer holds; `None` if unknown.
    #[must_use]
    pub fn buffer_node(&self, buffer: BufferId) -> Option<&ShapeNode> {
        let (shape, node) = self.buffer_shape(buffer)?;
        shape.nodes.get(node as usize)
    }

    /// Shape index of a buffer in its instruction's value.
    #[must_use]
    pub fn buffer_index(&self, buffer: BufferId) -> ShapeIndex {
        if let Ok(i) = self.buffers.odd_index.binary_search_by_key(&buffer.0, |&(row, _)| row) {
            return self.buffers.odd_index[i].1.clone();
        }
        self.buffer_shape(buffer).map_or_else(ShapeIndex::new, |(shape, node)| shape.index_of(node))
    }

    /// XProf's notation for a buffer: `instruction` or `instruction{i,j}`.
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

    /// Whether an instruction is in the entry computation, not in a loop or another that is called.
    #[must_use]
    pub fn is_in_entry(&self, instruction: InstructionId) -> bool {
        self.computation_of(instruction) == self.entry
    }

    /// The computation that runs first; `None` if the file does not name it.
    #[must_use]
    pub fn entry_computation(&self) -> Option<&Computation> {
        self.computations.get(self.entry?.index())
    }

    /// How a parameter is sharded, by its number; `None` if the file does not say.
    #[must_use]
    pub fn sharding_of_parameter(&self, number: i64) -> Option<&Sharding> {
        self.parameter_shardings.get(usize::try_from(number).ok()?)
    }

    /// Number of the argument that a result takes the memory of; `None` if that is part of a nested one.
    #[must_use]
    pub fn argument_of(&self, alias: &InputOutputAlias) -> Option<i64> {
        match alias.parameter_index[..] {
            [] => Some(alias.parameter),
            [place] if self.are_arguments_in_tuple => Some(place),
            _ => None,
        }
    }

    /// Buffers assigned to an allocation.
    #[must_use]
    pub fn assigned_to(&self, allocation: &Allocation) -> &[Assigned] {
        self.assigned.get(allocation.assigned_start as usize..allocation.assigned_end as usize).unwrap_or(&[])
    }

    /// Number of devices the program is partitioned over, at least 1.
    #[must_use]
    pub fn devices(&self) -> u32 {
        self.replicas.max(1).saturating_mul(self.partitions.max(1))
    }

    /// Whether the file says how many devices it runs on.
    #[must_use]
    pub const fn knows_devices(&self) -> bool {
        self.replicas > 0 || self.partitions > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_lists_are_found_with_and_without_an_index() {
        let mut lists = SparseLists::default();
        for row in [0u32, 3, 7, 8, 40, 41, 4000] {
            lists.begin(row);
            lists.items.extend([row, row + 1]);
        }
        let indexed = lists.clone().map(u64::from);
        for row in 0..5000 {
            let plain: Vec<u64> = lists.of(row).iter().copied().map(u64::from).collect();
            assert_eq!(plain, indexed.of(row), "{row}");
        }
        assert_eq!(indexed.of(40), [40, 41]);
        assert_eq!(SparseLists::<u32>::default().map(u64::from).of(3), [0u64; 0]);
        assert_eq!(indexed.of(u32::MAX), [0u64; 0]);
    }
}
