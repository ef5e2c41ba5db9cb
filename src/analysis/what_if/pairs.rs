//! Reuse of memory: results in place of donated arguments, and results in place of operands of their instruction.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;

use super::base::Role;
use super::lodgers::{Copied, Housed};
use super::state::State;
use crate::analysis::packing::{self, Block};
use crate::model::{BufferId, EventKind, InstructionId, NO_ROW, Opcode};

/// Donated arguments of one shape, type and size that no result has reused yet, in row order.
#[derive(Debug, Default)]
struct Waiting {
    /// Donated or reshaped by an edit: any result may reuse them.
    changed: VecDeque<u32>,
    /// Unchanged from the dump, where no result reused them: only a changed result may.
    unchanged: VecDeque<u32>,
}

impl Waiting {
    /// The first argument that a result may reuse.
    fn take(&mut self, is_result_changed: bool) -> Option<u32> {
        let unchanged = self.unchanged.front().filter(|_| is_result_changed).copied();
        match (self.changed.front().copied(), unchanged) {
            (Some(changed), Some(unchanged)) if unchanged < changed => self.unchanged.pop_front(),
            (Some(_), _) => self.changed.pop_front(),
            (None, Some(_)) => self.unchanged.pop_front(),
            (None, None) => None,
        }
    }
}

/// Share of the program's bytes below which a result makes no difference.
const SMALL: u64 = 64;

impl State<'_> {
    /// Pairs donated arguments with results of the same shape, as JAX does: results in their order, each with the
    /// first argument of its shape and type.
    pub(super) fn pair(&mut self, sizes: &[u64]) {
        let memory = self.memory;
        let mut donated = vec![false; memory.base.len()];
        for &row in &self.donated {
            donated[row as usize] = true;
        }
        let mut rows: Vec<u32> = self.donated.iter().chain(&memory.donors).copied().collect();
        // In the order of the arguments, which a GPU's allocations do not have.
        let number = |row: u32| match &memory.base[row as usize].role {
            Role::Argument { number, .. } => *number,
            _ => i64::MAX,
        };
        rows.sort_unstable_by_key(|&row| (number(row), row));
        rows.dedup();
        // By the number of the array, and bytes.
        let mut waiting: HashMap<(u32, u64), Waiting, RandomState> = HashMap::default();
        // Present arrays of changed arguments, by those of the unchanged program.
        let mut now: HashMap<(u32, u64), u32, RandomState> = HashMap::default();
        for row in rows {
            let Some(item) = memory.item_of(row as usize) else { continue };
            let Some(shape) = self.shape(item) else { continue };
            let group = waiting.entry((shape.array, sizes[row as usize])).or_default();
            let is_changed = donated[row as usize] || self.is_changed(item);
            if is_changed { &mut group.changed } else { &mut group.unchanged }.push_back(row);
            let before = memory.shape_of.get(item).and_then(|&row| memory.shapes.get(row));
            if let Some(before) = before.filter(|before| before.array != shape.array) {
                now.entry((before.array, sizes[row as usize])).or_insert(shape.array);
            }
        }
        let mut hosts = 0u64;
        let (mut pairs, mut gone) = (Vec::new(), Vec::new());
        let mut lodgers: Vec<Housed> = Vec::new();
        let mut copies: Vec<Copied> = Vec::new();
        let results = if waiting.is_empty() { &[][..] } else { &memory.results };
        for result in results.iter().map(|&row| row as usize) {
            let Some(own) = memory.item_of(result) else { continue };
            let Some(shape) = self.shape(own) else { continue };
            // An unchanged result has the shape that the program returns, whatever views produced it.
            let is_changed = self.is_changed(own);
            let returned = memory.returned_array(result);
            let as_returned = if is_changed {
                // With another type, it is still a view of what is returned.
                returned.and_then(|array| now.get(&(array, sizes[result])).copied())
            } else {
                returned
            };
            let array = as_returned.unwrap_or(shape.array);
            let Some(argument) = waiting.get_mut(&(array, sizes[result])).and_then(|group| group.take(is_changed))
            else {
                continue;
            };
            // Temporaries that lie in the result before it exists need a new home. What is only the argument with a part
            // of it written is no such temporary, whatever its shape.
            if memory.roles[result].is_own {
                gone.push(result);
                pairs.push((argument, result as u32));
                // The program no longer slices a sharded argument: what was there is its own shard.
                let is_whole = !self.kinds.sharding
                    || memory.item_of(argument as usize).is_some_and(|item| self.keeps_elements(item));
                if is_whole {
                    let scaled = |size: u64| {
                        u128::from(size) * u128::from(sizes[result]) / u128::from(memory.base_bytes[result].max(1))
                    };
                    let now = |size: u64| u64::try_from(scaled(size)).unwrap_or(u64::MAX);
                    copies.extend(memory.relaid_lodgers(result).map(|copy| Copied { size: now(copy.size), ..copy }));
                    let others = memory.other_lodgers(argument as usize, result).into_iter();
                    lodgers.extend(
                        others.map(|own| Housed { block: Block { size: now(own.block.size), ..own.block }, ..own }),
                    );
                }
            } else {
                let own = memory.all_lodgers(result);
                if own.is_empty() {
                    hosts = hosts.saturating_add(sizes[result]);
                } else {
                    gone.push(result);
                    pairs.push((argument, result as u32));
                    lodgers.extend(own);
                }
            }
        }
        for result in gone {
            self.gone[result] = true;
        }
        self.pairs.append(&mut pairs);
        lodgers.extend(self.lend(copies, sizes));
        self.house(lodgers);
        if hosts > 0 {
            let text = crate::model::Bytes(hosts).short();
            self.warn(format!(
                "{text} of results are used by temporaries before they are written and are not counted as saved"
            ));
        }
        if self.kinds.donation && self.pairs.is_empty() {
            // Next to nothing, such as a loss, has memory of its own in any program.
            let is_large = |row: usize| memory.roles[row].is_own && memory.base_bytes[row] >= memory.allocated / SMALL;
            self.warn(if memory.results.iter().any(|&row| is_large(row as usize)) {
                "no donated argument has the shape and type of a result with memory of its own".to_owned()
            } else {
                "nothing is left to donate: no result of any size has memory of its own".to_owned()
            });
        }
    }

    /// Gives temporaries that have lived in the memory of results memory of their own.
    pub(super) fn house(&mut self, mut lodgers: Vec<Housed>) {
        if self.memory.is_over() {
            one_after_the_other(&mut lodgers);
        }
        let blocks: Vec<Block> = lodgers.iter().map(|own| own.block).collect();
        let bytes = if blocks.is_empty() { 0 } else { packing::most_live(&blocks).0 };
        if bytes == 0 {
            return;
        }
        let text = crate::model::Bytes(bytes).short();
        self.warn(format!(
            "{text} of temporaries occupy the memory of results before these are written, and will need memory of their own"
        ));
        let largest = blocks.iter().map(|block| block.size).max().unwrap_or_default();
        self.largest_housed = self.largest_housed.max(largest);
        let memory = self.memory;
        if memory.families.list.is_empty() {
            self.homeless = self.homeless.saturating_add(bytes);
            return;
        }
        let row = |own: &Housed| (own.block.size, own.block.start, own.block.end, memory.row_of_other(own.buffer));
        self.added.extend(lodgers.iter().map(row));
    }

    /// Whether an item has as many elements as in the unchanged program.
    fn keeps_elements(&self, item: usize) -> bool {
        if !self.is_changed(item) {
            return self.shape(item).is_some();
        }
        let before = self.memory.shape_of.get(item).and_then(|&row| self.memory.shapes.get(row));
        self.shape(item)
            .zip(before)
            .is_some_and(|(now, before)| now.node.element_count() == before.node.element_count())
    }

    /// Lets results reuse the memory of an operand of their instruction where both now have the same size.
    pub(super) fn share_in_place(&mut self, sizes: &[u64]) {
        let memory = self.memory;
        let events = match self.trace() {
            Some(trace) => &self.program.traces[trace].events,
            None => return,
        };
        let mut taken = vec![false; self.spans.len()];
        for f in 0..self.spans.len() {
            let family = memory.families.list[f];
            let Some(instruction) = self.program.buffers.instruction_of(family.root) else { continue };
            for event in events.iter().skip(family.first as usize + 1) {
                let buffer = BufferId(event.buffer);
                if event.kind != EventKind::Free {
                    if self.program.buffers.instruction_of(buffer) == Some(instruction) {
                        continue;
                    }
                    break;
                }
                let Some(g) = memory.families.of(buffer) else { continue };
                let other = memory.families.list[g];
                let fits = g != f
                    && !taken[g]
                    && sizes[f] == sizes[g]
                    && family.size != other.size
                    && sizes[f] > 0
                    && self.spans[g].1 == 2 * other.last
                    && self.spans[f].0 == 2 * family.first
                    && other.last > family.first;
                if fits && self.reads(instruction, g) {
                    taken[g] = true;
                    self.spans.to_mut()[f].0 = (self.spans[g].1 + 1).min(self.spans[f].1);
                    break;
                }
            }
        }
    }

    fn trace(&self) -> Option<usize> {
        let root = self.memory.families.list.first()?.root;
        self.program.traces.iter().position(|trace| trace.events.iter().any(|event| event.buffer == root.0))
    }

    /// Whether an instruction reads a member of a family, through views.
    fn reads(&self, instruction: InstructionId, family: usize) -> bool {
        let program = self.program;
        program.instructions.operands_of(instruction).iter().any(|&operand| {
            let mut row = operand;
            for _ in 0..16 {
                if row == NO_ROW {
                    return false;
                }
                let own = InstructionId(row);
                if self.memory.makes(own, family) {
                    return true;
                }
                match program.instructions.opcode.get(row as usize) {
                    Some(&(Opcode::BITCAST | Opcode::GET_TUPLE_ELEMENT | Opcode::COPY_DONE)) => {
                        row = program.instructions.operands_of(own).first().copied().unwrap_or(NO_ROW);
                    }
                    _ => return false,
                }
            }
            false
        })
    }
}

/// Of those that come and go between two events of the heap, one after the other as the compiler orders a program that
/// fits, keeps the largest two: one is there until the next is made.
fn one_after_the_other(lodgers: &mut Vec<Housed>) {
    lodgers.sort_by_key(|Housed { block, .. }| (block.start, block.end, Reverse(block.size)));
    let mut same = 0;
    let mut before = None;
    lodgers.retain(|Housed { block, .. }| {
        same = if before == Some((block.start, block.end)) { same + 1 } else { 0 };
        before = Some((block.start, block.end));
        block.start < block.end || same < 2
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_that_may_be_taken_is() {
        let mut waiting = Waiting { changed: [3, 5].into(), unchanged: [1, 4].into() };
        assert_eq!(waiting.take(false), Some(3));
        assert_eq!(waiting.take(true), Some(1));
        assert_eq!(waiting.take(true), Some(4));
        assert_eq!((waiting.take(true), waiting.take(true)), (Some(5), None));
    }

    #[test]
    fn what_comes_and_goes_between_two_events_is_there_one_after_the_other() {
        let lives = [(5, 7, 7), (9, 7, 7), (8, 7, 7), (4, 7, 9), (3, 7, 9), (2, 7, 9)];
        let housed = |(size, start, end)| Housed { block: Block { size, start, end }, buffer: BufferId(0) };
        let mut lodgers: Vec<Housed> = lives.into_iter().map(housed).collect();
        one_after_the_other(&mut lodgers);
        let left: Vec<_> = lodgers.iter().map(|own| (own.block.size, own.block.start, own.block.end)).collect();
        assert_eq!(left, [(9, 7, 7), (8, 7, 7), (4, 7, 9), (3, 7, 9), (2, 7, 9)]);
    }
}
