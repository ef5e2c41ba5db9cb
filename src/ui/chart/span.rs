//! A range of values that can be zoomed and moved.

/// Share of a range that is left beside a value that it was moved to.
const AIR: f64 = 0.1;

/// A range of values on an axis, such as the visible one. Positions stay in f64 until they are drawn.
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

    /// Relative position of a value: 0 at `lo` and 1 at `hi`.
    #[must_use]
    pub fn share(&self, value: f64) -> f64 {
        if self.is_empty() { 0.0 } else { (value - self.lo) / self.len() }
    }

    /// The value at a relative position.
    #[must_use]
    pub fn at(&self, share: f64) -> f64 {
        share.mul_add(self.len(), self.lo)
    }

    /// Zooms in (`factor` below 1) or out around a fixed value, within `whole` and never shorter than `least`.
    #[must_use]
    pub fn zoomed(&self, around: f64, factor: f64, whole: Self, least: f64) -> Self {
        // egui's smooth scrolling yields NaN in a frame of zero or negative duration.
        if !(factor.is_finite() && around.is_finite()) {
            return *self;
        }
        let len = (self.len() * factor).clamp(least.min(whole.len()), whole.len());
        let share = self.share(around).clamp(0.0, 1.0);
        let lo = share.mul_add(-len, around);
        Self::new(lo, lo + len).kept_in(whole)
    }

    /// The range moved by a distance, within `whole`.
    #[must_use]
    pub fn moved(&self, by: f64, whole: Self) -> Self {
        if by.is_finite() { Self::new(self.lo + by, self.hi + by).kept_in(whole) } else { *self }
    }

    /// The range moved just so far that a value is in it, with some room beside it.
    #[must_use]
    pub fn showing(&self, value: f64, whole: Self) -> Self {
        let air = self.len() * AIR;
        if value < self.lo {
            self.moved(value - air - self.lo, whole)
        } else if value > self.hi {
            self.moved(value + air - self.hi, whole)
        } else {
            *self
        }
    }

    /// A range of the same length, moved into `whole`.
    #[must_use]
    pub fn kept_in(&self, whole: Self) -> Self {
        let len = self.len().min(whole.len());
        let lo = self.lo.clamp(whole.lo, (whole.hi - len).max(whole.lo));
        Self::new(lo, lo + len)
    }

    /// `lo..hi` with a margin, within `whole`.
    #[must_use]
    pub fn around(lo: f64, hi: f64, air: f64, whole: Self, least: f64) -> Self {
        let middle = f64::midpoint(lo, hi);
        let len = ((hi - lo) * 2.0f64.mul_add(air, 1.0)).max(least).min(whole.len());
        Self::new(middle - len / 2.0, middle + len / 2.0).kept_in(whole)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_range_is_moved_no_further_than_it_needs() {
        let (whole, span) = (Span::new(0.0, 1000.0), Span::new(400.0, 500.0));
        assert_eq!(span.showing(450.0, whole), span);
        assert_eq!(span.showing(390.0, whole), Span::new(380.0, 480.0));
        assert_eq!(span.showing(700.0, whole), Span::new(610.0, 710.0));
        assert_eq!(span.showing(3.0, whole), Span::new(0.0, 100.0));
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
