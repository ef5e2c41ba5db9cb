//! `tile_gaps`: memory lost to gaps between variables.

use super::evidence::{finding, severity, share, tiles};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::model::Bytes;

/// Applies the rule to a profile's tiles.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((_, tiles)) = tiles(subject) else { return };
    let Some(gaps) = &tiles.gaps else { return };
    let sums = gaps.sums();
    let fragmentation = sums.fragmentation.unwrap_or(sums.bytes);
    // The gap below interleaved memory is not fragmentation and costs nothing until the tile is full.
    if share(fragmentation, tiles) < 0.05 {
        return;
    }
    let mut finding = finding("tile_gaps", severity(tiles));
    finding.title = format!("{} are gaps between variables", Bytes(fragmentation).short());
    finding.why = match sums.below_interleaved {
        Some(below) => format!(
            "Tiles report {} of gaps; {} of it lies below interleaved variables and is not fragmentation",
            Bytes(sums.bytes).short(),
            Bytes(below).short()
        ),
        None => format!(
            "Tiles report {} of gaps; the profile does not say how much of it lies below interleaved variables",
            Bytes(sums.bytes).short()
        ),
    };
    finding.advice = vec![
        "Large contiguous variables leave holes that nothing fits into: split them over more tiles".to_owned(),
        "Alignment and memory-element constraints of custom vertices force gaps: relax those not needed".to_owned(),
    ];
    let mut worst: Vec<u32> = (0..gaps.bytes.len() as u32).collect();
    worst.sort_by_key(|&tile| std::cmp::Reverse(gaps.bytes[tile as usize]));
    worst.truncate(10);
    finding.tiles = worst;
    findings.push(finding);
}
