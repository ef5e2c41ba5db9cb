//! Live buffers as a tree: by name scope with layers folded, by source line, op kind, element type, shape or category.

use std::collections::HashMap;

use super::program::{ProgramAnalysis, category, unpadded};
use super::scope;
use crate::model::{BufferId, Bytes, Program};

/// By what a tree divides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TreeKind {
    /// Name scopes, numbered ones folded.
    #[default]
    Scope,
    /// XProf's category, then scope.
    Category,
    /// Source file and line.
    Source,
    /// Kind of instruction.
    Opcode,
    /// Element type, then shape.
    Shape,
}

impl TreeKind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Scope, Self::Category, Self::Source, Self::Opcode, Self::Shape];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scope => "Name scope",
            Self::Category => "Category",
            Self::Source => "Source line",
            Self::Opcode => "Op kind",
            Self::Shape => "Type and shape",
        }
    }
}

/// A node of a [`Tree`].
#[derive(Debug, Clone, Default)]
pub struct TreeNode {
    /// Its name.
    pub name: String,
    /// Bytes of all buffers below.
    pub bytes: Bytes,
    /// Their padding.
    pub padding: Bytes,
    /// How many buffers are below.
    pub count: usize,
    /// Different names that were folded into this one.
    pub folded: usize,
    /// Enclosing node; the root encloses itself.
    pub parent: usize,
    /// Nodes below, largest first.
    pub children: Vec<usize>,
    /// Buffers that end here, largest first.
    pub buffers: Vec<BufferId>,
}

/// A tree of buffers; node 0 is the root.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    /// Nodes.
    pub nodes: Vec<TreeNode>,
}

/// Deeper scopes are cut off.
const MAX_DEPTH: usize = 24;

impl Tree {
    /// Builds the tree of some buffers.
    #[must_use]
    pub fn new(program: &Program, analysis: &ProgramAnalysis, buffers: &[BufferId], kind: TreeKind) -> Self {
        let mut tree = Self { nodes: vec![TreeNode { name: "all".to_owned(), ..TreeNode::default() }] };
        let mut index: HashMap<(usize, String), usize> = HashMap::new();
        let mut originals: Vec<std::collections::HashSet<String>> = vec![std::collections::HashSet::new()];
        for &buffer in buffers {
            let bytes = program.buffers.size_of(buffer);
            let padding = bytes.saturating_sub(unpadded(program, &analysis.traces, buffer));
            let mut node = 0;
            tree.add(0, bytes, padding);
            for (name, original) in path_of(program, buffer, kind).into_iter().take(MAX_DEPTH) {
                let next = *index.entry((node, name.clone())).or_insert_with(|| {
                    tree.nodes.push(TreeNode { name, parent: node, ..TreeNode::default() });
                    originals.push(std::collections::HashSet::new());
                    tree.nodes.len() - 1
                });
                if next == tree.nodes.len() - 1 && !tree.nodes[node].children.contains(&next) {
                    tree.nodes[node].children.push(next);
                }
                originals[next].insert(original);
                tree.add(next, bytes, padding);
                node = next;
            }
            tree.nodes[node].buffers.push(buffer);
        }
        let sizes: Vec<Bytes> = tree.nodes.iter().map(|node| node.bytes).collect();
        for (node, names) in tree.nodes.iter_mut().zip(&originals) {
            node.folded = names.len();
            node.children.sort_by_key(|&child| (std::cmp::Reverse(sizes[child]), child));
            node.buffers.sort_by_key(|&b| (std::cmp::Reverse(program.buffers.size_of(b)), b));
        }
        tree
    }

    fn add(&mut self, node: usize, bytes: Bytes, padding: Bytes) {
        let node = &mut self.nodes[node];
        node.bytes += bytes;
        node.padding += padding;
        node.count += 1;
    }

    /// Nodes from the root down to one, both included.
    #[must_use]
    pub fn trail(&self, node: usize) -> Vec<usize> {
        let mut trail = vec![node];
        let mut at = node;
        while at != 0 {
            let Some(next) = self.nodes.get(at) else { break };
            at = next.parent;
            trail.push(at);
        }
        trail.reverse();
        trail
    }

    /// The largest buffer below a node.
    #[must_use]
    pub fn largest(&self, program: &Program, node: usize) -> Option<BufferId> {
        let mut best: Option<BufferId> = None;
        let mut open = vec![node];
        while let Some(at) = open.pop() {
            let Some(node) = self.nodes.get(at) else { continue };
            if let Some(&first) = node.buffers.first()
                && best.is_none_or(|b| program.buffers.size_of(first) > program.buffers.size_of(b))
            {
                best = Some(first);
            }
            open.extend(&node.children);
        }
        best
    }
}

/// Names on the way to a buffer, folded, each with what it was before.
fn path_of(program: &Program, buffer: BufferId, kind: TreeKind) -> Vec<(String, String)> {
    let instruction = program.buffers.instruction_of(buffer);
    let same = |name: String| (name.clone(), name);
    let opcode = instruction.map(|i| program.opcode_name(i).to_owned()).unwrap_or_default();
    let scopes = || {
        let op_name = instruction.map(|i| program.text.op_name(i)).unwrap_or_default();
        if let Some((name, rest)) = scope::argument(&op_name) {
            let mut path = vec![same("arguments".to_owned()), same(name.to_owned())];
            path.extend(
                rest.split(['[', ']', '.', '\'', '"'])
                    .filter(|part| !part.is_empty())
                    .map(|part| (scope::fold(part), part.to_owned())),
            );
            return path;
        }
        let path: Vec<(String, String)> =
            scope::path(&op_name).into_iter().map(|part| (scope::fold(part), part.to_owned())).collect();
        if path.is_empty() { vec![same("no op name".to_owned()), same(opcode.clone())] } else { path }
    };
    match kind {
        TreeKind::Scope => scopes(),
        TreeKind::Category => {
            let mut path = vec![same(category(program, buffer).name().to_owned())];
            path.extend(scopes());
            path
        }
        TreeKind::Opcode => vec![same(opcode)],
        TreeKind::Source => {
            let source = instruction.and_then(|i| program.text.metadata(i).source);
            source.map_or_else(
                || vec![same("no source line".to_owned())],
                |line| {
                    let file = line.file.rsplit(['/', '\\']).next().unwrap_or(&line.file).to_owned();
                    vec![(file.clone(), line.file.clone()), same(format!("{file}:{}", line.line))]
                },
            )
        }
        TreeKind::Shape => {
            let name = program.buffer_node(buffer).map_or("unknown", |node| node.element_type.name()).to_owned();
            let shape = program.buffer_shape(buffer).map(|(shape, node)| shape.short_text_of(node)).unwrap_or_default();
            vec![same(name), same(shape)]
        }
    }
}
