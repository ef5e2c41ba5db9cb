//! Gaps: unused bytes that count towards a tile's memory.
//!
//! Memory including gaps is the address after the last byte used. For a tile with interleaved variables it includes
//! everything below the interleaved region; only the remaining gaps are fragmentation.

use crate::model::TileMemory;

/// Gaps of every tile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gaps {
    /// All gaps by tile.
    pub bytes: Vec<u64>,
    /// The part below the interleaved region, by tile; `None` if it is unknown which tiles use interleaved memory.
    pub below_interleaved: Option<Vec<u64>>,
}

/// Sums over all tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapSums {
    /// Bytes of all gaps.
    pub bytes: u64,
    /// The part below the interleaved region.
    pub below_interleaved: Option<u64>,
    /// Bytes of the other gaps.
    pub fragmentation: Option<u64>,
}

impl Gaps {
    /// The gaps of a profile; `None` unless it has bytes both including and excluding gaps.
    #[must_use]
    pub fn new(memory: &TileMemory) -> Option<Self> {
        let (total, including) = (memory.total.as_deref()?, memory.including_gaps.as_deref()?);
        let bytes: Vec<u64> = including.iter().zip(total).map(|(high, used)| high.saturating_sub(*used)).collect();
        let below_interleaved = memory.target.interleaved_start.and_then(|start| {
            let interleaved = interleaved(memory)?;
            let below = |tile: usize| {
                if interleaved[tile] == 0 || including[tile] <= start {
                    return 0;
                }
                // Other data fills the region below first.
                let used_below = total[tile].saturating_sub(interleaved[tile]).min(start);
                (start - used_below).min(bytes[tile])
            };
            Some((0..bytes.len()).map(below).collect())
        });
        Some(Self { bytes, below_interleaved })
    }

    /// Sums over all tiles.
    #[must_use]
    pub fn sums(&self) -> GapSums {
        self.sums_of(&mut (0..self.bytes.len()))
    }

    /// Sums over some tiles.
    pub fn sums_of(&self, tiles: &mut dyn Iterator<Item = usize>) -> GapSums {
        let (mut bytes, mut below) = (0u64, 0u64);
        for tile in tiles {
            bytes = bytes.saturating_add(self.bytes.get(tile).copied().unwrap_or(0));
            let here = self.below_interleaved.as_ref().and_then(|below| below.get(tile));
            below = below.saturating_add(here.copied().unwrap_or(0));
        }
        let known = self.below_interleaved.is_some();
        GapSums {
            bytes,
            below_interleaved: known.then_some(below),
            fragmentation: known.then(|| bytes.saturating_sub(below)),
        }
    }
}

/// Interleaved bytes by tile, from the region's column or else from the categories.
fn interleaved(memory: &TileMemory) -> Option<Vec<u64>> {
    if let Some(column) = memory.regions.iter().find(|region| region.name == "interleaved") {
        return Some(column.bytes.clone());
    }
    let mut sums: Option<Vec<u64>> = None;
    for category in memory.categories.iter().filter(|category| category.interleaved.iter().any(|&bytes| bytes > 0)) {
        let sums = sums.get_or_insert_with(|| vec![0; category.interleaved.len()]);
        for (sum, bytes) in sums.iter_mut().zip(&category.interleaved) {
            *sum = sum.saturating_add(*bytes);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{TileColumn, TileTarget};

    /// The busy tile of PopVision's own screenshot: 41 kB used, of which 6,400 B interleaved, yet 219 kB counted.
    #[test]
    fn the_gap_below_the_interleaved_region_is_told_apart() {
        let memory = TileMemory {
            target: TileTarget { ipus: 1, tiles_per_ipu: 2, interleaved_start: Some(212_992), ..TileTarget::default() },
            total: Some(vec![42_400, 1_000]),
            including_gaps: Some(vec![219_392, 1_500]),
            regions: vec![TileColumn { name: "interleaved".to_owned(), bytes: vec![6_400, 0] }],
            ..TileMemory::default()
        };
        let gaps = Gaps::new(&memory).expect("both columns");
        assert_eq!(gaps.bytes, [176_992, 500]);
        assert_eq!(gaps.below_interleaved, Some(vec![176_992, 0]));
        assert_eq!(gaps.sums(), GapSums { bytes: 177_492, below_interleaved: Some(176_992), fragmentation: Some(500) });
    }

    #[test]
    fn without_regions_the_gaps_are_not_split() {
        let memory = TileMemory { total: Some(vec![1]), including_gaps: Some(vec![5]), ..TileMemory::default() };
        let sums = Gaps::new(&memory).expect("both columns").sums();
        assert_eq!(sums, GapSums { bytes: 4, below_interleaved: None, fragmentation: None });
    }
}
