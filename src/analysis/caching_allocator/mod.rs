//! The history of PyTorch's caching allocator, rebuilt to the byte from a snapshot: curves, peaks, failed requests,
//! lifetimes with their stacks, categories, steps and leaks.

mod beginning;
mod category;
mod device;
mod end_state;
mod failure;
mod groups;
mod live;
mod pins;
mod problems;
mod replay;
mod space;
mod steps;

pub use category::{AllocationCategory, Evidence};
pub use device::CachingAnalysis;
pub use end_state::EndState;
pub use failure::{Cause, FailedRequest, Moment};
pub use groups::{Apart, StackGroup, own_frame, tell_apart};
pub use live::live_set;
pub use pins::{Pin, SegmentUse};
pub use replay::{Curves, Lifetime, Peak, Peaks, Replay};
pub use steps::{Span, Steps};
