//! Rule `padding`: memory that holds nothing because tiles round dimensions up.

use std::collections::BTreeMap;

use super::case::Case;
use super::finding::{ChangesResults, Finding};
use crate::analysis::what_if::Edit;
use crate::model::{BufferId, Bytes, percent};

/// Name of the rule.
pub const NAME: &str = "padding";

/// Share of what is allocated from which padding is worth a word.
const SHARE: f64 = 0.10;

/// What a size of a dimension wastes.
#[derive(Default)]
struct Waste {
    bytes: u64,
    tile: u64,
    buffers: Vec<BufferId>,
}

/// Looks at the padding of everything at the peak.
pub fn run(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let bases = case.memory.base.iter().map(|base| (base.size, base.buffer));
    let all: Vec<(u64, BufferId)> = bases.chain(case.peak.iter().map(|t| (t.size, t.buffer))).collect();
    let mut total = 0u64;
    let mut by_size: BTreeMap<u64, Waste> = BTreeMap::new();
    let mut padded: Vec<(u64, BufferId)> = Vec::new();
    for &(size, buffer) in &all {
        let Some(node) = case.node(buffer) else { continue };
        let waste = size.saturating_sub(node.unpadded_size().0);
        if waste == 0 {
            continue;
        }
        total = total.saturating_add(waste);
        padded.push((waste, buffer));
        let dims = node.padding_by_dimension();
        let logs: f64 = dims.iter().map(|d| d.factor().ln()).sum();
        for d in dims.iter().filter(|d| d.padded > d.size && logs > 0.0) {
            let entry = by_size.entry(d.size).or_default();
            entry.bytes = entry.bytes.saturating_add((waste as f64 * d.factor().ln() / logs) as u64);
            entry.tile = entry.tile.max(d.tile);
            entry.buffers.push(buffer);
        }
    }
    if !case.is_share(total, SHARE) {
        return;
    }
    padded.sort_by_key(|&(waste, buffer)| (std::cmp::Reverse(waste), buffer));
    let mut finding = case.finding(NAME);
    let outcome = case.memory.unpadded(case.program);
    case.fill_most(&mut finding, &outcome, "at most: what is gained if no padding is left");
    finding.at_stake_bytes = Some(Bytes(total));
    finding.title =
        format!("{} of what stands at the peak is padding ({})", Bytes(total).short(), percent(total, case.at_peak()));
    let mut worst: Vec<(u64, Waste)> = by_size.into_iter().collect();
    worst.sort_by_key(|row| std::cmp::Reverse(row.1.bytes));
    let largest = padded.first().map(|row| case.describe(row.1)).unwrap_or_default();
    finding.why = match worst.first() {
        Some((size, waste)) => format!(
            "A dimension of {size} is rounded up to {}, in {} buffers: {} of padding. The worst buffer is {largest}.",
            size.next_multiple_of(waste.tile.max(1)),
            waste.buffers.len(),
            Bytes(waste.bytes).short()
        ),
        None => format!("The worst buffer is {largest}; its layout says nothing of why."),
    };
    advise(case, &mut finding, &worst);
    finding.changes_results = ChangesResults::Maybe;
    finding.buffers = padded.into_iter().map(|row| row.1).collect();
    findings.push(finding);
}

fn advise(case: &Case<'_>, finding: &mut Finding, worst: &[(u64, Waste)]) {
    for (size, waste) in worst.iter().take(3) {
        let (size, tile) = (*size, waste.tile.max(1));
        let down = size / tile * tile;
        // A dimension hardly above a multiple can be made smaller; a small one has to be merged, or filled.
        if down > 0 && down * 10 >= size * 9 {
            let edit = Edit::Dim(size as i64, down as i64);
            let outcome = case.try_out(std::slice::from_ref(&edit));
            let saved = case.saved(&outcome);
            if case.is_worth(saved) {
                finding.advice.push(format!(
                    "make {size} a multiple of {tile}: {down} saves {} at the peak",
                    Bytes(saved).short()
                ));
                if finding.edits.is_empty() {
                    finding.edits.push(edit);
                }
                continue;
            }
        }
        if size < tile {
            finding.advice.push(format!(
                "a dimension of {size} is filled up to {}: merge it with its neighbour (`reshape`), move a dimension of {tile} or more to the end, or keep its {size} parts as arrays of their own ({} of padding)",
                size.next_multiple_of(tile),
                Bytes(waste.bytes).short()
            ));
        } else {
            finding.advice.push(format!(
                "{size} is rounded up to {}; a multiple of {tile} wastes nothing",
                size.next_multiple_of(tile)
            ));
        }
    }
}
