//! Rule `debug_callback`: callbacks left in the program, which keep the values they print in memory.

use super::finding::{ChangesResults, Finding, Severity};
use super::program_context::{ProgramContext, Total};
use crate::model::{BufferId, Bytes, InstructionId, NO_ROW, Opcode};

/// Name of the rule.
pub const NAME: &str = "debug_callback";

/// Parts of framework op names that mark host callbacks.
const WORDS: &[&str] = &["debug_callback", "debug_print", "io_callback", "pure_callback"];

/// Looks for operations that JAX makes for `jax.debug.print` and other callbacks.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let program = case.program;
    let mut calls: Vec<(InstructionId, String)> = Vec::new();
    for row in 0..program.instructions.len() {
        let talks = matches!(program.instructions.opcode[row], Opcode::CUSTOM_CALL | Opcode::SEND | Opcode::RECV_DONE)
            || matches!(program.opcode_name(InstructionId(row as u32)), "outfeed" | "recv" | "send-done");
        if !talks {
            continue;
        }
        let instruction = InstructionId(row as u32);
        let name = program.text.op_name(instruction);
        if WORDS.iter().any(|word| name.contains(word)) {
            calls.push((instruction, name));
        }
    }
    let Some((_, name)) = calls.first() else { return };
    // Operands stay live until they have been sent.
    let mut kept: Vec<(u64, BufferId)> = Vec::new();
    for t in &case.peak {
        let Some(definer) = program.buffers.instruction_of(t.buffer) else { continue };
        let is_read = calls.iter().any(|(call, _)| {
            program.instructions.operands_of(*call).iter().any(|&row| row != NO_ROW && row == definer.0)
        });
        if is_read || calls.iter().any(|(call, _)| *call == definer) {
            kept.push((t.size, t.buffer));
        }
    }
    let bytes: u64 = kept.iter().map(|k| k.0).total();
    let mut finding = case.finding(NAME);
    // Without a large buffer it is worth knowing but not a cause.
    if !case.is_worth(bytes) {
        finding.severity = Severity::Hint;
    }
    let families: Vec<usize> = kept.iter().filter_map(|k| case.memory.families.of(k.1)).collect();
    case.at_stake_without(
        &mut finding,
        &families,
        ": only the data sent; what the callback keeps from being fused shows only after compiling without it",
    );
    finding.title = format!("The program calls back to the host: `{name}`");
    finding.why = format!(
        "{} of its operations send data to the host ({} live at the peak). A callback forces the compiler to materialise values that it would otherwise have fused away.",
        calls.len(),
        Bytes(bytes).short()
    );
    finding.advice.push(advice(&calls.iter().map(|call| call.1.as_str()).collect::<Vec<_>>()).to_owned());
    finding.changes_results = ChangesResults::No;
    finding.buffers = kept.into_iter().map(|k| k.1).collect();
    findings.push(finding);
}

/// What to do about callbacks with these op names: those for printing, those of error checks and those that compute
/// are removed in different ways.
fn advice(names: &[&str]) -> &'static str {
    let any = |word: &str| names.iter().any(|name| name.contains(word));
    if any("debug_callback") || any("debug_print") {
        "remove `jax.debug.print` and `jax.debug.callback` from large runs, or print a reduced value (`jnp.max(x)`)"
    } else if any("error_if") {
        "they are run-time error checks (`eqx.error_if`): leave them out of large runs, in Lineax, Optimistix and Diffrax with `throw=False`"
    } else {
        "compute on the device what `jax.pure_callback` or `io_callback` computes on the host, or send a reduced value (`jnp.max(x)`)"
    }
}

#[cfg(test)]
mod tests {
    use super::advice;

    #[test]
    fn a_check_is_not_told_to_print_less() {
        let check = "jit(fit)/jit(linear_solve)/jit(branched_error_if_impl)/cond/branch_1_fun/pure_callback";
        assert!(advice(&[check]).contains("error_if"));
        assert!(advice(&["jit(f)/pure_callback"]).contains("pure_callback"));
        assert!(advice(&[check, "jit(f)/debug_callback"]).contains("jax.debug.print"));
    }
}
