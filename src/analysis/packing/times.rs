//! The times at which blocks begin, in groups of neighbours, and the groups that live ranges begin and end in.

/// A live range: first and last time, both included.
pub type LiveRange = (u32, u32);

/// Rows of the first and the last of the times at which blocks begin, in a live range.
pub(super) type Ends = (u32, u32);

/// The times, and above their groups a tree: its root is node 1, below node `n` are `2 n` and `2 n + 1`. They are the same
/// in whatever order blocks are placed.
#[derive(Debug)]
pub struct Times {
    /// By live range; `None` for one that ends before it starts.
    ends: Vec<Option<Ends>>,
    /// Times of a group, as a power of two.
    shift: u32,
    /// By group: the live ranges that begin or end in it.
    pub(super) ends_in: Vec<u32>,
    /// The node of the first group.
    pub(super) leaves: u32,
    /// By node: the live ranges that look at what begins or ends below it, as it lies between their own ends.
    pub(super) looked_at: Vec<u32>,
}

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
        // Few enough for a block to be entered in all that it lives throughout, large enough to have few ends in each.
        let shift = (times.len().isqrt() / 12).max(1).next_power_of_two().ilog2();
        let groups = (times.len() >> shift) + 1;
        let leaves = groups.next_power_of_two() as u32;
        let mut these = Self { ends, shift, ends_in: vec![0; groups], leaves, looked_at: vec![0; 2 * leaves as usize] };
        for row in 0..ranges.len() {
            let Some(ends) = these.ends(row) else { continue };
            let (first, last) = these.groups(ends);
            these.ends_in[first as usize] += 1;
            if first != last {
                these.ends_in[last as usize] += 1;
            }
            for_each_between(leaves, first, last, |node| these.looked_at[node as usize] += 1);
        }
        these
    }

    /// The ends of a live range.
    pub(super) fn ends(&self, range: usize) -> Option<Ends> {
        self.ends.get(range).copied().flatten()
    }

    /// The groups of two ends.
    pub(super) fn groups(&self, ends: Ends) -> (u32, u32) {
        (ends.0 >> self.shift, ends.1 >> self.shift)
    }

    /// The groups all of whose times are between two ends: the first, and the one after the last.
    pub(super) fn throughout(&self, ends: Ends) -> (u32, u32) {
        let first = (ends.0 + (1 << self.shift) - 1) >> self.shift;
        (first, ((ends.1 + 1) >> self.shift).max(first))
    }
}

/// Calls `each` with the fewest nodes that together span the groups between two others.
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
    fn groups_between_two_others_are_spanned_by_few_nodes() {
        // Eight groups, 8 to 15: those between 0 and 6 are 9 to 13.
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
}
