//! The view, program, selection and step to open a file at.

use crate::analysis::tree::TreeKind;
use crate::analysis::what_if::{Edit, EditSet};
use crate::model::Bytes;
use crate::ui::session::Pin;

/// Where to start in a file, as given on the command line.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeepLink {
    /// Id of a view.
    pub view: Option<String>,
    /// Name of a program.
    pub program: Option<String>,
    /// Name of a program of the same folder or archive to compare with: what is before.
    pub against: Option<String>,
    /// Name or color of a memory space.
    pub space: Option<String>,
    /// A buffer, by number or name; or a tile.
    pub select: Option<String>,
    /// A step in program order.
    pub step: Option<u32>,
    /// A range of steps to measure, ends included.
    pub measured: Option<(u32, u32)>,
    /// The steps that the time axis shows.
    pub zoom: Option<(u32, u32)>,
    /// What the tree of live memory groups by.
    pub tree: Option<TreeKind>,
    /// Capacity of HBM in bytes.
    pub capacity: Option<Bytes>,
    /// Named sets of changes.
    pub sets: Vec<EditSet>,
    /// What-if changes.
    pub edits: Vec<Edit>,
    /// Search text.
    pub filter: Option<String>,
    /// Pins.
    pub pins: Vec<Pin>,
}
