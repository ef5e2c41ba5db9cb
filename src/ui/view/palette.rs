//! Which colour means which category.

use crate::model::Category;
use crate::ui::widget::theme::Slot;

/// Colour of a category.
pub const fn slot(category: Category) -> Slot {
    match category {
        Category::Parameter => Slot::Weight,
        Category::Output => Slot::Output,
        Category::ThreadLocal => Slot::Thread,
        Category::Constant => Slot::Constant,
        Category::Temporary => Slot::Temporary,
    }
}

/// Colour of a group by its rank; the last, where it is "other", is that of temporaries.
pub fn slot_of_group(index: usize, name: &str) -> Slot {
    const ORDER: [Slot; 8] = [
        Slot::Activation,
        Slot::Weight,
        Slot::Output,
        Slot::Gradient,
        Slot::Optimizer,
        Slot::Constant,
        Slot::Thread,
        Slot::Input,
    ];
    if name == "other" { Slot::Temporary } else { ORDER.get(index).copied().unwrap_or(Slot::Temporary) }
}
