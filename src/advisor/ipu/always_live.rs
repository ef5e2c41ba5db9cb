//! `always_live`: always-live variables fill most of the tiles.

use super::evidence::{finding, severity, tiles};
use crate::advisor::finding::{ChangesResults, Finding};
use crate::advisor::subject::Subject;
use crate::model::{Bytes, percent};

/// Applies the rule.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((memory, tiles)) = tiles(subject) else { return };
    let (Some(always), Some(limit)) = (tiles.always_live, tiles.limit) else { return };
    let capacity = limit.saturating_mul(memory.tile_count() as u64);
    if capacity == 0 || (always as f64) < capacity as f64 * 0.5 {
        return;
    }
    let mut finding = finding("always_live", severity(tiles));
    finding.title = format!("{} are always live", Bytes(always).short());
    finding.why = format!("That is {} of tile memory, before anything is computed", percent(always, capacity));
    let mut variables = memory.liveness.always_live_variables.clone();
    variables.sort_by_key(|variable| std::cmp::Reverse(variable.1));
    let largest: Vec<String> = variables
        .iter()
        .take(3)
        .map(|&(name, bytes)| format!("{} {}", memory.liveness.strings.get(name), Bytes(bytes).short()))
        .collect();
    if !largest.is_empty() {
        finding.why = format!("{}. The largest: {}", finding.why, largest.join(", "));
    }
    finding.advice = vec![
        "Keep weights in half precision (with stochastic rounding), or spread them over more IPUs".to_owned(),
        "Offload optimizer state to streaming memory; with replicas, shard it (replicated tensor sharding)".to_owned(),
        "Where code is most of it: outline repeated layers".to_owned(),
    ];
    finding.changes_results = ChangesResults::Maybe;
    findings.push(finding);
}
