//! Statistics between two points: bytes allocated and freed, the peak inside, groups that grow.

use super::grouping::GroupedCurves;
use super::map::MemoryMap;
use super::pyramid::MaxPyramid;
use crate::model::Bytes;

/// Statistics of the points `from..=to`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RangeStats {
    /// First point of the range, included.
    pub from: u32,
    /// Last point of the range, included.
    pub to: u32,
    /// Bytes of the buffers allocated after the first point, up to the last one.
    pub allocated: Bytes,
    /// How many they are.
    pub allocations: usize,
    /// Bytes of the buffers live at the first point or later and freed by the last one.
    pub freed: Bytes,
    /// Number of those buffers.
    pub frees: usize,
    /// Live bytes at the first point.
    pub before: Bytes,
    /// Live bytes at the last point.
    pub after: Bytes,
    /// Highest live bytes inside.
    pub peak: Bytes,
    /// First point that reaches them.
    pub peak_point: u32,
    /// Groups by growth from the first point to the peak inside, largest first.
    pub grew: Vec<(usize, Bytes)>,
}

/// Computes statistics of the points `from..=to`. Buffers may share memory, so allocated minus freed bytes need not
/// equal the difference in live bytes.
#[must_use]
pub fn range_stats(map: &MemoryMap, curves: &GroupedCurves, pyramid: &MaxPyramid, from: u32, to: u32) -> RangeStats {
    let (from, to) = (from.min(to), from.max(to).min(map.points.saturating_sub(1)));
    let from = from.min(to);
    let at = |point| Bytes(curves.total.at(point));
    let (peak, peak_point) = pyramid.max_in(&curves.total, from, to + 1).unwrap_or((at(from).0, from));
    let mut stats = RangeStats {
        from,
        to,
        allocated: Bytes::ZERO,
        allocations: 0,
        freed: Bytes::ZERO,
        frees: 0,
        before: at(from),
        after: at(to),
        peak: Bytes(peak),
        peak_point,
        grew: Vec::new(),
    };
    for row in map.rows_in(from, to, 1) {
        let item = &map.boxes[row as usize];
        if item.start > from && item.start <= to {
            stats.allocated += Bytes(item.size);
            stats.allocations += 1;
        }
        if item.end >= from && item.end < to {
            stats.freed += Bytes(item.size);
            stats.frees += 1;
        }
    }
    for (group, curve) in curves.groups.iter().enumerate() {
        let more = curve.at(peak_point).saturating_sub(curve.at(from));
        if more > 0 {
            stats.grew.push((group, Bytes(more)));
        }
    }
    stats.grew.sort_by_key(|&(group, bytes)| (std::cmp::Reverse(bytes), group));
    stats
}
