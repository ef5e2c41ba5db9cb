//! Where a row of two kinds turns from one to the other, though neighbours are interleaved.

/// The position with the least of one kind before it and of the other after it, by what each row counts of them.
pub(super) fn border<T>(rows: &[T], wrong_before: impl Fn(&T) -> u128, wrong_behind: impl Fn(&T) -> u128) -> usize {
    let mut wrong: u128 = rows.iter().map(&wrong_behind).sum();
    let (mut least, mut best) = (wrong, 0);
    for (place, row) in rows.iter().enumerate() {
        wrong = wrong + wrong_before(row) - wrong_behind(row);
        if wrong < least {
            (least, best) = (wrong, place + 1);
        }
    }
    best
}
