//! What the memory of an IPU comes to: totals, the tiles that do not fit, imbalance, gaps, liveness, floor plan.

mod floor_plan;
mod gaps;
mod histogram;
mod liveness;
mod memory_report;
mod summary;

pub use floor_plan::{FloorPlan, mk2_physical};
pub use gaps::{GapSums, Gaps};
pub use histogram::{Histogram, histogram};
pub use liveness::{LivePeak, live_peak, step_bytes};
pub use memory_report::{CategoryBytes, MemoryReport, Named, Selection};
pub use summary::{IpuSummary, TileAnalysis, vertex_state};
