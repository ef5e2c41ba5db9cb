//! Flags of XLA in a variable: words with optional quotes, as XLA reads them.

/// Flags in the order in which they were given.
#[derive(Debug)]
pub struct Flags(Vec<(String, String)>);

impl Flags {
    /// Splits a text into flags. A flag without a value has an empty one.
    pub fn parse(text: &str) -> Self {
        let mut flags = Vec::new();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            let word = next_word(&mut rest);
            if let Some(flag) = word.strip_prefix("--") {
                let (name, value) = flag.split_once('=').unwrap_or((flag, ""));
                flags.push((name.to_owned(), value.to_owned()));
            }
        }
        Self(flags)
    }

    /// The value of a flag; of several of the same name the last one counts.
    pub fn last(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|flag| flag.0 == name).map(|flag| flag.1.as_str())
    }

    /// Names of all of them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|flag| flag.0.as_str())
    }
}

/// Takes a word off the front; quotes around it, or around its value, are removed.
fn next_word(rest: &mut &str) -> String {
    let mut word = String::new();
    let mut quote = None;
    let mut end = rest.len();
    for (at, c) in rest.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => quote = Some(c),
            None if c.is_whitespace() => {
                end = at;
                break;
            }
            _ => word.push(c),
        }
    }
    *rest = rest[end..].trim_start();
    word
}

/// A value in quotes if it needs them.
pub fn quoted(value: &str) -> String {
    if !value.contains(|c: char| c.is_whitespace() || c == '\'' || c == '"') {
        value.to_owned()
    } else if value.contains('\'') {
        format!("\"{value}\"")
    } else {
        format!("'{value}'")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_belong_to_no_value() {
        let flags = Flags::parse("  --a=1 '--b=x y'\n--c=\"p q\" --a=2 --d stray");
        assert_eq!((flags.last("a"), flags.last("b"), flags.last("c")), (Some("2"), Some("x y"), Some("p q")));
        assert_eq!((flags.last("d"), flags.last("e")), (Some(""), None));
        for value in ["/plain", "/with space", "/o'clock now"] {
            assert_eq!(Flags::parse(&format!("--to={}", quoted(value))).last("to"), Some(value));
        }
    }
}
