//! From bytes to the model: one folder per format, and what they share.

pub mod bfc;
mod cross_check;
mod decoder;
pub mod hlo;
pub mod ifrt_trace;
pub mod oom_text;
mod open;
pub mod poplar;
pub mod pprof;
mod registry;
mod reporter;
mod session;
pub mod wire;
pub mod xla_dump;
pub mod xla_report;
pub mod xprof_json;
pub mod xspace;

pub use decoder::{Context, DecodeError, Decoder, Family, Reads};
pub use open::{join_messages, open_input, open_path, open_with};
pub use registry::{DECODERS, decode, inputs, reads_by_name};
pub use reporter::Reporter;
pub use session::{Entry, Session, load_worst, open_worst};
