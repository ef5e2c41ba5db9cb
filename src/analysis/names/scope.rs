//! Readable scopes from framework op names: `jit(step)/jvp(layer_3)/attn/dot_general` belongs to `layer_*/attn`.

use std::borrow::Cow;

/// As many scopes as most op names have.
const USUALLY: usize = 12;

/// Scopes and operation of an op name, without the wrappers of transformations.
#[must_use]
pub fn path(op_name: &str) -> Vec<&str> {
    let mut parts = Vec::with_capacity(USUALLY);
    // The scope that the last part differentiated backward.
    let mut backward = "";
    // Merged operations have several names; the first is that of the result.
    let op_name = memchr::memchr(b';', op_name.as_bytes()).map_or(op_name, |end| &op_name[..end]);
    // This runs for every name of a program: few have brackets.
    let has_brackets = memchr::memchr(b'[', op_name.as_bytes()).is_some();
    for whole in split(op_name) {
        let attributes = if has_brackets { attributes_at(whole) } else { None };
        let whole = attributes.map_or(whole, |at| &whole[..at]);
        let mut part = whole;
        if !part.bytes().any(|byte| matches!(byte, b'(' | b'[')) {
            backward = "";
            parts.extend(Some(part).filter(|part| !part.is_empty()));
            continue;
        }
        // jvp(layer_3), transpose(jvp(layer_3)), vmap(…): the scope is inside; jit(step) only names the function.
        while let Some(at) = part.bytes().position(|byte| byte == b'(') {
            let (wrapper, rest) = (&part[..at], &part[at + 1..]);
            let Some(inner) = rest.strip_suffix(')') else { break };
            if matches!(wrapper, "jit" | "pjit" | "xla_call" | "pmap" | "shard_map") {
                part = "";
                break;
            }
            if !matches!(wrapper, "jvp" | "transpose" | "vmap" | "remat" | "checkpoint" | "custom_jvp" | "custom_vjp") {
                break;
            }
            part = inner;
        }
        // What is recomputed has its scope twice: transpose(jvp(layer_3))/jvp(layer_3)/….
        let is_repeated = whole.starts_with("jvp(") && part == backward;
        backward = if whole.starts_with("transpose(") { part } else { "" };
        if is_repeated {
            continue;
        }
        if part.bytes().any(|byte| byte == b'/') {
            parts.extend(part.split('/').filter(|part| !part.is_empty()));
        } else {
            parts.extend(Some(part).filter(|part| !part.is_empty()));
        }
    }
    parts
}

/// An op name without the attributes that older versions of JAX write behind an operation, over several lines:
/// `conv_general_dilated[\n  batch_group_count=1\n]` is `conv_general_dilated`.
#[must_use]
pub fn without_attributes(op_name: &str) -> Cow<'_, str> {
    let Some(mut begin) = attributes_at(op_name) else { return Cow::Borrowed(op_name) };
    let (mut out, mut rest) = (String::new(), op_name);
    loop {
        out.push_str(&rest[..begin]);
        rest = behind_bracket(&rest[begin..]);
        match attributes_at(rest) {
            Some(next) => begin = next,
            None => return Cow::Owned(out + rest),
        }
    }
}

/// Where a list of attributes begins: at a bracket with a word and an equals sign behind it. Messages have a line break
/// as `\n`.
fn attributes_at(text: &str) -> Option<usize> {
    let begins_list = |inside: &str| {
        let mut inside = inside.trim_start();
        while let Some(rest) = inside.strip_prefix("\\n") {
            inside = rest.trim_start();
        }
        let behind = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        behind.len() < inside.len() && behind.starts_with('=') && !behind.starts_with("==")
    };
    text.match_indices('[').map(|(at, _)| at).find(|&at| begins_list(&text[at + 1..]))
}

/// What is behind the bracket that closes the first one; nothing if none does.
fn behind_bracket(text: &str) -> &str {
    let mut depth = 0i32;
    let closing = text.bytes().position(|byte| {
        depth += i32::from(byte == b'[') - i32::from(byte == b']');
        depth == 0
    });
    closing.and_then(|at| text.get(at + 1..)).unwrap_or("")
}

/// Splits at slashes outside brackets.
fn split(name: &str) -> impl Iterator<Item = &str> {
    let (mut depth, mut rest) = (0i32, Some(name));
    // By bytes: this runs for every name of a program, and no byte of a longer character is one of these.
    std::iter::from_fn(move || {
        let text = rest?;
        // Most scopes have no brackets.
        if depth <= 0 {
            let end = memchr::memchr(b'/', text.as_bytes());
            let part = &text[..end.unwrap_or(text.len())];
            if !part.bytes().any(|byte| matches!(byte, b'(' | b'[' | b')' | b']')) {
                rest = end.and_then(|end| text.get(end + 1..));
                return Some(part);
            }
        }
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'(' | b'[' => depth += 1,
                b')' | b']' => depth -= 1,
                b'/' if depth <= 0 => {
                    rest = text.get(at + 1..);
                    return text.get(..at);
                }
                _ => {}
            }
        }
        rest = None;
        Some(text)
    })
}

/// Whether a scope is the formula of an einsum (`bqhd,bkhd->bhqk`), which names no part of a model.
#[must_use]
pub fn is_einsum(scope: &str) -> bool {
    scope.contains("->") || scope.starts_with("...")
}

/// What programs call one of several equal parts, also without a separator before its number: `block11`.
const PARTS: [&str; 3] = ["block", "layer", "stage"];

/// A part's name and the number at its end, as text, where the number is one of several equal parts: `layer_` and `3`,
/// `block` and `11`, but not `conv1` or `atan2`.
#[must_use]
pub fn numbered(part: &str) -> Option<(&str, &str)> {
    if !part.ends_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let head = part.trim_end_matches(|c: char| c.is_ascii_digit());
    let is_separate =
        head.is_empty() || head.ends_with(['_', '-', '.']) || PARTS.iter().any(|word| head.ends_with(word));
    (head.len() < part.len() && is_separate).then(|| part.split_at(head.len()))
}

/// Replaces the number of one of several equal parts by `*`: `layer_3` becomes `layer_*`.
#[must_use]
pub fn fold(part: &str) -> String {
    numbered(part).map_or_else(|| part.to_owned(), |(head, _)| format!("{head}*"))
}

/// The whole path with numbered scopes folded; an argument is folded to its first name: `params[…]`.
#[must_use]
pub fn folded(op_name: &str) -> String {
    if let Some((name, _)) = argument(op_name) {
        return if name.len() < op_name.len() { format!("{name}[\u{2026}]") } else { name.to_owned() };
    }
    // Of a label that ends in the path of an argument: `copy of params['w']`.
    if let Some((words, last)) = op_name.rsplit_once(' ').filter(|(_, last)| argument(last).is_some()) {
        return format!("{words} {}", folded(last));
    }
    path(op_name).into_iter().map(fold).collect::<Vec<_>>().join("/")
}

/// A short label: the last parts of a path, after its numbered scopes, which tell equal layers apart:
/// `layer_14/…/attn/dot_general`.
#[must_use]
pub fn short(op_name: &str, parts: usize) -> String {
    if argument(op_name).is_some() {
        return op_name.to_owned();
    }
    let path = path(op_name);
    let from = path.len().saturating_sub(parts);
    let mut out = String::new();
    let mut next = None;
    for (at, part) in path.iter().enumerate().filter(|&(at, part)| at >= from || fold(part) != *part) {
        match next {
            None => {}
            Some(next) if next == at => out.push('/'),
            Some(_) => out.push_str("/\u{2026}/"),
        }
        out.push_str(part);
        next = Some(at + 1);
    }
    out
}

/// Splits a JAX argument path into its first name and the rest: `params['w']` into `params` and `['w']`.
#[must_use]
pub fn argument(op_name: &str) -> Option<(&str, &str)> {
    if op_name.contains('/') && !op_name.contains('[') {
        return None;
    }
    let end = op_name.find(['[', '.']).unwrap_or(op_name.len());
    let (name, rest) = op_name.split_at(end);
    let is_word = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let is_operation = attributes_at(rest) == Some(0);
    (is_word && !is_operation && (rest.is_empty() || rest.starts_with(['[', '.']))).then_some((name, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrappers_fall_away_and_layers_fold() {
        assert_eq!(path("jit(step)/jvp(layer_3)/attn/dot_general"), ["layer_3", "attn", "dot_general"]);
        assert_eq!(path("jit(f)/transpose(jvp(model/layer_0))/mul"), ["model", "layer_0", "mul"]);
        assert_eq!(folded("jit(step)/jvp(layer_3)/attn/dot_general"), "layer_*/attn/dot_general");
        assert_eq!(folded("jit(step)/jvp()/dot_general"), "dot_general");
        let recomputed = "jit(f)/transpose(jvp(layer_0))/jvp(layer_0)/checkpoint/mul";
        assert_eq!(path(recomputed), ["layer_0", "checkpoint", "mul"]);
        assert_eq!(path("jit(f)/jvp(block)/block/mul"), ["block", "block", "mul"], "a scope within one of its name");
        assert_eq!(fold("conv2d"), "conv2d");
        assert_eq!(fold("layer.12"), "layer.*");
    }

    #[test]
    fn attributes_of_an_operation_are_no_part_of_its_name() {
        let broken = "jit(f)/layer_0/conv[\n  batch_group_count=1\n  spec=([0, 1], 2)\n]";
        assert_eq!(without_attributes(broken), "jit(f)/layer_0/conv");
        let escaped = "jit(f)/while[cond_nconsts=0]/body/conv[\\n  batch_group_count=1\\n]";
        assert_eq!(without_attributes(escaped), "jit(f)/while/body/conv");
        assert_eq!(short(escaped, 3), "while/body/conv");
        assert_eq!(path(broken), ["layer_0", "conv"]);
        assert_eq!(without_attributes("jit(f)/conv[shape=(3,"), "jit(f)/conv", "cut off");
        assert_eq!(argument("mul[a=1]"), None);
        for kept in ["params['w']", "opt_state[0].mu['layer_3']['w']", "x[0]", "jit(f)/mul", "args[1]"] {
            assert_eq!(without_attributes(kept), kept);
        }
    }

    #[test]
    fn arguments_keep_their_first_name() {
        assert_eq!(folded("opt_state[0].mu['layer_3']['w']"), "opt_state[\u{2026}]");
        assert_eq!(folded("params"), "params");
        assert_eq!(folded("gradient of params[1]['w']"), "gradient of params[\u{2026}]");
        assert_eq!(argument("jit(step)/mul"), None);
        assert_eq!(short("jit(step)/jvp(layer_3)/attn/dot_general", 2), "layer_3/attn/dot_general");
        assert_eq!(short("jit(s)/model/layer_3/a/b/c/mul", 2), "layer_3/\u{2026}/c/mul");
        assert_eq!(short("jit(s)/model/a/b/c/mul", 2), "c/mul");
    }
}
