//! A label: words for a value, and what they are based on.

use super::loops::Role;
use crate::analysis::names::pass::{Pass, pass_of};
use crate::analysis::names::scope;

/// How many parts of a framework op name a label has.
pub(super) const PARTS: usize = 4;

/// What is said behind the name of what the backward pass makes, or computes again.
#[must_use]
pub fn backward(op_name: &str) -> &'static str {
    match pass_of(op_name) {
        Pass::Backward => ", backward pass",
        Pass::Recomputed => ", recomputed",
        _ => "",
    }
}

/// A label for a value, and what it is based on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// The words: `saved by the scan for 32 layers: mlp/wi_0, [4,4096,14336]`.
    pub text: String,
    /// Its role in a loop, if it has one.
    pub role: Option<Role>,
    /// Path of the argument it is a copy of; empty if it is none.
    pub copy_of: String,
    /// The framework op name that it has from its operand, which the words shorten; empty if they are all there is.
    pub borrowed: String,
    /// What it is, where the words begin with that besides a borrowed name: `attention scores`.
    pub kind: Option<&'static str>,
}

impl Label {
    /// Words that are all there is.
    pub(super) fn plain(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// The framework op name of another, shortened.
    pub(super) fn borrowed(name: String) -> Self {
        let text = format!("{}{}", scope::short(&name, PARTS), backward(&name));
        Self { text, borrowed: name, ..Self::default() }
    }

    /// What a value is, and the framework op name that says where.
    pub(super) fn of_kind(kind: &'static str, name: String) -> Self {
        let text = format!("{kind}, {}", scope::short(&name, PARTS));
        Self { text, borrowed: name, kind: Some(kind), ..Self::default() }
    }
}
