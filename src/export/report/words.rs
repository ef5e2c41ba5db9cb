//! Helpers for text and Markdown: counts, code, escaping.

use crate::model::counted;

/// `1 buffer`, `228 buffers`.
pub fn buffers(count: usize) -> String {
    counted(count as u64, "buffer")
}

/// Escapes text for Markdown; an underscore inside a word and a bracket that is not a link need no escape.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let is_link = text.contains("](");
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let inside = before.is_alphanumeric() && rest.peek().is_some_and(|next| next.is_alphanumeric());
        if "\\|*`<".contains(c) || (c == '_' && !inside) || (c == '[' && is_link) {
            out.push('\\');
        }
        out.push(c);
        before = c;
    }
    out
}

/// A name as Markdown code, safe in a table cell: bars are escaped, backticks replaced.
pub fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("`{}`", text.replace('`', "'").replace('|', "\\|")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        assert_eq!(escape("jit_train_step p[1]['w']"), "jit_train_step p[1]['w']");
        assert_eq!(escape("_x_ *y* a|b"), "\\_x\\_ \\*y\\* a\\|b");
        assert_eq!(escape("[x](y)"), "\\[x](y)");
        assert_eq!(code("a|b`c"), "`a\\|b'c`");
        assert_eq!(code(""), "");
    }
}
