//! Layers that repeat, as the framework's names of operations tell them: `layer_3` of
//! `jit(step)/jvp(model)/layer_3/mlp/dot_general`.

use std::collections::{BTreeMap, BTreeSet};

use super::scope;

/// A layer of a model that has several alike.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Layer {
    /// What its name begins with: `layer_`.
    pub stem: String,
    /// Its number.
    pub number: u64,
}

impl Layer {
    /// `layer_3`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}{}", self.stem, self.number)
    }
}

/// The numbered scopes of an operation's name, the outermost first. Products, and modules that a library numbers
/// within a layer by their kind (`Dense_0`), are none.
fn numbered(op_name: &str) -> Vec<Layer> {
    let parts = scope::path(op_name);
    let Some((_, scopes)) = parts.split_last() else { return Vec::new() };
    scopes
        .iter()
        .filter_map(|part| {
            let stem = part.trim_end_matches(|c: char| c.is_ascii_digit());
            let is_separate = stem.is_empty() || stem.ends_with(['_', '.', '-']);
            let is_kind = stem.starts_with(|c: char| c.is_ascii_uppercase());
            let is_product = part.contains("->") || part.contains(',') || part.contains('(');
            let number = part[stem.len()..].parse().ok()?;
            (is_separate && !is_kind && !is_product && !stem.starts_with("branch_"))
                .then(|| Layer { stem: stem.to_owned(), number })
        })
        .collect()
}

/// Tells the layers of one program: the outermost numbered scopes that come with at least two numbers.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    stems: BTreeSet<String>,
}

impl Layers {
    /// Looks at the names of a program's operations.
    pub fn new<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        let mut numbers: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
        for name in names {
            for layer in numbered(name) {
                numbers.entry(layer.stem).or_default().insert(layer.number);
            }
        }
        Self { stems: numbers.into_iter().filter(|row| row.1.len() > 1).map(|row| row.0).collect() }
    }

    /// The layer an operation belongs to.
    #[must_use]
    pub fn of(&self, op_name: &str) -> Option<Layer> {
        numbered(op_name).into_iter().find(|layer| self.stems.contains(&layer.stem))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_the_outermost_scopes_that_repeat() {
        let names = [
            "jit(s)/jvp(jit(__call__))/Gemma2_2B/Gemma2_2B._apply_attention/layer_0/mlp/Einsum_0/...F,NFH->...NH/dot_general",
            "jit(s)/jvp(jit(__call__))/Gemma2_2B/Gemma2_2B._apply_attention/layer_1/mlp/Einsum_0/...F,NFH->...NH/dot_general",
            "jit(s)/jvp(res_net50)/head_0/dot_general",
        ];
        let layers = Layers::new(names.into_iter());
        let of = |name| layers.of(name).map(|layer| layer.name());
        assert_eq!(of(names[1]).as_deref(), Some("layer_1"));
        assert_eq!(of(names[2]), None);
        assert_eq!(of("jit(s)/transpose(jvp(layer_12))/attn/dot_general").as_deref(), Some("layer_12"));
        assert_eq!(of("jit(s)/jvp()/while/body/eval_jaxpr/dot_general"), None);
    }
}
