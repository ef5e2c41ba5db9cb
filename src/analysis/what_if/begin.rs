//! Where the backward pass begins: the turn from the forward to the backward pass.

use crate::analysis::border::border;
use crate::analysis::names::pass::Pass;
use crate::analysis::packing::{Families, Family};

/// Fraction of its values that the backward pass must have made to count as running: its index arrays and zeros are
/// made long before.
const RUNS: f64 = 0.001;

/// The most of what the forward pass makes that may be made after the first of the backward pass.
const MOST_LATER: f64 = 0.5;

/// The time at which a backward pass has made enough to run, by what may be an activation: indices of a gather are sorted
/// for its gradient, and weights transposed, as soon as they are known.
pub(super) fn first_backward(
    families: &Families,
    passes: &[Pass],
    is_activation: impl Fn(&Family) -> bool,
) -> Option<u32> {
    let backward = || families.list.iter().zip(passes).filter(|row| *row.1 == Pass::Backward).map(|row| row.0);
    let whole: u128 = backward().map(|family| u128::from(family.size)).sum();
    let enough = (whole as f64 * RUNS) as u128;
    let mut sum = 0u128;
    backward().filter(|family| is_activation(family)).find_map(|family| {
        sum += u128::from(family.size);
        (sum > enough).then_some(2 * family.first)
    })
}

/// The time from which the backward pass runs: [`first_backward`], unless most of the forward pass comes after it; `is_again`
/// tells what the compiler computes again in the backward pass, under names of the forward pass.
pub(super) fn begin_of_backward(
    families: &Families,
    passes: &[Pass],
    is_activation: impl Fn(&Family) -> bool,
    is_again: impl Fn(&Family) -> bool,
) -> Option<u32> {
    let of = |pass: Pass| families.list.iter().zip(passes).filter(move |row| *row.1 == pass).map(|row| row.0);
    let bytes = |family: &Family| u128::from(family.size);
    let at = first_backward(families, passes, is_activation)?;
    let forward: u128 = of(Pass::Forward).map(bytes).sum();
    let is_later = |family: &&Family| 2 * family.first > at && !is_again(family);
    let later: u128 = of(Pass::Forward).filter(is_later).map(bytes).sum();
    if later as f64 <= forward as f64 * MOST_LATER {
        return Some(at);
    }
    // One large array of the backward pass may be made before all else, as a loss scatters the places of its labels.
    let mut made: Vec<(u32, bool, u128)> =
        of(Pass::Backward).map(|family| (2 * family.first, true, bytes(family))).collect();
    let own = of(Pass::Forward).filter(|family| !is_again(family));
    made.extend(own.map(|family| (2 * family.first, false, bytes(family))));
    made.sort_unstable();
    // Before the turn the backward pass is wrong, behind it the forward pass.
    let bytes_of = |pass: bool| move |row: &(u32, bool, u128)| if row.1 == pass { row.2 } else { 0 };
    let first = border(&made, bytes_of(true), bytes_of(false));
    Some(made.get(first).map_or(at, |row| row.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::BufferId;

    #[test]
    fn zeros_of_the_backward_pass_are_not_its_beginning() {
        let family = |size, first, last| Family { root: BufferId(0), size, first, last };
        let families = Families {
            list: vec![family(1, 0, 90), family(5000, 2, 80), family(3000, 50, 60)],
            events: 100,
            ..Families::default()
        };
        let passes = [Pass::Backward, Pass::Forward, Pass::Backward];
        let begin = |passes: &[Pass], is_activation: &dyn Fn(&Family) -> bool| {
            begin_of_backward(&families, passes, is_activation, |_| false)
        };
        assert_eq!(begin(&passes, &|_| true), Some(100));
        assert_eq!(begin(&[Pass::Forward; 3], &|_| true), None);
        assert_eq!(
            begin(&[Pass::Backward; 3], &|family| family.size < 5000),
            Some(100),
            "indices and weights do not count"
        );
    }

    #[test]
    fn what_is_computed_again_is_not_before_the_turn() {
        let family = |size, first, last| Family { root: BufferId(0), size, first, last };
        let families = Families {
            list: vec![
                family(40, 0, 50),
                family(60, 10, 50),
                family(50, 20, 90),
                family(99, 30, 60),
                family(90, 40, 60),
                family(30, 50, 60),
            ],
            events: 100,
            ..Families::default()
        };
        let mut passes = [Pass::Forward; 6];
        (passes[2], passes[5]) = (Pass::Backward, Pass::Backward);
        let begin = |is_again: &dyn Fn(&Family) -> bool| begin_of_backward(&families, &passes, |_| true, is_again);
        assert_eq!(begin(&|family| family.size >= 90), Some(40));
        assert_eq!(
            begin(&|_| false),
            Some(100),
            "most of the forward pass would come after the first of the backward pass"
        );
    }
}
