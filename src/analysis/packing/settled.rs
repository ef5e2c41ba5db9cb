//! Gaps that long blocks leave between them, once no more of these are to come: found by size without looking at all.

use smallvec::SmallVec;

/// The gaps between ranges of addresses that stay as they are.
#[derive(Debug)]
pub(super) struct Settled {
    /// Start and end of the gaps, by address.
    gaps: Vec<(u64, u64)>,
    /// Size and row of the gaps: the smallest first, of equal ones the lowest.
    by_size: Vec<(u64, u32)>,
    /// End of the ranges.
    top: u64,
}

/// The smallest gap of at least some bytes that was seen, the lowest of equal ones.
struct Best {
    least: u64,
    /// Size and start.
    gap: Option<(u64, u64)>,
}

impl Best {
    fn see(&mut self, start: u64, end: u64) {
        let seen = (end.saturating_sub(start), start);
        if seen.0 >= self.least && self.gap.is_none_or(|gap| seen < gap) {
            self.gap = Some(seen);
        }
    }
}

impl Settled {
    /// Takes ranges that are sorted and disjoint.
    pub fn new(ranges: &[(u64, u64)]) -> Self {
        let mut top = 0;
        let mut gaps = Vec::new();
        for &(start, end) in ranges {
            if start > top {
                gaps.push((top, start));
            }
            top = end;
        }
        let mut by_size: Vec<(u64, u32)> = (0..).zip(&gaps).map(|(row, gap)| (gap.1 - gap.0, row)).collect();
        by_size.sort_unstable();
        Self { gaps, by_size, top }
    }

    /// Start of the smallest gap of at least `size` bytes between these ranges and others, which are sorted and disjoint
    /// among themselves: the lowest of equal ones, or else the end of all.
    pub fn smallest_gap(&self, size: u64, others: &[(u64, u64)]) -> u64 {
        let mut best = Best { least: size, gap: None };
        // Gaps that others take a part of.
        let mut divided: SmallVec<[u32; 16]> = SmallVec::new();
        let mut row = 0;
        let mut rest = others;
        while let Some(&(start, end)) = rest.first() {
            row += self.gaps[row..].partition_point(|gap| gap.1 <= start);
            let Some(&gap) = self.gaps.get(row) else { break };
            if gap.0 >= end {
                rest = &rest[1..];
                continue;
            }
            divided.push(row as u32);
            let mut free_from = gap.0;
            while let Some(&(start, end)) = rest.first().filter(|other| other.0 < gap.1) {
                best.see(free_from, start);
                free_from = free_from.max(end);
                if end > gap.1 {
                    break;
                }
                rest = &rest[1..];
            }
            best.see(free_from, gap.1);
            row += 1;
        }
        let mut free_from = self.top;
        for &(start, end) in &others[others.partition_point(|other| other.1 <= self.top)..] {
            best.see(free_from, start);
            free_from = end;
        }
        let whole = &self.by_size[self.by_size.partition_point(|gap| gap.0 < size)..];
        if let Some(&(_, row)) = whole.iter().find(|gap| divided.binary_search(&gap.1).is_err()) {
            let (start, end) = self.gaps[row as usize];
            best.see(start, end);
        }
        best.gap.map_or(free_from, |gap| gap.1)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::occupied::{merge, smallest_gap};
    use super::*;

    fn ranges() -> impl Strategy<Value = Vec<(u64, u64)>> {
        proptest::collection::vec((0u64..300, 1u64..12), 0..40).prop_map(|rows| {
            let mut ranges = SmallVec::new();
            for (start, size) in rows {
                merge(&mut ranges, (start, start + size));
            }
            ranges.into_vec()
        })
    }

    proptest! {
        #[test]
        fn the_gap_is_that_of_all_ranges_together(settled in ranges(), others in ranges(), size in 1u64..20) {
            let mut all = SmallVec::from_vec(settled.clone());
            for &range in &others {
                merge(&mut all, range);
            }
            prop_assert_eq!(Settled::new(&settled).smallest_gap(size, &others), smallest_gap(size, &all));
        }
    }
}
