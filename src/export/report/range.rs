//! Statistics of a range of steps, as the timeline shows them.

use std::fmt::Write as _;

use serde::Serialize;

use super::words::buffers;
use crate::analysis::Scene;
use crate::analysis::map::TimeAxis;
use crate::analysis::range_stats::range_stats;
use crate::analysis::stacked_curves::Grouping;
use crate::export::document::{Document, Line, Table};
use crate::model::Bytes;

/// A measured range.
#[derive(Debug, Serialize)]
pub struct RangeReport {
    /// First step.
    pub from: u32,
    /// Last step, included.
    pub to: u32,
    /// Unit of a step: `program_point`, or `heap_event` if the file has no program order.
    pub steps: &'static str,
    /// Bytes of the buffers allocated after the first step.
    pub allocated_bytes: u64,
    /// Number of those buffers.
    pub allocations: usize,
    /// Bytes of the buffers freed before the end of the last step.
    pub freed_bytes: u64,
    /// Number of those buffers.
    pub frees: usize,
    /// Bytes live at the first step.
    pub live_before_bytes: u64,
    /// Bytes live at the last step.
    pub live_after_bytes: u64,
    /// Highest live bytes in the range.
    pub peak_bytes: u64,
    /// First step that reaches it.
    pub peak_step: u32,
    /// Groups with more bytes at that peak than at the first step, for each grouping.
    pub grew: Vec<GrewReport>,
}

/// Growth by one grouping.
#[derive(Debug, Serialize)]
pub struct GrewReport {
    /// `class`, `category`, `scope`, `op`, `dtype` or `source`.
    pub by: &'static str,
    /// Groups, the largest growth first.
    pub groups: Vec<GroupReport>,
}

/// Growth of a group.
#[derive(Debug, Serialize)]
pub struct GroupReport {
    /// Name of the group; `other` for the small ones together.
    pub name: String,
    /// Bytes by which it grew.
    pub bytes: u64,
}

/// Computes the statistics of a range; `None` for a listing, which has no steps.
pub fn report(scene: Scene<'_>, (from, to): (u32, u32)) -> Option<RangeReport> {
    if scene.program.is_listing {
        return None;
    }
    let map = scene.map();
    let mut found: Option<RangeReport> = None;
    for grouping in Grouping::ALL {
        let spread = scene.curves(grouping);
        let stats = range_stats(map, &spread.curves, &spread.pyramid, from, to);
        let groups = stats.grew.iter().map(|&(group, bytes)| GroupReport {
            name: spread.names.get(group).cloned().unwrap_or_default(),
            bytes: bytes.0,
        });
        let grew = GrewReport { by: grouping.word(), groups: groups.collect() };
        // The sums do not depend on the grouping.
        let report = found.get_or_insert_with(|| RangeReport {
            from: stats.from,
            to: stats.to,
            steps: if map.axis == TimeAxis::ProgramOrder { "program_point" } else { "heap_event" },
            allocated_bytes: stats.allocated.0,
            allocations: stats.allocations,
            freed_bytes: stats.freed.0,
            frees: stats.frees,
            live_before_bytes: stats.before.0,
            live_after_bytes: stats.after.0,
            peak_bytes: stats.peak.0,
            peak_step: stats.peak_point,
            grew: Vec::new(),
        });
        report.grew.push(grew);
    }
    found
}

impl RangeReport {
    /// Writes one line for each number.
    pub fn write_text(&self, out: &mut String) {
        let step = |step: u32| step.to_string();
        let _ = writeln!(out, "    steps {} to {}", step(self.from), step(self.to));
        let mut line = |label: &str, bytes: u64, rest: &str| {
            let bytes = Bytes(bytes);
            let text = format!("      {label:<15} {:>10}  {:>22}  {rest}", bytes.short(), bytes.exact());
            let _ = writeln!(out, "{}", text.trim_end());
        };
        line("allocated", self.allocated_bytes, &buffers(self.allocations));
        line("freed", self.freed_bytes, &buffers(self.frees));
        line("reserved before", self.live_before_bytes, "");
        line("reserved after", self.live_after_bytes, "");
        line("peak in range", self.peak_bytes, &format!("at step {}", step(self.peak_step)));
        for grew in &self.grew {
            for group in &grew.groups {
                line("grew", group.bytes, &format!("{} {}", grew.by, group.name));
            }
        }
    }

    /// Adds the same to a document.
    pub fn document(&self, out: &mut Document) {
        out.paragraph(format!("Steps {} to {}:", self.from, self.to));
        let mut table = Table::new(["", ">bytes", ""]);
        let mut row = |label: &str, bytes: u64, rest: Line| table.row([label.into(), Line::exact(bytes), rest]);
        row("allocated", self.allocated_bytes, buffers(self.allocations).into());
        row("freed", self.freed_bytes, buffers(self.frees).into());
        row("reserved before", self.live_before_bytes, Line::default());
        row("reserved after", self.live_after_bytes, Line::default());
        row("peak in range", self.peak_bytes, format!("step {}", self.peak_step).into());
        for grew in &self.grew {
            for group in &grew.groups {
                row("grew", group.bytes, Line::from(format!("{} ", grew.by)).then_code(&group.name));
            }
        }
        out.table(table);
    }
}
