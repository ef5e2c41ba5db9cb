//! Turns of threads that work on several files at a time and write what they found in the order of the files.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of input that may be worked on at a time, unless a single file has more.
const MOST_BYTES: u64 = 64 << 20;

/// Who may read, and who may write.
#[derive(Default)]
pub struct Turns {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Whose turn it is to write.
    next: usize,
    /// Bytes being worked on.
    bytes: u64,
}

/// The turn of one file. Dropping it passes the turn on, after waiting for it.
pub struct Turn<'a> {
    turns: &'a Turns,
    number: usize,
    bytes: u64,
}

impl Turns {
    /// Waits until a file of so many bytes may be read. The one whose turn it is to write always may.
    pub fn admit(&self, number: usize, bytes: u64) -> Turn<'_> {
        let mut state = self.lock();
        while state.next != number && state.bytes.saturating_add(bytes) > MOST_BYTES {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes = state.bytes.saturating_add(bytes);
        drop(state);
        Turn { turns: self, number, bytes }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// Waits until it is this file's turn to be written.
    pub fn wait(&self) {
        let mut state = self.turns.lock();
        while state.next != self.number {
            state = self.turns.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.wait();
        let mut state = self.turns.lock();
        state.next += 1;
        state.bytes = state.bytes.saturating_sub(self.bytes);
        drop(state);
        self.turns.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_in_order_even_where_one_is_larger_than_the_limit() {
        let turns = Turns::default();
        let order = Mutex::new(Vec::new());
        let next = Mutex::new(0..20_usize);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let number = next.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some(number) = number else { break };
                        let turn = turns.admit(number, (number as u64 % 3) * MOST_BYTES);
                        turn.wait();
                        order.lock().unwrap_or_else(PoisonError::into_inner).push(number);
                    }
                });
            }
        });
        assert_eq!(order.into_inner().unwrap_or_default(), (0..20).collect::<Vec<_>>());
    }
}
