//! Rules about IPU profiles: tiles, exchange code, liveness.

use super::Rule;

/// The rules, in the order they run.
pub const RULES: &[Rule] = &[];
