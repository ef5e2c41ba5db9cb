//! What layers hand on as a sum: the compiler lets the next layer read the parts of it, but a checkpoint keeps the sum alone.

use std::collections::BTreeMap;

use super::segments::Named;
use super::turn::Turn;
use crate::model::{FastMap, InstructionId, Program};

/// Families that others' checkpoints do not keep, as these keep the sum of them and others, with the time of the last read
/// in the forward pass and the segments that so read them.
pub(super) type Summed = FastMap<u32, (u32, Vec<u32>)>;

/// Leaves one of the inputs of a segment that it reads together and adds up: the largest, and of equal ones the last. The
/// others are returned. `of_read` are the segments that read, `of_family` those that families are made in.
pub(super) fn keep_sums(
    program: &Program,
    Named { families, .. }: Named<'_>,
    turn: &Turn,
    (of_read, of_family): (&[Option<u32>], &[Option<u32>]),
    inputs: &mut Vec<(u32, u32)>,
) -> Summed {
    let elements = |family: u32| {
        let node = program.buffer_node(families.list.get(family as usize)?.root)?;
        (!node.is_tuple()).then(|| node.element_count())
    };
    // What one operation reads of other segments: segment, operation, number of elements and family.
    let mut read: Vec<(u32, u32, u64, u32)> = Vec::new();
    for (read_row, segment) in turn.reads().iter().zip(of_read) {
        let Some(segment) = *segment else { continue };
        let is_of_another =
            of_family.get(read_row.family as usize).copied().flatten().is_some_and(|own| own != segment);
        if is_of_another && inputs.binary_search(&(read_row.family, segment)).is_ok() {
            let Some(count) = elements(read_row.family) else { continue };
            read.push((segment, read_row.reader, count, read_row.family));
        }
    }
    read.sort_unstable();
    read.dedup();
    let made_in = |family: u32| of_family.get(family as usize).copied().flatten();
    let mut summed = Summed::default();
    for own in read.chunk_by(|a, b| a.0 == b.0) {
        // The sum that each input of the segment is part of, by the first input found in it.
        let mut sums: BTreeMap<u32, u32> = BTreeMap::new();
        for together in own.chunk_by(|a, b| (a.1, a.2) == (b.1, b.2)).filter(|together| together.len() > 1) {
            if !only_adds(program, InstructionId(together[0].1)) {
                continue;
            }
            let known = together.iter().find_map(|read| sums.get(&read.3).copied());
            let sum = known.unwrap_or(together[0].3);
            for read in together {
                if let Some(other) = sums.insert(read.3, sum).filter(|&other| other != sum) {
                    sums.values_mut().filter(|of| **of == other).for_each(|of| *of = sum);
                }
            }
        }
        // Where the sum is there as well, it is read beside the parts.
        let parts: BTreeMap<(u64, Option<u32>), u32> =
            sums.iter().filter_map(|(&family, &sum)| Some(((elements(family)?, made_in(family)), sum))).collect();
        for &(.., count, family) in own {
            if let Some(&sum) = parts.get(&(count, made_in(family))) {
                sums.entry(family).or_insert(sum);
            }
        }
        let mut kept: BTreeMap<u32, (u64, u32, u32)> = BTreeMap::new();
        for (&family, &sum) in &sums {
            let of = families.list.get(family as usize).map_or((0, 0, family), |of| (of.size, of.first, family));
            let best = kept.entry(sum).or_insert(of);
            *best = of.max(*best);
        }
        for (family, sum) in sums {
            if kept.get(&sum).is_some_and(|best| best.2 != family) {
                summed.entry(family).or_default().1.push(own[0].0);
            }
        }
    }
    inputs.retain(|(family, segment)| summed.get(family).is_none_or(|part| !part.1.contains(segment)));
    // What another segment keeps is not computed again.
    summed.retain(|&family, (last, _)| {
        *last = turn.reads()[turn.reads_of(family)].last().map_or(0, |read| read.time);
        let from = inputs.partition_point(|input| input.0 < family);
        inputs.get(from).is_none_or(|input| input.0 != family)
    });
    summed
}

/// Whether an operation adds, and puts no arrays side by side, as a dense block does with the results of all layers before.
fn only_adds(program: &Program, at: InstructionId) -> bool {
    let called = program.instructions.called_by(at).iter();
    let called = called.filter_map(|called| program.computations.get(called.index()));
    let rows = called.flat_map(|of| of.start..of.end).chain(std::iter::once(at.0));
    let mut adds = false;
    for row in rows {
        match program.opcode_name(InstructionId(row)) {
            "concatenate" => return false,
            "add" => adds = true,
            _ => {}
        }
    }
    adds
}
