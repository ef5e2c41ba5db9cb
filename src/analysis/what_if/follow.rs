//! Where the value of an argument is found again: in copies and casts of it among the temporaries, and in the result that
//! is its next value.

use std::collections::HashMap;

use super::base::Role;
use super::followers::Followers;
use super::memory::Memory;
use super::resize;
use super::state::State;
use crate::analysis::class::origin;
use crate::analysis::flow::results::Flow;
use crate::analysis::once::once;
use crate::model::{ElementType, Program};

fn found(program: &Program, memory: &Memory) -> Followers {
    let number = |row: usize| match &memory.base[row].role {
        Role::Argument { number, .. } => Some(*number),
        _ => None,
    };
    let rows: HashMap<i64, u32> = (0..memory.base.len()).filter_map(|row| Some((number(row)?, row as u32))).collect();
    let copied = |family: &crate::analysis::packing::Family| {
        let origin = origin::of(program, family.root).filter(|origin| !origin.is_gathered)?;
        rows.get(&origin.argument).copied()
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
    Followers {
        copy_of: memory.families.list.iter().map(copied).collect(),
        next: (0..memory.base.len()).map(next).collect(),
    }
}

impl State<'_> {
    /// Copies and next values of the arguments.
    pub(super) fn followers(&self) -> &'_ Followers {
        once(&self.memory.followers, || found(self.program, self.memory))
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
        for (family, _) in is_copy.iter().enumerate().filter(|row| *row.1) {
            let root = self.memory.families.list[family].root;
            if resize::node_of(self.program, root).is_some_and(|node| node.element_type == ty) {
                self.dropped[family] = true;
            }
        }
        let items = self.items_of(|owner| matches!(owner, super::Owner::Family(row) if is_copy[row as usize]));
        let items: Vec<usize> = items.collect();
        self.change(items.into_iter(), |node| resize::set_meant_type(node, ty));
    }
}
