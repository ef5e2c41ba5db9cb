//! Whether a program simulates physics: what it computes so loses more in 16 bits than a neural network does.

use super::program_context::{AtPeak, ProgramContext, Total};
use crate::analysis::flow::argument::fetched_in_slices;
use crate::analysis::flow::{Value, computed};
use crate::analysis::what_if::Memory;

/// Most of the largest temporaries that are looked at.
const MOST_LOOKED_AT: usize = 256;

/// Folders of simulators below those of a Python's packages.
const SIMULATORS: [&str; 4] = ["mujoco/", "brax/", "jax_md/", "jax_cfd/"];

/// Folders of these that hold no physics.
const LEARNING: [&str; 1] = ["brax/training/"];

/// Whether a source file is one of a simulator.
fn is_of_simulator(file: &str) -> bool {
    let inside = file.rsplit_once("site-packages/").or_else(|| file.rsplit_once("dist-packages/"));
    inside.is_some_and(|(_, path)| {
        let is_in = |folder: &&str| path.starts_with(*folder);
        SIMULATORS.iter().any(is_in) && !LEARNING.iter().any(is_in)
    })
}

/// Whether a simulator makes a temporary; `None` where no source line tells.
fn is_simulated(case: &ProgramContext<'_>, t: &AtPeak) -> Option<bool> {
    let program = case.program;
    let part = case.analysis.labels(program).role(program, t.buffer);
    let value = part.and_then(|part| part.written.clone()).or_else(|| Value::of_buffer(program, t.buffer))?;
    let made = computed(program, value).at;
    let at = fetched_in_slices(program, made).map_or(made, |whole| computed(program, Value::whole(whole)).at);
    let metadata = program.text.metadata(at);
    let mut lines = metadata.source.iter().chain(&metadata.stack).peekable();
    lines.peek().is_some().then(|| lines.any(|line| is_of_simulator(&line.file)))
}

/// Whether most bytes of temporaries at the peak are made by a simulator, as far as source lines tell, or are like the state
/// that the program passes on from call to call.
pub(super) fn is_simulation(case: &ProgramContext<'_>) -> bool {
    let state = case.memory.wide_state(case.program);
    let is_field = |t: &&AtPeak| case.node(t.buffer).is_some_and(|node| Memory::is_like_state(&state, node));
    let fields: u64 = case.peak.iter().filter(is_field).map(|t| t.size).total();
    if fields.saturating_mul(2) > case.peak.iter().map(|t| t.size).total() {
        return true;
    }
    let (mut all, mut simulated) = (0u64, 0u64);
    for t in case.peak.iter().take(MOST_LOOKED_AT) {
        let Some(is_simulated) = is_simulated(case, t) else { continue };
        all = all.saturating_add(t.size);
        simulated = simulated.saturating_add(if is_simulated { t.size } else { 0 });
    }
    simulated > all / 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulators_are_told_by_their_files() {
        for (file, expected) in [
            ("/env/lib/python3.12/site-packages/mujoco/mjx/_src/solver.py", true),
            ("/env/lib/python3.12/site-packages/brax/spring/pipeline.py", true),
            ("/env/lib/python3.12/site-packages/brax/training/networks.py", false),
            ("/home/me/brax/spring/pipeline.py", false),
            ("train.py", false),
        ] {
            assert_eq!(is_of_simulator(file), expected, "{file}");
        }
    }
}
