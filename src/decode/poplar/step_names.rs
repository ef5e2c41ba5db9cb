//! Names the steps of the liveness curve: by the program each refers to, or by order, as a guess.

use crate::model::{Liveness, NO_ROW, TileProgram};

/// Most program visits when determining the order of steps; loops and calls visit programs repeatedly.
const MAX_VISITS: usize = 4 << 20;

/// Program types that control others or only synchronise; never a step with memory of its own.
fn is_control(kind: &str) -> bool {
    matches!(
        kind,
        "Sequence" | "Repeat" | "RepeatWhile" | "Switch" | "Call" | "If" | "RepeatWhileTrue" | "RepeatWhileFalse"
    )
}

/// Names the nodes. If no node refers to its program, and there are as many steps as lowered programs in execution
/// order, they are matched one by one and marked as a guess.
pub fn name_steps(liveness: &mut Liveness, programs: &[TileProgram]) {
    let said = liveness.nodes.iter().any(|node| node.program != NO_ROW || node.name.0 != 0);
    if !said {
        let visits = lowered_visits(programs);
        let without_sync: Vec<u32> =
            visits.iter().copied().filter(|&id| !programs[id as usize].kind.starts_with("Sync")).collect();
        let order = [visits, without_sync].into_iter().find(|order| order.len() == liveness.steps.len());
        let Some(order) = order.filter(|order| !order.is_empty()) else { return };
        for (&step, &program) in liveness.steps.iter().zip(&order) {
            liveness.nodes[step as usize].program = program;
        }
        liveness.names_are_guessed = true;
    }
    for node in &mut liveness.nodes {
        if node.name.0 == 0
            && let Some(program) = programs.get(node.program as usize)
        {
            node.name = liveness.strings.intern(&program.name);
        }
    }
}

/// Lowered programs in the order in which the control programs visit them, loops once.
fn lowered_visits(programs: &[TileProgram]) -> Vec<u32> {
    let mut is_child = vec![false; programs.len()];
    for program in programs {
        for &child in &program.children {
            if let Some(slot) = is_child.get_mut(child as usize) {
                *slot = true;
            }
        }
    }
    // Start from control programs only: lowered ones that are never called do not run.
    let mut stack: Vec<(u32, u32)> = (0..programs.len() as u32)
        .rev()
        .filter(|&id| !is_child[id as usize] && is_control(&programs[id as usize].kind))
        .map(|id| (id, 0))
        .collect();
    let mut order = Vec::new();
    let mut visits = 0;
    while let Some((id, depth)) = stack.pop() {
        visits += 1;
        if visits > MAX_VISITS || depth > 10_000 {
            return Vec::new();
        }
        let Some(program) = programs.get(id as usize) else { continue };
        if program.children.is_empty() && !is_control(&program.kind) {
            order.push(id);
        }
        stack.extend(program.children.iter().rev().map(|&child| (child, depth + 1)));
    }
    order
}
