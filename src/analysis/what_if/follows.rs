//! What the data flow tells of the dimensions of a buffer.

use crate::analysis::flow::dimensions::Mark;

/// What the data flow tells of a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Follows {
    /// These dimensions follow the batch, one bit for each.
    In(u32),
    /// None does.
    Nowhere,
    /// It cannot be told.
    Unknown,
}

impl Follows {
    pub(super) fn of(marks: &[Mark]) -> Self {
        let known = || marks.iter().filter(|mark| mark.dimension < u32::BITS);
        // What a dimension has of it beside one that has more than twice as much is a remainder, not another part.
        let most = known().map(|mark| mark.size).max().unwrap_or(0);
        let in_dimension =
            |dimension| known().filter(move |mark| mark.dimension == dimension).map(|mark| mark.size).max();
        let is_meant = |mark: &&Mark| in_dimension(mark.dimension).is_some_and(|size| size > most / 2);
        match known().filter(is_meant).fold(0u32, |set, mark| set | 1 << mark.dimension) {
            0 if marks.is_empty() => Self::Nowhere,
            0 => Self::Unknown,
            set => Self::In(set),
        }
    }

    /// The dimensions, one bit for each; none where that cannot be told.
    pub(super) const fn set(self) -> u32 {
        if let Self::In(set) = self { set } else { 0 }
    }

    /// The dimensions, ascending.
    pub(super) fn dimensions(self) -> impl Iterator<Item = usize> {
        let set = self.set();
        (0..u32::BITS as usize).filter(move |&place| set >> place & 1 == 1)
    }

    /// Of two values in one memory.
    pub(super) fn with(self, other: Self) -> Self {
        match (self, other) {
            (Self::In(a), Self::In(b)) => Self::In(a | b),
            (Self::In(_), _) => self,
            (_, Self::In(_)) => other,
            (Self::Nowhere, Self::Nowhere) => self,
            _ => Self::Unknown,
        }
    }
}

/// Dimensions of which each device has a part, one bit for each.
#[derive(Debug, Clone, Default)]
pub(super) struct Divided {
    /// By item; empty where no weight is divided.
    pub by_item: Vec<u32>,
    /// Whether the data flow was followed to its end: what is not in here is divided along no dimension of weights.
    pub is_whole: bool,
}

/// A set of one dimension.
pub(super) fn bit(dimension: usize) -> u32 {
    u32::try_from(dimension).ok().and_then(|dimension| 1u32.checked_shl(dimension)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_somewhere_is_no_longer_unknown() {
        let mark = |dimension| Mark::whole(dimension, 8);
        let rest = Mark::whole(0, 3);
        assert_eq!(Follows::of(&[rest, mark(2)]).dimensions().collect::<Vec<_>>(), [2], "a remainder");
        let both = Follows::of(&[mark(1), mark(3), Mark::UNKNOWN]);
        assert_eq!(both.dimensions().collect::<Vec<_>>(), [1, 3]);
        assert_eq!(Follows::of(&[Mark::UNKNOWN]), Follows::Unknown);
        assert_eq!(Follows::of(&[]), Follows::Nowhere);
        assert_eq!(Follows::Unknown.with(Follows::In(1)), Follows::In(1));
        assert_eq!(Follows::Nowhere.with(Follows::Unknown), Follows::Unknown);
        assert_eq!(Follows::In(1).with(Follows::In(4)), Follows::In(5));
    }
}
