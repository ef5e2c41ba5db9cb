//! Metrics of a training loop, such as Keras' accuracy, that keep what they are computed from.

use super::library::Library;
use super::program_context::{AtPeak, ProgramContext};
use crate::model::{BufferId, FastSet, InstructionId, Opcode, Program};

/// Folder of metrics in Keras' package.
const METRICS: &str = "/metrics/";

/// Whether nothing but metrics reads some temporaries from the peak on: without the metrics they would be gone by then.
pub(super) fn alone_keep(case: &ProgramContext<'_>, held: &[&AtPeak]) -> bool {
    let Some(live) = case.analysis.live.as_ref().filter(|_| Library::of(case) == Library::Keras) else { return false };
    let own: FastSet<BufferId> = held.iter().map(|t| t.buffer).collect();
    let peak = case.space.peak_point();
    let reads = live.reads(case.program);
    let mut later = reads
        .iter()
        .filter(|read| read.1 >= peak && own.contains(&BufferId(read.0)))
        .map(|read| InstructionId(read.2))
        .peekable();
    later.peek().is_some() && later.all(|at| is_of_metric(case.program, at))
}

/// Whether an instruction is computed for a metric, by its source lines or by those of what it calls.
fn is_of_metric(program: &Program, at: InstructionId) -> bool {
    let is_one = |at: InstructionId| {
        let metadata = program.text.metadata(at);
        metadata.source.iter().chain(&metadata.stack).any(|line| line.file.contains(METRICS))
    };
    let called = || program.instructions.called_by(at).iter().filter_map(|c| program.computations.get(c.index()));
    // Constants are shared with whatever else has the same ones.
    let is_own = |&at: &InstructionId| program.instructions.opcode.get(at.index()) != Some(&Opcode::CONSTANT);
    is_one(at) || called().flat_map(|c| (c.start..c.end).map(InstructionId)).filter(is_own).any(is_one)
}
