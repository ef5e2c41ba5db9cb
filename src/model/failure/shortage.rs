//! What a message says was needed, what there was, and by how much it was too little.

use super::{Bytes, Failure, FailureKind};

/// Numbers of a message; each may be missing in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shortage {
    /// Bytes needed, or requested on top of those in use.
    pub needed: Option<Bytes>,
    /// Whether `needed` is a request on top of what is in use, which is not to be held against the capacity.
    pub is_request: bool,
    /// Capacity in bytes.
    pub capacity: Option<Bytes>,
    /// Bytes needed minus capacity, or requested minus available.
    pub over_by: Option<Bytes>,
}

impl Shortage {
    /// The capacity, where what was needed is to be held against it.
    #[must_use]
    pub fn limit(&self) -> Option<Bytes> {
        self.capacity.filter(|_| !self.is_request)
    }
}

impl Failure {
    /// What was needed, and what there was.
    #[must_use]
    pub fn shortage(&self) -> Shortage {
        let both = self.bytes("tensorcore").zip(self.bytes("sparsecore")).map(|(tensor, sparse)| tensor + sparse);
        let used = self.bytes("used").or(both);
        let requested =
            self.bytes("exact_request").or_else(|| self.bytes("requested")).or_else(|| self.bytes("rounded"));
        let needed = used.or(requested);
        let capacity = self.bytes("capacity").or_else(|| self.bytes("pool_limit")).or_else(|| self.bytes("limit"));
        Shortage { needed, is_request: used.is_none(), capacity, over_by: self.over_by(needed, capacity) }
    }

    fn over_by(&self, needed: Option<Bytes>, capacity: Option<Bytes>) -> Option<Bytes> {
        let difference =
            |has: Option<Bytes>| needed.zip(has).filter(|(need, has)| need > has).map(|(need, has)| need - has);
        if let Some(printed) = self.bytes("exceeded") {
            return Some(printed);
        }
        if self.get("used").is_some() || self.kind == FailureKind::TpuTcScHbm {
            return difference(capacity);
        }
        let largest = self.bytes("largest_free").or_else(|| self.largest_hole());
        difference(largest.or_else(|| self.bytes("total_free")).or_else(|| self.bytes("free")))
    }

    /// The largest free chunk of a BFC dump.
    #[must_use]
    pub fn largest_hole(&self) -> Option<Bytes> {
        let printed = self.bytes("largest_free").or_else(|| self.bytes("largest_free_block"));
        // A list of chunks without its summary may be truncated.
        let whole = self.get("free").is_some() && !self.chunks.is_empty();
        printed.or_else(|| {
            whole.then(|| {
                self.chunks.iter().filter(|chunk| !chunk.in_use).map(|chunk| chunk.size).max().unwrap_or_default()
            })
        })
    }
}
