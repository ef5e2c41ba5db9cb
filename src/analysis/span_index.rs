//! Finds the spans that contain a point or overlap a window, in time proportional to the number of results.
//!
//! Spans are kept in classes by length, the k-th with lengths of 2^k to 2^(k+1) - 1, each sorted by start: those of a
//! class that reach a point begin less than 2^(k+1) before it, and at least about half of the ones that do reach it.

/// Rows of spans, by class and start.
#[derive(Debug, Clone, Default)]
pub struct SpanIndex {
    /// By class: starts, ascending, and the row of each.
    classes: Vec<Class>,
}

#[derive(Debug, Clone, Default)]
struct Class {
    starts: Vec<u32>,
    rows: Vec<u32>,
}

impl SpanIndex {
    /// Indexes spans `(first point, last point)`, ends included, by their row.
    #[must_use]
    pub fn new(spans: impl Iterator<Item = (u32, u32)>) -> Self {
        let mut classes: Vec<Vec<(u32, u32)>> = Vec::new();
        for (row, (start, end)) in spans.enumerate() {
            let class = class_of(end.saturating_sub(start));
            if classes.len() <= class {
                classes.resize_with(class + 1, Vec::new);
            }
            classes[class].push((start, row as u32));
        }
        let classes = classes
            .into_iter()
            .map(|mut spans| {
                spans.sort_unstable();
                Class {
                    starts: spans.iter().map(|&(start, _)| start).collect(),
                    rows: spans.into_iter().map(|(_, row)| row).collect(),
                }
            })
            .collect();
        Self { classes }
    }

    /// Rows of the spans that may meet points `from..=to` and last at least `least` points; every one that does is
    /// among them, and so are some that end a little before. In no particular order.
    pub fn near(&self, from: u32, to: u32, least: u32) -> impl Iterator<Item = u32> + '_ {
        let lowest = if least <= 1 { 0 } else { class_of(least - 1) };
        self.classes.iter().enumerate().skip(lowest).flat_map(move |(k, class)| {
            let reach = 1u64.checked_shl(k as u32 + 1).unwrap_or(u64::MAX);
            let earliest = u64::from(from).saturating_sub(reach) as u32;
            let first = class.starts.partition_point(|&start| start < earliest);
            let end = class.starts.partition_point(|&start| start <= to);
            class.rows[first.min(end)..end].iter().copied()
        })
    }
}

/// Class of a span that ends so many points after its first: length less one.
fn class_of(more: u32) -> usize {
    (u32::BITS - 1 - (more.saturating_add(1)).leading_zeros()) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn finds_what_a_walk_finds(
            spans in proptest::collection::vec((0u32..200, 0u32..90), 0..80),
            from in 0u32..220,
            len in 0u32..60,
            least in 0u32..50,
        ) {
            let spans: Vec<(u32, u32)> = spans.into_iter().map(|(start, more)| (start, start + more)).collect();
            let index = SpanIndex::new(spans.iter().copied());
            let to = from + len;
            let meets = |row: &u32| {
                let (start, end) = spans[*row as usize];
                start <= to && end >= from && end - start + 1 >= least
            };
            let mut found: Vec<u32> = index.near(from, to, least).filter(meets).collect();
            found.sort_unstable();
            let slow: Vec<u32> = (0..spans.len() as u32).filter(meets).collect();
            prop_assert_eq!(found, slow);
        }
    }

    #[test]
    fn the_longest_span_has_a_class() {
        let index = SpanIndex::new([(0, u32::MAX), (5, 5)].into_iter());
        assert_eq!(index.near(u32::MAX, u32::MAX, 1).collect::<Vec<_>>(), vec![0]);
    }
}
