//! A listing as a small program: its entries are buffers with shapes, so that tables, padding and advice work on them.
//!
//! A listing says neither when a buffer lives nor where it lies: every entry counts as live at the peak, and what the
//! message counts but does not list is allocated without a buffer.

use std::collections::HashMap;
use std::sync::Arc;

use super::bfc::agrees;
use crate::model::{
    Allocation, Assigned, BufferId, Bytes, Failure, FailureKind, InstructionId, ListedAllocation, MemorySpace,
    Metadata, NO_ROW, Opcode, PrintedSize, Program, ProgramText, ProgramTextHandle, Shape, ShapeId, SourceLine,
    without_escaped_quotes,
};

/// What an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Temporary,
    Parameter,
    Output,
    Constant,
}

struct Entry {
    name: String,
    opcode: String,
    number: i64,
    size: Bytes,
    shape: Shape,
    role: Role,
    metadata: Metadata,
}

/// The program of a failure that lists buffers with shapes; `index` tells several in one text apart.
pub fn of(failure: &Failure, index: usize) -> Option<Program> {
    let entries = entries(failure);
    if entries.is_empty() {
        return None;
    }
    let color = match failure.text("space") {
        Some("vmem") => MemorySpace::VMEM,
        Some("cmem") => MemorySpace::CMEM,
        Some("smem") => MemorySpace::SMEM,
        _ => MemorySpace::HBM,
    };
    let name = match (failure.text("module"), failure.kind) {
        (Some(module), _) => module.to_owned(),
        (None, FailureKind::TpuAllocExceeds | FailureKind::TpuScopedVmem) => format!("array of message {}", index + 1),
        (None, _) => format!("listing of message {}", index + 1),
    };
    let mut program = Program { name, has_buffer_assignment: true, ..Program::default() };
    let mut texts = Vec::with_capacity(entries.len());
    let mut shapes: HashMap<Shape, ShapeId> = HashMap::new();
    let mut heap = Vec::new();
    let mut heap_size = Bytes::ZERO;
    for entry in entries {
        let row = program.buffers.len() as u32;
        let shape = *shapes.entry(entry.shape).or_insert_with_key(|shape| {
            program.shapes.push(shape.clone());
            ShapeId::from_index(program.shapes.len() - 1)
        });
        let opcode = if entry.opcode.is_empty() { Opcode::UNKNOWN } else { program.opcodes.intern(&entry.opcode) };
        program.instructions.opcode.push(opcode);
        program.instructions.shape.push(shape);
        program.instructions.argument.push(0);
        program.instructions.operands.ends.push(0);
        program.buffers.number.push(entry.number);
        program.buffers.size.push(entry.size);
        program.buffers.instruction.push(row);
        program.buffers.node.push(0);
        program.buffers.color.push(color);
        program.buffers.offset.push(0);
        if entry.role == Role::Temporary {
            program.buffers.allocation.push(NO_ROW);
            heap.push(row);
            heap_size += entry.size;
        } else {
            program.buffers.allocation.push(program.allocations.len() as u32);
            let start = program.assigned.len() as u32;
            program.assigned.push(Assigned { buffer: BufferId(row), offset: 0 });
            program.allocations.push(Allocation {
                index: program.allocations.len() as i64,
                size: entry.size,
                color,
                is_parameter: entry.role == Role::Parameter,
                is_constant: entry.role == Role::Constant,
                maybe_live_out: entry.role == Role::Output,
                parameter_number: -1,
                assigned_start: start,
                assigned_end: start + 1,
                ..Allocation::default()
            });
        }
        texts.push((entry.name, entry.metadata));
    }
    let fixed: Bytes = program.allocations.iter().map(|allocation| allocation.size).sum();
    // What the message counts beyond its entries belongs to the heap too; entries are rounded, so their sum may exceed it.
    let counted = counted(failure).unwrap_or_default().saturating_sub(fixed);
    let heap_size = if counted > heap_size { counted } else { heap_size };
    if heap_size > Bytes::ZERO {
        let allocation = program.allocations.len() as u32;
        let start = program.assigned.len() as u32;
        for &row in &heap {
            program.buffers.allocation[row as usize] = allocation;
            program.assigned.push(Assigned { buffer: BufferId(row), offset: 0 });
        }
        program.allocations.push(Allocation {
            index: i64::from(allocation),
            size: heap_size,
            color,
            assigned_start: start,
            assigned_end: program.assigned.len() as u32,
            ..Allocation::default()
        });
    }
    program.is_listing = true;
    program.text = ProgramTextHandle(Arc::new(ListingText(texts)));
    Some(program)
}

/// What the message says is needed in all.
fn counted(failure: &Failure) -> Option<Bytes> {
    match failure.kind {
        FailureKind::XlaGpuPeakBuffers => failure.bytes("total"),
        FailureKind::TpuRuntimeReserve => failure.bytes("program_requirement"),
        _ => failure.bytes("used"),
    }
}

fn entries(failure: &Failure) -> Vec<Entry> {
    let mut entries: Vec<Entry> = failure.allocations.iter().filter_map(listed).collect();
    for buffer in &failure.peak_buffers {
        let (Some(size), Some(shape)) = (&buffer.size, &buffer.shape) else { continue };
        let role = if buffer.entry_parameter { Role::Parameter } else { Role::Temporary };
        let label = buffer.label.clone().unwrap_or_default();
        entries.push(Entry {
            name: if buffer.entry_parameter {
                format!("argument (buffer {})", buffer.number)
            } else {
                format!("{label} (buffer {})", buffer.number)
            },
            opcode: if buffer.entry_parameter { "parameter".to_owned() } else { label },
            number: i64::from(buffer.number),
            size: exact(size, shape),
            shape: shape.clone(),
            role,
            metadata: metadata(buffer.op_name.as_deref(), None, buffer.source.as_ref()),
        });
    }
    if matches!(failure.kind, FailureKind::TpuAllocExceeds | FailureKind::TpuScopedVmem)
        && let (Some(size), Some(text)) = (failure.bytes("used"), failure.text("shape"))
        && let Some((shape, _)) = super::shape::parse(text)
    {
        let name = failure.text("instruction").filter(|name| !name.starts_with('<'));
        let name = name.or_else(|| failure.text("tag")).unwrap_or("array").to_owned();
        let tag = failure.text("tag");
        entries.push(Entry {
            opcode: String::new(),
            number: 1,
            size,
            shape,
            role: Role::Temporary,
            metadata: metadata(tag.filter(|tag| *tag != name), None, None),
            name,
        });
    }
    entries
}

fn listed(entry: &ListedAllocation) -> Option<Entry> {
    let (size, shape) = (entry.size.as_ref()?, entry.shape.as_ref()?);
    let opcode = entry.label.as_deref().and_then(opcode).unwrap_or_default();
    let kind = entry.allocation_type.as_deref().unwrap_or_default().to_ascii_lowercase();
    let role = if kind.contains("param") || kind.contains("argument") || opcode == "parameter" {
        Role::Parameter
    } else if kind.contains("output") {
        Role::Output
    } else if kind.contains("global") || kind.contains("constant") {
        Role::Constant
    } else {
        Role::Temporary
    };
    Some(Entry {
        name: entry.label_head.clone().unwrap_or_else(|| format!("entry {}", entry.number)),
        opcode,
        number: i64::from(entry.number),
        size: exact(size, shape),
        shape: shape.clone(),
        role,
        metadata: metadata(entry.op_name.as_deref(), entry.op_type.as_deref(), entry.source.as_ref()),
    })
}

/// To the byte where the shape says it and the printed size agrees.
fn exact(size: &PrintedSize, shape: &Shape) -> Bytes {
    let padded = shape.root().padded_size();
    padded.filter(|&bytes| size.text.as_deref().is_some_and(|text| agrees(text, bytes))).unwrap_or(size.bytes)
}

fn metadata(op_name: Option<&str>, op_type: Option<&str>, source: Option<&(String, i32)>) -> Metadata {
    let line = source.map(|(file, line)| SourceLine { file: file.clone(), line: *line, ..SourceLine::default() });
    Metadata {
        op_name: without_escaped_quotes(op_name.unwrap_or_default()),
        op_type: op_type.unwrap_or_default().to_owned(),
        stack: line.iter().cloned().collect(),
        source: line,
    }
}

/// The opcode of a label: `%copy.5 = s32[8]{0} copy(…)`, `fusion.1 = fusion(p0, p1)`.
fn opcode(label: &str) -> Option<String> {
    let (_, rest) = label.split_once(" = ")?;
    let rest = match super::shape::parse(rest) {
        Some((_, after)) => after.trim_start(),
        None => rest,
    };
    let end = rest.find('(')?;
    let word = &rest[..end];
    let is_word = !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
    is_word.then(|| word.to_owned())
}

/// Names and metadata of the entries, by row.
#[derive(Debug)]
struct ListingText(Vec<(String, Metadata)>);

impl ProgramText for ListingText {
    fn instruction_name(&self, instruction: InstructionId) -> String {
        self.0.get(instruction.index()).map(|row| row.0.clone()).unwrap_or_default()
    }
    fn metadata(&self, instruction: InstructionId) -> Metadata {
        self.0.get(instruction.index()).map(|row| row.1.clone()).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opcodes_are_found_behind_shapes() {
        assert_eq!(opcode("%copy.5 = s32[8]{0:T(8,128)} copy(p)").as_deref(), Some("copy"));
        assert_eq!(opcode("fusion.1 = fusion(p0, p1), kind=kOutput").as_deref(), Some("fusion"));
        assert_eq!(opcode("copy-start.2 = copy-start(reshape.26)").as_deref(), Some("copy-start"));
        assert_eq!(opcode("x = (f32[1]{0}, f32[1]{0}) fusion(...)").as_deref(), Some("fusion"));
        assert_eq!(opcode("deduplicated constant"), None);
    }
}
