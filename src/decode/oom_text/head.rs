//! The beginning of a text, never cut within a character.

/// The first `len` bytes of a text, or as many fewer as end with a whole character.
pub fn head_of(text: &str, mut len: usize) -> &str {
    len = len.min(text.len());
    while !text.is_char_boundary(len) {
        len -= 1;
    }
    &text[..len]
}
