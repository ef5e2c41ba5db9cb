//! The report on scaling as text and as a document.

use std::fmt::Write as _;

use super::build::{GrowerReport, PointReport, ScaleReport, ScaleSpace};
use crate::export::document::{Document, Line, Table};
use crate::model::{Bytes, UnitSystem, percent, thousands};

/// A range narrower than this share of what is allocated is not written out.
const TOLD_SINGLY: f64 = 0.01;

/// For a terminal.
pub(super) fn write(report: &ScaleReport) -> String {
    let mut out = format!("{} and {}\n", report.paths[0], report.paths[1]);
    for space in &report.programs {
        let _ = write!(out, "\n{}: {} {} and {}", space.program, space.varies, space.values[0], space.values[1]);
        let _ = writeln!(out, "  ({}; {:.1} % of the bytes matched)", space.evidence, 100.0 * space.matched);
        for sentence in sentences(space) {
            let _ = writeln!(out, "  {sentence}");
        }
        let cells: Vec<[String; 5]> = space.points.iter().map(|point| cells(space, point)).collect();
        let head = [space.varies.clone(), "peak".to_owned(), "allocated".to_owned(), share_title(space), String::new()];
        let all: Vec<&[String; 5]> = std::iter::once(&head).chain(&cells).collect();
        let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..4).map(width).collect();
        out.push('\n');
        for row in all {
            let _ = write!(out, "  {:>w$}", row[0], w = widths[0]);
            let _ = write!(out, "  {:>w$}  {:>v$}", row[1], row[2], w = widths[1], v = widths[2]);
            let _ = write!(out, "  {:>w$}  {}", row[3], row[4], w = widths[3]);
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
        if !space.growers.is_empty() {
            let _ = writeln!(out, "\n  what grows at the peak, for each unit of {}:", space.varies);
        }
        for grower in &space.growers {
            let _ = writeln!(out, "  {:>12}  {:12}  {}", per_unit(grower), grower.class, grower.scope);
        }
        if space.grower_count > space.growers.len() {
            let _ = writeln!(out, "  … {} more", thousands((space.grower_count - space.growers.len()) as u64));
        }
    }
    out
}

/// For a pull request or a page.
pub(super) fn document(report: &ScaleReport) -> Document {
    let mut out = Document::default();
    out.heading(2, format!("{} and {}", report.paths[0], report.paths[1]));
    for space in &report.programs {
        out.heading(3, format!("{}: {} {} and {}", space.program, space.varies, space.values[0], space.values[1]));
        for sentence in sentences(space) {
            out.paragraph(sentence);
        }
        let head = [format!(">{}", space.varies), ">peak".to_owned(), ">allocated".to_owned()];
        let mut table = Table::new(head.into_iter().chain([format!(">{}", share_title(space)), String::new()]));
        for point in &space.points {
            table.row(cells(space, point).map(Line::from));
        }
        out.table(table);
        let mut table = Table::new([">for each unit", "class", "scope"]);
        for grower in &space.growers {
            table.row([per_unit(grower).into(), grower.class.into(), Line::code(&grower.scope)]);
        }
        out.table(table);
    }
    for what in &report.unread {
        out.paragraph(format!("Not read: {what}"));
    }
    out
}

fn share_title(space: &ScaleSpace) -> String {
    space.capacity_bytes.map_or_else(String::new, |bytes| format!("of {}", UnitSystem::Binary.capacity(Bytes(bytes))))
}

/// The answers, a sentence each.
fn sentences(space: &ScaleSpace) -> Vec<String> {
    let mut found = Vec::new();
    match (space.largest_that_fits, space.capacity_bytes) {
        (Some(0), _) => found.push(format!("No {} fits.", space.varies)),
        (Some(largest), _) => {
            let may_fit = |value: &PointReport| value.verdict == "may_fit";
            let point = space.points.iter().find(|point| point.value == largest);
            let margin = if point.is_some_and(may_fit) { ", by a narrow margin" } else { "" };
            let is_open = space.points.iter().any(|point| point.value > largest && may_fit(point));
            let more = if is_open { "; a larger one may still fit, as the compiler may recompute more" } else { "" };
            found.push(format!(
                "Predicted to fit: {} up to about {}{margin}{more}.",
                space.varies,
                thousands(largest as u64)
            ));
        }
        (None, None) => found.push("The capacity is not known; give it with --capacity.".to_owned()),
        (None, Some(_)) => found.push(format!("The memory does not grow with {}, or hardly.", space.varies)),
    }
    if let (Some(free), Some(largest)) = (space.largest_without_recomputation, space.largest_that_fits)
        && free < largest
    {
        found.push(format!("Above {free}, it takes more than 83 % and the compiler may recompute to save memory."));
    }
    if space.are_unlike {
        let words = "The compiler divides the work differently in the two dumps: each tells of the values nearer to it, and they are \
             ranges.";
        found.push(words.to_owned());
    }
    if space.is_recomputed {
        found.push("The compiler already recomputed in one of the dumps: other values are ranges.".to_owned());
    }
    found
}

fn cells(space: &ScaleSpace, point: &PointReport) -> [String; 5] {
    let allocated = Bytes(point.allocated_bytes).short();
    let spread = point.highest_bytes.saturating_sub(point.lowest_bytes);
    let allocated = if spread as f64 > TOLD_SINGLY * point.allocated_bytes as f64 {
        format!("{allocated} ({} to {})", Bytes(point.lowest_bytes).short(), Bytes(point.highest_bytes).short())
    } else {
        allocated
    };
    let share =
        space.capacity_bytes.map_or_else(String::new, |capacity| percent(point.allocated_bytes, capacity.max(1)));
    let verdict = match point.verdict {
        "fits" => "fits",
        "may_fit" => "may fit",
        "over" => "does not fit",
        _ => "",
    };
    let given = if point.is_given { ", a dump" } else { "" };
    [
        thousands(point.value.unsigned_abs()),
        Bytes(point.peak_bytes).short(),
        allocated,
        share,
        format!("{verdict}{given}").trim_start_matches(", ").to_owned(),
    ]
}

fn per_unit(grower: &GrowerReport) -> String {
    let bytes = Bytes(grower.bytes_per_unit.abs() as u64).short();
    if grower.bytes_per_unit < 0.0 { format!("\u{2212}{bytes}") } else { format!("+{bytes}") }
}
