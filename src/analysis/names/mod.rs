//! What names tell: paths of frameworks, passes of automatic differentiation, words of arguments, and names that hide
//! the real ones. Lies below all other analysis and knows the model alone.

pub mod argument;
pub mod hide;
pub mod layer;
pub mod lookup;
pub mod pass;
pub mod pattern;
pub mod scope;
