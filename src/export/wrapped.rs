//! Lines of a report wrapped to a width.

use textwrap::core::Word;
use textwrap::{Options, WordSeparator, WrapAlgorithm};

/// Wraps a line to `width` columns; further lines are aligned with its last column, or slightly indented.
#[must_use]
pub fn wrap(line: &str, width: usize) -> Vec<String> {
    let (indent, words) = line.split_at(line.len() - line.trim_start().len());
    let column = line.rfind("  ").map_or(0, |at| textwrap::core::display_width(&line[..at + 2]));
    let hanging = if column > indent.len() && column < width * 3 / 5 { column } else { indent.len() + 4 };
    let hanging = " ".repeat(hanging.min(width / 2));
    let options = Options::new(width)
        .initial_indent(indent)
        .subsequent_indent(&hanging)
        .wrap_algorithm(WrapAlgorithm::FirstFit)
        .word_separator(WordSeparator::Custom(parts))
        .break_words(true);
    textwrap::wrap(words, options).into_iter().map(std::borrow::Cow::into_owned).collect()
}

/// Splits a line where it may break: after spaces, and after the slashes of a path.
fn parts(line: &str) -> Box<dyn Iterator<Item = Word<'_>> + '_> {
    let mut rest = line;
    Box::new(std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut before = '\0';
        let end = rest.char_indices().find_map(|(at, c)| {
            let is_break = c != ' ' && (before == ' ' || (before == '/' && c != '/'));
            before = c;
            is_break.then_some(at)
        });
        let (part, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(Word::from(part))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_stands_under_its_last_column() {
        let line = "    peak                25.9 GiB      27,843,912,704 B  at step 3,644 of 5,849, fusion.12";
        let wrapped = wrap(line, 80);
        assert!(wrapped.iter().all(|part| textwrap::core::display_width(part) <= 80), "{wrapped:?}");
        assert_eq!(wrapped.len(), 2);
        assert!(wrapped[1].starts_with(&" ".repeat(8)), "{wrapped:?}");
        let joined: Vec<&str> = wrapped.iter().flat_map(|part| part.split_whitespace()).collect();
        assert_eq!(joined, line.split_whitespace().collect::<Vec<_>>(), "nothing is lost");
    }

    #[test]
    fn a_path_breaks_behind_its_slashes_and_a_word_that_is_too_long_anywhere() {
        let path = "jit(train_step)/transpose(jvp(layer_14))/attn/bthk,bshk->bhts/dot_general";
        let wrapped = wrap(path, 40);
        assert!(wrapped[0].ends_with('/'), "{wrapped:?}");
        assert_eq!(wrapped.concat().replace(' ', ""), path);
        let wrapped = wrap(&"x".repeat(100), 40);
        assert!(wrapped.iter().all(|part| part.len() <= 40) && wrapped.len() >= 3, "{wrapped:?}");
    }
}
