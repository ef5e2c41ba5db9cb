//! Operations of the forward pass that only the backward pass needs and that the compiler runs with a later layer, such as
//! the sums of a softmax: they belong to the layer whose values they read.

use crate::analysis::flow::hands_on;
use crate::analysis::layer_use::Mark;
use crate::analysis::live_range::LiveRanges;
use crate::model::{FastMap, InstructionId, NO_ROW, Program};

/// Where the values come from that an instruction hands on or reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    /// From no operation of the forward pass: arguments and constants.
    Outside,
    /// From the operations of one layer, or of none.
    Layer(Option<u32>),
    /// From those of several.
    Several,
}

impl Source {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Outside, other) => other,
            (own, Self::Outside) => own,
            (own, other) if own == other => own,
            _ => Self::Several,
        }
    }
}

/// Adds the layers of such operations to those of operations that run with other layers than their own. `marks` are the
/// operations of the forward pass that read arguments, with their points; `end` is the point at which it ends, `layer_at`
/// tells the layer that runs at a point.
pub(super) fn add_backward_only(
    program: &Program,
    live: &LiveRanges,
    (marks, end): (&[(u32, &Mark)], u32),
    layer_at: impl Fn(u32) -> Option<u32>,
    layers: &mut FastMap<InstructionId, u32>,
) {
    let sequence = live.sequence();
    let forward = Forward {
        sequence: &sequence[..sequence.len().min(end as usize)],
        rows: program.instructions.opcode.len(),
        operands: |row| program.instructions.operands_of(InstructionId(row)),
        hands_on: |row| hands_on(program, InstructionId(row)),
        layer_at,
    };
    let reads: Vec<(u32, Option<u32>)> = marks.iter().map(|(_, mark)| (mark.at.0, mark.layer)).collect();
    forward.backward_only(&reads, |row, layer| {
        layers.entry(InstructionId(row)).or_insert(layer);
    });
}

/// The operations of the forward pass.
struct Forward<'a, Operands, HandsOn, LayerAt> {
    /// Their rows, in program order.
    sequence: &'a [u32],
    /// Number of all instructions.
    rows: usize,
    /// The operands of an instruction.
    operands: Operands,
    /// Whether an instruction only hands on its operand.
    hands_on: HandsOn,
    /// The layer that runs at a point.
    layer_at: LayerAt,
}

impl<'a, Operands, HandsOn, LayerAt> Forward<'a, Operands, HandsOn, LayerAt>
where
    Operands: Fn(u32) -> &'a [u32],
    HandsOn: Fn(u32) -> bool,
    LayerAt: Fn(u32) -> Option<u32>,
{
    /// Operations that none of `marks` needs and that run while another layer does than the one whose values they read,
    /// with that layer. The last layer is left out: what follows on it is no layer, but reads its result.
    fn backward_only(&self, marks: &[(u32, Option<u32>)], mut found: impl FnMut(u32, u32)) {
        let Some(last) = marks.iter().rev().find_map(|mark| mark.1) else { return };
        let is_needed = self.needed_by(marks);
        let mut from = vec![Source::Outside; self.rows];
        for (point, &row) in (0..).zip(self.sequence) {
            let operands = (self.operands)(row).iter().filter(|&&operand| operand != NO_ROW);
            let is_first = operands.clone().next().is_none();
            let read =
                operands.filter_map(|&row| from.get(row as usize)).fold(Source::Outside, |all, &one| all.and(one));
            from[row as usize] = match read {
                read if (self.hands_on)(row) => read,
                Source::Outside if is_first || !is_needed[row as usize] => Source::Outside,
                Source::Layer(Some(layer)) if !is_needed[row as usize] && layer != last => {
                    if (self.layer_at)(point) != Some(layer) {
                        found(row, layer);
                    }
                    read
                }
                _ => Source::Layer((self.layer_at)(point)),
            };
        }
    }

    /// Whether each instruction is one of the marks, or one needs its result.
    fn needed_by(&self, marks: &[(u32, Option<u32>)]) -> Vec<bool> {
        let mut is_needed = vec![false; self.rows];
        for mark in marks {
            is_needed[mark.0 as usize] = true;
        }
        for &row in self.sequence.iter().rev() {
            if !is_needed[row as usize] {
                continue;
            }
            for &operand in (self.operands)(row) {
                if let Some(needed) = is_needed.get_mut(operand as usize) {
                    *needed = true;
                }
            }
        }
        is_needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_the_backward_pass_needs_belongs_to_the_layer_whose_values_it_reads() {
        // Weights 0 to 2; scores 3, their sum 8, which runs with the second layer, and a copy of it 9; products 4, 6 and 7.
        let operands: [&[u32]; 11] = [&[], &[], &[], &[0], &[3], &[4], &[1, 5], &[2, 6], &[3], &[8], &[6, 8]];
        let forward = Forward {
            sequence: &[0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 7],
            rows: operands.len(),
            operands: |row| operands[row as usize],
            hands_on: |row| row == 9,
            layer_at: |point| match point {
                0..3 => None,
                3..6 => Some(0),
                6..10 => Some(1),
                _ => Some(2),
            },
        };
        let mut found = Vec::new();
        forward.backward_only(&[(3, Some(0)), (6, Some(1)), (7, Some(2))], |row, layer| found.push((row, layer)));
        assert_eq!(found, [(8, 0)], "10 reads values of two layers, 5 is needed");
    }
}
