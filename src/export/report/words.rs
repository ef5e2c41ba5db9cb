//! Words for counts.

use crate::model::counted;

/// `1 buffer`, `228 buffers`.
pub fn buffers(count: usize) -> String {
    counted(count as u64, "buffer")
}
