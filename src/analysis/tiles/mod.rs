//! Analysis of IPU memory: totals, tiles over the limit, imbalance, gaps, liveness and floor plan.

mod choice;
mod floor_plan;
mod gaps;
mod histogram;
mod liveness;
mod memory_report;
mod summary;

pub use choice::{parse_tiles, tiles_text};
pub use floor_plan::{FloorPlan, mk2_physical};
pub use gaps::{GapSums, Gaps};
pub use histogram::{Histogram, histogram};
pub use liveness::{LivePeak, VariableChange, live_peak, step_bytes, step_changes, variables_at};
pub use memory_report::{CategoryBytes, MemoryReport, Named, Selection};
pub use summary::{IpuSummary, TileAnalysis, vertex_state};
