//! Fuzzy matching for the command palette, with scores.

use std::sync::Arc;

use rayon::prelude::*;

use crate::model::BufferId;
use crate::ui::session::Document;
use crate::ui::work::Job;

/// Maximum number of buffers in the list.
const BUFFERS: usize = 40;

/// Minimum number of letters for a search in buffers.
pub const LEAST: usize = 2;

/// Matching buffers: score, buffer, name, framework op name.
pub type Found = Vec<(i32, BufferId, String, String)>;

/// The open palette.
#[derive(Default)]
pub struct CommandPalette {
    pub text: String,
    pub chosen: usize,
    /// Enter was pressed while the buffer search was running.
    pub is_entered: bool,
    pub searching: Option<(String, Job<Arc<Found>>)>,
    pub found: Option<(String, Arc<Found>)>,
}

/// The best matches among a program's buffers, by name or op; ties are ordered largest first.
pub fn buffers(document: &Document, program: usize, text: &str) -> Found {
    let Some((model, _)) = document.program(program) else { return Vec::new() };
    let best = |mut found: Vec<(i32, BufferId)>| {
        found.sort_by_key(|&(score, buffer)| (std::cmp::Reverse((score, model.buffers.size_of(buffer))), buffer));
        found.truncate(BUFFERS);
        found
    };
    let rows = (0..model.buffers.len()).into_par_iter().with_min_len(4096).map(BufferId::from_index);
    let lower = text.to_lowercase();
    let parts: Vec<&str> = lower.split_whitespace().collect();
    let op_of = |buffer| model.buffers.instruction_of(buffer).map(|i| model.text.op_name(i)).unwrap_or_default();
    let found = rows
        .filter_map(|buffer| {
            let name = model.buffer_name(buffer);
            let by_name = score(text, &name).filter(|_| is_in_pieces(&lower, &name.to_lowercase()));
            // Op names must contain the text as typed: scattered letters occur in all of these long paths.
            let by_op = || op_of(buffer).to_lowercase().contains(&lower).then_some(-4);
            // Several words may stand in any order, in the name or in the op.
            let by_words = || {
                let whole = format!("{} {}", model.buffer_name(buffer), op_of(buffer)).to_lowercase();
                (parts.len() > 1 && parts.iter().all(|part| whole.contains(part))).then_some(-6)
            };
            Some((by_name.or_else(by_op).or_else(by_words)?, buffer))
        })
        .fold(Vec::new, |mut found, hit| {
            found.push(hit);
            if found.len() >= 8 * BUFFERS { best(found) } else { found }
        })
        .reduce(Vec::new, |mut a, b| {
            a.extend(b);
            best(a)
        });
    best(found).into_iter().map(|(score, b)| (score - 10, b, model.buffer_name(b), op_of(b))).collect()
}

/// Whether letters are in a name in pieces that begin with its words: `fus12` in `fusion.12`, but `micro` not in
/// `minimum_compare_fusion`. Letters that stand together may be anywhere.
fn is_in_pieces(letters: &str, name: &str) -> bool {
    let letters: String = letters.split_whitespace().collect();
    if name.contains(&letters) {
        return true;
    }
    let mut left = letters.as_str();
    let is_part = |c: char| c.is_alphanumeric();
    for word in name.split_inclusive(|c: char| !is_part(c)) {
        let common =
            word.chars().zip(left.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum::<usize>();
        left = &left[common..];
    }
    left.is_empty()
}

/// Score of a fuzzy match: all letters must occur in order. Letters at word starts and adjacent letters score higher,
/// and a text that contains them in one piece scores highest. `None` if a letter is missing.
pub fn score(letters: &str, words: &str) -> Option<i32> {
    let mut score = 0;
    let mut last_was_hit = false;
    let mut before = ' ';
    let mut wanted = letters.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).peekable();
    for c in words.chars() {
        let lower = c.to_lowercase().next().unwrap_or(c);
        if wanted.peek() == Some(&lower) {
            wanted.next();
            score += 1 + if last_was_hit { 4 } else { 0 } + if before.is_alphanumeric() { 0 } else { 5 };
            last_was_hit = true;
        } else {
            last_was_hit = false;
        }
        before = c;
        if wanted.peek().is_none() {
            break;
        }
    }
    let is_whole = wanted.peek().is_none();
    is_whole.then(|| score + as_typed(letters, words) - words.chars().count() as i32 / 16)
}

/// Whether a word of a text begins with what was typed.
pub fn leads(letters: &str, words: &str) -> bool {
    let (typed, words) = (letters.trim().to_lowercase(), words.to_lowercase());
    let begins = |(at, _): (usize, &str)| !words[..at].ends_with(char::is_alphanumeric);
    !typed.is_empty() && words.match_indices(&typed).any(begins)
}

/// Bonus for a text with the letters in one piece: the whole text, a prefix, a word start, anywhere.
fn as_typed(letters: &str, words: &str) -> i32 {
    let typed = letters.trim().to_lowercase();
    if typed.is_empty() {
        return 0;
    }
    let whole = words.to_lowercase();
    let name = whole.split_once(": ").map_or(whole.as_str(), |(_, name)| name);
    match name.find(&typed) {
        Some(0) if name.len() == typed.len() => 80,
        Some(0) => 40,
        Some(at) if !name[..at].ends_with(char::is_alphanumeric) => 25,
        Some(_) => 15,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scattered_letters_are_no_name() {
        assert!(is_in_pieces("fus12", "fusion.12") && is_in_pieces("compfus", "minimum_compare_fusion"));
        assert!(is_in_pieces("are_fu", "minimum_compare_fusion"), "letters that stand together may be anywhere");
        assert!(!is_in_pieces("micro", "minimum_compare_fusion"));
    }

    #[test]
    fn letters_at_beginnings_and_side_by_side_fit_best() {
        assert_eq!(score("xyz", "View: Timeline"), None);
        assert!(score("tim", "View: Timeline") > score("tim", "Clear step, selection, filter with more"));
        assert!(score("fus12", "fusion.12") > score("fus12", "fusion.1002"));
        assert!(score("", "anything").is_some());
        assert!(score("vt", "View: Timeline") > score("vt", "convert"));
        let buffer = score("copy.12", "copy.12").map(|score| score - 10);
        assert!(buffer > score("copy.12", "Copy a picture of the view, 1 or 2"), "what is typed comes first");
        assert!(score("top", "op.1 top") > score("top", "The one before, page"));
    }
}
