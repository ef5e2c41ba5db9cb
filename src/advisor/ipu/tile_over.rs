//! `tile_over`: tiles that need more memory than they have.

use super::evidence::{finding, severity_of_fullest, tiles};
use crate::advisor::finding::Finding;
use crate::advisor::subject::Subject;
use crate::analysis::tiles::{MemoryReport, Selection};
use crate::model::{Bytes, UnitSystem, in_words, thousands};

/// Applies the rule to a profile's tiles.
pub fn run(subject: &Subject<'_>, findings: &mut Vec<Finding>) {
    let Some((memory, tiles)) = tiles(subject) else { return };
    let (Some((worst, bytes)), Some(limit)) = (tiles.max, tiles.limit) else { return };
    if tiles.over.is_empty() {
        return;
    }
    let over: u64 = tiles
        .over
        .iter()
        .filter_map(|&tile| memory.must_fit()?.get(tile as usize))
        .fold(0, |sum: u64, &bytes| sum.saturating_add(bytes.saturating_sub(limit)));
    let report = MemoryReport::new(memory, tiles.gaps.as_ref(), &Selection::Tiles(vec![worst]), 3);
    let mut categories = report.categories;
    categories.sort_by_key(|category| std::cmp::Reverse(category.bytes));
    let largest: Vec<String> = categories
        .iter()
        .filter(|category| category.bytes > 0)
        .take(3)
        .map(|category| format!("{} {}", in_words(&category.name).to_lowercase(), Bytes(category.bytes).short()))
        .collect();
    let contents = if largest.is_empty() { String::new() } else { format!(". Most of it: {}", largest.join(", ")) };
    let few = tiles.over.len() * 50 < memory.tile_count();
    let (count, all) = (thousands(tiles.over.len() as u64), thousands(memory.tile_count() as u64));
    let mut finding = finding("tile_over", severity_of_fullest(tiles));
    finding.title = format!("{count} of {all} tiles hold more than {}", UnitSystem::Binary.capacity(Bytes(limit)));
    finding.why = format!(
        "Tile {worst} needs {}, {} too much; together the tiles are {} over{contents}",
        Bytes(bytes).exact(),
        Bytes(tiles.worst_over_by).short(),
        Bytes(over).short()
    );
    finding.advice = if few {
        vec![
            "Only a few tiles are over: look at what is mapped to them, and spread it (`poputil::mapTensorLinearly`)"
                .to_owned(),
            "A custom vertex or a constant on one tile is a common cause".to_owned(),
        ]
    } else {
        vec![
            "Reduce the batch size, and accumulate gradients over more steps".to_owned(),
            "Recompute activations in the backward pass, or use more pipeline stages".to_owned(),
            "Lower `availableMemoryProportion` of the largest matmuls and convolutions (default 0.6)".to_owned(),
        ]
    };
    finding.tiles = tiles.over.clone();
    findings.push(finding);
}
