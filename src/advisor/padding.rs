//! Rule `padding`: memory wasted because dimensions are rounded up to the tile.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::finding::{ChangesResults, Finding};
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use crate::analysis::alternatives;
use crate::analysis::chosen_layout::{ATTENTION, CONVOLUTION, KERNEL};
use crate::analysis::what_if::Edit;
use crate::model::{BufferId, Bytes, FastSet, ShapeNode, percent};

/// Name of the rule.
pub const NAME: &str = "padding";

/// Least share of allocated bytes at which padding is reported.
const SHARE: f64 = 0.10;

/// Least share of allocated bytes at which the padding of another dimension than the worst is named.
const NAMED: f64 = 0.01;

/// Most parts of a dimension that are worth keeping as arrays of their own.
const FEW: u64 = 8;

/// Padding caused by one dimension size in one place of the layout.
#[derive(Default)]
struct Waste {
    bytes: u64,
    buffers: Vec<BufferId>,
    /// Bytes in each of them.
    of_each: Vec<u64>,
    /// Bytes of it in arrays whose layout the compiler chooses for what takes or makes them.
    fixed: u64,
    /// What that is for the first of them, in words.
    fixed_by: Option<&'static str>,
}

impl Waste {
    /// What takes or makes most of it, in the layout that it needs, in words.
    fn fixed_by(&self) -> Option<&'static str> {
        self.fixed_by.filter(|_| self.fixed.saturating_mul(2) > self.bytes)
    }
}

/// What helps where the compiler chooses the layout.
fn of_fixed(words: &str, Rounded { size, padded, .. }: Rounded) -> Option<String> {
    match words {
        ATTENTION | KERNEL => None,
        CONVOLUTION => Some(format!(
            "a `reshape` between convolutions is undone by the next one, and {size} takes as much there as {padded}: where these are channels, fewer positions with more channels (blocks of 2 × 2 pixels moved into the channels, space to depth) hold as much data in less memory"
        )),
        decomposition => Some(format!(
            "{decomposition} pads each matrix: decompose fewer at a time (`jax.lax.map` with `batch_size`), if that padding matters"
        )),
    }
}

/// Buffers that have together less than one in so many of the bytes of a waste are small.
const SMALL: u64 = 100;

/// A dimension of `size` that its tile rounds up. One size may be rounded up to 4 in one layout and to 128 in another:
/// these are two causes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rounded {
    size: u64,
    padded: u64,
    tile: u64,
}

/// The buffers with nearly all of a waste, counted, with those that have little of it: `3 buffers and 11 small ones`.
fn in_buffers(waste: &Waste) -> String {
    let mut of_each = waste.of_each.clone();
    of_each.sort_unstable_by(|one, other| other.cmp(one));
    let mut so_far = 0u64;
    let large = of_each.iter().take_while(|&&bytes| {
        let is_short = so_far < waste.bytes - waste.bytes / SMALL;
        so_far = so_far.saturating_add(bytes);
        is_short
    });
    let large = large.count();
    let buffers = counted(large, "buffer", "buffers");
    match of_each.len() - large {
        0 => buffers,
        1 => format!("{buffers} and a small one"),
        small => format!("{buffers} and {small} small ones"),
    }
}

/// Looks at the padding of everything at the peak.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let bases = case.memory.base.iter().map(|base| (base.size, base.buffer));
    let all: Vec<(u64, BufferId)> = bases.chain(case.peak.iter().map(|t| (t.size, t.buffer))).collect();
    let mut total = 0u64;
    let mut causes: BTreeMap<Rounded, Waste> = BTreeMap::new();
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
            let entry = causes.entry(Rounded { size: d.size, padded: d.padded, tile: d.tile.max(1) }).or_default();
            let bytes = (waste as f64 * d.factor().ln() / logs) as u64;
            entry.bytes = entry.bytes.saturating_add(bytes);
            entry.buffers.push(buffer);
            entry.of_each.push(bytes);
        }
    }
    if !case.is_share(total, SHARE) {
        return;
    }
    for waste in causes.values_mut() {
        for (&buffer, &bytes) in waste.buffers.iter().zip(&waste.of_each) {
            if let Some(words) = case.layout_chosen_for(buffer) {
                waste.fixed = waste.fixed.saturating_add(bytes);
                waste.fixed_by.get_or_insert(words);
            }
        }
    }
    padded.sort_by_key(|&(waste, buffer)| (std::cmp::Reverse(waste), buffer));
    let mut finding = case.finding(NAME);
    finding.at_stake_bytes = Some(Bytes(total));
    let at_peak = case.space.at_peak.padding;
    finding.title =
        format!("{} of the bytes at the peak are padding ({})", at_peak.short(), percent(at_peak.0, case.at_peak()));
    let mut worst: Vec<(Rounded, Waste)> = causes.into_iter().collect();
    worst.sort_by_key(|row| std::cmp::Reverse(row.1.bytes));
    // Of the buffers with the worst cause, the one that wastes most.
    let of_worst: Option<FastSet<BufferId>> = worst.first().map(|worst| worst.1.buffers.iter().copied().collect());
    let is_of_worst = |row: &&(u64, BufferId)| of_worst.as_ref().is_none_or(|buffers| buffers.contains(&row.1));
    let largest = padded.iter().find(is_of_worst).map(|row| case.describe(row.1)).unwrap_or_default();
    finding.why = match worst.first() {
        Some((rounded, waste)) => format!(
            "A dimension of {} is rounded up to {}, in {}: {} of padding. The worst buffer is {largest}.",
            rounded.size,
            rounded.padded,
            in_buffers(waste),
            Bytes(waste.bytes).short()
        ),
        None => format!("The worst buffer is {largest}; its layout does not show why."),
    };
    if let Some((rounded, waste)) = worst.first() {
        match waste.fixed_by() {
            Some(words) => {
                let bytes = Bytes(waste.fixed).short();
                let _ = write!(
                    finding.why,
                    " {bytes} of it lie in what {words} takes and makes, in the layout that it needs."
                );
                finding.advice.extend(of_fixed(words, *rounded));
            }
            None => change(case, &mut finding, *rounded),
        }
    }
    let is_small = |waste: &Waste| !case.is_share(waste.bytes, NAMED);
    // One size may be a multiple of both tiles: that is one piece of advice.
    let mut told: Vec<(u64, u64)> = Vec::new();
    for (rounded, waste) in
        worst.iter().take(3).enumerate().filter(|row| row.0 == 0 || !is_small(&row.1.1)).map(|row| row.1)
    {
        let change = rounded_down(rounded.size, rounded.tile).map(|down| (rounded.size, down));
        if waste.fixed_by().is_some() || change.is_some_and(|change| told.contains(&change)) {
            continue;
        }
        told.extend(change);
        finding.advice.push(if is_batch(case, *rounded) {
            of_batch(case, *rounded, waste)
        } else {
            advice(*rounded, waste, merged_form(case, waste).as_deref())
        });
    }
    finding.buffers = padded.into_iter().map(|row| row.1).collect();
    findings.push(finding);
}

/// Whether a dimension is the batch of each device, and no weight's.
fn is_batch(case: &ProgramContext<'_>, Rounded { size, .. }: Rounded) -> bool {
    let Ok(size) = i64::try_from(size) else { return false };
    let is_of_weight = || case.memory.weights(case.program).iter().any(|outline| outline.contains(&size));
    case.memory.data.first().is_some_and(|data| data.batch() == size) && !is_of_weight()
}

/// Share of what holds the batch that pads it from which a batch as large as the padded one takes hardly more.
const NEARLY_ALL: f64 = 0.9;

fn of_batch(case: &ProgramContext<'_>, Rounded { size, padded, .. }: Rounded, waste: &Waste) -> String {
    let holds = |t: &&AtPeak| {
        case.node(t.buffer).is_some_and(|node| node.dimensions.iter().any(|&d| u64::try_from(d) == Ok(size)))
    };
    let all = case.peak.iter().filter(holds).map(|t| t.size).total();
    let padding: FastSet<BufferId> = waste.buffers.iter().copied().collect();
    let in_these = case.peak.iter().filter(|t| padding.contains(&t.buffer)).map(|t| t.size).total();
    let more = if in_these as f64 >= all as f64 * NEARLY_ALL {
        format!(": a batch of {padded} takes hardly more")
    } else {
        " in these".to_owned()
    };
    format!(
        "the batch of {size} on each device is padded to {padded}{more} ({} of padding)",
        Bytes(waste.bytes).short()
    )
}

/// Whether a dimension is only just above a multiple of its tile, so that it could be reduced.
fn rounded_down(size: u64, tile: u64) -> Option<u64> {
    let down = size / tile * tile;
    (down > 0 && down * 10 >= size * 9).then_some(down)
}

/// The change that removes most padding: a dimension just above a multiple is reduced to it, or a small one is merged
/// with its neighbour.
fn change(case: &ProgramContext<'_>, finding: &mut Finding, Rounded { size, tile, .. }: Rounded) {
    let Ok(whole) = i64::try_from(size) else { return };
    if let Some(down) = rounded_down(size, tile).and_then(|down| i64::try_from(down).ok()) {
        let edits = vec![Edit::Dim(whole, down)];
        if case.is_worth(case.saved(&case.try_out(&edits))) {
            case.fill(finding, edits);
            finding.changes_results = ChangesResults::Maybe;
            return;
        }
    }
    let edits = vec![Edit::Unpad(whole)];
    if case.is_worth(case.saved(&case.try_out(&edits))) {
        case.fill_at_most(finding, edits);
        finding.at_most = Some(format!(
            "at most: every shape with a dimension of {whole} without its padding; arrays that must keep their shape stay padded"
        ));
    }
}

/// How the array that wastes most is merged, where that takes less: `[64,84,84,4] as [64,7056,4]`.
fn merged_form(case: &ProgramContext<'_>, waste: &Waste) -> Option<String> {
    let largest = waste.buffers.iter().zip(&waste.of_each).max_by_key(|row| row.1)?.0;
    let node = case.node(*largest)?;
    let other = alternatives::merged(node).filter(|other| Some(other.each) < node.padded_size())?;
    let sizes = |node: &ShapeNode| node.dimensions.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
    Some(format!("[{}] as [{}]", sizes(node), sizes(&other.node)))
}

fn advice(Rounded { size, padded, tile }: Rounded, waste: &Waste, merged: Option<&str>) -> String {
    if let Some(down) = rounded_down(size, tile) {
        return format!("make {size} a multiple of {tile}, such as {down}, if the model allows it");
    }
    if size < tile {
        let apart =
            if size <= FEW { format!(", keep its {size} parts as arrays of their own,") } else { ",".to_owned() };
        let reshape = merged.map_or_else(|| "`reshape`".to_owned(), |form| format!("`reshape`: {form}"));
        return format!(
            "a dimension of {size} is padded to {padded}: merge it with its neighbour ({reshape}){apart} or move a dimension of {tile} or more to the end ({} of padding)",
            Bytes(waste.bytes).short()
        );
    }
    format!("{size} is rounded up to {padded}: where the model leaves the choice, a multiple of {tile} wastes nothing")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::{ElementType, Opcode, Shape, ShapeNode};

    #[test]
    fn what_a_decomposition_takes_and_makes_need_not_be_merged() {
        let mut sketch = Sketch::default();
        let shape = || Shape::from_array(ShapeNode::tiled(ElementType::F32, &[4096, 23, 23], &[2, 1, 0], &[&[8, 128]]));
        let x = sketch.argument(array(&[64], &[0]), "x");
        let matrices = sketch.instruction(Opcode::COPY, shape(), &[x], "jit(f)/mul");
        let call = sketch.instruction(Opcode::CUSTOM_CALL, shape(), &[matrices], "jit(f)/cholesky");
        sketch.target(call, "Cholesky");
        let end = sketch.instruction(Opcode::FUSION, array(&[64], &[0]), &[call], "jit(f)/sum");
        for row in [matrices, call, end] {
            sketch.alloc(row);
        }
        for row in [matrices, call, end] {
            sketch.free(row);
        }
        let found = sketch.findings(1 << 30, run);
        let advice: Vec<&String> = found.iter().flat_map(|finding| &finding.advice).collect();
        assert!(advice.iter().any(|words| words.starts_with("the Cholesky decomposition pads")), "{advice:?}");
        assert!(!advice.iter().any(|words| words.contains("merge it")), "{advice:?}");
    }

    #[test]
    fn a_dimension_is_padded_to_what_its_own_layout_asks_for() {
        let waste = Waste { bytes: 1 << 20, ..Waste::default() };
        let outer = advice(Rounded { size: 3, padded: 4, tile: 4 }, &waste, None);
        assert!(
            outer.starts_with("a dimension of 3 is padded to 4: merge it with its neighbour (`reshape`),"),
            "{outer}"
        );
        let named = advice(Rounded { size: 3, padded: 4, tile: 4 }, &waste, Some("[8,3,5] as [8,15]"));
        assert!(named.contains("(`reshape`: [8,3,5] as [8,15])"), "{named}");
        assert_eq!(
            advice(Rounded { size: 12, padded: 16, tile: 8 }, &waste, None),
            "12 is rounded up to 16: where the model leaves the choice, a multiple of 8 wastes nothing"
        );
        assert_eq!(
            advice(Rounded { size: 130, padded: 256, tile: 128 }, &waste, None),
            "make 130 a multiple of 128, such as 128, if the model allows it"
        );
    }
}
