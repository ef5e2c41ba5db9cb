//! Builds a program from a report that names buffers but has no instructions: each named value becomes an instruction
//! row with the properties in the report.

use std::collections::HashMap;
use std::sync::Arc;

use crate::model::{
    Allocation, Assigned, BufferId, Bytes, InstructionId, MemorySpace, Metadata, NO_ROW, Opcode, Program, ProgramText,
    ProgramTextHandle, Shape, ShapeId,
};

/// A named value in a report.
#[derive(Debug, Clone, Default)]
pub struct Named {
    /// `instruction` or `instruction{i,j}`.
    pub name: String,
    /// Shape of the value, where the report has it.
    pub shape: Option<Shape>,
    /// Opcode; empty where it is not known.
    pub opcode: String,
    /// Where it comes from.
    pub metadata: Metadata,
}

/// A program being built.
#[derive(Debug, Default)]
pub struct Assembler {
    program: Program,
    names: Vec<String>,
    metadata: HashMap<u32, Metadata>,
    rows: HashMap<String, u32>,
    shapes: HashMap<Shape, ShapeId>,
    assigned: Vec<(u32, Assigned)>,
}

impl Assembler {
    /// A program of a name.
    pub fn new(name: impl Into<String>) -> Self {
        let program = Program { name: name.into(), has_buffer_assignment: true, ..Program::default() };
        Self { program, ..Self::default() }
    }

    /// The row of a name; for a known name the first properties are kept.
    pub fn instruction(&mut self, named: Named) -> u32 {
        if let Some(&row) = self.rows.get(&named.name) {
            return row;
        }
        let row = self.names.len() as u32;
        let shape = self.shape(named.shape.unwrap_or_default());
        let opcode = if named.opcode.is_empty() { Opcode::UNKNOWN } else { self.program.opcodes.intern(&named.opcode) };
        let columns = &mut self.program.instructions;
        columns.opcode.push(opcode);
        columns.shape.push(shape);
        columns.argument.push(0);
        columns.operands.ends.push(0);
        if named.metadata != Metadata::default() {
            self.metadata.insert(row, named.metadata);
        }
        self.rows.insert(named.name.clone(), row);
        self.names.push(named.name);
        row
    }

    fn shape(&mut self, shape: Shape) -> ShapeId {
        if let Some(&id) = self.shapes.get(&shape) {
            return id;
        }
        let id = ShapeId::from_index(self.program.shapes.len());
        self.program.shapes.push(shape.clone());
        self.shapes.insert(shape, id);
        id
    }

    /// Adds a buffer.
    pub fn buffer(&mut self, number: i64, size: Bytes, color: MemorySpace, named: Named) -> BufferId {
        let has_shape = named.shape.is_some();
        let instruction = self.instruction(named);
        let buffers = &mut self.program.buffers;
        let id = BufferId::from_index(buffers.len());
        buffers.number.push(number);
        buffers.size.push(size);
        buffers.instruction.push(instruction);
        buffers.node.push(if has_shape { 0 } else { NO_ROW });
        buffers.color.push(color);
        buffers.allocation.push(NO_ROW);
        buffers.offset.push(0);
        id
    }

    /// Adds an allocation; returns its row.
    pub fn allocation(&mut self, allocation: Allocation) -> u32 {
        self.program.allocations.push(allocation);
        self.program.allocations.len() as u32 - 1
    }

    /// Puts a buffer into an allocation.
    pub fn assign(&mut self, allocation: u32, buffer: BufferId, offset: u64) {
        self.program.buffers.allocation[buffer.index()] = allocation;
        self.program.buffers.offset[buffer.index()] = offset;
        self.assigned.push((allocation, Assigned { buffer, offset }));
    }

    /// The program so far, for changes that need no index updates.
    pub const fn program(&mut self) -> &mut Program {
        &mut self.program
    }

    /// The program.
    #[must_use]
    pub fn finish(mut self) -> Program {
        self.assigned.sort_by_key(|(allocation, _)| *allocation);
        for (row, allocation) in self.program.allocations.iter_mut().enumerate() {
            let row = row as u32;
            allocation.assigned_start = self.assigned.partition_point(|(of, _)| *of < row) as u32;
            allocation.assigned_end = self.assigned.partition_point(|(of, _)| *of <= row) as u32;
        }
        self.program.assigned = self.assigned.into_iter().map(|(_, assigned)| assigned).collect();
        self.program.text = ProgramTextHandle(Arc::new(ReportText { names: self.names, metadata: self.metadata }));
        self.program
    }
}

#[derive(Debug)]
struct ReportText {
    names: Vec<String>,
    metadata: HashMap<u32, Metadata>,
}

impl ProgramText for ReportText {
    fn instruction_name(&self, instruction: InstructionId) -> String {
        self.names.get(instruction.index()).cloned().unwrap_or_default()
    }
    fn metadata(&self, instruction: InstructionId) -> Metadata {
        self.metadata.get(&instruction.0).cloned().unwrap_or_default()
    }
}

/// Lines of a text with the offset of each, without line ends.
pub fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let mut offset = 0u64;
    text.split_inclusive('\n').map(move |line| {
        let at = offset;
        offset += line.len() as u64;
        (at, line.trim_end_matches(['\n', '\r']))
    })
}

/// A size as XLA's reports write it: `512B`, `1.0KiB`, `16.00MiB`. Rounded, as it was printed.
#[must_use]
pub fn human_bytes(text: &str) -> Option<Bytes> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "PiB" => 1 << 50,
        _ => return None,
    };
    let bytes = number.parse::<f64>().ok()? * factor as f64;
    (bytes.is_finite() && (0.0..18e18).contains(&bytes)).then(|| Bytes(bytes.round() as u64))
}

/// The module a dump file is about, from its name: `jit_step` of `module_0007.jit_step.cl_1.after_optimizations…`.
#[must_use]
pub fn module_name(file_name: &str) -> String {
    crate::source::DumpName::parse(file_name)
        .map(|name| {
            let rest = name.stem.trim_start_matches(&name.module).trim_start_matches('.').to_owned();
            match rest.rsplit_once(".cl_") {
                Some((head, tail)) if tail.bytes().all(|b| b.is_ascii_digit()) => head.to_owned(),
                _ => rest,
            }
        })
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_printed() {
        assert_eq!(human_bytes("  64.00MiB"), Some(Bytes(64 << 20)));
        assert_eq!(human_bytes("512B"), Some(Bytes(512)));
        assert_eq!(human_bytes("1.5KiB"), Some(Bytes(1536)));
        assert_eq!(human_bytes("12"), None);
        assert_eq!(human_bytes("1e400GiB"), None);
    }

    #[test]
    fn names_of_modules() {
        assert_eq!(module_name("module_0007.jit_step.cl_12.after_optimizations-live-range.txt"), "jit_step");
        assert_eq!(module_name("module_0030.jit_f.cpu_after_optimizations-buffer-assignment.txt"), "jit_f");
        assert_eq!(module_name("x.txt"), "");
    }
}
