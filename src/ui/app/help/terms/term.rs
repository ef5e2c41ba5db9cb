//! One entry of the glossary.

/// A term and its meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct Term {
    /// The term.
    pub name: &'static str,
    /// Other forms in which it stands on the screen.
    pub also: &'static [&'static str],
    /// What it means.
    pub meaning: &'static str,
}

/// An entry: its name, other forms of it, and what it means.
pub const fn term(name: &'static str, also: &'static [&'static str], meaning: &'static str) -> Term {
    Term { name, also, meaning }
}

impl Term {
    /// All of its forms.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.name).chain(self.also.iter().copied())
    }

    /// Whether its forms and its meaning contain every word of a search.
    #[must_use]
    pub fn contains(&self, words: &[&str]) -> bool {
        let text = self.names().chain([self.meaning]).collect::<Vec<_>>().join(" ").to_lowercase();
        words.iter().all(|word| text.contains(word))
    }
}
