//! Scaling: two programs that differ in one number (batch, length, layers, devices) tell how every buffer's size follows
//! from it, and so what the program takes at any other value.

mod curve;
mod law;
mod model;
mod varying;

pub use curve::{Grower, Scaling, ScalingPoint};
pub use law::Law;
pub use varying::{Varying, VaryingError};
