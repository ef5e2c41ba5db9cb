//! Changes to try out, and saved sets of them.

use crate::analysis::what_if::{Edit, EditSet};

/// Changes to try out, shared by the what-if view and the advisor.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Changes that are switched on, in the order in which they are applied.
    pub on: Vec<Edit>,
    /// Changes the user wrote, on or off.
    pub own: Vec<Edit>,
    /// Saved sets of changes.
    pub saved: Vec<EditSet>,
}

impl Changes {
    /// Whether all of some changes are on.
    #[must_use]
    pub fn are_on(&self, edits: &[Edit]) -> bool {
        !edits.is_empty() && edits.iter().all(|edit| self.on.contains(edit))
    }

    /// Saves sets; sets of the same name are replaced.
    pub fn save_all(&mut self, sets: Vec<EditSet>) {
        self.saved.retain(|known| !sets.iter().any(|set| set.name == known.name));
        self.saved.extend(sets);
    }

    /// Switches on the changes of a set, and all others off.
    pub fn take(&mut self, set: &EditSet) {
        for edit in &set.edits {
            if !self.own.contains(edit) {
                self.own.push(edit.clone());
            }
        }
        self.on.clone_from(&set.edits);
    }

    /// Switches changes on, in place of the same ones with another strength.
    pub fn switch_on(&mut self, edits: &[Edit]) {
        self.switch_off(edits);
        self.on.retain(|known| !edits.iter().any(|edit| edit.is_another_strength_of(known)));
        self.on.extend_from_slice(edits);
    }

    /// The user's own changes, and what else is on and has no switch by a test, such as what a plan has brought.
    #[must_use]
    pub fn own_and_on(&self, has_switch: impl Fn(&Edit) -> bool) -> Vec<Edit> {
        let mut all = self.own.clone();
        all.extend(self.on.iter().filter(|edit| !self.own.contains(edit)).cloned());
        all.retain(|edit| !has_switch(edit));
        all
    }

    /// Gives everything that changes name other names.
    pub fn rename(&mut self, name: impl Fn(&Edit) -> Option<Edit>) {
        let renamed = |edits: &[Edit]| edits.iter().filter_map(&name).collect();
        self.on = renamed(&self.on);
        self.own = renamed(&self.own);
        for set in &mut self.saved {
            set.edits = renamed(&set.edits);
        }
        self.saved.retain(|set| !set.edits.is_empty());
    }

    /// Switches changes off.
    pub fn switch_off(&mut self, edits: &[Edit]) {
        self.on.retain(|edit| !edits.contains(edit));
    }
}
