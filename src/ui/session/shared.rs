//! What all views of a document show together: program, memory space, selection, step.

use std::collections::{BTreeSet, HashMap};

use super::pins::{MAX_PINS, Pin, PinOn};
use crate::analysis::tree::TreeKind;
use crate::analysis::what_if::{Edit, EditSet};
use crate::model::{BufferId, Capacity, MemorySpace};

/// Which buffers a table lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RowScope {
    /// What stands at the peak.
    #[default]
    Peak,
    /// What lives at the chosen step.
    Step,
    /// All of the memory space.
    All,
}

impl RowScope {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Peak, Self::Step, Self::All];
}

/// Where one is in the tree of what lives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TreePosition {
    /// By what it divides.
    pub kind: TreeKind,
    /// Names that lead from the root to what fills the view.
    pub path: Vec<String>,
}

/// A place to go back to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// View.
    pub view: &'static str,
    /// Program.
    pub program: usize,
    /// Memory space.
    pub color: MemorySpace,
    /// Selection.
    pub selected: Option<BufferId>,
    /// Pinned step.
    pub step: Option<u32>,
    /// Place in the tree.
    pub tree: TreePosition,
}

/// State shared by the views of a document.
#[derive(Debug, Clone)]
pub struct Shared {
    /// The view that is shown.
    pub view: &'static str,
    /// Chosen program.
    pub program: usize,
    /// Chosen memory space, by colour.
    pub color: MemorySpace,
    /// Selected buffer.
    pub selected: Option<BufferId>,
    /// Buffer under the pointer, in whichever view.
    pub hovered: Option<BufferId>,
    /// Chosen tiles of an IPU, in the order of choosing.
    pub tiles: Vec<u32>,
    /// Tile under the pointer.
    pub tile_hovered: Option<u32>,
    /// Pinned step; `None` for the peak.
    pub step: Option<u32>,
    /// Steps compared with the chosen one, the last one last.
    pub compared: Vec<u32>,
    /// Step under the pointer.
    pub cursor: Option<u32>,
    /// Visible part of the time axis; `None` for all.
    pub range: Option<(f64, f64)>,
    /// Range of steps that is measured, ends included.
    pub measured: Option<(u32, u32)>,
    /// Rows of the table.
    pub rows: RowScope,
    /// Text that rows must contain.
    pub filter: String,
    /// Whether the field to find something stands over the view.
    pub finding: bool,
    /// Buffers that a person does not want to see now.
    pub hidden: BTreeSet<BufferId>,
    /// Pins, in the order of setting; the first is number 1.
    pub pins: Vec<Pin>,
    /// Capacities chosen in the window, by colour.
    pub capacity: HashMap<MemorySpace, Capacity>,
    /// Changes to try out.
    pub changes: Changes,
    /// A finding of the advisor to unfold.
    pub to_finding: Option<usize>,
    /// Place in the tree of what lives.
    pub tree: TreePosition,
}

/// Changes to try out: what the what-if view and the advisor share.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Those that are on, in the order in which they are applied.
    pub on: Vec<Edit>,
    /// Those written by hand, on or off.
    pub own: Vec<Edit>,
    /// Saved sets.
    pub saved: Vec<EditSet>,
}

impl Changes {
    /// Whether all of some changes are on.
    #[must_use]
    pub fn are_on(&self, edits: &[Edit]) -> bool {
        !edits.is_empty() && edits.iter().all(|edit| self.on.contains(edit))
    }

    /// Saves sets; those of the same name are replaced.
    pub fn save_all(&mut self, sets: Vec<EditSet>) {
        self.saved.retain(|known| !sets.iter().any(|set| set.name == known.name));
        self.saved.extend(sets);
    }

    /// Switches exactly the changes of a set on.
    pub fn take(&mut self, set: &EditSet) {
        for edit in &set.edits {
            if !self.own.contains(edit) {
                self.own.push(edit.clone());
            }
        }
        self.on.clone_from(&set.edits);
    }

    /// Switches changes on or off.
    pub fn set(&mut self, edits: &[Edit], on: bool) {
        self.on.retain(|edit| !edits.contains(edit));
        if on {
            self.on.extend_from_slice(edits);
        }
    }
}

impl Shared {
    /// Begins at a program and memory space.
    #[must_use]
    pub fn new(view: &'static str, program: usize, color: MemorySpace) -> Self {
        Self {
            view,
            program,
            color,
            selected: None,
            hovered: None,
            tiles: Vec::new(),
            tile_hovered: None,
            step: None,
            compared: Vec::new(),
            cursor: None,
            range: None,
            measured: None,
            rows: RowScope::default(),
            filter: String::new(),
            finding: false,
            hidden: BTreeSet::new(),
            pins: Vec::new(),
            capacity: HashMap::new(),
            changes: Changes::default(),
            to_finding: None,
            tree: TreePosition::default(),
        }
    }

    /// Chooses another program or memory space: what belongs to the old one goes.
    pub fn choose(&mut self, program: usize, color: MemorySpace) {
        if (program, color) == (self.program, self.color) {
            return;
        }
        if program != self.program {
            self.changes.on.clear();
            self.hidden.clear();
            self.step = None;
            self.compared.clear();
            self.range = None;
            self.measured = None;
        }
        self.selected = None;
        self.hovered = None;
        self.cursor = None;
        (self.program, self.color) = (program, color);
    }

    /// Sets a pin in the chosen program; returns which one it is, also where it was there already.
    pub fn pin(&mut self, on: PinOn) -> Option<usize> {
        let program = self.program;
        if let Some(there) = self.pins.iter().position(|pin| pin.on == on && pin.program == program) {
            return Some(there);
        }
        if self.pins.len() >= MAX_PINS {
            return None;
        }
        self.pins.push(Pin { on, program, note: String::new() });
        Some(self.pins.len() - 1)
    }

    /// Where one is.
    #[must_use]
    pub fn location(&self) -> Location {
        Location {
            view: self.view,
            program: self.program,
            color: self.color,
            selected: self.selected,
            step: self.step,
            tree: self.tree.clone(),
        }
    }

    /// Goes to a place.
    pub fn go(&mut self, location: &Location) {
        self.choose(location.program, location.color);
        self.view = location.view;
        self.selected = location.selected;
        self.step = location.step;
        self.tree.clone_from(&location.tree);
    }
}
