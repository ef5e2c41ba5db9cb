//! The comparison as data. Sizes are bytes; differences are after less before; what is not known is `null`.

use std::borrow::Cow;

use serde::Serialize;

use super::allocators::AllocatorDiff;
use crate::model::{BufferId, Bytes};

/// A comparison of two sides.
#[derive(Debug, Serialize)]
pub struct Diff {
    /// `highwater.diff/1`.
    pub schema: &'static str,
    /// What was given first.
    pub before: String,
    /// What was given second.
    pub after: String,
    /// Programs that both sides have, the largest change of allocated bytes first.
    pub pairs: Vec<PairDiff>,
    /// Programs of the first side without a counterpart.
    pub only_before: Vec<String>,
    /// Programs of the second side without one.
    pub only_after: Vec<String>,
    /// What could not be read, with why.
    pub unread: Vec<String>,
}

/// A number of bytes on both sides; `null` where a side does not have it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct BytesDiff {
    /// Before, in bytes.
    pub before: Option<u64>,
    /// After, in bytes.
    pub after: Option<u64>,
    /// After less before, in bytes.
    pub difference: Option<i128>,
}

impl BytesDiff {
    /// Two numbers and their difference.
    #[must_use]
    pub fn new(before: Option<u64>, after: Option<u64>) -> Self {
        let difference = before.zip(after).map(|(before, after)| i128::from(after) - i128::from(before));
        Self { before, after, difference }
    }
}

/// A profile before and after.
#[derive(Debug, Serialize)]
pub struct PairDiff {
    /// Name of the profile or program before.
    pub before: String,
    /// Name after.
    pub after: String,
    /// The device before, in words.
    pub device_before: String,
    /// The device after.
    pub device_after: String,
    /// Memory spaces of the first program, ascending by colour.
    pub spaces: Vec<SpaceDiff>,
    /// Numbers of IPU tiles, allocators, snapshots and out-of-memory messages.
    pub numbers: Vec<NumberDiff>,
    /// Allocators, devices of PyTorch and live arrays, by who holds their memory.
    pub allocators: Vec<AllocatorDiff>,
    /// Findings of the advisor.
    pub findings: FindingsDiff,
}

/// A memory space before and after.
#[derive(Debug, Default, Serialize)]
pub struct SpaceDiff {
    /// Colour of the memory space.
    pub color: i64,
    /// Its name.
    pub name: String,
    /// `fits`, `over` or `unknown`, before; `null` where it is not there.
    pub verdict_before: Option<&'static str>,
    /// The same after.
    pub verdict_after: Option<&'static str>,
    /// What may be used.
    pub capacity: BytesDiff,
    /// What the compiler allocated: the verdict's number.
    pub allocated: BytesDiff,
    /// Most bytes live at one time.
    pub peak: BytesDiff,
    /// Padding at the peak.
    pub padding_at_peak: BytesDiff,
    /// Allocated and not live at the peak.
    pub fragmentation: BytesDiff,
    /// Arguments.
    pub arguments: BytesDiff,
    /// Results.
    pub outputs: BytesDiff,
    /// How much of both sides has a counterpart; `null` where a side lacks the space.
    pub matched: Option<MatchedReport>,
    /// From the allocated bytes before to those after by class; the differences add up to that of `allocated`.
    pub waterfall: Vec<StepDiff>,
    /// The same by folded scope, of all classes together.
    pub waterfall_by_scope: Vec<StepDiff>,
    /// What the peaks hold, equal layers folded, the largest difference first. Rows without a difference are counted in
    /// `groups_equal`.
    pub groups: Vec<GroupDiff>,
    /// Number of rows that differ, before `--top` cut the list.
    pub group_count: usize,
    /// Number of rows without a difference.
    pub groups_equal: usize,
    /// Single buffers whose bytes at the peak differ, the largest difference first.
    pub buffers: Vec<BufferDiff>,
    /// Their number before `--top` cut the list.
    pub buffer_count: usize,
    /// Highest use in each pass of a training step that both sides have.
    pub phases: Vec<PhaseDiff>,
    /// Padding at the peak by shape and layout, the largest difference first.
    pub padding_by_shape: Vec<ShapeDiff>,
}

impl SpaceDiff {
    /// Judges both sides against another limit than that of their devices, in bytes.
    pub fn against(&mut self, limit: Bytes) {
        let verdict = |allocated: Option<u64>| allocated.map(|bytes| if bytes > limit.0 { "over" } else { "fits" });
        self.capacity = BytesDiff::new(Some(limit.0), Some(limit.0));
        self.verdict_before = verdict(self.allocated.before);
        self.verdict_after = verdict(self.allocated.after);
    }
}

/// How much of two memory spaces has a counterpart. Buffers of all times count, not only those at the peak.
#[derive(Debug, Serialize)]
pub struct MatchedReport {
    /// Bytes of all buffers before.
    pub bytes_before: u64,
    /// Bytes of all buffers after.
    pub bytes_after: u64,
    /// Bytes before with a counterpart.
    pub matched_before: u64,
    /// Bytes after with a counterpart.
    pub matched_after: u64,
    /// Of these, bytes after whose counterpart is a guess from shape and kind of instruction.
    pub guessed_after: u64,
    /// Buffers before without a counterpart.
    pub buffers_only_before: usize,
    /// Buffers after without a counterpart.
    pub buffers_only_after: usize,
}

/// What a step of a waterfall stands for; the key of its name in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepName {
    /// Name of a class; `unused at the peak` for what is allocated and holds nothing there.
    Class(&'static str),
    /// A folded scope; the kind of instruction in parentheses where names tell none.
    Scope(String),
    /// What blocks of an allocator are for.
    Kind(String),
    /// The innermost frame of one's own in the stack that made blocks.
    Stack(String),
    /// The operation that asked for blocks.
    Op(String),
    /// What is in an allocator and nobody holds.
    Rest(&'static str),
}

impl StepName {
    /// The name itself.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Class(name) | Self::Rest(name) => name,
            Self::Scope(name) | Self::Kind(name) | Self::Stack(name) | Self::Op(name) => name,
        }
    }
}

/// A class or scope in a waterfall.
#[derive(Debug, Clone, Serialize)]
pub struct StepDiff {
    /// What it stands for.
    #[serde(flatten)]
    pub name: StepName,
    /// Bytes at the peak before. Negative only where buffers share memory.
    pub before: i128,
    /// Bytes at the peak after.
    pub after: i128,
    /// After less before.
    pub difference: i128,
    /// Bytes of buffers without a counterpart before.
    pub appeared: u64,
    /// Bytes of buffers without a counterpart after.
    pub gone: u64,
    /// Growth of buffers at both peaks.
    pub resized: i128,
    /// Bytes of buffers on both sides that only the peak after holds.
    pub came: u64,
    /// Bytes of buffers on both sides that only the peak before held.
    pub left: u64,
}

/// Buffers of one class with the same folded scope.
#[derive(Debug, Serialize)]
pub struct GroupDiff {
    /// `appeared`, `gone`, `grew`, `shrank`.
    pub change: &'static str,
    /// The same as it is shown.
    #[serde(skip)]
    pub change_words: &'static str,
    /// Class.
    pub class: Cow<'static, str>,
    /// Folded scope; the kind of instruction in parentheses where names tell none.
    pub scope: String,
    /// Bytes at the peak before.
    pub before: u64,
    /// Bytes at the peak after.
    pub after: u64,
    /// After less before.
    pub difference: i128,
    /// Buffers at the peak before.
    pub count_before: usize,
    /// Buffers at the peak after.
    pub count_after: usize,
    /// Shape of the largest before; empty if there is none.
    pub shape_before: String,
    /// Shape of the largest after.
    pub shape_after: String,
    /// Whether some take less than the largest of their side.
    #[serde(skip)]
    pub is_mixed: bool,
    /// The largest before, for the window.
    #[serde(skip)]
    pub largest_before: Option<BufferId>,
    /// The largest after, for the window.
    #[serde(skip)]
    pub largest_after: Option<BufferId>,
}

#[cfg(test)]
impl GroupDiff {
    /// A row without buffers and shapes.
    pub(crate) fn of(class: &'static str, scope: &str, before: u64, after: u64) -> Self {
        let change = crate::analysis::compare::Change::of(before, after).name();
        Self {
            change,
            change_words: change,
            class: class.into(),
            scope: scope.to_owned(),
            before,
            after,
            difference: i128::from(after) - i128::from(before),
            count_before: 1,
            count_after: 1,
            shape_before: String::new(),
            shape_after: String::new(),
            is_mixed: false,
            largest_before: None,
            largest_after: None,
        }
    }
}

/// A buffer whose bytes at the peak differ.
#[derive(Debug, Serialize)]
pub struct BufferDiff {
    /// Its name before; `null` if it has no counterpart there.
    pub before: Option<String>,
    /// Its name after.
    pub after: Option<String>,
    /// What it is labelled by: the framework's name of its operation.
    pub label: String,
    /// Bytes at the peak before.
    pub before_bytes: u64,
    /// Bytes at the peak after.
    pub after_bytes: u64,
    /// After less before.
    pub difference: i128,
}

/// A pass of a training step.
#[derive(Debug, Serialize)]
pub struct PhaseDiff {
    /// `forward`, `backward`, `optimizer`.
    pub phase: String,
    /// Highest reserved bytes in it.
    pub peak: BytesDiff,
    /// First step and one past the last, before.
    pub steps_before: (u32, u32),
    /// The same after.
    pub steps_after: (u32, u32),
}

/// A shape and layout that pads on either side.
#[derive(Debug, Serialize)]
pub struct ShapeDiff {
    /// Shape.
    pub shape: String,
    /// Layout with tiles.
    pub layout: String,
    /// Buffers at the peak before.
    pub buffers_before: usize,
    /// Buffers at the peak after.
    pub buffers_after: usize,
    /// Padding of all of them.
    pub waste: BytesDiff,
}

/// Another number of both sides.
#[derive(Debug, Serialize)]
pub struct NumberDiff {
    /// What it is.
    pub what: String,
    /// Bytes, or a count.
    pub is_bytes: bool,
    /// The two values.
    pub value: BytesDiff,
}

/// Findings of both sides.
#[derive(Debug, Default, Serialize)]
pub struct FindingsDiff {
    /// Only before.
    pub gone: Vec<FindingDiff>,
    /// Only after.
    pub new: Vec<FindingDiff>,
    /// On both sides, as it is after.
    pub kept: Vec<FindingDiff>,
}

/// A finding.
#[derive(Debug, Serialize)]
pub struct FindingDiff {
    /// Name of the rule.
    pub rule: &'static str,
    /// `critical`, `warning` or `hint`.
    pub severity: &'static str,
    /// Headline.
    pub title: String,
    /// Headline before, of a finding on both sides that said something else then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Bytes by which the peak would drop.
    pub saves_bytes: Option<u64>,
}
