//! Joins the files of one report, each adding what the others lack.

use super::step_names::name_steps;
use crate::model::{Note, NoteCode, NoteLevel, Profile, TileMemory};

/// Adds the contents of another file of the same report.
pub fn join(profile: &mut Profile, other: Profile) {
    match (&mut profile.tiles, other.tiles) {
        (Some(own), Some(more)) => {
            if let Some(text) = join_tiles(own, more) {
                profile.notes.push(Note::new(NoteLevel::Warning, text));
            }
        }
        (own @ None, more) => *own = more,
        (Some(_), None) => {}
    }
    if profile.device.kind.is_none() {
        profile.device = other.device;
    }
    profile.sources.extend(other.sources);
    profile.facts.extend(other.facts);
    for note in other.notes {
        if !profile.notes.contains(&note) {
            profile.notes.push(note);
        }
    }
    // Drop notes about data missing in one file that the other has.
    if profile.tiles.as_ref().is_some_and(|tiles| tiles.must_fit().is_some()) {
        profile.notes.retain(|note| note.code != NoteCode::NoTileBytes);
    }
}

/// Returns contradictions between the files.
fn join_tiles(own: &mut TileMemory, more: TileMemory) -> Option<String> {
    let (tiles, others) = (own.tile_count(), more.tile_count());
    if own.must_fit().is_none() && more.must_fit().is_some() {
        let (execution, programs) = (own.execution.take(), std::mem::take(&mut own.programs));
        *own = more;
        own.execution = own.execution.take().or(execution);
        join_programs(own, programs);
        return None;
    }
    if more.must_fit().is_some() && more.variables.is_empty() && !own.variables.is_empty() {
        // Totals printed in the profile take precedence over sums of variables, whichever file came first.
        let variables = std::mem::replace(own, more);
        return join_tiles(own, variables);
    }
    if others > tiles.max(1) && tiles > 0 && !more.variables.is_empty() {
        return Some(format!(
            "One file of the report is about {tiles} tiles, another about {others}; only the first is shown"
        ));
    }
    if own.variables.is_empty() {
        own.variables = more.variables;
    }
    own.target.interleaved_start = own.target.interleaved_start.or(more.target.interleaved_start);
    own.target.clock_hz = own.target.clock_hz.or(more.target.clock_hz);
    match (&mut own.execution, more.execution) {
        (Some(sum), Some(more)) => {
            sum.runs += more.runs;
            sum.executions += more.executions;
            sum.steps += more.steps;
            sum.cycles = sum.cycles.or(more.cycles);
        }
        (execution @ None, more) => *execution = more,
        (Some(_), None) => {}
    }
    if own.liveness.nodes.is_empty() {
        own.liveness = more.liveness;
    }
    if own.always_live.is_none() && others == tiles {
        own.always_live = more.always_live;
    }
    if own.categories.is_empty() && others == tiles {
        own.categories = more.categories;
        own.overlap_known = more.overlap_known;
    }
    join_programs(own, more.programs);
    None
}

/// Adds names and run counts from another file's programs.
fn join_programs(own: &mut TileMemory, programs: Vec<crate::model::TileProgram>) {
    if own.programs.is_empty() {
        own.programs = programs;
        let named = own.liveness.nodes.iter().any(|node| node.name.0 != 0);
        if !named {
            name_steps(&mut own.liveness, &own.programs);
        }
        return;
    }
    if own.programs.iter().all(|program| program.kind.is_empty()) && programs.iter().any(|p| !p.kind.is_empty()) {
        let runs = std::mem::replace(&mut own.programs, programs);
        join_programs(own, runs);
        return;
    }
    for (own, more) in own.programs.iter_mut().zip(programs) {
        own.runs = match (own.runs, more.runs) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
    }
}

/// Whether the viewer's cache was made from this `profile.pop`, whose change counter it stores.
pub fn check_cache(profile: &mut Profile) {
    let fact = |group: &str, key: &str| {
        profile.facts.iter().find(|fact| fact.group == group && fact.key == key).map(|fact| fact.value.clone())
    };
    let (Some(cache), Some(own)) = (fact("cache", "change counter of profile.pop"), fact("SQLite", "change counter"))
    else {
        return;
    };
    if profile.tiles.is_some() && cache != own {
        let text =
            format!("profile.pop_cache was made from another state of profile.pop (change counter {cache}, now {own})");
        profile.notes.push(Note::new(NoteLevel::Warning, text));
    }
}
