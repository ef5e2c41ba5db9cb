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
    let is_separator = |c: char| !c.is_alphanumeric() && c != '_';
    // Words, each with the character before it.
    let mut words: Vec<(Option<char>, &str)> = Vec::new();
    let mut before = None;
    for part in path.split_inclusive(is_separator) {
        let word = part.trim_end_matches(is_separator);
        if !word.is_empty() {
            words.push((before, word));
        }
        before = part.chars().next_back();
    }
    // What variables hold is their value; the values of attention are a part of a model.
    let is_held = |at: usize| at + 1 == words.len() || words[at].0 == Some('.');
    let is_telling = |&(at, &(_, word)): &(usize, &(Option<char>, &str))| {
        let plain = word.to_ascii_lowercase();
        let is_plain = PLAIN_WORDS.contains(&plain.as_str()) || (plain == "value" && is_held(at));
        !is_plain && !word.bytes().all(|b| b.is_ascii_digit())
    };
    let telling: Vec<&str> = words.iter().enumerate().filter(is_telling).map(|(_, word)| word.1).collect();
    // Only numbers and common words, or one of several arrays that have nothing but a number: use the whole path.
    let is_numbered = matches!(&words[..], [_, (Some('['), number)] if number.bytes().all(|b| b.is_ascii_digit()));
    if telling.is_empty() || is_numbered {
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
        let attention = "state['model']['decoder']['layers']['self_attention']";
        assert_eq!(short_path(&format!("{attention}['value']['kernel'].value")), "self_attention/value");
        assert_eq!(short_path(&format!("{attention}['query']['kernel'].value")), "self_attention/query");
        assert_eq!(short_path("state['params']['wte']['value']"), "wte");
        assert_eq!(short_path("tables[3]"), "tables[3]", "one of several");
        assert_eq!(short_path("state[0][1]"), "state[0][1]", "only numbers and common words");
    }
}
