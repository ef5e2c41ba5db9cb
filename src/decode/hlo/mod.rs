//! XLA's HLO protos (`*.hlo.pb`, `*.hlo_proto.pb`): a compiled program, with its buffer assignment in the dumps made
//! after optimisation.
//!
//! A first pass locates every record while another thread reads the buffer assignment; then several threads decode the
//! instructions into columns. Names and metadata are read from the file's bytes on demand.

mod argument_names;
mod assignment;
mod dimensions;
mod directory;
mod fields;
mod glance;
mod ids;
mod instructions;
mod joining;
mod region;
mod shapes;
mod small;
mod text;
mod tuple_argument;

use std::collections::HashMap;
use std::sync::Arc;

use assignment::Assignment;
use directory::{Directory, Schedule};
pub use glance::{glance, glance_file, is_whole_file};
use ids::{ComputationEntry, IdIndex};
use region::Region;
use shapes::Interner;
use small::Small;
pub use small::proto;

use super::decoder::{Context, DecodeError, Decoder, Family, Reads};
use super::reporter::Reporter;
use super::wire::{LEN, Reader, VARINT, WireError, field};
use crate::model::{
    Buffers, Computation, ComputationId, FastMap, NO_ROW, Profile, Program, ProgramText as _, ProgramTextHandle, Shape,
    ShapeId, SparseLists, percent,
};
use crate::source::{Cancelled, Input, Progress, SharedBytes, Stage};

/// Size in bytes from which decoding uses several threads.
const PARALLEL_FROM: usize = 1 << 20;

/// More threads than this do not help.
const MAX_THREADS: usize = 8;

/// Why an input is not an HLO proto.
#[derive(Debug, thiserror::Error)]
pub enum HloError {
    /// The bytes do not follow the format.
    #[error("{0}")]
    Wire(#[from] WireError),
    /// The bytes are valid protobuf, but contain no module.
    #[error("it contains no HLO module")]
    NoModule,
    /// A protobuf message cannot be this large.
    #[error("larger than a protobuf message can be (2 GiB)")]
    TooLarge,
    /// Cancelled.
    #[error("cancelled")]
    Cancelled(#[from] Cancelled),
}

/// Whether a file may be an HLO proto, by its first bytes: `HloProto` whose module begins with a name and the name of
/// the entry computation. Cheap, and wrong only for other protobufs of just this form.
#[must_use]
pub fn recognises(head: &[u8]) -> bool {
    let mut reader = Reader::new(head, 0);
    let Ok(Some(tag)) = reader.tag() else { return false };
    match field(tag) {
        (fields::hlo_proto::HLO_MODULE, LEN) => {
            reader.bytes_or_rest().is_ok_and(|(module, whole)| looks_like_module(module, !whole))
        }
        // A buffer assignment first is legal.
        (fields::hlo_proto::BUFFER_ASSIGNMENT, LEN) => {
            let Ok((assignment, whole)) = reader.bytes_or_rest() else { return false };
            if whole && let Ok(Some(tag)) = reader.tag() {
                return field(tag) == (fields::hlo_proto::HLO_MODULE, LEN);
            }
            // Logical buffers with an id come first.
            let mut assignment = Reader::new(assignment, 0);
            matches!(assignment.tag(), Ok(Some(tag)) if field(tag) == (fields::assignment::LOGICAL_BUFFERS, LEN))
        }
        _ => false,
    }
}

fn looks_like_module(module: &[u8], cut: bool) -> bool {
    let mut reader = Reader::new(module, 0);
    let mut named = false;
    let mut fields = 0;
    while let Ok(Some(tag)) = reader.tag() {
        match field(tag) {
            (fields::module::NAME, LEN) => match reader.bytes() {
                Ok(name) => named = !name.is_empty() && name.len() < 4096 && std::str::from_utf8(name).is_ok(),
                Err(_) => return false,
            },
            (fields::module::ENTRY_COMPUTATION_NAME, LEN) if named => {
                return reader.bytes().map_or(cut, |name| std::str::from_utf8(name).is_ok());
            }
            (fields::module::COMPUTATIONS, LEN) if named => {
                let Ok((bytes, _)) = reader.bytes_or_rest() else { return cut };
                let mut computation = Reader::new(bytes, 0);
                return matches!(computation.tag(), Ok(Some(tag)) if matches!(field(tag), (fields::computation::NAME | fields::computation::INSTRUCTIONS, LEN)));
            }
            (1..=30, VARINT | LEN) => {
                if reader.skip(tag).is_err() {
                    return named && cut;
                }
            }
            _ => return false,
        }
        fields += 1;
        if fields > 64 {
            return named;
        }
    }
    named && cut
}

/// Decodes an HLO proto.
///
/// # Errors
/// If it contains no module, or was cancelled. Damage further inside goes to the reporter, and what could be read is
/// returned.
pub fn decode(bytes: &SharedBytes, progress: &Progress, reporter: &Reporter) -> Result<Program, HloError> {
    if bytes.len() > i32::MAX as usize {
        return Err(HloError::TooLarge);
    }
    let (module, assignment, has_buffer_assignment) = roots(bytes, reporter)?;
    progress.begin(Stage::Decoding, 0);
    progress.check()?;

    let threads = if bytes.len() < PARALLEL_FROM {
        1
    } else {
        std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
    };
    let interner = Interner::new(progress);
    let work = || -> Result<_, Cancelled> {
        let directory = Directory::read(module.reader(), progress, reporter);
        let bytes = module.len() as u64;
        progress.begin(Stage::Decoding, bytes + 2 * bytes / instructions::LATER);
        let decoded = instructions::decode(&module, &directory, &interner, threads, progress, reporter)?;
        Ok((directory, decoded))
    };
    let (module_side, assignment) = if threads > 1 {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| Assignment::read(assignment.reader(), progress, reporter));
            let side = work();
            (side, other.join().unwrap_or_default())
        })
    } else {
        (work(), Assignment::read(assignment.reader(), progress, reporter))
    };
    let (directory, mut decoded) = module_side?;
    progress.check()?;
    let (shapes, opcodes) = interner.finish();

    let (mut small, (ids, numbers)) = rayon::join(
        || Small::read(&module, &directory, reporter),
        || {
            let ids = IdIndex::new(&decoded.computations, &decoded.odd_numbers, progress);
            let entries = decoded.computations.iter().enumerate();
            (ids, entries.map(|(i, entry)| (entry.number, i as u32)).collect::<ByNumber>())
        },
    );
    let ids = ids?;
    if !ids.irregular().is_empty() {
        instructions::mend_operands(&module, &mut decoded, &ids, progress);
    }
    let third = module.len() as u64 / instructions::LATER / 3;
    progress.advance(third)?;
    let mut instructions = decoded.instructions;
    let called = decoded.called;
    let of_instructions = &instructions.shape;
    let ((called, computations), buffers) = rayon::join(
        || {
            let called = resolve_called(called, &numbers);
            let schedule = read_schedule(&module, &directory, progress, reporter);
            // Once it was cancelled, the next step ends it.
            let _ = progress.advance(third);
            (called, computations(&decoded.computations, &schedule, &ids, progress))
        },
        || {
            let rows = find_instructions(&assignment, &ids, progress)?;
            buffers(&assignment, rows, (of_instructions, &shapes), (progress, reporter))
        },
    );
    let (computations, buffers) = (computations?, buffers?);
    instructions.called = called;
    progress.advance(third)?;
    let entry = directory
        .entry
        .and_then(|number| numbers.get(&number).copied())
        .map(ComputationId)
        .or_else(|| entry_by_name(&module, &directory, progress));
    let mut text = text::HloText {
        computations: directory.computations.iter().map(|entry| entry.offset).collect(),
        frames: small.take_frames(),
        in_order: !decoded.out_of_order,
        records: decoded.records,
        module: module.clone(),
        restored: FastMap::default(),
        op_names: text::OpNames::default(),
    };
    let mut program = Program {
        name: directory.name,
        id: (directory.module_id != 0).then(|| directory.module_id.to_string()),
        shapes,
        opcodes,
        instructions,
        computations,
        entry,
        has_buffer_assignment,
        buffers: Buffers { number: assignment.number, size: assignment.size, color: assignment.color, ..buffers },
        allocations: assignment.allocations,
        assigned: assignment.assigned,
        traces: assignment.traces,
        peak_buffers: assignment.peak_buffers,
        ..Program::default()
    };
    small.fill(&mut program);
    text.restored = argument_names::restored(&program, |at| text.is_name_lost(at), |at| text.op_name(at));
    program.text = ProgramTextHandle(Arc::new(text));
    tuple_argument::split(&mut program, reporter);
    Ok(program)
}

/// The two parts of the file: (module, buffer assignment, whether there is an assignment).
fn roots(bytes: &SharedBytes, reporter: &Reporter) -> Result<(Region, Region, bool), HloError> {
    let mut reader = Reader::new(bytes, 0);
    let (mut modules, mut assignments) = (Vec::new(), Vec::new());
    let mut read = || -> Result<(), WireError> {
        while let Some(tag) = reader.tag()? {
            match field(tag) {
                (number @ (fields::hlo_proto::HLO_MODULE | fields::hlo_proto::BUFFER_ASSIGNMENT), LEN) => {
                    let (part, missing) = reader.bytes_and_missing()?;
                    let end = reader.position();
                    let parts = if number == fields::hlo_proto::HLO_MODULE { &mut modules } else { &mut assignments };
                    parts.push((end - part.len(), end));
                    if missing > 0 {
                        let inside = if number == fields::hlo_proto::HLO_MODULE {
                            "the HLO module"
                        } else {
                            "the buffer assignment"
                        };
                        let share = percent(missing, missing.saturating_add(part.len() as u64));
                        reporter.truncated(&format!("{inside}, {share} of which is missing"), end as u64);
                    }
                }
                _ => reader.skip(tag)?,
            }
        }
        Ok(())
    };
    if let Err(error) = read() {
        if modules.is_empty() {
            return Err(error.into());
        }
        reporter.damaged(format!("the rest of the file was skipped: {}", error.what), Some(error.offset));
    }
    if modules.is_empty() {
        return Err(HloError::NoModule);
    }
    let has_assignment = !assignments.is_empty();
    Ok((Region::join(bytes, &modules), Region::join(bytes, &assignments), has_assignment))
}

/// Computations by number.
type ByNumber = HashMap<i64, u32, foldhash::fast::RandomState>;

fn read_schedule(module: &Region, directory: &Directory, progress: &Progress, reporter: &Reporter) -> Schedule {
    let mut schedule = Schedule::default();
    for &(start, end) in &directory.schedule {
        let bytes = module.get(start..end).unwrap_or(&[]);
        if let Err(error) = schedule.read(Reader::new(bytes, module.reader_at(start).offset()), progress) {
            reporter.damaged(format!("the schedule stops here: {}", error.what), Some(error.offset));
        }
    }
    schedule.finish();
    schedule
}

fn resolve_called(called: SparseLists<i64>, numbers: &ByNumber) -> SparseLists<ComputationId> {
    called.map(|number| ComputationId(numbers.get(&number).copied().unwrap_or(NO_ROW)))
}

/// Old modules give the entry computation by name only.
fn entry_by_name(module: &Region, directory: &Directory, progress: &Progress) -> Option<ComputationId> {
    let text = text::HloText {
        module: module.clone(),
        records: Vec::new(),
        in_order: false,
        computations: directory.computations.iter().map(|entry| entry.offset).collect(),
        frames: small::StackFrames::default(),
        restored: FastMap::default(),
        op_names: text::OpNames::default(),
    };
    if directory.entry_name.is_empty() {
        return None;
    }
    (0..directory.computations.len() as u32)
        .map(ComputationId)
        .take_while(|_| progress.check().is_ok())
        .find(|&id| text.computation_name(id) == directory.entry_name)
}

fn computations(
    entries: &[ComputationEntry],
    schedule: &Schedule,
    ids: &IdIndex,
    progress: &Progress,
) -> Result<Vec<Computation>, Cancelled> {
    entries
        .iter()
        .enumerate()
        .map(|(i, entry)| {
            progress.check()?;
            let row = |number: i64| ids.in_computation(i as u32, entry, number);
            let order = schedule.of(entry.number);
            Ok(Computation {
                number: entry.number,
                start: entry.start,
                end: entry.end,
                root: row(entry.root),
                is_scheduled: order.is_some(),
                schedule: order
                    .map(|order| order.iter().map(|&number| row(number)).filter(|&row| row != NO_ROW).collect())
                    .unwrap_or_default(),
            })
        })
        .collect()
}

/// Row of the defining instruction of each buffer.
fn find_instructions(assignment: &Assignment, ids: &IdIndex, progress: &Progress) -> Result<Vec<u32>, Cancelled> {
    let mut hint = 0;
    let mut rows = Vec::with_capacity(assignment.instruction.len());
    for &number in &assignment.instruction {
        progress.check()?;
        rows.push(ids.row(number, &mut hint));
    }
    Ok(rows)
}

/// Joins the buffer assignment to the instructions, whose shapes are given: what of the buffers is not in the assignment
/// itself. `instruction` holds the defining row of each.
fn buffers(
    assignment: &Assignment,
    instruction: Vec<u32>,
    (of_instructions, shapes): (&[ShapeId], &[Shape]),
    (progress, reporter): (&Progress, &Reporter),
) -> Result<Buffers, Cancelled> {
    let rows = assignment.number.len();
    let mut buffers = Buffers {
        node: Vec::with_capacity(rows),
        allocation: vec![NO_ROW; rows],
        offset: vec![0; rows],
        ..Buffers::default()
    };
    let mut unknown = 0usize;
    for (row, &instruction) in instruction.iter().enumerate() {
        progress.check()?;
        let index = assignment.index_of(row);
        let node = if instruction == NO_ROW {
            unknown += 1;
            Some(NO_ROW)
        } else if index.is_empty() {
            Some(0)
        } else {
            let shape = of_instructions.get(instruction as usize).and_then(|id| shapes.get(id.index()));
            shape.and_then(|shape| shape.find(index))
        };
        buffers.node.push(node.unwrap_or(NO_ROW));
        if node.is_none() {
            buffers.odd_index.push((row as u32, index.into()));
        }
    }
    if unknown > 0 {
        reporter.damaged(
            format!("{unknown} buffers belong to instructions that are not in the file; they are left out"),
            None,
        );
    }
    // A buffer listed in two allocations belongs to the last.
    for (i, allocation) in assignment.allocations.iter().enumerate() {
        progress.check()?;
        for assigned in &assignment.assigned[allocation.assigned_start as usize..allocation.assigned_end as usize] {
            buffers.allocation[assigned.buffer.index()] = i as u32;
            buffers.offset[assigned.buffer.index()] = assigned.offset;
        }
    }
    buffers.instruction = instruction;
    Ok(buffers)
}

/// XLA's HLO protos.
pub struct HloDecoder;

impl Decoder for HloDecoder {
    fn format(&self) -> &'static str {
        "XLA HLO proto"
    }

    fn reads(&self) -> Reads {
        Reads {
            family: Family::XlaDump,
            words: "XLA dump: a program with its memory",
            patterns: &["*.hlo.pb", "*.hlo"],
        }
    }

    fn recognises(&self, input: &Input) -> bool {
        recognises(input.head())
    }

    fn decode(&self, input: &Input, context: Context<'_>) -> Result<Profile, DecodeError> {
        let bytes = input.load(context.progress)?;
        let program = decode(&bytes, context.progress, context.reporter).map_err(|error| match error {
            HloError::Cancelled(cancelled) => cancelled.into(),
            HloError::Wire(error) => DecodeError::Damaged { what: error.what.to_owned(), offset: error.offset },
            HloError::NoModule | HloError::TooLarge => DecodeError::Damaged { what: error.to_string(), offset: 0 },
        })?;
        Ok(Profile { name: program.name.clone(), programs: vec![program], ..Profile::default() })
    }
}
