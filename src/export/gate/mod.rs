//! Limits that a build holds its programs to: one short line each, and the forms that CI systems show.

mod caching;
mod junit;
mod limits;
mod sarif;

pub use limits::{Check, Gate, LimitOutcome, Limits, parse_share};

use clap::ValueEnum;

use super::json;

/// How the outcome is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum GateFormat {
    /// A line for each limit.
    #[default]
    Text,
    /// For programs.
    Json,
    /// JUnit XML, which most CI systems show as tests.
    Junit,
    /// SARIF 2.1.0, which code hosts show as annotations.
    Sarif,
}

/// Writes the outcome.
#[must_use]
pub fn write(gate: &Gate, format: GateFormat) -> String {
    match format {
        GateFormat::Text => gate.checks.iter().fold(String::new(), |text, check| text + &check.line() + "\n"),
        GateFormat::Json => json(gate),
        GateFormat::Junit => junit::write(gate),
        GateFormat::Sarif => json(&sarif::log(gate)),
    }
}
