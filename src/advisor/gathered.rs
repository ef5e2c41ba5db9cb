//! Rule `gathered`: gathered or copied weights of many layers that are live at the peak together.

use std::fmt::Write as _;

use super::finding::{ChangesResults, Finding};
use super::layout_copy;
use super::library::Library;
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use super::state_in_place::parts;
use crate::analysis::class::{Class, Reason};
use crate::analysis::flow::Value;
use crate::analysis::flow::collective::{gathered_from, holds_gathered};
use crate::analysis::flow::made_of::made_of;
use crate::analysis::names::pass::Pass;
use crate::analysis::what_if::batch::DataArgument;
use crate::model::{Bytes, InstructionId, ShapeNode};

/// Name of the rule.
pub const NAME: &str = "gathered";

/// What to do about a weight that one product reads, such as that of the head.
const KEPT_ALONG: &str = "shard such a weight along an output dimension of its product (the vocabulary, for the weight that makes logits), not along the one that is contracted: each device then computes its part of the result and gathers no weight";

/// What [`KEPT_ALONG`] costs where the batch is divided over the same devices.
const ACTIVATIONS_INSTEAD: &str =
    "; where the batch is divided over the same devices, it gathers the activations instead";

/// Why nothing is advised where the batch of all devices is larger than the weight.
const NO_LESS_OTHERWISE: &str = " Sharded along another dimension it would not be gathered, but the activations that it is multiplied by would be, which are no less.";

/// What to do about a cache that is gathered.
const CACHE: &str = "let each device attend with its own heads: constrain queries, keys and values to the cache's sharding (`jax.lax.with_sharding_constraint`) after keys and values are repeated for more query heads, or do not repeat them (grouped-query attention, as in `jax.nn.dot_product_attention`); the reshape of repeated heads makes the compiler gather them all";

/// What to do about weights of many layers that are unpacked at once.
const UNPACKED: &str = "unpack the weights of one layer at a time: layers in `jax.lax.scan`, or `jax.lax.optimization_barrier` over a layer's input and its quantised weights, without which the compiler may unpack those of all layers ahead; `jax.checkpoint` around each layer unpacks them again in the backward pass instead of keeping them";

/// Share of the largest weight that is gathered, from which on the activations that would be gathered in its place are no
/// less to speak of.
const NO_LESS: f64 = 0.8;

/// Share of what is gathered from which one array stands for all.
const NEARLY_ALL: f64 = 0.8;

/// Part of the larger of what is gathered and what is copied, 1/n, from which the title names both.
const BESIDE: u64 = 4;

/// Share of allocated bytes from which they are a cause of the peak.
const CAUSE: f64 = 0.20;

/// Share of allocated bytes from which they are named though nothing can be done about them.
const UNAVOIDABLE: f64 = 0.05;

/// Why weights are copied where the optimizer's state is divided and they are not.
const COPIED_FOR_UPDATE: &str = " The optimizer's state is divided over the devices, and the weights are not: each device updates its part of them, and where there is room, the compiler copies the weights for that. Weights that are divided too (FSDP) are not copied.";

/// What is gathered at the end of such a step.
const GATHERED_AFTER_UPDATE: &str = " The optimizer's state is divided over the devices, and the weights are not: each device updates its part of them, and their new values are gathered from all. Weights that are divided too need not be.";

/// Whether most of what is gathered is made after the passes, as the new values of weights are.
fn are_new_values(case: &ProgramContext<'_>, gathered: &[&AtPeak]) -> bool {
    let is_after = |t: &&&AtPeak| case.memory.kept.passes.get(t.family).is_none_or(|pass| *pass == Pass::Unknown);
    let after = gathered.iter().filter(is_after).map(|t| t.size).total();
    after.saturating_mul(2) > gathered.iter().map(|t| t.size).total()
}

/// Whether one of some arrays, largest first, is nearly all of them.
fn of_one(gathered: &[&AtPeak], whole: u64) -> bool {
    gathered.iter().map(|t| t.size).max().is_some_and(|largest| largest as f64 >= whole as f64 * NEARLY_ALL)
}

/// Whether the layers are in a scan already.
fn has_scan(case: &ProgramContext<'_>) -> bool {
    case.memory.kept.stacks.iter().any(|stack| !stack.is_in_layer)
}

/// Whether a temporary is the result of an all-gather or a copy of it.
pub(super) fn is_gather(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    holds_gathered(case.program, t.buffer)
}

/// The cache that a gathered array is made of, where it is: its path.
fn cache_of(case: &ProgramContext<'_>, t: &AtPeak) -> Option<String> {
    let (program, classes) = (case.program, case.analysis.classes(case.program));
    let from = gathered_from(program, Value::of_buffer(program, t.buffer)?)?;
    let is_cache = |at: &InstructionId| {
        let base = case.memory.base.iter().find(|base| program.buffers.instruction_of(base.buffer) == Some(*at));
        base.is_some_and(|base| classes.of(base.buffer) == Class::Cache)
    };
    let path = program.text.op_name(made_of(program, from).arguments.into_iter().find(is_cache)?);
    Some(path).filter(|path| !path.is_empty())
}

/// Whether a gathered array is an argument as a whole, which a loop gathers in each of its steps, and not one layer's slice.
fn is_all_of_argument(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    let (program, labels) = (case.program, case.analysis.labels(case.program));
    let held = Value::of_buffer(program, t.buffer).and_then(|value| labels.held_by(program, &value, false));
    let row = held.and_then(|held| {
        case.memory.base.iter().position(|base| program.buffers.instruction_of(base.buffer) == Some(held.parameter))
    });
    row.is_some_and(|row| {
        let elements = case.node(case.memory.base[row].buffer).map_or(0, ShapeNode::element_count);
        let whole = elements.saturating_mul(parts(case, row).unsigned_abs());
        case.node(t.buffer).is_some_and(|node| node.element_count() >= whole)
    })
}

/// Advises to divide a weight along a dimension of its product's result, which only helps where the activations that are
/// then gathered take less than the weight.
fn keep_along(case: &ProgramContext<'_>, finding: &mut Finding, largest: Option<&AtPeak>) {
    let tokens = |data: &DataArgument| data.elements().saturating_mul(data.parts.max(1));
    let divided = case.memory.data.iter().filter(|data| data.parts > 1).max_by_key(|data| tokens(data));
    let divided = divided
        .map(|data| tokens_of_logits(case).map_or_else(|| tokens(data), |own| own.saturating_mul(data.parts.max(1))));
    let Some(tokens) = divided else {
        finding.advice.push(KEPT_ALONG.to_owned());
        return;
    };
    // Of each token there are as many features as the weight has beside its largest dimension.
    let longest = largest.and_then(|t| case.node(t.buffer)?.dimensions.iter().copied().max()).unwrap_or(0);
    if (tokens as f64) < longest as f64 * NO_LESS {
        finding.advice.push(format!("{KEPT_ALONG}{ACTIVATIONS_INSTEAD}"));
    } else if largest.is_some_and(|t| case.analysis.classes(case.program).of(t.buffer) == Class::Weight) {
        finding.why.push_str(NO_LESS_OTHERWISE);
    }
}

/// For how many tokens a device computes logits, which may be fewer than it has of the data.
fn tokens_of_logits(case: &ProgramContext<'_>) -> Option<i64> {
    let kept = &case.memory.kept;
    let words = kept.vocabulary.filter(|&words| words > 0)?;
    let of_whole_words = |&family: &u32| {
        let node = case.program.buffer_node(case.memory.families.list.get(family as usize)?.root)?;
        node.dimensions.contains(&words).then(|| node.element_count() as i64 / words)
    };
    kept.logits.iter().filter_map(of_whole_words).max()
}

/// Looks for copies of weights among the temporaries at the peak.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let classes = case.analysis.classes(case.program);
    let is_copy =
        |t: &&AtPeak, reason: Reason| classes.of(t.buffer) == Class::Weight && classes.reason(t.buffer) == reason;
    let is_brought = |t: &&AtPeak| is_copy(t, Reason::Gathered) || is_gather(case, t);
    let is_unpacked = |t: &&AtPeak| is_copy(t, Reason::Unpacked);
    // Of words and places there is nothing to say.
    let is_index = |t: &&AtPeak| case.node(t.buffer).is_some_and(|node| node.element_type.is_index());
    let gathered: Vec<&AtPeak> = case.peak.iter().filter(|t| is_brought(t) && !is_index(t)).collect();
    // Copies in another layout have a rule of their own.
    let is_cast = |t: &&AtPeak| {
        is_unpacked(t) || (is_copy(t, Reason::CopyOfArgument) && layout_copy::copied_argument(case, t.buffer).is_none())
    };
    let copied: Vec<&AtPeak> = case.peak.iter().filter(|t| is_cast(t) && !is_brought(t)).collect();
    let sum = |held: &[&AtPeak]| held.iter().map(|t| t.size).total();
    let (whole, casts) = (sum(&gathered), sum(&copied));
    if !case.is_worth(whole.saturating_add(casts)) {
        return;
    }
    let unpacked = copied.iter().copied().filter(is_unpacked).map(|t| t.size).total();
    let are_unpacked = unpacked.saturating_mul(2) > casts;
    let is_cause = case.is_share(whole.saturating_add(casts), CAUSE);
    let mut finding = if is_cause { case.finding(NAME) } else { case.remedy(NAME) };
    let mut held: Vec<&AtPeak> = gathered.iter().chain(&copied).copied().collect();
    held.sort_by_key(|t| (std::cmp::Reverse(t.size), t.buffer));
    case.stake(&mut finding, whole.saturating_add(casts));
    let of_weights = gathered.iter().filter(|t| classes.of(t.buffer) == Class::Weight).map(|t| t.size).total();
    let are_weights = of_weights as f64 > whole as f64 * NEARLY_ALL;
    let verb = |count: usize| if count == 1 { "takes" } else { "take" };
    // What is a good part of what the title names has its advice.
    let is_told = |part: u64| case.is_worth(part) || part.saturating_mul(4) >= whole.saturating_add(casts);
    finding.title = if whole.min(casts).saturating_mul(BESIDE) > whole.max(casts) && are_weights && !are_unpacked {
        let all = Bytes(whole.saturating_add(casts)).short();
        format!("Weights gathered from other devices, and copies of weights, take {all} at the peak")
    } else if whole >= casts {
        let what = match (are_weights, gathered.len()) {
            (true, 1) => "A weight gathered",
            (true, _) => "Weights gathered",
            (false, 1) => "An array gathered",
            (false, _) => "Arrays gathered",
        };
        format!("{what} from other devices {} {} at the peak", verb(gathered.len()), Bytes(whole).short())
    } else {
        let what = match (are_unpacked, copied.len()) {
            (true, _) => "What quantised weights are unpacked into",
            (false, 1) => "A copy of a weight",
            (false, _) => "Copies of weights",
        };
        let verb = if are_unpacked { "takes" } else { verb(copied.len()) };
        format!("{what} {verb} {} at the peak", Bytes(casts).short())
    };
    let mut parts = Vec::new();
    if whole > 0 {
        let arrays = counted(gathered.len(), "array", "arrays");
        let others = whole.saturating_sub(of_weights);
        let of_it = if are_weights || of_weights == 0 {
            String::new()
        } else {
            format!(", {} of it activations", Bytes(others).short())
        };
        parts.push(format!("{arrays} gathered from other devices ({}{of_it})", Bytes(whole).short()));
    }
    if casts > 0 {
        let arrays = if are_unpacked {
            counted(copied.len(), "array made of quantised weights", "arrays made of quantised weights")
        } else {
            counted(copied.len(), "cast or copy of a weight", "casts or copies of weights")
        };
        parts.push(format!("{arrays} ({})", Bytes(casts).short()));
    }
    // Of what the title names.
    let named = if whole >= casts { &gathered } else { &copied };
    let which = if parts.len() == 1 {
        "the largest is"
    } else if whole >= casts {
        "the largest gathered is"
    } else {
        "the largest copy is"
    };
    finding.why = format!("Live at the peak: {}; {which} {}.", parts.join(" and "), case.describe_first(named));
    let largest = gathered.iter().copied().max_by_key(|t| t.size);
    let cache = largest.and_then(|t| cache_of(case, t));
    if let Some(path) = &cache {
        let _ = write!(finding.why, " It is made of `{path}`, of which each device has its part.");
        finding.advice.push(CACHE.to_owned());
    }
    // What a loop gathers in each of its steps is that of one layer, and gone after it.
    let in_loops = gathered.iter().filter(|t| case.is_in_loop(t) && !is_all_of_argument(case, t)).count();
    // One array at a time is no store of many layers: what reads it wants all of it.
    if in_loops > 0 && in_loops == gathered.len() {
        finding.why.push_str(" What is gathered is that of one step of a loop at a time.");
    } else if cache.is_some() {
        // Not of the layers' weights.
    } else if updates_in_parts(case) && are_new_values(case, &gathered) {
        finding.why.push_str(GATHERED_AFTER_UPDATE);
    } else if gathered.len() > 1 && (of_one(&gathered, whole) || has_scan(case)) {
        keep_along(case, &mut finding, largest);
    } else if of_weights.saturating_mul(2) < whole || !is_told(whole) {
        // Activations are gathered where they are needed whole; and of few bytes there is nothing to say.
    } else if gathered.len() > 1 && !case.memory.has_backward() {
        finding.advice.push("gather one layer at a time: put the layers in `jax.lax.scan`".to_owned());
    } else if gathered.len() > 1 {
        finding.advice.push("gather one layer at a time: put the layers in `jax.lax.scan`, or the gather inside `jax.checkpoint`, so that weights are gathered again in the backward pass instead of kept".to_owned());
    } else if whole > 0 {
        keep_along(case, &mut finding, largest);
    }
    let is_of_experts = |t: &&AtPeak| {
        let name = case.describe(t.buffer).to_ascii_lowercase();
        name.contains("expert") || name.contains("moe")
    };
    let of_experts = gathered.iter().copied().filter(|t| is_of_experts(t)).map(|t| t.size).total();
    if of_experts.saturating_mul(2) > whole && case.is_worth(of_experts) {
        let own = if Library::of(case) == Library::MaxText { " (MaxText: `ici_expert_parallelism`)" } else { "" };
        finding.advice.push(format!(
            "most of them are experts: divided over devices by expert{own}, each device computes its own for the tokens of all, and does not gather the others'"
        ));
    }
    if are_unpacked && case.is_worth(unpacked) {
        finding.advice.push(UNPACKED.to_owned());
    }
    let is_narrow = |t: &&&AtPeak| case.node(t.buffer).is_some_and(|node| !node.element_type.is_wide_float());
    let narrow: u64 = copied.iter().filter(is_narrow).map(|t| t.size).total();
    let (wide, weights) = case.wide_of_weights();
    if !are_unpacked && is_told(casts) && narrow.saturating_mul(2) > casts && wide.saturating_mul(2) > weights {
        finding.advice.push(
            if case.memory.kept.stacks.is_empty() && case.memory.summed_parts(case.program) > 1 {
                "the compiler moves the cast of weights out of the loop over micro-batches; weights that are kept in bfloat16, with a 32-bit copy of them in the optimizer's state, need no cast"
            } else if case.memory.kept.stacks.is_empty() {
                "cast weights where a layer uses them, inside the checkpointed function, not all of them before the first layer"
            } else {
                match Library::of(case) {
                    Library::MaxText => "the compiler moves the cast of a scan's weights out of its loop; `weight_dtype=bfloat16` needs no cast, but then small updates are lost",
                    _ => "the compiler moves the cast of a scan's weights out of its loop; weights that are kept in bfloat16, with a 32-bit copy of them in the optimizer's state, need no cast",
                }
            }
            .to_owned(),
        );
    }
    if finding.advice.is_empty()
        && casts.saturating_mul(2) > whole
        && case.is_worth(casts)
        && !updates_in_parts(case)
        && !case.memory.kept.stacks.is_empty()
    {
        finding.advice.push("the compiler copies the weights of a scan as a whole, in another type or layout, ahead of its loop: kept as the loop reads them, they need no copies".to_owned());
    }
    if finding.advice.is_empty() && casts > whole && updates_in_parts(case) {
        finding.why.push_str(COPIED_FOR_UPDATE);
    } else if finding.advice.is_empty() && !case.is_share(whole.saturating_add(casts), UNAVOIDABLE) {
        return;
    }
    finding.changes_results = ChangesResults::No;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Whether the optimizer's state is divided into more parts than the weights: each device updates its part of these (ZeRO).
fn updates_in_parts(case: &ProgramContext<'_>) -> bool {
    let classes = case.analysis.classes(case.program);
    let parts_of = |class: Class| {
        let of_class = case.arguments().map(|argument| argument.0);
        let of_class = of_class.filter(|&row| classes.of(case.memory.base[row].buffer) == class);
        of_class.max_by_key(|&row| case.memory.base[row].size).map_or(1, |row| parts(case, row))
    };
    parts_of(Class::Optimizer) > parts_of(Class::Weight)
}
