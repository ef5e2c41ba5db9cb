//! Contradictions between the events of a snapshot and its state: counted by kind, never fatal.

use std::collections::BTreeMap;

use crate::model::{CachingAction, counted};

/// A kind of contradiction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Problem {
    /// An event that cannot be undone from the state after it.
    Undo(CachingAction),
    /// An allocation outside of every segment.
    OutsideSegments,
    /// An allocation where no free range begins.
    NotFree,
    /// An allocation at an address that is in use.
    InUse,
    /// The end of a block that is not there.
    UnknownFree,
    /// The end of a segment or page that is not there.
    UnknownSegment,
    /// Failures beyond those that are examined.
    TooManyFailures,
    /// A moment at which the file says how much is active, and the replay another number.
    ActiveDiffers,
}

/// Counts of contradictions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problems {
    counts: BTreeMap<Problem, u64>,
}

impl Problems {
    /// Counts one.
    pub fn add(&mut self, problem: Problem) {
        *self.counts.entry(problem).or_default() += 1;
    }

    /// How often a kind was met.
    pub fn count(&self, problem: Problem) -> u64 {
        self.counts.get(&problem).copied().unwrap_or(0)
    }

    /// One sentence for each kind.
    pub fn sentences(&self) -> Vec<String> {
        self.counts.iter().map(|(&problem, &count)| sentence(problem, count)).collect()
    }
}

fn sentence(problem: Problem, count: u64) -> String {
    match problem {
        Problem::Undo(action) => {
            format!(
                "{} cannot be undone from the state at the end",
                counted(count, &format!("'{}' event", action.name()))
            )
        }
        Problem::OutsideSegments => {
            format!("{} outside of every segment: only the requested bytes are right", counted(count, "allocation"))
        }
        Problem::NotFree => format!("{} where no free range begins", counted(count, "allocation")),
        Problem::InUse => format!("{} at an address that is in use", counted(count, "allocation")),
        Problem::UnknownFree => format!("{} of a block that is not there", counted(count, "free")),
        Problem::UnknownSegment => format!("{} of a segment that is not there", counted(count, "free")),
        Problem::TooManyFailures => format!("{} more are not examined", counted(count, "failed request")),
        Problem::ActiveDiffers => {
            format!("{} in which the file's active bytes and the replay's differ", counted(count, "snapshot event"))
        }
    }
}
