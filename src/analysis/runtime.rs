//! Analysis of an allocator's history: the peak and the allocations live at it, the curve, and whether the minimum use
//! rises (a leak).
//!
//! Numbers are those of xprof 2.24.2's `memory_profile`; where it calls everything older than the current step
//! "unused preallocated device memory", we also show which of those allocations the trace has seen.

use std::collections::BTreeMap;

use crate::model::{AllocatorActivity, AllocatorEvent, AllocatorStats, AllocatorTrace, Bytes, Clock, LiveAllocation};

/// Points of XProf's timeline.
const MAX_POINTS: usize = 1000;

/// Fewest steps for a trend.
const MIN_TREND_STEPS: usize = 3;

/// The lowest use of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Training step, as the trace numbers it.
    pub step: i64,
    /// Lowest use in it.
    pub bytes: i64,
}

/// Everything computed about one allocator.
#[derive(Debug, Clone, Default)]
pub struct AllocatorAnalysis {
    /// Name of the allocator, as the trace gives it.
    pub name: String,
    /// Unit of the event times.
    pub clock: Clock,
    /// How many events there are.
    pub events: usize,
    /// Highest use, stack and heap.
    pub peak: Bytes,
    /// Time of the peak in picoseconds.
    pub peak_time_ps: i64,
    /// The allocator at that moment.
    pub peak_stats: AllocatorStats,
    /// Total bytes it manages, as of the peak.
    pub capacity: Option<Bytes>,
    /// Peak use over its lifetime, including before the trace.
    pub lifetime_peak: Option<Bytes>,
    /// Step of the peak; -1 if unknown.
    pub peak_step: i64,
    /// Allocations live at the peak, as XProf's rows in XProf's order.
    pub at_peak: Vec<LiveAllocation>,
    /// Allocations of the peak's step that were live at the peak, largest first, without XProf's special rows.
    pub step_at_peak: Vec<LiveAllocation>,
    /// Allocations of earlier steps seen by the trace and live at the peak, largest first.
    pub older_at_peak: Vec<LiveAllocation>,
    /// Bytes in use at the peak but allocated before the trace began.
    pub before_trace: Bytes,
    /// Rows of the events, by time.
    pub order: Vec<u32>,
    /// Step of each event, by [`Self::order`].
    pub steps: Vec<i64>,
    /// Rows of the events that XProf's timeline shows.
    pub timeline: Vec<u32>,
    /// Lowest use of each whole step.
    pub floors: Vec<Floor>,
}

impl AllocatorAnalysis {
    /// Analyses a history.
    #[must_use]
    pub fn new(trace: &AllocatorTrace) -> Self {
        let mut result =
            Self { name: trace.name.clone(), clock: trace.clock, events: trace.events.len(), ..Self::default() };
        result.find_peak(trace);
        let mut order: Vec<u32> = (0..trace.events.len() as u32).collect();
        order.sort_by_key(|&row| trace.events[row as usize].time_ps);
        result.steps = steps(trace, &order);
        result.order = order;
        result.timeline = sample(trace, &result.order);
        result.floors = result.floors(trace);
        result.peak_step = result
            .order
            .iter()
            .zip(&result.steps)
            .rev()
            .find(|(row, _)| trace.events[**row as usize].stats.in_use() == result.peak_stats.in_use())
            .map_or(-1, |(_, &step)| step);
        result.find_live(trace);
        if let Some(given) = &trace.given {
            result.peak = Bytes::from_wire(given.stats.in_use());
            result.peak_stats = given.stats;
            result.peak_time_ps = given.time_ps;
            result.capacity = u64::try_from(given.capacity).ok().filter(|&bytes| bytes > 0).map(Bytes);
            result.lifetime_peak = Some(Bytes::from_wire(given.lifetime_peak));
            result.at_peak.clone_from(&given.rows);
            result.older_at_peak.clear();
            result.step_at_peak.clear();
            result.before_trace = Bytes::ZERO;
        }
        result
    }

    /// The last event, in the file's order, of the highest use.
    fn find_peak(&mut self, trace: &AllocatorTrace) {
        let mut peak = 0;
        for event in &trace.events {
            self.lifetime_peak = Some(Bytes::from_wire(event.stats.lifetime_peak));
            if event.stats.in_use() >= peak {
                peak = event.stats.in_use();
                self.peak_stats = event.stats;
                self.peak_time_ps = event.time_ps;
                self.capacity = u64::try_from(event.stats.capacity()).ok().filter(|&bytes| bytes > 0).map(Bytes);
            }
        }
        // A trace of the program records what it allocated, not the capacity.
        if trace.clock == Clock::Order {
            self.capacity = None;
        }
        self.peak = Bytes::from_wire(peak);
    }

    fn find_live(&mut self, trace: &AllocatorTrace) {
        let mut live: BTreeMap<u64, u32> = BTreeMap::new();
        let mut all: BTreeMap<u64, (u32, i64)> = BTreeMap::new();
        let mut unmapped = self.peak_stats.heap;
        let mut unmapped_free = 0i64;
        for (&row, &step) in self.order.iter().zip(&self.steps) {
            let event = &trace.events[row as usize];
            if event.time_ps > self.peak_time_ps {
                break;
            }
            match event.activity {
                AllocatorActivity::Allocation => {
                    all.insert(event.address, (row, step));
                }
                AllocatorActivity::Deallocation => {
                    all.remove(&event.address);
                }
                AllocatorActivity::Other => {}
            }
            if step != self.peak_step {
                continue;
            }
            match event.activity {
                AllocatorActivity::Allocation => {
                    live.insert(event.address, row);
                    unmapped = unmapped.saturating_sub(event.allocated);
                }
                AllocatorActivity::Deallocation => {
                    if live.remove(&event.address).is_none() {
                        unmapped_free = unmapped_free.saturating_add(event.allocated);
                    }
                    unmapped = unmapped.saturating_add(event.allocated);
                }
                AllocatorActivity::Other => {}
            }
        }
        unmapped = unmapped.saturating_sub(unmapped_free);
        let mut rows: Vec<LiveAllocation> =
            live.values().map(|&row| described(trace, &trace.events[row as usize])).collect();
        let special = |op: &str, bytes: i64, region: &str| LiveAllocation {
            op: op.to_owned(),
            bytes,
            requested: bytes,
            count: 1,
            region: region.to_owned(),
            data_type: "INVALID".to_owned(),
            shape: "unknown".to_owned(),
        };
        if unmapped > 0 {
            rows.push(special("unused preallocated device memory", unmapped, "persist/dynamic"));
        }
        if self.peak_stats.stack > 0 {
            rows.push(special("stack", self.peak_stats.stack, "stack"));
        }
        self.at_peak = merged(rows);
        let describe = |older: bool| {
            let rows = all.values().filter(|(_, step)| (*step != self.peak_step) == older);
            merged(rows.map(|&(row, _)| described(trace, &trace.events[row as usize])).collect())
        };
        (self.step_at_peak, self.older_at_peak) = (describe(false), describe(true));
        let seen = all.values().map(|&(row, _)| trace.events[row as usize].allocated).fold(0i64, i64::saturating_add);
        self.before_trace = Bytes::from_wire(self.peak_stats.heap.saturating_sub(seen));
    }

    /// Minimum use of every step but the first and last, which may be incomplete.
    fn floors(&self, trace: &AllocatorTrace) -> Vec<Floor> {
        let mut floors: BTreeMap<i64, i64> = BTreeMap::new();
        for (&row, &step) in self.order.iter().zip(&self.steps) {
            let in_use = trace.events[row as usize].stats.in_use();
            floors.entry(step).and_modify(|lowest| *lowest = in_use.min(*lowest)).or_insert(in_use);
        }
        let floors: Vec<Floor> = floors.into_iter().map(|(step, bytes)| Floor { step, bytes }).collect();
        match floors.as_slice() {
            [_, inner @ .., _] => inner.to_vec(),
            _ => Vec::new(),
        }
    }

    /// How much the minimum use rose in bytes, if it rose from each whole step to the next: memory that is never freed.
    #[must_use]
    pub fn rising_floor(&self) -> Option<Bytes> {
        let rises = self.floors.windows(2).all(|pair| pair[1].bytes > pair[0].bytes);
        let (first, last) = (self.floors.first()?, self.floors.last()?);
        (self.floors.len() >= MIN_TREND_STEPS && rises).then(|| Bytes::from_wire(last.bytes - first.bytes))
    }

    /// Fragmentation at the peak, 0 to 1; `None` if the pool was full.
    #[must_use]
    pub fn fragmentation_at_peak(&self) -> Option<f64> {
        let fragmentation = self.peak_stats.fragmentation;
        (self.events > 0 && fragmentation.is_finite()).then_some(fragmentation)
    }
}

/// Use of an allocator between two times, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UseInRange {
    /// Highest bytes in use in the range.
    pub highest: i64,
    /// Lowest bytes in use in the range.
    pub lowest: i64,
    /// Use over time, on average.
    pub mean: i64,
    /// How many allocations.
    pub allocations: u64,
    /// Bytes of them.
    pub allocated: i64,
    /// How many deallocations.
    pub deallocations: u64,
    /// Bytes of them.
    pub freed: i64,
}

fn described(trace: &AllocatorTrace, event: &AllocatorEvent) -> LiveAllocation {
    let text = |id| trace.strings.get(id).to_owned();
    LiveAllocation {
        op: text(event.op),
        bytes: event.allocated,
        requested: event.requested,
        count: 1,
        region: text(event.region),
        data_type: text(event.data_type),
        shape: text(event.shape),
    }
}

/// Largest first; equal ones in one row.
fn merged(mut rows: Vec<LiveAllocation>) -> Vec<LiveAllocation> {
    let same = |a: &LiveAllocation, b: &LiveAllocation| {
        (a.bytes, a.requested) == (b.bytes, b.requested)
            && (&a.op, &a.region, &a.data_type, &a.shape) == (&b.op, &b.region, &b.data_type, &b.shape)
    };
    rows.sort_by(|a, b| {
        (b.bytes, b.requested)
            .cmp(&(a.bytes, a.requested))
            .then_with(|| (&a.op, &a.region, &a.data_type, &a.shape).cmp(&(&b.op, &b.region, &b.data_type, &b.shape)))
    });
    rows.dedup_by(|next, first| {
        let equal = same(next, first);
        if equal {
            first.count += next.count;
        }
        equal
    });
    rows
}

/// Steps by time: an event without one belongs to the step after the last that is known.
fn steps(trace: &AllocatorTrace, order: &[u32]) -> Vec<i64> {
    let mut last = -1i64;
    order
        .iter()
        .map(|&row| match trace.events[row as usize].step {
            -1 => last.saturating_add(1),
            step => {
                last = step;
                step
            }
        })
        .collect()
}

/// At most [`MAX_POINTS`] events, each the highest of its window (the first of equals).
fn sample(trace: &AllocatorTrace, order: &[u32]) -> Vec<u32> {
    if order.len() <= MAX_POINTS {
        return order.to_vec();
    }
    let width = order.len() / MAX_POINTS;
    let narrow = MAX_POINTS * (width + 1) - order.len();
    let (first, second) = order.split_at((narrow * width).min(order.len()));
    let highest = |window: &[u32]| {
        window
            .iter()
            .copied()
            .reduce(|best, row| {
                let in_use = |row: u32| trace.events[row as usize].stats.in_use();
                if in_use(row) > in_use(best) { row } else { best }
            })
            .unwrap_or_default()
    };
    first.chunks(width).chain(second.chunks(width + 1)).map(highest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time_ps: i64, activity: AllocatorActivity, heap: i64, bytes: i64, address: u64) -> AllocatorEvent {
        AllocatorEvent {
            time_ps,
            activity,
            stats: AllocatorStats { heap, free: 1000 - heap, ..AllocatorStats::default() },
            requested: bytes,
            allocated: bytes,
            address,
            step: 0,
            ..AllocatorEvent::default()
        }
    }

    #[test]
    fn what_the_trace_did_not_see_is_one_row() {
        use AllocatorActivity::{Allocation, Deallocation};
        let trace = AllocatorTrace {
            events: vec![
                event(10, Allocation, 110, 10, 1),
                event(20, Allocation, 130, 20, 2),
                event(30, Deallocation, 120, 10, 1),
                event(40, Allocation, 140, 20, 3),
                event(50, Deallocation, 120, 20, 2),
            ],
            ..AllocatorTrace::default()
        };
        let result = AllocatorAnalysis::new(&trace);
        assert_eq!((result.peak, result.peak_time_ps, result.capacity), (Bytes(140), 40, Some(Bytes(1000))));
        let rows: Vec<(i64, i64)> = result.at_peak.iter().map(|row| (row.bytes, row.count)).collect();
        assert_eq!(rows, [(100, 1), (20, 2)]);
        assert_eq!(result.before_trace, Bytes(100));
    }

    #[test]
    fn a_long_history_is_sampled_by_its_highest_points() {
        let events: Vec<AllocatorEvent> =
            (0..2500).map(|i| event(i, AllocatorActivity::Allocation, (i * 7919) % 1000, 1, i as u64)).collect();
        let trace = AllocatorTrace { events, ..AllocatorTrace::default() };
        let result = AllocatorAnalysis::new(&trace);
        assert_eq!(result.timeline.len(), MAX_POINTS);
        let highest = result.timeline.iter().map(|&row| trace.events[row as usize].stats.heap).max();
        assert_eq!(highest, Some(result.peak.0 as i64));
    }

    #[test]
    fn nothing_is_no_peak() {
        let result = AllocatorAnalysis::new(&AllocatorTrace::default());
        assert_eq!((result.peak, result.capacity, result.fragmentation_at_peak()), (Bytes(0), None, None));
        assert!(result.rising_floor().is_none());
    }
}
