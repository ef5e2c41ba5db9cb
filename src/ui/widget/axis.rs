//! Ranges that can be zoomed and moved, and round numbers to write beside them.

/// What is visible of an axis. Positions stay in f64 until the last moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Span {
    /// Left or lower end.
    pub lo: f64,
    /// Right or upper end.
    pub hi: f64,
}

impl Span {
    /// From `lo` to `hi`.
    #[must_use]
    pub const fn new(lo: f64, hi: f64) -> Self {
        Self { lo, hi }
    }

    /// Length.
    #[must_use]
    pub fn len(&self) -> f64 {
        self.hi - self.lo
    }

    /// Whether it has no length.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hi <= self.lo
    }

    /// Where a value is, 0 at `lo` and 1 at `hi`.
    #[must_use]
    pub fn share(&self, value: f64) -> f64 {
        if self.is_empty() { 0.0 } else { (value - self.lo) / self.len() }
    }

    /// The value at a share.
    #[must_use]
    pub fn at(&self, share: f64) -> f64 {
        share.mul_add(self.len(), self.lo)
    }

    /// Shrinks (`factor` below 1) or grows around a value that stays where it is; inside `whole`, never shorter than
    /// `least`.
    #[must_use]
    pub fn zoomed(&self, around: f64, factor: f64, whole: Self, least: f64) -> Self {
        // A frame that takes no time, or less, makes the smooth wheel no number.
        if !(factor.is_finite() && around.is_finite()) {
            return *self;
        }
        let len = (self.len() * factor).clamp(least.min(whole.len()), whole.len());
        let share = self.share(around).clamp(0.0, 1.0);
        let lo = share.mul_add(-len, around);
        Self::new(lo, lo + len).kept_in(whole)
    }

    /// Moved by a distance, inside `whole`.
    #[must_use]
    pub fn moved(&self, by: f64, whole: Self) -> Self {
        if by.is_finite() { Self::new(self.lo + by, self.hi + by).kept_in(whole) } else { *self }
    }

    /// The same length, moved so that it lies inside `whole`.
    #[must_use]
    pub fn kept_in(&self, whole: Self) -> Self {
        let len = self.len().min(whole.len());
        let lo = self.lo.clamp(whole.lo, (whole.hi - len).max(whole.lo));
        Self::new(lo, lo + len)
    }

    /// Related `lo..hi` with some air, inside `whole`.
    #[must_use]
    pub fn around(lo: f64, hi: f64, air: f64, whole: Self, least: f64) -> Self {
        let middle = f64::midpoint(lo, hi);
        let len = ((hi - lo) * 2.0f64.mul_add(air, 1.0)).max(least).min(whole.len());
        Self::new(middle - len / 2.0, middle + len / 2.0).kept_in(whole)
    }
}

/// Round positions 1, 2, 5, 10 … apart, about `count` of them, none closer than 1.
#[must_use]
pub fn decimal_ticks(span: Span, count: usize) -> Vec<f64> {
    let rough = (span.len() / count.max(1) as f64).max(1e-9);
    let magnitude = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * magnitude).find(|step| *step >= rough).unwrap_or(rough).max(1.0);
    ticks(span, step)
}

/// Round numbers of bytes: 1, 2, 4, 8 … of a unit of the given base (1024 or 1000), about `count` of them.
#[must_use]
pub fn byte_ticks(span: Span, count: usize, base: f64) -> Vec<f64> {
    let rough = (span.len() / count.max(1) as f64).max(1.0);
    let mut unit = 1.0;
    while unit * base <= rough {
        unit *= base;
    }
    let steps: &[f64] = if base == 1000.0 {
        &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
    } else {
        &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0]
    };
    let step = steps.iter().map(|m| m * unit).find(|step| *step >= rough).unwrap_or(rough);
    ticks(span, step)
}

fn ticks(span: Span, step: f64) -> Vec<f64> {
    if step <= 0.0 || !step.is_finite() || span.is_empty() {
        return Vec::new();
    }
    let first = (span.lo / step).ceil();
    let count = ((span.hi / step - first).floor() as usize).min(1000);
    (0..=count).map(|i| (first + i as f64) * step).filter(|v| *v <= span.hi).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn round_numbers() {
        assert_eq!(decimal_ticks(Span::new(52.0, 412.0), 8), [100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0]);
        let gib = f64::from(1 << 30);
        assert_eq!(byte_ticks(Span::new(0.0, 26.0 * gib), 4, 1024.0), [0.0, 8.0 * gib, 16.0 * gib, 24.0 * gib]);
        assert!(decimal_ticks(Span::new(3.0, 3.0), 5).is_empty());
    }

    proptest! {
        #[test]
        fn zooming_keeps_the_pointer_and_stays_inside(lo in 0.0f64..900.0, len in 1.0f64..100.0, share in 0.0f64..1.0, factor in 0.2f64..4.0) {
            let whole = Span::new(0.0, 1000.0);
            let span = Span::new(lo, lo + len);
            let around = span.at(share);
            let zoomed = span.zoomed(around, factor, whole, 1.0);
            prop_assert!(zoomed.lo >= whole.lo - 1e-9 && zoomed.hi <= whole.hi + 1e-9);
            prop_assert!(zoomed.lo <= around + 1e-9 && around <= zoomed.hi + 1e-9);
        }
    }
}
