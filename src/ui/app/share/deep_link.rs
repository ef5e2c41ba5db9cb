//! A place in a file to begin at.

use crate::analysis::what_if::{Edit, EditSet};
use crate::model::Bytes;
use crate::ui::session::Pin;

/// Where to begin, as the command line says it.
#[derive(Debug, Clone, Default)]
pub struct DeepLink {
    /// View.
    pub view: Option<String>,
    /// Program.
    pub program: Option<String>,
    /// Memory space.
    pub space: Option<String>,
    /// Buffer: its number or its name.
    pub select: Option<String>,
    /// Step.
    pub step: Option<u32>,
    /// Capacity of the device's memory.
    pub capacity: Option<Bytes>,
    /// Named sets of changes.
    pub sets: Vec<EditSet>,
    /// Changes to try out.
    pub edits: Vec<Edit>,
    /// What to find.
    pub filter: Option<String>,
    /// Pins.
    pub pins: Vec<Pin>,
}
