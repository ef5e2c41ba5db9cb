//! Decodes bytes into the model: one folder per format, the list of formats, and shared code.

pub mod bfc;
mod decoder;
pub mod hlo;
pub mod ifrt_trace;
pub mod oom_text;
pub mod poplar;
pub mod pprof;
mod registry;
mod reporter;
pub mod torch_snapshot;
pub mod wire;
pub mod xla_dump;
pub mod xla_report;
pub mod xprof_json;
pub mod xspace;

pub use decoder::{Context, DecodeError, Decoder, Family, Reads};
pub use registry::{LOOKED_FOR, decode, families, inputs, reads_by_name};
pub use reporter::Reporter;

/// Every format. Those with an unambiguous signature come before those guessed from text.
pub const DECODERS: &[&dyn Decoder] = &[
    &hlo::HloDecoder,
    &xspace::XSpaceDecoder,
    &xla_dump::TargetArgumentsDecoder,
    &xla_dump::GpuTargetDecoder,
    &torch_snapshot::TorchSnapshotDecoder,
    &pprof::PprofDecoder,
    &xla_report::UsageProtoDecoder,
    &ifrt_trace::ProgramMemoryTraceDecoder,
    &bfc::BfcDecoder,
    &xprof_json::MemoryProfileDecoder,
    &xprof_json::MemoryViewerDecoder,
    &xla_report::BufferAssignmentDecoder,
    &xla_report::ValuesDecoder,
    &xla_report::UsageTextDecoder,
    &xla_report::BufferInfoDecoder,
    &xla_dump::LiveRangeDecoder,
    &xla_dump::CompileStatsDecoder,
    &poplar::SqlDecoder,
    &poplar::TreeDecoder,
    // Any text at all, so it stays the last.
    &oom_text::OomTextDecoder,
];
