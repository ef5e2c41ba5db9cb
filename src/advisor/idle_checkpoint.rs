//! Rule `idle_checkpoint`: a checkpoint whose values are kept all the same, as hardly anything is computed again.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{AtPeak, ProgramContext, Total};
use crate::analysis::flow::collective::holds_gathered;
use crate::analysis::names::pass::{AGAIN, Pass};
use crate::analysis::names::scope;
use crate::analysis::what_if::{Checkpoint, EVERY, Edit};
use crate::model::{Bytes, thousands};

/// Name of the rule.
pub const NAME: &str = "idle_checkpoint";

/// Share of a checkpoint's operations in the backward pass that are computed again at least: about half of them, with any
/// policy that saves products alone, too; of four programs that were checkpointed in vain a tenth and less.
const LEAST: f64 = 0.2;

/// Share of the bytes that are kept which what is computed again takes at least, where little of it is: the scores that a
/// policy names.
const LEAST_BYTES: f64 = 0.05;

/// Fewest operations that tell.
const FEWEST: usize = 32;

/// Where JAX names what is differentiated through a checkpoint.
pub(super) const CHECKPOINT: &str = "checkpoint";

/// Where it names what is in a loop, and what the backward pass runs.
pub(super) const BODY: &str = "while/body";
const TRANSPOSED: &str = "transpose(";

/// Operations of the backward pass in one checkpointed scope: all, and those that are computed again.
type Count = (usize, usize);

/// Looks for checkpoints outside of loops, by the names of the backward pass.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    if case.memory.kept.turn.is_none() {
        return;
    }
    // Most programs have none, which the names of the values that have memory tell.
    if !backward_names(case).any(|name| name.contains(CHECKPOINT)) {
        return;
    }
    let told = findings.len();
    of_scopes(case, findings);
    if findings.len() == told {
        of_functions(case, findings);
    }
}

/// Names of the values that the backward pass makes.
fn backward_names<'a>(case: &'a ProgramContext<'_>) -> impl Iterator<Item = &'a str> {
    case.families_of(Pass::Backward).map(|row| case.name(row))
}

/// Values of the forward pass at the peak that are kept for the backward pass, outside of loops. Weights that are gathered
/// are no values.
fn kept_of<'a>(case: &'a ProgramContext<'_>) -> impl Iterator<Item = &'a AtPeak> {
    let is_value = |t: &&AtPeak| case.is_kept_of_forward(t) && !case.is_in_loop(t);
    case.peak.iter().filter(is_value).filter(|t| !holds_gathered(case.program, t.buffer))
}

/// Bytes of what is computed again, of the names that pass a test.
fn computed_again(case: &ProgramContext<'_>, is_meant: impl Fn(&str) -> bool) -> u64 {
    let again = case.families_of(Pass::Recomputed).filter(|&row| is_meant(case.name(row)));
    again.map(|row| case.memory.families.list[row].size).total()
}

/// Checkpoints around functions without names of their own: all layers, that names do not show.
fn of_functions(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let kept = &case.memory.kept;
    // Layers beside those of a scan have the checkpoint of its body: what theirs would save is told where that saves inputs.
    if kept.stacks.iter().any(|stack| !stack.is_input) {
        return;
    }
    let around = if kept.stacks.is_empty() { "the layers" } else { "the layers beside the scan" };
    let in_layers = |t: &&AtPeak| kept.turn.as_ref().is_some_and(|turn| turn.layer_of.get(t.family) != Some(&None));
    let held: Vec<&AtPeak> = kept_of(case).filter(in_layers).collect();
    let bytes: u64 = held.iter().map(|t| t.size).total();
    let again_bytes = computed_again(case, |name| !name.contains(BODY));
    if !case.is_worth(bytes) || again_bytes as f64 >= bytes as f64 * LEAST_BYTES {
        return;
    }
    let (mut backward, mut count) = (0usize, (0usize, 0usize));
    for at in case.program.instructions.ids() {
        let name = case.program.text.op_name(at);
        if name.contains(BODY) || !name.contains(TRANSPOSED) {
            continue;
        }
        backward += 1;
        count.0 += usize::from(name.contains(CHECKPOINT));
        count.1 += usize::from(name.contains(AGAIN));
    }
    // One that is around little else says nothing of the layers.
    if count.0 * 2 >= backward {
        tell(case, findings, (around, EVERY), &held, count);
    }
}

/// Checkpoints around scopes that have names of their own.
fn of_scopes(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let mut scopes: BTreeSet<&str> = backward_names(case).filter_map(|name| Some(checkpointed(name)?.0)).collect();
    // What has the name of no layer of its own, such as a library's function, is in other scopes, too.
    for name in backward_names(case).filter(|name| !name.contains(CHECKPOINT)) {
        for part in scope::path(name) {
            scopes.remove(part);
        }
    }
    // By scope, its numbers folded.
    let mut held: BTreeMap<String, Vec<&AtPeak>> = BTreeMap::new();
    for t in kept_of(case) {
        let name = case.name(t.family);
        let parts = scope::path(name);
        let inside = parts.split_last().map_or(&[][..], |found| found.1);
        if let Some(own) = inside.iter().find(|part| scopes.contains(**part)) {
            held.entry(scope::fold(own)).or_default().push(t);
        }
    }
    held.retain(|_, held| case.is_worth(held.iter().map(|t| t.size).total()));
    if held.is_empty() {
        return;
    }
    let counts = counts(case, &scopes);
    for (scope, held) in held {
        let bytes: u64 = held.iter().map(|t| t.size).total();
        let is_own = |name: &str| checkpointed(name).is_some_and(|found| scope::fold(found.0) == scope);
        if (computed_again(case, is_own) as f64) < bytes as f64 * LEAST_BYTES {
            tell(case, findings, (&scope, &scope), &held, counts.get(&scope).copied().unwrap_or_default());
        }
    }
}

/// Reports a checkpoint where hardly any of its operations are computed again: what it is around, and the pattern for that.
fn tell(
    case: &ProgramContext<'_>,
    findings: &mut Vec<Finding>,
    (around, pattern): (&str, &str),
    held: &[&AtPeak],
    (all, again): Count,
) {
    if all < FEWEST || again as f64 >= all as f64 * LEAST {
        return;
    }
    let bytes: u64 = held.iter().map(|t| t.size).total();
    let mut finding = case.finding(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Remat(Checkpoint::layers(pattern))]);
    finding.at_stake_bytes = Some(Bytes(bytes.max(saved)));
    let effect = if case.is_worth(saved) {
        finding.less(" if it had")
    } else {
        format!("{} are kept all the same", Bytes(bytes).short())
    };
    finding.title = format!("The checkpoint around {around} has no effect: {effect}");
    finding.why = format!(
        "Of {} operations of {around} that the backward pass runs under `checkpoint`, {} {} computed again. The values of the forward pass that it would compute are kept instead, {} at the peak, the largest {}.",
        thousands(all as u64),
        thousands(again as u64),
        if again == 1 { "is" } else { "are" },
        held.len(),
        case.describe_first(held)
    );
    finding.advice.push(match Library::of(case) {
        Library::MaxText => "MaxText turns `prevent_cse` off wherever `scan_layers=true` (`should_prevent_cse_in_remat` in its `maxtext_utils.py`), which is right for the scan, but not for layers beside it: let it return `True` for these, or try `scan_layers=false`".to_owned(),
        _ => "leave out `prevent_cse=False` (of `jax.checkpoint` or `nn.remat`), which is for the body of a scan: elsewhere the compiler sees that the same is computed twice, and keeps the first".to_owned(),
    });
    finding.advice.push("a policy that saves everything (`everything_saveable`) has no effect either".to_owned());
    finding.changes_results = ChangesResults::No;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Operations of the backward pass in some checkpointed scopes, by scope with its numbers folded.
fn counts(case: &ProgramContext<'_>, scopes: &BTreeSet<&str>) -> BTreeMap<String, Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for at in case.program.instructions.ids() {
        let name = case.program.text.op_name(at);
        if let Some((scope, is_again)) = checkpointed(&name).filter(|found| scopes.contains(found.0)) {
            let (all, again) = counts.entry(scope::fold(scope)).or_default();
            *all += 1;
            *again += usize::from(is_again);
        }
    }
    counts
}

/// The scope that is checkpointed, and whether an operation is computed again; `None` for what is in no such scope, or in a
/// loop: `mtp_layer_0` of `…/checkpoint/mtp_layer_0/up_proj/dot_general`.
fn checkpointed(op_name: &str) -> Option<(&str, bool)> {
    if !op_name.contains(CHECKPOINT) || op_name.contains(BODY) {
        return None;
    }
    let parts = scope::path(op_name);
    let (_, scopes) = parts.split_last()?;
    let mut inside = scopes.iter().skip_while(|part| **part != CHECKPOINT).skip(1);
    let first = *inside.next()?;
    let is_again = first == AGAIN;
    let scope = if is_again { *inside.next()? } else { first };
    (!scope::is_einsum(scope)).then_some((scope, is_again))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpointed_scope_is_told_from_names_of_the_backward_pass() {
        let scope = |name: &str| checkpointed(name).map(|(scope, is_again)| format!("{scope} {is_again}"));
        let backward = "jit(step)/transpose(jvp(MTP))/jvp(MTP)/checkpoint";
        assert_eq!(scope(&format!("{backward}/mtp_layer_0/up_proj/dot_general")), Some("mtp_layer_0 false".to_owned()));
        let again = format!("{backward}/rematted_computation/mtp_layer_1/mul");
        assert_eq!(scope(&again), Some("mtp_layer_1 true".to_owned()));
        assert_eq!(scope(&format!("{backward}/dot_general")), None, "a function has no name");
        assert_eq!(scope("jit(step)/transpose(jvp(MTP))/while/body/checkpoint/layers/mul"), None, "in a loop");
        assert_eq!(scope("jit(step)/jvp(MTP)/mtp_layer_0/mul"), None);
    }
}
