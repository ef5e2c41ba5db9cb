//! Shared by the rules on tiles: access to a profile's tiles, severity, and the reference they cite.

use crate::advisor::finding::{Finding, Severity};
use crate::advisor::subject::Subject;
use crate::analysis::tiles::TileAnalysis;
use crate::model::TileMemory;

/// Reference for the advice.
const GUIDE: &str = "Memory and Performance Optimisation on the IPU, docs.graphcore.ai";

/// The tiles of a profile; `None` if it has none.
pub fn tiles<'a>(subject: &Subject<'a>) -> Option<(&'a TileMemory, &'a TileAnalysis)> {
    subject.profile.tiles.as_ref().zip(subject.analysis.tiles.as_ref())
}

/// Severity of a finding that affects all tiles alike: a cause if many tiles are over, a warning if a few are or the
/// fullest is nearly full.
pub fn severity(tiles: &TileAnalysis) -> Severity {
    let count: usize = tiles.gaps.as_ref().map_or(0, |gaps| gaps.bytes.len());
    if !tiles.over.is_empty() {
        return if tiles.over.len() * 50 >= count { Severity::Critical } else { Severity::Warning };
    }
    match (tiles.max, tiles.limit) {
        (Some((_, bytes)), Some(limit)) if bytes as f64 > limit as f64 * 0.83 => Severity::Warning,
        _ => Severity::Hint,
    }
}

/// Severity of a finding on the fullest tiles.
pub fn severity_of_fullest(tiles: &TileAnalysis) -> Severity {
    if tiles.over.is_empty() { severity(tiles) } else { Severity::Critical }
}

/// `part` as a fraction of all bytes, 0..=1.
pub fn share(part: u64, tiles: &TileAnalysis) -> f64 {
    tiles.bytes().filter(|&all| all > 0).map_or(0.0, |all| part as f64 / all as f64)
}

/// A finding that cites [`GUIDE`].
pub fn finding(rule: &'static str, severity: Severity) -> Finding {
    Finding { severity, reference: GUIDE, ..Finding::new(rule) }
}
