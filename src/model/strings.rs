//! Interned strings.

use std::collections::HashMap;
use std::sync::Arc;

use super::ids::StringId;

/// A string interner. Id 0 is the empty string.
#[derive(Debug, Clone)]
pub struct Strings {
    texts: Vec<Arc<str>>,
    ids: HashMap<Arc<str>, StringId>,
}

impl Default for Strings {
    fn default() -> Self {
        let mut strings = Self { texts: Vec::new(), ids: HashMap::new() };
        strings.intern("");
        strings
    }
}

impl Strings {
    /// The id of a string, added if new.
    pub fn intern(&mut self, text: &str) -> StringId {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let id = StringId::from_index(self.texts.len());
        let text: Arc<str> = text.into();
        self.texts.push(Arc::clone(&text));
        self.ids.insert(text, id);
        id
    }

    /// The string with an id; empty if there is none.
    #[must_use]
    pub fn get(&self, id: StringId) -> &str {
        self.texts.get(id.index()).map_or("", |text| text)
    }

    /// A copy with every string replaced, keeping the ids.
    #[must_use]
    pub fn map(&self, other: impl Fn(&str) -> String) -> Self {
        let texts: Vec<Arc<str>> =
            self.texts.iter().map(|text| if text.is_empty() { Arc::clone(text) } else { other(text).into() }).collect();
        let ids = texts.iter().enumerate().map(|(i, text)| (Arc::clone(text), StringId::from_index(i))).collect();
        Self { texts, ids }
    }

    /// Number of distinct strings, including the empty one.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether it has only the empty string.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.len() <= 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_an_id() {
        let mut strings = Strings::default();
        let a = strings.intern("attn");
        assert_eq!(strings.intern("attn"), a);
        assert_ne!(strings.intern("mlp"), a);
        assert_eq!(strings.get(a), "attn");
        assert_eq!(strings.intern(""), StringId(0));
        assert_eq!(strings.get(StringId(99)), "");
    }
}
