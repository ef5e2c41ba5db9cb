//! Values common to all documents of a report: facts, lists of names, and unknown keys.

use super::pull::{Pull, Result, Token, elements, members};
use super::rows::MAX_ROWS;
use super::state::State;

/// Records an unknown key with the type of its value, and skips the value.
///
/// # Errors
/// When the input is damaged or ends early.
pub fn unknown(pull: &mut dyn Pull, state: &mut State, path: &str, first: Token) -> Result<()> {
    let holds = match first {
        Token::Null => "null".to_owned(),
        Token::Bool(value) => value.to_string(),
        Token::Whole(value) => value.to_string(),
        Token::Real(value) => value.to_string(),
        Token::Text => pull.text().chars().take(80).collect(),
        Token::BeginArray => "list".to_owned(),
        _ => "object".to_owned(),
    };
    state.unknown(path, &holds);
    pull.skip_rest(first)
}

/// Records everything below an object as facts, one per scalar; of lists only the first values.
///
/// # Errors
/// When the input is damaged or ends early.
pub fn facts(pull: &mut dyn Pull, state: &mut State, group: &str, prefix: &str, depth: usize) -> Result<()> {
    members(pull, &mut |pull, key, first| {
        let path = if prefix.is_empty() { key.to_owned() } else { format!("{prefix}.{key}") };
        fact(pull, state, group, &path, first, depth)
    })
}

/// Records a value as a fact; an object as one fact per scalar in it.
///
/// # Errors
/// When the input is damaged or ends early.
pub fn fact(pull: &mut dyn Pull, state: &mut State, group: &str, path: &str, first: Token, depth: usize) -> Result<()> {
    let value = match first {
        Token::BeginObject if depth < 16 => return facts(pull, state, group, path, depth + 1),
        Token::BeginArray => {
            let mut shown = Vec::new();
            let mut count = 0usize;
            elements(pull, &mut |pull, _, first| {
                count += 1;
                if shown.len() < 8 {
                    shown.extend(plain(pull, first));
                }
                pull.skip_rest(first)
            })?;
            let more = if count > shown.len() { format!(", … ({count})") } else { String::new() };
            format!("{}{more}", shown.join(", "))
        }
        other => match plain(pull, other) {
            Some(text) => text,
            None => return pull.skip_rest(other),
        },
    };
    state.fact(group, path, value);
    Ok(())
}

fn plain(pull: &mut dyn Pull, token: Token) -> Option<String> {
    Some(match token {
        Token::Null => "null".to_owned(),
        Token::Bool(value) => value.to_string(),
        Token::Whole(value) => value.to_string(),
        Token::Real(value) => value.to_string(),
        Token::Text => pull.text().chars().take(2000).collect(),
        _ => return None,
    })
}

/// Texts of a list.
///
/// # Errors
/// When the input is damaged or ends early.
pub fn names(pull: &mut dyn Pull, state: &mut State, list: &mut Vec<String>) -> Result<()> {
    elements(pull, &mut |pull, index, first| {
        let name = if first == Token::Text { state.name(pull.text()) } else { String::new() };
        if index < MAX_ROWS {
            list.push(name);
        }
        pull.skip_rest(first)
    })
}
