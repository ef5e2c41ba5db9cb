//! Ticks at round numbers: bytes in one unit, steps and times.

use super::span::Span;
use crate::model::UnitSystem;

/// Maximum number of ticks on a byte axis. There are at least three if the height allows.
pub const MOST: usize = 5;

/// A position on an axis with its label.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// Position, in units of the axis.
    pub value: f64,
    /// Label.
    pub words: String,
}

/// About `count` round positions, 1, 2, 5, 10 … and at least 1 apart.
#[must_use]
pub fn decimal_ticks(span: Span, count: usize) -> Vec<f64> {
    let rough = (span.len() / count.max(1) as f64).max(1e-9);
    let magnitude = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].iter().map(|m| m * magnitude).find(|step| *step >= rough).unwrap_or(rough).max(1.0);
    every(span, step)
}

/// At most `most` round numbers of bytes, all in the same unit: multiples of a power of two of a binary unit, or of 1,
/// 2 or 5 times a power of ten of a decimal unit.
#[must_use]
pub fn byte_ticks(span: Span, most: usize, units: UnitSystem) -> Vec<Tick> {
    let Some(step) = byte_step(span, most.max(1), units) else { return Vec::new() };
    let values = every(span, step);
    let largest = values.last().copied().unwrap_or(0.0);
    // The unit of the largest value, unless telling ticks apart would need too many decimals.
    let fits = |&&(size, _): &&(u64, &str)| size as f64 <= largest.max(1.0) && step * 8.0 >= size as f64;
    let list = units.units();
    let &(size, name) = list.iter().rev().find(fits).unwrap_or(&list[0]);
    let words = |value: f64| {
        let number = format!("{:.3}", value / size as f64);
        format!("{} {name}", number.trim_end_matches('0').trim_end_matches('.'))
    };
    values.into_iter().map(|value| Tick { value, words: words(value) }).collect()
}

/// The distance between round numbers such that at most `most` of them lie in a range.
fn byte_step(span: Span, most: usize, units: UnitSystem) -> Option<f64> {
    if span.is_empty() || !span.len().is_finite() {
        return None;
    }
    let factors: &[f64] = match units {
        UnitSystem::Binary => &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0],
        UnitSystem::Decimal => &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0],
    };
    let steps = units.units().iter().flat_map(|&(size, _)| factors.iter().map(move |factor| factor * size as f64));
    let count = |step: f64| (span.hi / step).floor() - (span.lo / step).ceil() + 1.0;
    let mut steps = steps.skip_while(|&step| count(step) > most as f64);
    steps.next().or(Some(span.len()))
}

/// Ticks at powers of 1024 (or 1000), for a logarithmic axis.
#[must_use]
pub fn power_ticks(span: Span, units: UnitSystem) -> Vec<f64> {
    every(span, (units.units()[1].0 as f64).log2())
}

fn every(span: Span, step: f64) -> Vec<f64> {
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

    const GIB: f64 = (1u64 << 30) as f64;

    fn words(span: Span, units: UnitSystem) -> Vec<String> {
        byte_ticks(span, MOST, units).into_iter().map(|tick| tick.words).collect()
    }

    #[test]
    fn round_numbers() {
        assert_eq!(decimal_ticks(Span::new(52.0, 412.0), 8), [100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0]);
        assert!(decimal_ticks(Span::new(3.0, 3.0), 5).is_empty());
        let all = Span::new(0.0, 26.0 * GIB);
        assert_eq!(words(all, UnitSystem::Binary), ["0 GiB", "8 GiB", "16 GiB", "24 GiB"]);
        assert_eq!(words(all, UnitSystem::Decimal), ["0 GB", "10 GB", "20 GB"]);
    }

    #[test]
    fn one_unit_for_the_whole_axis() {
        assert_eq!(
            words(Span::new(0.0, 1.1 * GIB), UnitSystem::Binary),
            ["0 GiB", "0.25 GiB", "0.5 GiB", "0.75 GiB", "1 GiB"]
        );
        let near = words(Span::new(15.75 * GIB, 15.76 * GIB), UnitSystem::Binary);
        assert_eq!(near, ["16128 MiB", "16132 MiB", "16136 MiB"]);
        assert_eq!(words(Span::new(0.0, 1.0), UnitSystem::Binary), ["0 B", "1 B"]);
    }

    proptest! {
        #[test]
        fn three_to_five_ticks(hi in 64.0f64..1e15, decimal: bool) {
            let units = if decimal { UnitSystem::Decimal } else { UnitSystem::Binary };
            let count = byte_ticks(Span::new(0.0, hi), MOST, units).len();
            prop_assert!((3..=MOST).contains(&count), "{count} ticks up to {hi}");
        }
    }
}
