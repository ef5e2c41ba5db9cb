//! The views, one file or folder each, and their list. Adding one is a line in [`VIEWS`] or [`PANELS`].

mod advisor;
mod allocator;
mod buffers;
mod compare;
mod details;
mod failure;
mod heat;
mod live;
mod liveness;
mod overview;
mod padding;
mod pins;
mod report;
mod runtime;
mod tile_memory;
mod tiles;
mod timeline;
mod treemap;
mod what_if;

pub use what_if::switches;

use super::part::Views;

/// All views, in the order of their tabs.
pub const VIEWS: Views = Views(&[
    overview::VIEW,
    compare::VIEW,
    failure::VIEW,
    timeline::VIEW,
    treemap::VIEW,
    heat::VIEW,
    padding::VIEW,
    buffers::VIEW,
    tiles::VIEW,
    tile_memory::VIEW,
    liveness::VIEW,
    runtime::VIEW,
    allocator::VIEW,
    live::VIEW,
    what_if::VIEW,
    advisor::VIEW,
    report::VIEW,
]);

/// All panels of the right side panel.
pub const PANELS: Views = Views(&[details::PANEL, advisor::PANEL, pins::PANEL]);

/// Id of the view in which a document opens.
pub const FIRST: &str = overview::VIEW.id;

/// Id of the view in which two documents are compared.
pub const COMPARE: &str = compare::VIEW.id;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_view_has_its_own_name() {
        let ids: std::collections::HashSet<_> = VIEWS.0.iter().map(|view| view.id).collect();
        assert_eq!(ids.len(), VIEWS.0.len());
    }
}
