//! Which policy of checkpoints helps with what a forward pass keeps: one that keeps what costs most to compute again.

use super::finding::Finding;
use super::idle_checkpoint::{BODY, CHECKPOINT};
use super::library::Library;
use super::program_context::{AtPeak, ProgramContext, Total};
use super::simulation::is_simulation;
use super::stages;
use crate::analysis::flow::Value;
use crate::analysis::flow::other_result::own_name;
use crate::analysis::flow::product::{is_kernel, is_product};
use crate::analysis::names::lookup::is_convolution;
use crate::analysis::names::pass::{AGAIN, Pass, pass_of};
use crate::analysis::names::plain::kernel;
use crate::analysis::what_if::saved_for_backward::is_among;
use crate::analysis::what_if::{Checkpoint, Edit};
use crate::model::{BufferId, Bytes, FastSet, InstructionId};

/// Share of what is kept from which on a policy that keeps it saves nothing.
const NEARLY_ALL: f64 = 0.95;

/// Convolutions that are more than those before or behind the layers, as of patches.
const SEVERAL: usize = 4;

/// What helps where layers are checkpointed and their inputs are what is kept.
pub const GROUPS: &str = "the layers are checkpointed already, and what is kept are mostly their inputs: checkpoints around groups of two or more layers keep fewer of them";

/// What to say of policies where a finding's buffers are kept for the backward pass; `None` where none helps.
pub fn of_checkpoints(case: &ProgramContext<'_>, finding: &Finding) -> Option<String> {
    // MaxText has policies of its own, of which `minimal` keeps products with weights.
    if Library::of(case) == Library::MaxText || is_simulation(case) {
        return None;
    }
    let own: FastSet<BufferId> = finding.buffers.iter().copied().collect();
    let held: Vec<&AtPeak> = case.peak.iter().filter(|t| own.contains(&t.buffer)).collect();
    if are_steps_checkpointed(case) { further(case, &held).map(str::to_owned) } else { cheap(case, &held) }
}

/// What is left where layers are checkpointed already.
fn further(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Option<&'static str> {
    // Layers that are left are said with the saving.
    if stages::checkpointed(case, &stages::patterns(case, held)).is_some() {
        return None;
    }
    let saves = case.is_worth(case.saved(&case.try_out(&[Edit::Remat(Checkpoint::every_layer())])));
    Some(if saves {
        "there are checkpoints already, but not of all that is kept: of the layers that are left, too, or with a policy that saves less (without one, `jax.checkpoint` keeps the inputs alone)"
    } else {
        GROUPS
    })
}

/// A policy that keeps products, of matrices or as convolutions, and has the rest computed again.
fn cheap(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Option<String> {
    let named = |end: &str| held.iter().filter(|t| case.name(t.family).ends_with(end)).map(|t| t.size).total();
    let all: u64 = held.iter().map(|t| t.size).total();
    let scores = &case.memory.kept.scores;
    let are_scores_kept = case.is_worth(case.held(scores).iter().map(|t| t.size).total());
    let convolutions = named("conv_general_dilated");
    if convolutions > named("dot_general") && !are_scores_kept {
        // `dots_with_no_batch_dims_saveable` keeps none of them, `dots_saveable` all.
        return (convolutions <= all / 2).then(|| {
            format!(
                "recompute only what is cheap: `policy=jax.checkpoint_policies.dots_saveable` keeps the results of convolutions ({}) and recomputes what follows them, such as norms and activation functions",
                Bytes(convolutions).short()
            )
        });
    }
    let labels = case.analysis.labels(case.program);
    let is_score = |t: &AtPeak| is_among(scores, t.family);
    let is_product = |t: &&&AtPeak| {
        let value = || Value::of_buffer(case.program, t.buffer);
        let is_of_weight = || value().is_some_and(|value| labels.is_of_weight(case.program, value));
        let own = value().map(|value| own_name(case.program, value)).unwrap_or_default();
        // Beside a product, a fusion may make what follows it.
        let is_one_of_several = value().is_some_and(|value| !value.index.is_empty()) && !own.is_empty();
        // Products of two values of each sample, such as of probabilities with values, have the samples in common.
        let is_of_argument = || value().is_none_or(|value| labels.is_of_argument(case.program, &value));
        !is_score(t) && ((own.ends_with("dot_general") && is_of_argument()) || (!is_one_of_several && is_of_weight()))
    };
    let products: u64 = held.iter().filter(is_product).map(|t| t.size).total();
    // As of pictures that are enlarged by a product with the weights of the interpolation.
    let is_largest = held.iter().max_by_key(|t| t.size).is_some_and(|t| is_product(&t) && t.size > all / 2);
    if is_largest || products as f64 >= all as f64 * NEARLY_ALL {
        return None;
    }
    // Of a network of convolutions there is none to keep.
    if !has_matrix_products(case) {
        return None;
    }
    // What the compiler computes again by itself, a checkpoint would keep.
    let is_known = case.is_worth(products) && case.memory.rematerialised == 0;
    let of_them =
        if is_known { format!(" (at least {} of what is kept now)", Bytes(products).short()) } else { String::new() };
    let and_scores = if are_scores_kept { ", including attention scores".to_owned() } else { with_kernels(case) };
    let but = match (case.has_experts(), convolutions > 0 || has_convolutions(case)) {
        (true, _) => ", but not those of experts,",
        // The policy keeps matrix products alone.
        (false, true) => ", but no convolutions,",
        (false, false) => "",
    };
    Some(format!(
        "recompute only what is cheap: `policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable` keeps products with weights{of_them}{but} and recomputes the rest{and_scores}"
    ))
}

/// What is not cheap of what such a policy has computed again, in words: a kernel of the forward pass is no product to it.
fn with_kernels(case: &ProgramContext<'_>) -> String {
    let program = case.program;
    let mut names = program.instructions.ids().filter(|&at| is_kernel(program, at)).map(|at| program.text.op_name(at));
    match names.find(|name| pass_of(name) == Pass::Forward) {
        Some(name) => match kernel(&name) {
            Some(own) => format!(", including the kernel `{own}`, which is not cheap"),
            None => ", including its kernels, which are not cheap".to_owned(),
        },
        None => String::new(),
    }
}

/// Whether the forward pass has several convolutions, by the names of what it makes.
fn has_convolutions(case: &ProgramContext<'_>) -> bool {
    case.families_of(Pass::Forward).filter(|&row| is_convolution(case.name(row))).nth(SEVERAL - 1).is_some()
}

/// Whether the program multiplies matrices, other than as convolutions of its source.
fn has_matrix_products(case: &ProgramContext<'_>) -> bool {
    let program = case.program;
    let is_one = |at: InstructionId| {
        let is_own = matches!(program.opcode_name(at), "dot" | "convolution");
        let is_other = |name: &str| is_convolution(name) || name.contains("fft");
        (is_own || (case.memory.is_gpu && is_product(program, at))) && !is_other(&program.text.op_name(at))
    };
    program.instructions.ids().any(is_one)
}

/// Whether layers are checkpointed, or the steps of the loops over them: not where only a loop as a whole is, as in a
/// checkpoint around each micro-batch.
fn are_steps_checkpointed(case: &ProgramContext<'_>) -> bool {
    if !case.memory.has_checkpoints() || case.memory.kept.stacks.is_empty() {
        return case.memory.has_checkpoints();
    }
    let is_in_step = |name: &str| {
        let (_, inside) = name.rsplit_once(BODY).unwrap_or(("", name));
        inside.contains(CHECKPOINT) || inside.contains(AGAIN)
    };
    case.families_of(Pass::Recomputed).any(|row| is_in_step(case.name(row)))
}
