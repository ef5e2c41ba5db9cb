//! Live buffers as a tree: by name scope with layers folded, by category, source line, op kind, element type, shape or
//! sharding.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::str::FromStr;

use super::class::Class;
use super::flow::label::COPY_OF;
use super::flow::next_value::{IN_PLACE, NEXT_VALUE};
use super::names::scope;
use super::peak_contents::padding_in;
use super::program::{ProgramAnalysis, category};
use crate::model::{BufferId, Bytes, Program};

/// Grouping of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TreeKind {
    /// Name scopes, numbered ones folded.
    #[default]
    Scope,
    /// Class (a guess), then scope.
    Class,
    /// XProf's category, then scope.
    Category,
    /// Source file and line.
    Source,
    /// Kind of instruction.
    Opcode,
    /// Element type, then scope.
    Type,
    /// Shape, then scope.
    Shape,
    /// Sharding, then scope.
    Sharding,
}

impl TreeKind {
    /// All groupings.
    pub const ALL: [Self; 8] =
        [Self::Scope, Self::Class, Self::Category, Self::Source, Self::Opcode, Self::Type, Self::Shape, Self::Sharding];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scope => "Name scope",
            Self::Class => "Class",
            Self::Category => "Category",
            Self::Source => "Source line",
            Self::Opcode => "Op",
            Self::Type => "Type",
            Self::Shape => "Shape",
            Self::Sharding => "Sharding",
        }
    }

    /// Its word on a command line and in reports; the same as in filters.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Scope => "scope",
            Self::Class => "class",
            Self::Category => "category",
            Self::Source => "source",
            Self::Opcode => "op",
            Self::Type => "dtype",
            Self::Shape => "shape",
            Self::Sharding => "sharding",
        }
    }
}

impl FromStr for TreeKind {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.word() == word);
        found.ok_or_else(|| format!("a tree is by {}", Self::ALL.map(Self::word).join(", ")))
    }
}

/// A node of a [`Tree`].
#[derive(Debug, Clone, Default)]
pub struct TreeNode {
    /// Its name.
    pub name: String,
    /// Bytes of all buffers in the subtree.
    pub bytes: Bytes,
    /// Bytes of padding in the subtree.
    pub padding: Bytes,
    /// Class of most bytes in the subtree.
    pub class: Class,
    /// Number of buffers in the subtree.
    pub count: usize,
    /// Number of distinct names folded into this one.
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
    /// Nodes; the first is the root, children come after their parents.
    pub nodes: Vec<TreeNode>,
    /// Bytes counted for a buffer where they differ from its size.
    bytes_of: HashMap<BufferId, Bytes>,
}

/// Scope of what has none; below it stand the kinds of instruction.
const NO_NAME: &str = "no op name";

/// Maximum depth; deeper scopes are dropped.
const MAX_DEPTH: usize = 24;

/// Different names that are counted in a fold, at most.
const MOST_ORIGINALS: usize = 10_000;

impl Tree {
    /// Builds the tree of some buffers, each with the bytes that count for it: its size, or at one step what it alone
    /// has of the memory it shares ([`super::live_at`]). `fold` puts numbered scopes together: `layer_3` into
    /// `layer_*`.
    #[must_use]
    pub fn new(
        program: &Program,
        analysis: &ProgramAnalysis,
        buffers: &[(BufferId, Bytes)],
        kind: TreeKind,
        fold: bool,
    ) -> Self {
        let mut tree =
            Self { nodes: vec![TreeNode { name: "all".to_owned(), ..TreeNode::default() }], bytes_of: HashMap::new() };
        let mut index: HashMap<(usize, String), usize> = HashMap::new();
        let mut originals: Vec<HashSet<String>> = vec![HashSet::new()];
        let mut of_class = vec![[0u64; Class::ALL.len()]];
        // Signed, as for the padding at the peak: a few buffers are smaller than their arrays.
        let mut padding_of = vec![0i128];
        let classes = analysis.classes(program);
        for &(buffer, bytes) in buffers {
            if bytes != program.buffers.size_of(buffer) {
                tree.bytes_of.insert(buffer, bytes);
            }
            let padding = padding_in(program, &analysis.traces, buffer, bytes);
            let class = classes.of(buffer) as usize;
            let mut node = 0;
            tree.add(0, bytes);
            padding_of[0] += padding;
            of_class[0][class] += bytes.0;
            for (name, original) in path_of(program, analysis, buffer, kind, fold).into_iter().take(MAX_DEPTH) {
                let next = match index.entry((node, name)) {
                    Entry::Occupied(entry) => *entry.get(),
                    Entry::Vacant(entry) => {
                        let next = tree.nodes.len();
                        let name = entry.key().1.clone();
                        tree.nodes.push(TreeNode { name, parent: node, ..TreeNode::default() });
                        tree.nodes[node].children.push(next);
                        originals.push(HashSet::new());
                        of_class.push([0; Class::ALL.len()]);
                        padding_of.push(0);
                        *entry.insert(next)
                    }
                };
                if originals[next].len() < MOST_ORIGINALS {
                    originals[next].insert(original);
                }
                tree.add(next, bytes);
                padding_of[next] += padding;
                of_class[next][class] += bytes.0;
                node = next;
            }
            tree.nodes[node].buffers.push(buffer);
        }
        let sizes: Vec<Bytes> = tree.nodes.iter().map(|node| node.bytes).collect();
        for (node, padding) in tree.nodes.iter_mut().zip(padding_of) {
            node.padding = Bytes(u64::try_from(padding).unwrap_or(0));
        }
        for ((node, names), sums) in tree.nodes.iter_mut().zip(&originals).zip(&of_class) {
            let largest = Class::ALL.into_iter().max_by_key(|class| sums[*class as usize]);
            node.class = largest.unwrap_or_default();
            node.folded = names.len();
            // The star stands for several.
            if let (1, Some(own)) = (node.count, names.iter().next()) {
                node.name.clone_from(own);
            }
            node.children.sort_by_key(|&child| (std::cmp::Reverse(sizes[child]), child));
        }
        for at in 0..tree.nodes.len() {
            let mut below = std::mem::take(&mut tree.nodes[at].buffers);
            below.sort_by_key(|&buffer| (std::cmp::Reverse(tree.bytes_of(program, buffer)), buffer));
            // One buffer alone has its own name.
            if let [alone] = below[..]
                && tree.nodes[tree.nodes[at].parent].name == NO_NAME
                && let Some(instruction) = program.buffers.instruction_of(alone)
            {
                tree.nodes[at].name = program.text.instruction_name(instruction);
            }
            tree.nodes[at].buffers = below;
        }
        tree
    }

    /// The bytes that count for a buffer of the tree.
    #[must_use]
    pub fn bytes_of(&self, program: &Program, buffer: BufferId) -> Bytes {
        self.bytes_of.get(&buffer).copied().unwrap_or_else(|| program.buffers.size_of(buffer))
    }

    /// Names on the path from below the root to a node; identifies it in another tree of the same kind.
    #[must_use]
    pub fn path(&self, node: usize) -> Vec<String> {
        self.trail(node).into_iter().skip(1).filter_map(|at| Some(self.nodes.get(at)?.name.clone())).collect()
    }

    /// The node at the end of a path of names, or the deepest one that exists.
    #[must_use]
    pub fn find(&self, path: &[String]) -> usize {
        let mut node = 0;
        for name in path {
            let Some(below) = self.nodes.get(node) else { break };
            let next = below.children.iter().find(|&&child| self.nodes.get(child).is_some_and(|c| c.name == *name));
            let Some(&next) = next else { break };
            node = next;
        }
        node
    }

    fn add(&mut self, node: usize, bytes: Bytes) {
        let node = &mut self.nodes[node];
        node.bytes += bytes;
        node.count += 1;
    }

    /// Nodes below one, each in the one before it, that hold more than half of its bytes: the way to where memory is.
    #[must_use]
    pub fn holds_most(&self, root: usize) -> Vec<usize> {
        let mut found = Vec::new();
        let Some(whole) = self.nodes.get(root).map(|node| node.bytes.0) else { return found };
        let mut at = root;
        loop {
            let children = self.nodes.get(at).map_or(&[][..], |node| &node.children);
            let holds = |child: &&usize| self.nodes.get(**child).is_some_and(|node| node.bytes.0 > whole / 2);
            // Children come after their parents, so this ends.
            let Some(&next) = children.iter().find(holds).filter(|next| **next > at) else { return found };
            found.push(next);
            at = next;
        }
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
                && best.is_none_or(|b| self.bytes_of(program, first) > self.bytes_of(program, b))
            {
                best = Some(first);
            }
            open.extend(&node.children);
        }
        best
    }
}

/// A name, and what it was before folding.
type Step = (String, String);

fn same(name: String) -> Step {
    (name.clone(), name)
}

/// Names on the way to a buffer, folded, each with what it was before.
fn path_of(program: &Program, analysis: &ProgramAnalysis, buffer: BufferId, kind: TreeKind, fold: bool) -> Vec<Step> {
    let instruction = program.buffers.instruction_of(buffer);
    let opcode = instruction.map(|i| program.opcode_name(i).to_owned()).unwrap_or_default();
    // The last part names the operation, which other divisions show as a leaf.
    let under = |name: String| {
        let mut path = vec![same(name)];
        path.extend(scopes(program, analysis, buffer, &opcode, fold));
        path
    };
    match kind {
        TreeKind::Scope => scopes(program, analysis, buffer, &opcode, fold),
        TreeKind::Class => under(analysis.classes(program).of(buffer).name().to_owned()),
        TreeKind::Category => under(category(program, buffer).name().to_owned()),
        TreeKind::Opcode => under(if opcode.is_empty() { "no instruction".to_owned() } else { opcode.clone() }),
        TreeKind::Source => {
            let source = instruction.and_then(|i| program.text.metadata(i).source);
            source.map_or_else(
                || under("no source line".to_owned()),
                |line| {
                    let file = line.file.rsplit(['/', '\\']).next().unwrap_or(&line.file).to_owned();
                    let mut path = vec![(file.clone(), line.file.clone())];
                    path.extend(under(format!("{file}:{}", line.line)));
                    path
                },
            )
        }
        TreeKind::Type => {
            under(program.buffer_node(buffer).map_or("no shape", |node| node.element_type.name()).to_owned())
        }
        TreeKind::Shape => {
            let shape = program.buffer_shape(buffer).map(|(shape, node)| shape.short_text_of(node));
            under(shape.filter(|text| !text.is_empty()).unwrap_or_else(|| "no shape".to_owned()))
        }
        TreeKind::Sharding => under(sharding(program, buffer)),
    }
}

/// The framework's scopes of a buffer, arguments by their path.
fn scopes(program: &Program, analysis: &ProgramAnalysis, buffer: BufferId, opcode: &str, fold: bool) -> Vec<Step> {
    let folded = |part: &str| (if fold { scope::fold(part) } else { part.to_owned() }, part.to_owned());
    let of_argument = |head: &str, path: &str| {
        let (name, rest) = scope::argument(path)?;
        let mut path = vec![same(head.to_owned()), same(name.to_owned())];
        path.extend(rest.split(['[', ']', '.', '\'', '"']).filter(|part| !part.is_empty()).map(folded));
        Some(path)
    };
    // What names itself by what it holds: a stack of a scan, a copy of an argument.
    let label = analysis.labels(program).of(program, buffer);
    if let Some(label) = label.as_ref().filter(|label| label.borrowed.is_empty()) {
        let copied = || label.text.strip_prefix(COPY_OF);
        if let Some(copied) = Some(label.copy_of.as_str()).filter(|path| !path.is_empty()).or_else(copied) {
            let whole = || vec![same("copies of arguments".to_owned()), same(copied.to_owned())];
            return of_argument("copies of arguments", copied).unwrap_or_else(whole);
        }
        let ends = [(NEXT_VALUE, "next values"), (IN_PLACE, "updated in place")];
        let of_end = |(end, head): (&str, &str)| of_argument(head, label.text.strip_suffix(end)?);
        if let Some(path) = ends.into_iter().find_map(of_end) {
            return path;
        }
        let (head, rest) = label.text.split_once(": ").unwrap_or((label.text.as_str(), ""));
        return [head, rest].into_iter().filter(|part| !part.is_empty()).map(|part| same(part.to_owned())).collect();
    }
    let instruction = program.buffers.instruction_of(buffer);
    let own = || instruction.map(|i| program.text.op_name(i)).unwrap_or_default();
    let op_name = label.map_or_else(own, |label| label.borrowed);
    if let Some(path) = of_argument("arguments", &op_name) {
        return path;
    }
    let path: Vec<Step> = scope::path(&op_name).into_iter().map(folded).collect();
    if path.is_empty() { vec![same(NO_NAME.to_owned()), same(opcode.to_owned())] } else { path }
}

/// Sharding of a buffer in words: that of the entry for an argument, else that of its instruction. Compiled programs
/// keep shardings for arguments and results only.
fn sharding(program: &Program, buffer: BufferId) -> String {
    let argument = program
        .buffers
        .allocation_of(buffer)
        .and_then(|id| program.allocations.get(id.index()))
        .filter(|allocation| allocation.is_parameter)
        .and_then(|allocation| program.parameter_shardings.get(usize::try_from(allocation.parameter_number).ok()?));
    let own = || program.buffers.instruction_of(buffer).and_then(|i| program.text.sharding(i));
    match argument.cloned().or_else(own) {
        Some(sharding) => sharding.in_words(),
        None => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(names: &[&str]) -> Tree {
        let mut tree = Tree { nodes: vec![TreeNode::default()], ..Tree::default() };
        let mut at = 0;
        for name in names {
            let next = tree.nodes.len();
            tree.nodes.push(TreeNode { name: (*name).to_owned(), parent: at, ..TreeNode::default() });
            tree.nodes[at].children.push(next);
            at = next;
        }
        tree
    }

    #[test]
    fn names_lead_to_a_node_again_or_as_near_as_there_is() {
        let deep = tree(&["layer_*", "attn", "sub"]);
        let path = deep.path(3);
        assert_eq!(path, ["layer_*", "attn", "sub"]);
        assert_eq!(deep.find(&path), 3);
        assert_eq!(tree(&["layer_*", "mlp"]).find(&path), 1);
        assert_eq!(tree(&["other"]).find(&path), 0);
        assert_eq!(Tree::default().find(&path), 0);
    }
}
