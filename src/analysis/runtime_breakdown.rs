//! Breakdown of an allocator's peak: allocations of the current step, older ones, and those the trace never saw. XProf
//! merges the last two in one row, "unused preallocated device memory".

use super::runtime::AllocatorAnalysis;
use crate::model::{AllocatorTrace, Bytes, LiveAllocation};

/// When an allocation was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// In the step of the peak.
    Step,
    /// In an earlier step that the trace saw.
    Earlier,
    /// Before the trace began.
    BeforeTrace,
    /// Before the step of the peak; the file does not say when.
    Older,
    /// Reserved for the stack.
    Stack,
}

impl Origin {
    /// Name in the table and the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Step => "this step",
            Self::Earlier => "an earlier step",
            Self::BeforeTrace => "before the trace",
            Self::Older => "older",
            Self::Stack => "stack",
        }
    }
}

/// Equal allocations in use at the peak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakdownRow {
    /// What was allocated.
    pub allocation: LiveAllocation,
    /// Since when it has been there: this step, an earlier one, before the trace.
    pub origin: Origin,
}

impl BreakdownRow {
    /// Its name in the table and the report.
    #[must_use]
    pub fn name(&self) -> &str {
        match self.origin {
            Origin::Older => "older than the last step",
            _ if self.allocation.op.is_empty() => "no op name",
            _ => self.allocation.op.as_str(),
        }
    }

    /// Bytes of all of them.
    #[must_use]
    pub const fn total(&self) -> i64 {
        self.allocation.bytes.saturating_mul(self.allocation.count)
    }
}

/// Rows of what was in use at the peak, most bytes first.
#[must_use]
pub fn breakdown(trace: &AllocatorTrace, analysis: &AllocatorAnalysis) -> Vec<BreakdownRow> {
    let row = |allocation: &LiveAllocation, origin| BreakdownRow { allocation: allocation.clone(), origin };
    let mut rows: Vec<BreakdownRow> = if trace.given.is_some() {
        let origin = |allocation: &LiveAllocation| match (allocation.op.as_str(), allocation.region.as_str()) {
            ("unused preallocated device memory", "persist/dynamic") => Origin::Older,
            ("stack", "stack") => Origin::Stack,
            _ => Origin::Step,
        };
        analysis.at_peak.iter().map(|allocation| row(allocation, origin(allocation))).collect()
    } else {
        let mut rows: Vec<BreakdownRow> = analysis.step_at_peak.iter().map(|a| row(a, Origin::Step)).collect();
        rows.extend(analysis.older_at_peak.iter().map(|a| row(a, Origin::Earlier)));
        let one = |bytes: i64, op: &str| LiveAllocation {
            op: op.to_owned(),
            bytes,
            requested: bytes,
            count: 1,
            ..LiveAllocation::default()
        };
        let unseen = i64::try_from(analysis.before_trace.0).unwrap_or(i64::MAX);
        if unseen > 0 {
            rows.push(row(&one(unseen, "allocated before the trace began"), Origin::BeforeTrace));
        }
        if analysis.peak_stats.stack > 0 {
            rows.push(row(&one(analysis.peak_stats.stack, "stack"), Origin::Stack));
        }
        rows
    };
    rows.sort_by_key(|row| std::cmp::Reverse(row.total()));
    rows
}

/// Bytes of the rows of an origin.
#[must_use]
pub fn bytes_of(rows: &[BreakdownRow], origin: Origin) -> Bytes {
    let sum = rows.iter().filter(|row| row.origin == origin).map(BreakdownRow::total).fold(0i64, i64::saturating_add);
    Bytes::from_wire(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AllocatorActivity, AllocatorEvent, AllocatorStats};

    #[test]
    fn rows_add_up_to_the_peak() {
        let event = |time_ps, step, heap, bytes, address| AllocatorEvent {
            time_ps,
            activity: AllocatorActivity::Allocation,
            stats: AllocatorStats { heap, stack: 7, free: 500, ..AllocatorStats::default() },
            requested: bytes,
            allocated: bytes,
            address,
            step,
            ..AllocatorEvent::default()
        };
        let trace = AllocatorTrace {
            events: vec![event(1, 0, 110, 10, 1), event(2, 1, 130, 20, 2), event(3, 1, 150, 20, 3)],
            ..AllocatorTrace::default()
        };
        let analysis = AllocatorAnalysis::new(&trace);
        let rows = breakdown(&trace, &analysis);
        let of: Vec<(Origin, i64)> = rows.iter().map(|row| (row.origin, row.total())).collect();
        let wanted = [(Origin::BeforeTrace, 100), (Origin::Step, 40), (Origin::Earlier, 10), (Origin::Stack, 7)];
        assert_eq!(of, wanted);
        assert_eq!(rows.iter().map(BreakdownRow::total).sum::<i64>() as u64, analysis.peak.0);
        assert_eq!(bytes_of(&rows, Origin::Step), Bytes(40));
    }
}
