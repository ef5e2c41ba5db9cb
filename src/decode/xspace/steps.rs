//! The training step of each host event, found as in XProf: events nest by time on their thread, producers lead to
//! consumers on other threads, and everything below an event marked as a root is one step.

use std::collections::HashMap;

/// What the grouping needs of an event.
#[derive(Debug, Clone, Copy, Default)]
pub struct Node {
    /// Begin, in picoseconds.
    pub start: i64,
    /// Duration, in picoseconds.
    pub duration: i64,
    /// Rank of a root (`_r`), 0 for any other event.
    pub root_level: i64,
    /// (kind, id) of the work it produces (`_pt`, `_p`).
    pub producer: Option<(i64, u64)>,
    /// (kind, id) of the work it consumes (`_ct`, `_c`).
    pub consumer: Option<(i64, u64)>,
    /// Step, where the trace says.
    pub group: Option<i64>,
}

const NONE: u32 = u32::MAX;

/// Steps of events that stand in lines: `lines` are the ends of the lines in `nodes`, whose events are sorted by begin
/// (and, for the same begin, longest first).
pub fn group(nodes: &mut [Node], lines: &[usize]) {
    let count = nodes.len().min(NONE as usize - 1);
    let mut parent = vec![NONE; count];
    let mut first_child = vec![NONE; count];
    let mut next_sibling = vec![NONE; count];
    let mut start = 0;
    for &end in lines {
        let mut open: Vec<u32> = Vec::new();
        for at in start..end.min(count) {
            let own = nodes[at];
            while let Some(&last) = open.last() {
                let outer = nodes[last as usize];
                let inside = outer.start <= own.start
                    && own.start.saturating_add(own.duration) <= outer.start.saturating_add(outer.duration);
                if inside {
                    break;
                }
                open.pop();
            }
            if let Some(&last) = open.last() {
                parent[at] = last;
                next_sibling[at] = first_child[last as usize];
                first_child[last as usize] = at as u32;
            }
            open.push(at as u32);
        }
        start = end;
    }
    let mut consumers: HashMap<(i64, u64), Vec<u32>, foldhash::fast::RandomState> = HashMap::default();
    for (at, node) in nodes[..count].iter().enumerate() {
        if let Some(work) = node.consumer {
            consumers.entry(work).or_default().push(at as u32);
        }
    }
    let mut roots: Vec<u32> = (0..count as u32).filter(|&at| nodes[at as usize].root_level > 0).collect();
    roots.sort_by_key(|&at| (-nodes[at as usize].root_level, nodes[at as usize].start));
    let mut next_group = nodes.iter().filter_map(|node| node.group).max().map_or(0, |group| group.saturating_add(1));
    let mut queue = Vec::new();
    for root in roots {
        let level = nodes[root as usize].root_level;
        if nodes[root as usize].group.is_some() || has_outer(nodes, &parent, root, level) {
            continue;
        }
        queue.push(root);
        while let Some(at) = queue.pop() {
            let node = &mut nodes[at as usize];
            if node.group.is_some() {
                continue;
            }
            node.group = Some(next_group);
            if let Some(work) = node.producer {
                queue.extend(consumers.get(&work).into_iter().flatten());
            }
            let mut child = first_child[at as usize];
            while child != NONE {
                queue.push(child);
                child = next_sibling[child as usize];
            }
        }
        next_group = next_group.saturating_add(1);
    }
}

/// Whether an event around this one is a root of the same rank.
fn has_outer(nodes: &[Node], parent: &[u32], mut at: u32, level: i64) -> bool {
    while let Some(&outer) = parent.get(at as usize).filter(|&&outer| outer != NONE) {
        if nodes[outer as usize].root_level == level {
            return true;
        }
        at = outer;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_follow_nesting_and_hand_over() {
        let node = |start, duration| Node { start, duration, ..Node::default() };
        let mut nodes = [
            // One thread: a step with an inner root that hands work over; something between the steps; a second step.
            Node { root_level: 1, ..node(0, 100) },
            Node { root_level: 1, producer: Some((2, 7)), ..node(10, 20) },
            node(105, 1),
            Node { root_level: 1, ..node(110, 50) },
            // Another thread takes the work over, later.
            Node { consumer: Some((2, 7)), ..node(120, 30) },
            node(125, 0),
            node(155, 0),
        ];
        group(&mut nodes, &[4, 7]);
        let groups: Vec<Option<i64>> = nodes.iter().map(|node| node.group).collect();
        assert_eq!(groups, [Some(0), Some(0), None, Some(1), Some(0), Some(0), None]);
    }
}
