//! A snapshot of PyTorch's caching allocator: its segments and blocks at the end, and the events that led there.
//!
//! Field names are PyTorch's; `size` of an event is what its action says: requested bytes of an allocation, reserved
//! bytes of a segment, rounded bytes of a failed request.

use std::borrow::Cow;
use std::ops::Range;

use super::ids::{NO_ROW, StringId};
use super::strings::Strings;

/// Everything in one snapshot; every device of the process.
#[derive(Debug, Clone, Default)]
pub struct CachingSnapshot {
    /// Devices that have segments or events, ascending.
    pub devices: Vec<CachingDevice>,
    /// Events of all devices, those of one device together and oldest first.
    pub events: CachingEvents,
    /// Segments of all devices, in file order.
    pub segments: Vec<Segment>,
    /// Blocks of all segments, those of one segment together, by address.
    pub blocks: Vec<Block>,
    /// Call stacks of events and blocks.
    pub stacks: Stacks,
    /// Streams, by [`CachingEvents::stream`].
    pub streams: Vec<i64>,
    /// Memory pools, by [`CachingEvents::pool`]; (0, 0) is the default pool.
    pub pools: Vec<(i64, i64)>,
    /// Phases that the program or PyTorch named, in file order.
    pub annotations: Vec<Annotation>,
    /// Settings that decide how memory is divided.
    pub settings: AllocatorSettings,
    /// Texts that the program attached: (event, text), ascending.
    pub metadata: Vec<(u32, StringId)>,
    /// Interned strings.
    pub strings: Strings,
    /// Whether the file ends early, so that the last events are missing and the state is that of a later moment.
    pub is_cut: bool,
}

impl CachingSnapshot {
    /// The pool of an event; the default pool where the file does not say.
    #[must_use]
    pub fn pool_of(&self, event: usize) -> (i64, i64) {
        let row = self.events.pool.get(event).copied().unwrap_or(0);
        self.pools.get(usize::from(row)).copied().unwrap_or_default()
    }

    /// The stream of an event.
    #[must_use]
    pub fn stream_of(&self, event: usize) -> i64 {
        let row = self.events.stream.get(event).copied().unwrap_or(0);
        self.streams.get(usize::from(row)).copied().unwrap_or_default()
    }

    /// Frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = &Frame> {
        self.stacks.rows(stack).iter().filter_map(|&row| self.stacks.frames.get(row as usize))
    }

    /// `function file:line`, without the line where it is not known; a C++ function by its name alone.
    #[must_use]
    pub fn frame_words(&self, frame: &Frame) -> String {
        let (name, file) = (self.strings.get(frame.name), self.strings.get(frame.file));
        let name: &str = &short_symbol(name);
        match (file, frame.line) {
            ("" | "??", _) => name.to_owned(),
            (_, 0) => format!("{name} {file}"),
            (_, line) => format!("{name} {file}:{line}"),
        }
    }
}

/// A demangled symbol without template arguments, parameters and the type returned; anything else as it is.
fn short_symbol(name: &str) -> Cow<'_, str> {
    if !name.contains("::") {
        return Cow::Borrowed(name);
    }
    let name = name.replace("(anonymous namespace)", "{anonymous}");
    let (mut short, mut depth) = (String::new(), 0u32);
    for (at, letter) in name.char_indices() {
        match letter {
            '<' | '(' => depth += 1,
            // An arrow is no bracket.
            '>' if name[..at].ends_with('-') => {}
            '>' | ')' => depth = depth.saturating_sub(1),
            letter if depth == 0 => short.push(letter),
            _ => {}
        }
    }
    let last = short.split_whitespace().rfind(|word| word.contains("::"));
    Cow::Owned(last.unwrap_or(&short).trim_end_matches(':').to_owned())
}

/// The part of a snapshot that one device has.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CachingDevice {
    /// Device number: `cuda:N`.
    pub index: u32,
    /// Rows of [`CachingSnapshot::events`].
    pub events: Range<usize>,
}

/// What an event reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum CachingAction {
    /// A block was handed out.
    Alloc,
    /// The owner let go of a block; a stream may still use it.
    FreeRequested,
    /// A block can be used again.
    FreeCompleted,
    /// A segment was requested from the driver.
    SegmentAlloc,
    /// A segment was returned to the driver.
    SegmentFree,
    /// Pages were added to an expandable segment.
    SegmentMap,
    /// Pages were taken from an expandable segment.
    SegmentUnmap,
    /// A request failed.
    OutOfMemory,
    /// A snapshot was taken; `size` is the active bytes.
    Snapshot,
    /// A text was attached to a live allocation.
    Annotate,
    /// Any other action.
    Other,
}

impl CachingAction {
    /// Every action with a name in the file.
    pub const NAMED: [Self; 10] = [
        Self::Alloc,
        Self::FreeRequested,
        Self::FreeCompleted,
        Self::SegmentAlloc,
        Self::SegmentFree,
        Self::SegmentMap,
        Self::SegmentUnmap,
        Self::OutOfMemory,
        Self::Snapshot,
        Self::Annotate,
    ];

    /// The name in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Alloc => "alloc",
            Self::FreeRequested => "free_requested",
            Self::FreeCompleted => "free_completed",
            Self::SegmentAlloc => "segment_alloc",
            Self::SegmentFree => "segment_free",
            Self::SegmentMap => "segment_map",
            Self::SegmentUnmap => "segment_unmap",
            Self::OutOfMemory => "oom",
            Self::Snapshot => "snapshot",
            Self::Annotate => "annotate",
            Self::Other => "other",
        }
    }
}

/// Columns of the events.
#[derive(Debug, Clone, Default)]
pub struct CachingEvents {
    /// What happened.
    pub action: Vec<CachingAction>,
    /// Address; of a failed request, the bytes that the driver had free.
    pub address: Vec<u64>,
    /// Bytes, with the meaning that the action gives them.
    pub size: Vec<u64>,
    /// Row of [`CachingSnapshot::streams`].
    pub stream: Vec<u16>,
    /// Row of [`CachingSnapshot::pools`]; empty if no event has a pool.
    pub pool: Vec<u16>,
    /// Call stack.
    pub stack: Vec<StackId>,
    /// Microseconds since 1970; empty if no event has a time, 0 for those without.
    pub time_us: Vec<i64>,
}

impl CachingEvents {
    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.action.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.action.is_empty()
    }
}

/// A call stack: a row of [`Stacks`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(pub u32);

impl StackId {
    /// No frames were recorded.
    pub const NONE: Self = Self(NO_ROW);

    /// Whether frames were recorded.
    #[must_use]
    pub const fn is_known(self) -> bool {
        self.0 != NO_ROW
    }
}

impl Default for StackId {
    fn default() -> Self {
        Self::NONE
    }
}

/// Distinct call stacks.
#[derive(Debug, Clone, Default)]
pub struct Stacks {
    /// Distinct frames.
    pub frames: Vec<Frame>,
    /// Rows of `frames` of all stacks, one after the other, each innermost first.
    pub flat: Vec<u32>,
    /// End of each stack in `flat`.
    pub ends: Vec<usize>,
}

impl Stacks {
    /// Number of distinct stacks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Rows of the frames of a stack, innermost first; none if it is unknown.
    #[must_use]
    pub fn rows(&self, stack: StackId) -> &[u32] {
        let row = stack.0 as usize;
        let Some(&end) = self.ends.get(row) else { return &[] };
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.flat.get(start..end).unwrap_or_default()
    }
}

/// A stack frame.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Function, or demangled symbol.
    pub name: StringId,
    /// Source file, or library.
    pub file: StringId,
    /// Line from 1; 0 if unknown.
    pub line: u32,
}

/// The size class of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub enum SizeClass {
    /// Serves requests up to 1 MiB.
    Small,
    /// Serves larger requests.
    #[default]
    Large,
}

impl SizeClass {
    /// The word in the file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Large => "large",
        }
    }
}

/// A range of addresses reserved from the driver, when the snapshot was taken.
#[derive(Debug, Clone, Default)]
pub struct Segment {
    /// Device number.
    pub device: u32,
    /// First byte.
    pub address: u64,
    /// Bytes reserved; of an expandable segment, what is mapped.
    pub size: u64,
    /// Stream handle, 0 for the default stream.
    pub stream: i64,
    /// Size class.
    pub class: SizeClass,
    /// Memory pool; (0, 0) is the default pool.
    pub pool: (i64, i64),
    /// Whether pages are added and taken.
    pub is_expandable: bool,
    /// Who made the allocator reserve it.
    pub stack: StackId,
    /// Rows of [`CachingSnapshot::blocks`].
    pub blocks: Range<u32>,
}

/// State of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BlockState {
    /// In use.
    Allocated,
    /// Freed by its owner while a stream still uses it.
    Pending,
    /// Free, kept for reuse.
    #[default]
    Inactive,
}

/// A piece of a segment, when the snapshot was taken.
#[derive(Debug, Clone, Copy, Default)]
pub struct Block {
    /// First byte.
    pub address: u64,
    /// Bytes, after rounding.
    pub size: u64,
    /// Bytes the program asked for; meaningless in a free block.
    pub requested: u64,
    /// State.
    pub state: BlockState,
    /// Who allocated it.
    pub stack: StackId,
}

/// Beginning or end of a named phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Annotation {
    /// Name.
    pub name: StringId,
    /// Whether the phase begins.
    pub is_start: bool,
    /// Device number.
    pub device: u32,
    /// Microseconds since 1970.
    pub time_us: i64,
}

/// Settings of the allocator; `None` where the file does not say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AllocatorSettings {
    /// Whether segments grow page by page.
    pub expandable_segments: Option<bool>,
    /// Larger blocks are never split; `None` for no limit.
    pub max_split_size: Option<u64>,
    /// Share of capacity from which unused memory is returned; 0 for never.
    pub garbage_collection_threshold: Option<f64>,
    /// (size in MiB from which it holds, divisions of a power of two), ascending; rounding is to 512 bytes elsewhere.
    pub roundup_power2_divisions: Vec<(u64, u64)>,
    /// Every setting as text: (name, value), in file order.
    pub all: Vec<(String, String)>,
}

#[cfg(test)]
mod tests {
    use super::short_symbol;

    #[test]
    fn symbols_are_named_without_their_templates() {
        let short = |name| short_symbol(name).into_owned();
        assert_eq!(short("at::_ops::gelu::call(at::Tensor const&, int)"), "at::_ops::gelu::call");
        assert_eq!(
            short("void at::cuda::blas::gemm_internal_cublas<float, at::OpMathType<float>::type>(char, long)"),
            "at::cuda::blas::gemm_internal_cublas"
        );
        assert_eq!(
            short("at::(anonymous namespace)::wrapper_CUDA_gelu(at::Tensor)"),
            "at::{anonymous}::wrapper_CUDA_gelu"
        );
        assert_eq!(short("forward"), "forward");
    }
}
