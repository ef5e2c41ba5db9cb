//! Which values the compiler computes again, recognised by the names of its instructions.

use super::memory::Memory;
use super::recomputed::Recomputed;
use crate::analysis::names::lookup::{is_rematerialised, rematerialised_at};
use crate::model::{BufferId, ElementType, EventKind, FastMap, HeapEvent, InstructionId, NO_ROW, Program, ShapeNode};

/// Most results of an instruction that are told apart.
const MOST_RESULTS: u32 = 256;

/// Which of an instruction's results a buffer is: its array, and how many like it come before. Results that nobody needs
/// are not computed again, so that the same has another index then.
type Part<'a> = (ElementType, &'a [i64], usize);

fn part_of(program: &Program, buffer: BufferId) -> Option<Part<'_>> {
    let (shape, at) = program.buffer_shape(buffer)?;
    let node = shape.nodes.get(at as usize).filter(|_| at <= MOST_RESULTS)?;
    let is_alike =
        |other: &&ShapeNode| (other.element_type, &other.dimensions) == (node.element_type, &node.dimensions);
    let before = shape.nodes.iter().take(at as usize).filter(is_alike).count();
    Some((node.element_type, &node.dimensions, before))
}

/// What the name of an array says that the compiler keeps in another layout, with less padding, until it is read.
const COMPRESSED: &str = ".remat_compressed";

/// What the compiler computes again.
pub(super) fn values_computed_again(program: &Program, memory: &Memory) -> Recomputed {
    let name = |root: BufferId| Some(program.text.instruction_name(program.buffers.instruction_of(root)?));
    // What is computed again, with where its name goes on.
    let again = |root: BufferId| {
        let name = name(root)?;
        let plain = rematerialised_at(name.as_bytes())?;
        Some((name, plain))
    };
    let roots = || memory.families.list.iter().map(|family| family.root);
    let mut values: FastMap<(String, Part<'_>), u32> = FastMap::default();
    for root in roots() {
        if let (Some((mut name, plain)), Some(part)) = (again(root), part_of(program, root)) {
            name.truncate(plain);
            let next = values.len() as u32;
            values.entry((name, part)).or_insert(next);
        }
    }
    let value = |root: BufferId| {
        let mut name = name(root)?;
        let plain = rematerialised_at(name.as_bytes());
        name.truncate(plain.unwrap_or(name.len()));
        Some((*values.get(&(name, part_of(program, root)?))?, plain.is_some()))
    };
    // What is computed again only to compute something else again is not kept where that is.
    let is_needed = |row: u32| {
        let Some(turn) = &memory.kept.turn else { return true };
        let before = turn.reads()[turn.reads_of(row)].iter().map(|read| read.reader);
        let mut readers = before.chain(turn.late_reads_of(row).map(|read| read.1)).peekable();
        readers.peek().is_none() || readers.any(|reader| !is_rematerialised(program, InstructionId(reader)))
    };
    let found = roots().zip(0u32..).map(|(root, row)| {
        let (value, is_again) = value(root).unwrap_or((NO_ROW, false));
        (value, is_again && is_needed(row))
    });
    let of_family: Vec<(u32, bool)> = found.collect();
    let is_compressed = |&row: &u32| {
        let name = memory.families.list.get(row as usize).and_then(|family| name(family.root));
        name.is_some_and(|name| name.contains(COMPRESSED))
    };
    let is_known = |row: &u32| of_family[*row as usize].0 != NO_ROW;
    let compressed = (0..of_family.len() as u32).filter(is_known).filter(is_compressed).collect();
    let handed_on = handed_on(program, memory, &of_family);
    Recomputed { of_family, values: values.len(), handed_on, compressed }
}

/// See [`Recomputed::handed_on`].
fn handed_on(program: &Program, memory: &Memory, of_family: &[(u32, bool)]) -> Vec<(u32, u32)> {
    let is_one_of_several = |family: u32| {
        let root = memory.families.list.get(family as usize).map(|family| family.root);
        root.and_then(|root| program.buffer_shape(root)).is_some_and(|(_, node)| node > 0)
    };
    let mut is_first_of_several: FastMap<u32, bool> = FastMap::default();
    let mut found = Vec::new();
    for (&(value, is_again), row) in of_family.iter().zip(0u32..).filter(|known| known.0.0 != NO_ROW) {
        let is_first = *is_first_of_several.entry(value).or_insert_with(|| is_one_of_several(row));
        let family = memory.families.list[row as usize];
        if !is_again || !is_first || is_one_of_several(row) {
            continue;
        }
        let events = program.traces.iter().map(|trace| &trace.events);
        let Some(events) = events
            .into_iter()
            .find(|events| events.get(family.first as usize).is_some_and(|event| event.buffer == family.root.0))
        else {
            continue;
        };
        let own = events.iter().zip(0u32..).take(family.last as usize).skip(family.first as usize + 1);
        let mut shared = own.filter(|(event, _)| event.kind == EventKind::ShareWith);
        let is_member = |event: &HeapEvent| memory.families.of(BufferId(event.buffer)) == Some(row as usize);
        found.extend(shared.find(|(event, _)| is_member(event)).map(|(_, at)| (row, 2 * at)));
    }
    found
}
