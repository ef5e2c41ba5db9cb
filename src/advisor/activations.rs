//! Rule `activations`: values of the forward pass that are kept for the backward pass.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::batch_size;
use super::finding::{ChangesResults, Finding, Severity, has_micro_batches};
use super::gathered::is_gather;
use super::included;
use super::library::Library;
use super::offload;
use super::policy;
use super::program_context::{AtPeak, ProgramContext, Total, counted, listed};
use super::scan_parts;
use super::scopes::by_scope;
use super::stages;
use crate::analysis::category;
use crate::analysis::class::{Class, Reason};
use crate::analysis::flow::argument::held_or_sliced;
use crate::analysis::flow::collective::is_gathered;
use crate::analysis::flow::loops::Role as LoopRole;
use crate::analysis::flow::made_of::made_of_outside;
use crate::analysis::names::layer::Layer;
use crate::analysis::names::lookup::is_rematerialised;
use crate::analysis::names::pass::{AGAIN, Pass};
use crate::analysis::names::scope::path;
use crate::analysis::what_if::saved_for_backward::{SavedForBackward, Stack, is_among};
use crate::analysis::what_if::{Base, Checkpoint, Depth, Edit, Role};
use crate::model::{BufferId, Bytes, Category, FastSet, InstructionId, percent, thousands};

/// Name of the rule.
pub const NAME: &str = "activations";

/// Least share of allocated bytes at which activations count as a cause.
const SHARE: f64 = 0.30;

/// Most different stacks listed.
const MOST_STACKS: usize = 4;

/// Least share of allocated bytes that activations not covered by another rule must have.
pub(super) const OWN_SHARE: f64 = 0.10;

/// Share of what scans save that one of them has if it stands for all.
const NEARLY_ALL: f64 = 0.95;

/// Part of what the forward pass makes that must be live in the backward pass, lest derivatives be taken forwards alone,
/// as by `jax.jacfwd`.
const OF_MADE: u64 = 10;

/// Looks for temporaries of the forward pass at the peak.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let kept = &case.memory.kept;
    let is_stack = |t: &&AtPeak| kept.is_stack(t.family);
    let classes = case.analysis.classes(case.program);
    // What checkpoints compute again has a finding of its own.
    let is_made = |t: &&AtPeak| match classes.reason(t.buffer) {
        Reason::Recomputed => false,
        Reason::DroppedBefore => true,
        _ => classes.of(t.buffer) == Class::Activation,
    };
    let all: Vec<&AtPeak> = case.peak.iter().filter(|t| is_stack(t) || is_made(t)).collect();
    let live_later = all.iter().filter(|t| lives_on(case, t)).map(|t| t.size).total();
    if live_later < all.iter().map(|t| t.size).total() / OF_MADE {
        return;
    }
    // Logits and attention scores are activations too, but have rules of their own.
    // Where the remedy of scores changes results, checkpoints of the layers with them do not.
    let has_same_results = !super::attention::has_dropout(case);
    let has_own = |t: &AtPeak| if has_same_results { kept.has_own_remedy(t.family) } else { kept.are_logits(t.family) };
    let mut held: Vec<&AtPeak> = all.iter().copied().filter(|t| !has_own(t)).collect();
    // What one layer works with is made by the forward pass too, and freed before the backward pass begins: little of that is
    // not worth telling apart from what is kept.
    let passing = held.iter().filter(|t| !lives_on(case, t)).map(|t| t.size).total();
    if !case.is_share(passing, OWN_SHARE) {
        held.retain(|t| lives_on(case, t));
    }
    let bytes: u64 = held.iter().map(|t| t.size).total();
    let all: u64 = all.iter().map(|t| t.size).total();
    let is_cause = case.is_share(bytes, OWN_SHARE) && (case.is_share(all, SHARE) || scan_saves_much(case));
    recomputed(case, findings, if is_cause { &[] } else { &held });
    if !is_cause {
        return;
    }
    let mut finding = case.finding(NAME);
    let saved_by_scans: u64 = held.iter().filter(|t| kept.is_stack_of_layers(t.family)).map(|t| t.size).total();
    let saved_by_loops: u64 = held.iter().copied().filter(is_stack).map(|t| t.size).total();
    // What is filled at another time than the peak is not part of it.
    let at_peak: FastSet<u32> = case.peak.iter().map(|t| t.family as u32).collect();
    let is_at_peak = |stack: &Stack| at_peak.contains(&stack.family);
    let is_open = if saved_by_scans.saturating_mul(2) > bytes {
        scans(case, &mut finding, saved_by_scans, &|stack| !stack.is_in_layer && is_at_peak(stack))
    } else if saved_by_loops.saturating_mul(2) > bytes && steps_help_more(case, &held) {
        scans(case, &mut finding, saved_by_loops, &is_at_peak)
    } else {
        layers(case, &mut finding, &held, bytes)
    };
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    advise(case, &mut finding, is_open);
    let is_micro = has_micro_batches(finding.edits());
    finding.changes_results =
        if is_micro && case.normalises_over_the_batch() { ChangesResults::Maybe } else { ChangesResults::No };
    findings.push(finding);
}

/// Whether what the forward pass has made is live in the backward pass.
fn lives_on(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    let is_activation = || case.analysis.classes(case.program).of(t.buffer) == Class::Activation;
    case.memory.kept.is_stack(t.family) || (!is_computed_again(case, t) && is_activation())
}

/// Whether the compiler computes a temporary again by itself, which then is there for a moment.
fn is_computed_again(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    let made = case.program.buffers.instruction_of(case.root(t));
    made.is_some_and(|at| is_rematerialised(case.program, at))
}

/// Whether checkpoints of the body of a scan over layers save much, though what it saves is not most of the peak.
fn scan_saves_much(case: &ProgramContext<'_>) -> bool {
    let kept = &case.memory.kept;
    let has_stacks = case.peak.iter().any(|t| kept.is_stack_of_layers(t.family));
    has_stacks && {
        let prediction = case.try_out(&[Edit::Remat(Checkpoint::Scan)]);
        prediction.undecided.is_none() && case.is_share(case.saved(&prediction), OWN_SHARE)
    }
}

/// Reports values that the backward pass recomputes and holds at once; `beside` are those that it keeps besides, if no
/// finding of their own reports them.
fn recomputed(case: &ProgramContext<'_>, findings: &mut Vec<Finding>, beside: &[&AtPeak]) {
    let kept = beside.iter().map(|t| t.size).total();
    let saved = &case.memory.kept;
    let is_recomputed = |family: usize| saved.passes.get(family) == Some(&Pass::Recomputed);
    // Weights that are gathered once more have a rule of their own.
    let is_own = |t: &&AtPeak| {
        is_recomputed(t.family) && !saved.is_stack(t.family) && !saved.has_own_remedy(t.family) && !is_gather(case, t)
    };
    let held: Vec<&AtPeak> = case.peak.iter().filter(is_own).collect();
    let bytes: u64 = held.iter().map(|t| t.size).total();
    if !case.is_share(bytes, OWN_SHARE) || !case.is_share(bytes.saturating_add(kept), SHARE) {
        return;
    }
    let families = case.memory.families.list.iter().enumerate();
    let in_all: u64 = families.filter(|row| is_recomputed(row.0)).map(|row| row.1.size).total();
    // What a loop recomputes is that of one step.
    let in_loops: u64 = held.iter().copied().filter(|t| case.is_in_loop(t)).map(|t| t.size).total();
    let is_at_once = bytes.saturating_mul(2) > in_all
        && in_loops.saturating_mul(2) < bytes
        && is_of_most_checkpoints(case, &held, &is_recomputed);
    let alike = most_alike(case, &held).filter(|&alike| alike >= OF_SEVERAL_LAYERS);
    let mut finding = case.finding(NAME);
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.title = format!(
        "Activations recomputed in the backward pass take {} of the peak: {}",
        percent(bytes, case.memory.peak.max(1)),
        Bytes(bytes).short()
    );
    let made = format!(
        "{} made by a checkpoint's second forward pass, the largest {}.",
        counted(held.len(), "temporary at the peak is", "temporaries at the peak are"),
        case.describe_first(&held)
    );
    finding.why = if is_at_once {
        format!(
            "{made} Nearly all that is recomputed is live at once: a checkpoint around the whole model recomputes all of it before the backward pass begins, so the peak is as high as without it; with one around each block, a single block's would be live at a time."
        )
    } else if let Some(alike) = alike {
        format!(
            "{made} {alike} of them have the same shape: the compiler recomputes several layers before it is done with the first of them."
        )
    } else if kept > 0 {
        format!(
            "{made} The checkpoints are recomputed one after the other; this is what one of them holds. {} more are kept from the forward pass, such as the inputs of the checkpoints.",
            Bytes(kept).short()
        )
    } else {
        format!("{made} The checkpoints are recomputed one after the other; this is what one of them holds.")
    };
    if is_at_once {
        finding.advice.push(Library::of(case).remat("*"));
    } else if alike.is_some() {
        finding.advice.push(Library::of(case).scan_layers().to_owned());
        finding.advice.extend(micro(case));
    } else {
        finding.advice.push(
            if case.has_steps_alone() {
                "checkpoint smaller parts of each step: less is recomputed at a time"
            } else if case.memory.kept.scores.is_empty() {
                "checkpoint smaller parts of each block separately: less is recomputed at a time"
            } else {
                "checkpoint smaller parts, such as attention and MLP of each block separately: less is recomputed at a time"
            }
            .to_owned(),
        );
        finding.advice.extend(micro(case));
    }
    finding.changes_results = ChangesResults::No;
    let named = if is_at_once || alike.is_some() { &[] } else { beside };
    finding.buffers = held.iter().chain(named).map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Whether what is recomputed is of most of the scopes that are checkpointed, not of one of several.
fn is_of_most_checkpoints(case: &ProgramContext<'_>, held: &[&AtPeak], is_recomputed: &dyn Fn(usize) -> bool) -> bool {
    let scope = |family: usize| {
        let path = path(case.name(family));
        let at = path.iter().rposition(|part| part.contains(AGAIN))?;
        path.get(at + 1).map(|scope| (*scope).to_owned())
    };
    let families = 0..case.memory.families.list.len();
    let all: BTreeSet<String> = families.filter(|&family| is_recomputed(family)).filter_map(scope).collect();
    let own: BTreeSet<String> = held.iter().filter_map(|t| scope(t.family)).collect();
    own.len() * 2 > all.len() || all.is_empty()
}

/// From how many arrays of one shape on what is recomputed is of several layers.
const OF_SEVERAL_LAYERS: usize = 12;

/// How many of the arrays that no loop makes have the shape that takes most of their bytes.
fn most_alike(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Option<usize> {
    let mut by_shape: BTreeMap<&[i64], (u64, usize)> = BTreeMap::new();
    for t in held.iter().filter(|t| !case.is_in_loop(t)) {
        let Some(node) = case.node(t.buffer) else { continue };
        let (bytes, count) = by_shape.entry(&node.dimensions).or_default();
        *bytes = bytes.saturating_add(t.size);
        *count += 1;
    }
    by_shape.into_values().max().map(|most| most.1)
}

/// Advice to run a step on parts of the batch; `None` where there are none.
fn micro(case: &ProgramContext<'_>) -> Option<String> {
    case.memory.data.first().filter(|data| data.batch() > 1 && !case.memory.is_batch_of_state())?;
    let results = if case.normalises_over_the_batch() {
        "batch normalisation then sees one part at a time, which changes results a little"
    } else if case.has_experts() {
        "results stay the same where the loss is a mean over samples; where experts have a number of places, or the loss balances them, each part is then taken by itself"
    } else {
        "results stay the same where the loss is a mean over samples"
    };
    if case.memory.leaves_samples_out(case.program) {
        return None;
    }
    let summed = case.memory.summed_parts(case.program);
    if case.memory.written_out(case.program).is_some() {
        let how = Library::of(case).micro_batches(None);
        return Some(format!(
            "a loop over the {summed} micro-batches, which are in memory at once now ({how}); {results}"
        ));
    }
    if summed > 1 && batch_size::micro_batches(case).next().is_none() {
        return Some(format!(
            "the {summed} micro-batches have one sample each and cannot be smaller: a shorter sequence, or one that is divided over devices"
        ));
    }
    if summed > 1 {
        return Some(format!("more and smaller micro-batches than the {summed} of now; {results}"));
    }
    // State of `optax.MultiSteps`.
    let accumulates = |base: &Base| matches!(&base.role, Role::Argument { path, .. } if path.contains("acc_grads"));
    let how = if case.memory.base.iter().any(accumulates) {
        "`jax.lax.scan` over the parts, or a smaller batch and more steps of the `optax.MultiSteps` that is there"
            .to_owned()
    } else {
        Library::of(case).micro_batches(None)
    };
    Some(format!("micro-batches: run the step on parts of the batch and average the gradients ({how}); {results}"))
}

/// A stack in words without what is true of all of them: `saved by the scan for 32 layers`.
fn without_lead(words: &str) -> String {
    let parts = words.split_once('`').and_then(|(shape, label)| Some((shape, label.split_once(": ")?.1)));
    parts.map_or_else(|| words.to_owned(), |(shape, name)| format!("{shape}`{name}"))
}

/// Whether checkpointing the steps of loops inside layers takes fewer bytes than checkpointing the layers.
fn steps_help_more(case: &ProgramContext<'_>, held: &[&AtPeak]) -> bool {
    let saved = |scope: Checkpoint| case.saved(&case.try_out(&[Edit::Remat(scope)]));
    let first = stages::patterns(case, held).into_iter().next();
    saved(Checkpoint::Scan) > first.map_or(0, |pattern| saved(Checkpoint::layers(&pattern)))
}

/// Bytes of stacks at the peak that scans save in the memory of results, which is free until these are written.
fn saved_in_results(case: &ProgramContext<'_>) -> u64 {
    let (program, labels) = (case.program, case.analysis.labels(case.program));
    let is_of_result = |buffer: BufferId| {
        let allocation = program.buffers.allocation_of(buffer).and_then(|id| program.allocations.get(id.index()));
        allocation.is_some_and(|allocation| allocation.maybe_live_out && !allocation.is_parameter)
    };
    let is_saved = |buffer: BufferId| labels.role(program, buffer).is_some_and(|part| part.role == LoopRole::Saved);
    let rows = case.space.at_peak.rows.iter().filter(|row| is_of_result(row.0) && is_saved(row.0));
    rows.map(|row| row.1.0).total()
}

/// Describes what the scans save whose stacks are `meant`; returns whether anything is left to recompute.
fn scans(case: &ProgramContext<'_>, finding: &mut Finding, bytes: u64, meant: &dyn Fn(&Stack) -> bool) -> bool {
    let kept = &case.memory.kept;
    let size = |stack: &Stack| case.memory.families.list[stack.family as usize].size;
    // The scan that saves most gives the finding its name.
    let main = case.main_scan(meant);
    let (count, steps) = main;
    let many = steps.many();
    let is_of_scan = |stack: &&Stack| meant(stack) && (stack.layers, stack.steps) == (count, steps);
    let is_told = |stack: &Stack| kept.has_own_remedy(stack.family as usize);
    let told = kept.stacks.iter().filter(is_of_scan).filter(|stack| is_told(stack)).map(size).total();
    let own: Vec<&Stack> = kept.stacks.iter().filter(is_of_scan).filter(|stack| !is_told(stack)).collect();
    let unlisted = without_events(case, &own);
    let mut alike: BTreeMap<(Reverse<u64>, String), usize> = BTreeMap::new();
    for stack in &own {
        let described = without_lead(&case.describe(case.memory.families.list[stack.family as usize].root));
        *alike.entry((Reverse(size(stack)), described)).or_default() += 1;
    }
    let listed: Vec<String> = alike
        .iter()
        .take(MOST_STACKS)
        .map(|((size, text), times)| {
            let times = if *times > 1 { format!("{times} × ") } else { String::new() };
            format!("{times}{} {text}", Bytes(size.0).short())
        })
        .collect();
    let more = alike.values().skip(MOST_STACKS).sum::<usize>() + unlisted;
    let of_it = own.iter().filter(|stack| case.peak.iter().any(|t| t.family == stack.family as usize));
    let of_it = of_it.map(|stack| size(stack)).total();
    let are_told =
        |rows: &[u32]| kept.stacks.iter().filter(is_of_scan).any(|stack| rows.binary_search(&stack.family).is_ok());
    let besides = of_both((are_told(&kept.scores), are_told(&kept.logits))).filter(|_| case.is_share(told, LEFT_OUT));
    let besides = besides.map_or_else(String::new, |others| format!(" besides {others}"));
    let (whole, share) = (Bytes(bytes).short(), percent(bytes, case.memory.peak.max(1)));
    let scans = own.iter().map(|stack| stack.of_loop).collect::<BTreeSet<_>>().len();
    // A scan over repeats of a scan over layers has as many of them in each step.
    let inner = own.iter().map(|stack| stack.inner).max().unwrap_or(1);
    let count = if inner > 1 { format!("{count} \u{d7} {inner}") } else { count.to_string() };
    finding.title = if scans > 1 {
        format!(
            "{scans} scans, each over {count} {many}, together save {whole}{besides} for the backward pass ({share} of the peak)"
        )
    } else if (of_it as f64) < bytes as f64 * NEARLY_ALL {
        format!(
            "Scans save {whole}{besides} for the backward pass ({share} of the peak), {} of it the one over {count} {many}",
            Bytes(of_it).short()
        )
    } else {
        format!("The scan over {count} {many} saves {whole}{besides} for the backward pass ({share} of the peak)")
    };
    finding.why = format!(
        "For each of the {count} {many}{} the forward pass keeps a slice of {}: {}{}.",
        if scans > 1 { format!(" of {scans} scans") } else { String::new() },
        match own.len() + unlisted {
            1 => "one stack".to_owned(),
            count => format!("{count} stacks"),
        },
        listed.join("; "),
        if more > 0 { format!("; and {more} more") } else { String::new() }
    );
    let in_results = saved_in_results(case);
    if case.is_worth(in_results) {
        let bytes = Bytes(in_results).short();
        let _ = write!(finding.why, " More stacks ({bytes}) lie in the memory of results until these are written.");
    }
    let (gathered, others): (Vec<&Stack>, Vec<&Stack>) = own.iter().partition(|stack| holds_gathered(case, stack));
    let gathered = gathered.into_iter().map(size).total();
    if case.is_worth(gathered) {
        let _ = write!(
            finding.why,
            " {} of it are arrays gathered from other devices, such as weights: a checkpoint whose policy does not save them gathers them again in the backward pass.",
            Bytes(gathered).short()
        );
    }
    let weights = others.into_iter().filter(|stack| holds_weights(case, stack)).map(size).total();
    if case.is_worth(weights) {
        let _ = write!(
            finding.why,
            " {} of it are weights as the layers use them, cast or unpacked: with a checkpoint each layer makes them again.",
            Bytes(weights).short()
        );
    }
    let are_inputs = kept.stacks.iter().all(|stack| stack.is_input);
    let saved = if are_inputs { 0 } else { case.fill(finding, vec![Edit::Remat(Checkpoint::Scan)]) };
    // Loops inside the layers may keep a little more.
    if are_inputs || (own.iter().all(|stack| stack.is_input) && !case.is_worth(saved)) {
        finding.effect = None;
        finding.advice.push(match steps {
            _ if steps.are_layers() => format!("only the input of each {} is saved: the body is checkpointed already. Offload the inputs to the host ({}): {}. Or shard them along the sequence, or nest the scan: groups of layers checkpointed as one, each layer in them still on its own", steps.one(), Library::of(case).offload_inputs(), offloaded(case)),
            _ => format!("only the input of each {} is saved: the body is checkpointed already. Checkpoint groups of them instead: a scan in a scan, with `jax.checkpoint` around the inner one", steps.one()),
        });
        return false;
    }
    included::say(case, finding, (bytes, saved), many);
    let segments = case.try_out(&[Edit::Remat(Checkpoint::Scan)]).scan_segments;
    finding.advice.push(Library::of(case).remat_scan(main, segments));
    finding.advice.extend(scan_parts::advice(case).filter(|_| segments.is_none()));
    segments.is_none()
}

/// How many stacks at the peak the loops of others save that the heap trace of the file has not.
fn without_events(case: &ProgramContext<'_>, own: &[&Stack]) -> usize {
    let (program, labels) = (case.program, case.analysis.labels(case.program));
    let loops: FastSet<InstructionId> = own.iter().map(|stack| stack.of_loop).collect();
    let is_unlisted = |buffer: BufferId| {
        case.memory.families.of(buffer).is_none()
            && labels.role(program, buffer).is_some_and(|part| part.role == LoopRole::Saved && loops.contains(&part.at))
    };
    let temporary = |buffer: BufferId| category(program, buffer) == Category::Temporary;
    case.space.at_peak.rows.iter().filter(|row| temporary(row.0) && is_unlisted(row.0)).count()
}

/// What offloading all that scans save comes to, in words.
fn offloaded(case: &ProgramContext<'_>) -> String {
    let families: Vec<usize> = case.memory.kept.stacks.iter().map(|stack| stack.family as usize).collect();
    let bytes = families.iter().map(|&family| case.memory.families.list[family].size).total();
    let without = case.memory.without(case.program, &families);
    let mut words = format!("at most {} less", Bytes(case.saved(&without)).short());
    if case.severity() == Severity::Critical {
        let fits = case.memory.capacity.is_some_and(|capacity| without.expected().0 <= capacity);
        words.push_str(if fits { ", so that it may fit" } else { ", which alone is not enough" });
    }
    if let Some(need) = offload::host_memory(case, bytes) {
        let _ = write!(words, "; {need} of host memory for them");
    }
    words
}

/// Whether each slice of a stack is what was gathered from other devices.
fn holds_gathered(case: &ProgramContext<'_>, stack: &Stack) -> bool {
    let labels = case.analysis.labels(case.program);
    let root = case.memory.families.list[stack.family as usize].root;
    let written = labels.role(case.program, root).and_then(|part| part.written.clone());
    written.is_some_and(|value| is_gathered(case.program, value))
}

/// Whether each slice of a stack is of the weights of its layer: cast, or unpacked from fewer bits.
fn holds_weights(case: &ProgramContext<'_>, stack: &Stack) -> bool {
    let (program, labels) = (case.program, case.analysis.labels(case.program));
    let root = case.memory.families.list[stack.family as usize].root;
    let written = labels.role(program, root).and_then(|part| part.written.clone());
    let classes = case.analysis.classes(program);
    let is_weight = |parameter: InstructionId| {
        let number = program.instructions.argument.get(parameter.index()).copied().map(i64::from);
        let row = case.arguments().find(|argument| Some(argument.2) == number);
        row.is_some_and(|row| classes.of(case.memory.base[row.0].buffer) == Class::Weight)
    };
    written.is_some_and(|value| {
        held_or_sliced(program, &labels.loops, value.clone()).is_some_and(|held| is_weight(held.parameter)) || {
            let made_of = made_of_outside(program, &labels.loops, value);
            made_of.is_all && made_of.arguments.into_iter().any(is_weight)
        }
    })
}

/// Share of allocated bytes from which activations that have rules of their own are named as left out.
const LEFT_OUT: f64 = 0.01;

/// Which activations at the peak have rules of their own, in words; `None` if hardly any.
fn told_elsewhere(case: &ProgramContext<'_>) -> Option<&'static str> {
    let kept = &case.memory.kept;
    let is_left_out = |rows: &[u32]| case.is_share(case.held(rows).iter().map(|t| t.size).total(), LEFT_OUT);
    let are_scores_elsewhere = !super::attention::has_dropout(case);
    of_both((are_scores_elsewhere && is_left_out(&kept.scores), is_left_out(&kept.logits)))
}

/// Attention scores, logits, or both, in words.
const fn of_both(are_scores_and_logits: (bool, bool)) -> Option<&'static str> {
    match are_scores_and_logits {
        (true, false) => Some("attention scores"),
        (false, true) => Some("logits"),
        (true, true) => Some("attention scores and logits"),
        (false, false) => None,
    }
}

/// Describes what unrolled layers keep; returns whether anything is left to recompute.
fn layers(case: &ProgramContext<'_>, finding: &mut Finding, held: &[&AtPeak], bytes: u64) -> bool {
    let scopes = by_scope(case, held);
    let listed: Vec<String> = scopes
        .iter()
        .take(4)
        .map(|(scope, bytes)| {
            let scope = if scope.is_empty() { "outside any scope" } else { scope };
            format!("{scope}: {}", Bytes(*bytes).short())
        })
        .collect();
    let kept: Vec<&AtPeak> = held.iter().filter(|t| lives_on(case, t)).copied().collect();
    let kept_bytes = kept.iter().map(|t| t.size).total();
    let passing = bytes.saturating_sub(kept_bytes);
    let is_all_kept = passing == 0;
    finding.title = format!(
        "{} take {} of the peak: {}{}",
        told_elsewhere(case)
            .map_or_else(|| "Activations".to_owned(), |others| format!("Activations other than {others}")),
        percent(bytes, case.memory.peak.max(1)),
        Bytes(bytes).short(),
        match (is_all_kept, kept_bytes) {
            (true, _) => " kept for the backward pass".to_owned(),
            (false, 0) => String::new(),
            (false, _) => format!(", {} of it kept for the backward pass", Bytes(kept_bytes).short()),
        }
    );
    let more = if scopes.len() > 4 { format!(" and {} more", scopes.len() - 4) } else { String::new() };
    let has_scopes = scopes.iter().any(|scope| !scope.0.is_empty());
    let made = counted(held.len(), "temporary at the peak is", "temporaries at the peak are");
    finding.why = format!(
        "{made} made by the forward pass (`jvp(…)`){}, the largest {}.{}",
        if is_all_kept {
            " and kept for the backward pass".to_owned()
        } else {
            let count = if kept.is_empty() { "none".to_owned() } else { thousands(kept.len() as u64) };
            let many = if kept.len() == 1 { "is" } else { "are" };
            let again = held.iter().any(|t| is_computed_again(case, t));
            let or_again = if again { " or the compiler computes again" } else { "" };
            let others = if kept.len() + 1 == held.len() { "the other is" } else { "the others are" };
            format!(
                "; {count} of them {many} kept for the backward pass, {others} what the forward pass works with{or_again}"
            )
        },
        case.describe_first(held),
        if has_scopes { format!(" By scope: {}{more}.", listed.join(", ")) } else { String::new() }
    );
    let scores: u64 = held.iter().filter(|t| is_among(&case.memory.kept.scores, t.family)).map(|t| t.size).total();
    if case.is_worth(scores) {
        let _ = write!(finding.why, " {} of them are attention scores.", Bytes(scores).short());
    }
    let patterns = stages::patterns(case, held);
    let checkpointed =
        held.iter().filter(|t| SavedForBackward::is_checkpointed(case.name(t.family))).map(|t| t.size).total();
    if checkpointed.saturating_mul(2) > bytes {
        finding.advice.push("the layers are checkpointed already, as their operation names show; what is left is their inputs and what lies between them".to_owned());
        return false;
    }
    // Layers that are checkpointed already are not told again beside others that are not.
    let are_done = |pattern: &String| stages::keep_inputs_alone(case, std::slice::from_ref(pattern), held);
    let (done, open): (Vec<String>, Vec<String>) = patterns.iter().cloned().partition(are_done);
    let patterns = if open.is_empty() { patterns } else { open };
    if (!done.is_empty() && patterns == done) || stages::keep_inputs_alone(case, &patterns, held) {
        in_parts(case, finding, 0);
        finding.advice.push(policy::GROUPS.to_owned());
        return false;
    }
    let Some(patterns) = stages::worthwhile(case, patterns) else {
        in_parts(case, finding, 0);
        finding.advice.push("`jax.checkpoint` around each block of layers, not around the whole model, which leaves the peak as it is; no repeated blocks are recognised in the names (a `jax.named_scope` around each, with its number, would show what checkpointing it saves)".to_owned());
        return true;
    };
    let edits = vec![stages::edit(&patterns)];
    let saved = case.saved(&case.try_out(&edits));
    let is_little = saved.saturating_mul(LITTLE) < bytes;
    if is_little && in_parts(case, finding, saved.saturating_mul(2)) {
        if case.is_worth(saved) {
            let how = remat_each(case, &patterns);
            finding.advice.push(format!("{how}; this alone saves {}", Bytes(saved).short()));
        }
        return true;
    }
    if case.is_worth(saved) {
        case.fill(finding, edits);
        included::say(case, finding, (bytes, saved), "layers");
        finding.is_guess = patterns == ["*"];
        let how = remat_each(case, &patterns);
        match stages::checkpointed(case, &patterns) {
            Some((done, all)) => {
                let many = if done == 1 { "is" } else { "are" };
                let already = format!(" {done} of the {all} layers {many} checkpointed already.");
                finding.why.push_str(&already);
                finding.advice.push(match all - done {
                    1 => format!("checkpoint the other layer too: {how}"),
                    left => format!("checkpoint the other {left} too: {how}"),
                });
            }
            None => finding.advice.push(how),
        }
    }
    true
}

/// How to checkpoint layers. MaxText runs those that do not fill a cycle of layers outside the scan that its policy is for.
fn remat_each(case: &ProgramContext<'_>, patterns: &[String]) -> String {
    let (library, kept) = (Library::of(case), &case.memory.kept);
    if library == Library::MaxText && !kept.stacks.is_empty() && kept.passes.contains(&Pass::Recomputed) {
        return format!(
            "the layers of the scan are checkpointed already; {} run outside of it, as they do not fill a cycle of layers: a number of layers that does, or `jax.checkpoint` around each of them",
            listed(patterns, MOST_STACKS)
        );
    }
    if library == Library::Keras && !are_named_alone(case, patterns) {
        return format!(
            "Keras: the layers of each {} in a `keras.Model` of their own, with `jax.checkpoint` around its call as a function of its arrays alone (`jax.checkpoint(lambda x: block(x, training=True))`); around single layers it keeps the input of each",
            listed(patterns, MOST_STACKS)
        );
    }
    library.remat_each(patterns)
}

/// Whether layers of some patterns have scopes of their own in the names of operations, most bytes of them, rather than names
/// that begin alike, as `stack2_block9_0_bn` and `stack2_block9_1_conv`.
fn are_named_alone(case: &ProgramContext<'_>, patterns: &[String]) -> bool {
    let kept = &case.memory.kept;
    let of_layers = case.peak.iter().filter_map(|t| Some((kept.layer(t.family)?, t)));
    let meant = || of_layers.clone().filter(|(layer, _)| patterns.contains(&layer.pattern));
    let is_alone = |(layer, t): &(&Layer, &AtPeak)| is_scope_in(layer.own_name(), case.name(t.family));
    let alone = meant().filter(is_alone).map(|row| row.1.size).total();
    alone.saturating_mul(2) > meant().map(|row| row.1.size).total()
}

/// Whether a scope stands in an operation name as it is, not as the beginning of another.
fn is_scope_in(scope: &str, name: &str) -> bool {
    path(name).contains(&scope)
}

/// Share of what a program needs by which it may be over and almost fit.
const ALMOST: f64 = 0.10;

/// Part of the bytes that are kept below which checkpoints save little.
const LITTLE: u64 = 4;

/// Suggests micro-batches for activations that no checkpoint removes, if they save more than `least` bytes.
fn in_parts(case: &ProgramContext<'_>, finding: &mut Finding, least: u64) -> bool {
    let edits = |parts: u32| vec![Edit::Micro(parts)];
    let mut numbers = batch_size::micro_batches(case);
    let Some(fewest) = numbers.clone().next() else { return false };
    let parts = numbers.find(|&parts| case.fits_with(&edits(parts), Depth::Verdict)).unwrap_or(fewest);
    let saved = case.saved(&case.try_out(&edits(parts)));
    let is_better = case.is_worth(saved) && saved > least;
    if is_better {
        case.fill(finding, edits(parts));
    }
    is_better
}

fn advise(case: &ProgramContext<'_>, finding: &mut Finding, is_open: bool) {
    if is_open && let Some(policy) = policy::of_checkpoints(case, finding) {
        finding.advice.push(format!("{policy}{}", super::attention::other_generator(case)));
    }
    finding.advice.extend(micro(case));
    let over = case.memory.capacity.map_or(0, |capacity| case.allocated().saturating_sub(capacity));
    if over == 0 || over as f64 > case.allocated() as f64 * ALMOST || case.memory.is_gpu {
        return;
    }
    finding.advice.push(
        "as it almost fits: in `LIBTPU_INIT_ARGS`, `--xla_tpu_rematerialization_algo=PEAK_PRIORITY`, then `--xla_tpu_rematerialization_max_block_size_limit`, `--xla_tpu_rematerialization_block_effort_factor` and `--xla_tpu_pre_fusion_remat=true` (slower compilation; the last may change rounding)".to_owned(),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_is_a_scope_or_the_beginning_of_several() {
        assert!(is_scope_in("encoder_1", "jit(step)/jvp(encoder_1)/mlp/mul"));
        assert!(is_scope_in("layer_1", "jit(step)/jvp(Model)/layer_1/mlp/mul"));
        assert!(!is_scope_in("block9", "jit(step)/jvp(block9_1_conv)/conv_general_dilated"));
        assert!(!is_scope_in("encoder_1", "jit(step)/jvp(encoder_11)/mul"));
    }
}
