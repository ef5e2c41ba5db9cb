//! What of a saving is something else than its finding names: attention scores that come back with the layers, logits that
//! are not live at the new peak.

use std::fmt::Write as _;

use super::finding::Finding;
use super::program_context::{ProgramContext, Total, in_a_row};
use crate::analysis::what_if::Trial;
use crate::analysis::what_if::saved_for_backward::is_among;
use crate::model::Bytes;

/// Share of allocated bytes from which something that is saved besides is named.
const NAMED: f64 = 0.01;

/// Says what of the bytes `saved` by a finding's changes is something else than the `named` bytes that it is about: what
/// stands at the peak of it, less what of it stands at the peak with the changes. `many` is what is recomputed: `layers`.
pub(super) fn say(case: &ProgramContext<'_>, finding: &mut Finding, (named, saved): (u64, u64), many: &str) {
    if saved <= named || !finding.is_told() {
        return;
    }
    let kept = &case.memory.kept;
    let trial = Trial::new(&case.memory, case.program, finding.edits());
    let fallen = |families: &[u32]| {
        let before = case.held(families).iter().map(|t| t.size).total();
        let left = trial.at_peak().filter(|(family, _)| is_among(families, *family as usize)).map(|row| row.1.0);
        before.saturating_sub(left.total())
    };
    // With dropout in the way of other attention, the scores are among what is named.
    let scores = if super::attention::has_dropout(case) { 0 } else { fallen(&kept.scores) };
    if case.is_share(scores, NAMED) {
        finding.includes.push((Bytes(scores), "attention scores"));
        let _ = write!(
            finding.why,
            " Recomputing the {many} frees their attention scores too, which the saving includes: {}.",
            Bytes(scores).short()
        );
    }
    let Some(open) = saved.checked_sub(named.saturating_add(scores)).filter(|&open| case.is_share(open, NAMED)) else {
        return;
    };
    let logits = fallen(&kept.logits);
    let others = open.saturating_sub(logits);
    let besides = [(logits, "logits"), (others, "other buffers")];
    let besides: Vec<_> = besides.into_iter().filter(|part| case.is_share(part.0, NAMED)).collect();
    finding.includes.extend(besides.iter().map(|&(bytes, what)| (Bytes(bytes), what)));
    let parts = besides.iter().map(|&(bytes, what)| format!("{} of {what}", Bytes(bytes).short())).collect();
    let also = if finding.includes.len() > besides.len() { "also " } else { "" };
    let is_elsewhere = case.try_out(finding.edits()).peak_event != case.before.peak_event;
    let why = if is_elsewhere { ", which are not live at the new peak" } else { "" };
    let _ = write!(finding.why, " The saving {also}includes {}{why}.", in_a_row(parts));
}
