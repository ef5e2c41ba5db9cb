//! What lies outside PyTorch on a device that ran out of memory: its message does not say it, but leaves it over.

use crate::model::{Bytes, Failure, Speaker};

/// Less than this is left over by rounding: sizes are printed to a hundredth of a GiB.
const ROUNDING: Bytes = Bytes(32 << 20);

/// Memory that neither PyTorch holds nor is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outside {
    /// Outside PyTorch in this process: the driver's context and libraries, where the message counts the process.
    pub this_process: Bytes,
    /// What the message says that one other process holds.
    pub other_process: Bytes,
    /// What nothing in the message accounts for.
    pub rest: Bytes,
    /// Whether the message counts what this process has in use, so that the rest is outside it.
    pub counts_process: bool,
    /// Whether all that is outside this process is more than PyTorch holds and more than is free.
    pub is_most: bool,
}

impl Outside {
    /// What others hold, as far as the message tells: not counted is what this process holds beside PyTorch.
    #[must_use]
    pub fn others(&self) -> Bytes {
        self.other_process + self.rest
    }

    /// The name of the rest.
    #[must_use]
    pub const fn rest_name(&self) -> &'static str {
        if self.counts_process { "outside this process" } else { "outside PyTorch" }
    }
}

/// What lies outside PyTorch by a message of its allocator; `None` where the message is another, or does not say what
/// PyTorch holds.
#[must_use]
pub fn outside(failure: &Failure) -> Option<Outside> {
    if failure.kind.speaker() != Speaker::Torch {
        return None;
    }
    let size = |key: &str| failure.bytes(key);
    let own = size("allocated")? + size("unallocated").or_else(|| cached(failure)).unwrap_or_default();
    let in_use = size("in_use");
    let this_process = in_use.map_or(Bytes::ZERO, |all| all.saturating_sub(own));
    let other_process = size("other_in_use").unwrap_or_default();
    let rest = size("capacity")
        .zip(size("free"))
        .map_or(Bytes::ZERO, |(capacity, free)| capacity.saturating_sub(own + this_process + other_process + free));
    let rest = if rest < ROUNDING { Bytes::ZERO } else { rest };
    let others = other_process + rest;
    let is_most = others > own && others > this_process && others > size("free").unwrap_or_default();
    Some(Outside { this_process, other_process, rest, counts_process: in_use.is_some(), is_most })
}

/// PyTorch's cache in older messages: reserved (cached) minus allocated bytes.
pub(super) fn cached(failure: &Failure) -> Option<Bytes> {
    let reserved = failure.bytes("reserved").or_else(|| failure.bytes("cached"))?;
    Some(reserved.saturating_sub(failure.bytes("allocated")?))
}
