//! Places the nodes of a tree in a rectangle: enclosing ones as frames with a head, the innermost as filled cells.

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
    /// The first of the nodes that enclose it and nothing else; the node itself where there is none.
    pub from: usize,
    /// The buffer, where the cell is one.
    pub buffer: Option<BufferId>,
    /// Where it is.
    pub rect: Rect,
    /// What most of it is for.
    pub class: Class,
    /// Filled, not a frame.
    pub leaf: bool,
    /// How many frames it lies in.
    pub depth: u32,
    /// Equal buffers of folded layers that it stands for; 1 for anything else.
    pub equal: usize,
    /// Bytes.
    pub bytes: Bytes,
    /// Share of padding.
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

/// Names of the nodes that a cell stands for, the outermost first.
pub fn title_of(tree: &Tree, names: &[String], cell: &Cell) -> String {
    let trail = tree.trail(cell.node);
    let first = trail.iter().position(|node| *node == cell.from).unwrap_or(trail.len().saturating_sub(1));
    let words: Vec<&str> = trail[first..].iter().filter_map(|node| names.get(*node)).map(String::as_str).collect();
    words.join("/")
}

/// Height of a frame's head.
const HEAD: f32 = 17.0;
/// Frames smaller than this are filled instead of divided.
const LEAST: Vec2 = Vec2::new(60.0, 44.0);
/// Cells smaller than this (points squared) are not placed.
const LEAST_AREA: f32 = 2.0;
/// Parts of a node that are placed at most: more have less than a pixel each.
const MOST_PARTS: usize = 20_000;

/// What is placed, and where.
pub struct Place<'a> {
    /// The tree.
    pub tree: &'a Tree,
    /// Its program.
    pub program: &'a Program,
    /// Its analysis.
    pub analysis: &'a ProgramAnalysis,
}

impl Place<'_> {
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
        // Parts: the nodes below, and buffers that end here.
        let mut parts: Vec<(u64, Option<usize>, Option<BufferId>)> =
            node.children.iter().map(|&child| (self.tree.nodes[child].bytes.0, Some(child), None)).collect();
        parts.extend(node.buffers.iter().map(|&b| (self.tree.bytes_of(self.program, b).0, None, Some(b))));
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
                cells.push(Cell { padding_share: buffer.map_or(0.0, |b| self.padding_of(b)), ..whole });
                continue;
            };
            // Nodes that hold nothing but one other share a frame with it.
            let mut inmost = child;
            while let ([only], []) = (&self.tree.nodes[inmost].children[..], &self.tree.nodes[inmost].buffers[..]) {
                inmost = *only;
            }
            let below = &self.tree.nodes[inmost];
            // A node with a single buffer, or too small to be divided, is a cell.
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

/// A part of a whole, 0 to 1.
pub fn share(part: Bytes, whole: Bytes) -> f64 {
    if whole.0 == 0 { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}
