//! The words of the screen, explained: how the glossary's entries are found.

mod program;
mod screen;
mod term;
mod tiles;

pub use term::Term;

/// All terms.
fn all() -> impl Iterator<Item = &'static Term> {
    [program::TERMS, screen::TERMS, tiles::TERMS].into_iter().flatten()
}

/// The term that stands on the screen as these words, and nothing else: a label, a column's title with its arrow.
#[must_use]
pub fn of_label(words: &str) -> Option<&'static Term> {
    let label = words.trim_end_matches(['\u{2191}', '\u{2193}', ':', ' ']).trim();
    // A unit behind a comma is that of the column.
    let label = ["B", "KiB", "MiB", "GiB", "KB", "MB", "GB"]
        .iter()
        .find_map(|unit| label.strip_suffix(unit)?.strip_suffix(", "))
        .unwrap_or(label);
    all().find(|term| term.names().any(|name| name.eq_ignore_ascii_case(label)))
}

/// The longest term among some words.
#[must_use]
pub fn within(words: &str) -> Option<&'static Term> {
    if let Some(term) = of_label(words) {
        return Some(term);
    }
    let text = words.to_lowercase();
    let is_word = |name: &str| {
        text.match_indices(name).any(|(at, _)| {
            let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + name.len()..].chars().next())
        })
    };
    let found = all().flat_map(|term| term.names().map(move |name| (name.to_lowercase(), term)));
    found.filter(|(name, _)| is_word(name)).max_by_key(|(name, _)| name.len()).map(|(_, term)| term)
}

/// The terms that match a search; those whose name does come first.
#[must_use]
pub fn matching(search: &str) -> Vec<&'static Term> {
    let search = search.to_lowercase();
    let words: Vec<&str> = search.split_whitespace().collect();
    let mut found: Vec<&Term> = all().filter(|term| term.contains(&words)).collect();
    let rank = |term: &Term| {
        let name = term.name.to_lowercase();
        (name != search.trim(), !words.iter().all(|word| name.contains(word)))
    };
    found.sort_by_cached_key(|term| (rank(term), term.name.to_lowercase()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_found_by_what_stands_on_the_screen() {
        assert_eq!(of_label("Padding share \u{2193}").map(|term| term.name), Some("Padding"));
        assert_eq!(of_label("jit_step"), None);
        assert_eq!(within("9 buffers at the peak").map(|term| term.name), Some("At the peak"), "the longest");
        assert_eq!(within("unpeaked"), None);
        assert_eq!(of_label("Treemap").map(|term| term.name), Some("Treemap"), "by the name on the tab");
        assert_eq!(matching("peak")[0].name, "Peak");
        assert!(matching("donate jax").iter().any(|term| term.name == "Donation"));
    }

    #[test]
    fn the_glossary_is_in_order_and_no_form_is_claimed_twice() {
        for part in [program::TERMS, screen::TERMS, tiles::TERMS] {
            assert!(part.is_sorted_by_key(|term| term.name.to_lowercase()));
        }
        assert!(matching("").is_sorted_by_key(|term| term.name.to_lowercase()));
        let mut names: Vec<String> = all().flat_map(Term::names).map(str::to_lowercase).collect();
        names.sort();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }
}
