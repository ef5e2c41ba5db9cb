//! What tells the texts of a column apart: a part of a text that another text has otherwise, all else being equal. Where
//! there is no room for the whole, those parts stay.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::shorter::word_and_number;

/// Texts that are looked at, from the first on; more are not compared with each other by eye.
const MOST: usize = 20_000;

/// What the names of many buffers end with.
const ENDS: [&str; 2] = [", updated in place", ", next value"];

/// A name without what those of many buffers end with; `None` if it has no such end.
pub(super) fn without_end(text: &str) -> Option<&str> {
    ENDS.iter().find_map(|end| text.strip_suffix(end))
}

/// What the names of buffers begin with that say what they are before they say where.
const KINDS: [&str; 5] = [
    "logits, ",
    "gradient of the logits, ",
    "attention scores, ",
    "gradient of attention scores, ",
    "random numbers, ",
];

/// The scopes that a name has behind what it says that it is; `None` if it says no such thing.
fn without_kind(text: &str) -> Option<&str> {
    KINDS.iter().find_map(|kind| text.strip_prefix(kind)).filter(|rest| rest.contains('/'))
}

/// The parts of the texts of a column, each with what it is beside.
#[derive(Debug, Clone, Default)]
pub struct Telling {
    /// By hash of all other parts of a text: hash of the part that all have there; `None` where they differ.
    beside: HashMap<u64, Option<u64>>,
}

impl Telling {
    /// Compares the texts of a column.
    pub fn of(texts: impl Iterator<Item = String>) -> Self {
        let mut beside: HashMap<u64, Option<u64>> = HashMap::new();
        for text in texts.take(MOST) {
            let parts = parts_of(&text);
            for (at, part) in parts.iter().enumerate() {
                let own = hash(part);
                let known = beside.entry(others(&parts, at)).or_insert(Some(own));
                if *known != Some(own) {
                    *known = None;
                }
            }
        }
        Self { beside }
    }

    /// Places of the parts of a text that tell it from the others.
    #[must_use]
    pub fn places(&self, text: &str) -> Vec<usize> {
        let parts = parts_of(text);
        (0..parts.len()).filter(|&at| self.beside.get(&others(&parts, at)) == Some(&None)).collect()
    }
}

/// Ever shorter forms of a text that keep the parts at some places as long as they can; none without such places.
///
/// What many rows have at their end tells none of them and goes first. A name that words lead to has shorter forms of its
/// own.
pub fn forms(text: &str, told: &[usize]) -> impl Iterator<Item = String> {
    let bare = without_end(text);
    let is_led = text.split_once(": ").is_some_and(|(lead, _)| lead.contains(' '));
    let told: &[usize] = if is_led { &[] } else { told };
    let text = bare.unwrap_or(text);
    // Where it is tells more rows apart than what it is.
    let place = without_kind(text);
    let text = place.unwrap_or(text);
    let parts: Vec<String> = parts_of(text).into_iter().map(ToOwned::to_owned).collect();
    let last = parts.len().saturating_sub(1);
    let is_told = |at: &usize| told.contains(at);
    // From the front: what all have, then the end, then what tells them apart.
    let mut order: Vec<usize> = (0..last).filter(|at| !is_told(at)).collect();
    order.extend((0..=last).filter(|at| *at == last && !is_told(at)));
    let told_parts: Vec<usize> = (0..=last).filter(is_told).collect();
    // A long scope keeps its number before it goes.
    let short = |part: &String| {
        let (scope, slash) = part.strip_suffix('/').map_or((part.as_str(), ""), |scope| (scope, "/"));
        word_and_number(scope).map(|scope| format!("{scope}{slash}"))
    };
    let shortened: Vec<String> = parts.iter().map(|part| short(part).unwrap_or_else(|| part.clone())).collect();
    let shorten = |gone: &[usize]| {
        let is_shorter = !told_parts.is_empty() && shortened != parts;
        is_shorter.then(|| without(&shortened, gone).replace("\u{2026}/\u{2026}", "\u{2026}"))
    };
    let (middle, kept) = ((0..last).filter(|at| !is_told(at)).count(), order.len());
    let squeezed = [shorten(&order[..middle]), shorten(&order)];
    order.extend(told_parts.iter().take(told_parts.len().saturating_sub(1)));
    let most = if told_parts.is_empty() { 0 } else { order.len() };
    let first = usize::from(bare.is_none());
    let [with_end, without_end] = squeezed;
    let form = move |gone| without(&parts, &order[..gone]);
    let begin = (first..=middle.min(most)).map(form.clone()).chain(with_end);
    let end = (middle.max(first.saturating_sub(1)) + 1..=kept.min(most)).map(form.clone()).chain(without_end);
    let place = place.map(ToOwned::to_owned).into_iter();
    place.chain(begin).chain(end).chain((kept.max(first.saturating_sub(1)) + 1..=most).map(form))
}

/// A text without the parts at some places, with an ellipsis in each gap.
fn without(parts: &[String], gone: &[usize]) -> String {
    let mut out = String::new();
    let mut in_gap = false;
    for (at, part) in parts.iter().enumerate() {
        if gone.contains(&at) {
            in_gap = true;
            continue;
        }
        if std::mem::take(&mut in_gap) {
            // A part of an argument brings its own sign.
            out.push_str(if part.starts_with(['[', '.']) { "\u{2026}" } else { "\u{2026}/" });
        }
        out.push_str(part);
    }
    if in_gap {
        out.push('\u{2026}');
    }
    out
}

/// The parts of a path of scopes, each with the slash behind it, or of an argument, each with its bracket or dot.
fn parts_of(text: &str) -> Vec<&str> {
    if text.contains('/') {
        return text.split_inclusive('/').collect();
    }
    let mut ends: Vec<usize> = text.match_indices(['[', '.']).map(|(at, _)| at).filter(|&at| at > 0).collect();
    ends.push(text.len());
    let mut from = 0;
    let mut parts = Vec::new();
    for end in ends {
        parts.push(&text[from..end]);
        from = end;
    }
    parts
}

fn hash(part: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    part.hash(&mut hasher);
    hasher.finish()
}

/// Hash of all parts but one.
fn others(parts: &[&str], but: usize) -> u64 {
    let mut hasher = DefaultHasher::new();
    (parts.len(), but).hash(&mut hasher);
    parts.iter().enumerate().filter(|(at, _)| *at != but).for_each(|(_, part)| part.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_many_rows_end_with_goes_first() {
        let words = "state.mu['Dense_0']['kernel'], updated in place";
        let forms: Vec<String> = forms(words, &[1, 2, 3]).collect();
        assert_eq!(forms[..2], ["state.mu['Dense_0']['kernel']", "\u{2026}.mu['Dense_0']['kernel']"]);
    }

    #[test]
    fn where_it_is_stays_before_what_it_is() {
        let scores = [0, 10, 11].map(|layer| format!("attention scores, layer_{layer}/attn/sub"));
        let telling = Telling::of(scores.iter().cloned());
        let forms: Vec<String> = forms(&scores[1], &telling.places(&scores[1])).collect();
        assert_eq!(forms[..2], ["layer_10/attn/sub", "layer_10/\u{2026}/sub"]);
        assert_eq!(without_kind("logits, made from embed"), None);
    }

    #[test]
    fn the_layer_stays_where_only_it_differs() {
        let blocks = [0, 10, 17].map(|block| format!("XL/block_{block}/RelativeAttention_0/sub"));
        let telling = Telling::of(blocks.iter().cloned());
        let places = telling.places(&blocks[1]);
        assert_eq!(places, [1]);
        let forms: Vec<String> = forms(&blocks[1], &places).collect();
        assert_eq!(
            forms,
            [
                "\u{2026}/block_10/RelativeAttention_0/sub",
                "\u{2026}/block_10/\u{2026}/sub",
                "\u{2026}/block_10/\u{2026}"
            ]
        );
    }

    #[test]
    fn a_long_scope_keeps_its_number() {
        let of = |layer: usize, end: &str| format!("net/disentangled_encoder_layer_{layer}/softmax/{end}");
        let texts = [of(0, "sub"), of(1, "sub"), of(0, "exp")];
        let telling = Telling::of(texts.iter().cloned());
        let places = telling.places(&texts[0]);
        assert_eq!(places, [1, 3]);
        let forms: Vec<String> = forms(&texts[0], &places).collect();
        assert!(forms.contains(&"\u{2026}layer_0/\u{2026}/sub".to_owned()), "{forms:?}");
        assert_eq!(forms.last().map(String::as_str), Some("\u{2026}/sub"));
    }

    #[test]
    fn the_moments_of_an_optimizer_are_told_apart() {
        let arguments =
            ["state.opt_state[0].mu['wi_0'].value", "state.opt_state[0].nu['wi_0'].value"].map(str::to_owned);
        let telling = Telling::of(arguments.iter().cloned());
        let places = telling.places(&arguments[0]);
        let forms: Vec<String> = forms(&arguments[0], &places).collect();
        assert!(forms.contains(&"\u{2026}.mu\u{2026}.value".to_owned()), "{forms:?}");
        assert!(forms.iter().all(|form| form.contains(".mu")), "{forms:?}");
    }

    #[test]
    fn texts_that_have_nothing_in_common_keep_no_part() {
        let telling = Telling::of(["a/b", "c/d/e"].into_iter().map(str::to_owned));
        assert!(telling.places("a/b").is_empty());
        assert_eq!(forms("a/b", &[]).count(), 0);
    }
}
