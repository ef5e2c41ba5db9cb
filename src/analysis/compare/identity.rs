//! What a buffer is known by in another compile of the program: the framework's name of its operation, the kind of
//! instruction, shape, class and source line; never the number that the compiler gave it.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash};

use foldhash::quality::FixedState;
use rayon::prelude::*;

use crate::analysis::class::Class;
use crate::analysis::flow::Value;
use crate::analysis::flow::other_result::own_name;
use crate::analysis::flow::steps::Steps;
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::names::scope;
use crate::analysis::scene::Scene;
use crate::analysis::table::{BufferTable, Interned};
use crate::model::{BufferId, Program};

/// The buffers of a memory space in the order in which they come to live, in columns.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub buffers: Vec<BufferId>,
    /// Bytes.
    pub size: Vec<u64>,
    /// Bytes at the peak; 0 for a buffer that is not live there.
    pub at_peak: Vec<u64>,
    pub class: Vec<Class>,
    pub identity: Vec<Identity>,
    /// Row of the table that the scene keeps.
    pub table_row: Vec<u32>,
}

/// What identifies a buffer, each part as a hash. 0 stands for what is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Identity {
    /// The whole name of the operation, or what the buffer is labelled by.
    pub op: u64,
    /// The name without what recomputation and loops put around it.
    pub path: u64,
    /// The path of the framework's own name, where the buffer has one; the label may be a guess that differs between two
    /// programs.
    pub name: u64,
    /// Whether the operation is of the backward pass.
    pub backward: bool,
    /// The path without its last part, the operation; 0 for what is in no scope.
    pub parent: u64,
    /// The path with numbered scopes folded.
    pub scope: u64,
    /// Name of the instruction without its numbers.
    pub stem: u64,
    pub opcode: u64,
    /// Which part of a tuple.
    pub index: u64,
    /// Element type, dimensions and layout.
    pub layout: u64,
    /// Element type and dimensions.
    pub shape: u64,
    /// Dimensions alone.
    pub dimensions: u64,
    /// Element type and number of dimensions.
    pub rank: u64,
    /// Element type and all dimensions but the first, which is most often the batch.
    pub inner: u64,
    pub source: u64,
    pub class: u64,
    /// Number of the parameter, for an argument of the program.
    pub parameter: u64,
    /// The argument of the program that the framework names it by: a copy of one layer's weight is not that of another,
    /// even if both have the same label.
    pub argument: u64,
}

/// Scopes that say how an operation is run, not what it is.
const WRAPPERS: [&str; 8] =
    ["checkpoint", "rematted_computation", "remat", "while", "body", "cond", "closed_call", "custom_partitioning"];

impl Rows {
    /// Describes every buffer of a memory space.
    pub fn new(scene: Scene<'_>) -> Self {
        let table = scene.table();
        let mut order: Vec<u32> = (0..table.len() as u32).collect();
        order.sort_by_key(|&row| (table.start[row as usize], table.number[row as usize]));
        let words = Words::new(table);
        let program = scene.program;
        let each = |layouts: &mut Layouts, &row: &u32| identity(program, table, (&words, layouts), row as usize);
        let identity: Vec<Identity> = order.par_iter().map_init(Layouts::default, each).collect();
        let mut rows = Self { identity, ..Self::default() };
        let mut at = vec![0; table.len()];
        for (place, &row) in order.iter().enumerate() {
            at[row as usize] = place;
            rows.buffers.push(table.buffers[row as usize]);
            rows.size.push(table.size[row as usize]);
            rows.class.push(table.class[row as usize]);
        }
        rows.at_peak = vec![0; table.len()];
        for (buffer, bytes) in scene.live(None) {
            if let Some(row) = table.row_of(buffer) {
                rows.at_peak[at[row as usize]] += bytes.0;
            }
        }
        rows.table_row = order;
        rows
    }

    pub fn len(&self) -> usize {
        self.buffers.len()
    }
}

/// Hashes of the words of a table, once for each word.
struct Words {
    op: Vec<u64>,
    path: Vec<u64>,
    backward: Vec<bool>,
    parent: Vec<u64>,
    scope: Vec<u64>,
    opcode: Vec<u64>,
    shape: Vec<u64>,
    source: Vec<u64>,
}

impl Words {
    fn new(table: &BufferTable) -> Self {
        let each = |words: &Interned, of: fn(&str) -> u64| words.values.par_iter().map(|word| of(word)).collect();
        Self {
            op: each(&table.op, |op| known(&without_sizes(op))),
            path: each(&table.op, path),
            backward: table.op.values.iter().map(|op| pass_of(op) == Pass::Backward).collect(),
            parent: each(&table.op, parent),
            scope: each(&table.op, |op| known(&scope::folded(&without_sizes(op)))),
            opcode: each(&table.opcode, known),
            shape: each(&table.shape, known),
            source: each(&table.source, known),
        }
    }
}

/// Hashes of the layouts met so far, by shape and place in it.
type Layouts = HashMap<(usize, u32), u64>;

fn identity(program: &Program, table: &BufferTable, (words, layouts): (&Words, &mut Layouts), row: usize) -> Identity {
    let buffer = table.buffers[row];
    let word = |hashes: &[u64], column: &Interned| hashes[column.of[row] as usize];
    let instruction = program.buffers.instruction_of(buffer);
    let node = program.buffer_node(buffer);
    let is_parameter = table.opcode.at(row) == "parameter";
    let layout = program.buffer_shape(buffer).map_or(0, |(shape, node)| {
        let place = (std::ptr::from_ref(shape) as usize, node);
        *layouts.entry(place).or_insert_with(|| known(&shape.text_of(node)))
    });
    // Most buffers have no label but the name itself.
    let own_path = |name: &str| if name == table.op.at(row) { word(&words.path, &table.op) } else { path(name) };
    // The parameters of a loop's body count from 0, too.
    let is_of_program = |id: &_| is_parameter && program.is_in_entry(*id);
    let parameter = instruction.filter(is_of_program).and_then(|id| program.instructions.argument.get(id.index()));
    let index = program.buffer_index(buffer);
    let is_one_of_several = !index.is_empty() && table.opcode.at(row) == "fusion";
    let name = match instruction {
        Some(at) if is_one_of_several => own_name(program, Value { at, index: index.clone() }),
        Some(at) => program.text.op_name(at),
        None => String::new(),
    };
    Identity {
        op: word(&words.op, &table.op),
        path: word(&words.path, &table.op),
        backward: words.backward[table.op.of[row] as usize],
        name: if instruction.is_some() { own_path(&name) } else { 0 },
        parent: word(&words.parent, &table.op),
        scope: word(&words.scope, &table.op),
        stem: known(stem(table.name.at(row))),
        opcode: word(&words.opcode, &table.opcode),
        index: hash(&index),
        layout,
        shape: word(&words.shape, &table.shape),
        dimensions: node.map_or(0, |node| hash(&node.dimensions)),
        rank: node.map_or(0, |node| hash(&(node.element_type.name(), node.dimensions.len()))),
        inner: node.map_or(0, |node| hash(&(node.element_type.name(), node.dimensions.get(1..)))),
        source: word(&words.source, &table.source),
        class: hash(&(table.class[row] as u8)),
        parameter: parameter.map_or(0, hash),
        argument: if scope::argument(&name).is_some_and(|(_, rest)| !rest.is_empty()) { hash(&*name) } else { 0 },
    }
}

/// An instruction's name without the numbers that the compiler adds: `fusion.123.remat2{1}` is a `fusion`.
fn stem(name: &str) -> &str {
    let mut stem = name.split('{').next().unwrap_or(name);
    while let Some((head, tail)) = stem.rsplit_once('.') {
        let is_added = tail.bytes().all(|c| c.is_ascii_digit())
            || ["remat", "clone"]
                .iter()
                .any(|word| tail.strip_prefix(word).is_some_and(|rest| rest.bytes().all(|c| c.is_ascii_digit())));
        if !is_added || head.is_empty() {
            break;
        }
        stem = head;
    }
    stem
}

/// A label without the dimensions that tell shapes apart: `saved by the scan: mlp/wi, [2,4096]` differs between two batch
/// sizes. An index such as `state[2]` stays.
fn without_sizes(op: &str) -> Cow<'_, str> {
    let is_size = |inside: &str| {
        inside.bytes().any(|c| c.is_ascii_digit()) && inside.bytes().all(|c| c.is_ascii_digit() || c == b',')
    };
    let mut out = String::new();
    let mut rest = op;
    while let Some(at) = rest.find('[') {
        let (head, tail) = rest.split_at(at);
        let Some(end) = tail.find(']') else { break };
        let inside = &tail[1..end];
        out.push_str(head);
        if !(is_size(inside) && (inside.contains(',') || head.ends_with(' '))) {
            out.push_str(&tail[..=end]);
        }
        rest = &tail[end + 1..];
    }
    if out.is_empty() {
        return without_count(op).map_or(Cow::Borrowed(op), Cow::Owned);
    }
    out.push_str(rest);
    Cow::Owned(without_count(&out).unwrap_or(out))
}

/// A label without the number of layers or steps of its loop: `saved by the scan for 32 layers: mlp/wi`; `None` where it
/// tells none.
fn without_count(label: &str) -> Option<String> {
    ["for ", "over "].iter().find_map(|word| {
        let (head, tail) = label.split_once(word)?;
        let rest = tail.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
        let unit = rest.strip_prefix(' ')?;
        let counts = rest.len() < tail.len() && Steps::ALL.iter().any(|steps| unit.starts_with(steps.many()));
        counts.then(|| format!("{head}{word}{unit}"))
    })
}

fn path(op: &str) -> u64 {
    if scope::argument(op).is_some() {
        return known(op);
    }
    let op = without_sizes(op);
    let parts = plain_path(&op);
    if parts.is_empty() { 0 } else { hash(&parts) }
}

/// The scope with its pass, since forward and backward of a layer are different buffers.
fn parent(op: &str) -> u64 {
    if scope::argument(op).is_some() {
        return 0;
    }
    let op = without_sizes(op);
    match plain_path(&op).split_last() {
        Some((_, scopes)) if !scopes.is_empty() => hash(&(scopes, pass_of(&op) as u8)),
        _ => 0,
    }
}

fn plain_path(op: &str) -> Vec<&str> {
    let mut parts = scope::path(op);
    parts.retain(|part| !WRAPPERS.contains(part));
    parts
}

fn known(text: &str) -> u64 {
    if text.is_empty() { 0 } else { hash(text) }
}

/// Never 0, which stands for nothing.
pub(super) fn hash<T: Hash + ?Sized>(value: &T) -> u64 {
    FixedState::default().hash_one(value).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_compiler_fall_away() {
        for (name, expected) in [
            ("fusion.123", "fusion"),
            ("fusion.123.remat2{1}", "fusion"),
            ("loop_add_fusion.5.clone.1", "loop_add_fusion"),
            ("param.2.clone", "param"),
            ("wide.param", "wide.param"),
            (".5", ".5"),
        ] {
            assert_eq!(stem(name), expected, "{name}");
        }
    }

    #[test]
    fn sizes_in_a_label_are_not_part_of_it() {
        assert_eq!(without_sizes("saved by the scan: mlp/wi, [2,4096]"), "saved by the scan: mlp/wi, ");
        assert_eq!(without_sizes("state[2][1].mu['w']"), "state[2][1].mu['w']");
        assert_eq!(without_sizes("jit(f)/mul"), "jit(f)/mul");
        assert_eq!(without_sizes("gradients: [128]"), "gradients: ");
        assert_eq!(without_sizes("open [2,3"), "open [2,3");
        assert_eq!(without_sizes("saved by the scan for 32 layers: mlp, [4,8]"), "saved by the scan for layers: mlp, ");
        assert_eq!(without_sizes("collected by the loop over 6 steps: kc"), "collected by the loop over steps: kc");
        assert_eq!(without_sizes("saved by the scan for 4 ring steps: kc"), "saved by the scan for ring steps: kc");
        assert_eq!(without_sizes("jit(f)/for 3"), "jit(f)/for 3");
    }

    #[test]
    fn recomputation_and_loops_are_not_part_of_the_path() {
        let plain = path("jit(step)/jvp(layer_3)/attn/dot_general");
        assert_eq!(path("jit(step)/jvp(layer_3)/checkpoint/attn/dot_general"), plain);
        assert_eq!(path("jit(step)/while/body/closed_call/jvp(layer_3)/attn/dot_general"), plain);
        assert_eq!(path("jit(step)/transpose(jvp(layer_3))/jvp(layer_3)/checkpoint/attn/dot_general"), plain);
        assert_ne!(path("jit(step)/jvp(layer_4)/attn/dot_general"), plain);
        assert_eq!(path(""), 0);
    }
}
