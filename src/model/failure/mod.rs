//! A parsed out-of-memory message: what a compiler, a runtime or an allocator said when memory ran out.
//!
//! Keys are those of the report's FAILURE; the text of a size is kept as printed, its bytes stand beside it.

mod kind;

pub use kind::{FailureKind, Speaker, error_page};

use super::shape::Shape;
use super::units::Bytes;

/// A size as printed, and in bytes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrintedSize {
    /// As printed: `17.09G`, `14.00 GiB`; `None` where the message gives plain bytes.
    pub text: Option<String>,
    /// Bytes: binary units, rounded to the nearest byte.
    pub bytes: Bytes,
}

/// The value of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum FailureValue {
    /// A size.
    Size(PrintedSize),
    /// A number that is no size: a tile, a device.
    Count(i64),
    /// A name or a sentence.
    Text(String),
    /// Yes or no.
    Flag(bool),
}

/// An out-of-memory message.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// Which message.
    pub kind: FailureKind,
    /// Whether it is a failure; `false` for what is only a warning.
    pub is_error: bool,
    /// Keys with their values, in the order of the message.
    pub fields: Vec<(&'static str, FailureValue)>,
    /// Numbered allocations of a listing.
    pub allocations: Vec<ListedAllocation>,
    /// Buffers at the peak, as XLA's GPU and CPU compilers list them.
    pub peak_buffers: Vec<PeakBuffer>,
    /// Bins of a BFC allocator.
    pub bins: Vec<BfcBin>,
    /// Chunks of a BFC allocator, in the order of the message.
    pub chunks: Vec<BfcChunk>,
    /// Chunks in use by size: (chunks, bytes of one).
    pub chunk_sizes: Vec<(u64, Bytes)>,
    /// The allocator's own statistics: (name, value).
    pub statistics: Vec<(&'static str, FailureValue)>,
    /// Lines of the part `Program … requirement`: (what, size), `HLO temp` among them.
    pub program_parts: Vec<(String, PrintedSize)>,
    /// Rows of TensorFlow's usage report: (bytes, operation).
    pub usage_rows: Vec<(PrintedSize, String)>,
    /// Warnings of the rematerialization pass.
    pub warnings: Vec<RematWarning>,
    /// `E1000`: printed, or the page that describes this message.
    pub error_code: Option<String>,
    /// Whether the code was printed.
    pub error_code_printed: bool,
    /// Files and folders the text names.
    pub paths: Vec<String>,
    /// Which process said it: `rank0`, `EngineCore_DP0 pid=4242`.
    pub process: Option<String>,
    /// The message itself, as found: its first sentence.
    pub message: String,
    /// File it was found in.
    pub source: String,
    /// Byte offset of the message in the file.
    pub offset: u64,
    /// Its line, from 1.
    pub line: u64,
    /// Whether the text ends inside the message.
    pub truncated: bool,
    /// How often it is said beyond the first time.
    pub repeats: u64,
    /// Where it is said last: byte offset and line, where it is said again.
    pub last_place: Option<(u64, u64)>,
    /// Every process that says it, in the order of the text.
    pub processes: Vec<String>,
}

/// A numbered entry of `Largest program allocations`.
#[derive(Debug, Clone, Default)]
pub struct ListedAllocation {
    /// Its number.
    pub number: u32,
    /// Size in memory.
    pub size: Option<PrintedSize>,
    /// Without padding.
    pub unpadded: Option<PrintedSize>,
    /// Extra memory due to padding; `None` where there is none.
    pub padding: Option<PrintedSize>,
    /// Size over unpadded size, as printed; 1 where no padding is printed; `None` where the text was cut before it.
    pub expansion: Option<f64>,
    /// Shape with layout, as printed.
    pub shape_text: Option<String>,
    /// The shape.
    pub shape: Option<Shape>,
    /// The attributes of the line `Operator`, as printed.
    pub operator: Option<String>,
    /// Framework's kind of operation.
    pub op_type: Option<String>,
    /// Framework's name of the operation.
    pub op_name: Option<String>,
    /// Source file and line.
    pub source: Option<(String, i32)>,
    /// The instruction as printed.
    pub label: Option<String>,
    /// Name of the instruction: the label up to ` = `.
    pub label_head: Option<String>,
    /// `HLO temp`, `global`.
    pub allocation_type: Option<String>,
    /// `Tag`, where there is one.
    pub tag: Option<String>,
}

impl ListedAllocation {
    /// Whether more than the size is known.
    #[must_use]
    pub const fn is_described(&self) -> bool {
        self.shape_text.is_some() || self.unpadded.is_some() || self.label.is_some()
    }
}

/// A buffer of `Peak buffers`.
#[derive(Debug, Clone, Default)]
pub struct PeakBuffer {
    /// Its number.
    pub number: u32,
    /// Size.
    pub size: Option<PrintedSize>,
    /// Framework's name of the operation.
    pub op_name: Option<String>,
    /// Source file and line.
    pub source: Option<(String, i32)>,
    /// Opcode.
    pub label: Option<String>,
    /// Shape as printed.
    pub shape_text: Option<String>,
    /// The shape.
    pub shape: Option<Shape>,
    /// Whether it is (a part of) an argument.
    pub entry_parameter: bool,
}

/// A bin of a BFC allocator: free chunks of about one size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BfcBin {
    /// Smallest chunk in bytes.
    pub bin: u64,
    /// Chunks.
    pub chunks: u64,
    /// Chunks in use.
    pub in_use: u64,
}

/// A chunk of a BFC allocator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BfcChunk {
    /// Address.
    pub address: u64,
    /// Bytes.
    pub size: Bytes,
    /// Whether it is in use.
    pub in_use: bool,
    /// What it is for, where the allocator knows.
    pub annotation: Option<String>,
}

/// "Can't reduce memory use below A; only reduced to B, down from C".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RematWarning {
    /// The limit that was wanted.
    pub target: Bytes,
    /// What was reached.
    pub reached: Bytes,
    /// Where it began.
    pub from: Bytes,
}

impl Failure {
    /// The value of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&FailureValue> {
        self.fields.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// A size.
    #[must_use]
    pub fn size(&self, key: &str) -> Option<&PrintedSize> {
        match self.get(key)? {
            FailureValue::Size(size) => Some(size),
            _ => None,
        }
    }

    /// The bytes of a size.
    #[must_use]
    pub fn bytes(&self, key: &str) -> Option<Bytes> {
        self.size(key).map(|size| size.bytes)
    }

    /// A text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            FailureValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// A number that is no size.
    #[must_use]
    pub fn count(&self, key: &str) -> Option<i64> {
        match self.get(key)? {
            FailureValue::Count(count) => Some(*count),
            _ => None,
        }
    }

    /// Whether a flag is set.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some(FailureValue::Flag(true)))
    }

    /// Sets a key, unless it has a value already.
    pub fn set(&mut self, key: &'static str, value: FailureValue) {
        if self.get(key).is_none() {
            self.fields.push((key, value));
        }
    }
}
