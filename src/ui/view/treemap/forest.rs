//! Adapter from the tree of live buffers to the icicle widget.

use crate::analysis::tree::Tree;
use crate::ui::widget::icicle::IcicleTree;
use crate::ui::widget::theme::Slot;

use super::cells::share;
use crate::ui::part::colors;

/// A tree with each node in the colour of the class of most of its bytes.
pub struct Forest<'a> {
    tree: &'a Tree,
    names: &'a [String],
}

impl<'a> Forest<'a> {
    /// A tree with the display names of its nodes, which include fold counts.
    pub const fn new(tree: &'a Tree, names: &'a [String]) -> Self {
        Self { tree, names }
    }
}

impl IcicleTree for Forest<'_> {
    fn parent(&self, node: usize) -> usize {
        self.tree.nodes[node].parent
    }

    fn children(&self, node: usize) -> &[usize] {
        &self.tree.nodes[node].children
    }

    fn bytes(&self, node: usize) -> u64 {
        self.tree.nodes[node].bytes.0
    }

    fn name(&self, node: usize) -> &str {
        self.names.get(node).map_or("", String::as_str)
    }

    fn padding_share(&self, node: usize) -> f64 {
        share(self.tree.nodes[node].padding, self.tree.nodes[node].bytes)
    }

    fn slot(&self, node: usize) -> Slot {
        colors::slot_of_class(self.tree.nodes[node].class)
    }
}
