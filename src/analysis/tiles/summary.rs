//! Summary of a tile profile.

use super::gaps::Gaps;
use super::liveness::{LivePeak, live_peak};
use super::memory_report::CategoryBytes;
use crate::analysis::Verdict;
use crate::model::{Bytes, TileMemory};

/// Results computed from a profile's tiles.
#[derive(Debug, Clone)]
pub struct TileAnalysis {
    /// Bytes of all tiles, excluding gaps; `None` if not in the profile.
    pub total: Option<u64>,
    /// Bytes of all tiles, including gaps; `None` if not in the profile.
    pub total_including_gaps: Option<u64>,
    /// (fullest tile, its bytes), including gaps if known.
    pub max: Option<(u32, u64)>,
    /// Mean bytes per tile, including gaps if known.
    pub mean: f64,
    /// Memory of a tile in bytes; `None` if unknown.
    pub limit: Option<u64>,
    /// Tiles over the limit, ascending.
    pub over: Vec<u32>,
    /// Bytes by which the fullest tile exceeds the limit; 0 if it fits.
    pub worst_over_by: u64,
    /// Always-live bytes.
    pub always_live: Option<u64>,
    /// The liveness peak.
    pub peak: Option<LivePeak>,
    /// Bytes by category over all tiles, in file order.
    pub categories: Vec<CategoryBytes>,
    /// Bytes by region over all tiles; empty if not in the profile.
    pub regions: Vec<(String, u64)>,
    /// Summaries by IPU.
    pub ipus: Vec<IpuSummary>,
    /// Gaps of every tile.
    pub gaps: Option<Gaps>,
}

/// Summary of one IPU.
#[derive(Debug, Clone, PartialEq)]
pub struct IpuSummary {
    /// Bytes of its tiles, including gaps if known.
    pub bytes: u64,
    /// Its fullest tile.
    pub max: (u32, u64),
    /// Number of tiles over the limit.
    pub over: usize,
    /// Number of tiles with less than a twentieth of the mean, used only for I/O or not at all.
    pub idle: usize,
}

impl TileAnalysis {
    /// Analyses the tiles of a profile.
    #[must_use]
    pub fn new(memory: &TileMemory) -> Self {
        let must_fit = memory.must_fit();
        let limit = memory.target.bytes_per_tile;
        let max = must_fit.and_then(fullest);
        let count = memory.tile_count();
        let mean = must_fit.map_or(0.0, |bytes| mean(bytes, count));
        let over: Vec<u32> = match (must_fit, limit) {
            (Some(bytes), Some(limit)) => (0..).zip(bytes).filter(|&(_, &b)| b > limit).map(|(tile, _)| tile).collect(),
            _ => Vec::new(),
        };
        let worst_over_by = match (max, limit) {
            (Some((_, bytes)), Some(limit)) => bytes.saturating_sub(limit),
            _ => 0,
        };
        let always_live = memory.always_live.as_deref().map(sum);
        Self {
            total: memory.total.as_deref().map(sum),
            total_including_gaps: memory.including_gaps.as_deref().map(sum),
            max,
            mean,
            limit,
            worst_over_by,
            ipus: ipus(memory, &over),
            over,
            always_live,
            peak: live_peak(memory),
            categories: memory
                .categories
                .iter()
                .map(|category| CategoryBytes {
                    name: category.name.clone(),
                    bytes: sum(&category.bytes),
                    overlapped: memory.overlap_known.then(|| sum(&category.overlapped)),
                })
                .collect(),
            regions: memory.regions.iter().map(|region| (region.name.clone(), sum(&region.bytes))).collect(),
            gaps: Gaps::new(memory),
        }
    }

    /// Bytes live at the peak, always-live ones included.
    #[must_use]
    pub fn peak_live(&self) -> Option<u64> {
        Some(self.always_live?.saturating_add(self.peak?.bytes))
    }

    /// Whether every tile fits, with the bytes by which the fullest one is over or under the limit.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match (self.max, self.limit) {
            (Some((_, bytes)), Some(limit)) if bytes > limit => Verdict::Over { by: Bytes(bytes - limit) },
            (Some((_, bytes)), Some(limit)) => Verdict::Fits { spare: Bytes(limit - bytes) },
            _ => Verdict::Unknown,
        }
    }

    /// Fullest tile over the mean; 1 is perfectly balanced.
    #[must_use]
    pub fn imbalance(&self) -> Option<f64> {
        let (_, max) = self.max?;
        (self.mean > 0.0).then(|| max as f64 / self.mean)
    }

    /// Non-overlapping bytes of a category over all tiles.
    #[must_use]
    pub fn category(&self, name: &str) -> u64 {
        self.categories.iter().find(|category| category.name == name).map_or(0, |category| category.bytes)
    }

    /// Bytes of all tiles, excluding gaps if known.
    #[must_use]
    pub fn bytes(&self) -> Option<u64> {
        self.total.or(self.total_including_gaps)
    }

    /// (tile, bytes) of the fullest tiles, fullest first.
    #[must_use]
    pub fn worst_tiles(memory: &TileMemory, count: usize) -> Vec<(u32, u64)> {
        let Some(bytes) = memory.must_fit() else { return Vec::new() };
        let mut tiles: Vec<(u32, u64)> = (0..).zip(bytes.iter().copied()).collect();
        let count = count.min(tiles.len());
        let order = |tile: &(u32, u64)| (std::cmp::Reverse(tile.1), tile.0);
        if count > 0 && count < tiles.len() {
            tiles.select_nth_unstable_by_key(count - 1, order);
        }
        tiles.truncate(count);
        tiles.sort_by_key(order);
        tiles
    }
}

/// Categories that make up vertex state, as in Graphcore's own tests.
#[must_use]
pub fn vertex_state(categories: &[CategoryBytes]) -> u64 {
    const STATE: [&str; 4] = ["copyDescriptor", "vectorListDescriptor", "vertexFieldData", "vertexInstanceState"];
    categories.iter().filter(|category| STATE.contains(&category.name.as_str())).map(|category| category.bytes).sum()
}

pub(super) fn sum(bytes: &[u64]) -> u64 {
    bytes.iter().fold(0u64, |sum, &bytes| sum.saturating_add(bytes))
}

fn mean(bytes: &[u64], count: usize) -> f64 {
    if count == 0 { 0.0 } else { sum(bytes) as f64 / count as f64 }
}

/// The first tile with the most bytes.
fn fullest(bytes: &[u64]) -> Option<(u32, u64)> {
    (0..).zip(bytes.iter().copied()).max_by_key(|&(tile, bytes): &(u32, u64)| (bytes, std::cmp::Reverse(tile)))
}

fn ipus(memory: &TileMemory, over: &[u32]) -> Vec<IpuSummary> {
    let per_ipu = memory.target.tiles_per_ipu as usize;
    let Some(bytes) = memory.must_fit().filter(|_| per_ipu > 0) else { return Vec::new() };
    let idle_below = (mean(bytes, bytes.len()) / 20.0) as u64;
    bytes
        .chunks(per_ipu)
        .enumerate()
        .map(|(ipu, tiles)| {
            let first = (ipu * per_ipu) as u32;
            let (tile, most) = fullest(tiles).unwrap_or_default();
            IpuSummary {
                bytes: sum(tiles),
                max: (first + tile, most),
                over: over.iter().filter(|&&tile| memory.ipu_of(tile as usize) == ipu).count(),
                idle: tiles.iter().filter(|&&bytes| bytes < idle_below).count(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::TileTarget;

    fn memory(bytes: Vec<u64>) -> TileMemory {
        TileMemory {
            target: TileTarget {
                ipus: 2,
                tiles_per_ipu: bytes.len() as u32 / 2,
                bytes_per_tile: Some(100),
                ..TileTarget::default()
            },
            including_gaps: Some(bytes),
            ..TileMemory::default()
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let memory = memory(vec![10, 101, 100, 150]);
        let tiles = TileAnalysis::new(&memory);
        assert_eq!(tiles.over, [1, 3]);
        assert_eq!((tiles.max, tiles.worst_over_by), (Some((3, 150)), 50));
        assert_eq!(tiles.ipus[0].max, (1, 101));
        assert_eq!(tiles.ipus[1].over, 1);
        assert_eq!(TileAnalysis::worst_tiles(&memory, 3), [(3, 150), (1, 101), (2, 100)]);
        assert_eq!(tiles.total, None);
        assert_eq!(tiles.peak_live(), None);
    }

    #[test]
    fn of_equal_tiles_the_first_is_the_fullest() {
        assert_eq!(TileAnalysis::new(&memory(vec![5, 7, 7, 7])).max, Some((1, 7)));
    }
}
