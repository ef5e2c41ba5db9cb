//! What the forward pass makes under the names of gradients, such as the mask of a dropout and what it was applied to, and
//! the step from which the backward pass runs without it.

use crate::analysis::border::border;
use crate::analysis::flow::made_by;
use crate::analysis::live_range::LiveRanges;
use crate::analysis::names::lookup::is_rematerialised;
use crate::analysis::names::pass::Pass;
use crate::model::{BufferId, FastSet, InstructionId, NO_ROW, Opcode, Program};

/// Fraction of its values that the backward pass must have made to count as running: its index arrays and zeros are
/// made long before.
const BACKWARD_RUNS: f64 = 0.001;

/// At most one part in so many of what either pass makes may be on the wrong side of the turn: a step of two rounds, as of
/// a generator and its critic, has no one turn.
const WRONG: u128 = 5;

/// Where the backward pass begins.
#[derive(Debug, Default)]
pub struct Turn {
    /// Program point from which the backward pass runs; `None` if no name shows one.
    pub backward: Option<u32>,
    /// Instructions with names of the backward pass that belong to the forward pass.
    early: FastSet<InstructionId>,
}

/// What one instruction with a pass has made: a buffer's first program point, and the bytes.
struct Made {
    start: u32,
    is_backward: bool,
    bytes: u64,
    at: InstructionId,
}

impl Turn {
    /// Finds the turn by the passes of the instructions, empty if none is known.
    pub fn new(program: &Program, live: Option<&LiveRanges>, passes: &[Pass]) -> Self {
        let Some(live) = live.filter(|_| !passes.is_empty()) else { return Self::default() };
        let made = |buffer: BufferId| {
            let at = program.buffers.instruction_of(buffer)?;
            let is_backward = match passes.get(at.index())? {
                Pass::Backward => true,
                Pass::Forward => false,
                _ => return None,
            };
            Some(Made { start: live.of(buffer)?.0, is_backward, bytes: program.buffers.size_of(buffer).0, at })
        };
        let mut made: Vec<Made> = (0..program.buffers.len()).map(BufferId::from_index).filter_map(made).collect();
        let may_be_early = is_mixed(&made);
        if !may_be_early {
            made.retain(|row| row.is_backward);
        }
        made.sort_unstable_by_key(|row| (row.start, row.is_backward, row.bytes, row.at));
        let early = if may_be_early { early(program, passes, &made) } else { FastSet::default() };
        let is_own = |row: &&Made| row.is_backward && !early.contains(&row.at);
        let whole: u128 = made.iter().filter(is_own).map(|row| u128::from(row.bytes)).sum();
        let enough = (whole as f64 * BACKWARD_RUNS) as u128;
        let mut sum = 0u128;
        let backward = made.iter().filter(is_own).find_map(|row| {
            sum += u128::from(row.bytes);
            (sum > enough).then_some(row.start)
        });
        Self { backward, early }
    }

    /// Whether an instruction with a name of the backward pass belongs to the forward pass.
    pub fn is_early(&self, at: InstructionId) -> bool {
        self.early.contains(&at)
    }
}

/// Parts of the program's time in which what is made is summed up to see whether passes are mixed at all.
const PARTS: usize = 256;

/// Whether more is made under names of the backward pass before it than its index arrays and zeros.
fn is_mixed(made: &[Made]) -> bool {
    let end = made.iter().map(|row| row.start).max().map_or(1, |last| u64::from(last) + 1);
    let mut parts = vec![(0u128, 0u128); PARTS];
    for row in made {
        let part = &mut parts[(u64::from(row.start) * PARTS as u64 / end) as usize];
        *(if row.is_backward { &mut part.0 } else { &mut part.1 }) += u128::from(row.bytes);
    }
    let turn = border(&parts, |part| part.0, |part| part.1);
    let before: u128 = parts[..turn].iter().map(|part| part.0).sum();
    let whole: u128 = parts.iter().map(|part| part.0).sum();
    before as f64 > whole as f64 * BACKWARD_RUNS
}

/// Instructions with names of the backward pass that run before it and read nothing of it: what is made, in order.
fn early(program: &Program, passes: &[Pass], made: &[Made]) -> FastSet<InstructionId> {
    let mut early = FastSet::default();
    // What the compiler computes again has names of the forward pass, in the backward pass.
    let is_forward = |row: &Made| !row.is_backward && !is_rematerialised(program, row.at);
    let bytes = |row: &Made| {
        let bytes = u128::from(row.bytes);
        (if row.is_backward { bytes } else { 0 }, if is_forward(row) { bytes } else { 0 })
    };
    let of_each: Vec<(u128, u128)> = made.iter().map(bytes).collect();
    let turn = border(&of_each, |row| row.0, |row| row.1);
    let (before, _) = made.split_at(turn);
    let wrong_before: u128 = of_each[..turn].iter().map(|row| row.0).sum();
    let wrong_behind: u128 = of_each[turn..].iter().map(|row| row.1).sum();
    let (of_backward, of_forward) = of_each.iter().fold((0, 0), |all, row| (all.0 + row.0, all.1 + row.1));
    if wrong_before * WRONG > of_backward || wrong_behind * WRONG > of_forward {
        return early;
    }
    for row in before.iter().filter(|row| row.is_backward) {
        if reads_only_forward(program, passes, row.at, &early) {
            early.insert(row.at);
        }
    }
    early
}

/// Whether what an instruction reads has been made by the forward pass, and some of it is neither an argument nor constant.
fn reads_only_forward(program: &Program, passes: &[Pass], at: InstructionId, early: &FastSet<InstructionId>) -> bool {
    let mut reads_any = false;
    for &operand in program.instructions.operands_of(at) {
        if operand == NO_ROW {
            return false;
        }
        let from = made_by(program, InstructionId(operand));
        if passes.get(from.index()) == Some(&Pass::Backward) && !early.contains(&from) {
            return false;
        }
        reads_any |= is_computed(program, from);
    }
    reads_any
}

/// Whether an instruction computes its value.
fn is_computed(program: &Program, at: InstructionId) -> bool {
    let opcode = program.instructions.opcode.get(at.index());
    !opcode.is_none_or(|opcode| matches!(*opcode, Opcode::PARAMETER | Opcode::CONSTANT))
        && !matches!(program.opcode_name(at), "broadcast" | "iota")
}
