//! Applies a filter to the table. Interned text is matched once per distinct value.

use rayon::prelude::*;

use super::columns::{BufferTable, Interned};
use super::terms::{FilterError, KEYS, Number, Pattern, Term, Test, Words, parse, split};
use crate::analysis::class::Class;
use crate::model::Category;

/// A parsed filter.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    terms: Vec<Term>,
}

/// A term prepared for one table.
enum Ready<'a> {
    /// Whether each distinct value of a text column matches.
    Word(&'a Interned, Vec<bool>),
    /// Whether each class matches.
    Class([bool; Class::ALL.len()]),
    /// Whether each category matches.
    Category([bool; Category::ALL.len()]),
    /// Matches names row by row.
    Name(&'a Pattern),
    /// Matches if any of these does.
    Any(Vec<Ready<'a>>),
    /// Compares a number.
    Number(Number, super::terms::Comparison, f64),
    /// Live at a point.
    LiveAt(u32),
}

impl Filter {
    /// Parses a filter.
    ///
    /// # Errors
    /// The first invalid term.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        Ok(Self { terms: parse(text)? })
    }

    /// Whether it has no terms and so matches every row.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The matching `rows`, in the given order; `peak` is the point of the peak.
    #[must_use]
    pub fn keep(&self, table: &BufferTable, rows: &[u32], peak: u32) -> Vec<u32> {
        if self.terms.is_empty() {
            return rows.to_vec();
        }
        let ready: Vec<(bool, Ready<'_>)> =
            self.terms.iter().map(|term| (term.not, ready(table, &term.test, peak))).collect();
        let keeps = |row: &&u32| ready.iter().all(|(not, test)| holds(table, test, **row as usize) != *not);
        rows.par_iter().filter(keeps).copied().collect()
    }

    /// For each term as typed, how many of `rows` it matches by itself; shows which term excludes the most.
    #[must_use]
    pub fn counts(text: &str, table: &BufferTable, rows: &[u32], peak: u32) -> Vec<(String, usize)> {
        let terms = split(text).into_iter();
        terms
            .filter_map(|term| {
                let alone = Self::parse(&term).ok()?;
                Some((term, alone.keep(table, rows, peak).len()))
            })
            .collect()
    }
}

fn ready<'a>(table: &'a BufferTable, test: &'a Test, peak: u32) -> Ready<'a> {
    match test {
        Test::Number(number, comparison, value) => Ready::Number(*number, *comparison, *value),
        Test::LiveAt(point) => Ready::LiveAt(point.unwrap_or(peak)),
        Test::Words(words, pattern) => words_ready(table, *words, pattern),
    }
}

fn words_ready<'a>(table: &'a BufferTable, words: Words, pattern: &'a Pattern) -> Ready<'a> {
    let column = |column: &'a Interned| {
        Ready::Word(column, column.values.par_iter().map(|word| pattern.matches(word)).collect())
    };
    match words {
        Words::Name => Ready::Name(pattern),
        Words::Op => column(&table.op),
        Words::Opcode => column(&table.opcode),
        Words::Type => column(&table.element_type),
        Words::Shape => column(&table.shape),
        Words::Source => column(&table.source),
        Words::Class => {
            let mut found = [false; Class::ALL.len()];
            for class in Class::ALL {
                found[class as usize] = pattern.matches(class.name());
            }
            Ready::Class(found)
        }
        Words::Category => Ready::Category(Category::ALL.map(|category| pattern.matches(category.name()))),
        Words::Any => {
            let parts = [Words::Op, Words::Shape, Words::Class, Words::Category, Words::Source, Words::Name];
            Ready::Any(parts.into_iter().map(|part| words_ready(table, part, pattern)).collect())
        }
    }
}

fn holds(table: &BufferTable, test: &Ready<'_>, row: usize) -> bool {
    match test {
        Ready::Word(column, matches) => {
            column.of.get(row).and_then(|&word| matches.get(word as usize)).copied().unwrap_or(false)
        }
        Ready::Class(matches) => table.class.get(row).is_some_and(|class| matches[*class as usize]),
        Ready::Category(matches) => {
            Category::ALL.iter().zip(matches).any(|(category, matches)| *matches && *category == table.category[row])
        }
        Ready::Name(pattern) => pattern.matches(table.name.at(row)),
        Ready::Any(parts) => parts.iter().any(|part| holds(table, part, row)),
        Ready::LiveAt(point) => table.lives_at(row, *point),
        Ready::Number(number, comparison, value) => {
            let size = table.size[row] as f64;
            let point = |point: u32| if point == u32::MAX { f64::NAN } else { f64::from(point) };
            let own = match number {
                Number::Size => size,
                Number::Padding => table.padding[row] as f64,
                Number::PaddingPercent => 100.0 * table.padding[row] as f64 / size.max(1.0),
                Number::From => point(table.start[row]),
                Number::To => point(table.end[row]),
                Number::Steps => table.steps(row).map_or(f64::NAN, f64::from),
                Number::Offset => table.offset[row] as f64,
                Number::Allocation => table.allocation[row] as f64,
            };
            comparison.holds(own, *value)
        }
    }
}

/// Completions of the last word of a filter: (word, description). Completes keys, and values after a key.
#[must_use]
pub fn complete(text: &str, table: Option<&BufferTable>, most: usize) -> Vec<(String, String)> {
    let word = text.rsplit(char::is_whitespace).next().unwrap_or("");
    let body = word.strip_prefix('-').unwrap_or(word);
    let sign = if word.len() > body.len() { "-" } else { "" };
    if body.is_empty() {
        return Vec::new();
    }
    let lower = body.to_lowercase();
    let Some((key, begun)) = lower.split_once(':') else {
        let keys = KEYS.iter().filter(|(key, _)| key.starts_with(lower.as_str()) && *key != lower);
        return keys.take(most).map(|(key, what)| (format!("{sign}{key}"), (*what).to_owned())).collect();
    };
    let Some(table) = table else { return Vec::new() };
    let mut words: Vec<(usize, String)> = match key {
        "class" => Class::ALL
            .iter()
            .map(|class| {
                let count = table.class.iter().filter(|own| *own == class).count();
                (count, class.name().to_lowercase())
            })
            .collect(),
        "category" | "cat" => Category::ALL
            .iter()
            .map(|category| {
                let count = table.category.iter().filter(|own| *own == category).count();
                (count, category.name().to_lowercase())
            })
            .collect(),
        "dtype" | "type" => counted(&table.element_type),
        "kind" | "opcode" => counted(&table.opcode),
        "shape" => counted(&table.shape),
        "source" | "file" => counted(&table.source),
        _ => return Vec::new(),
    };
    words.retain(|(count, word)| *count > 0 && word.contains(begun) && word != begun && !word.is_empty());
    words.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    words
        .into_iter()
        .take(most)
        .map(|(count, word)| {
            let quoted = if word.contains(' ') { format!("\"{word}\"") } else { word };
            (format!("{sign}{key}:{quoted}"), format!("{} buffers", crate::model::thousands(count as u64)))
        })
        .collect()
}

fn counted(column: &Interned) -> Vec<(usize, String)> {
    let mut counts = vec![0usize; column.values.len()];
    for &word in &column.of {
        counts[word as usize] += 1;
    }
    counts.into_iter().zip(column.values.iter().map(|word| word.to_lowercase())).collect()
}
