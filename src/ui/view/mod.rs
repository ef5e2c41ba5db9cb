//! The views, one file or folder each. Adding one is a line in [`VIEWS`] or [`PANELS`].

mod advisor;
mod allocator;
pub mod buffers;
mod details;
mod failure;
mod heat;
mod insights;
pub mod live;
pub mod liveness;
mod overview;
mod padding;
mod pins;
mod report;
pub mod runtime;
mod tile_memory;
mod tiles;
mod timeline;
mod treemap;
mod what_if;

use egui::Ui;

use super::part::ViewContext;
use super::session::Document;
use crate::model::MemorySpace;

/// A view of a document.
pub struct View {
    /// Its name on the command line.
    pub id: &'static str,
    /// Its name on the tab.
    pub title: &'static str,
    /// Whether a document has something for it.
    pub has: fn(&Document) -> bool,
    /// Draws it into the room there is.
    pub show: fn(&mut Ui, &mut ViewContext<'_>),
}

/// All views, in the order of their tabs.
pub const VIEWS: &[View] = &[
    View { id: "overview", title: "Overview", has: has_overview, show: overview::show },
    View { id: "failure", title: "Failure", has: failure::has, show: failure::show },
    View { id: "timeline", title: "Timeline", has: has_times, show: timeline::show },
    View { id: "treemap", title: "Treemap", has: has_spaces, show: treemap::show },
    View { id: "heatmap", title: "Heat map", has: has_times, show: heat::show },
    View { id: "padding", title: "Padding", has: has_spaces, show: padding::show },
    View { id: "buffers", title: "Buffers", has: has_spaces, show: buffers::show },
    View { id: "whatif", title: "What if", has: has_hbm, show: what_if::show },
    View { id: "advisor", title: "Advisor", has: advisor::has, show: advisor::show_page },
    View { id: "tiles", title: "Tiles", has: has_tiles, show: tiles::show },
    View { id: "memory", title: "Memory", has: has_tiles, show: tile_memory::show },
    View { id: "liveness", title: "Liveness", has: has_liveness, show: liveness::show },
    View { id: "insights", title: "Insights", has: has_tiles, show: insights::show },
    View { id: "runtime", title: "Runtime", has: runtime::has, show: runtime::show },
    View { id: "live", title: "Live arrays", has: live::has, show: live::show },
    View { id: "allocator", title: "Allocator", has: allocator::has, show: allocator::show },
    View { id: "report", title: "Report", has: always, show: report::show },
];

/// Panels on the right.
pub const PANELS: &[View] = &[
    View { id: "details", title: "Details", has: always, show: details::show },
    View { id: "advisor", title: "Advisor", has: advisor::has, show: advisor::show },
    View { id: "pins", title: "Pins", has: has_spaces, show: pins::show },
];

/// The view a document begins with.
pub const FIRST: &str = "overview";

/// Keys of single views, for the sheet.
pub const KEYS: &[&[(&str, &str)]] = &[
    super::widget::keys::KEYS,
    super::chart::KEYS,
    timeline::KEYS,
    heat::KEYS,
    tiles::KEYS,
    liveness::KEYS,
    runtime::KEYS,
    live::KEYS,
    allocator::KEYS,
];

fn always(_: &Document) -> bool {
    true
}

fn has_spaces(document: &Document) -> bool {
    document.analysis.programs.iter().any(|program| !program.spaces.is_empty())
        || document.profile.programs.iter().any(|program| !program.has_buffer_assignment)
}

/// A listing out of a message has sizes, but no times.
fn has_times(document: &Document) -> bool {
    has_spaces(document) && document.profile.programs.iter().any(|program| !program.is_listing)
}

/// Changes are tried out on the HBM of a program with a heap trace.
fn has_hbm(document: &Document) -> bool {
    document
        .analysis
        .programs
        .iter()
        .any(|program| program.space(MemorySpace::HBM).is_some_and(|space| space.xprof.trace.is_some()))
}

fn has_tiles(document: &Document) -> bool {
    document.profile.tiles.as_ref().is_some_and(|tiles| tiles.must_fit().is_some())
}

fn has_overview(document: &Document) -> bool {
    has_times(document) || document.profile.tiles.is_some() || !document.profile.facts.is_empty()
}

fn has_liveness(document: &Document) -> bool {
    document.profile.tiles.as_ref().is_some_and(|tiles| !tiles.liveness.steps.is_empty())
}

/// Whether a view shows single buffers, so that one can be looked for there.
#[must_use]
pub fn shows_buffers(id: &str) -> bool {
    matches!(id, "overview" | "timeline" | "treemap" | "heatmap" | "padding" | "buffers")
}

/// A view by its name.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static View> {
    VIEWS.iter().find(|view| view.id == id)
}

/// The views that have something to show.
pub fn shown_for(document: &Document) -> impl Iterator<Item = &'static View> + '_ {
    VIEWS.iter().filter(|view| (view.has)(document))
}

/// The first of them.
#[must_use]
pub fn first_for(document: &Document) -> &'static View {
    shown_for(document).next().unwrap_or(&VIEWS[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_has_its_own_name() {
        let ids: std::collections::HashSet<_> = VIEWS.iter().map(|view| view.id).collect();
        assert_eq!(ids.len(), VIEWS.len());
    }
}
