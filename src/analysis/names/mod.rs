//! Evidence from names: framework paths, passes of automatic differentiation, words in argument paths; and aliases that
//! hide names. Below all other analysis; depends on the model only.

pub mod argument;
pub mod hide;
pub mod layer;
pub mod lookup;
pub mod pass;
pub mod pattern;
pub mod plain;
pub mod scope;
pub mod short_path;
