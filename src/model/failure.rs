//! A parsed out-of-memory message: what a compiler, a runtime or an allocator said when memory ran out.
//!
//! Keys are those of the report's FAILURE; the text of a size is kept as printed, its bytes stand beside it.

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
    /// Which message: `tpu_hbm_listing`, `torch_cuda`; see [`FAILURE_KINDS`].
    pub kind: &'static str,
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

/// A kind of message.
#[derive(Debug, Clone, Copy)]
pub struct FailureKind {
    /// As the report writes it.
    pub name: &'static str,
    /// In words.
    pub title: &'static str,
    /// Keys that are `null` where the message does not have them.
    pub keys: &'static [&'static str],
}

const fn kind(name: &'static str, title: &'static str, keys: &'static [&'static str]) -> FailureKind {
    FailureKind { name, title, keys }
}

const LISTING: &[&str] = &[
    "space",
    "used",
    "capacity",
    "exceeded",
    "total",
    "reserved",
    "program",
    "arguments",
    "output",
    "output_shared",
    "fragmentation",
];
const TORCH: &[&str] = &["requested", "gpu", "capacity", "free", "allocated"];

/// Every kind of message.
pub const FAILURE_KINDS: &[FailureKind] = &[
    kind("tpu_hbm_listing", "TPU compiler: the program does not fit, with its largest allocations", LISTING),
    kind("tpu_hbm_usage", "TPU compiler: the program does not fit, with its parts", LISTING),
    kind(
        "tpu_hbm_oneline",
        "TPU compiler: the program does not fit in HBM",
        &["space", "used", "capacity", "exceeded"],
    ),
    kind("tpu_hbm_early", "TPU compiler: the program does not fit in HBM", &["space", "used", "capacity", "module"]),
    kind("tpu_vmem_oneline", "TPU compiler: a kernel does not fit in VMEM", &["space", "used", "capacity", "exceeded"]),
    kind("tpu_smem_oneline", "TPU compiler: a kernel does not fit in SMEM", &["space", "used", "capacity", "exceeded"]),
    kind("tpu_space_oneline", "TPU compiler: a memory space is too small", &["space", "used", "capacity", "exceeded"]),
    kind(
        "tpu_scoped_vmem",
        "TPU compiler: a kernel's scratch does not fit in VMEM",
        &["space", "used", "capacity", "shape", "tag"],
    ),
    kind(
        "tpu_alloc_exceeds",
        "TPU compiler: one array is larger than the memory",
        &["space", "used", "capacity", "shape", "tag"],
    ),
    kind("tpu_compile_abort", "TPU compiler: gave up early, the program cannot fit", &["used", "capacity"]),
    kind(
        "tpu_tc_sc_hbm",
        "TPU compiler: TensorCore and SparseCore together need too much",
        &["tensorcore", "sparsecore", "capacity"],
    ),
    kind(
        "tpu_runtime_alloc",
        "TPU runtime: no room for a buffer",
        &["requested", "free", "largest_free", "device", "replica", "partition"],
    ),
    kind(
        "tpu_runtime_reserve",
        "TPU runtime: no room to run a program",
        &["requested", "free", "reserved_now", "reservable", "capacity", "allocated", "program"],
    ),
    kind(
        "tpu_runtime_load",
        "TPU runtime: no room to load a program",
        &["program", "requested", "free", "reserved_now", "reservable", "replica", "partition"],
    ),
    kind("xla_runtime_alloc", "XLA runtime: an allocation failed", &["requested", "device"]),
    kind(
        "xla_gpu_peak_buffers",
        "XLA: an allocation failed, with the buffers at the peak",
        &[
            "requested",
            "parameters",
            "constants",
            "maybe_live_out",
            "temporaries",
            "temporaries_fragmentation",
            "total",
            "fragmentation",
        ],
    ),
    kind("xla_remat_warning", "XLA: rematerialization could not reach its limit", &[]),
    kind("rocm_alloc", "ROCm driver: an allocation failed", &["requested", "device"]),
    kind(
        "bfc_dump",
        "BFC allocator: out of memory, with its chunks",
        &["allocator", "requested", "rounded", "in_use", "free"],
    ),
    kind("bfc_stats", "BFC allocator: out of memory, with its statistics", &["limit", "in_use", "max_in_use"]),
    kind("bfc_oom", "BFC allocator: out of memory", &["allocator", "requested", "rounded"]),
    kind("bfc_warning", "BFC allocator: short of memory, but not failing", &["allocator", "requested", "rounded"]),
    kind("tf_oom", "TensorFlow: no room for a tensor", &["shape", "type", "device", "allocator"]),
    kind("tf_usage_report", "TensorFlow: what was in memory", &["total", "top", "device", "allocator"]),
    kind("torch_cuda", "PyTorch: CUDA out of memory", TORCH),
    kind("torch_hip", "PyTorch: HIP out of memory", TORCH),
    kind("torch_xpu", "PyTorch: XPU out of memory", TORCH),
    kind(
        "torch_allowed_memory",
        "PyTorch: more than the allowed share of memory",
        &["requested", "gpu", "allocated", "capacity", "free", "limit"],
    ),
    kind("torch_memory_summary", "PyTorch: memory summary", &["ooms", "allocated", "peak", "reserved"]),
    kind("ipu_tile", "Poplar: a tile's memory is too small", &["tile", "used", "capacity"]),
    kind("ipu_allow_oom", "Poplar: variables do not fit on their tiles", &[]),
    kind("ipu_exchange", "Poplar: an exchange brings a tile more data than it can hold", &["tile", "exchange"]),
    kind("ipu_code", "Poplar: too much code for a tile", &["tile", "cause"]),
    kind("ipu_stream", "Poplar: a stream does not fit in its host buffer", &["requested", "buffer"]),
    kind("ipu_host_buffer", "Poplar: the host's buffers are full", &["buffer", "requested", "free"]),
    kind("unknown", "Out of memory", &[]),
];

impl Failure {
    /// What kind it is.
    #[must_use]
    pub fn describe(&self) -> &'static FailureKind {
        FAILURE_KINDS.iter().find(|kind| kind.name == self.kind).unwrap_or(&FAILURE_KINDS[FAILURE_KINDS.len() - 1])
    }

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
