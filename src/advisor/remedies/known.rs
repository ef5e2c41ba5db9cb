//! What a dump opened with a message shows about its program, so that no remedy is suggested that does not apply.

use crate::analysis::names::pass::{Pass, pass_of};
use crate::model::{BufferId, MemorySpace, Profile, Program};

/// Facts about a program; `None` where no dump of it is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Known {
    /// Whether results take memory of their own, which donation could save.
    pub can_donate: Option<bool>,
    /// Whether it has a backward pass.
    pub trains: Option<bool>,
}

/// Least share of allocated bytes at which results matter.
const WORTH: f64 = 0.01;

impl Known {
    /// Examines the program of a profile, if it has exactly one.
    pub fn of(profile: &Profile) -> Self {
        let mut programs = profile.programs.iter().filter(|p| p.has_buffer_assignment && !p.is_listing);
        let (Some(program), None) = (programs.next(), programs.next()) else { return Self::default() };
        let in_hbm = || program.allocations.iter().filter(|a| a.color == MemorySpace::HBM && !a.is_thread_local);
        let sum = |accept: &dyn Fn(&&crate::model::Allocation) -> bool| {
            in_hbm().filter(accept).fold(0u64, |sum, a| sum.saturating_add(a.size.0))
        };
        let results = sum(&|a| a.maybe_live_out && !a.is_parameter);
        let can_donate = results as f64 >= sum(&|_| true) as f64 * WORTH && results > 0;
        Self { can_donate: Some(can_donate), trains: trains(program) }
    }
}

/// Whether op names show a backward pass; `None` if operations have no names.
fn trains(program: &Program) -> Option<bool> {
    let mut is_named = false;
    for row in 0..program.buffers.len() {
        let Some(at) = program.buffers.instruction_of(BufferId::from_index(row)) else { continue };
        let name = program.text.op_name(at);
        is_named |= name.contains('/');
        if matches!(pass_of(&name), Pass::Backward | Pass::Recomputed) {
            return Some(true);
        }
    }
    is_named.then_some(false)
}
