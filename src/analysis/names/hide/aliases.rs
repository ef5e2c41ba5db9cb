//! Replaces names from the source code by aliases: a word always gets the same alias, and numbers are kept, so layers
//! still fold and arguments stay distinguishable.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::vocabulary::is_common;

/// The aliases given so far, for as long as the window is open.
#[derive(Debug, Default)]
pub struct Aliases {
    given: Mutex<Given>,
}

#[derive(Debug, Default)]
struct Given {
    words: HashMap<String, String>,
    scopes: usize,
    ops: usize,
    files: HashMap<String, String>,
    programs: HashMap<String, String>,
}

/// File extensions, which reveal nothing and are kept.
const ENDINGS: &[&str] = &[
    "py", "pb", "gz", "hlo", "txt", "json", "log", "zip", "tar", "zst", "cc", "h", "cpp", "pop", "cbor", "prof",
    "mlir", "rs", "c", "ipynb", "pprof",
];

impl Aliases {
    fn given(&self) -> MutexGuard<'_, Given> {
        // Names that were given stay true even where another thread stopped.
        self.given.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Aliases a framework op name, argument path or function name.
    #[must_use]
    pub fn scope(&self, text: &str) -> String {
        self.replace(text, |given, word| given.word(word, true))
    }

    /// Aliases the name of an instruction or computation.
    #[must_use]
    pub fn op(&self, text: &str) -> String {
        self.replace(text, |given, word| given.word(word, false))
    }

    /// Aliases a file name: `file_2.py`.
    #[must_use]
    pub fn file(&self, path: &str) -> String {
        if path.is_empty() {
            return String::new();
        }
        let mut given = self.given();
        if let Some(name) = given.files.get(path) {
            return name.clone();
        }
        let last = path.rsplit(['/', '\\']).next().unwrap_or(path);
        let mut endings: Vec<&str> = last.rsplit('.').take_while(|part| ENDINGS.contains(part)).collect();
        endings.reverse();
        let ending: String = endings.iter().flat_map(|part| [".", part]).collect();
        let name = format!("file_{}{ending}", given.files.len() + 1);
        given.files.insert(path.to_owned(), name.clone());
        name
    }

    /// Aliases a program name: `program_1`.
    #[must_use]
    pub fn program(&self, name: &str) -> String {
        if name.is_empty() {
            return String::new();
        }
        let mut given = self.given();
        let next = given.programs.len() + 1;
        given.programs.entry(name.to_owned()).or_insert_with(|| format!("program_{next}")).clone()
    }

    /// Aliases a sentence: replaces paths and the words that have an alias, and leaves the rest.
    #[must_use]
    pub fn sentence(&self, text: &str) -> String {
        let edge = |c: char| matches!(c, ',' | ';' | ':' | '(' | ')' | '\'' | '"' | '`' | '\u{201c}' | '\u{201d}');
        let words = text.split(' ').map(|word| {
            let bare = word.trim_matches(edge).trim_end_matches('.');
            let known = { self.given().programs.get(bare).cloned() };
            let is_path =
                bare.contains(['/', '\\']) || bare.rsplit('.').next().is_some_and(|end| ENDINGS.contains(&end));
            let alias = match known {
                Some(name) => name,
                None if is_path && bare.contains(['/', '\\', '.']) => self.file(bare),
                None => self.replace(bare, |given, word| given.words.get(word).map_or(word, |name| name).to_owned()),
            };
            if bare.is_empty() { word.to_owned() } else { word.replacen(bare, &alias, 1) }
        });
        words.collect::<Vec<_>>().join(" ")
    }

    /// Replaces the words of a text, keeping separators and numbers at the end of a word.
    fn replace(&self, text: &str, alias: impl Fn(&mut Given, &str) -> String) -> String {
        let mut given = self.given();
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_word = |c: char| c.is_alphanumeric() || c == '_';
            if !first.is_alphabetic() && first != '_' {
                let end = rest.find(|c: char| c.is_alphabetic() || c == '_').unwrap_or(rest.len());
                out.push_str(&rest[..end]);
                rest = &rest[end..];
                continue;
            }
            let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            let base = word.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_');
            if is_common(word) || base.is_empty() {
                out.push_str(word);
            } else {
                // `jit_train_step` is what JAX makes of a function's name.
                let (prefix, own) = match base.split_once('_') {
                    Some((wrapper, own)) if matches!(wrapper, "jit" | "pjit" | "pmap") => {
                        (&base[..=wrapper.len()], own)
                    }
                    _ => ("", base),
                };
                out.push_str(prefix);
                out.push_str(&alias(&mut given, own));
                out.push_str(&word[base.len()..]);
            }
            rest = after;
        }
        out
    }
}

impl Given {
    fn word(&mut self, word: &str, is_scope: bool) -> String {
        if let Some(name) = self.words.get(word) {
            return name.clone();
        }
        let (kind, count) = if is_scope { ("scope", &mut self.scopes) } else { ("op", &mut self.ops) };
        let name = format!("{kind}{}", letters(*count));
        *count += 1;
        self.words.insert(word.to_owned(), name.clone());
        name
    }
}

/// A, B, …, Z, AA, AB: letters, because numbers at the end of a name are folded.
fn letters(mut number: usize) -> String {
    let mut out = Vec::new();
    loop {
        out.push(char::from(b'A' + (number % 26) as u8));
        if number < 26 {
            break;
        }
        number = number / 26 - 1;
    }
    out.iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::names::scope;

    #[test]
    fn words_are_replaced_and_structure_stays() {
        let aliases = Aliases::default();
        let op = aliases.scope("jit(train_step)/transpose(jvp(layer_3))/attn/dot_general");
        assert_eq!(op, "jit(scopeA)/transpose(jvp(scopeB_3))/scopeC/dot_general");
        assert_eq!(aliases.scope("jit(train_step)/layer_11/attn"), "jit(scopeA)/scopeB_11/scopeC", "the same word");
        assert_eq!(scope::folded(&op), "scopeB_*/scopeC/dot_general", "layers fold as before");
        assert_eq!(aliases.scope("params['layer_0']['w']"), "params['scopeB_0']['w']");
        assert_eq!(aliases.op("fusion.1900.remat"), "fusion.1900.remat");
        assert_eq!(aliases.op("flash_fwd_kernel.3{1}"), "opA.3{1}");
        assert_eq!(aliases.scope("bf16[32,1024]{1,0:T(8,128)(2,1)}"), "bf16[32,1024]{1,0:T(8,128)(2,1)}");
    }

    #[test]
    fn files_and_programs_are_numbered() {
        let aliases = Aliases::default();
        assert_eq!(aliases.file("/home/me/secret/model.py"), "file_1.py");
        assert_eq!(aliases.file("run.after.hlo.pb.gz"), "file_2.hlo.pb.gz");
        assert_eq!(aliases.file("/home/me/secret/model.py"), "file_1.py");
        assert_eq!(aliases.program("jit_secret"), "program_1");
        let sentence = aliases.sentence("12 of 17 differ from /home/me/secret/model.py, first jit_secret: see it.");
        assert_eq!(sentence, "12 of 17 differ from file_1.py, first program_1: see it.");
    }

    #[test]
    fn letters_go_on() {
        assert_eq!([0, 25, 26, 27, 701, 702].map(letters), ["A", "Z", "AA", "AB", "ZZ", "AAA"]);
    }
}
