//! Maps and sets with a fast hash for keys that are numbers or short; each is seeded at random.

use std::collections::{HashMap, HashSet};

use foldhash::fast::RandomState;

/// A map with a fast hash.
pub type FastMap<K, V> = HashMap<K, V, RandomState>;

/// A set with a fast hash.
pub type FastSet<K> = HashSet<K, RandomState>;
