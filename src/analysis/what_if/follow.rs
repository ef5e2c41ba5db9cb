//! Where the value of an argument is found again: in copies and casts of it among the temporaries, and in the result that
//! is its next value.

use std::collections::{HashMap, HashSet};

use super::base::Role;
use super::followers::Followers;
use super::memory::Memory;
use super::resize;
use super::saved_for_backward::is_among;
use super::state::State;
use crate::analysis::flow::argument::held;
use crate::analysis::flow::collective::is_all_gather;
use crate::analysis::flow::loops::Loops;
use crate::analysis::flow::results::Flow;
use crate::analysis::flow::{Value, beginning_of_part};
use crate::analysis::once::once;
use crate::model::{BufferId, ElementType, Program, ShapeNode, outline};

/// The argument that a value is all or a part of, where devices gather what each wrote, and whether a part of it was
/// written.
fn part_of_argument(program: &Program, value: Value) -> Option<(i64, bool)> {
    let begun = beginning_of_part(program, value).filter(|begun| begun.index.is_empty())?;
    let computation = program.computation_of(begun.parameter)?;
    let number = *program.instructions.argument.get(begun.parameter.index())?;
    (Some(computation) == program.entry).then_some((i64::from(number), begun.is_updated))
}

fn found(program: &Program, memory: &Memory) -> Followers {
    let number = |row: usize| match &memory.base[row].role {
        Role::Argument { number, .. } => Some(*number),
        _ => None,
    };
    let rows: HashMap<i64, u32> = (0..memory.base.len()).filter_map(|row| Some((number(row)?, row as u32))).collect();
    // What loops work on follows by their own state.
    let no_loops = Loops::default();
    let copied = |family: &crate::analysis::packing::Family| {
        let value = Value::of_buffer(program, family.root)?;
        let held = held(program, &no_loops, value).filter(|held| !held.is_gathered)?;
        rows.get(&i64::from(*program.instructions.argument.get(held.parameter.index())?)).copied()
    };
    let flow = Flow::new(program);
    let places: HashMap<i64, u32> = memory
        .results
        .iter()
        .filter_map(|&row| match &memory.base[row as usize].role {
            Role::Result(place) => Some((place.first().copied().unwrap_or(0), row)),
            _ => None,
        })
        .collect();
    let next = |row: usize| {
        let own = flow.arguments.get(&number(row)?)?.own_result?;
        places.get(&i64::from(own)).copied()
    };
    let is_returned = |row: usize| {
        let result = next(row).map(|result| memory.base[result as usize].buffer);
        let value = result.and_then(|buffer| Value::of_buffer(program, buffer));
        let held = value.and_then(|value| held(program, &no_loops, value)).filter(|held| !held.is_gathered);
        let from = held.and_then(|held| program.instructions.argument.get(held.parameter.index()));
        from.is_some_and(|&from| number(row) == Some(i64::from(from)))
    };
    let gathered: HashSet<i64> = program
        .instructions
        .ids()
        .filter(|&at| is_all_gather(program, at))
        .filter_map(|at| part_of_argument(program, Value::whole(at)).filter(|part| part.1).map(|part| part.0))
        .collect();
    let updated = |family: &crate::analysis::packing::Family| {
        let at = program.buffers.instruction_of(family.root).filter(|_| !gathered.is_empty())?;
        let index = program.buffer_index(family.root);
        let (number, is_updated) = part_of_argument(program, Value { at, index })?;
        let row = rows.get(&number).copied().filter(|_| gathered.contains(&number))?;
        let elements = |buffer| program.buffer_node(buffer).map(crate::model::ShapeNode::element_count);
        let is_part = elements(family.root) < elements(memory.base[row as usize].buffer);
        (is_updated || is_part).then_some(row)
    };
    Followers {
        updated: memory.families.list.iter().map(updated).collect(),
        copy_of: memory.families.list.iter().map(copied).collect(),
        next: (0..memory.base.len()).map(next).collect(),
        is_returned: (0..memory.base.len()).map(is_returned).collect(),
    }
}

impl Memory {
    /// Copies and next values of the arguments, looked for once.
    pub(super) fn followers_in(&self, program: &Program) -> &Followers {
        once(&self.followers, || found(program, self))
    }
}

impl<'a> State<'a> {
    /// Copies and next values of the arguments.
    pub(super) fn followers(&self) -> &'a Followers {
        self.memory.followers_in(self.program)
    }

    /// Adds the results that are the next values of some arguments (by row of the base).
    pub(super) fn with_next_values(&self, is_meant: &mut [bool]) {
        let next: Vec<u32> =
            self.followers().next.iter().zip(&*is_meant).filter(|row| *row.1).filter_map(|row| *row.0).collect();
        for row in next {
            is_meant[row as usize] = true;
        }
    }

    /// Gives copies of some arguments (by row of the base) their new type. A cast to that type is no longer needed.
    pub(super) fn copies_in(&mut self, is_meant: &[bool], ty: ElementType) {
        let is_copy: Vec<bool> =
            self.followers().copy_of.iter().map(|row| row.is_some_and(|row| is_meant[row as usize])).collect();
        // What is in that type already is copied for another layout.
        let (program, memory) = (self.program, self.memory);
        let is_cast = |row: u32| {
            let node = resize::node_of(program, memory.base[row as usize].buffer);
            node.is_some_and(|node| node.element_type != ty)
        };
        for (family, row) in self.followers().copy_of.iter().enumerate().filter(|row| is_copy[row.0]) {
            let root = self.memory.families.list[family].root;
            let is_in_it = resize::node_of(self.program, root).is_some_and(|node| node.element_type == ty);
            if is_in_it && row.is_some_and(is_cast) {
                self.dropped[family] = true;
            }
        }
        let order = |buffer: BufferId| resize::node_of(program, buffer).and_then(ShapeNode::order_in_memory);
        let copy_of = &self.followers().copy_of;
        let is_relaid = |item: usize| {
            let super::Owner::Family(row) = memory.items[item].owner else { return false };
            let argument = copy_of[row as usize].map(|row| memory.base[row as usize].buffer);
            argument.is_some_and(|argument| order(argument) != order(memory.families.list[row as usize].root))
        };
        let items = self.items_of(|owner| matches!(owner, super::Owner::Family(row) if is_copy[row as usize]));
        let items: Vec<(usize, bool)> = items.map(|item| (item, is_relaid(item))).collect();
        self.change_by(items.into_iter(), |node, is_relaid| {
            let meant = resize::is_meant(node.element_type, ty);
            if meant && is_relaid {
                resize::set_type_of_copy(node, ty);
            } else if meant {
                resize::set_type(node, ty);
            }
            meant
        });
    }

    /// Whether temporaries like an argument (by row of the base) hold its next value: a decoder that scans over its cache
    /// has it twice. In training, arrays like the weights are their gradients.
    pub(super) fn collects(&self, row: usize) -> bool {
        let is_donated = matches!(self.base(row).role, Role::Argument { is_donated: true, .. });
        !self.memory.has_backward() && (is_donated || self.followers().next[row].is_some())
    }

    /// Whether a loop collects what an item holds, a part in each step.
    pub(super) fn is_collected(&self, owner: super::Owner) -> bool {
        matches!(owner, super::Owner::Family(row) if is_among(&self.memory.kept.collected, row as usize))
    }

    /// Gives what a loop collects into the next values of some arguments (by row of the base) the new type of these.
    pub(super) fn collected_in(&mut self, is_meant: &[bool], ty: ElementType) {
        let memory = self.memory;
        let outline = |buffer: BufferId| {
            let node = resize::node_of(self.program, buffer)?;
            Some((node.element_type, outline(&node.dimensions)))
        };
        let meant: HashSet<_> = (0..memory.base.len())
            .filter(|&row| is_meant[row] && self.collects(row))
            .filter_map(|row| outline(memory.base[row].buffer))
            .collect();
        let is_meant = |owner: super::Owner| {
            let super::Owner::Family(row) = owner else { return false };
            let family = memory.families.list[row as usize];
            self.is_collected(owner) && outline(family.root).is_some_and(|own| meant.contains(&own))
        };
        let items: Vec<usize> = self.items_of(is_meant).collect();
        self.change(items.into_iter(), |node| {
            let meant = node.element_type.is_float() || !ty.is_float();
            if meant {
                resize::set_type(node, ty);
            }
            meant
        });
    }
}
