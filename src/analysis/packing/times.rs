//! The times at which blocks begin, in groups of neighbours, and where among them live ranges begin and end.

/// A live range: first and last time, both included.
pub type LiveRange = (u32, u32);

/// Rows of the first and the last of the times at which blocks begin, in a live range.
pub(super) type Ends = (u32, u32);

/// The times with two trees above them: one of groups of groups, and one whose root is node 1 and that has nodes `2 n` and
/// `2 n + 1` below node `n`. They are the same in whatever order blocks are placed.
#[derive(Debug)]
pub struct Times {
    /// By live range; `None` for one that ends before it starts.
    ends: Vec<Option<Ends>>,
    /// By level and group, from groups of one time to a single group: the live ranges that begin or end in it.
    pub(super) ends_in: Vec<Vec<u32>>,
    /// The node of the first time.
    pub(super) leaves: u32,
    /// By node: the live ranges that look at what begins or ends below it, as it lies between their own ends.
    pub(super) looked_at: Vec<u32>,
}

/// Groups of a larger group, as a power of two.
pub(super) const GROUPS: u32 = 4;

impl Times {
    /// The times of some live ranges.
    #[must_use]
    pub fn new(ranges: &[LiveRange]) -> Self {
        let mut times: Vec<u32> = ranges.iter().filter(|range| range.0 <= range.1).map(|range| range.0).collect();
        times.sort_unstable();
        times.dedup();
        let row = |end: usize| u32::try_from(end).ok();
        let ends: Vec<Option<Ends>> = ranges
            .iter()
            .map(|&(start, end)| {
                let first = times.partition_point(|&t| t < start);
                let last = times.partition_point(|&t| t <= end).checked_sub(1)?;
                if first <= last { row(first).zip(row(last)) } else { None }
            })
            .collect();
        let mut ends_in = Vec::new();
        let mut groups = times.len().max(1);
        loop {
            let level = GROUPS * ends_in.len() as u32;
            let mut of_level = vec![0u32; groups];
            for &(first, last) in ends.iter().flatten() {
                each(first >> level, last >> level).for_each(|group| of_level[group as usize] += 1);
            }
            ends_in.push(of_level);
            if groups == 1 {
                break;
            }
            groups = groups.div_ceil(1 << GROUPS);
        }
        let leaves = times.len().next_power_of_two() as u32;
        let mut looked_at = vec![0; 2 * leaves as usize];
        for &(first, last) in ends.iter().flatten() {
            for_each_between(leaves, first, last, |node| looked_at[node as usize] += 1);
        }
        Self { ends, ends_in, leaves, looked_at }
    }

    /// The ends of a live range.
    pub(super) fn ends(&self, range: usize) -> Option<Ends> {
        self.ends.get(range).copied().flatten()
    }
}

/// Both, or one if they are the same.
pub(super) fn each(first: u32, last: u32) -> impl Iterator<Item = u32> {
    std::iter::once(first).chain((first != last).then_some(last))
}

/// Calls `each` with the fewest nodes that together span the times between two others.
pub(super) fn for_each_between(leaves: u32, first: u32, last: u32, mut each: impl FnMut(u32)) {
    let (mut low, mut high) = (leaves + first + 1, leaves + last);
    while low < high {
        if low & 1 == 1 {
            each(low);
            low += 1;
        }
        if high & 1 == 1 {
            high -= 1;
            each(high);
        }
        low >>= 1;
        high >>= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_between_two_others_are_spanned_by_few_nodes() {
        // Eight times, 8 to 15: those between 0 and 6 are 9 to 13.
        let mut nodes = Vec::new();
        for_each_between(8, 0, 6, |node| nodes.push(node));
        nodes.sort_unstable();
        assert_eq!(nodes, [5, 6, 9]);
        for (first, last) in [(3, 3), (3, 4)] {
            for_each_between(8, first, last, |node| panic!("{node} is not between {first} and {last}"));
        }
    }

    #[test]
    fn a_live_range_without_times_has_no_ends() {
        let times = Times::new(&[(4, 6), (1, 0), (5, 5), (7, 9)]);
        assert_eq!([0, 1, 2, 3, 4].map(|row| times.ends(row)), [Some((0, 1)), None, Some((1, 1)), Some((2, 2)), None]);
    }

    #[test]
    fn every_level_knows_what_begins_or_ends_in_its_groups() {
        let ranges: Vec<LiveRange> = (0..40).map(|start| (start, start + 20)).collect();
        let times = Times::new(&ranges);
        let counts: Vec<(usize, u32)> = times.ends_in.iter().map(|level| (level.len(), level.iter().sum())).collect();
        // One of the ranges begins and ends at the last time; those of one group count once.
        assert_eq!(counts[0], (40, 79));
        assert_eq!((counts[1].0, counts[2]), (3, (1, 40)));
    }
}
