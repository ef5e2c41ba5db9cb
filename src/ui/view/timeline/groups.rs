//! Stacked curves and colours of the chosen grouping, shared with workers.

use std::sync::Arc;

use crate::analysis::class::Class;
use crate::analysis::stacked_curves::{Grouping, StackedCurves};
use crate::model::{BufferId, Category};
use crate::ui::part::colors;
use crate::ui::widget::theme::Slot;
use crate::ui::work::SpaceData;

/// The curves of a grouping with a colour for each group.
#[derive(Clone)]
pub struct Groups {
    data: Arc<SpaceData>,
    stacked: Option<Arc<StackedCurves>>,
    slots: Arc<[Slot]>,
}

impl Groups {
    /// Groups by class, or by another grouping if its curves have been computed.
    pub fn new(data: &Arc<SpaceData>, stacked: Option<Arc<StackedCurves>>, grouping: Grouping) -> Self {
        let slots = match &stacked {
            Some(_) if grouping == Grouping::Category => Category::ALL.iter().map(|c| colors::slot(*c)).collect(),
            Some(stacked) => stacked.names.iter().enumerate().map(|(i, name)| colors::slot_of_group(i, name)).collect(),
            None => Class::ALL.iter().map(|class| colors::slot_of_class(*class)).collect(),
        };
        Self { data: Arc::clone(data), stacked, slots }
    }

    /// Whether the groups are classes, which are guesses.
    pub const fn are_classes(&self) -> bool {
        self.stacked.is_none()
    }

    /// The curves.
    pub fn stacked(&self) -> &StackedCurves {
        self.stacked.as_deref().unwrap_or(&self.data.by_class)
    }

    /// Colours by group.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Colour of a buffer.
    pub fn slot_of(&self, buffer: BufferId) -> Slot {
        let group = self.stacked().group_of.get(buffer.index()).copied().unwrap_or(0);
        self.slots.get(group as usize).copied().unwrap_or(Slot::Temporary)
    }
}
