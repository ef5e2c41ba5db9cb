//! Which holders of two allocators are the same, and which of their blocks.

use std::collections::BTreeMap;

use super::{Holder, HolderRow};

/// What two holders must have in common.
type Key = (u64, String);

/// Pairs holders: by the whole stack where their bytes are equal too, then by its functions where both sides have as many
/// (lines move when a file is edited), then by the whole stack, by its functions, by one's own functions, by the innermost of
/// them whoever called it, and last by the functions where only the kind differs. Those with equal keys are paired in the order of their lines.
pub(super) fn rows(before: &[Holder], after: &[Holder]) -> Vec<HolderRow> {
    let mut left: [Vec<usize>; 2] = [(0..before.len()).collect(), (0..after.len()).collect()];
    let mut pairs: Vec<(usize, usize)> = Vec::new();
    let sides = [before, after];
    let mut taken = [vec![false; before.len()], vec![false; after.len()]];
    let mut pass = |key: &dyn Fn(&Holder) -> Key, only_as_many: bool| {
        let mut groups: BTreeMap<Key, [Vec<usize>; 2]> = BTreeMap::new();
        for side in 0..2 {
            for &row in &left[side] {
                groups.entry(key(&sides[side][row])).or_default()[side].push(row);
            }
        }
        for [from, to] in groups.values_mut() {
            if only_as_many && from.len() != to.len() {
                continue;
            }
            from.sort_by_key(|&row| &before[row].lines);
            to.sort_by_key(|&row| &after[row].lines);
            for (&from, &to) in from.iter().zip(to.iter()) {
                pairs.push((from, to));
                (taken[0][from], taken[1][to]) = (true, true);
            }
        }
        for side in 0..2 {
            left[side].retain(|&row| !taken[side][row]);
        }
    };
    let kind = |holder: &Holder| holder.kind.clone();
    pass(&|holder| (holder.keys[0], format!("{} {}", holder.kind, holder.bytes())), false);
    pass(&|holder| (holder.keys[1], kind(holder)), true);
    pass(&|holder| (holder.keys[0], kind(holder)), false);
    pass(&|holder| (holder.keys[1], kind(holder)), false);
    pass(&|holder| (holder.keys[2], kind(holder)), false);
    pass(&|holder| (holder.keys[3], kind(holder)), false);
    pass(&|holder| (holder.keys[4], kind(holder)), false);
    pass(&|holder| (holder.keys[1], String::new()), false);
    let mut rows: Vec<HolderRow> =
        pairs.iter().map(|&(from, to)| paired((from, &before[from]), (to, &after[to]))).collect();
    rows.extend(left[0].iter().map(|&row| HolderRow {
        before: Some(row),
        after: None,
        before_bytes: before[row].bytes(),
        after_bytes: 0,
        appeared: 0,
        gone: before[row].bytes(),
        resized: 0,
    }));
    rows.extend(left[1].iter().map(|&row| HolderRow {
        before: None,
        after: Some(row),
        before_bytes: 0,
        after_bytes: after[row].bytes(),
        appeared: after[row].bytes(),
        gone: 0,
        resized: 0,
    }));
    rows
}

/// A holder on both sides: blocks of equal size are the same, the others are paired from the largest down.
fn paired((from, before): (usize, &Holder), (to, after): (usize, &Holder)) -> HolderRow {
    let mut counts: BTreeMap<u64, i128> = BTreeMap::new();
    for (blocks, sign) in [(&before.blocks, -1), (&after.blocks, 1)] {
        for &(bytes, count) in blocks {
            *counts.entry(bytes).or_default() += i128::from(count) * sign;
        }
    }
    let differing = |sign: i128| {
        let rows = counts.iter().rev().filter(move |row| row.1.signum() == sign);
        rows.map(|(&bytes, count)| (bytes, count.unsigned_abs())).collect::<Vec<_>>()
    };
    let (mut gone, mut new) = (differing(-1).into_iter().peekable(), differing(1).into_iter().peekable());
    let mut resized = 0i128;
    while let (Some(was), Some(is)) = (gone.peek_mut(), new.peek_mut()) {
        let both = was.1.min(is.1);
        let times = i128::try_from(both).unwrap_or(i128::MAX);
        resized = resized.saturating_add((i128::from(is.0) - i128::from(was.0)).saturating_mul(times));
        (was.1, is.1) = (was.1 - both, is.1 - both);
        let (was_is_used, is_is_used) = (was.1 == 0, is.1 == 0);
        if was_is_used {
            gone.next();
        }
        if is_is_used {
            new.next();
        }
    }
    let sum = |rows: &mut dyn Iterator<Item = (u64, u128)>| {
        let all = rows.fold(0u128, |sum, (bytes, count)| sum.saturating_add(u128::from(bytes).saturating_mul(count)));
        u64::try_from(all).unwrap_or(u64::MAX)
    };
    HolderRow {
        before: Some(from),
        after: Some(to),
        before_bytes: before.bytes(),
        after_bytes: after.bytes(),
        appeared: sum(&mut new),
        gone: sum(&mut gone),
        resized,
    }
}
