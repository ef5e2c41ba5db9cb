//! A step curve over program points, stored as its changes only.

/// A step curve: the value from each change on, up to the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Steps {
    points: Vec<u32>,
    values: Vec<u64>,
    /// One past the last point.
    end: u32,
}

impl Steps {
    /// The value at the next point.
    pub fn push(&mut self, point: u32, value: u64) {
        if self.values.last() != Some(&value) {
            self.points.push(point);
            self.values.push(value);
        }
        self.end = point + 1;
    }

    /// Puts another curve behind this one, which ends where that begins.
    pub fn append(&mut self, mut other: Self) {
        let is_same = self.values.last().is_some() && self.values.last() == other.values.first();
        self.points.extend(other.points.drain(usize::from(is_same)..));
        self.values.extend(other.values.drain(usize::from(is_same)..));
        self.end = self.end.max(other.end);
    }

    /// The value at a point; 0 outside.
    #[must_use]
    pub fn at(&self, point: u32) -> u64 {
        if point >= self.end {
            return 0;
        }
        let after = self.points.partition_point(|&p| p <= point);
        after.checked_sub(1).map_or(0, |i| self.values[i])
    }

    /// One past the last point.
    #[must_use]
    pub const fn end(&self) -> u32 {
        self.end
    }

    /// Changes: (point, value from there on).
    pub fn changes(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.points.iter().copied().zip(self.values.iter().copied())
    }

    /// How many changes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is no point.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    /// The changes that matter for points `from..to`: rows of [`Self::changes`].
    #[must_use]
    pub fn rows_between(&self, from: u32, to: u32) -> std::ops::Range<usize> {
        let first = self.points.partition_point(|&p| p <= from).saturating_sub(1);
        first..self.points.partition_point(|&p| p < to)
    }

    /// The highest value at points `from..to`; 0 if there are none.
    #[must_use]
    pub fn highest(&self, from: u32, to: u32) -> u64 {
        if from >= to {
            return 0;
        }
        self.values[self.rows_between(from, to)].iter().copied().max().unwrap_or(0)
    }

    /// The change in a row.
    #[must_use]
    pub fn row(&self, row: usize) -> (u32, u64) {
        (self.points[row], self.values[row])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_in_two_parts_is_the_same() {
        let values = [5, 5, 7, 7, 7, 2, 2];
        let part = |from: usize, to: usize| {
            let mut steps = Steps::default();
            (from..to).for_each(|point| steps.push(point as u32, values[point]));
            steps
        };
        for cut in 0..=values.len() {
            let mut steps = part(0, cut);
            steps.append(part(cut, values.len()));
            assert_eq!(steps, part(0, values.len()), "{cut}");
        }
    }

    #[test]
    fn only_changes_are_kept() {
        let mut steps = Steps::default();
        for (point, value) in [5, 5, 7, 7, 7, 2].into_iter().enumerate() {
            steps.push(point as u32, value);
        }
        assert_eq!(steps.len(), 3);
        assert_eq!((0..8).map(|p| steps.at(p)).collect::<Vec<_>>(), vec![5, 5, 7, 7, 7, 2, 0, 0]);
        assert_eq!(steps.rows_between(3, 5), 1..2);
        assert_eq!(steps.rows_between(0, 6), 0..3);
        assert_eq!([(0, 6), (0, 2), (5, 6), (2, 2)].map(|(from, to)| steps.highest(from, to)), [7, 5, 2, 0]);
    }
}
