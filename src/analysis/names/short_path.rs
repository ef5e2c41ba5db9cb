//! The telling end of an argument's path, for labels.

/// Words in argument paths that are common to all arguments or name no part of a model.
const PLAIN_WORDS: &[&str] = &[
    "state",
    "model",
    "params",
    "param",
    "decoder",
    "encoder",
    "layers",
    "layer",
    "blocks",
    "block",
    "kernel",
    "value",
    "w",
    "weight",
    "weights",
    "train_state",
    "states",
    "leaves",
    "variables",
    "first",
    "rest",
    "module",
    "transformer",
    "backbone",
    "embedding",
    "scale",
];

/// The telling end of an argument's path: `mlp/wi_0` of `state['model']['decoder']['layers']['mlp']['wi_0']['kernel']`.
#[must_use]
pub fn short_path(path: &str) -> String {
    let words: Vec<&str> = path.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    let telling: Vec<&str> = words
        .iter()
        .copied()
        .filter(|word| {
            let plain = word.to_ascii_lowercase();
            !PLAIN_WORDS.contains(&plain.as_str()) && !word.bytes().all(|b| b.is_ascii_digit())
        })
        .collect();
    if telling.is_empty() {
        // Only numbers and common words: use the whole path.
        return path.to_owned();
    }
    telling[telling.len().saturating_sub(2)..].join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_all_paths_have_say_nothing() {
        assert_eq!(short_path("state['model']['decoder']['layers']['mlp']['wi_0']['kernel']"), "mlp/wi_0");
        assert_eq!(short_path("state[0][1]"), "state[0][1]", "only numbers and common words");
    }
}
