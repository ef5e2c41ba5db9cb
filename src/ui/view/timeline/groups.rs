//! Stacked curves and colours of the chosen grouping, to share with workers.

use std::sync::Arc;

use super::super::palette;
use crate::analysis::class::Class;
use crate::model::{BufferId, Category};
use crate::ui::session::{Grouping, SpaceData, Spread};
use crate::ui::widget::theme::Slot;

/// The curves of a grouping with a colour for each group.
#[derive(Clone)]
pub struct Groups {
    data: Arc<SpaceData>,
    spread: Option<Arc<Spread>>,
    slots: Arc<[Slot]>,
}

impl Groups {
    /// By class, or by another grouping where its curves are there.
    pub fn new(data: &Arc<SpaceData>, spread: Option<Arc<Spread>>, grouping: Grouping) -> Self {
        let slots = match &spread {
            Some(_) if grouping == Grouping::Category => Category::ALL.iter().map(|c| palette::slot(*c)).collect(),
            Some(spread) => spread.names.iter().enumerate().map(|(i, name)| palette::slot_of_group(i, name)).collect(),
            None => Class::ALL.iter().map(|class| palette::slot_of_class(*class)).collect(),
        };
        Self { data: Arc::clone(data), spread, slots }
    }

    /// Whether the groups are classes, which are guesses.
    pub const fn are_classes(&self) -> bool {
        self.spread.is_none()
    }

    /// The curves.
    pub fn spread(&self) -> &Spread {
        self.spread.as_deref().unwrap_or(&self.data.by_class)
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
