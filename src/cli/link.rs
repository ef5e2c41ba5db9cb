//! Command-line options that select what to show first, for the window and for pictures.

use std::path::PathBuf;

use highwater::analysis::tree::TreeKind;
use highwater::analysis::what_if::{Edit, EditSet};
use highwater::model::{Bytes, parse_size};
use highwater::open::session::parse_zoom;
use highwater::ui::app::DeepLink;
use highwater::ui::session::Pin;

/// What to show first.
#[derive(Debug, clap::Args)]
pub struct LinkArgs {
    /// View: overview, compare (with two files), failure, timeline, treemap, heatmap, padding, buffers, tiles, memory,
    /// liveness, runtime, allocator, live, whatif, advisor, report
    #[arg(long)]
    pub view: Option<String>,
    /// Memory space, by name or colour: HBM, 1
    #[arg(long)]
    pub space: Option<String>,
    /// Program
    #[arg(long)]
    pub program: Option<String>,
    /// Program of the same folder to compare with: what is before
    #[arg(long, value_name = "PROGRAM")]
    pub against: Option<String>,
    /// Buffer to select, by number or name
    #[arg(long)]
    pub select: Option<String>,
    /// Step to show instead of the peak
    #[arg(long)]
    pub step: Option<u32>,
    /// First step of a range to measure
    #[arg(long, value_name = "STEP")]
    pub from: Option<u32>,
    /// Last step of the range to measure
    #[arg(long, value_name = "STEP")]
    pub to: Option<u32>,
    /// Steps that the time axis shows: `1398-2458`
    #[arg(long, value_name = "FROM-TO", value_parser = parse_zoom)]
    pub zoom: Option<(u32, u32)>,
    /// What the treemap groups by: scope, class, category, source, op, dtype, shape or sharding
    #[arg(long = "tree", value_name = "KIND")]
    pub tree: Option<TreeKind>,
    /// Memory available to a program, overriding the device's capacity: 15.75GiB
    #[arg(long, value_parser = parse_size)]
    pub capacity: Option<Bytes>,
    /// A change to try out in the what-if view; may be repeated: `donate params`, `batch 0.5`
    #[arg(long = "edit", value_name = "EDIT")]
    pub edits: Vec<Edit>,
    /// Text to find; matches are highlighted in every view
    #[arg(long)]
    pub filter: Option<String>,
    /// A numbered pin; may be repeated: `step 120: a note`, `buffer 17`
    #[arg(long = "pin", value_name = "PIN")]
    pub pins: Vec<Pin>,
    /// A file of named sets of changes, as the what-if view saves them
    #[arg(long, value_name = "FILE")]
    pub sets: Vec<PathBuf>,
}

impl LinkArgs {
    /// The place these options select; `sets` are the named sets of changes that were read.
    pub fn link(&self, sets: Vec<EditSet>) -> DeepLink {
        DeepLink {
            view: self.view.clone(),
            program: self.program.clone(),
            against: self.against.clone(),
            space: self.space.clone(),
            select: self.select.clone(),
            step: self.step,
            measured: (self.from.is_some() || self.to.is_some()).then(|| {
                let (from, to) = (self.from.unwrap_or(0), self.to.unwrap_or(u32::MAX));
                (from.min(to), from.max(to))
            }),
            zoom: self.zoom,
            tree: self.tree,
            capacity: self.capacity,
            edits: self.edits.clone(),
            filter: self.filter.clone(),
            pins: self.pins.clone(),
            sets,
        }
    }
}
