//! The history of PyTorch's caching allocator, rebuilt to the byte from a snapshot: curves, peaks, failed requests,
//! lifetimes with their stacks, categories, steps and leaks.

mod beginning;
mod category;
mod device;
mod end_state;
mod expandable;
mod failure;
mod frames;
mod groups;
mod layers;
mod live;
mod makers;
mod pins;
mod problems;
mod replay;
mod space;
mod steps;
mod tail;

pub use category::{AllocationCategory, Evidence};
pub use device::CachingAnalysis;
pub use end_state::EndState;
pub use expandable::ExpandableUse;
pub use failure::{Cause, FailedRequest, Moment};
pub use frames::own_frame;
pub use groups::{Apart, StackGroup, tell_apart};
pub use layers::{Checkpointed, is_checkpoint};
pub use live::live_set;
pub use pins::{Pin, SegmentUse};
pub use replay::{Curves, Lifetime, Peak, Peaks, Replay};
pub use steps::{Span, Steps};
pub use tail::KeptGraphs;
