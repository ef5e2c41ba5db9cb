//! Rule `allocator_limit`: a program that does not fit in the share of a GPU that the framework's allocator may take, but
//! in its memory.

use super::chips::JAX_SHARE;
use super::finding::{Finding, Severity};
use super::program_context::ProgramContext;
use crate::model::{Bytes, percent};

/// Name of the rule.
pub const NAME: &str = "allocator_limit";

/// Largest share of a GPU's memory that a program may have: the rest is for the driver and for what libraries allocate.
const MOST: f64 = 0.95;

/// How much more than the program needs its allocator should have.
const SPARE: f64 = 1.02;

/// Says which share the allocator has to be given.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let (Some(all), Some(limit)) = (case.device.all_memory, case.memory.capacity) else { return };
    let needs = case.allocated();
    let share = needs as f64 * SPARE / all.0.max(1) as f64;
    // Without the compiler's configuration the limit is not known, but what it usually is.
    let is_known = limit < all.0;
    let limit = if is_known { limit } else { (all.0 as f64 * JAX_SHARE) as u64 };
    if !case.memory.is_gpu || needs <= limit || needs > all.0 || (is_known && share > MOST) {
        return;
    }
    let mut finding = case.finding(NAME);
    finding.severity = if is_known { case.severity() } else { Severity::Warning };
    finding.at_stake_bytes = Some(Bytes(needs - limit));
    finding.title = format!(
        "It fits in the GPU's {}, but not in the {} that {}",
        all.short(),
        Bytes(limit).short(),
        if is_known { "the allocator may take" } else { "JAX takes if it is not told otherwise" }
    );
    finding.why = if is_known {
        format!(
            "The limit was {} of the GPU's memory when the program was compiled; JAX reserves {:.0} % if it is not told otherwise. The program needs {} of it.",
            percent(limit, all.0),
            JAX_SHARE * 100.0,
            percent(needs, all.0)
        )
    } else {
        format!(
            "What the allocator may take is in a file `*.config.pbtxt` beside the dump, which is not there. JAX reserves {:.0} % of the memory; the program needs {} of it.",
            JAX_SHARE * 100.0,
            percent(needs, all.0)
        )
    };
    finding.advice.push(if share > MOST {
        "the rest is what the driver and libraries need: make it smaller".to_owned()
    } else {
        format!(
            "start it with `XLA_CLIENT_MEM_FRACTION={:.2}` (in older versions `XLA_PYTHON_CLIENT_MEM_FRACTION`), on a GPU that nothing else uses",
            (share * 100.0).ceil() / 100.0
        )
    });
    finding.reference = "JAX, GPU memory allocation";
    findings.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::{Device, DeviceKind};

    fn titles(limit: u64, all: Option<u64>) -> Vec<String> {
        let mut sketch = Sketch::default();
        sketch.argument(array(&[256, 1 << 20], &[1, 0]), "x");
        let gpu = Device { kind: Some(DeviceKind::Gpu), all_memory: all.map(Bytes), ..Device::default() };
        let findings = sketch.findings_on(gpu, limit, run);
        findings.into_iter().map(|finding| finding.title).collect()
    }

    #[test]
    fn a_program_over_the_limit_alone_is_told_of_it() {
        let told = titles(1 << 29, Some(4 << 30));
        assert_eq!(told, ["It fits in the GPU's 4.00 GiB, but not in the 512 MiB that the allocator may take"]);
        assert!(titles(2 << 30, Some(4 << 30)).is_empty(), "it fits");
        assert!(titles(1 << 29, Some(1 << 30)).is_empty(), "not in the GPU either");
        let usual = titles(5 << 28, Some(5 << 28));
        assert_eq!(
            usual,
            ["It fits in the GPU's 1.25 GiB, but not in the 960 MiB that JAX takes if it is not told otherwise"]
        );
        assert!(titles(1 << 29, None).is_empty(), "the GPU's memory is unknown");
    }
}
