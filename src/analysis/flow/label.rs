//! Labels for temporaries whose op name tells little: a stack saved by a loop is named by what it was made from, a copy
//! by its source, a product by its weight.

use std::collections::HashMap;
use std::sync::OnceLock;

use foldhash::fast::RandomState;

use super::argument::moved_by;
use super::argument_use::ArgumentUses;
use super::by_softmax::{LOGITS, OF_LOGITS, Softmaxes};
use super::collective::{NamedBy, has_collectives, is_all_gather, named_by};
use super::copied_state::copied_state;
use super::held::cast_to;
use super::kernel::kernel_behind;
use super::like_weights::{like_weights, like_whole_weights, weights_like};
use super::loops::{Loops, Part, Role};
use super::next_value::{self, IN_PLACE, Returned, next_value};
use super::operation::operation;
use super::other_result::{beside_operation, is_never_read, is_of_all, other_result};
use super::partial_sum::gradient_of_experts;
use super::product::is_product;
use super::read_by::read_by;
use super::steps::LoopSteps;
use super::words::PARTS;
pub use super::words::{Label, backward};
use super::{Value, argument, handed_on, node_at, opcode, operand};
use crate::analysis::names::lookup::is_rematerialised;
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::names::plain::{is_number_of, is_plain, is_plain_part, named_scopes};
use crate::analysis::names::scope;
use crate::analysis::names::short_path::short_path;
use crate::model::{BufferId, FastMap, InstructionId, NO_ROW, Opcode, Program, ShapeNode};

/// Most elements of a loop's state whose names are compared.
const MOST_COMPARED: i64 = 256;

/// What comes out of a loop over layers: forwards, and backwards.
pub(super) const OF_LAST_LAYER: &str = "output of the last layer";
pub(super) const OF_FIRST_LAYER: &str = "gradient of the first layer's input";

/// The short names of the arguments that instructions hold parts of, as far as they were looked for.
#[derive(Debug, Default)]
pub struct Arguments(HashMap<u32, Option<String>, RandomState>);

impl Arguments {
    pub(super) fn of(&mut self, row: u32, find: impl FnOnce() -> Option<String>) -> Option<String> {
        self.0.entry(row).or_insert_with(find).clone()
    }
}

/// How the label of a copy of an argument begins.
pub const COPY_OF: &str = "copy of ";

/// How the label of what a loop adds up begins, such as gradients of micro-batches.
pub const SUMMED: &str = "summed by the loop";

/// What all-gathers make.
const GATHERED: &str = "gathered from other devices";

/// Names buffers of one program.
#[derive(Debug, Default)]
pub struct Labels {
    /// The loops of the program.
    pub loops: Loops,
    /// What their steps are.
    pub steps: LoopSteps,
    /// The softmaxes of the program.
    pub softmaxes: Softmaxes,
    /// Whether devices exchange anything.
    pub has_collectives: bool,
    returned: Returned,
    /// The entry's parameters by their paths.
    pub(super) by_path: OnceLock<FastMap<String, InstructionId>>,
    /// What arguments serve whose paths do not say it.
    pub(super) uses: OnceLock<ArgumentUses>,
}

impl Labels {
    /// Analyses the program's loops.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        let loops = Loops::new(program);
        let steps = LoopSteps::new(program, &loops);
        Self { loops, steps, has_collectives: has_collectives(program), ..Self::default() }
    }

    /// The label of a buffer; `None` if its op name is good enough.
    #[must_use]
    pub fn of(&self, program: &Program, buffer: BufferId) -> Option<Label> {
        self.of_next(program, buffer, &mut Arguments::default())
    }

    /// As [`Self::of`], for one after the other of a program's buffers.
    #[must_use]
    pub fn of_next(&self, program: &Program, buffer: BufferId, known: &mut Arguments) -> Option<Label> {
        let label = self.label(program, buffer, known);
        let Some(at) = program.buffers.instruction_of(buffer).filter(|&at| is_rematerialised(program, at)) else {
            return label;
        };
        // What the compiler computes again with other results of a fusion may be of no use.
        if is_never_read(program, at, &program.buffer_index(buffer)) {
            let label = label.unwrap_or_else(|| Label::borrowed(self.source_name(program, buffer)));
            return Some(Label { text: format!("{}, never read", label.text), ..label });
        }
        label
    }

    fn label(&self, program: &Program, buffer: BufferId, known: &mut Arguments) -> Option<Label> {
        let at = program.buffers.instruction_of(buffer)?;
        if opcode(program, at) == Opcode::PARAMETER && program.is_in_entry(at) {
            return self.of_argument(program, at, buffer);
        }
        let value = Value { at, index: program.buffer_index(buffer) };
        // The arrays of a collective that a fusion carries on beside its own work have nothing to do with that work.
        let (value, collective) = match named_by(program, &value) {
            Some(NamedBy { value, collective }) => {
                if collective.is_none()
                    && let Some(own) = updated_argument(program, buffer)
                {
                    return Some(own);
                }
                (value, collective)
            }
            None => (value, None),
        };
        if let Some(part) = self.stack(program, &value, 0).filter(|_| collective.is_none()) {
            // What a loop makes of all layers in the memory of an argument is its next value.
            let next = (part.role == Role::Collected).then(|| updated_argument(program, buffer)).flatten();
            let next = next.map(|own| Label { role: Some(part.role), ..own });
            return next.or_else(|| Some(self.stack_label(program, part, known)));
        }
        let held = self.held(program, &value, collective);
        let path = held.map(|held| program.text.op_name(held.parameter)).filter(|path| !path.is_empty());
        if let Some((held, path)) = held.zip(path) {
            if held.is_gathered {
                return Some(Label::plain(format!("{GATHERED}: {path}")));
            }
            let cast = cast_to(program, buffer, &held).map(|kind| format!(", cast to {kind}"));
            let text = format!("{COPY_OF}{path}{}", cast.unwrap_or_default());
            return Some(Label { copy_of: path, ..Label::plain(text) });
        }
        if let Some(name) = next_value(program, buffer, &value, &self.returned) {
            return Some(Label::plain(name));
        }
        let is_resolved = collective.is_some() || value.at != at;
        let at = collective.unwrap_or(value.at);
        let name = if is_resolved { String::new() } else { program.text.op_name(at) };
        let is_borrowed = name.is_empty();
        // A prefetch has no name; its operand's is its own.
        let own = if is_borrowed { self.loops.op_name(program, at) } else { name };
        let other = other_result(program, &value, &own);
        let (own, of_fusion) = match other {
            Some(other) => (other, Some(own)),
            None => (own, None),
        };
        let is_other = of_fusion.is_some();
        if !is_plain(&own) && is_all_gather(program, at) {
            let text = format!("{GATHERED}: {}{}", scope::short(&own, PARTS), backward(&own));
            return Some(Label { borrowed: own, ..Label::plain(text) });
        }
        if !is_plain(&own) {
            let name = own;
            let node = node_at(program, value.at, &value.index);
            let kind = node.and_then(|node| self.kind_by_softmax(program, &value, node, &node.dimensions));
            return match kind {
                Some(kind) => Some(Label::of_kind(kind, name)),
                None => (is_other || is_borrowed).then(|| Label::borrowed(name)),
            };
        }
        if let Some(path) = self.updated_copy(program, &value) {
            let copy = format!("{COPY_OF}{path}{IN_PLACE}");
            let own = updated_argument(program, buffer).filter(|own| copy.strip_prefix(COPY_OF) == Some(&own.text));
            return own.or_else(|| Some(Label::plain(copy)));
        }
        // State that layers write to, each its slice, such as a cache.
        if opcode(program, at) == Opcode::WHILE
            && !value.index.is_empty()
            && let Some(copy) = self.copy_of_state(program, at, &value.index)
        {
            return updated_argument(program, buffer).or(Some(copy));
        }
        if let Some(sum) = self.summed(program, &value) {
            return Some(Label::plain(sum));
        }
        // Rows that are added up in an array like a weight are its gradient, whatever product they come from.
        let scattered = scope::path(&own).last().copied().filter(|operation| operation.starts_with("scatter"));
        if let Some(operation) = scattered
            && let Some(weight) = node_at(program, at, &value.index).and_then(|node| like_weights(program, node))
        {
            return Some(Label::plain(format!("{weight}: {operation}")));
        }
        if let Some(weight) = gradient_of(program, &value, &own) {
            return Some(Label::plain(format!("gradient of {weight}")));
        }
        if let Some(node) = node_at(program, at, &value.index)
            && let Some(kind) = self.kind_by_softmax(program, &value, node, &node.dimensions)
        {
            let from = if kind == LOGITS { self.made_from(program, &value, known) } else { None };
            let from = from.filter(|from| from != OF_LAST_LAYER);
            return Some(Label::plain(
                from.map_or_else(|| kind.to_owned(), |from| format!("{kind}, made from {from}")),
            ));
        }
        // Of all words, for the one that is the right one.
        if own.contains("log_softmax") && own.ends_with("/sub") && pass_of(&own) != Pass::Backward {
            return Some(Label::plain("log-softmax of the logits".to_owned()));
        }
        let Some(origin) = self.origin(program, &value, known) else {
            if own.is_empty() && is_all_gather(program, at) {
                return Some(Label::plain(GATHERED.to_owned()));
            }
            let start = || program.computation_of(at).and_then(|computation| self.loops.start(computation));
            return self
                .in_loop(program, &value, known)
                .or_else(|| updated_argument(program, buffer))
                .or_else(|| {
                    let node = node_at(program, at, &value.index)?;
                    let is_one = self.softmaxes.are_like_logits(program, node);
                    let words = match pass_of(&own) {
                        Pass::Forward => LOGITS,
                        Pass::Backward => OF_LOGITS,
                        _ => "logits, or their gradient",
                    };
                    is_one.then(|| Label::plain(words.to_owned()))
                })
                .or_else(|| read_by(program, at))
                .or_else(|| start().and_then(|start| read_by(program, start)))
                // As the parts of a weight's gradient that devices exchange while they add them up.
                .or_else(|| {
                    let is_backward = pass_of(&own) == Pass::Backward;
                    let like = if is_backward { self.like_a_weight(program, &value) } else { None };
                    Some(Label::plain(like?))
                })
                // A name that tells no part of the model is better than none.
                .or_else(|| {
                    (is_borrowed && !own.is_empty() && opcode(program, at) != Opcode::TUPLE)
                        .then(|| Label::borrowed(own.clone()))
                });
        };
        let made_from = &origin.name;
        if own.is_empty() && is_all_gather(program, at) {
            return Some(Label::plain(format!("{GATHERED}: {made_from}")));
        }
        if let Some((_, _)) = scope::argument(&own) {
            return Some(Label::plain(format!("made from {made_from}")));
        }
        let operation = scope::path(&own).last().map(|&last| last.to_owned()).unwrap_or_default();
        // What writes a row is of the array that it writes to.
        if operation == "dynamic_update_slice"
            && let Some(own) = updated_argument(program, buffer)
        {
            return Some(own);
        }
        // The name of all arguments tells less than what the fusion is named for.
        if let Some(beside) = of_fusion.filter(|name| !is_plain(name) && is_of_all(program, made_from)) {
            return Some(beside_operation(&beside, own, &operation));
        }
        if let Some(gradient) = origin.gradient_before(program, &value, &own) {
            return Some(Label::plain(gradient));
        }
        if pass_of(&own) == Pass::Backward
            && let Some(words) = gradient_of_experts(program, &value)
        {
            return Some(Label::plain(words.to_owned()));
        }
        let says_nothing = is_plain_part(&operation);
        let is_end = [OF_LAST_LAYER, OF_FIRST_LAYER].contains(&made_from.as_str());
        let text = if is_end && (operation.is_empty() || says_nothing) {
            origin.name
        } else if operation.is_empty() || is_number_of(&operation) || says_nothing {
            format!("made from {made_from}")
        } else {
            format!("{made_from}: {operation}{}", backward(&own))
        };
        Some(Label::plain(text))
    }

    /// The label of an element of a loop's state that is a copy of an argument, which the loop writes to.
    fn copy_of_state(&self, program: &Program, at: InstructionId, index: &[i64]) -> Option<Label> {
        let path = program.text.op_name(copied_state(program, &self.loops, at, index)?);
        (!path.is_empty()).then(|| Label::plain(format!("{COPY_OF}{path}")))
    }

    /// The label of what a loop passes from step to step, or of the empty array that it begins as: that of what the loop's
    /// body makes of it.
    fn in_loop(&self, program: &Program, value: &Value, known: &mut Arguments) -> Option<Label> {
        let mut value = value.clone();
        for _ in 0..super::MAX_DEPTH {
            let (at, index) = match opcode(program, value.at) {
                Opcode::PARAMETER => (self.loops.caller(program.computation_of(value.at)?)?, value.index),
                Opcode::WHILE => (value.at, value.index),
                _ => {
                    let part = self.begun_with(program, &value, false)?;
                    (part.at, part.index.clone())
                }
            };
            let root =
                super::root(program, super::body(program, at).filter(|_| opcode(program, at) == Opcode::WHILE)?)?;
            let end = super::computed(program, Value { at: root, index: index.clone() });
            let is_unchanged = opcode(program, end.at) == Opcode::PARAMETER && end.index == index;
            if is_unchanged {
                // It is what the loop around it passes on, or what comes before.
                value = super::computed(program, Value { at: operand(program, at, 0)?, index });
                let name = self.loops.op_name(program, value.at);
                if !is_plain(&name) {
                    return Some(Label::borrowed(name));
                }
                continue;
            }
            // Whatever writes its slices.
            if let Some(copy) = self.copy_of_state(program, at, &index) {
                return Some(copy);
            }
            let name = self.loops.op_name(program, end.at);
            if !is_plain(&name) {
                return Some(Label::borrowed(name));
            }
            let from = self.made_from(program, &end, known).map(|from| format!("made from {from}"));
            let like = || {
                let like = like_weights(program, node_at(program, at, &index)?)?;
                let begin = Value { at: operand(program, at, 0)?, index: index.clone() };
                // Not of an argument, as weights that are updated are, but of nothing, as the gradients of micro-batches.
                let adds = matches!(scope::path(&name).last(), Some(&("add" | "add_any")));
                let is_sum = adds && argument::entry_parameter(program, &self.loops, &begin, false).is_none();
                let is_backward = super::loops::pass_of_loop(program, at) == Pass::Backward;
                let what = if is_backward { "gradient of" } else { "with the shape of" };
                Some(format!("{}: {what} {like}", if is_sum { SUMMED } else { "carried by the loop" }))
            };
            // A name that tells no part of the model is better than none.
            let borrowed = || (!name.is_empty()).then(|| Label::borrowed(name.clone()));
            return from.or_else(like).map(Label::plain).or_else(borrowed);
        }
        None
    }

    /// The part of a loop's state, or only the stack of one, that begins as an array made before it.
    fn begun_with(&self, program: &Program, made: &Value, is_stack: bool) -> Option<&Part> {
        let begins = |part: &&Part| {
            let state = operand(program, part.at, 0);
            state.is_some_and(|at| super::computed(program, Value { at, index: part.index.clone() }) == *made)
        };
        self.loops.parts.iter().filter(|part| !is_stack || part.layers > 0).find(begins)
    }

    /// The pass of the loop that fills an array that holds nothing yet.
    #[must_use]
    pub fn pass_filled_in(&self, program: &Program, value: &Value) -> Option<Pass> {
        let part = super::is_blank(program, value).then(|| self.begun_with(program, value, false)).flatten()?;
        Some(super::loops::pass_of_loop(program, part.at))
    }

    /// Full name of a buffer: its label, else its framework op name; a copy has that of its source.
    #[must_use]
    pub fn op_name(&self, program: &Program, buffer: BufferId) -> String {
        self.of(program, buffer).map_or_else(|| self.source_name(program, buffer), |label| label.text)
    }

    /// The framework op name of a buffer, of a copy that of its source.
    #[must_use]
    pub fn source_name(&self, program: &Program, buffer: BufferId) -> String {
        program.buffers.instruction_of(buffer).map(|at| self.loops.op_name(program, at)).unwrap_or_default()
    }

    /// The role a buffer plays in a loop over layers.
    #[must_use]
    pub fn role(&self, program: &Program, buffer: BufferId) -> Option<&Part> {
        self.role_of(program, &Value::of_buffer(program, buffer)?)
    }

    /// The same of a value.
    #[must_use]
    pub fn role_of(&self, program: &Program, value: &Value) -> Option<&Part> {
        self.stack(program, value, 0)
    }

    /// Whether a stack holds the input of each layer, which is the loop's carry before the step.
    #[must_use]
    pub fn is_input(&self, program: &Program, part: &Part) -> bool {
        let Some(written) = &part.written else { return false };
        let value = super::computed(program, written.clone());
        opcode(program, value.at) == Opcode::PARAMETER && self.is_carry(program, part, &value)
    }

    /// The stack that a value belongs to: inside the loop that writes it, before (while empty), after, or in loops that
    /// read it.
    fn stack(&self, program: &Program, value: &Value, depth: u32) -> Option<&Part> {
        let mut value = value.clone();
        for _ in 0..super::MAX_STEPS {
            let part = match opcode(program, value.at) {
                Opcode::WHILE => self.loops.part(value.at, &value.index),
                Opcode::PARAMETER => {
                    let caller = self.loops.caller(program.computation_of(value.at)?)?;
                    if opcode(program, caller) != Opcode::WHILE {
                        return None;
                    }
                    self.loops.part(caller, &value.index)
                }
                _ if super::is_blank(program, &value) => return self.begun_with(program, &value, true),
                Opcode::DYNAMIC_UPDATE_SLICE | Opcode::FUSION => {
                    // A stack in another layout is the stack.
                    if let Some(moved) = moved(program, &value) {
                        value = Value::whole(moved);
                        continue;
                    }
                    let begun = super::beginning(program, value, depth).filter(|begun| begun.is_updated)?;
                    value = Value { at: begun.parameter, index: begun.index };
                    continue;
                }
                _ => {
                    value = handed_on(program, &value)?;
                    continue;
                }
            };
            let part = part?;
            if part.layers > 0 {
                return Some(part);
            }
            if part.role != Role::Unchanged {
                return None;
            }
            value = Value { at: operand(program, part.at, 0)?, index: part.index.clone() };
        }
        None
    }

    /// What a stack is made from, as in its label: `mlp/wi_0`.
    #[must_use]
    pub fn stack_name(&self, program: &Program, part: &Part) -> Option<String> {
        self.written_name(program, (part, part.written.as_ref()?), false, &mut Arguments::default())
    }

    fn stack_label(&self, program: &Program, part: &Part, known: &mut Arguments) -> Label {
        // State that layers update slice by slice, such as a cache.
        let copy = (part.role == Role::Collected).then(|| self.copy_of_state(program, part.at, &part.index)).flatten();
        if let Some(copy) = copy {
            return Label { role: Some(part.role), ..copy };
        }
        let node = node_at(program, part.at, &part.index);
        let shape = node.map(|node| slice_text(&node.dimensions)).unwrap_or_default();
        let what = part
            .written
            .as_ref()
            .and_then(|written| self.written_name(program, (part, written), true, known))
            .map_or(shape.clone(), |name| format!("{name}, {shape}"));
        let steps = self.steps.of(part.at);
        let (count, many) = (part.layers, steps.many());
        let text = match part.role {
            Role::Saved => format!("saved by the scan for {count} {many}: {what}"),
            Role::Gradients => format!("gradients of {count} {many}, collected by the scan: {what}"),
            Role::Collected => format!("collected by the loop over {count} {many}: {what}"),
            Role::Carry | Role::Unchanged => format!("carried by the loop: {what}"),
        };
        Label { role: Some(part.role), ..Label::plain(text) }
    }

    /// What a value is by the softmax that runs over arrays of its dimensions.
    fn kind_by_softmax(
        &self,
        program: &Program,
        value: &Value,
        node: &ShapeNode,
        dimensions: &[i64],
    ) -> Option<&'static str> {
        let is_of_weight = || self.is_of_weight(program, value.clone());
        self.softmaxes.kind(program, (value, node, dimensions), is_of_weight)
    }

    /// The name of what a step writes: its scope, else the weights it was made from; with the operation, if that is asked for
    /// and is no product with them.
    fn written_name(
        &self,
        program: &Program,
        (part, written): (&Part, &Value),
        has_operation: bool,
        known: &mut Arguments,
    ) -> Option<String> {
        let value = super::computed(program, written.clone());
        if self.is_input(program, part) {
            return Some(format!("the input of each {}", self.steps.of(part.at).one()));
        }
        let name = program.text.op_name(value.at);
        let scopes = named_scopes(&name);
        let own = || operation(program, &value).filter(|_| has_operation && part.role == Role::Saved);
        let with_operation = |from: String| match own() {
            Some(operation) => format!("{from}: {operation}"),
            None => from,
        };
        if !scopes.is_empty() && !self.is_scope_of_all(program, part, &name) {
            return Some(with_operation(scopes));
        }
        let node = node_at(program, part.at, &part.index);
        let kind = node.and_then(|node| self.kind_by_softmax(program, &value, node, node.dimensions.get(1..)?));
        if let Some(kind) = kind {
            return Some(kind.to_owned());
        }
        // What a gradient is made from are activations; the weight that it is of has its dimensions.
        let of_weights = (part.role == Role::Gradients)
            .then(|| weights_like(program, node_at(program, part.at, &part.index)?, part.layers));
        let kernel = kernel_behind(program, &value);
        let from = of_weights.flatten().or_else(|| self.made_from(program, &value, known));
        match (kernel, from) {
            (Some(kernel), Some(from)) => Some(format!("{kernel} of {from}")),
            (Some(kernel), None) => Some(kernel),
            (None, from) => from.map(&with_operation),
        }
        .or_else(|| Some(scopes.clone()).filter(|scopes| !scopes.is_empty()).map(&with_operation))
        .or_else(own)
    }

    /// Whether a name has no scope but those that most names have of what the steps of its loop write, such as the
    /// module that a scan goes over: it does not tell one from the others.
    fn is_scope_of_all(&self, program: &Program, part: &Part, op_name: &str) -> bool {
        let path = scope::path(op_name);
        let Some((_, own)) = path.split_last() else { return false };
        let (mut named, mut inside) = (0usize, 0usize);
        let places = (0..MOST_COMPARED).filter_map(|place| self.loops.part(part.at, &[place]));
        for other in places.filter(|other| other.layers > 0) {
            let Some(written) = other.written.clone() else { continue };
            let name = program.text.op_name(super::computed(program, written).at);
            if !is_plain(&name) {
                named += 1;
                inside += usize::from(scope::path(&name).starts_with(own));
            }
        }
        named > 1 && inside.saturating_mul(2) > named
    }

    fn is_carry(&self, program: &Program, part: &Part, value: &Value) -> bool {
        let is_own = program.computation_of(value.at).and_then(|c| self.loops.caller(c)) == Some(part.at);
        is_own && self.loops.part(part.at, &value.index).is_some_and(|p| p.role == Role::Carry)
    }

    /// Whether a value is made by a product with a matrix among the arguments: features, not scores of two values.
    #[must_use]
    pub fn is_of_weight(&self, program: &Program, value: Value) -> bool {
        let made = super::computed(program, value).at;
        let is_matrix = |at: InstructionId| {
            let node = program.shape_of(at).map(crate::model::Shape::root);
            node.is_some_and(|node| node.dimensions.iter().filter(|&&d| d > 1).count() == 2)
        };
        let mut operands = program.instructions.operands_of(made).iter().filter(|&&row| row != NO_ROW);
        is_product(program, made)
            && operands.any(|&row| {
                let at = InstructionId(row);
                is_matrix(at) && self.argument(program, &Value::whole(at)).is_some()
            })
    }

    /// Short name of the entry argument that a value holds a part of, traced through copies, casts, slices, gathers and
    /// loop state.
    pub(super) fn argument(&self, program: &Program, value: &Value) -> Option<String> {
        self.argument_of(program, value, true).map(|path| short_path(&path)).filter(|short| !short.is_empty())
    }

    /// The argument that a value is a whole copy of.
    fn copied_argument(&self, program: &Program, value: &Value) -> Option<String> {
        self.argument_of(program, value, false)
    }

    /// The path of the entry argument of whose copy, which a loop may carry, a value is the next.
    fn updated_copy(&self, program: &Program, value: &Value) -> Option<String> {
        if !matches!(opcode(program, value.at), Opcode::FUSION | Opcode::SCATTER | Opcode::DYNAMIC_UPDATE_SLICE) {
            return None;
        }
        let begun = super::beginning(program, value.clone(), 0).filter(|begun| begun.is_updated)?;
        let inside = program.computation_of(begun.parameter)?;
        if Some(inside) == program.entry && begun.index.is_empty() {
            return Some(program.text.op_name(begun.parameter)).filter(|path| !path.is_empty());
        }
        let caller = self.loops.caller(inside)?;
        let start = (opcode(program, caller) == Opcode::WHILE).then(|| operand(program, caller, 0))??;
        self.copied_argument(program, &Value { at: start, index: begun.index }).filter(|path| !path.is_empty())
    }

    /// The path of the entry argument that a value holds a part of, or all of.
    pub(super) fn argument_of(&self, program: &Program, value: &Value, with_parts: bool) -> Option<String> {
        let at = argument::entry_parameter(program, &self.loops, value, with_parts)?;
        // A scalar is not part of a model: it scales or fills. Integers are no values but places.
        let says_nothing = program
            .shape_of(at)
            .is_some_and(|shape| shape.root().element_count() <= 1 || shape.root().element_type.is_index());
        let path = program.text.op_name(at);
        Some(path).filter(|path| !(path.is_empty() || with_parts && says_nothing))
    }
}

/// The label of what is written in the memory of an argument.
fn updated_argument(program: &Program, buffer: BufferId) -> Option<Label> {
    next_value::updated_argument(program, buffer).map(Label::plain)
}

/// Dimensions of one layer's slice: `[4,4096,14336]` of a stack of 32.
fn slice_text(dimensions: &[i64]) -> String {
    let words: Vec<String> = dimensions.iter().skip(1).map(ToString::to_string).collect();
    format!("[{}]", words.join(","))
}

/// What a fusion of one array only moves, as a whole.
fn moved(program: &Program, value: &Value) -> Option<InstructionId> {
    let is_of_one = opcode(program, value.at) == Opcode::FUSION
        && value.index.is_empty()
        && program.instructions.operands_of(value.at).len() == 1;
    is_of_one.then(|| moved_by(program, value.at, false)).flatten()
}

/// The weight, or weights, of which a product of the backward pass makes the gradient, which may be summed over devices: it
/// has their dimensions, or those of what is divided over devices as a whole.
fn gradient_of(program: &Program, value: &Value, op_name: &str) -> Option<String> {
    let is_sum = program.opcode_name(value.at).starts_with("all-reduce");
    // One of several sums has its own operand.
    let place = value.index.first().and_then(|&place| usize::try_from(place).ok()).unwrap_or(0);
    let summed = || operand(program, value.at, place).map(|from| super::computed(program, Value::whole(from)).at);
    let made = if is_sum { summed()? } else { value.at };
    let is_backward = pass_of(op_name) == Pass::Backward && is_product(program, made);
    let node = node_at(program, value.at, &value.index).filter(|_| is_backward)?;
    like_weights(program, node).or_else(|| like_whole_weights(program, node))
}
