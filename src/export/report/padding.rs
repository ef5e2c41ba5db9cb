//! Padding in the report: padded shapes at the peak, and alternative forms of each.

use std::fmt::Write as _;

use serde::Serialize;

use crate::analysis::Scene;
use crate::analysis::shape_groups::ShapeGroup;
use crate::export::document::{Document, Line, Table};
use crate::model::Bytes;

/// Most shapes for which other forms are computed.
const WITH_FORMS: usize = 20;

/// Padded buffers at the peak that share a shape and layout.
#[derive(Debug, Serialize)]
pub struct PaddingReport {
    /// Shape without layout.
    pub shape: String,
    /// Layout with tiles.
    pub layout: String,
    /// Number live at the peak.
    pub buffers: usize,
    /// Number in the whole program.
    pub buffers_everywhere: usize,
    /// Bytes of each, padding included.
    pub each_bytes: u64,
    /// Bytes of each that hold data.
    pub useful_bytes: u64,
    /// Padding of all of them at the peak, in bytes.
    pub waste_bytes: u64,
    /// Bytes by which the peak would fall without their padding.
    pub saves_at_peak_bytes: u64,
    /// Other forms the shape could take; none where a decomposition fixes it.
    pub other_forms: Vec<FormReport>,
    /// The decomposition that takes or makes most of them, in words.
    #[serde(skip)]
    pub fixed_by: Option<&'static str>,
}

/// Another form of a shape.
#[derive(Debug, Serialize)]
pub struct FormReport {
    /// The change: of a dimension, the layout or the type.
    pub change: String,
    /// Its consequence for the data.
    pub effect: String,
    /// Bytes of one buffer after the change.
    pub each_bytes: u64,
    /// Peak after the change.
    pub peak_after_bytes: u64,
}

/// The padded shapes at the peak, largest possible saving first.
pub fn padding(scene: Scene<'_>, top: usize) -> Vec<PaddingReport> {
    let groups = scene.wasting_shapes();
    if groups.is_empty() {
        return Vec::new();
    }
    let report = |(row, group): (usize, &ShapeGroup)| PaddingReport {
        shape: group.shape.clone(),
        layout: group.layout.clone(),
        buffers: group.buffers.len(),
        buffers_everywhere: group.everywhere.len(),
        each_bytes: group.each.0,
        useful_bytes: group.useful.0,
        waste_bytes: group.waste.0,
        saves_at_peak_bytes: group.saves.0,
        fixed_by: group.fixed_by,
        other_forms: if row < WITH_FORMS { scene.forms(group) } else { Vec::new() }
            .into_iter()
            .map(|form| FormReport {
                change: form.what.words,
                effect: form.what.effect,
                each_bytes: form.what.each.0,
                peak_after_bytes: form.peak.0,
            })
            .collect(),
    };
    groups.iter().take(top).enumerate().map(report).collect()
}

/// Shapes that save less than this at the peak are left out of the text.
const WORTH: u64 = 1 << 20;

/// So are those that save less than this share of it: one in so many.
const SHARE: u64 = 100;

/// The shapes worth a line in the text, at a peak of so many bytes.
fn worth(rows: &[PaddingReport], peak: Option<u64>) -> impl Iterator<Item = &PaddingReport> {
    let least = WORTH.max(peak.unwrap_or(0) / SHARE);
    rows.iter().filter(move |row| row.saves_at_peak_bytes >= least)
}

/// Adds the shapes as a table, each with the alternative form that lowers the peak most.
pub fn document(out: &mut Document, rows: &[PaddingReport], peak: Option<u64>, is_listing: bool) {
    let mut table = Table::new([
        if is_listing { "padded shape" } else { "padded shape at the peak" },
        ">count",
        ">each",
        ">of it data",
        if is_listing { ">saves" } else { ">saves at the peak" },
        "best other form",
    ]);
    for row in worth(rows, peak) {
        let best = row.other_forms.iter().min_by_key(|form| form.peak_after_bytes);
        let best = match (best, row.fixed_by) {
            (Some(form), _) => format!("{}: {}", form.change, Bytes(form.each_bytes).short()),
            (None, Some(words)) => format!("none: {words} takes or makes it"),
            (None, None) => String::new(),
        };
        table.row([
            Line::code(format!("{}{}", row.shape, row.layout)),
            Line::count(row.buffers),
            Line::size(row.each_bytes),
            Line::size(row.useful_bytes),
            Line::size(row.saves_at_peak_bytes),
            best.into(),
        ]);
    }
    out.table(table);
}

/// Writes the shapes as text.
pub fn write(out: &mut String, rows: &[PaddingReport], peak: Option<u64>, is_listing: bool) {
    let mut rows = worth(rows, peak).peekable();
    if rows.peek().is_some() {
        let _ = writeln!(out, "    padding {}, by shape", if is_listing { "in the message" } else { "at the peak" });
    }
    for row in rows {
        let saves = Bytes(row.saves_at_peak_bytes).short();
        let each = format!("{} each, {} of it data", Bytes(row.each_bytes).short(), Bytes(row.useful_bytes).short());
        // What no other form removes is no saving.
        let saves = if row.fixed_by.is_some() { String::new() } else { format!(", saves {saves}") };
        let _ = writeln!(out, "      {}{}  x{}, {each}{saves}", row.shape, row.layout, row.buffers);
        if let Some(words) = row.fixed_by {
            let _ = writeln!(out, "        no other form: {words} takes or makes it, in the layout that it needs");
        }
        for form in &row.other_forms {
            let each = Bytes(form.each_bytes).short();
            let after = Bytes(form.peak_after_bytes).short();
            let total = if is_listing { "in total" } else { "peak" };
            let _ = writeln!(out, "        {}: {each} each, {}, {total} {after}", form.change, form.effect);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_decomposition_takes_is_offered_no_other_form() {
        let row = |fixed_by| PaddingReport {
            shape: "f32[4096,23,23]".to_owned(),
            layout: "{2,1,0}".to_owned(),
            buffers: 3,
            buffers_everywhere: 3,
            each_bytes: 48 << 20,
            useful_bytes: 8 << 20,
            waste_bytes: 120 << 20,
            saves_at_peak_bytes: 34 << 20,
            other_forms: Vec::new(),
            fixed_by,
        };
        let text = |fixed_by| {
            let mut out = String::new();
            write(&mut out, &[row(fixed_by)], Some(256 << 20), false);
            out
        };
        let words = text(Some("the Cholesky decomposition"));
        assert!(words.contains("no other form: the Cholesky decomposition takes or makes it"), "{words}");
        assert!(!text(None).contains("no other form"));
    }
}
