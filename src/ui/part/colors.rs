//! Colours of classes, categories and groups.

use crate::analysis::Scene;
use crate::analysis::class::Class;
use crate::export::palette::fill_of_class;
use crate::model::{BufferId, Category};
use crate::ui::widget::theme::Slot;

/// Buffers that are asked for their class, so that a row costs the same for any number of them.
const MOST_ASKED: usize = 1000;

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

/// Colour of a class.
pub const fn slot_of_class(class: Class) -> Slot {
    Slot::ALL[fill_of_class(class)]
}

/// Colour of a group by its rank; the group "other" has the colour of temporaries.
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

/// Groups of an IPU's storage categories; the last one is for all others.
pub const TILE_GROUPS: [(&str, Slot); 9] = [
    ("Variables", Slot::Activation),
    ("Constants", Slot::Constant),
    ("Exchange code", Slot::Output),
    ("Messages", Slot::Temporary),
    ("Vertex code", Slot::Weight),
    ("Vertex state", Slot::Optimizer),
    ("Control", Slot::Gradient),
    ("Stack", Slot::Thread),
    ("Other", Slot::Input),
];

/// The group of a storage category.
pub fn tile_group(category: &str) -> usize {
    match category {
        "variable" => 0,
        "constant" => 1,
        "internalExchangeCode" | "hostExchangeCode" | "globalExchangeCode" => 2,
        "message" | "rearrangement" | "globalMessage" | "hostMessage" => 3,
        "vertexCode" => 4,
        "vertexInstanceState" | "vertexFieldData" | "vectorListDescriptor" | "copyDescriptor" => 5,
        "controlCode" | "controlId" | "controlTable" => 6,
        "stack" => 7,
        _ => 8,
    }
}

/// Colour of a storage category.
pub fn tile_slot(category: &str) -> Slot {
    TILE_GROUPS[tile_group(category)].1
}

/// The colour of buffers of one class; `None` if they are of several.
#[must_use]
pub fn slot_of_all(scene: Scene<'_>, buffers: &[BufferId]) -> Option<Slot> {
    let class = |buffer: &BufferId| scene.analysis.class_now(scene.program, *buffer);
    let first = class(buffers.first()?);
    buffers.iter().take(MOST_ASKED).all(|buffer| class(buffer) == first).then(|| slot_of_class(first))
}
