//! What the parts of a comparison are called: buffers of a program have classes and scopes, blocks of an allocator have kinds
//! and stacks or operations.

use crate::analysis::caching_allocator::AllocationCategory;
use crate::analysis::class::Class;
use crate::analysis::compare::Change;
use crate::export::diff::{StepDiff, StepName};
use crate::ui::part::caching;
use crate::ui::part::colors::slot_of_class;
use crate::ui::widget::theme::Slot;

/// Words of the view.
pub struct Words {
    /// The two waterfalls, in the bar that chooses.
    pub charts: [&'static str; 2],
    /// Title of the waterfall by class; of an allocator, `{}` is what its total is.
    pub by_class: &'static str,
    /// The same by scope.
    pub by_scope: &'static str,
    /// Title of the map and the tree.
    pub whole: &'static str,
    /// What the table is searched for.
    pub find: &'static str,
    /// Its columns: what differs, its class, how many, its shape.
    pub what: &'static str,
    /// See [`Self::what`].
    pub class: &'static str,
    /// See [`Self::what`].
    pub blocks: &'static str,
    /// See [`Self::what`].
    pub detail: &'static str,
    /// One of what is counted.
    pub block: &'static str,
    /// What became of a row.
    pub change: fn(Change) -> &'static str,
    /// Room for that.
    pub change_width: f32,
    /// Least widths of what differs, its class and its shape, and shares of the room that is left of the first and the last.
    pub widths: [(f32, f32); 3],
}

/// Of a program.
pub const PROGRAM: Words = Words {
    charts: ["By class", "By scope"],
    by_class: "Allocated, before to after, by class at the peak",
    by_scope: "Allocated, before to after, by scope at the peak",
    whole: "At the peak, by class and scope",
    find: "Find scope, class, shape",
    what: "What",
    class: "Class",
    blocks: "Buffers",
    detail: "Shape",
    block: "buffer",
    change: Change::at_peak,
    change_width: 112.0,
    widths: [(240.0, 4.0), (92.0, 0.0), (90.0, 1.0)],
};

/// Of an allocator whose blocks have stacks.
pub const STACKS: Words = Words {
    charts: ["By kind", "By stack"],
    by_class: "{}, before to after, by kind",
    by_scope: "{}, before to after, by stack",
    whole: "By kind and stack",
    find: "Find stack, kind",
    what: "Stack",
    class: "Kind",
    blocks: "Blocks",
    detail: "Called from",
    block: "block",
    change: Change::name,
    change_width: 74.0,
    widths: [(150.0, 2.0), (132.0, 0.0), (130.0, 3.0)],
};

/// Of an allocator whose blocks have operations.
pub const OPERATIONS: Words = Words {
    charts: ["By kind", "By op"],
    by_class: "{}, before to after, by kind",
    by_scope: "{}, before to after, by op",
    whole: "By kind and op",
    find: "Find op, kind, shape",
    what: "Op",
    detail: "Shape",
    ..STACKS
};

/// The colour of a class or kind; `None` for one without a colour of its own.
pub fn slot_of_kind(name: &str) -> Option<Slot> {
    let class = Class::ALL.into_iter().find(|class| class.name() == name).map(slot_of_class);
    class
        .or_else(|| AllocationCategory::ALL.into_iter().find(|category| category.words() == name).map(caching::slot_of))
}

/// The colour of a step; `None` for what holds nothing.
pub fn slot_of_step(step: &StepDiff) -> Option<Slot> {
    match &step.name {
        StepName::Rest(_) => None,
        StepName::Kind(name) => Some(slot_of_kind(name).unwrap_or(Slot::Temporary)),
        name => slot_of_kind(name.text()),
    }
}
