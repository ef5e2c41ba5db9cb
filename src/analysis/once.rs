//! Values that are worked out when they are first asked for. No lock is held meanwhile: a worker of the thread pool that
//! waits for its part of the work may be handed a job that asks for the same value, and would wait for itself.

use std::sync::OnceLock;

/// The value of a cell, computed if it has none. Two threads that ask at the same time both compute; the first value
/// stays.
pub fn once<T>(cell: &OnceLock<T>, compute: impl FnOnce() -> T) -> &T {
    if let Some(value) = cell.get() {
        return value;
    }
    let value = compute();
    cell.get_or_init(|| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_computation_may_ask_for_its_own_value() {
        let cell = OnceLock::new();
        let value = once(&cell, || *once(&cell, || 1) + 1);
        assert_eq!(*value, 1, "the first value stays");
        assert_eq!(*once(&cell, || 3), 1);
    }
}
