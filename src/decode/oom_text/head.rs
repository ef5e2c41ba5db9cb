//! The beginning of a text, never cut within a character.

/// The first `len` bytes of a text, or as many fewer as end with a whole character.
pub fn head_of(text: &str, len: usize) -> &str {
    &text[..text.floor_char_boundary(len)]
}
