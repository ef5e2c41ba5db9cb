//! An allocator's history indexed for drawing and for ranges: the cost of a query hardly depends on the number of
//! events.

use super::pyramid::{MaxPyramid, MinPyramid};
use super::runtime::{AllocatorAnalysis, UseInRange};
use super::steps::Steps;
use crate::model::{AllocatorActivity, AllocatorTrace};

/// Fragmentation is kept in millionths.
const PARTS: f64 = 1e6;

/// Sums over all events before one.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    allocations: u32,
    deallocations: u32,
    allocated: i64,
    freed: i64,
    /// Σ use × time, in bytes × picoseconds.
    area: i128,
}

/// Use and fragmentation over time; rows are events by time.
#[derive(Debug, Clone, Default)]
pub struct RuntimeCurve {
    /// When each event was, in picoseconds, ascending.
    pub times: Vec<i64>,
    used: Steps,
    highest: MaxPyramid,
    lowest: MinPyramid,
    fragmentation: Steps,
    most_fragmented: MaxPyramid,
    /// Highest capacity of any event, in bytes.
    pub capacity: u64,
    /// Whether any event had free memory.
    pub has_free: bool,
    /// Whether any event had fragmentation.
    pub has_fragmentation: bool,
    sums: Vec<Sums>,
}

impl RuntimeCurve {
    /// Prepares a history in the order that its analysis found.
    #[must_use]
    pub fn new(trace: &AllocatorTrace, analysis: &AllocatorAnalysis) -> Self {
        let events = || analysis.order.iter().filter_map(|&row| trace.events.get(row as usize));
        let used = |in_use: i64| u64::try_from(in_use).unwrap_or(0);
        let mut curve = Self::default();
        let mut sums = Sums::default();
        let mut before: Option<(i64, i64)> = None;
        for (row, event) in (0u32..).zip(events()) {
            let in_use = used(event.stats.in_use());
            curve.used.push(row, in_use);
            let share = event.stats.fragmentation;
            let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
            curve.fragmentation.push(row, (share * PARTS).round() as u64);
            curve.has_fragmentation |= share > 0.0;
            curve.has_free |= event.stats.free > 0;
            curve.capacity = curve.capacity.max(used(event.stats.capacity()));
            if let Some((since, level)) = before {
                sums.area += i128::from(level) * i128::from(event.time_ps.saturating_sub(since));
            }
            before = Some((event.time_ps, event.stats.in_use()));
            curve.times.push(event.time_ps);
            curve.sums.push(sums);
            match event.activity {
                AllocatorActivity::Allocation => {
                    sums.allocations += 1;
                    sums.allocated = sums.allocated.saturating_add(event.allocated);
                }
                AllocatorActivity::Deallocation => {
                    sums.deallocations += 1;
                    sums.freed = sums.freed.saturating_add(event.allocated);
                }
                AllocatorActivity::Other => {}
            }
        }
        curve.sums.push(sums);
        curve.highest = MaxPyramid::new(&curve.used);
        curve.lowest = MinPyramid::new(&curve.used);
        curve.most_fragmented = MaxPyramid::new(&curve.fragmentation);
        curve
    }

    /// First and last time, in picoseconds.
    #[must_use]
    pub fn span(&self) -> Option<(i64, i64)> {
        Some((*self.times.first()?, *self.times.last()?))
    }

    /// The event whose state holds at a time; `None` before the first.
    #[must_use]
    pub fn row_at(&self, time_ps: i64) -> Option<u32> {
        let after = self.times.partition_point(|&time| time <= time_ps);
        after.checked_sub(1).map(|row| row as u32)
    }

    /// Events whose state holds somewhere in `from..to`, the one before included.
    fn rows(&self, from_ps: i64, to_ps: i64) -> (u32, u32) {
        let first = self.times.partition_point(|&time| time <= from_ps).saturating_sub(1);
        let end = self.times.partition_point(|&time| time < to_ps);
        // Before the first event nothing is known.
        if end == 0 { (0, 0) } else { (first as u32, end.max(first + 1) as u32) }
    }

    /// Highest use in `from..to` and the first event with it.
    #[must_use]
    pub fn highest(&self, from_ps: i64, to_ps: i64) -> Option<(u64, u32)> {
        let (first, end) = self.rows(from_ps, to_ps);
        self.highest.max_in(&self.used, first, end)
    }

    /// Lowest use in `from..to`.
    #[must_use]
    pub fn lowest(&self, from_ps: i64, to_ps: i64) -> Option<u64> {
        let (first, end) = self.rows(from_ps, to_ps);
        self.lowest.min_in(first, end)
    }

    /// Highest fragmentation in `from..to`, 0 to 1.
    #[must_use]
    pub fn fragmentation(&self, from_ps: i64, to_ps: i64) -> Option<f64> {
        let (first, end) = self.rows(from_ps, to_ps);
        self.most_fragmented.max_in(&self.fragmentation, first, end).map(|(parts, _)| parts as f64 / PARTS)
    }

    /// What happened between two times, both included.
    #[must_use]
    pub fn range(&self, from_ps: i64, to_ps: i64) -> UseInRange {
        let start = self.times.partition_point(|&time| time < from_ps);
        let end = self.times.partition_point(|&time| time <= to_ps).max(start);
        if start == end {
            return UseInRange::default();
        }
        let (before, after, last) = (self.sums[start], self.sums[end], self.sums[end - 1]);
        let rows = (start as u32, end as u32);
        let highest = self.highest.max_in(&self.used, rows.0, rows.1).map_or(0, |(bytes, _)| bytes);
        let lowest = self.lowest.min_in(rows.0, rows.1).unwrap_or(0);
        let wire = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let time = self.times[end - 1].saturating_sub(self.times[start]);
        let mean = if time > 0 {
            ((last.area - before.area) / i128::from(time)) as i64
        } else {
            wire(self.used.at(rows.1 - 1))
        };
        UseInRange {
            highest: wire(highest),
            lowest: wire(lowest),
            mean,
            allocations: u64::from(after.allocations - before.allocations),
            allocated: after.allocated.saturating_sub(before.allocated),
            deallocations: u64::from(after.deallocations - before.deallocations),
            freed: after.freed.saturating_sub(before.freed),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{AllocatorEvent, AllocatorStats};

    fn trace(rows: &[(i64, i64, bool)]) -> AllocatorTrace {
        let event = |&(time_ps, heap, takes): &(i64, i64, bool)| AllocatorEvent {
            time_ps,
            activity: if takes { AllocatorActivity::Allocation } else { AllocatorActivity::Deallocation },
            stats: AllocatorStats { heap, free: 10, fragmentation: 0.5, ..AllocatorStats::default() },
            allocated: heap / 3,
            ..AllocatorEvent::default()
        };
        AllocatorTrace { events: rows.iter().map(event).collect(), ..AllocatorTrace::default() }
    }

    #[test]
    fn a_state_holds_until_the_next_event() {
        let trace = trace(&[(10, 5, true), (20, 9, true), (30, 2, false)]);
        let curve = RuntimeCurve::new(&trace, &AllocatorAnalysis::new(&trace));
        assert_eq!(curve.highest(12, 15), Some((5, 0)));
        assert_eq!(curve.highest(12, 21), Some((9, 1)));
        assert_eq!((curve.lowest(12, 31), curve.lowest(12, 30)), (Some(2), Some(5)));
        assert_eq!((curve.highest(0, 10), curve.row_at(9), curve.row_at(29)), (None, None, Some(1)));
        assert_eq!((curve.span(), curve.capacity, curve.fragmentation(0, 99)), (Some((10, 30)), 19, Some(0.5)));
        let range = curve.range(20, 30);
        assert_eq!((range.highest, range.lowest, range.mean, range.allocations, range.freed), (9, 2, 9, 1, 0));
    }

    /// What happened between two times, both included, event by event.
    fn walked(analysis: &AllocatorAnalysis, trace: &AllocatorTrace, from_ps: i64, to_ps: i64) -> UseInRange {
        let time = |row: u32| trace.events[row as usize].time_ps;
        let start = analysis.order.partition_point(|&row| time(row) < from_ps);
        let end = analysis.order.partition_point(|&row| time(row) <= to_ps).max(start);
        let mut stats = UseInRange::default();
        let (mut area, mut last): (i128, Option<(i64, i64)>) = (0, None);
        for &row in &analysis.order[start..end] {
            let event = &trace.events[row as usize];
            let in_use = event.stats.in_use();
            stats.highest = stats.highest.max(in_use);
            stats.lowest = if last.is_none() { in_use } else { stats.lowest.min(in_use) };
            match event.activity {
                AllocatorActivity::Allocation => {
                    stats.allocations += 1;
                    stats.allocated = stats.allocated.saturating_add(event.allocated);
                }
                AllocatorActivity::Deallocation => {
                    stats.deallocations += 1;
                    stats.freed = stats.freed.saturating_add(event.allocated);
                }
                AllocatorActivity::Other => {}
            }
            if let Some((since, level)) = last {
                area += i128::from(level) * i128::from(event.time_ps.saturating_sub(since));
            }
            last = Some((event.time_ps, in_use));
        }
        if let (Some(&first), Some((until, level))) = (analysis.order.get(start), last) {
            let span = i128::from(until.saturating_sub(time(first)));
            stats.mean = if span > 0 { (area / span) as i64 } else { level };
        }
        stats
    }

    proptest! {
        #[test]
        fn ranges_are_those_of_a_walk(
            rows in proptest::collection::vec((0i64..60, 0i64..50, any::<bool>()), 0..80), a in -5i64..70, b in -5i64..70
        ) {
            let trace = trace(&rows);
            let analysis = AllocatorAnalysis::new(&trace);
            let curve = RuntimeCurve::new(&trace, &analysis);
            prop_assert_eq!(curve.range(a.min(b), a.max(b)), walked(&analysis, &trace, a.min(b), a.max(b)));
        }
    }
}
