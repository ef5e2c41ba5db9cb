//! Range maximum and minimum of a step curve, in time independent of the length of the range.

use super::steps::Steps;

/// Highest values over blocks of 2, 4, 8 … changes of a curve.
#[derive(Debug, Clone, Default)]
pub struct MaxPyramid {
    levels: Vec<Vec<u32>>,
}

impl MaxPyramid {
    /// Builds the pyramid of a curve.
    #[must_use]
    pub fn new(curve: &Steps) -> Self {
        let mut levels = vec![(0..curve.len() as u32).collect::<Vec<_>>()];
        while let Some(last) = levels.last().filter(|level| level.len() > 1) {
            let next = last.chunks(2).map(|pair| best(curve, pair[0], *pair.last().unwrap_or(&pair[0]))).collect();
            levels.push(next);
        }
        Self { levels }
    }

    /// Highest value of the curve at points `from..to` and the first point with it; `None` for an empty range.
    #[must_use]
    pub fn max_in(&self, curve: &Steps, from: u32, to: u32) -> Option<(u64, u32)> {
        let to = to.min(curve.end());
        let rows = curve.rows_between(from, to);
        if from >= to || rows.is_empty() {
            return None;
        }
        let (mut first, mut end) = (rows.start, rows.end);
        let mut winner = first as u32;
        let mut level = 0;
        while first < end {
            let Some(nodes) = self.levels.get(level) else { break };
            if first % 2 == 1 {
                winner = best(curve, winner, nodes[first]);
                first += 1;
            }
            if end % 2 == 1 && first < end {
                end -= 1;
                winner = best(curve, winner, nodes[end]);
            }
            first /= 2;
            end /= 2;
            level += 1;
        }
        let (point, value) = curve.row(winner as usize);
        Some((value, point.max(from)))
    }
}

/// Lowest values of a step curve: the highest of what is missing to its top.
#[derive(Debug, Clone, Default)]
pub struct MinPyramid {
    top: u64,
    missing: Steps,
    pyramid: MaxPyramid,
}

impl MinPyramid {
    /// Builds the pyramid of a curve.
    #[must_use]
    pub fn new(curve: &Steps) -> Self {
        let top = curve.changes().map(|(_, value)| value).max().unwrap_or(0);
        let mut missing = Steps::default();
        let last = curve.end().checked_sub(1).map(|end| (end, curve.at(end)));
        for (point, value) in curve.changes().chain(last) {
            missing.push(point, top - value);
        }
        let pyramid = MaxPyramid::new(&missing);
        Self { top, missing, pyramid }
    }

    /// Lowest value of the curve at points `from..to`; `None` for an empty range.
    #[must_use]
    pub fn min_in(&self, from: u32, to: u32) -> Option<u64> {
        self.pyramid.max_in(&self.missing, from, to).map(|(missing, _)| self.top - missing)
    }
}

/// The higher of two changes, the earlier where they are equal.
fn best(curve: &Steps, a: u32, b: u32) -> u32 {
    let (first, second) = (a.min(b), a.max(b));
    if curve.row(second as usize).1 > curve.row(first as usize).1 { second } else { first }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn equals_a_walk_over_the_range(values in proptest::collection::vec(0u64..6, 1..60), a in 0u32..70, b in 0u32..70) {
            let mut curve = Steps::default();
            for (point, &value) in values.iter().enumerate() { curve.push(point as u32, value); }
            let pyramid = MaxPyramid::new(&curve);
            let (from, to) = (a.min(b), a.max(b));
            let slow = (from..to.min(values.len() as u32))
                .map(|p| (values[p as usize], p))
                .max_by_key(|&(value, point)| (value, std::cmp::Reverse(point)));
            prop_assert_eq!(pyramid.max_in(&curve, from, to), slow);
            let lowest = (from..to.min(values.len() as u32)).map(|p| values[p as usize]).min();
            prop_assert_eq!(MinPyramid::new(&curve).min_in(from, to), lowest);
        }
    }
}
