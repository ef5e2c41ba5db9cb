//! Rule `micro_batches`: micro-batches in a loop that is written out, which are in memory at once.

use super::finding::{ChangesResults, Finding};
use super::library::Library;
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use crate::analysis::what_if::{Edit, IN_LOOP};
use crate::model::Bytes;

/// Name of the rule.
pub const NAME: &str = "micro_batches";

/// Looks for values of several micro-batches at the peak, where no loop runs one after the other.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(parts) = case.memory.written_out(case.program).and_then(|parts| u32::try_from(parts).ok()) else { return };
    let mut finding = case.finding(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Micro(IN_LOOP)]);
    if !case.is_worth(saved) {
        return;
    }
    let kept = &case.memory.kept;
    let is_kept = |t: &&AtPeak| kept.is_stack(t.family) || case.is_kept_of_forward(t);
    let held: Vec<&AtPeak> = case.peak.iter().filter(is_kept).collect();
    let bytes: u64 = held.iter().map(|t| t.size).total();
    finding.at_stake_bytes = Some(Bytes(bytes.max(saved)));
    finding.title = format!("The {parts} micro-batches are in memory at once: {} in a loop", finding.less(""));
    finding.why = format!(
        "The gradients of {parts} parts of the batch are added up, but no loop runs one part after the other: their passes are written out, as by a loop in Python, and nothing makes the compiler finish one before it begins the next. {} kept for the backward passes, the largest {}.",
        counted(held.len(), "temporary at the peak is", "temporaries at the peak are"),
        case.describe_first(&held)
    );
    finding.advice.push(format!(
        "run the micro-batches in a loop of the program's: {}; its steps run one after the other, and the gradients are summed in what it carries",
        Library::of(case).micro_batches(Some(parts))
    ));
    finding.advice.push("more micro-batches without a loop save little: what is kept of each for its backward pass is in memory with that of the others".to_owned());
    finding.changes_results = ChangesResults::No;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}
