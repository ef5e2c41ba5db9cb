//! Parsed out-of-memory messages of compilers, runtimes and allocators.
//!
//! Keys are those of FAILURE in the report. Sizes keep the printed text next to the number of bytes.

mod kind;
mod shortage;

pub use kind::{FailureKind, Speaker, error_page};
pub use shortage::Shortage;

use super::shape::Shape;
use super::units::{Bytes, UnitSystem};

/// A size in bytes and as printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PrintedSize {
    /// As printed: `17.09G`, `14.00 GiB`; `None` if printed as plain bytes.
    pub text: Option<String>,
    /// Bytes, with units taken as binary and rounded to the nearest byte.
    pub bytes: Bytes,
}

impl PrintedSize {
    /// The size in words: three significant digits, or the four that were printed, `48.25 GiB`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let (number, unit) = UnitSystem::Binary.split(self.bytes);
        let printed = self.text.as_deref().unwrap_or_default();
        let (digits, letter) =
            printed.split_at(printed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(printed.len()));
        let digits = if digits.contains('.') { digits.trim_end_matches('0') } else { digits };
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let is_unit = letter.trim_start().get(..1).is_some_and(|letter| unit.starts_with(letter) && unit != "B");
        if is_unit && (1..=2).contains(&decimals) && digits.len() > number.len() && digits.len() <= 5 {
            format!("{digits} {unit}")
        } else {
            format!("{number} {unit}")
        }
    }

    /// Where the size is from: the text that was printed, or the exact bytes if those were.
    #[must_use]
    pub fn evidence(&self) -> String {
        self.text.as_ref().map_or_else(|| self.bytes.exact(), |text| format!("printed as {text}"))
    }
}

/// The value of a key.
#[derive(Debug, Clone, PartialEq)]
pub enum FailureValue {
    /// A size.
    Size(PrintedSize),
    /// A number other than a size, such as a tile or device.
    Count(i64),
    /// A name or a sentence.
    Text(String),
    /// A flag.
    Flag(bool),
}

/// An out-of-memory message.
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// Kind of message.
    pub kind: FailureKind,
    /// Whether it is a failure rather than a warning.
    pub is_error: bool,
    /// (key, value), in message order.
    pub fields: Vec<(&'static str, FailureValue)>,
    /// Allocations listed in the message.
    pub allocations: Vec<ListedAllocation>,
    /// Buffers at the peak, listed by XLA's GPU and CPU compilers.
    pub peak_buffers: Vec<PeakBuffer>,
    /// Bins of a BFC allocator.
    pub bins: Vec<BfcBin>,
    /// Chunks of a BFC allocator, in message order.
    pub chunks: Vec<BfcChunk>,
    /// Chunks in use by size: (number of chunks, bytes of each).
    pub chunk_sizes: Vec<(u64, Bytes)>,
    /// Allocator statistics: (name, value).
    pub statistics: Vec<(&'static str, FailureValue)>,
    /// (label, size) lines under `Program … requirement`, such as `HLO temp`.
    pub program_parts: Vec<(String, PrintedSize)>,
    /// Rows of TensorFlow's usage report: (bytes, op).
    pub usage_rows: Vec<(PrintedSize, String)>,
    /// Warnings of the rematerialisation pass.
    pub warnings: Vec<RematWarning>,
    /// Error code such as `E1000`, printed in the message or implied by its kind.
    pub error_code: Option<String>,
    /// Whether the code was printed.
    pub error_code_printed: bool,
    /// Files and folders named in the text.
    pub paths: Vec<String>,
    /// Process that printed it: `rank0`, `EngineCore_DP0 pid=4242`.
    pub process: Option<String>,
    /// First sentence of the message, verbatim.
    pub message: String,
    /// File it was found in.
    pub source: String,
    /// Byte offset of the message in the file.
    pub offset: u64,
    /// Line number in the file, from 1.
    pub line: u64,
    /// Whether the text ends in the middle of the message.
    pub truncated: bool,
    /// How often the message is repeated after the first time.
    pub repeats: u64,
    /// Byte offset and line of the last repetition; `None` if there is none.
    pub last_place: Option<(u64, u64)>,
    /// Every process that printed it, in text order.
    pub processes: Vec<String>,
}

/// An entry of `Largest program allocations`.
#[derive(Debug, Clone, Default)]
pub struct ListedAllocation {
    /// Its number.
    pub number: u32,
    /// Size including padding.
    pub size: Option<PrintedSize>,
    /// Size without padding.
    pub unpadded: Option<PrintedSize>,
    /// Extra memory due to padding; `None` if none is printed.
    pub padding: Option<PrintedSize>,
    /// Expansion factor due to padding as printed; 1 if no padding is printed, `None` if the text was truncated before
    /// it.
    pub expansion: Option<f64>,
    /// Shape with layout, as printed.
    pub shape_text: Option<String>,
    /// The shape.
    pub shape: Option<Shape>,
    /// Attributes on the `Operator` line, as printed.
    pub operator: Option<String>,
    /// Framework op type.
    pub op_type: Option<String>,
    /// Framework op name, as printed; a log of a log escapes its quotes (`without_escaped_quotes`).
    pub op_name: Option<String>,
    /// Source file and line.
    pub source: Option<(String, i32)>,
    /// Instruction as printed.
    pub label: Option<String>,
    /// Instruction name: the label up to ` = `.
    pub label_head: Option<String>,
    /// Allocation type, such as `HLO temp` or `global`.
    pub allocation_type: Option<String>,
    /// `Tag`, if printed.
    pub tag: Option<String>,
}

impl ListedAllocation {
    /// Whether anything other than the size is known.
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
    /// Framework op name, as printed.
    pub op_name: Option<String>,
    /// Source file and line.
    pub source: Option<(String, i32)>,
    /// Opcode.
    pub label: Option<String>,
    /// Shape as printed.
    pub shape_text: Option<String>,
    /// The shape.
    pub shape: Option<Shape>,
    /// Whether it is a parameter or part of one.
    pub entry_parameter: bool,
}

/// A name as the program has it: a log of a log prints `params['w']` as `params[\'w\']`.
#[must_use]
pub fn without_escaped_quotes(name: &str) -> String {
    name.replace("\\'", "'")
}

/// A bin (size class) of a BFC allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BfcBin {
    /// Minimum chunk size in bytes.
    pub bin: u64,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of chunks in use.
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
    /// Purpose recorded by the allocator, if any.
    pub annotation: Option<String>,
}

/// "Can't reduce memory use below A; only reduced to B, down from C".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RematWarning {
    /// Target limit.
    pub target: Bytes,
    /// Memory use after rematerialisation.
    pub reached: Bytes,
    /// Memory use before rematerialisation.
    pub from: Bytes,
}

impl Failure {
    /// The value of a key; `None` if not set.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&FailureValue> {
        self.fields.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// The value of a key; `None` if it is not a size.
    #[must_use]
    pub fn size(&self, key: &str) -> Option<&PrintedSize> {
        match self.get(key)? {
            FailureValue::Size(size) => Some(size),
            _ => None,
        }
    }

    /// The bytes of a key's value; `None` if it is not a size.
    #[must_use]
    pub fn bytes(&self, key: &str) -> Option<Bytes> {
        self.size(key).map(|size| size.bytes)
    }

    /// The value of a key; `None` if it is not text.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            FailureValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key; `None` if it is not a plain number.
    #[must_use]
    pub fn count(&self, key: &str) -> Option<i64> {
        match self.get(key)? {
            FailureValue::Count(count) => Some(*count),
            _ => None,
        }
    }

    /// Whether a key's value is a flag that is set.
    #[must_use]
    pub fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some(FailureValue::Flag(true)))
    }

    /// Sets a key unless it already has a value.
    pub fn set(&mut self, key: &'static str, value: FailureValue) {
        if self.get(key).is_none() {
            self.fields.push((key, value));
        }
    }
}
