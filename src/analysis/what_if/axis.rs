//! Maps curves and blocks from heap events to program points, the axis that every other view uses.

use crate::analysis::map::TimeAxis;
use crate::analysis::packing::Block;

/// The axis of a what-if result.
#[derive(Debug, Clone, Default)]
pub struct Axis {
    /// Unit of its points.
    pub unit: TimeAxis,
    /// Number of points.
    pub count: u32,
    /// Point of each heap event; empty where the points are the events themselves.
    points: Vec<u32>,
}

impl Axis {
    /// An axis of `steps` program points, where `points` gives the point of each heap event; if that is unknown, an
    /// axis of the `events` themselves.
    #[must_use]
    pub fn new(points: &[u32], steps: Option<u32>, events: u32) -> Self {
        match steps {
            Some(count) if points.len() >= events as usize && events > 0 => {
                Self { unit: TimeAxis::ProgramOrder, count, points: points.to_vec() }
            }
            _ => Self { unit: TimeAxis::HeapEvents, count: events + 1, points: Vec::new() },
        }
    }

    /// Point of index `place` in a curve: what is live before an event has been since the previous event.
    #[must_use]
    pub fn point_of(&self, place: u32) -> u32 {
        if self.points.is_empty() {
            return place;
        }
        let point = place.checked_sub(1).and_then(|event| self.points.get(event as usize)).copied();
        point.unwrap_or(0).min(self.count.saturating_sub(1))
    }

    /// First and last point of a block, both included.
    #[must_use]
    pub fn points_of(&self, block: &Block) -> (u32, u32) {
        if self.points.is_empty() {
            return (block.start / 2, block.end / 2);
        }
        let last = self.count.saturating_sub(1);
        let point = |time: u32| self.points.get(time as usize / 2).copied().unwrap_or(last).min(last);
        let first = point(block.start);
        (first, point(block.end).max(first))
    }

    /// For each point, the index of the curve's maximum during that point.
    #[must_use]
    pub fn highest(&self, curve: &[u64]) -> Vec<u32> {
        if self.points.is_empty() {
            return (0..curve.len() as u32).collect();
        }
        let mut places = Vec::with_capacity(self.count as usize);
        // What was live at the end of the previous step still is when this one begins.
        let (mut carried, mut next) = (0u32, 1usize);
        for point in 0..self.count {
            let mut best = carried;
            while next < curve.len() && self.points.get(next - 1).is_some_and(|&at| at <= point) {
                if curve[next] > curve[best as usize] {
                    best = next as u32;
                }
                carried = next as u32;
                next += 1;
            }
            places.push(best);
        }
        places
    }
}

/// A curve's values at the given indices.
#[must_use]
pub fn at_places(curve: &[u64], places: &[u32]) -> Vec<u64> {
    places.iter().map(|&place| curve.get(place as usize).copied().unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_shows_the_most_that_is_live_in_it() {
        // Allocated at step 1, a second one and the free of the first at step 3, the second freed at step 4.
        let axis = Axis::new(&[1, 3, 3, 4], Some(6), 4);
        let curve = [0, 10, 30, 20, 0];
        let shown = at_places(&curve, &axis.highest(&curve));
        assert_eq!(shown, [0, 10, 10, 30, 20, 0]);
        assert_eq!(axis.unit, TimeAxis::ProgramOrder);
        assert_eq!(axis.point_of(2), 3);
        assert_eq!(axis.points_of(&Block { size: 10, start: 0, end: 4 }), (1, 3));
    }

    #[test]
    fn without_a_schedule_the_events_are_the_axis() {
        let axis = Axis::new(&[], Some(6), 4);
        let curve = [0, 10, 30, 20, 0];
        assert_eq!(at_places(&curve, &axis.highest(&curve)), curve);
        assert_eq!((axis.unit, axis.count, axis.point_of(2)), (TimeAxis::HeapEvents, 5, 2));
    }
}
