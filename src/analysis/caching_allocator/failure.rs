//! Why a request failed: what was free, where, and what would have been needed.

use super::replay::Totals;
use super::space::{Free, Rounding, Segments, class_of};
use crate::model::{Bytes, SizeClass, StackId, counted};

/// Segments and free ranges at one moment.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// Segments.
    pub segments: Segments,
    /// Free ranges.
    pub free: Free,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The driver had room: a limit was set, or another process took the memory meanwhile.
    Limit,
    /// Enough bytes for the request were free, but in no one place.
    Fragmentation,
    /// Enough was free, but kept for other streams, pools or sizes.
    WrongPool,
    /// Too little was free in all.
    Shortage,
}

impl Cause {
    /// The word in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::Fragmentation => "fragmentation",
            Self::WrongPool => "wrong_pool",
            Self::Shortage => "shortage",
        }
    }

    /// In words, for a headline.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Limit => "a limit was set",
            Self::Fragmentation => "fragmentation",
            Self::WrongPool => "the free memory belongs to other pools",
            Self::Shortage => "too little memory",
        }
    }
}

/// A failed request. All sizes are bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRequest {
    /// The moment of the failure: its event is the one before.
    pub moment: u32,
    /// Who asked.
    pub stack: StackId,
    /// Requested, rounded.
    pub requested: u64,
    /// What the driver was asked for.
    pub segment: u64,
    /// What the driver had free.
    pub device_free: u64,
    /// The allocator's totals.
    pub totals: Totals,
    /// Free in segments that could serve the request.
    pub free_same_pool: u64,
    /// Free in segments of other streams or pools.
    pub free_other_pool: u64,
    /// Free in segments of the other size class.
    pub free_other_class: u64,
    /// Largest free range.
    pub largest_free: u64,
    /// Largest free range that could have served the request.
    pub largest_free_same_pool: u64,
    /// That range: first byte and bytes; `None` if there is none.
    pub largest_hole: Option<(u64, u64)>,
    /// Free ranges that could have served the request, had they been larger.
    pub holes_same_pool: u64,
    /// Why.
    pub cause: Cause,
    /// What would have been missing with all free memory in one place.
    pub short_by: u64,
    /// The most that the process had reserved until then: a limit allows at least as much.
    pub most_reserved: u64,
}

/// Share of the reserved bytes, 0 to 1, below which free pieces are not why a request failed that would not have been served
/// either had nothing been in pieces.
const FEW_PIECES: f64 = 0.10;

impl FailedRequest {
    /// Examines a request of (bytes, bytes that the driver had free) from a (stream, pool) in the state before it.
    #[must_use]
    pub fn examine(
        (requested, device_free): (u64, u64),
        (stream, pool): (i64, (i64, i64)),
        (segments, free): (&Segments, &Free),
        totals: Totals,
        rounding: &Rounding,
    ) -> Self {
        let class: SizeClass = class_of(requested);
        let segment = rounding.segment(requested);
        let (mut same, mut other_pool, mut other_class) = (0u64, 0u64, 0u64);
        let (mut largest, mut hole, mut holes) = (0, None, 0);
        for (&address, &length) in &free.by_address {
            let Some((_, home)) = segments.holding(address) else { continue };
            largest = length.max(largest);
            if home.stream != stream || home.pool != pool {
                other_pool = other_pool.saturating_add(length);
            } else if home.class != class {
                other_class = other_class.saturating_add(length);
            } else {
                same = same.saturating_add(length);
                if hole.is_none_or(|(_, most)| length > most) {
                    hole = Some((address, length));
                }
                holes += 1;
            }
        }
        let inactive = totals.reserved.saturating_sub(totals.active);
        // Under a limit what is reserved may be used, at least: with that much free in it, one place is all that is missing.
        let cause = if device_free >= segment && same < requested {
            Cause::Limit
        } else if device_free.saturating_add(same) >= segment {
            Cause::Fragmentation
        } else if device_free.saturating_add(inactive) >= segment {
            Cause::WrongPool
        } else {
            Cause::Shortage
        };
        Self {
            moment: 0,
            stack: StackId::NONE,
            requested,
            segment,
            device_free,
            totals,
            free_same_pool: same,
            free_other_pool: other_pool,
            free_other_class: other_class,
            largest_free: largest,
            largest_free_same_pool: hole.map_or(0, |hole| hole.1),
            largest_hole: hole,
            holes_same_pool: holes,
            cause,
            short_by: segment.saturating_sub(device_free).saturating_sub(inactive),
            most_reserved: totals.reserved,
        }
    }

    /// What the process could have reserved, as far as is known: under a limit what it had reserved, else what the driver
    /// had free, too.
    #[must_use]
    pub fn room(&self) -> u64 {
        if self.is_limited() { self.most_reserved } else { self.totals.reserved.saturating_add(self.device_free) }
    }

    /// Tells fragmentation from too little memory by the most that had been reserved, by the bytes that the program was about
    /// to ask for besides, and by what the same allocations and the request need in segments that grow.
    pub(super) fn settle(&mut self, (most_reserved, to_come): (u64, u64), needed: impl Fn() -> Option<u64>) {
        self.most_reserved = most_reserved.max(self.totals.reserved);
        let (room, few) = (self.room(), (self.totals.reserved as f64 * FEW_PIECES) as u64);
        let whole = self.totals.active.saturating_add(self.requested);
        let too_little = if self.is_limited() { Cause::Limit } else { Cause::Shortage };
        self.cause = match self.cause {
            Cause::Fragmentation | Cause::Limit if to_come > self.free_same_pool => too_little,
            Cause::Fragmentation if self.free_same_pool < few && needed().is_some_and(|needed| needed > room) => {
                too_little
            }
            Cause::Limit if whole <= room && needed().is_some_and(|needed| needed <= room) => Cause::Fragmentation,
            cause => cause,
        };
    }

    /// What the process could have had of the device: what it had reserved, and what the driver had free. The device has
    /// at least as much. `None` where something other than the device was the limit.
    #[must_use]
    pub fn limit(&self) -> Option<u64> {
        let is_of_device = self.cause != Cause::Limit && !self.is_limited();
        is_of_device.then(|| self.totals.reserved.saturating_add(self.device_free))
    }

    /// The event; -1 is never one.
    #[must_use]
    pub const fn event(&self) -> i64 {
        self.moment as i64 - 1
    }

    /// Whether the driver had room, so that a limit of the process was in the way.
    #[must_use]
    pub const fn is_limited(&self) -> bool {
        self.device_free >= self.segment
    }

    /// Reserved bytes without a tenant.
    #[must_use]
    pub const fn inactive(&self) -> u64 {
        self.totals.reserved.saturating_sub(self.totals.active)
    }

    /// Cached, but for other streams, pools or sizes.
    fn free_other(&self) -> u64 {
        self.free_other_pool.saturating_add(self.free_other_class)
    }

    /// What was cached for others, by what it was kept for.
    fn others(&self) -> String {
        let parts = [(self.free_other_pool, "other streams or pools"), (self.free_other_class, "other sizes")];
        let parts = parts.iter().filter(|part| part.0 > 0);
        let parts: Vec<String> = parts.map(|&(bytes, whose)| format!("{} for {whose}", Bytes(bytes).short())).collect();
        parts.join(" and ")
    }

    /// What was asked, what was free and why it failed, in one line.
    #[must_use]
    pub fn headline(&self) -> String {
        let short = |bytes: u64| Bytes(bytes).short();
        let all = if self.free_other() > 0 { " (all pools and sizes)" } else { "" };
        format!(
            "Out of memory: {} requested, {} free in the driver, {} free in the cache{all}. Cause: {}",
            short(self.requested),
            short(self.device_free),
            short(self.inactive()),
            self.cause.words()
        )
    }

    /// What was asked, what was free and why that did not do, in a sentence without a full stop.
    #[must_use]
    pub fn sentence(&self) -> String {
        let short = |bytes: u64| Bytes(bytes).short();
        let mut text = format!("{} requested", short(self.requested));
        if self.cause == Cause::Shortage && short(self.segment) != short(self.requested) {
            text = format!("{text}, which takes a segment of {}", short(self.segment));
        }
        text = format!("{text}; the driver had {} free", short(self.device_free));
        if self.holes_same_pool > 0 {
            let (holes, bytes) = (counted(self.holes_same_pool, "hole"), short(self.free_same_pool));
            let largest = short(self.largest_free_same_pool);
            let own = if self.free_other() > 0 { " for its pool and size" } else { "" };
            text = format!("{text}, and {bytes} were cached{own} in {holes}, the largest {largest}");
        }
        // The last part of the sentence names them otherwise.
        if self.free_other() > 0 && self.cause != Cause::WrongPool {
            text = format!("{text}, and {}", self.others());
        }
        let rest = match self.cause {
            Cause::Limit => {
                "that would have been enough: the process has a limit (set_per_process_memory_fraction), or \
                             another process took the memory meanwhile"
                    .to_owned()
            }
            Cause::Fragmentation if self.is_limited() => format!(
                "the process has a limit (set_per_process_memory_fraction), and {} in use with what is requested are less \
                 than the {} it had reserved, but nowhere in one place",
                short(self.totals.active.saturating_add(self.requested)),
                short(self.room())
            ),
            Cause::Fragmentation => "enough bytes, but not in one piece".to_owned(),
            Cause::WrongPool => format!(
                "{} more are free, but kept for other streams, private pools or small blocks",
                short(self.free_other())
            ),
            Cause::Shortage if self.short_by == 0 => {
                "enough bytes, but the same allocations and the request need more in one piece, too".to_owned()
            }
            Cause::Shortage => format!("{} are missing even with all of it in one place", short(self.short_by)),
        };
        format!("{text}: {rest}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::AllocatorSettings;

    #[test]
    fn under_a_limit_free_memory_in_pieces_is_fragmentation() {
        let (mib, pool) = (1u64 << 20, (0, (0, 0)));
        let home = super::super::space::Reserved {
            size: 400 * mib,
            stream: 0,
            pool: (0, 0),
            class: SizeClass::Large,
            is_expandable: false,
        };
        let segments = Segments { by_address: [(0, home)].into() };
        let cause = |holes: &[(u64, u64)], device_free: u64| {
            let free = Free { by_address: holes.iter().map(|&(at, bytes)| (at * mib, bytes * mib)).collect() };
            let bytes: u64 = free.by_address.values().sum();
            let totals = Totals { active: 400 * mib - bytes, reserved: 400 * mib, ..Totals::default() };
            let rounding = Rounding::new(&AllocatorSettings::default());
            FailedRequest::examine((150 * mib, device_free), pool, (&segments, &free), totals, &rounding)
        };
        assert_eq!(cause(&[(0, 100), (200, 100)], 1 << 40).cause, Cause::Fragmentation);
        assert!(cause(&[(0, 100), (200, 100)], 1 << 40).sentence().contains("350 MiB in use with what is requested"));
        assert_eq!(cause(&[(0, 100)], 1 << 40).cause, Cause::Limit);
        assert_eq!(cause(&[(0, 100), (200, 100)], 0).cause, Cause::Fragmentation);
        assert_eq!(cause(&[(0, 100)], 0).cause, Cause::Shortage);
        // Few pieces, which would not have been enough in one place either.
        let mut few = cause(&[(0, 20)], 1 << 40);
        few.cause = Cause::Fragmentation;
        few.settle((0, 0), || Some(500 * mib));
        assert_eq!(few.cause, Cause::Limit);
        // Pieces that would have done for this request, but not for what comes after it.
        let mut more = cause(&[(0, 100), (200, 100)], 1 << 40);
        more.settle((0, 300 * mib), || Some(400 * mib));
        assert_eq!(more.cause, Cause::Limit);
        // More had been reserved before, and given back.
        let mut before = cause(&[(0, 100)], 1 << 40);
        before.settle((500 * mib, 0), || Some(480 * mib));
        assert_eq!((before.cause, before.room()), (Cause::Fragmentation, 500 * mib));
        assert!(before.sentence().contains("less than the 500 MiB"));
    }
}
