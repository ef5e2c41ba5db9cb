//! Parts of the layers of a scan that can be checkpointed alone, such as the MLP: what is recomputed then costs less time
//! than the whole layer. Stacks that the scan saves are of one part where their names begin alike.

use std::collections::BTreeMap;

use super::library::Library;
use super::program_context::{ProgramContext, Total};
use crate::analysis::what_if::saved_for_backward::Stack;
use crate::analysis::what_if::{Edit, IN_SCAN};
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
    let mut parts: Vec<Part> = by_part(&names)
        .into_iter()
        .map(|(name, pattern)| Part {
            edit: Edit::Remat(format!("{IN_SCAN}{pattern}"), None),
            bytes: kept.stacks_called(&pattern).map(size).total(),
            name,
        })
        .filter(|part| case.is_worth(part.bytes) && (library != Library::MaxText || part.name == "mlp"))
        .collect();
    parts.sort_by(|a, b| (a.bytes, &a.name).cmp(&(b.bytes, &b.name)));
    parts
}

/// Names by the first scope in which they differ: that scope, and a pattern for its names alone.
fn by_part(names: &[&str]) -> Vec<(String, String)> {
    let paths: Vec<Vec<&str>> = names.iter().map(|name| name.split('/').collect()).collect();
    let is_named = |at: &usize| paths[*at].len() > 1;
    let named: Vec<usize> = (0..paths.len()).filter(is_named).collect();
    let Some(&first) = named.first() else { return Vec::new() };
    let shortest = named.iter().map(|&at| paths[at].len()).min().unwrap_or(0);
    let is_common = |depth: usize| named.iter().all(|&at| paths[at][depth] == paths[first][depth]);
    let depth = (0..shortest.saturating_sub(1)).take_while(|&depth| is_common(depth)).count();
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for at in named {
        groups.entry(paths[at][depth]).or_default().push(at);
    }
    if groups.len() < 2 {
        return Vec::new();
    }
    let of = |(name, own): (&str, Vec<usize>)| {
        let start = paths[own[0]][..=depth].join("/");
        let is_inside = own.iter().all(|&at| paths[at].len() > depth + 1);
        (name.to_owned(), if is_inside { format!("{start}/*") } else { start })
    };
    groups.into_iter().map(of).collect()
}

/// How to checkpoint a part of the layers alone, in the words of the library that made the program.
pub fn words(library: Library, scope: &str) -> String {
    let part = scope.strip_prefix(IN_SCAN).unwrap_or(scope);
    match library {
        Library::MaxText => {
            "MaxText: `remat_policy=save_dot_except_mlp`: the MLP alone is recomputed, what attention makes is kept"
                .to_owned()
        }
        Library::Linen => format!(
            "Flax: `nn.remat` around the module inside the layer that makes `{part}`: the rest of the layer is kept"
        ),
        Library::Nnx => format!(
            "Flax: `nnx.remat` around the call inside the layer that makes `{part}`: the rest of the layer is kept"
        ),
        _ => format!(
            "`jax.checkpoint` around the part of the scan's body that makes `{part}`, not around all of it: the rest of the layer is kept"
        ),
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
    let Edit::Remat(scope, _) = &part.edit else { return None };
    Some(format!(
        "or a part of each layer, which costs less time: {} (`{}`): {} less, then it needs {}",
        words(Library::of(case), scope),
        part.edit,
        Bytes(case.saved(&prediction)).short(),
        prediction.expected().short()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_divided_at_the_first_scope_in_which_they_differ() {
        let names = ["mlp/wi_0", "mlp/wi_1", "attention/query", "attention/out", "norm"];
        let parts = by_part(&names);
        let patterns: Vec<&str> = parts.iter().map(|part| part.1.as_str()).collect();
        assert_eq!(patterns, ["attention/*", "mlp/*"]);
    }

    #[test]
    fn what_all_names_begin_with_is_no_part() {
        let parts = by_part(&["p/up", "p/down", "p/up"]);
        let patterns: Vec<(&str, &str)> = parts.iter().map(|part| (part.0.as_str(), part.1.as_str())).collect();
        assert_eq!(patterns, [("down", "p/down"), ("up", "p/up")]);
        assert!(by_part(&["p/up", "p/up"]).is_empty());
        assert!(by_part(&["up", "down"]).is_empty());
    }
}
