//! Rule `temporaries`: a peak of temporaries that no other rule explains; if most of them are the state of a loop, that.

use std::fmt::Write as _;

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::made_of::Kinds;
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use super::{batch_size, fragmentation, layout_copy, padding, precision};
use crate::analysis::class::Class;
use crate::analysis::flow::loops::{Role, is_written_by_users};
use crate::analysis::names::pass::Pass;
use crate::analysis::names::scope::path;
use crate::analysis::what_if::batch::DataArgument;
use crate::analysis::what_if::saved_for_backward::is_among;
use crate::analysis::what_if::{Checkpoint, EVERY, Edit};
use crate::model::{BufferId, Bytes, FastSet, Opcode, outline, percent};

/// Name of the rule.
pub const NAME: &str = "temporaries";

/// Name of the finding where most temporaries are the state of a loop.
pub const LOOP: &str = "loop_state";

/// Least share of allocated bytes at which temporaries are reported.
const SHARE: f64 = 0.50;

/// Why random bits take memory.
const DRAWN_IN_STEPS: &str =
    "JAX's default generator computes random bits in many steps, which take memory where a layer is checkpointed";

/// Most buffers named.
const MOST: usize = 3;

/// A cause explains the peak from this part of the temporaries' bytes.
const EXPLAINS: u64 = 4;

/// Least share of allocated bytes saved by a change whose finding comes before one of temporaries in general.
const CHANGES: f64 = 0.10;

/// Families that hold what a loop passes from step to step (ascending), or of that what it collects.
fn loop_state(case: &ProgramContext<'_>, roles: &[Role]) -> Vec<u32> {
    let labels = case.analysis.labels(case.program);
    let is_carried = |buffer| {
        let at = case.program.buffers.instruction_of(buffer)?;
        // The compiler's own loops, such as products in parts, pass on what they like.
        let is_loop = case.program.instructions.opcode.get(at.index()) == Some(&Opcode::WHILE)
            && is_written_by_users(&case.program.text.op_name(at));
        let part = is_loop.then(|| labels.loops.part(at, &case.program.buffer_index(buffer)))??;
        Some(roles.contains(&part.role))
    };
    let members = case.memory.families.member_of.iter();
    let mut rows: Vec<u32> = members
        .filter(|&&(buffer, _)| is_carried(crate::model::BufferId(buffer)) == Some(true))
        .map(|&(_, family)| family)
        .collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// Copies at the peak with the type and the elements of what loops pass from step to step.
fn copies_of_state<'a>(case: &'a ProgramContext<'_>, carried: &[&AtPeak]) -> Vec<&'a AtPeak> {
    let array = |buffer| case.node(buffer).map(|node| (node.element_type, outline(&node.dimensions)));
    let state: FastSet<_> = carried.iter().filter_map(|t| array(t.buffer)).collect();
    let known: FastSet<BufferId> = carried.iter().map(|t| t.buffer).collect();
    let is_copy = |t: &&AtPeak| {
        let at = case.program.buffers.instruction_of(t.buffer);
        at.is_some_and(|at| case.program.instructions.opcode.get(at.index()) == Some(&Opcode::COPY))
            && !known.contains(&t.buffer)
            && array(t.buffer).is_some_and(|own| state.contains(&own))
    };
    case.peak.iter().filter(is_copy).collect()
}

/// Names the largest temporaries, where they are most of the peak and no other rule found as large a cause.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let bytes: u64 = case.peak.iter().map(|t| t.size).total();
    let explains = |f: &Finding| f.program == Some(case.row) && !f.is_remedy && f.weight() >= bytes / EXPLAINS;
    if !case.is_share(bytes, SHARE) || findings.iter().any(explains) {
        others(case, findings);
        return;
    }
    let mut carried = case.held(&loop_state(case, &[Role::Carry, Role::Collected]));
    // Copies of arguments in another layout have a rule of their own.
    carried.retain(|t| layout_copy::copied_argument(case, t.buffer).is_none());
    let own = carried.iter().map(|t| t.size).total();
    carried.extend(copies_of_state(case, &carried));
    carried.sort_by_key(|t| (std::cmp::Reverse(t.size), t.buffer));
    let in_loops: u64 = carried.iter().map(|t| t.size).total();
    let has_copies = case.is_worth(in_loops.saturating_sub(own));
    let is_loop = in_loops.saturating_mul(2) > bytes;
    let collected: u64 = case.held(&loop_state(case, &[Role::Collected])).iter().map(|t| t.size).total();
    let is_collected = collected.saturating_mul(2) > in_loops;
    let mut finding = case.finding(if is_loop { LOOP } else { NAME });
    case.stake(&mut finding, if is_loop { in_loops } else { bytes });
    finding.title = if is_loop {
        format!(
            "{} {} of the peak: {}",
            match (is_collected, has_copies) {
                (true, _) => "What loops collect takes",
                (false, true) => "The state of loops takes, with copies of it,",
                (false, false) => "The state of loops takes",
            },
            percent(in_loops, case.at_peak()),
            Bytes(in_loops).short()
        )
    } else {
        format!("Temporaries take {} of the peak: {}", percent(bytes, case.at_peak()), Bytes(bytes).short())
    };
    let held: Vec<&AtPeak> = if is_loop { carried } else { case.peak.iter().collect() };
    let kinds = (!is_loop).then(|| Kinds::new(case, &held));
    if let Some(most) = kinds.as_ref().and_then(Kinds::most) {
        let _ = write!(finding.title, ", {most}");
    }
    let these = match (is_loop, is_collected) {
        (true, true) => {
            Some(counted(held.len(), "array that is filled step by step is", "arrays that are filled step by step are"))
        }
        (true, false) if has_copies => Some(format!(
            "{} arrays that are passed from step to step, or copies of such in another layout ({}), are",
            held.len(),
            Bytes(in_loops.saturating_sub(own)).short()
        )),
        (true, false) => Some(counted(
            held.len(),
            "array that is passed from step to step is",
            "arrays that are passed from step to step are",
        )),
        (false, _) => None,
    };
    let largest = largest(case, &held);
    finding.why = these.map_or_else(
        || format!("The largest: {largest}."),
        |these| format!("{these} live at the peak; the largest: {largest}."),
    );
    finding.why.extend(kinds.as_ref().and_then(Kinds::sentence));
    if is_loop && is_collected {
        finding.advice.push("collect less in each step: what is made of it (a sum, a mean, the last step), carried through the loop, or only the arrays that are read afterwards".to_owned());
        finding.advice.push("fewer steps at a time, or a narrower type".to_owned());
    } else if is_loop {
        finding.advice.push("pass less from step to step: a narrower type, fewer positions, or only indices of what is kept outside the loop".to_owned());
        finding.advice.push("update the state in place (`.at[…].set`, `jax.lax.dynamic_update_slice`): reordering or gathering it makes a copy as large as itself".to_owned());
    } else {
        let are_copies = advise(case, &mut finding, &held, kinds.as_ref());
        let are_others = are_copies || kinds.as_ref().is_some_and(|kinds| !kinds.may_be_kept());
        checkpoint(case, &mut finding, findings, are_others);
    }
    // What can be changed says more than what is there, unless that is one thing.
    let is_cause = |f: &Finding| {
        let saved = f.saves_bytes().map_or(0, |saved| saved.0);
        f.program == Some(case.row) && !f.is_remedy && case.is_share(saved, CHANGES)
    };
    let is_one_thing = |kinds: &Kinds| kinds.are_alike() || kinds.are_random();
    finding.is_remedy = kinds.is_some_and(|kinds| !is_one_thing(&kinds)) && findings.iter().any(is_cause);
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Least share of allocated bytes of temporaries that no other finding names.
const OTHERS: f64 = 0.20;

/// The same, where most of them are alike: many small ones of one operation are one cause.
const OF_ONE_KIND: f64 = 0.10;

/// Share of the largest of them from which another cause comes first: what can be changed says more than what is there.
const CLEARLY_LESS: f64 = 0.67;

/// What is wasted of them comes first from this part of their bytes.
const PADDED: u64 = 3;

/// Rules whose findings name buffers for what they have in common rather than for what they are.
const OF_ANYTHING: [&str; 4] = [precision::NAME, padding::NAME, batch_size::NAME, fragmentation::NAME];

/// Names the temporaries that are in no other finding, where they are much.
fn others(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let own = || findings.iter().filter(|f| f.program == Some(case.row) && !OF_ANYTHING.contains(&f.rule));
    let mut named: FastSet<BufferId> = own().flat_map(|finding| finding.buffers.iter().copied()).collect();
    // Of what decompositions pad, the finding of padding says all there is to say.
    let padding = findings.iter().filter(|f| f.program == Some(case.row) && f.rule == padding::NAME);
    let is_decomposed = |buffer: &BufferId| case.decomposed_by(*buffer).is_some();
    named.extend(padding.flat_map(|finding| finding.buffers.iter().copied()).filter(is_decomposed));
    let held: Vec<&AtPeak> = case.peak.iter().filter(|t| !named.contains(&t.buffer)).collect();
    let bytes: u64 = held.iter().map(|t| t.size).total();
    let all = case.peak.iter().map(|t| t.size).total();
    if !case.is_share(bytes, OF_ONE_KIND) {
        return;
    }
    let kinds = Kinds::new(case, &held);
    if !case.is_share(bytes, OTHERS) && !kinds.are_alike() {
        return;
    }
    let mut finding = case.finding(NAME);
    // One thing is a cause by its own bytes; a mixture comes after what is one.
    let of_one_kind = kinds.largest();
    case.stake(&mut finding, of_one_kind.unwrap_or(bytes));
    let clearly = (finding.weight() as f64 * CLEARLY_LESS) as u64;
    let is_cause = |f: &Finding| f.program == Some(case.row) && !f.is_remedy;
    let comes_first = |f: &Finding| {
        let least = if OF_ANYTHING.contains(&f.rule) { bytes / PADDED } else { clearly };
        is_cause(f) && f.rule != precision::NAME && f.weight() >= least
    };
    finding.is_remedy = findings.iter().any(comes_first) || (of_one_kind.is_none() && own().any(is_cause));
    let most = kinds.most().map(|most| format!(", {most}")).unwrap_or_default();
    finding.title = format!(
        "Temporaries{} take {} of the peak: {}{most}",
        if case.is_worth(all.saturating_sub(bytes)) || own().any(is_cause) {
            " that no other finding names"
        } else {
            ""
        },
        percent(bytes, case.at_peak()),
        Bytes(bytes).short()
    );
    finding.why = format!("The largest: {}.", largest(case, &held));
    finding.why.extend(kinds.sentence());
    waiting(case, &mut finding, &held);
    let are_copies = advise(case, &mut finding, &held, Some(&kinds));
    checkpoint(case, &mut finding, findings, are_copies || !kinds.may_be_kept());
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Says how much of some temporaries is kept for gradients of weights alone, which the compiler makes once the backward pass
/// is through, where that is most of them.
fn waiting(case: &ProgramContext<'_>, finding: &mut Finding, held: &[&AtPeak]) {
    let all: u64 = held.iter().map(|t| t.size).total();
    if !case.memory.has_backward() || !case.memory.kept.stacks.is_empty() {
        return;
    }
    let rows = case.memory.waiting_for_gradients(case.program, case.before.peak_event);
    let bytes = held.iter().filter(|t| is_among(&rows, t.family)).map(|t| t.size).total();
    if case.is_worth(bytes) && bytes.saturating_mul(2) > all {
        let _ = write!(
            finding.why,
            " {} of them are read for gradients of weights alone, which the compiler makes later, so that those of all layers are live at once.",
            Bytes(bytes).short()
        );
        let scan = match Library::of(case) {
            Library::Torchax => {
                "`torchax.train.ScannedModule` of the layers, which runs them in a `jax.lax.scan` with checkpoints,"
            }
            _ => "a `jax.lax.scan` over the layers, each with `jax.checkpoint`,",
        };
        finding.advice.push(format!("{scan} makes the gradients of one layer's weights at a time"));
    }
}

/// The largest of some temporaries, with their bytes.
fn largest(case: &ProgramContext<'_>, held: &[&AtPeak]) -> String {
    let words = held.iter().take(MOST).map(|t| format!("{} {}", Bytes(t.size).short(), case.describe(t.buffer)));
    words.collect::<Vec<String>>().join("; ")
}

/// The array of the peak that another one is in another order, such as all samples shuffled, in one piece or in several.
fn in_another_order<'a>(case: &ProgramContext<'_>, t: &AtPeak, held: &[&'a AtPeak]) -> Option<&'a AtPeak> {
    let size = |t: &AtPeak| case.node(t.buffer).map(|node| (node.element_type, node.element_count()));
    // What a pass looks up, such as terms by distance, is no sample.
    let is_of_pass = |t: &AtPeak| case.memory.kept.passes.get(t.family).is_some_and(|pass| *pass != Pass::Unknown);
    let is_gather = |t: &AtPeak| path(case.name(t.family)).last() == Some(&"gather") && !is_of_pass(t);
    let own = size(t).filter(|_| is_gather(t))?;
    let pieces = held.iter().filter(|other| is_gather(other) && size(other) == Some(own)).count() as u64;
    let is_source = |other: &AtPeak| {
        let of = size(other).filter(|of| of.0 == own.0 && !is_gather(other));
        of.is_some_and(|of| of.1 == own.1 || of.1 == own.1.saturating_mul(pieces))
    };
    let source = held.iter().copied().find(|other| is_source(other))?;
    case.is_worth(source.size).then_some(source)
}

/// Whether the inputs of layers, which a scan saves, are worth moving.
fn saved_inputs(case: &ProgramContext<'_>, held: &[&AtPeak]) -> bool {
    let stacks = &case.memory.kept.stacks;
    let is_input = |t: &&&AtPeak| stacks.iter().any(|stack| stack.is_input && stack.family as usize == t.family);
    case.is_worth(held.iter().filter(is_input).map(|t| t.size).total())
}

/// What helps against temporaries, whatever they are. Whether it is known of what they are copies.
fn advise(case: &ProgramContext<'_>, finding: &mut Finding, held: &[&AtPeak], kinds: Option<&Kinds>) -> bool {
    if kinds.is_some_and(Kinds::are_random) {
        // Another generator draws other numbers.
        finding.changes_results = ChangesResults::Yes;
        finding.severity = case.severity();
        let fewer = "draw fewer: dropout on the attention's output instead of its probabilities";
        if let Some(keys) = Library::of(case).other_generator() {
            finding.advice.push(format!("{keys}: {DRAWN_IN_STEPS}"));
            finding.advice.push(format!("or {fewer}"));
        } else {
            finding.advice.push(format!("{fewer}, or no checkpoint around it: {DRAWN_IN_STEPS}"));
        }
        return false;
    }
    if kinds.is_some_and(Kinds::has_indices) {
        finding.advice.push(Library::of(case).without_argmax());
    }
    finding.advice.extend(cast_later(case, held));
    let may_be_cut = kinds.is_some_and(Kinds::may_be_cut);
    let shuffled = held.iter().take(MOST).find_map(|t| Some((t, in_another_order(case, t, held)?)));
    let is_shuffled = shuffled.is_some();
    if let Some((copy, _)) = shuffled {
        // Results stay the same.
        case.at_stake_without(finding, &[copy.family], ", if they are not gathered as a whole");
        finding.severity = finding.severity.max(case.severity());
    }
    let classes = case.analysis.classes(case.program);
    if shuffled.is_some_and(|(_, source)| classes.of(source.buffer) == Class::Cache) {
        finding.advice.push("rows of the cache gathered in another order are a copy of all of them: reorder the cache of one layer at a time, inside the loop over the layers, or keep for each sequence the indices of its rows instead".to_owned());
    } else if is_shuffled {
        finding.advice.push("rows gathered in another order are a copy of all of them: gather those of one part where it is used, inside the loop over the parts (shuffle the indices, not the samples)".to_owned());
    }
    if may_be_cut && !is_shuffled {
        // Decompositions take 32 bits or more.
        let is_wide = held.iter().take(MOST).any(|t| case.decomposed_by(t.buffer).is_some());
        // Of 8 bits, there is no narrower type.
        let is_narrow = |t: &&AtPeak| case.node(t.buffer).is_some_and(|node| node.element_type.storage_bits() <= 8);
        let narrower = if is_wide || held.first().is_some_and(is_narrow) { "" } else { ", or in a narrower type" };
        finding.advice.push(format!(
            "compute the largest of them in chunks (`jax.lax.map` with `batch_size`, `jax.lax.scan`){narrower}"
        ));
    }
    if case.memory.has_checkpoints() {
        let batch = case.memory.data.first().map_or(0, DataArgument::batch);
        let fewer = (batch != 1).then(|| case.try_out(&[Edit::Batch(0.5)]));
        let further = if batch == 1 {
            format!(
                ", and the batch is 1 {}: a shorter sequence helps further, or one that is divided over devices",
                batch_size::unit(batch_size::sharing(case))
            )
        } else if fewer.as_ref().is_some_and(|fewer| case.is_worth(case.saved(fewer))) {
            let are_more = case.memory.summed_parts(case.program) > 1;
            let parts = if are_more { "more micro-batches" } else { "micro-batches" };
            let moved = if saved_inputs(case, held) {
                format!(", or keeping the layers' inputs in the host's memory ({})", Library::of(case).offload_inputs())
            } else {
                String::new()
            };
            format!("; what helps further is fewer samples at a time, in {parts} or on more devices{moved}")
        } else if fewer.is_some_and(|fewer| fewer.is_told() && fewer.undecided.is_none()) {
            ", and a smaller batch would take hardly less".to_owned()
        } else {
            String::new()
        };
        finding.advice.push(format!("{} are checkpointed already{further}", checkpointed(case)));
    }
    is_shuffled
}

/// Where whole arguments are cast ahead of a loop that reads parts of them, such as a replay memory: what helps.
fn cast_later(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Option<String> {
    let is_loop = case.program.instructions.opcode.contains(&Opcode::WHILE);
    let labels = case.analysis.labels(case.program);
    let is_cast = |t: &&&AtPeak| {
        let path = labels.of(case.program, t.buffer).unwrap_or_default().copy_of;
        let argument = case.arguments().find(|argument| !path.is_empty() && argument.1 == path);
        let before = argument.and_then(|(row, ..)| case.node(case.memory.base[row].buffer));
        before.zip(case.node(t.buffer)).is_some_and(|(before, now)| {
            before.element_type != now.element_type && outline(&before.dimensions) == outline(&now.dimensions)
        })
    };
    let bytes = held.iter().take(MOST).filter(is_cast).map(|t| t.size).total();
    (is_loop && case.is_worth(bytes)).then(|| {
        format!(
            "{} of it are whole arguments in another type: cast inside the loop what a step takes of them, after it is sampled or sliced, or keep them in that type",
            Bytes(bytes).short()
        )
    })
}

/// What is checkpointed, in words: layers, or of programs that have none the steps of their loops.
fn checkpointed(case: &ProgramContext<'_>) -> &'static str {
    if case.has_steps_alone() { "the steps of the loop" } else { "the layers" }
}

/// Suggests checkpoints of the layers where no other finding does: of what they keep, or of gradients that wait in all
/// layers for those of the weights. `are_others` tells that most are nothing that is kept.
fn checkpoint(case: &ProgramContext<'_>, finding: &mut Finding, findings: &[Finding], are_others: bool) {
    if case.memory.has_checkpoints() || !case.memory.has_backward() {
        return;
    }
    let is_remat = |f: &Finding| f.edits().iter().any(|edit| matches!(edit, Edit::Remat(..)));
    let has_layers = case.memory.kept.turn.as_ref().is_some_and(|turn| !turn.layers.is_empty());
    let edits = vec![Edit::Remat(Checkpoint::every_layer())];
    if has_layers && !findings.iter().any(|f| f.program == Some(case.row) && is_remat(f)) {
        let prediction = case.try_out(&edits);
        if prediction.undecided.is_none() && case.is_worth(case.saved(&prediction)) {
            case.fill(finding, edits);
            finding.advice.push(Library::of(case).remat(EVERY));
            return;
        }
    }
    let are_of_forward = || {
        let classes = case.analysis.classes(case.program);
        let kept = case.peak.iter().filter(|t| classes.of(t.buffer) == Class::Activation).map(|t| t.size).total();
        kept.saturating_mul(2) > case.peak.iter().map(|t| t.size).total()
    };
    let are_floats = || {
        let floats = case.peak.iter().filter(|t| case.node(t.buffer).is_some_and(|node| node.element_type.is_float()));
        floats.map(|t| t.size).total().saturating_mul(2) > case.peak.iter().map(|t| t.size).total()
    };
    if !are_others && are_of_forward() && are_floats() {
        finding
            .advice
            .push("if they are kept for the backward pass, `jax.checkpoint` around what computes them".to_owned());
    }
}
