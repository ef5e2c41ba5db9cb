//! The types of rules and their input.

use super::finding::Finding;
use super::program_context::ProgramContext;
use crate::analysis::ProfileAnalysis;
use crate::model::Profile;

/// Input of a rule about a whole profile.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// The profile.
    pub profile: &'a Profile,
    /// Its analysis.
    pub analysis: &'a ProfileAnalysis,
}

/// A rule about a whole profile. Without evidence it adds no finding.
pub struct Rule {
    /// Its name, as the report writes it.
    pub name: &'static str,
    /// Examines a profile and adds findings.
    pub run: fn(&Subject<'_>, &mut Vec<Finding>),
}

/// A rule about the HBM of one program.
pub struct ProgramRule {
    /// Its name, as the report writes it.
    pub name: &'static str,
    /// Examines a program and adds findings.
    pub run: fn(&ProgramContext<'_>, &mut Vec<Finding>),
}
