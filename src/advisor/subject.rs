//! What rules are, and what they look at.

use super::case::Case;
use super::finding::Finding;
use crate::analysis::ProfileAnalysis;
use crate::model::Profile;

/// What a rule about a whole profile looks at: a profile and its analysis.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Its analysis.
    pub analysis: &'a ProfileAnalysis,
}

/// A rule about a whole profile. It looks, and says what it found; without evidence it says nothing.
pub struct Rule {
    /// Its name, as the report writes it.
    pub name: &'static str,
    /// Looks at a profile.
    pub run: fn(&Subject<'_>, &mut Vec<Finding>),
}

/// A rule about the HBM of one program.
pub struct ProgramRule {
    /// Its name, as the report writes it.
    pub name: &'static str,
    /// Looks at a program.
    pub run: fn(&Case<'_>, &mut Vec<Finding>),
}
