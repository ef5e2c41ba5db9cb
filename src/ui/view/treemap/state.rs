//! State of the treemap: the tree that is shown, how it is drawn, and what of it is laid out.

use std::sync::Arc;

use super::by_keys;
use super::cells::Cell;
use super::list;
use crate::analysis::class::Class;
use crate::analysis::tree::{Tree, TreeKind};
use crate::model::MemorySpace;
use crate::ui::part::FindKey;
use crate::ui::widget::icicle::IcicleState;
use crate::ui::widget::raster::CachedRaster;
use crate::ui::work::Job;

/// Inputs of a tree: program, space, step, kind of tree, whether layers are folded.
pub type Of = (usize, MemorySpace, Option<u32>, TreeKind, bool);

/// How the tree is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Nested cells.
    #[default]
    Treemap,
    /// Rows of boxes, each below its parent.
    Icicle,
}

/// State of the view.
pub struct State {
    pub form: Form,
    pub fold: bool,
    /// The tree that is being built, and its key.
    pub building: Option<(Of, Job<Arc<Tree>>)>,
    pub of: Option<Of>,
    pub tree: Arc<Tree>,
    /// Bytes in the tree by class.
    pub classes: [u64; Class::ALL.len()],
    /// Display names with fold counts, by node.
    pub names: Vec<String>,
    /// The node that fills the view.
    pub root: usize,
    /// Position of the keyboard cursor.
    pub at: Option<by_keys::Target>,
    /// Laid-out cells, and the tree, node and rectangle they belong to.
    pub placed: Vec<Cell>,
    pub placed_for: Option<(u64, usize, [u32; 4])>,
    pub raster: CachedRaster,
    pub icicle: IcicleState,
    /// Counts changes of the tree, as a key for cached pictures.
    pub version: u64,
    /// By node, whether it contains a match, and the key of that result.
    pub lit: (Option<(u64, FindKey)>, Vec<bool>),
    pub list: list::List,
    /// Counts changes of the highlighted nodes.
    pub lights: u64,
}

impl Default for State {
    fn default() -> Self {
        Self {
            form: Form::default(),
            fold: true,
            building: None,
            of: None,
            tree: Arc::default(),
            classes: [0; Class::ALL.len()],
            names: Vec::new(),
            root: 0,
            at: None,
            placed: Vec::new(),
            placed_for: None,
            raster: CachedRaster::default(),
            icicle: IcicleState::default(),
            version: 0,
            lit: (None, Vec::new()),
            list: list::List::default(),
            lights: 0,
        }
    }
}
