//! Parts of the layers of a scan that can be checkpointed alone, such as the MLP: what is recomputed then costs less time
//! than the whole layer. Stacks that the scan saves are of one part where their names begin alike.

use std::collections::BTreeSet;

use super::library::Library;
use super::program_context::{ProgramContext, Total};
use crate::analysis::flow::other_result::own_name;
use crate::analysis::names::scope;
use crate::analysis::what_if::saved_for_backward::{ATTENTION, Stack, is_module};
use crate::analysis::what_if::{Checkpoint, Edit, part_name};
use crate::model::Bytes;

/// A part of the layers.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is called: `mlp`.
    pub name: String,
    /// The change that checkpoints it.
    pub edit: Edit,
    /// Bytes that the scan saves of it.
    pub bytes: u64,
}

/// The parts that are worth a checkpoint, those of fewest bytes first; empty where the names do not divide the layers.
pub fn of(case: &ProgramContext<'_>) -> Vec<Part> {
    let library = Library::of(case);
    // Their settings are for whole layers.
    if matches!(library, Library::Tunix | Library::Keras) {
        return Vec::new();
    }
    let kept = &case.memory.kept;
    let is_meant = |row: &usize| {
        let stack = &kept.stacks[*row];
        !stack.is_input && !stack.is_in_layer && stack.steps.are_layers() && !kept.has_own_remedy(stack.family as usize)
    };
    let rows: Vec<usize> = (0..kept.stacks.len()).filter(is_meant).collect();
    let names: Vec<&str> = rows.iter().map(|&row| kept.stack_names[row].as_str()).collect();
    let size = |stack: &Stack| case.memory.families.list[stack.family as usize].size;
    let mut found = by_part(&names);
    if library == Library::MaxText {
        // Its policies are for the MLPs of all layers, whatever kinds of them there are.
        found.retain(|part| part.0.contains("mlp"));
        if found.len() > 1 {
            found = vec![("mlp".to_owned(), "*mlp*".to_owned())];
        }
    }
    let mut parts: Vec<Part> = found
        .into_iter()
        .map(|(name, pattern)| Part {
            bytes: kept.stacks_called(&pattern).map(size).total(),
            edit: Edit::Remat(Checkpoint::ScanPart(pattern)),
            name,
        })
        .filter(|part| case.is_worth(part.bytes) && is_of_module(case, part))
        .collect();
    parts.sort_by(|a, b| (a.bytes, &a.name).cmp(&(b.bytes, &b.name)));
    parts
}

/// Whether what a part saves is made in the module of that name, where operations have names of modules: a checkpoint around
/// a module that is one product frees nothing that is made of its result behind it.
fn is_of_module(case: &ProgramContext<'_>, part: &Part) -> bool {
    let Edit::Remat(Checkpoint::ScanPart(pattern)) = &part.edit else { return true };
    let labels = case.analysis.labels(case.program);
    let (mut inside, mut all) = (0u64, 0u64);
    for stack in case.memory.kept.stacks_called(pattern) {
        let family = &case.memory.families.list[stack.family as usize];
        let written = labels.role(case.program, family.root).and_then(|found| found.written.clone());
        let name = written.map(|value| own_name(case.program, value)).unwrap_or_default();
        all = all.saturating_add(family.size);
        if scope::path(&name).iter().any(|own| *own == part.name) {
            inside = inside.saturating_add(family.size);
        }
    }
    inside == 0 || inside.saturating_mul(2) > all
}

/// What scopes and weights of parts are called, in lower case: attention, and the MLP.
const WORDS: [&str; 5] = [ATTENTION, "mlp", "ffn", "feed_forward", "feedforward"];

/// The scopes among some names that are a part, and a pattern for the names of each; none that all names have.
fn by_part(names: &[&str]) -> Vec<(String, String)> {
    let is_part = |scope: &&str| {
        let lower = scope.to_ascii_lowercase();
        is_module(&lower) && WORDS.iter().any(|word| lower.contains(word))
    };
    let scopes: BTreeSet<&str> = names.iter().flat_map(|name| name.split('/')).filter(is_part).collect();
    let of = |scope: &str| {
        let has = |name: &&&str| name.split('/').any(|own| own == scope);
        let start = format!("{scope}/");
        let is_first = names.iter().filter(has).all(|name| name.starts_with(&start));
        let is_all = names.iter().all(|name| has(&name));
        (!is_all).then(|| (scope.to_owned(), if is_first { format!("{scope}/*") } else { format!("*{scope}*") }))
    };
    scopes.into_iter().filter_map(of).collect()
}

/// How to checkpoint a part of the layers alone, in the words of the library that made the program.
pub fn words(library: Library, pattern: &str) -> String {
    let part = part_name(pattern);
    let rest = "the rest of the layer is kept";
    match library {
        Library::MaxText => {
            "MaxText: `remat_policy=save_dot_except_mlp`: the MLP is recomputed, the products with the attention's weights are kept"
                .to_owned()
        }
        Library::Linen => format!("Flax: `nn.remat` around the module `{part}` inside the layer: {rest}"),
        Library::Nnx => format!("Flax: `nnx.remat` around the call of `{part}` inside the layer: {rest}"),
        _ => format!("`jax.checkpoint` around `{part}` inside the scan's body, not around all of it: {rest}"),
    }
}

/// What to do instead of checkpoints of whole layers, where a part of them is enough or saves much.
pub fn advice(case: &ProgramContext<'_>) -> Option<String> {
    let is_over = case.memory.is_over();
    let parts = of(case);
    let tried = |part: &'_ Part| (part.clone(), case.try_out(std::slice::from_ref(&part.edit)));
    // The least that is enough, or what saves most.
    let (part, prediction) = if is_over {
        parts.iter().map(tried).find(|(_, prediction)| prediction.fits == Some(true))?
    } else {
        parts.iter().next_back().map(tried).filter(|(_, prediction)| case.is_worth(case.saved(prediction)))?
    };
    let Edit::Remat(Checkpoint::ScanPart(pattern)) = &part.edit else { return None };
    Some(format!(
        "or a part of each layer, which costs less time: {} (`{}`): {} less, then it needs {}",
        words(Library::of(case), pattern),
        part.edit,
        Bytes(case.saved(&prediction)).short(),
        prediction.expected().short()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attention_and_the_mlp_are_parts() {
        let parts = |names: &[&str]| by_part(names).into_iter().map(|part| part.1).collect::<Vec<_>>();
        let names = ["mlp/wi_0", "mlp/wi_1", "self_attention/query", "self_attention/out", "norm"];
        assert_eq!(parts(&names), ["mlp/*", "self_attention/*"]);
        // A norm is no attention.
        let names = ["layers/post_attention_layernorm", "layers/attention_dense", "layers/query"];
        assert!(parts(&names).is_empty());
        let names = ["layers/MultiHeadAttention_0", "MultiHeadAttention_0/key", "layers/Dense_1"];
        assert_eq!(parts(&names), ["*MultiHeadAttention_0*"]);
        assert!(parts(&["p/up", "p/down"]).is_empty());
        // All of the layer.
        assert!(parts(&["mlp/up", "mlp/down"]).is_empty());
    }
}
