//! The argument whose data a buffer holds: a copy of it, or what was gathered from the devices that have its parts.

use super::argument::{self, Held};
use super::collective::{NamedBy, is_all_gather, named_by};
use super::label::Labels;
use super::{Value, opcode};
use crate::analysis::names::scope;
use crate::model::{BufferId, FastMap, InstructionId, Opcode, Program, Shape, ShapeNode};

impl Labels {
    /// The argument that a value is a copy of, or that a collective has gathered into it.
    pub(super) fn held(&self, program: &Program, value: &Value, collective: Option<InstructionId>) -> Option<Held> {
        self.named(program, argument::held(program, &self.loops, value.clone()), collective)
    }

    /// What was found, or else what the name of a gather says.
    fn named(&self, program: &Program, found: Option<Held>, collective: Option<InstructionId>) -> Option<Held> {
        let gather = collective.filter(|&collective| is_all_gather(program, collective));
        if let Some(held) = found {
            return Some(Held { is_gathered: held.is_gathered || gather.is_some(), ..held });
        }
        // The compiler names a gather that it adds by the argument, wherever loops carry that.
        let name = program.text.op_name(gather?);
        let parameter = self.by_path(program).get(&name).copied()?;
        Some(Held { parameter, is_gathered: true })
    }

    /// The entry's parameters by their paths.
    fn by_path(&self, program: &Program) -> &FastMap<String, InstructionId> {
        self.by_path.get_or_init(|| {
            let rows = program.entry_computation().map_or(0..0, |entry| entry.start..entry.end).map(InstructionId);
            let parameters = rows.filter(|&at| opcode(program, at) == Opcode::PARAMETER);
            let named = parameters.map(|at| (program.text.op_name(at), at));
            named.filter(|(path, _)| scope::argument(path).is_some_and(|(_, rest)| !rest.is_empty())).collect()
        })
    }

    /// The argument whose data a value holds, as its label says, or a slice of it; `None` for the arguments themselves.
    /// `is_stack` tells whether a loop collects it.
    #[must_use]
    pub fn held_by(&self, program: &Program, value: &Value, is_stack: bool) -> Option<Held> {
        if opcode(program, value.at) == Opcode::PARAMETER && program.is_in_entry(value.at) {
            return None;
        }
        let found = |value: &Value| argument::held_or_sliced(program, &self.loops, value.clone());
        match self.has_collectives.then(|| named_by(program, value)).flatten() {
            Some(NamedBy { value, collective }) if collective.is_some() || !is_stack => {
                self.named(program, found(&value), collective)
            }
            None if !is_stack => found(value),
            _ => None,
        }
    }

    /// The argument that a buffer holds a whole copy of, in any layout or type.
    #[must_use]
    pub fn copied_by(&self, program: &Program, buffer: BufferId) -> Option<InstructionId> {
        let value = Value::of_buffer(program, buffer)?;
        let held = self.held_by(program, &value, self.role_of(program, &value).is_some())?;
        (!held.is_gathered && !is_slice(program, buffer, &held)).then_some(held.parameter)
    }
}

/// Whether a buffer has fewer elements than the argument whose data it holds.
#[must_use]
pub fn is_slice(program: &Program, buffer: BufferId, held: &Held) -> bool {
    // The tuple of a copy that runs beside other work has no elements of its own.
    let own = program.buffer_node(buffer).filter(|node| !node.is_tuple()).map(ShapeNode::element_count);
    let whole = program.shape_of(held.parameter).map_or(0, |shape| shape.root().element_count());
    own.is_some_and(|own| own < whole)
}

/// The type that a buffer has the data of an argument in, where that is another than the argument's.
#[must_use]
pub fn cast_to(program: &Program, buffer: BufferId, held: &Held) -> Option<&'static str> {
    let type_of = |node: &ShapeNode| Some(node.element_type).filter(|_| !node.is_tuple());
    let own = program.buffer_node(buffer).and_then(type_of)?;
    let whole = program.shape_of(held.parameter).map(Shape::root).and_then(type_of)?;
    (own != whole).then(|| own.name())
}
