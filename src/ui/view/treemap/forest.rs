//! The tree of what lives as an icicle shows it.

use crate::analysis::tree::Tree;
use crate::ui::widget::icicle::IcicleTree;
use crate::ui::widget::theme::Slot;

use super::cells::share;
use super::slot_of;

/// A tree with a colour for each part of what fills the view.
pub struct Forest<'a> {
    tree: &'a Tree,
    names: &'a [String],
    root: usize,
    ranks: &'a [Option<u32>],
}

/// For each node, which part of the root it belongs to; `None` outside of the root.
pub fn ranks(tree: &Tree, root: usize) -> Vec<Option<u32>> {
    let mut ranks = vec![None; tree.nodes.len()];
    let Some(node) = tree.nodes.get(root) else { return ranks };
    for (rank, &child) in node.children.iter().enumerate() {
        let mut open = vec![child];
        while let Some(at) = open.pop() {
            ranks[at] = Some(rank as u32);
            open.extend(&tree.nodes[at].children);
        }
    }
    ranks
}

impl<'a> Forest<'a> {
    /// A tree whose names, with counts of what is folded, and ranks are worked out.
    pub const fn new(tree: &'a Tree, names: &'a [String], root: usize, ranks: &'a [Option<u32>]) -> Self {
        Self { tree, names, root, ranks }
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
        let count = self.tree.nodes[self.root].children.len();
        self.ranks.get(node).copied().flatten().map_or(Slot::Temporary, |rank| slot_of(rank as usize, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::tree::TreeNode;

    #[test]
    fn nodes_have_the_rank_of_the_part_they_belong_to() {
        let node = |parent, children: &[usize]| TreeNode { parent, children: children.to_vec(), ..TreeNode::default() };
        let tree = Tree { nodes: vec![node(0, &[1, 2]), node(0, &[3]), node(0, &[]), node(1, &[])] };
        assert_eq!(ranks(&tree, 0), [None, Some(0), Some(1), Some(0)]);
        assert_eq!(ranks(&tree, 1), [None, None, None, Some(0)]);
    }
}
