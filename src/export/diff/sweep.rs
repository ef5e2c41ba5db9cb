//! Several profiles as columns: a sweep over batch sizes, compilers, chips.

use std::fmt::Write as _;

use serde::Serialize;

use super::build::Side;
use super::text::capacity;
use crate::analysis::class::Class;
use crate::export::document::{Document, Line, Table};
use crate::model::{Bytes, MemorySpace};

/// Profiles beside each other.
#[derive(Debug, Serialize)]
pub struct Sweep {
    /// `highwater.sweep/1`.
    pub schema: &'static str,
    /// One for each program, in the order in which they were named.
    pub columns: Vec<Column>,
    /// What could not be read, with why.
    pub unread: Vec<String>,
}

/// A program. Sizes are bytes of its main memory.
#[derive(Debug, Serialize)]
pub struct Column {
    /// The file it is from.
    pub file: String,
    /// Name of the program.
    pub program: String,
    /// `fits`, `over` or `unknown`.
    pub verdict: &'static str,
    /// What may be used.
    pub capacity_bytes: Option<u64>,
    /// What the compiler allocated.
    pub allocated_bytes: u64,
    /// Most bytes live at one time.
    pub peak_bytes: Option<u64>,
    /// Padding at the peak.
    pub padding_at_peak_bytes: Option<u64>,
    /// Bytes at the peak by class, in the order in which classes are stacked.
    pub by_class: Vec<(&'static str, u64)>,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { schema: "highwater.sweep/1", columns: Vec::new(), unread: Vec::new() }
    }
}

impl Sweep {
    /// Adds every program of a profile that has main memory.
    pub fn add(&mut self, file: &str, side: Side<'_>) {
        for program in 0..side.profile.programs.len() {
            self.add_program(file, Side { program, ..side });
        }
    }

    /// Adds one program, if it has main memory.
    pub fn add_program(&mut self, file: &str, side: Side<'_>) {
        if let Some(scene) = side.analysis.scene(side.profile, side.program, MemorySpace::HBM) {
            let space = scene.space;
            let classes = scene.analysis.classes(scene.program);
            let mut sums = classes.sums(space.at_peak.rows.iter().copied());
            sums.sort_by_key(|row| row.0.place());
            self.columns.push(Column {
                file: file.to_owned(),
                program: scene.program.name.clone(),
                verdict: space.verdict().name(),
                capacity_bytes: space.capacity.as_ref().map(|capacity| capacity.bytes.0),
                allocated_bytes: space.xprof.allocated.0,
                peak_bytes: space.known_peak().map(|peak| peak.0),
                padding_at_peak_bytes: space.peak_is_known().then_some(space.at_peak.padding.0),
                by_class: sums.into_iter().map(|(class, bytes, _)| (class.name(), bytes.0)).collect(),
            });
        }
    }

    /// Label and one cell for each column.
    #[must_use]
    pub fn rows(&self) -> Vec<(String, Vec<String>)> {
        let size = |bytes: Option<u64>| bytes.map_or_else(|| "\u{2013}".to_owned(), |bytes| Bytes(bytes).short());
        let row = |label: &str, of: &dyn Fn(&Column) -> String| {
            (label.to_owned(), self.columns.iter().map(of).collect::<Vec<_>>())
        };
        let verdict = |column: &Column| match column.verdict {
            "fits" => "fits",
            "over" => "does not fit",
            _ => "capacity unknown",
        };
        let mut rows = vec![
            row("verdict", &|column| verdict(column).to_owned()),
            row("capacity", &|column| capacity(column.capacity_bytes)),
            row("allocated", &|column| size(Some(column.allocated_bytes))),
            row("peak", &|column| size(column.peak_bytes)),
            row("padding at peak", &|column| size(column.padding_at_peak_bytes)),
        ];
        for class in Class::ALL.map(Class::name) {
            let of = |column: &Column| column.by_class.iter().find(|row| row.0 == class).map_or(0, |row| row.1);
            if self.columns.iter().any(|column| of(column) > 0) {
                rows.push(row(&format!("  {class}"), &|column| size(Some(of(column)))));
            }
        }
        rows
    }

    /// A table for a terminal. What could not be read is left out: the command says it where errors are said.
    pub(super) fn text(&self) -> String {
        let mut out = String::new();
        if self.columns.is_empty() {
            return out;
        }
        for (number, column) in self.columns.iter().enumerate() {
            let _ = writeln!(out, "{:>3}  {}  {}", number + 1, column.file, column.program);
        }
        let mut line = format!("{:<18}", "");
        for number in 1..=self.columns.len() {
            let _ = write!(line, " {number:>16}");
        }
        let _ = writeln!(out, "{line}");
        for (label, cells) in self.rows() {
            let mut line = format!("{label:<18}");
            for cell in cells {
                let _ = write!(line, " {cell:>16}");
            }
            let _ = writeln!(out, "{line}");
        }
        out
    }

    /// The same as a document.
    pub(super) fn document(&self) -> Document {
        let mut out = Document::default();
        let files = self.columns.iter().map(|column| format!(">{}", column.file));
        let mut table = Table::new(std::iter::once(String::new()).chain(files));
        for (label, cells) in self.rows() {
            table.row(std::iter::once(label.trim().to_owned()).chain(cells).map(Line::from));
        }
        out.table(table);
        for unread in &self.unread {
            out.paragraph(format!("Not read: {unread}"));
        }
        out
    }
}
