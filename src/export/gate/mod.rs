//! Limits that a build holds its programs to: one short line each, and the forms that CI systems show.

mod junit;
mod limits;
mod sarif;

pub use limits::{Check, Gate, Limits, Outcome, parse_share};

use clap::ValueEnum;

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
        GateFormat::Text => gate.checks.iter().map(|check| format!("{}\n", check.line())).collect(),
        GateFormat::Json => pretty(gate),
        GateFormat::Junit => junit::write(gate),
        GateFormat::Sarif => pretty(&sarif::log(gate)),
    }
}

fn pretty(value: &impl serde::Serialize) -> String {
    let mut json = serde_json::to_string_pretty(value).unwrap_or_else(|error| error.to_string());
    json.push('\n');
    json
}
