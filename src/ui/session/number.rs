//! Numbers that tell values of this process apart. An address does not: once a value is gone, the next one may have it.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that nothing else has. Not 0.
#[must_use]
pub fn fresh() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
