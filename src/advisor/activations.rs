//! Rule `activations`: what the forward pass computes and keeps for the backward pass.

use std::collections::BTreeMap;

use super::case::{AtPeak, Case, Total};
use super::finding::{ChangesResults, Finding};
use crate::analysis::names::pass::jvp_scope;
use crate::analysis::what_if::Edit;
use crate::model::{Bytes, percent};

/// Name of the rule.
pub const NAME: &str = "activations";

/// Share of what is allocated from which activations are a cause.
const SHARE: f64 = 0.30;

/// Looks for temporaries of the forward pass at the peak.
pub fn run(case: &Case<'_>, findings: &mut Vec<Finding>) {
    let held: Vec<&AtPeak> = case.peak.iter().filter(|t| is_activation(case.name(t.family))).collect();
    let bytes: u64 = held.iter().map(|t| t.size).total();
    if !case.is_share(bytes, SHARE) {
        return;
    }
    let mut finding = case.finding(NAME);
    let scopes = by_scope(case, &held);
    let pattern = pattern(&scopes);
    let edits = vec![Edit::Remat(pattern.clone())];
    let outcome = case.try_out(&edits);
    let saved = case.saved(&outcome);
    let is_predicted = case.is_worth(saved);
    if is_predicted {
        case.fill(&mut finding, edits);
    } else {
        // Not only those at the peak: without them another moment would be the peak.
        let rows: Vec<usize> =
            (0..case.memory.families.list.len()).filter(|&family| is_activation(case.name(family))).collect();
        case.fill_without(&mut finding, &rows, "at most: what is gained if none of them is kept");
    }
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.title = format!(
        "Activations take {} of the peak: {} kept for the backward pass",
        percent(bytes, case.memory.peak.max(1)),
        Bytes(bytes).short()
    );
    let listed: Vec<String> = scopes
        .iter()
        .take(4)
        .map(|(scope, (bytes, _))| {
            let scope = if scope.is_empty() { "the outermost scope" } else { scope };
            format!("{scope} {}", Bytes(*bytes).short())
        })
        .collect();
    finding.why = format!(
        "{} temporaries at the peak are made by the forward pass (`jvp(…)`) and still there for the backward pass, the largest {}. By scope: {}{}.",
        held.len(),
        held.first().map(|t| case.describe(t.buffer)).unwrap_or_default(),
        listed.join(", "),
        if scopes.len() > 4 { format!(" and {} more", scopes.len() - 4) } else { String::new() }
    );
    advise(case, &mut finding, &held, &pattern, is_predicted);
    finding.changes_results = ChangesResults::No;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Whether a name is of the forward pass of a differentiated function.
fn is_activation(name: &str) -> bool {
    jvp_scope(name).is_some_and(|jvp| !jvp.is_backward)
}

fn by_scope<'a>(case: &'a Case<'_>, held: &[&AtPeak]) -> Vec<(&'a str, (u64, usize))> {
    let mut scopes: BTreeMap<&str, (u64, usize)> = BTreeMap::new();
    for t in held {
        let scope = jvp_scope(case.name(t.family)).map_or("", |jvp| jvp.scope);
        let entry = scopes.entry(scope).or_default();
        entry.0 = entry.0.saturating_add(t.size);
        entry.1 += 1;
    }
    let mut scopes: Vec<_> = scopes.into_iter().collect();
    scopes.sort_by_key(|row| std::cmp::Reverse(row.1.0));
    scopes
}

/// A pattern for the scopes: `layer_*` where most of them are numbered alike, else `*`.
fn pattern(scopes: &[(&str, (u64, usize))]) -> String {
    let Some((first, _)) = scopes.iter().find(|(scope, _)| !scope.is_empty()) else { return "*".to_owned() };
    let stem = first.trim_end_matches(|c: char| c.is_ascii_digit());
    let alike = scopes.iter().filter(|(scope, _)| scope.starts_with(stem)).count();
    if stem.len() < first.len() && alike > 1 { format!("{stem}*") } else { (*first).to_owned() }
}

/// Whether the largest come out of a loop: they are named so, or begin as an empty array that a loop then fills.
fn is_scan(case: &Case<'_>, held: &[&AtPeak]) -> bool {
    let in_loop = |family: usize| case.name(family).contains("/while");
    let Some(first) = held.first() else { return false };
    let is_filled = case.name(first.family).ends_with("broadcast_in_dim");
    in_loop(first.family) || (is_filled && (0..case.memory.families.list.len()).any(in_loop))
}

fn advise(case: &Case<'_>, finding: &mut Finding, held: &[&AtPeak], pattern: &str, is_predicted: bool) {
    if is_scan(case, held) {
        finding.advice.push(
            "the layers run in a `scan`: wrap its body in `jax.checkpoint` (`jax.lax.scan(jax.checkpoint(body), …)`), then only the carry of each layer is kept".to_owned(),
        );
        finding
            .warnings
            .push("what a scan would keep then is not predicted; the saving is the most there is".to_owned());
    } else {
        let what =
            if pattern == "*" { "around each layer".to_owned() } else { format!("on what is named `{pattern}`") };
        finding.advice.push(format!(
            "`jax.checkpoint` {what}: its inputs are kept, the rest is computed again in the backward pass{}",
            if is_predicted { "" } else { " (give the layers a `jax.named_scope` to see what each would save)" }
        ));
    }
    finding.advice.push(
        "keep the cheap half: `policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable` recomputes all but matrix products".to_owned(),
    );
    let has_data = !case.memory.data.is_empty();
    if has_data {
        finding.advice.push(
            "micro-batches: run the step on parts of the batch and add up the gradients; results stay the same"
                .to_owned(),
        );
    }
    finding.advice.push(
        "when close to fitting: `--xla_tpu_rematerialization_algo=PEAK_PRIORITY`, then `--xla_tpu_rematerialization_max_block_size_limit`, `--xla_tpu_rematerialization_block_effort_factor` and `--xla_tpu_pre_fusion_remat=true` (slower compiles, the last may change rounding)".to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbered_scopes_have_one_pattern() {
        assert_eq!(pattern(&[("layer_3", (9, 1)), ("layer_12", (8, 1)), ("", (1, 1))]), "layer_*");
        assert_eq!(pattern(&[("encoder", (9, 1))]), "encoder");
        assert_eq!(pattern(&[("", (9, 1))]), "*");
        assert!(is_activation("jit(f)/jvp(layer_0)/dot_general"));
        assert!(!is_activation("jit(f)/transpose(jvp(layer_0))/dot_general"));
    }
}
