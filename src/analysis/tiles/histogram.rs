//! Histogram of tiles by bytes.

/// Number of tiles in bins of equal width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// Bin width in bytes.
    pub step: u64,
    /// Number of tiles in each bin.
    pub counts: Vec<u32>,
}

/// Counts values in at most `steps` bins from 0 to `end`, and in further bins of the same width above, so that a limit at
/// `end` is a bin boundary.
#[must_use]
pub fn histogram(values: &[u64], end: u64, steps: usize) -> Histogram {
    let step = end.div_ceil(steps.max(1) as u64).max(1);
    let mut counts = vec![0u32; steps];
    for &value in values {
        // A value equal to the limit still fits.
        let at = usize::try_from(value.saturating_sub(1) / step).unwrap_or(usize::MAX).min(steps.saturating_mul(4));
        if counts.len() <= at {
            counts.resize(at + 1, 0);
        }
        counts[at] += 1;
    }
    Histogram { step, counts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_falls_between_two_steps() {
        let histogram = histogram(&[0, 10, 11, 100, 101], 100, 10);
        assert_eq!(histogram.step, 10);
        assert_eq!(histogram.counts, [2, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(super::histogram(&[u64::MAX], 1, 4).counts.iter().sum::<u32>(), 1);
    }
}
