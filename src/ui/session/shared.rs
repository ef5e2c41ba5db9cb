//! State shared by all views of a document: program, memory space, selection, step, filter, history.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Deref;

use super::changes::Changes;
use super::location::{Lit, Location, RowScope, TreePosition};
use super::pins::{MAX_PINS, Pin, PinOn};
use crate::analysis::tree::TreeKind;
use crate::model::{BufferId, Capacity, MemorySpace};

/// State shared by the views of a document.
#[derive(Debug, Clone)]
pub struct SharedState {
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
    /// Chosen tiles of an IPU, in the order they were chosen.
    pub tiles: Vec<u32>,
    /// The selected buffer and the number of chosen tiles with which the view was entered.
    brought: (Option<BufferId>, usize),
    /// Tile under the pointer.
    pub tile_hovered: Option<u32>,
    /// Chosen step; `None` for the peak.
    pub step: Option<u32>,
    /// Steps compared with the chosen one, oldest first.
    pub compared: Vec<u32>,
    /// Step under the pointer.
    pub cursor: Option<u32>,
    /// Visible part of the time axis; `None` for all.
    pub range: Option<(f64, f64)>,
    /// First and last step of the measured range.
    pub measured: Option<(u32, u32)>,
    /// Buffers that tables list.
    pub rows: RowScope,
    /// The search text.
    pub filter: String,
    /// Whether the find bar is open.
    pub finding: bool,
    /// Buffers that are lit in place of what the search text finds.
    pub lit: Option<Lit>,
    /// Buffers the user has hidden.
    pub hidden: BTreeSet<BufferId>,
    /// Pins in the order they were set; the first is number 1.
    pub pins: Vec<Pin>,
    /// Capacities chosen in the window, by colour.
    pub capacity: HashMap<MemorySpace, Capacity>,
    /// What-if changes.
    pub changes: Changes,
    /// A finding of the advisor to expand.
    pub to_finding: Option<usize>,
    /// Position in the tree of live memory.
    pub tree: TreePosition,
}

/// The state shared by the views of a document. It is read through `Deref` to [`SharedState`], and changed only by the
/// methods here, which also maintain the history.
#[derive(Debug, Clone)]
pub struct Shared {
    state: SharedState,
    back: VecDeque<Location>,
    forward: VecDeque<Location>,
    /// Whether the location at the start of this turn is already in the history.
    is_noted: bool,
}

/// Maximum length of the history.
const MAX_HISTORY: usize = 100;

impl Deref for Shared {
    type Target = SharedState;

    fn deref(&self) -> &SharedState {
        &self.state
    }
}

impl Shared {
    /// Starts with a view, a program and a memory space.
    #[must_use]
    pub fn new(view: &'static str, program: usize, color: MemorySpace) -> Self {
        let state = SharedState {
            view,
            program,
            color,
            selected: None,
            hovered: None,
            tiles: Vec::new(),
            brought: (None, 0),
            tile_hovered: None,
            step: None,
            compared: Vec::new(),
            cursor: None,
            range: None,
            measured: None,
            rows: RowScope::default(),
            filter: String::new(),
            finding: false,
            lit: None,
            hidden: BTreeSet::new(),
            pins: Vec::new(),
            capacity: HashMap::new(),
            changes: Changes::default(),
            to_finding: None,
            tree: TreePosition::default(),
        };
        Self { state, back: VecDeque::new(), forward: VecDeque::new(), is_noted: false }
    }

    /// Starts a turn, which is a frame or a command: its changes form one entry of the history.
    pub fn begin_turn(&mut self) {
        self.is_noted = false;
    }

    /// Starts the history at the current location.
    pub fn begin_history(&mut self) {
        self.back.clear();
        self.forward.clear();
    }

    /// Clears what is under the pointer, until a view sets it.
    pub fn clear_hover(&mut self) {
        (self.state.hovered, self.state.tile_hovered, self.state.cursor) = (None, None, None);
    }

    /// Changes the location and records the previous one in the history.
    fn move_by(&mut self, change: impl FnOnce(&mut SharedState)) {
        if self.is_noted {
            return change(&mut self.state);
        }
        let before = self.location();
        change(&mut self.state);
        if before != self.location() {
            self.back.push_back(before);
            if self.back.len() > MAX_HISTORY {
                self.back.pop_front();
            }
            self.forward.clear();
            self.is_noted = true;
        }
    }

    /// Shows a view.
    pub fn show_view(&mut self, view: &'static str) {
        self.move_by(|state| state.enter(view));
    }

    /// Chooses another program or memory space; the selection of the old one is dropped.
    pub fn choose(&mut self, program: usize, color: MemorySpace) {
        self.move_by(|state| state.choose(program, color));
    }

    /// Selects a buffer, or none.
    pub fn select(&mut self, buffer: impl Into<Option<BufferId>>) {
        let buffer = buffer.into();
        self.move_by(|state| state.selected = buffer);
        self.state.brought = (None, 0);
    }

    /// Chooses a step; `None` for the peak.
    pub fn choose_step(&mut self, step: impl Into<Option<u32>>) {
        let step = step.into();
        self.move_by(|state| state.step = step);
    }

    /// Adds a step to the compared ones, or removes it.
    pub fn compare_step(&mut self, step: u32) {
        match self.state.compared.iter().position(|&other| other == step) {
            Some(at) => drop(self.state.compared.remove(at)),
            None => self.state.compared.push(step),
        }
    }

    /// Clears the compared steps.
    pub fn compare_none(&mut self) {
        self.state.compared.clear();
    }

    /// Chooses tiles of an IPU, in this order.
    pub fn choose_tiles(&mut self, tiles: Vec<u32>) {
        self.state.tiles = tiles;
    }

    /// A buffer is under the pointer.
    pub fn hover(&mut self, buffer: impl Into<Option<BufferId>>) {
        self.state.hovered = buffer.into();
    }

    /// A tile is under the pointer.
    pub fn hover_tile(&mut self, tile: u32) {
        self.state.tile_hovered = Some(tile);
    }

    /// A step is under the pointer.
    pub fn hover_step(&mut self, step: u32) {
        self.state.cursor = Some(step);
    }

    /// Zooms the time axis, in steps; `None` for all of it.
    pub fn zoom_to(&mut self, range: impl Into<Option<(f64, f64)>>) {
        self.state.range = range.into();
    }

    /// Measures a range of steps, ends included; `None` for none.
    pub fn measure(&mut self, range: impl Into<Option<(u32, u32)>>) {
        self.state.measured = range.into();
    }

    /// Chooses which buffers tables list.
    pub fn list_rows(&mut self, rows: RowScope) {
        self.state.rows = rows;
    }

    /// Filters buffers by these words; empty for all.
    pub fn set_filter(&mut self, words: impl Into<String>) {
        self.state.lit = None;
        self.state.filter = words.into();
    }

    /// Opens the find bar.
    pub fn open_find(&mut self) {
        self.state.finding = true;
    }

    /// Opens the find bar with these words.
    pub fn find(&mut self, words: impl Into<String>) {
        self.set_filter(words);
        self.open_find();
    }

    /// Closes the find bar and clears its words.
    pub fn close_find(&mut self) {
        self.state.filter.clear();
        self.state.finding = false;
        self.state.lit = None;
    }

    /// Lights buffers together, in place of what the search text finds.
    pub fn light(&mut self, lit: Lit) {
        self.state.lit = Some(lit);
    }

    /// Hides a buffer until [`Self::show_hidden`], and deselects it.
    pub fn hide(&mut self, buffer: BufferId) {
        self.state.hidden.insert(buffer);
        self.select(None);
    }

    /// Shows all hidden buffers.
    pub fn show_hidden(&mut self) {
        self.state.hidden.clear();
    }

    /// Sets a pin in the chosen program; returns its index, also if it already existed.
    pub fn pin(&mut self, on: PinOn) -> Option<usize> {
        let program = self.program;
        if let Some(there) = self.pins.iter().position(|pin| pin.on == on && pin.program == program) {
            return Some(there);
        }
        if self.pins.len() >= MAX_PINS {
            return None;
        }
        self.state.pins.push(Pin { on, program, note: String::new() });
        Some(self.pins.len() - 1)
    }

    /// Writes the note of a pin, counted from 0.
    pub fn note_pin(&mut self, index: usize, note: String) {
        if let Some(pin) = self.state.pins.get_mut(index) {
            pin.note = note;
        }
    }

    /// Removes a pin, counted from 0.
    pub fn unpin(&mut self, index: usize) {
        if index < self.pins.len() {
            self.state.pins.remove(index);
        }
    }

    /// Replaces the pins by saved ones.
    pub fn recall_pins(&mut self, pins: &[Pin]) {
        self.state.pins = pins.to_vec();
    }

    /// Overrides the HBM capacity; `None` for that of the dump.
    pub fn set_capacity(&mut self, capacity: Option<Capacity>) {
        match capacity {
            Some(capacity) => drop(self.state.capacity.insert(MemorySpace::HBM, capacity)),
            None => drop(self.state.capacity.remove(&MemorySpace::HBM)),
        }
    }

    /// Mutable access to the changes to try out.
    pub fn changes_mut(&mut self) -> &mut Changes {
        &mut self.state.changes
    }

    /// Asks the advisor view to expand a finding.
    pub fn ask_for_finding(&mut self, finding: usize) {
        self.state.to_finding = Some(finding);
    }

    /// Takes the finding to expand.
    pub fn take_finding(&mut self) -> Option<usize> {
        self.state.to_finding.take()
    }

    /// Goes to a node of the tree of live memory, by the names on its path.
    pub fn go_in_tree(&mut self, path: Vec<String>) {
        self.move_by(|state| state.tree.path = path);
    }

    /// Changes what the tree of live memory is grouped by, and goes to its root.
    pub fn divide_tree(&mut self, kind: TreeKind) {
        self.move_by(|state| state.tree = TreePosition { kind, path: Vec::new() });
    }

    /// Clears one choice, for Esc: the measured range, else the step, the selection, the search and hidden buffers.
    pub fn clear(&mut self) {
        if self.measured.is_some() {
            self.measure(None);
        } else if self.step.is_some() || !self.compared.is_empty() {
            self.choose_step(None);
            self.compare_none();
        } else if self.selected.is_some() || !self.tiles.is_empty() {
            self.select(None);
            self.choose_tiles(Vec::new());
        } else {
            self.close_find();
            self.show_hidden();
        }
    }

    /// The current location.
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

    /// Whether it is possible to go back, and forward.
    #[must_use]
    pub fn can_go(&self) -> (bool, bool) {
        (!self.back.is_empty(), !self.forward.is_empty())
    }

    /// Goes back in the history.
    pub fn go_back(&mut self) {
        if let Some(location) = self.back.pop_back() {
            self.forward.push_back(self.location());
            self.state.go(&location);
        }
    }

    /// Goes forward in the history.
    pub fn go_forward(&mut self) {
        if let Some(location) = self.forward.pop_back() {
            self.back.push_back(self.location());
            self.state.go(&location);
        }
    }
}

impl SharedState {
    fn choose(&mut self, program: usize, color: MemorySpace) {
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
        self.lit = None;
        self.selected = None;
        self.hovered = None;
        self.cursor = None;
        (self.program, self.color) = (program, color);
    }

    fn enter(&mut self, view: &'static str) {
        self.view = view;
        self.brought = (self.selected, self.tiles.len());
    }

    /// Whether something was selected since the view was entered.
    #[must_use]
    pub fn selects_here(&self) -> bool {
        let now = (self.selected, self.tiles.len());
        now != (None, 0) && now != self.brought
    }

    fn go(&mut self, location: &Location) {
        self.choose(location.program, location.color);
        self.selected = location.selected;
        self.enter(location.view);
        self.step = location.step;
        self.tree.clone_from(&location.tree);
    }
}
