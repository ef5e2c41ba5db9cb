//! Places the nodes of a tree in a rectangle: enclosing ones as frames with a head, the innermost as filled cells.

use egui::{Rect, Vec2};

use crate::analysis::tree::Tree;
use crate::model::{BufferId, Bytes, Program};
use crate::ui::widget::treemap::squarify;

/// A placed node, or a single buffer of one.
#[derive(Debug, Clone, Copy)]
pub struct Cell<'a> {
    /// Node of the tree.
    pub node: usize,
    /// The buffer, where the cell is one.
    pub buffer: Option<BufferId>,
    /// Where it is.
    pub rect: Rect,
    /// Rank of the part of the root it belongs to, and how many there are.
    pub rank: usize,
    /// How many parts the root has.
    pub ranks: usize,
    /// Filled, not a frame.
    pub leaf: bool,
    /// Bytes.
    pub bytes: Bytes,
    /// Share of padding.
    pub padding_share: f64,
    name: &'a str,
    folded: usize,
}

impl Cell<'_> {
    /// Name with the count of folded names.
    pub fn name(&self) -> String {
        if self.folded > 1 && self.name.ends_with('*') {
            format!("{}  \u{d7}{}", self.name, self.folded)
        } else {
            self.name.to_owned()
        }
    }
}

/// Height of a frame's head.
const HEAD: f32 = 17.0;
/// Frames smaller than this are filled instead of divided.
const LEAST: Vec2 = Vec2::new(60.0, 44.0);
/// Cells smaller than this (points squared) are not placed.
const LEAST_AREA: f32 = 0.3;

/// Places what is below `root`.
pub fn place<'a>(tree: &'a Tree, program: &Program, root: usize, rect: Rect) -> Vec<Cell<'a>> {
    let mut cells = Vec::new();
    let Some(node) = tree.nodes.get(root) else { return cells };
    let ranks = node.children.len();
    divide(tree, program, root, rect, None, ranks, &mut cells);
    cells
}

fn divide<'a>(
    tree: &'a Tree,
    program: &Program,
    at: usize,
    rect: Rect,
    rank: Option<usize>,
    ranks: usize,
    cells: &mut Vec<Cell<'a>>,
) {
    let node = &tree.nodes[at];
    // Parts: the nodes below, and buffers that end here.
    let mut parts: Vec<(f64, Option<usize>, Option<BufferId>)> =
        node.children.iter().map(|&child| (tree.nodes[child].bytes.0 as f64, Some(child), None)).collect();
    parts.extend(node.buffers.iter().map(|&b| (program.buffers.size_of(b).0 as f64, None, Some(b))));
    parts.sort_by(|a, b| b.0.total_cmp(&a.0));
    let values: Vec<f64> = parts.iter().map(|part| part.0).collect();
    let mut order: usize = 0;
    for ((value, child, buffer), place) in parts.into_iter().zip(squarify(&values, rect)) {
        if place.area() < LEAST_AREA {
            continue;
        }
        let own_rank = rank
            .unwrap_or_else(|| child.and_then(|child| node.children.iter().position(|c| *c == child)).unwrap_or(order));
        order += 1;
        if let Some(buffer) = buffer {
            cells.push(Cell {
                node: at,
                buffer: Some(buffer),
                rect: place,
                rank: own_rank,
                ranks,
                leaf: true,
                bytes: Bytes(value as u64),
                padding_share: share(node.padding, node.bytes),
                name: &node.name,
                folded: 0,
            });
            continue;
        }
        let Some(child) = child else { continue };
        let below = &tree.nodes[child];
        // A node with a single buffer, or too small to be divided, is a cell.
        let single = below.children.is_empty() && below.buffers.len() == 1;
        let small = place.width() < LEAST.x || place.height() < LEAST.y;
        let leaf = single || small;
        cells.push(Cell {
            node: child,
            buffer: if single { below.buffers.first().copied() } else { None },
            rect: place,
            rank: own_rank,
            ranks,
            leaf,
            bytes: below.bytes,
            padding_share: share(below.padding, below.bytes),
            name: &below.name,
            folded: below.folded,
        });
        if !leaf {
            let inner = Rect::from_min_max(place.min + Vec2::new(2.0, HEAD), place.max - Vec2::splat(3.0));
            divide(tree, program, child, inner, Some(own_rank), ranks, cells);
        }
    }
}

fn share(part: Bytes, whole: Bytes) -> f64 {
    if whole.0 == 0 { 0.0 } else { part.0 as f64 / whole.0 as f64 }
}
