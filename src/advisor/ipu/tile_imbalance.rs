//! `tile_imbalance`: the fullest tile holds far more than the mean.

use super::evidence::{finding, severity_of_fullest, tiles};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::tiles::TileAnalysis;
use crate::model::{Bytes, factor};

/// Applies the rule to a profile's tiles.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((memory, tiles)) = tiles(subject) else { return };
    let (Some(imbalance), Some((worst, bytes))) = (tiles.imbalance(), tiles.max) else { return };
    if imbalance <= 1.3 {
        return;
    }
    let ipus: Vec<u64> = tiles.ipus.iter().map(|ipu| ipu.bytes).collect();
    let (most, least) = (ipus.iter().max().copied().unwrap_or(0), ipus.iter().min().copied().unwrap_or(0));
    let between = if ipus.len() > 1 && most as f64 > least as f64 * 1.2 {
        format!("; the IPUs themselves differ from {} to {}", Bytes(least).short(), Bytes(most).short())
    } else {
        String::new()
    };
    let idle: usize = tiles.ipus.iter().map(|ipu| ipu.idle).sum();
    let idle = if idle > 0 {
        format!("; {idle} tiles are nearly idle (input and output, or nothing mapped)")
    } else {
        String::new()
    };
    let mut finding = finding("tile_imbalance", severity_of_fullest(tiles));
    finding.title = format!("The fullest tile holds {} the mean", factor(imbalance));
    finding.why = format!(
        "Tile {worst} holds {}, the mean is {}{between}{idle}",
        Bytes(bytes).short(),
        Bytes(tiles.mean as u64).short()
    );
    finding.advice = vec![
        "Spread what is mapped to the fullest tiles; constants and scalars often all lie on tile 0".to_owned(),
        "Between IPUs: move layers to other pipeline stages".to_owned(),
    ];
    finding.tiles = TileAnalysis::worst_tiles(memory, 10).into_iter().map(|(tile, _)| tile).collect();
    findings.push(finding);
}
