//! Rule `scoped_vmem`: kernels whose scratch takes most of the VMEM.

use super::finding::{ChangesResults, Finding, Severity};
use super::program_context::ProgramContext;
use crate::model::{Bytes, InstructionId, MemorySpace, Opcode, percent};

/// Name of the rule.
pub const NAME: &str = "scoped_vmem";

/// Share of VMEM above which a kernel is named.
const SHARE: f64 = 0.75;

/// Looks at the scratch that kernels declare.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(capacity) = case.device.capacity(MemorySpace::VMEM).map(|c| c.bytes.0).filter(|&c| c > 0) else { return };
    let program = case.program;
    let mut largest: Option<(u64, InstructionId)> = None;
    for row in 0..program.instructions.len() {
        // Hand-written kernels are custom calls; the compiler sizes its own.
        if program.instructions.opcode[row] != Opcode::CUSTOM_CALL {
            continue;
        }
        let instruction = InstructionId(row as u32);
        for scoped in program.text.scoped_memory(instruction) {
            if scoped.color == MemorySpace::VMEM && scoped.used && largest.is_none_or(|l| scoped.size.0 > l.0) {
                largest = Some((scoped.size.0, instruction));
            }
        }
    }
    let Some((bytes, instruction)) = largest.filter(|l| l.0 as f64 > capacity as f64 * SHARE) else { return };
    let mut finding = case.finding(NAME);
    finding.color = MemorySpace::VMEM;
    finding.severity = if bytes > capacity { Severity::Warning } else { Severity::Hint };
    let name = program.text.instruction_name(instruction);
    finding.title = format!("Kernel `{name}` uses {} of VMEM ({})", Bytes(bytes).short(), percent(bytes, capacity));
    finding.why = format!(
        "Its scratch leaves {} of {} for everything else; with a little more it will not compile (E1001).",
        Bytes(capacity.saturating_sub(bytes)).short(),
        Bytes(capacity).short()
    );
    finding.advice.push("smaller blocks (`BlockSpec`), fewer buffers in flight, or narrower accumulators".to_owned());
    finding.advice.push(
        "`--xla_tpu_scoped_vmem_limit_kib` sets how much a kernel may use, at the expense of everything else in VMEM"
            .to_owned(),
    );
    finding.changes_results = ChangesResults::No;
    finding.reference = "E1001: scoped VMEM OOM, https://openxla.org/xla/errors/error_1001";
    finding.buffers = (0..program.buffers.len())
        .map(crate::model::BufferId::from_index)
        .filter(|&b| program.buffers.instruction_of(b) == Some(instruction))
        .take(8)
        .collect();
    findings.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};

    fn kernel(scratch: u64) -> Vec<Finding> {
        let mut sketch = Sketch::default();
        let x = sketch.argument(array(&[1024, 1024], &[1, 0]), "x");
        let call = sketch.instruction(Opcode::CUSTOM_CALL, array(&[1024, 1024], &[1, 0]), &[x], "jit(f)/pallas_call");
        sketch.scratch(call, scratch);
        sketch.alloc(call);
        sketch.free(call);
        sketch.findings(1 << 30, run)
    }

    #[test]
    fn a_kernel_that_takes_most_of_vmem_is_named() {
        let findings = kernel(120 << 20);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].buffers, [crate::model::BufferId(1)]);
        assert!(kernel(16 << 20).is_empty());
        assert_eq!(kernel(130 << 20).first().map(|f| f.severity), Some(Severity::Warning));
    }
}
