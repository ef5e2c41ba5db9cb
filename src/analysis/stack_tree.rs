//! Live memory as a tree of the Python stacks that allocated it, with totals at every frame; for the icicle view.

use std::collections::HashMap;

use super::live_set::{GroupBy, is_library, key_of};
use crate::model::{Bytes, LiveSet};

/// Maximum depth; deeper frames are dropped.
const MAX_DEPTH: usize = 256;

/// A frame in the stacks above it.
#[derive(Debug, Clone, Default)]
pub struct StackNode {
    /// Function name, or name of the group at the top.
    pub name: String,
    /// `file:line`; empty for a group.
    pub place: String,
    /// Function with file name and line, as shown in a box.
    pub label: String,
    /// Bytes allocated in the subtree.
    pub bytes: Bytes,
    /// Number of objects.
    pub count: u64,
    /// Bytes allocated in this frame itself.
    pub own: Bytes,
    /// Enclosing node; the root encloses itself.
    pub parent: usize,
    /// Nodes below, largest first.
    pub children: Vec<usize>,
    /// Rows of the entries allocated in this frame itself.
    pub entries: Vec<u32>,
}

/// Stacks put together from the outermost frame in; node 0 is the root.
#[derive(Debug, Clone, Default)]
pub struct StackTree {
    /// Nodes; the first is the root, children come after their parents.
    pub nodes: Vec<StackNode>,
}

impl StackTree {
    /// Puts the stacks of a live set together; with a grouping, its groups are the first row. `own_code` leaves out
    /// the frames of installed libraries, where a stack has others.
    #[must_use]
    pub fn new(set: &LiveSet, by: Option<GroupBy>, own_code: bool) -> Self {
        let mut tree = Self {
            nodes: vec![StackNode {
                name: "everything".to_owned(),
                label: "everything".to_owned(),
                ..StackNode::default()
            }],
        };
        let mut below: HashMap<(usize, Key), usize> = HashMap::new();
        // Equal frames may have several rows.
        let mut same: HashMap<(&str, &str, i32), u32> = HashMap::new();
        let frames: Vec<u32> = (0u32..)
            .zip(&set.frames)
            .map(|(row, frame)| *same.entry((&frame.function, &frame.file, frame.line)).or_insert(row))
            .collect();
        let library: Vec<bool> = set.frames.iter().map(|frame| is_library(&frame.file)).collect();
        for (row, entry) in (0u32..).zip(&set.entries) {
            let mut node = 0;
            tree.add(0, entry.bytes, entry.count);
            if let Some(by) = by {
                let key = key_of(set, entry, by, own_code);
                node = *below.entry((0, Key::Group(key))).or_insert_with_key(|(_, key)| {
                    let Key::Group(name) = key else { return 0 };
                    let name = if name.is_empty() { "not known".to_owned() } else { name.clone() };
                    tree.child(0, name, String::new())
                });
                tree.add(node, entry.bytes, entry.count);
            }
            let has_own = own_code && entry.stack.iter().any(|&f| library.get(f as usize) == Some(&false));
            let stack = entry.stack.iter().rev().filter(|&&f| !has_own || library.get(f as usize) == Some(&false));
            for &frame in stack.take(MAX_DEPTH) {
                let Some(&frame) = frames.get(frame as usize) else { continue };
                let Some(line) = set.frames.get(frame as usize) else { continue };
                node = *below.entry((node, Key::Frame(frame))).or_insert_with(|| {
                    let name = if line.function.is_empty() { "no name" } else { &line.function };
                    tree.child(node, name.to_owned(), format!("{}:{}", line.file, line.line))
                });
                tree.add(node, entry.bytes, entry.count);
            }
            tree.nodes[node].own += entry.bytes;
            tree.nodes[node].entries.push(row);
        }
        let sizes: Vec<(Bytes, u64)> = tree.nodes.iter().map(|node| (node.bytes, node.count)).collect();
        for node in &mut tree.nodes {
            node.children.sort_by_key(|&child| (std::cmp::Reverse(sizes[child]), child));
        }
        tree
    }

    fn child(&mut self, parent: usize, name: String, place: String) -> usize {
        let node = self.nodes.len();
        let file = place.rsplit(['/', '\\']).next().unwrap_or_default();
        let label = if file.is_empty() { name.clone() } else { format!("{name}  {file}") };
        self.nodes.push(StackNode { name, place, label, parent, ..StackNode::default() });
        self.nodes[parent].children.push(node);
        node
    }

    fn add(&mut self, node: usize, bytes: Bytes, count: u64) {
        let node = &mut self.nodes[node];
        node.bytes += bytes;
        node.count = node.count.saturating_add(count);
    }

    /// Rows of all entries below a node.
    #[must_use]
    pub fn entries_below(&self, node: usize) -> Vec<u32> {
        let mut rows = Vec::new();
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let Some(at) = self.nodes.get(node) else { continue };
            rows.extend(&at.entries);
            open.extend(&at.children);
        }
        rows
    }

    /// Whether each node's words contain all of some lower-case words.
    #[must_use]
    pub fn matches(&self, words: &str) -> Vec<bool> {
        let parts: Vec<&str> = words.split_whitespace().collect();
        let contains = |node: &StackNode| {
            let text = format!("{} {}", node.name, node.place).to_lowercase();
            parts.iter().all(|part| text.contains(part))
        };
        self.nodes.iter().map(contains).collect()
    }

    /// Bytes below the nodes that are lit, none counted twice.
    #[must_use]
    pub fn bytes_of(&self, lit: &[bool]) -> Bytes {
        let mut total = Bytes::ZERO;
        let mut open = vec![0];
        while let Some(node) = open.pop() {
            let Some(at) = self.nodes.get(node) else { continue };
            if node != 0 && lit.get(node) == Some(&true) {
                total += at.bytes;
            } else {
                open.extend(&at.children);
            }
        }
        total
    }
}

/// By what a node differs from its neighbours.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Group(String),
    Frame(u32),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LiveEntry, SourceLine};

    fn set() -> LiveSet {
        let line = |function: &str, file: &str, line| SourceLine {
            function: function.to_owned(),
            file: file.to_owned(),
            line,
            column: 0,
        };
        let entry = |bytes, stack: &[u32]| LiveEntry {
            bytes: Bytes(bytes),
            count: 1,
            stack: stack.to_vec(),
            ..LiveEntry::default()
        };
        LiveSet {
            frames: vec![
                line("main", "train.py", 5),
                line("init", "model.py", 9),
                line("asarray", "/venv/lib/python3.11/site-packages/jax/array.py", 3),
                line("main", "train.py", 5),
            ],
            entries: vec![entry(100, &[2, 1, 0]), entry(20, &[1, 3]), entry(7, &[2])],
            ..LiveSet::default()
        }
    }

    #[test]
    fn sums_are_kept_and_equal_frames_are_one() {
        let tree = StackTree::new(&set(), None, false);
        assert_eq!(tree.nodes[0].bytes, Bytes(127));
        let names: Vec<(&str, u64, u64)> =
            tree.nodes.iter().map(|node| (node.name.as_str(), node.bytes.0, node.own.0)).collect();
        assert_eq!(
            names,
            [("everything", 127, 0), ("main", 120, 0), ("init", 120, 20), ("asarray", 100, 100), ("asarray", 7, 7)]
        );
    }

    #[test]
    fn libraries_can_be_left_out() {
        let tree = StackTree::new(&set(), None, true);
        let names: Vec<(&str, u64)> = tree.nodes.iter().map(|node| (node.name.as_str(), node.own.0)).collect();
        // A stack of nothing but library frames keeps them.
        assert_eq!(names, [("everything", 0), ("main", 0), ("init", 120), ("asarray", 7)]);
    }

    #[test]
    fn a_grouping_is_the_first_row() {
        let tree = StackTree::new(&set(), Some(GroupBy::File), true);
        let first: Vec<(&str, u64)> =
            tree.nodes[0].children.iter().map(|&n| (tree.nodes[n].name.as_str(), tree.nodes[n].bytes.0)).collect();
        assert_eq!(first, [("model.py", 120), ("/venv/lib/python3.11/site-packages/jax/array.py", 7)]);
    }

    #[test]
    fn what_is_found_is_counted_once() {
        let tree = StackTree::new(&set(), None, false);
        assert_eq!(tree.bytes_of(&tree.matches("asarray")), Bytes(107));
        assert_eq!(tree.bytes_of(&tree.matches("main train")), Bytes(120));
        assert_eq!(tree.bytes_of(&tree.matches("nothing of it")), Bytes(0));
    }
}
