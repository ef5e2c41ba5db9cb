//! `rearrangement`: copies that only change the layout.

use super::evidence::{finding, severity, share, tiles};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::model::{Bytes, percent};

/// Applies the rule to a profile's tiles.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((_, tiles)) = tiles(subject) else { return };
    let bytes = tiles.category("rearrangement");
    if share(bytes, tiles) < 0.05 {
        return;
    }
    let mut finding = finding("rearrangement", severity(tiles));
    finding.title = format!("Rearrangements take {}", Bytes(bytes).short());
    finding.why = format!(
        "The category `rearrangement` is {} of what the tiles hold: data copied into another layout",
        percent(bytes, tiles.bytes().unwrap_or(0))
    );
    finding.advice = vec![
        "Allocate operands with the operation's own creator functions (`createWeights`, `createInput`)".to_owned(),
        "Let neighbouring operations agree on a layout; avoid transposes between them".to_owned(),
    ];
    findings.push(finding);
}
