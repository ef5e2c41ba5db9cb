//! The scopes of a program in which some temporaries are made, with their bytes.

use std::collections::BTreeMap;

use super::program_context::{AtPeak, ProgramContext};
use crate::analysis::names::layer::Layer;
use crate::analysis::names::pass::jvp_scope;
use crate::analysis::names::scope::{fold, is_einsum, path};

/// The scopes of temporaries with their bytes, largest first: layers, what operations are named by, or else the module of
/// the weights that they are made from. An empty name is that of what is in none.
pub(super) fn by_scope(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Vec<(String, u64)> {
    let is_named = |t: &&AtPeak| {
        case.memory.kept.layer(t.family).is_some_and(|layer| case.name(t.family).contains(layer.own_name()))
    };
    // Elsewhere layers are told by what their weights are called, or by where they come.
    let are_named = held.iter().any(is_named);
    let labels = case.analysis.labels(case.program);
    let mut scopes: BTreeMap<String, u64> = BTreeMap::new();
    for t in held {
        // Of a fusion's several results each has the name of its own operation.
        let is_one_of_several = !case.program.buffer_index(t.buffer).is_empty();
        let label = if is_one_of_several { labels.of(case.program, t.buffer) } else { None };
        let own = label.as_ref().map(|label| label.borrowed.as_str()).filter(|own| !own.is_empty());
        let name = own.unwrap_or_else(|| case.name(t.family));
        let named = jvp_scope(name).map(|pass| pass.scope).filter(|scope| !scope.is_empty() && !is_einsum(scope));
        // What is made for a layer before it, such as the encoding of its input, has a scope of its own.
        let is_inside = |layer: &&Layer| !are_named || named.is_none() || name.contains(layer.own_name());
        let layer = case.memory.kept.layer(t.family);
        let layer =
            layer.and_then(|layer| if is_inside(&layer) { Some(layer.name.clone()) } else { like(layer, name) });
        let scope = layer.or_else(|| named.map(str::to_owned)).or_else(|| made_in(case, t)).unwrap_or_default();
        let scope = with_parent(scope, name);
        let entry = scopes.entry(scope).or_default();
        *entry = entry.saturating_add(t.size);
    }
    let mut scopes: Vec<_> = scopes.into_iter().collect();
    scopes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| numbered(&a.0).cmp(&numbered(&b.0))));
    scopes
}

/// The layer in a name that is called like another but for its number: `group_1/block_0` for `group_1/block_1`.
fn like(layer: &Layer, name: &str) -> Option<String> {
    let path = path(name);
    let place = path.iter().position(|part| fold(part) == fold(layer.own_name()) && fold(part) != *part)?;
    let first = place.checked_sub(layer.name.matches('/').count())?;
    Some(path.get(first..=place)?.join("/"))
}

/// A scope that is nothing but a number with the nearest scope around it that has a name: `block/6`, or `scope 6`.
fn with_parent(scope: String, name: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit() || c == '/');
    if !is_number(&scope) {
        return scope;
    }
    let path = path(name);
    let first = scope.split('/').next().unwrap_or_default();
    let at = path.iter().position(|part| *part == first).unwrap_or(0);
    let parent = path[..at].iter().rposition(|part| !is_number(part));
    parent.map_or_else(|| format!("scope {scope}"), |parent| format!("{}/{scope}", path[parent..at].join("/")))
}

/// The words and numbers of a name in turn, so that `layer_2` comes before `layer_10` and `blocks[2]` before `blocks[10]`.
fn numbered(name: &str) -> Vec<(&str, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let word = rest.trim_start_matches(|c: char| !c.is_ascii_digit());
        let after = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let number = word[..word.len() - after.len()].parse().unwrap_or(0);
        parts.push((&rest[..rest.len() - word.len()], number));
        rest = after;
    }
    parts
}

/// The module of the weights that a temporary without a scope is made from, as its label names it: `stem_pool` of
/// `stem_pool: mul`, `embed` of `embed/in: dot_general`.
fn made_in(case: &ProgramContext<'_>, t: &AtPeak) -> Option<String> {
    let label = case.analysis.labels(case.program).of(case.program, t.buffer)?;
    module_of(&label.text).filter(|_| label.borrowed.is_empty()).map(str::to_owned)
}

fn module_of(label: &str) -> Option<&str> {
    let (weight, _) = label.split_once(": ").filter(|(weight, _)| !weight.contains(' '))?;
    Some(weight.rsplit_once('/').map_or(weight, |(module, _)| module))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_tells_the_module_of_a_weight() {
        assert_eq!(module_of("stem_pool: mul"), Some("stem_pool"));
        assert_eq!(module_of("embed/in: dot_general"), Some("embed"));
        assert_eq!(module_of("saved by the scan for 4 layers: mlp/in"), None);
        assert_eq!(module_of("logits"), None);
    }

    #[test]
    fn layers_are_sorted_by_their_numbers() {
        let mut names = ["blocks[10]", "blocks[2]", "layer_10/attn", "layer_9/mlp", "blocks[1]"];
        names.sort_by(|a, b| numbered(a).cmp(&numbered(b)));
        assert_eq!(names, ["blocks[1]", "blocks[2]", "blocks[10]", "layer_9/mlp", "layer_10/attn"]);
    }

    #[test]
    fn a_scope_that_is_a_number_has_its_parent_beside_it() {
        let name = "jit(step)/jvp(Model)/encoder/block/6/layer/0/mul";
        assert_eq!(with_parent("6".to_owned(), name), "block/6");
        assert_eq!(with_parent("1".to_owned(), "jit(step)/jvp(1)/closed_call/0/mul"), "scope 1");
        assert_eq!(with_parent("layer_6".to_owned(), name), "layer_6");
    }
}
