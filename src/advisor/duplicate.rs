//! Rule `duplicate`: many equal temporaries at once, and temporaries with the shape of a parameter.

use std::collections::BTreeMap;

use super::finding::{ChangesResults, Finding};
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use crate::analysis::class::Class;
use crate::analysis::what_if::batch::outline;
use crate::analysis::what_if::saved_for_backward::is_among;
use crate::model::Bytes;

/// Name of the rule.
pub const NAME: &str = "duplicate";

/// Least share of allocated bytes at which copies are reported.
const SHARE: f64 = 0.10;

/// Equal buffers that make a series, at least.
const SERIES: usize = 4;

/// Looks for series of equal temporaries and for temporaries shaped like parameters.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    twins(case, findings);
    series(case, findings);
}

/// An op name without its numbers: the same for one operation in every layer.
fn without_numbers(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        if !c.is_ascii_digit() {
            out.push(c);
        } else if !out.ends_with('#') {
            out.push('#');
        }
    }
    out
}

fn series(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let mut groups: BTreeMap<(String, String), Vec<&AtPeak>> = BTreeMap::new();
    let kept = &case.memory.kept;
    // Activations kept for the backward pass have a rule of their own.
    let is_told =
        |t: &AtPeak| kept.has_own_remedy(t.family) || kept.is_stack(t.family) || case.memory.is_kept(t.family);
    for t in case.peak.iter().filter(|t| !is_told(t)) {
        let name = case.name(t.family);
        let Some((shape, node)) = case.program.buffer_shape(t.buffer) else { continue };
        // Many buffers of one name are not a series of layers; their numbers must differ.
        if name.chars().any(|c| c.is_ascii_digit()) {
            groups.entry((shape.short_text_of(node), without_numbers(name))).or_default().push(t);
        }
    }
    let largest = groups.into_iter().map(|(key, rows)| (rows.iter().map(|t| t.size).total(), key, rows));
    let Some((bytes, (shape, name), rows)) = largest.filter(|g| g.2.len() >= SERIES).max_by_key(|g| g.0) else {
        return;
    };
    if !case.is_share(bytes, SHARE) {
        return;
    }
    let mut finding = case.remedy(NAME);
    case.stake(&mut finding, bytes);
    finding.title = format!("{} equal buffers at once, one for each layer: {}", rows.len(), Bytes(bytes).short());
    finding.why = format!(
        "{shape} `{name}` (numbers left out) is live {} times at the peak: each layer keeps its own.",
        rows.len()
    );
    finding.advice.push(
        "recompute it in the backward pass: `jax.checkpoint` around what makes it, or a policy that does not save it"
            .to_owned(),
    );
    finding
        .advice
        .push("if it is the same in every layer (a mask, positions), make it once outside and pass it in".to_owned());
    finding.changes_results = ChangesResults::No;
    finding.is_guess = true;
    finding.buffers = rows.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Outlines of the weights' global shapes (over all devices).
fn whole_weights(case: &ProgramContext<'_>) -> Vec<Vec<i64>> {
    case.arguments()
        .filter(|argument| !case.is_data(argument.0))
        .filter_map(|(row, _, number, _)| {
            let node = case.node(case.memory.base[row].buffer)?;
            let sharding = case.program.sharding_of_parameter(number)?;
            let parts = |d: usize| sharding.tiles.get(d).copied().unwrap_or(1).max(1);
            let whole = node.dimensions.iter().enumerate().map(|(d, &size)| size.saturating_mul(parts(d)));
            Some(outline(&whole.collect::<Vec<i64>>()))
        })
        .collect()
}

fn twins(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    // Only training has gradients and casts of weights; temporaries shaped like a cache have other causes.
    if !case.memory.has_backward() {
        return;
    }
    let mut weights = case.memory.weights(case.program).clone();
    weights.extend(whole_weights(case));
    let classes = case.analysis.classes(case.program);
    let entry = case.program.entry_computation();
    let entry = entry.map_or(0..0, |entry| entry.start..entry.end);
    let rows: Vec<&AtPeak> = case
        .peak
        .iter()
        .filter(|t| classes.of(t.buffer) == Class::Gradient)
        // Gradients of a scan have a rule of their own.
        .filter(|t| !is_among(&case.memory.kept.gradients, t.family))
        // What the body of a loop makes in each step, such as the gradient of a block of logits, is not kept.
        .filter(|t| case.program.buffers.instruction_of(t.buffer).is_some_and(|made| entry.contains(&made.0)))
        .filter(|t| {
            case.node(t.buffer).is_some_and(|n| n.dimensions.len() > 1 && weights.contains(&outline(&n.dimensions)))
        })
        .collect();
    let bytes: u64 = rows.iter().map(|t| t.size).total();
    if !case.is_share(bytes, SHARE) {
        return;
    }
    let mut finding = case.remedy(NAME);
    case.stake(&mut finding, bytes);
    finding.title = format!("Gradients of weights at the peak: {}", Bytes(bytes).short());
    finding.why = format!(
        "{} of the backward pass with the shape of a weight; the largest is {}.",
        counted(rows.len(), "temporary at the peak is", "temporaries at the peak are"),
        case.describe_first(&rows)
    );
    finding.advice.push("update each parameter as soon as its gradient is available, instead of keeping all gradients (a fused optimizer step, or gradients reduced in the backward pass)".to_owned());
    finding.advice.push("when gradients are accumulated, keep one accumulator and donate it".to_owned());
    finding.changes_results = ChangesResults::No;
    finding.buffers = rows.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_tell_layers_apart() {
        assert_eq!(without_numbers("jvp(layer_12)/attn/dot"), without_numbers("jvp(layer_3)/attn/dot"));
        assert_ne!(without_numbers("jvp(layer_1)/mlp"), without_numbers("jvp(layer_1)/attn"));
    }
}
