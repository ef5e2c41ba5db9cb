//! Stacked curves and colours of the chosen grouping, to share with workers.

use std::sync::Arc;

use super::super::palette;
use crate::model::{BufferId, Category};
use crate::ui::session::{SpaceData, Spread};
use crate::ui::widget::theme::Slot;

/// The curves of a grouping with a colour for each group.
#[derive(Clone)]
pub struct Groups {
    data: Arc<SpaceData>,
    spread: Option<Arc<Spread>>,
    slots: Arc<[Slot]>,
}

impl Groups {
    /// By category, or by another grouping where there is one.
    pub fn new(data: &Arc<SpaceData>, spread: Option<Arc<Spread>>) -> Self {
        let slots = match &spread {
            Some(spread) => spread.names.iter().enumerate().map(|(i, name)| palette::slot_of_group(i, name)).collect(),
            None => Category::ALL.iter().map(|c| palette::slot(*c)).collect(),
        };
        Self { data: Arc::clone(data), spread, slots }
    }

    /// The curves.
    pub fn spread(&self) -> &Spread {
        self.spread.as_deref().unwrap_or(&self.data.by_category)
    }

    /// Colours by group.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Colour of a buffer.
    pub fn slot_of(&self, buffer: BufferId) -> Slot {
        let group = self.spread().group_of.get(buffer.index()).copied().unwrap_or(0);
        self.slots.get(group as usize).copied().unwrap_or(Slot::Temporary)
    }
}
