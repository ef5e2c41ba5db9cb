//! Most bytes live at once, which no packer can go below.

use super::block::Block;
use super::moves::Moves;

/// Times for each block up to which they are counted one by one.
const DENSE: usize = 16;

/// Peak live bytes and the first time at which they are reached.
#[must_use]
pub fn most_live(blocks: &[Block]) -> (u64, u32) {
    by_time(blocks).unwrap_or_else(|| Moves::new(blocks).most_live(blocks))
}

/// As [`most_live`], by adding up what changes at each time, which needs no order of the blocks; `None` where there are
/// many more times than blocks, or numbers are not those of a program.
fn by_time(blocks: &[Block]) -> Option<(u64, u32)> {
    let (mut whole, mut end) = (0u64, 0);
    for block in blocks {
        whole = whole.checked_add(block.size)?;
        end = end.max(block.end as usize);
        if block.start > block.end {
            return None;
        }
    }
    if end / DENSE > blocks.len() {
        return None;
    }
    let mut changes = vec![0u64; end + 2];
    for block in blocks {
        let (start, end) = (block.start as usize, block.end as usize + 1);
        // Together these never fall below 0 nor rise above the whole.
        changes[start] = changes[start].wrapping_add(block.size);
        changes[end] = changes[end].wrapping_sub(block.size);
    }
    let (mut live, mut most, mut at) = (0u64, 0, 0);
    for (time, change) in changes.into_iter().enumerate() {
        live = live.wrapping_add(change);
        if live > most {
            (most, at) = (live, time as u32);
        }
    }
    Some((most, at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_of_no_program_are_counted_in_order() {
        let block = |size, start, end| Block { size, start, end };
        assert_eq!(by_time(&[block(u64::MAX, 0, 1), block(1, 0, 1)]), None);
        assert_eq!(by_time(&[block(1, 3, 2)]), None);
        assert_eq!(by_time(&[block(1, 0, 4_000_000_000)]), None);
        assert_eq!(most_live(&[block(u64::MAX, 0, 1), block(1, 0, 1)]), (u64::MAX, 0));
        assert_eq!(most_live(&[]), (0, 0));
    }

    proptest! {
        #[test]
        fn counted_by_time_or_in_order_it_is_the_same(
            rows in proptest::collection::vec((0u64..5, 0u32..300, 0u32..90), 30..200)
        ) {
            let blocks: Vec<Block> =
                rows.into_iter().map(|(size, start, span)| Block { size, start, end: start + span }).collect();
            prop_assert_eq!(by_time(&blocks), Some(Moves::new(&blocks).most_live(&blocks)));
        }
    }
}
