//! The history of PyTorch's caching allocator, rebuilt to the byte from a snapshot: curves, peaks, failed requests,
//! lifetimes with their stacks, categories, steps and leaks.

mod beginning;
mod category;
mod device;
mod failure;
mod groups;
mod live;
mod pins;
mod problems;
mod replay;
mod space;
mod standing;
mod steps;

pub use category::{AllocationCategory, Evidence};
pub use device::CachingAnalysis;
pub use failure::{Cause, FailedRequest, Moment};
pub use groups::{StackGroup, own_frame};
pub use live::live_set;
pub use pins::{Pin, SegmentUse};
pub use replay::{Curves, Lifetime, Peak, Peaks, Replay};
pub use standing::EndState;
pub use steps::{Span, Steps};
