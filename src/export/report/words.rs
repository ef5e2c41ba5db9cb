//! Words for counts.

use crate::model::{counted, thousands};

/// `1 buffer`, `228 buffers`.
pub fn buffers(count: usize) -> String {
    counted(count as u64, "buffer")
}

/// `the largest 20 of 1,458`; `None` where all are shown.
pub fn largest_of(shown: usize, all: usize) -> Option<String> {
    (shown < all).then(|| format!("the largest {shown} of {}", thousands(all as u64)))
}
