//! Reports that XLA writes beside a dump. Each opens alone as far as it goes; beside the HLO proto of the same module
//! they are compared with it.

pub mod assemble;
mod buffer_assignment;
mod buffer_info;
mod usage_fields;
mod usage_proto;
mod usage_table;
mod usage_text;
mod values;

pub use buffer_assignment::BufferAssignmentDecoder;
pub use buffer_info::BufferInfoDecoder;
pub use usage_proto::UsageProtoDecoder;
pub use usage_text::UsageTextDecoder;
pub use values::ValuesDecoder;
