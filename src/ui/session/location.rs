//! Where one looks: which rows are listed, the place in the tree, what is lit, an entry of the history.

use std::sync::Arc;

use crate::analysis::tree::TreeKind;
use crate::model::{BufferId, MemorySpace};

/// Which buffers a table lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RowScope {
    /// Buffers live at the peak.
    #[default]
    Peak,
    /// Buffers live at the chosen step.
    Step,
    /// All buffers of the memory space.
    All,
}

impl RowScope {
    /// All scopes.
    pub const ALL: [Self; 3] = [Self::Peak, Self::Step, Self::All];
}

/// Position in the tree of live memory.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TreePosition {
    /// What the tree groups by.
    pub kind: TreeKind,
    /// Names from the root to the node that fills the view.
    pub path: Vec<String>,
}

/// Buffers that are lit together, the others dimmed: those that a finding is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lit {
    /// What they are, in words.
    pub words: String,
    /// The buffers, all of the chosen memory space.
    pub buffers: Arc<[BufferId]>,
}

/// A place in the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Id of a view.
    pub view: &'static str,
    /// Index of its program.
    pub program: usize,
    /// Memory space.
    pub color: MemorySpace,
    /// Selected buffer.
    pub selected: Option<BufferId>,
    /// Chosen step.
    pub step: Option<u32>,
    /// Position in the tree.
    pub tree: TreePosition,
}
