//! Values that are worked out when they are first asked for, of the keys that were asked for last. As in [`super::once`],
//! no lock is held meanwhile.

use std::borrow::Borrow;
use std::sync::{Arc, Mutex, PoisonError};

/// The values of the last `MOST` keys; clones share them.
#[derive(Debug)]
pub struct Recent<K, V, const MOST: usize>(Arc<Mutex<Vec<Known<K, V>>>>);

/// A key and its value.
type Known<K, V> = (K, Arc<V>);

impl<K, V, const MOST: usize> Default for Recent<K, V, MOST> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K, V, const MOST: usize> Clone for Recent<K, V, MOST> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K, V, const MOST: usize> Recent<K, V, MOST> {
    /// The value of a key, computed if it is not known.
    pub fn value<Q>(&self, key: &Q, compute: impl FnOnce() -> V) -> Arc<V>
    where
        K: Borrow<Q>,
        Q: PartialEq + ToOwned<Owned = K> + ?Sized,
    {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, value)) = known().iter().find(|known| known.0.borrow() == key) {
            return Arc::clone(value);
        }
        let value = Arc::new(compute());
        let mut known = known();
        if known.len() >= MOST {
            known.remove(0);
        }
        known.push((key.to_owned(), Arc::clone(&value)));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_keys_are_known() {
        let recent: Recent<String, usize, 2> = Recent::default();
        let of = |key: &str, value| *recent.value(key, || value);
        assert_eq!((of("a", 1), of("a", 2), of("b", 3), of("c", 4)), (1, 1, 3, 4));
        assert_eq!((of("a", 5), of("c", 6)), (5, 4), "the oldest is worked out anew");
    }
}
