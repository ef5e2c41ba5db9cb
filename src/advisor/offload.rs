//! Rule `offload`: optimizer state that could be kept in host memory when HBM is tight.

use super::finding::{ChangesResults, Finding, Severity};
use super::library::Library;
use super::program_context::{ProgramContext, Total, listed};
use crate::analysis::class::Class;
use crate::model::{Bytes, DeviceKind, TpuGeneration};

/// Name of the rule.
pub const NAME: &str = "offload";

/// Least share of allocated bytes at which offloading is worth the transfers.
const SHARE: f64 = 0.10;

/// What the devices of a host need together for so many bytes of each, in words: `the 4 devices of a host together need
/// 15.0 GiB`; `None` where it is not known how many there are.
pub(super) fn host_memory(case: &ProgramContext<'_>, bytes: u64) -> Option<String> {
    let topology = case.device.topology?;
    // A host may have more chips than the program runs on.
    let generation = case.device.name.as_deref().and_then(TpuGeneration::by_name);
    let per_chip = generation.map_or(1, |generation| u64::from(generation.devices_per_chip).max(1));
    let devices = topology.chips_per_host.saturating_mul(per_chip).min(u64::from(case.program.devices()));
    let who =
        if devices == 1 { "it needs".to_owned() } else { format!("the {devices} devices of a host together need") };
    Some(format!("{who} {}", Bytes(bytes.saturating_mul(devices)).short()))
}

/// Looks for optimizer state in a program that is short of memory.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    if case.severity() == Severity::Hint || case.device.kind == Some(DeviceKind::Cpu) {
        return;
    }
    let classes = case.analysis.classes(case.program);
    let is_state = |row: usize| classes.of(case.memory.base[row].buffer) == Class::Optimizer;
    let rows: Vec<usize> = case.arguments().map(|a| a.0).filter(|&row| is_state(row)).collect();
    let bytes: u64 = rows.iter().map(|&row| case.memory.base[row].size).total();
    if !case.is_share(bytes, SHARE) {
        return;
    }
    let names = case.names_of(&rows, |_| true);
    let mut finding = case.remedy(NAME);
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.title = format!("Keep {} on the host: at most {} less", listed(&names, 3), Bytes(bytes).short());
    finding.why = format!(
        "{} arguments of optimizer state take {} and are needed only when the parameters are updated.",
        rows.len(),
        Bytes(bytes).short()
    );
    let left = case.allocated().saturating_sub(bytes);
    if case.severity() == Severity::Critical
        && let Some(capacity) = case.memory.capacity
    {
        finding.why.push_str(match left.checked_sub(capacity) {
            None | Some(0) => " Without them the program may fit.",
            Some(_) => " That alone is not enough.",
        });
    }
    finding.is_guess = true;
    finding.at_most = Some("at most: data in transfer to or from the device still takes room".to_owned());
    finding.advice.push(Library::of(case).offload_state().to_owned());
    finding.advice.extend(host_memory(case, bytes).map(|need| format!("{need} of host memory for this")));
    if case.memory.has_backward() {
        let (library, stacks) = (Library::of(case), &case.memory.kept.stacks);
        // Where scans save the inputs of layers alone, these are what is left.
        let is_of_inputs = !stacks.is_empty() && stacks.iter().all(|stack| stack.is_input);
        let how = if is_of_inputs { library.offload_inputs() } else { library.offload_activations() };
        finding.advice.push(format!("for activations: {how}"));
    }
    finding.warnings.push("each step transfers it to the device and back; expect slower steps".to_owned());
    finding.changes_results = ChangesResults::No;
    finding.buffers = rows.iter().map(|&row| case.memory.base[row].buffer).collect();
    findings.push(finding);
}
