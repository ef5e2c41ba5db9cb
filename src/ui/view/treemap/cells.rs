//! Lays out a tree in a rectangle: inner nodes as frames with a title, leaves as filled cells.

use std::collections::HashMap;

use egui::{Rect, Vec2};

use crate::analysis::class::Class;
use crate::analysis::tree::Tree;
use crate::analysis::{ProgramAnalysis, unpadded};
use crate::model::{BufferId, Bytes, Program};
use crate::ui::widget::treemap::squarify;

/// A placed node, or a single buffer of one.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    /// Node of the tree.
    pub node: usize,
    /// The outermost of the nodes that contain nothing else; the node itself if there is none.
    pub from: usize,
    /// The buffer, if the cell is a single buffer, or the first of equal ones.
    pub buffer: Option<BufferId>,
    /// Its rectangle.
    pub rect: Rect,
    /// The class of most of its bytes.
    pub class: Class,
    /// Whether it is a filled cell and not a frame.
    pub leaf: bool,
    /// Number of enclosing frames.
    pub depth: u32,
    /// Equal buffers that it stands for, of folded layers or among many in one node; 1 for anything else.
    pub equal: usize,
    /// Bytes.
    pub bytes: Bytes,
    /// Share of padding in its bytes.
    pub padding_share: f64,
}

/// Name of a node with the count of folded names.
pub fn name_of(tree: &Tree, node: usize) -> String {
    let node = &tree.nodes[node];
    if node.folded > 1 && node.name.ends_with('*') {
        format!("{}  \u{d7}{}", node.name, node.folded)
    } else {
        node.name.clone()
    }
}

/// Names of the nodes that a cell represents, outermost first.
pub fn title_of(tree: &Tree, names: &[String], cell: &Cell) -> String {
    let trail = tree.trail(cell.node);
    let first = trail.iter().position(|node| *node == cell.from).unwrap_or(trail.len().saturating_sub(1));
    let words: Vec<&str> = trail[first..].iter().filter_map(|node| names.get(*node)).map(String::as_str).collect();
    words.join("/")
}

/// Height of a frame's head.
const HEAD: f32 = 17.0;
/// Nodes smaller than this are filled cells instead of frames.
const LEAST: Vec2 = Vec2::new(60.0, 44.0);
/// Cells smaller than this (square points) are left out.
const LEAST_AREA: f32 = 2.0;
/// Number of buffers in a node from which equal ones are one part.
const MANY: usize = 24;
/// Maximum number of parts of a node: any more would have less than a pixel each.
const MOST_PARTS: usize = 20_000;

/// Inputs of the layout.
pub struct LayoutInput<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// Its program.
    pub program: &'a Program,
    /// Its analysis.
    pub analysis: &'a ProgramAnalysis,
}

impl LayoutInput<'_> {
    /// Lays out the nodes below `root`.
    pub fn below(&self, root: usize, rect: Rect) -> Vec<Cell> {
        let mut cells = Vec::new();
        if self.tree.nodes.get(root).is_none() {
            return cells;
        }
        self.divide(root, rect, 0, &mut cells);
        cells
    }

    fn divide(&self, at: usize, rect: Rect, depth: u32, cells: &mut Vec<Cell>) {
        let node = &self.tree.nodes[at];
        // The parts are child nodes, and buffers directly in this node.
        let mut parts: Vec<(u64, Option<usize>, Option<BufferId>)> =
            node.children.iter().map(|&child| (self.tree.nodes[child].bytes.0, Some(child), None)).collect();
        let own = self.own_parts(at);
        parts.extend(
            own.iter().map(|&(buffer, bytes, count)| (bytes.0.saturating_mul(count as u64), None, Some(buffer))),
        );
        let count_of: HashMap<BufferId, usize> = own.into_iter().map(|(buffer, _, count)| (buffer, count)).collect();
        parts.sort_by_key(|part| std::cmp::Reverse(part.0));
        parts.truncate(MOST_PARTS);
        let values: Vec<f64> = parts.iter().map(|part| part.0 as f64).collect();
        for ((value, child, buffer), place) in parts.into_iter().zip(squarify(&values, rect)) {
            if place.area() < LEAST_AREA {
                continue;
            }
            let class = match (child, buffer) {
                (None, Some(buffer)) => self.analysis.class_now(self.program, buffer),
                _ => self.tree.nodes[child.unwrap_or(at)].class,
            };
            let whole = Cell {
                node: child.unwrap_or(at),
                from: child.unwrap_or(at),
                buffer,
                rect: place,
                class,
                leaf: true,
                depth,
                equal: 1,
                bytes: Bytes(value),
                padding_share: 0.0,
            };
            let Some(child) = child else {
                let equal = buffer.and_then(|buffer| count_of.get(&buffer).copied()).unwrap_or(1);
                cells.push(Cell { padding_share: buffer.map_or(0.0, |b| self.padding_of(b)), equal, ..whole });
                continue;
            };
            // Nodes with a single child and no buffers share a frame with it.
            let mut inmost = child;
            while let ([only], []) = (&self.tree.nodes[inmost].children[..], &self.tree.nodes[inmost].buffers[..]) {
                inmost = *only;
            }
            let below = &self.tree.nodes[inmost];
            // A node with a single buffer, or too small to divide, is a cell.
            let single = below.children.is_empty() && below.buffers.len() == 1;
            let small = place.width() < LEAST.x || place.height() < LEAST.y;
            let equal = self.equal(inmost);
            let leaf = single || small || equal > 1;
            let buffer = if single { below.buffers.first().copied() } else { None };
            let padding_share = share(below.padding, below.bytes);
            cells.push(Cell { node: inmost, buffer, leaf, equal, padding_share, ..whole });
            if !leaf {
                let inner = Rect::from_min_max(place.min + Vec2::new(2.0, HEAD), place.max - Vec2::splat(3.0));
                self.divide(inmost, inner, depth + 1, cells);
            }
        }
    }

    /// The buffers directly in a node, each with its bytes and how many it stands for: where there are many, those of
    /// equal size and class are one part.
    fn own_parts(&self, at: usize) -> Vec<(BufferId, Bytes, usize)> {
        let buffers = &self.tree.nodes[at].buffers;
        let bytes = |buffer| self.tree.bytes_of(self.program, buffer);
        if buffers.len() < MANY {
            return buffers.iter().map(|&buffer| (buffer, bytes(buffer), 1)).collect();
        }
        let mut parts: Vec<(BufferId, Bytes, usize)> = Vec::new();
        let mut known: HashMap<(Bytes, Class), usize> = HashMap::new();
        for &buffer in buffers {
            let key = (bytes(buffer), self.analysis.class_now(self.program, buffer));
            let part = *known.entry(key).or_insert_with(|| {
                parts.push((buffer, key.0, 0));
                parts.len() - 1
            });
            parts[part].2 += 1;
        }
        parts
    }

    /// How many equal buffers of folded layers a node holds, and nothing else; 1 where it is not so.
    fn equal(&self, node: usize) -> usize {
        let own = &self.tree.nodes[node];
        let is_folded = || self.tree.trail(node).iter().any(|&at| self.tree.nodes[at].folded > 1);
        let [first, rest @ ..] = &own.buffers[..] else { return 1 };
        let bytes = self.tree.bytes_of(self.program, *first);
        let is_equal = own.children.is_empty() && rest.iter().all(|&b| self.tree.bytes_of(self.program, b) == bytes);
        if is_equal && is_folded() { own.buffers.len() } else { 1 }
    }

    fn padding_of(&self, buffer: BufferId) -> f64 {
        let bytes = self.tree.bytes_of(self.program, buffer);
        share(bytes.saturating_sub(unpadded(self.program, &self.analysis.traces, buffer)), bytes)
    }
}

/// `part / whole`, 0 to 1.
pub fn share(part: Bytes, whole: Bytes) -> f64 {
    if whole.0 == 0 { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}
