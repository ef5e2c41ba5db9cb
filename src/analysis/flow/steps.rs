//! What the steps of a loop are: layers whose weights it takes one after the other, turns of a ring of devices, stages of
//! a pipeline, parts of a batch.

use std::collections::{BTreeMap, BTreeSet};

use super::loops::{Loops, Role, pass_of_loop};
use super::{Value, argument, body, computed, node_at, opcode, operand, root};
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::names::pattern;
use crate::model::{
    ComputationId, ElementType, FastMap, FastSet, InstructionId, Opcode, Program, ShapeIndex, ShapeNode,
};

/// What one step of a loop is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Steps {
    /// A layer: each step takes its slice of stacked weights.
    Layers,
    /// Several layers: each step takes its slices of the stacked weights of each of them.
    LayerGroups,
    /// A turn of a ring: each step hands what it was given on to the next device, as it is.
    Ring,
    /// A tick of a pipeline: each step hands its result to the next device.
    Pipeline,
    /// A part of the batch: the steps add up their gradients.
    MicroBatches,
    /// Anything else, such as a point in time.
    #[default]
    Other,
}

impl Steps {
    /// All kinds of steps.
    pub const ALL: [Self; 6] =
        [Self::Layers, Self::LayerGroups, Self::Ring, Self::Pipeline, Self::MicroBatches, Self::Other];

    /// Whether each is a layer, or several.
    #[must_use]
    pub const fn are_layers(self) -> bool {
        matches!(self, Self::Layers | Self::LayerGroups)
    }

    /// The word for one: `layer`.
    #[must_use]
    pub const fn one(self) -> &'static str {
        match self {
            Self::Layers => "layer",
            Self::LayerGroups => "group of layers",
            Self::Ring => "ring step",
            Self::Pipeline => "pipeline step",
            Self::MicroBatches => "micro-batch",
            Self::Other => "step",
        }
    }

    /// The word for several: `layers`.
    #[must_use]
    pub const fn many(self) -> &'static str {
        match self {
            Self::Layers => "layers",
            Self::LayerGroups => "groups of layers",
            Self::Ring => "ring steps",
            Self::Pipeline => "pipeline steps",
            Self::MicroBatches => "micro-batches",
            Self::Other => "steps",
        }
    }
}

/// Fewest arguments of a layer, where nothing else shows that they are weights.
const FEWEST_OF_A_LAYER: usize = 3;

/// The steps of a program's loops, and the arguments that loops take slice by slice.
#[derive(Debug, Default)]
pub struct LoopSteps {
    of_loops: FastMap<InstructionId, Steps>,
    of_arguments: FastMap<i64, Steps>,
    /// How many parts of the batch a loop runs on, one after the other, and adds up their gradients; 0 where that is not
    /// known, `None` if no loop does.
    pub micro_batches: Option<i64>,
}

impl LoopSteps {
    pub(super) fn new(program: &Program, loops: &Loops) -> Self {
        let mut found = Self::default();
        let kept = Kept::new(program);
        let sliced = if loops.users.is_empty() { FastMap::default() } else { sliced(program, loops) };
        for &at in &loops.users {
            let taken = sliced.get(&at).map_or(&[][..], Vec::as_slice);
            let Some(steps) = found.steps_of(program, loops, &kept, (at, taken)) else { continue };
            found.of_loops.insert(at, steps);
        }
        // A loop of the backward pass goes over what the loop of the forward pass went over.
        for part in loops.parts.iter().filter(|part| part.role == Role::Unchanged) {
            if found.of(part.at) != Steps::Other || !found.of_loops.contains_key(&part.at) {
                continue;
            }
            let read = operand(program, part.at, 0)
                .map(|state| computed(program, Value { at: state, index: part.index.clone() }))
                .filter(|value| opcode(program, value.at) == Opcode::WHILE)
                .filter(|value| loops.part(value.at, &value.index).is_some_and(|part| part.layers > 0));
            if let Some(forward) = read.map(|value| found.of(value.at)).filter(|&steps| steps != Steps::Other) {
                found.of_loops.insert(part.at, forward);
            }
        }
        found
    }

    /// What the steps of a loop are.
    #[must_use]
    pub fn of(&self, at: InstructionId) -> Steps {
        self.of_loops.get(&at).copied().unwrap_or_default()
    }

    /// What the steps are of the loop that takes an argument slice by slice along its first dimension; `None` if none
    /// does.
    #[must_use]
    pub fn of_argument(&self, number: i64) -> Option<Steps> {
        self.of_arguments.get(&number).copied()
    }

    fn steps_of(
        &mut self,
        program: &Program,
        loops: &Loops,
        kept: &Kept<'_>,
        (at, sliced): (InstructionId, &[ShapeIndex]),
    ) -> Option<Steps> {
        let body = body(program, at)?;
        let taken: Vec<(InstructionId, &ShapeNode)> = sliced
            .iter()
            .filter_map(|index| {
                let given = Value { at: operand(program, at, 0)?, index: index.clone() };
                Some((argument::entry_parameter(program, loops, &given, true)?, node_at(program, at, index)?))
            })
            .collect();
        let count = loops.parts.iter().find(|part| part.at == at && part.layers > 0).map(|part| part.layers);
        let count = count.or_else(|| most_common(taken.iter().filter_map(|row| row.1.dimensions.first().copied())));
        let is_of_step = |node: &ShapeNode| node.dimensions.first().copied() == count;
        let layer: Vec<(InstructionId, &ShapeNode)> =
            taken.iter().filter(|row| is_of_step(row.1) && row.1.element_type.is_float()).copied().collect();
        let steps = if kept.are_of_layers(&layer) {
            if are_of_several(program, &layer) { Steps::LayerGroups } else { Steps::Layers }
        } else {
            match pass_of_loop(program, at) {
                Pass::Backward if adds_up_gradients(program, loops, at, body) => Steps::MicroBatches,
                Pass::Backward => Steps::Other,
                Pass::Forward | Pass::Recomputed | Pass::Unknown => handed_around(program, body),
            }
        };
        if steps == Steps::MicroBatches {
            self.micro_batches = self.micro_batches.max(Some(count.unwrap_or(0)));
        }
        for (parameter, node) in taken {
            let Some(number) = number(program, parameter) else { continue };
            // What was transposed on the way is taken along another dimension.
            let first = program.shape_of(parameter).map(|shape| shape.root().dimensions.first());
            if first != Some(node.dimensions.first()) {
                continue;
            }
            let own = if is_of_step(node) { steps } else { Steps::Other };
            let known = self.of_arguments.entry(number).or_insert(own);
            if own.are_layers() {
                *known = own;
            }
        }
        Some(steps)
    }
}

/// How the names of layers end that alternate, as of Gemma 2: with attention to what is near, and to everything.
const ALTERNATING: [&str; 2] = ["_local", "_global"];

/// Whether weights that a loop takes slice by slice are those of several layers in each step: each has namesakes that
/// differ by a number, as `layers_0/mlp/wo` and `layers_1/mlp/wo`, or by the kind of their layer, as `mlp_local/wo` and
/// `mlp_global/wo`.
fn are_of_several(program: &Program, taken: &[(InstructionId, &ShapeNode)]) -> bool {
    let arguments: BTreeSet<InstructionId> = taken.iter().map(|row| row.0).collect();
    let mut namesakes: BTreeMap<String, usize> = BTreeMap::new();
    for at in arguments {
        let mut path = pattern::of(&program.text.op_name(at));
        for kind in ALTERNATING {
            path = path.replace(kind, "_*");
        }
        // A number at the end counts arrays, not layers: `p[3]`.
        let is_of_layer =
            path.trim_end_matches(".value").split_once('*').is_some_and(|(_, rest)| rest.contains(char::is_alphabetic));
        if !is_of_layer {
            return false;
        }
        *namesakes.entry(path).or_default() += 1;
    }
    let fewest = namesakes.values().copied().min().unwrap_or(0);
    fewest > 1 && namesakes.values().all(|count| count.is_multiple_of(fewest))
}

/// Whether a loop runs both passes in each step, and adds up to arrays that begin as zeros.
fn adds_up_gradients(program: &Program, loops: &Loops, at: InstructionId, body: ComputationId) -> bool {
    let Some(computation) = program.computations.get(body.index()) else { return false };
    let mut inside = (computation.start..computation.end).map(|row| pass_of(&program.text.op_name(InstructionId(row))));
    let begins_as_zeros = |index: &[i64]| {
        let begun = operand(program, at, 0).map(|state| computed(program, Value { at: state, index: index.into() }));
        begun.is_some_and(|begun| program.opcode_name(begun.at) == "constant" || super::is_blank(program, &begun))
    };
    let is_sum = |index: &[i64]| {
        node_at(program, at, index)
            .is_some_and(|node| node.element_type.is_float() && node.dimensions.iter().any(|&size| size > 1))
            && begins_as_zeros(index)
    };
    pass_of(&program.text.op_name(at)) == Pass::Unknown
        && inside.any(|pass| pass == Pass::Forward)
        && loops.parts.iter().any(|part| part.at == at && part.role == Role::Carry && is_sum(&part.index))
}

/// What a program keeps from call to call: arguments whose next value is a result.
struct Kept<'a> {
    donated: FastSet<i64>,
    results: FastSet<(ElementType, &'a [i64])>,
    program: &'a Program,
}

impl<'a> Kept<'a> {
    fn new(program: &'a Program) -> Self {
        let root = program.entry.and_then(|entry| root(program, entry)).and_then(|root| program.shape_of(root));
        let results = root.into_iter().flat_map(|shape| &shape.nodes).filter(|node| !node.is_tuple());
        Self {
            donated: program.aliases.iter().filter_map(|alias| program.argument_of(alias)).collect(),
            results: results.map(|node| (node.element_type, node.dimensions.as_slice())).collect(),
            program,
        }
    }

    /// Whether arguments that a loop takes slice by slice are weights of layers: one of them is updated, or there are
    /// several matrices that share no other dimension, as samples would.
    fn are_of_layers(&self, taken: &[(InstructionId, &ShapeNode)]) -> bool {
        let matrices = || taken.iter().filter(|row| row.1.dimensions.len() >= 2);
        if matrices().any(|row| self.is_kept(row.0)) {
            return true;
        }
        let arguments: FastSet<InstructionId> = matrices().map(|row| row.0).collect();
        let second: FastSet<i64> = matrices().filter_map(|row| row.1.dimensions.get(1).copied()).collect();
        let of_products = matrices().filter(|row| row.1.dimensions.len() >= 3).count();
        arguments.len() >= FEWEST_OF_A_LAYER && second.len() >= 2 && of_products >= 2
    }

    fn is_kept(&self, parameter: InstructionId) -> bool {
        let node = self.program.shape_of(parameter).map(|shape| shape.root());
        number(self.program, parameter).is_some_and(|number| self.donated.contains(&number))
            || node.is_some_and(|node| self.results.contains(&(node.element_type, node.dimensions.as_slice())))
    }
}

/// The number of the argument that a parameter of the entry is.
fn number(program: &Program, parameter: InstructionId) -> Option<i64> {
    program.instructions.argument.get(parameter.index()).copied().map(i64::from)
}

fn most_common(sizes: impl Iterator<Item = i64>) -> Option<i64> {
    let mut counts: std::collections::BTreeMap<i64, usize> = std::collections::BTreeMap::new();
    for size in sizes {
        *counts.entry(size).or_default() += 1;
    }
    counts.into_iter().max_by_key(|row| row.1).map(|row| row.0)
}

/// Indices of each loop's state of which its body takes a slice along the first dimension.
fn sliced(program: &Program, loops: &Loops) -> FastMap<InstructionId, Vec<ShapeIndex>> {
    let mut found: FastMap<InstructionId, Vec<ShapeIndex>> = FastMap::default();
    for at in program.instructions.ids().filter(|&at| takes_a_slice(program, at)) {
        let whole = operand(program, at, 0).and_then(|from| state_of(program, loops, Value::whole(from)));
        let Some(Value { at, index }) = whole else { continue };
        let own = found.entry(at).or_default();
        if !own.contains(&index) {
            own.push(index);
        }
    }
    found
}

/// The loop, and the index in its state, that a value in its body is: traced through views, changes of layout and the
/// fusions that they are in.
fn state_of(program: &Program, loops: &Loops, value: Value) -> Option<Value> {
    let mut value = value;
    for _ in 0..super::MAX_DEPTH * 2 {
        let from = computed(program, value);
        if opcode(program, from.at) == Opcode::FUSION && from.index.is_empty() {
            value = Value::whole(argument::moved_by(program, from.at, false)?);
            continue;
        }
        if opcode(program, from.at) != Opcode::PARAMETER {
            return None;
        }
        let caller = loops.runner(program.computation_of(from.at)?)?;
        if opcode(program, caller) == Opcode::WHILE {
            return (!from.index.is_empty()).then_some(Value { at: caller, index: from.index });
        }
        let place = *program.instructions.argument.get(from.at.index())? as usize;
        value = Value { at: operand(program, caller, place)?, index: from.index };
    }
    None
}

/// Whether an instruction takes one slice of its operand's first dimension, at a place that is computed.
fn takes_a_slice(program: &Program, at: InstructionId) -> bool {
    let first = |at: InstructionId| program.shape_of(at).and_then(|shape| shape.root().dimensions.first().copied());
    program.opcode_name(at) == "dynamic-slice"
        && first(at) == Some(1)
        && operand(program, at, 0).and_then(first).is_some_and(|size| size > 1)
}

/// Whether a loop hands what it passes on from device to device: as it was given, or what it made.
fn handed_around(program: &Program, body: ComputationId) -> Steps {
    let Some(root) = root(program, body) else { return Steps::Other };
    let mut found = Steps::Other;
    for place in 0..program.instructions.operands_of(root).len() as i64 {
        let mut at = computed(program, Value { at: root, index: smallvec::smallvec![place] }).at;
        if opcode(program, at) == Opcode::COLLECTIVE_PERMUTE_DONE {
            let Some(start) = operand(program, at, 0) else { continue };
            at = start;
        }
        if !matches!(opcode(program, at), Opcode::COLLECTIVE_PERMUTE | Opcode::COLLECTIVE_PERMUTE_START) {
            continue;
        }
        let Some(sent) = operand(program, at, 0).map(|sent| computed(program, Value::whole(sent))) else { continue };
        if opcode(program, sent.at) == Opcode::PARAMETER {
            return Steps::Ring;
        }
        found = Steps::Pipeline;
    }
    found
}
