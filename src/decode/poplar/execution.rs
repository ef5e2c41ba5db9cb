//! An execution profile: number of runs of each program, and simulated cycles.

use super::pull::{Pull, Result, Token, elements, members};
use super::state::State;
use super::values::unknown;
use crate::model::ExecutionProfile;

/// Program ids beyond this are not counted.
const MAX_PROGRAM: usize = 2 << 20;

/// Whether a key of the root belongs to an execution profile.
pub fn knows(key: &str) -> bool {
    matches!(
        key,
        "profilerMode"
            | "programTrace"
            | "simulation"
            | "computeSetCyclesByTile"
            | "computeSetCycles"
            | "vertexCycles"
            | "vertexComputeSet"
            | "vertexType"
            | "externalExchangeCycles"
            | "hostExchangeCycles"
    )
}

/// Reads a member of the root.
///
/// # Errors
/// When the input is damaged or ends early.
pub fn member(pull: &mut dyn Pull, state: &mut State, key: &str, first: Token) -> Result<()> {
    let execution = state.execution.get_or_insert_with(ExecutionProfile::default);
    match (key, first) {
        ("profilerMode", Token::Text) => {
            execution.mode = Some(pull.text().chars().take(80).collect());
            Ok(())
        }
        ("programTrace", Token::BeginArray) => {
            execution.executions += 1;
            let mut runs = 0u64;
            let result = elements(pull, &mut |pull, _, first| {
                runs += 1;
                if let Some(id) = first.whole().map(|id| id as usize).filter(|&id| id < MAX_PROGRAM) {
                    if state.runs.len() <= id {
                        state.runs.resize(id + 1, 0);
                    }
                    state.runs[id] += 1;
                }
                pull.skip_rest(first)
            });
            execution.runs += runs;
            result
        }
        ("computeSetCyclesByTile" | "computeSetCycles", _) => state.compute_sets.read(pull, first, "cycles", false),
        ("simulation", Token::BeginObject) => members(pull, &mut |pull, key, first| match (key, first) {
            ("cycles", first) if first.whole().is_some() => {
                execution.cycles = first.whole();
                Ok(())
            }
            ("tileCycles", Token::BeginObject) => members(pull, &mut |pull, key, first| {
                if let Some(cycles) = first.whole()
                    && execution.tile_cycles.len() < 64
                {
                    execution.tile_cycles.push((key.chars().take(80).collect(), cycles));
                }
                pull.skip_rest(first)
            }),
            ("steps", Token::BeginArray) => elements(pull, &mut |pull, _, first| {
                execution.steps += 1;
                pull.skip_rest(first)
            }),
            _ => pull.skip_rest(first),
        }),
        ("vertexCycles" | "vertexComputeSet" | "vertexType" | "externalExchangeCycles" | "hostExchangeCycles", _) => {
            pull.skip_rest(first)
        }
        _ => unknown(pull, state, key, first),
    }
}
