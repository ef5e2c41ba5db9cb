//! Which merges are a value of their own, and which only pass on another: as `PhiGraph::Optimize` of XLA
//! (`xla/service/hlo_phi_graph.cc`) finds it, step by step, since XLA's buffers follow from that.
//!
//! XLA does not find them all: where a merge is replaced, what reads it does not become known to its replacement, so
//! that it goes on reading what is gone when that is replaced in turn. It happens where a loop passes on what another
//! merge defines through an inner loop: it has copies of one value on record. A linear search for all of them
//! would therefore be more exact, and different.

use crate::analysis::stop::{Stop, Stopped};

/// Marks a merge among values: the rest is its row.
pub const MERGE: u32 = 1 << 31;

/// Work after which the search ends, for each merge: a program made by a compiler takes a handful, and what is left
/// stays a value of its own.
const MOST_STEPS: usize = 2000;

/// A merge of several values.
struct Node {
    /// The values that it merges: rows of nodes, with [`MERGE`] for other merges.
    operands: Vec<u32>,
    /// Rows of merges that read this one, as far as they are known.
    users: Vec<u32>,
    /// What stands in its place.
    replaced: Option<u32>,
}

/// What each merge stands for, by row: a value, or a merge, its own or another one. `inputs` are the values that each
/// merges, in the order in which XLA creates them.
///
/// # Errors
/// If it was stopped.
pub fn optimized(inputs: Vec<Vec<u32>>, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
    let mut graph = Graph::new(inputs);
    graph.optimize(stop)?;
    Ok((0..graph.nodes.len() as u32).map(|row| graph.end_of(MERGE | row)).collect())
}

struct Graph {
    nodes: Vec<Node>,
    /// Work left.
    steps: usize,
}

impl Graph {
    fn new(inputs: Vec<Vec<u32>>) -> Self {
        let steps = inputs.len().saturating_mul(MOST_STEPS);
        let mut users: Vec<Vec<u32>> = vec![Vec::new(); inputs.len()];
        for (row, operands) in inputs.iter().enumerate() {
            for operand in operands.iter().filter(|operand| *operand & MERGE != 0) {
                users[(operand & !MERGE) as usize].push(row as u32);
            }
        }
        let nodes = inputs.into_iter().zip(users);
        let nodes = nodes.map(|(operands, users)| Node { operands, users, replaced: None }).collect();
        Self { nodes, steps }
    }

    /// Follows replacements to their end.
    fn end_of(&self, mut value: u32) -> u32 {
        while value & MERGE != 0
            && let Some(next) = self.nodes[(value & !MERGE) as usize].replaced
        {
            value = next;
        }
        value
    }

    fn optimize(&mut self, stop: Stop<'_>) -> Result<(), Stopped> {
        let mut is_changed = true;
        while is_changed && self.steps > 0 {
            is_changed = false;
            let mut checked = vec![false; self.nodes.len()];
            for row in 0..self.nodes.len() as u32 {
                stop.check()?;
                let node = &mut self.nodes[row as usize];
                self.steps = self.steps.saturating_sub(1);
                if node.replaced.is_some() {
                    continue;
                }
                node.operands.retain(|&operand| operand != MERGE | row);
                node.users.retain(|&user| user != row);
                let Some(&first) = node.operands.first() else { continue };
                if node.operands.iter().all(|&operand| operand == first) {
                    self.replace(row, first);
                    is_changed = true;
                } else if !checked[row as usize]
                    && let Some((only, circle)) = self.circle_around(row, &mut checked)
                {
                    for row in circle {
                        self.replace(row, only);
                    }
                    is_changed = true;
                }
            }
        }
        Ok(())
    }

    /// Puts a value in the place of a merge for the known readers of the merge.
    fn replace(&mut self, row: u32, by: u32) {
        for user in std::mem::take(&mut self.nodes[row as usize].users) {
            let operands = &mut self.nodes[user as usize].operands;
            self.steps = self.steps.saturating_sub(operands.len());
            operands.iter_mut().filter(|operand| **operand == MERGE | row).for_each(|operand| *operand = by);
        }
        // It reads nothing any more; its readers do not become those of `by`.
        for at in 0..self.nodes[row as usize].operands.len() {
            let operand = self.nodes[row as usize].operands[at];
            if operand & MERGE != 0 {
                let users = &mut self.nodes[(operand & !MERGE) as usize].users;
                self.steps = self.steps.saturating_sub(users.len());
                users.retain(|&user| user != row);
            }
        }
        let node = &mut self.nodes[row as usize];
        // A circle may contain merges that were replaced before: these stay what they are.
        node.replaced.get_or_insert(by);
    }

    /// The only value that reaches a merge through any others, and all these merges; `None` if several do.
    fn circle_around(&mut self, row: u32, checked: &mut [bool]) -> Option<(u32, Vec<u32>)> {
        let mut only = None;
        let mut circle = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut queue = std::collections::VecDeque::from([MERGE | row]);
        while let Some(value) = queue.pop_front() {
            self.steps = self.steps.saturating_sub(1);
            if self.steps == 0 {
                return None;
            }
            if !seen.insert(value) {
                continue;
            }
            if value & MERGE == 0 {
                if only.is_some_and(|other| other != value) {
                    return None;
                }
                only = Some(value);
                continue;
            }
            let row = value & !MERGE;
            checked[row as usize] = true;
            circle.push(row);
            queue.extend(&self.nodes[row as usize].operands);
        }
        Some((only?, circle))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn optimized(inputs: Vec<Vec<u32>>) -> Vec<u32> {
        super::optimized(inputs, Stop::NEVER).unwrap_or_default()
    }

    const fn m(row: u32) -> u32 {
        MERGE | row
    }

    #[test]
    fn merges_of_one_value_dissolve() {
        // The parameter of a loop's body that is passed on unchanged, and the loop's result.
        assert_eq!(optimized(vec![vec![7, m(0)], vec![m(0), 7]]), [7, 7]);
        assert_eq!(optimized(vec![vec![7, 8]]), [m(0)]);
        // A circle that only one value reaches.
        assert_eq!(optimized(vec![vec![m(1), m(2)], vec![m(2), 9], vec![m(0), m(1)]]), [9, 9, 9]);
        assert_eq!(optimized(Vec::new()), [0; 0]);
    }

    #[test]
    fn what_an_inner_loop_passes_on_stays_on_record_twice_if_a_merge_defines_it() {
        // 0: a merge of two values, which two nested loops pass on unchanged. 1 to 3: condition, body and result of the
        // inner loop, 4 to 6 those of the outer one.
        let nested = |init: u32| {
            vec![
                vec![7, 8],
                vec![m(5), m(2)],
                vec![m(5), m(2)],
                vec![m(2), m(5)],
                vec![init, m(3)],
                vec![init, m(3)],
                vec![m(3), init],
            ]
        };
        assert_eq!(optimized(nested(m(0))), [m(0), m(0), m(0), m(0), m(4), m(0), m(6)]);
        assert_eq!(optimized(nested(9)), [m(0), 9, 9, 9, 9, 9, 9], "a value itself does not");
    }
}
