//! Pure functions from the model to results: lifetimes, curves and peaks, padding, fragmentation.

pub mod live_range;
