//! Tests that need no window: decoders, analysis, advisor, reports. One file per promise.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test says what it expects")]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/poplar_files.rs"]
mod poplar_files;
#[path = "../common/xla_made.rs"]
mod xla_made;

mod advisor;
mod architecture;
mod at_the_peak;
mod batches;
mod caching_allocator;
mod cancelling;
mod classes;
mod compare;
mod compared_allocators;
mod divided_state;
mod formats;
mod forms;
mod gpu;
mod habits;
mod heat_columns;
mod hostile_decoders;
mod html_report;
mod layer_of;
mod live_at_a_step;
mod live_ranges;
mod memory_map;
mod models;
mod oom_texts;
mod packages;
mod packing;
mod pairs;
mod parity_xprof;
mod peaks;
mod poplar;
mod report_fields;
mod report_snapshots;
mod runtime;
mod sessions;
mod torch_advice;
mod tuple_arguments;
mod wire_oracle;
