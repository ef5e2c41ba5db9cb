//! Small hand-made programs, for tests of rules that no sample triggers.

use std::sync::Arc;

use crate::advisor::{Finding, ProgramContext};
use crate::analysis::packing::{Families, online};
use crate::analysis::{ProgramAnalysis, ProgramParts, Stop};
use crate::model::{
    Allocation, Assigned, BufferId, Bytes, Capacity, Computation, ComputationId, Device, ElementType, EventKind,
    FastMap, HeapEvent, HeapTrace, InstructionId, Layout, MemorySpace, Metadata, NO_ROW, Opcode, Program, ProgramText,
    ProgramTextHandle, ScopedMemory, Shape, ShapeId, ShapeNode, SourceLine,
};

/// Builder of a program: one computation in schedule order.
#[derive(Debug, Default)]
pub struct Sketch {
    program: Program,
    words: Words,
    events: Vec<HeapEvent>,
}

/// What the rows say.
#[derive(Debug, Default)]
struct Words {
    op_names: Vec<String>,
    scratch: Vec<Vec<ScopedMemory>>,
    /// Targets of custom calls, where they have one.
    targets: FastMap<u32, String>,
    /// Source files, where they are known.
    sources: FastMap<u32, String>,
}

impl ProgramText for Words {
    fn instruction_name(&self, instruction: InstructionId) -> String {
        format!("instruction.{instruction}")
    }
    fn computation_name(&self, _: ComputationId) -> String {
        "main".to_owned()
    }
    fn metadata(&self, instruction: InstructionId) -> Metadata {
        let op_name = self.op_names.get(instruction.index()).cloned().unwrap_or_default();
        let source =
            self.sources.get(&instruction.0).map(|file| SourceLine { file: file.clone(), ..SourceLine::default() });
        Metadata { op_name, source, ..Metadata::default() }
    }
    fn custom_call_target(&self, instruction: InstructionId) -> String {
        self.targets.get(&instruction.0).cloned().unwrap_or_default()
    }
    fn scoped_memory(&self, instruction: InstructionId) -> Vec<ScopedMemory> {
        self.scratch.get(instruction.index()).cloned().unwrap_or_default()
    }
}

/// An f32 array, row-major where `order` is descending.
pub fn array(dimensions: &[i64], order: &[u32]) -> Shape {
    let mut node = ShapeNode::array(ElementType::F32, dimensions.to_vec());
    node.layout = Some(Arc::new(Layout { minor_to_major: order.to_vec(), ..Layout::default() }));
    Shape::from_array(node)
}

impl Sketch {
    /// Adds an instruction with a buffer of its own; returns its row, which is the buffer's too.
    pub fn instruction(&mut self, opcode: Opcode, shape: Shape, operands: &[u32], op_name: &str) -> u32 {
        let row = self.program.instructions.len() as u32;
        let size = shape.root().padded_size().unwrap_or_default();
        self.program.shapes.push(shape);
        let instructions = &mut self.program.instructions;
        instructions.opcode.push(opcode);
        instructions.shape.push(ShapeId(row));
        instructions.argument.push(0);
        instructions.operands.items.extend_from_slice(operands);
        instructions.operands.ends.push(instructions.operands.items.len() as u32);
        let buffers = &mut self.program.buffers;
        buffers.number.push(i64::from(row));
        buffers.size.push(size);
        buffers.instruction.push(row);
        buffers.node.push(0);
        buffers.color.push(MemorySpace::HBM);
        buffers.allocation.push(NO_ROW);
        buffers.offset.push(0);
        self.words.op_names.push(op_name.to_owned());
        self.words.scratch.push(Vec::new());
        row
    }

    /// Adds an argument.
    pub fn argument(&mut self, shape: Shape, path: &str) -> u32 {
        let number = self.program.allocations.iter().filter(|a| a.is_parameter).count() as i64;
        let row = self.instruction(Opcode::PARAMETER, shape, &[], path);
        self.program.instructions.argument[row as usize] = number as u32;
        let size = self.program.buffers.size[row as usize];
        let parameter = Allocation { is_parameter: true, parameter_number: number, size, ..Allocation::default() };
        self.place(parameter, &[(row, 0)]);
        row
    }

    /// Gives the last instruction memory of its own, as a result has.
    pub fn result(&mut self, row: u32) {
        let size = self.program.buffers.size[row as usize];
        self.place(Allocation { maybe_live_out: true, size, ..Allocation::default() }, &[(row, 0)]);
    }

    fn place(&mut self, mut allocation: Allocation, buffers: &[(u32, u64)]) {
        let id = self.program.allocations.len() as u32;
        allocation.index = i64::from(id);
        allocation.assigned_start = self.program.assigned.len() as u32;
        for &(buffer, offset) in buffers {
            self.program.assigned.push(Assigned { buffer: BufferId(buffer), offset });
            self.program.buffers.allocation[buffer as usize] = id;
            self.program.buffers.offset[buffer as usize] = offset;
        }
        allocation.assigned_end = self.program.assigned.len() as u32;
        self.program.allocations.push(allocation);
    }

    /// Adds the heap event that allocates a buffer.
    pub fn alloc(&mut self, buffer: u32) {
        self.events.push(HeapEvent { kind: EventKind::Alloc, buffer, canonical: NO_ROW });
    }

    /// Adds the heap event that frees a buffer.
    pub fn free(&mut self, buffer: u32) {
        self.events.push(HeapEvent { kind: EventKind::Free, buffer, canonical: NO_ROW });
    }

    /// The opcode of a name that has no constant.
    pub fn opcode(&mut self, name: &str) -> Opcode {
        self.program.opcodes.intern(name)
    }

    /// Names the target of a custom call.
    pub fn target(&mut self, call: u32, target: &str) {
        self.words.targets.insert(call, target.to_owned());
    }

    /// Names the source file of an instruction.
    pub fn source(&mut self, row: u32, file: &str) {
        self.words.sources.insert(row, file.to_owned());
    }

    /// Sets the VMEM scratch of an instruction, in bytes.
    pub fn scratch(&mut self, instruction: u32, bytes: u64) {
        let scoped = ScopedMemory { color: MemorySpace::VMEM, size: Bytes(bytes), used: true };
        self.words.scratch[instruction as usize].push(scoped);
    }

    /// Findings of one rule on a device with `capacity` bytes of HBM (and 128 MiB of VMEM).
    pub fn findings(self, capacity: u64, rule: fn(&ProgramContext<'_>, &mut Vec<Finding>)) -> Vec<Finding> {
        self.findings_on(Device::default(), capacity, rule)
    }

    /// As [`Self::findings`], on a given device.
    pub fn findings_on(
        mut self,
        device: Device,
        capacity: u64,
        rule: fn(&ProgramContext<'_>, &mut Vec<Finding>),
    ) -> Vec<Finding> {
        let rows: Vec<u32> = (0..self.program.instructions.len() as u32).collect();
        self.program.traces = vec![HeapTrace { events: std::mem::take(&mut self.events), whole_module: true }];
        if let Some(families) = Families::new(&self.program, 0) {
            let placement = online(&families.blocks());
            let places: Vec<(u32, u64)> =
                families.list.iter().zip(&placement.offsets).map(|(f, &offset)| (f.root.0, offset)).collect();
            self.place(Allocation { size: Bytes(placement.heap), ..Allocation::default() }, &places);
        }
        self.program.computations = vec![Computation {
            number: 1,
            start: 0,
            end: rows.len() as u32,
            root: rows.last().copied().unwrap_or(NO_ROW),
            schedule: rows,
            is_scheduled: true,
        }];
        self.program.entry = Some(ComputationId(0));
        self.program.has_buffer_assignment = true;
        self.program.text = ProgramTextHandle(Arc::new(self.words));
        let space = |color, bytes| Capacity { color, bytes: Bytes(bytes), evidence: "of the test".to_owned() };
        let device = Device {
            capacities: vec![space(MemorySpace::HBM, capacity), space(MemorySpace::VMEM, 128 << 20)],
            ..device
        };
        let analysis = ProgramAnalysis::new(&self.program, &device);
        let mut findings = Vec::new();
        let parts = ProgramParts::new(&analysis);
        if let Some(scene) = parts.scenes(&self.program, &analysis, &device).find(|s| s.space.color == MemorySpace::HBM)
        {
            rule(&ProgramContext::new(0, scene, None, Stop::NEVER), &mut findings);
        }
        findings
    }
}
