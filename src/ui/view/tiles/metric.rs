//! The metrics by which the heat map colours tiles.

use crate::analysis::tiles::TileAnalysis;
use crate::model::{TileMemory, in_words};

/// The metric shown by colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Metric {
    /// The bytes that must fit: including gaps, if known.
    #[default]
    MustFit,
    /// The total without gaps.
    Total,
    /// Free bytes below the limit.
    Headroom,
    /// Gaps.
    Gaps,
    /// The part of the gaps that is not fragmentation.
    GapsBelow,
    /// Always-live bytes.
    AlwaysLive,
    /// The tile's own maximum of bytes not always live.
    NotAlwaysLive,
    /// A memory region, by index.
    Region(usize),
    /// A category without overlapped variables, by index.
    Category(usize),
    /// The overlapped variables of a category, by index.
    Overlapped(usize),
}

impl Metric {
    /// The metrics available for a profile.
    pub fn all(memory: &TileMemory) -> Vec<Self> {
        let mut list = vec![Self::MustFit];
        let mut add = |known: bool, metric: Self| {
            if known {
                list.push(metric);
            }
        };
        let both = memory.total.is_some() && memory.including_gaps.is_some();
        add(both, Self::Total);
        add(memory.target.bytes_per_tile.is_some(), Self::Headroom);
        add(both, Self::Gaps);
        add(both && memory.target.interleaved_start.is_some(), Self::GapsBelow);
        add(memory.always_live.is_some(), Self::AlwaysLive);
        add(memory.not_always_live_max.is_some(), Self::NotAlwaysLive);
        for region in 0..memory.regions.len() {
            add(true, Self::Region(region));
        }
        for category in 0..memory.categories.len() {
            add(true, Self::Category(category));
        }
        for (at, category) in memory.categories.iter().enumerate() {
            add(category.overlapped.iter().any(|&bytes| bytes > 0), Self::Overlapped(at));
        }
        list
    }

    /// Display name.
    pub fn name(self, memory: &TileMemory) -> String {
        let region = |at: usize| memory.regions.get(at).map_or_else(String::new, |r| in_words(&r.name));
        let category = |at: usize| memory.categories.get(at).map_or_else(String::new, |c| in_words(&c.name));
        match self {
            Self::MustFit if memory.including_gaps.is_some() => "Total with gaps".to_owned(),
            Self::MustFit => "Total".to_owned(),
            Self::Total => "Total without gaps".to_owned(),
            Self::Headroom => "Headroom to capacity".to_owned(),
            Self::Gaps => "Gaps".to_owned(),
            Self::GapsBelow => "Gaps below the interleaved region".to_owned(),
            Self::AlwaysLive => "Always live".to_owned(),
            Self::NotAlwaysLive => "Not always live, each tile's peak".to_owned(),
            Self::Region(at) => format!("Region: {}", region(at)),
            Self::Category(at) => category(at),
            Self::Overlapped(at) => format!("{}, overlapped", category(at)),
        }
    }

    /// Whether it covers a whole tile, so that the limit is the end of the scale.
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::MustFit | Self::Total)
    }

    /// Value of each tile, in bytes.
    pub fn values(self, memory: &TileMemory, tiles: &TileAnalysis) -> Vec<u64> {
        let count = memory.tile_count();
        let column = |column: Option<&[u64]>| column.map_or_else(|| vec![0; count], <[u64]>::to_vec);
        match self {
            Self::MustFit => column(memory.must_fit()),
            Self::Total => column(memory.total.as_deref()),
            Self::Headroom => {
                let limit = tiles.limit.unwrap_or(0);
                column(memory.must_fit()).into_iter().map(|bytes| limit.saturating_sub(bytes)).collect()
            }
            Self::Gaps => column(tiles.gaps.as_ref().map(|gaps| &gaps.bytes[..])),
            Self::GapsBelow => column(tiles.gaps.as_ref().and_then(|gaps| gaps.below_interleaved.as_deref())),
            Self::AlwaysLive => column(memory.always_live.as_deref()),
            Self::NotAlwaysLive => column(memory.not_always_live_max.as_deref()),
            Self::Region(at) => column(memory.regions.get(at).map(|region| &region.bytes[..])),
            Self::Category(at) => column(memory.categories.get(at).map(|category| &category.bytes[..])),
            Self::Overlapped(at) => column(memory.categories.get(at).map(|category| &category.overlapped[..])),
        }
    }
}
