//! Live bytes as a tree of limited depth: the numbers of the treemap and icicle views.

use std::fmt::Write as _;

use serde::Serialize;

use super::options::Options;
use super::words::buffers;
use crate::analysis::Scene;
use crate::analysis::tree::{Tree, TreeKind, TreeNode};
use crate::export::document::{Document, Item, Line};
use crate::model::{Bytes, percent, thousands};

/// Live bytes as a tree.
#[derive(Debug, Serialize)]
pub struct TreeReport {
    /// `scope`, `class`, `category`, `source`, `op`, `dtype`, `shape` or `sharding`.
    pub by: &'static str,
    /// The step; `null` for the peak.
    pub step: Option<u32>,
    /// The root: all live bytes.
    pub root: NodeReport,
}

/// A node and its subtree.
#[derive(Debug, Serialize)]
pub struct NodeReport {
    /// Name; numbered scopes folded: `layer_*`.
    pub name: String,
    /// Bytes of all buffers in the subtree.
    pub bytes: u64,
    /// Bytes of padding in them.
    pub padding_bytes: u64,
    /// Number of buffers in the subtree.
    pub buffers: usize,
    /// Number of different names folded into this one.
    pub folded: usize,
    /// Number of direct children, before `--top` cut them.
    pub child_count: usize,
    /// Children, largest first, limited by `--top` and `--depth`.
    pub children: Vec<NodeReport>,
}

/// Builds the requested trees.
pub fn reports(scene: Scene<'_>, options: &Options) -> Vec<TreeReport> {
    if options.trees.is_empty() {
        return Vec::new();
    }
    let step = options.step.map(|step| step.min(scene.map().points.saturating_sub(1)));
    let live = scene.live(step);
    let report = |&kind| {
        let tree = Tree::new(scene.program, scene.analysis, &live, kind, !options.unfolded);
        let depth = if options.depth == 0 { usize::MAX } else { options.depth };
        let root = tree.nodes.first().map(|root| node(&tree, root, depth, options.rows()))?;
        Some(TreeReport { by: kind.word(), step, root })
    };
    options.trees.iter().filter_map(report).collect()
}

/// Live memory at the peak by scope, to a depth and with at most so many children of each.
pub fn peak_tree(scene: Scene<'_>, (depth, top): (usize, usize)) -> Option<NodeReport> {
    let tree = Tree::new(scene.program, scene.analysis, &scene.live(None), TreeKind::Scope, true);
    tree.nodes.first().map(|root| node(&tree, root, depth, top))
}

/// A node and `depth` levels below it; no deeper than [`Tree`], which truncates long paths.
fn node(tree: &Tree, of: &TreeNode, depth: usize, top: usize) -> NodeReport {
    let below = of.children.iter().filter_map(|&child| tree.nodes.get(child));
    let children = match depth.checked_sub(1) {
        Some(depth) => below.take(top).map(|child| node(tree, child, depth, top)).collect(),
        None => Vec::new(),
    };
    NodeReport {
        name: of.name.clone(),
        bytes: of.bytes.0,
        padding_bytes: of.padding.0,
        buffers: of.count,
        folded: of.folded,
        child_count: of.children.len(),
        children,
    }
}

impl TreeReport {
    fn head(&self) -> String {
        let at_step = |step: u32| format!("reserved at step {step}");
        let when = self.step.map_or_else(|| "at the peak".to_owned(), at_step);
        format!("{when}, by {}", self.by)
    }

    /// Writes one line per node, indented by level.
    pub fn write_text(&self, out: &mut String) {
        let _ = writeln!(out, "    {}", self.head());
        self.root.write(0, &mut |level, node, name| {
            let indent = level * 2;
            let Some(node) = node else {
                let _ = writeln!(out, "      {:48}{:indent$}{name}", "", "");
                return;
            };
            let padding = if node.padding_bytes == 0 { "no".to_owned() } else { Bytes(node.padding_bytes).short() };
            let (bytes, count) = (Bytes(node.bytes).short(), buffers(node.buffers));
            let _ = writeln!(out, "      {bytes:>10}  {padding:>9} padding  {count:>15}  {:indent$}{name}", "");
        });
    }

    /// Adds the same to a document as a nested list.
    pub fn document(&self, out: &mut Document) {
        out.paragraph(format!("Memory {}:", self.head()));
        let mut items = Vec::new();
        self.root.write(0, &mut |level, node, name| {
            let line = match node {
                None => Line::from(name),
                Some(node) => {
                    let (bytes, padding) = (Bytes(node.bytes), percent(node.padding_bytes, node.bytes));
                    let count = buffers(node.buffers);
                    Line::code(name).then(format!(" {} ({padding} padding, {count})", bytes.exact()))
                }
            };
            items.push(Item::new(level, line));
        });
        out.list(items);
    }
}

impl NodeReport {
    /// Its name, with how many names are folded into it: `layer_* ×24`.
    pub fn display_name(&self) -> String {
        match self.folded {
            0 | 1 => self.name.clone(),
            folded => format!("{} \u{d7}{}", self.name, thousands(folded as u64)),
        }
    }

    /// Calls `line` with the level, node and display name of each node; the node is `None` for a line that counts the
    /// nodes left out.
    fn write(&self, level: usize, line: &mut dyn FnMut(usize, Option<&Self>, &str)) {
        line(level, Some(self), &self.display_name());
        for child in &self.children {
            child.write(level + 1, line);
        }
        let left = self.child_count - self.children.len();
        if left > 0 && !self.children.is_empty() {
            line(level + 1, None, &format!("and {} more", thousands(left as u64)));
        }
    }
}
