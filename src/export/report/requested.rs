//! What a report was asked for and the files do not have: a program, a memory space, a step.

use std::collections::{BTreeMap, BTreeSet};

use super::options::Options;
use super::schema::ProgramReport;
use crate::analysis::Scene;
use crate::model::thousands;

/// Most names listed in an error.
const MOST_NAMES: usize = 8;

/// What the files have of what was asked for.
#[derive(Debug, Default)]
pub struct Requested {
    programs: BTreeSet<String>,
    is_program_found: bool,
    spaces: BTreeSet<String>,
    is_space_found: bool,
    last_step: Option<u32>,
    instructions: BTreeSet<String>,
    /// Whether the changes name something in a program.
    is_change_found: bool,
    /// Why they name nothing in another.
    unknown_change: Option<String>,
    /// Changes that name something in a program, and those that name nothing in one, with the reason.
    known_changes: BTreeSet<String>,
    left_out: BTreeMap<String, String>,
}

impl Requested {
    /// Notes a program of the files, whether or not it was asked for.
    pub fn program(&mut self, name: &str, is_wanted: bool) {
        self.is_program_found |= is_wanted;
        self.programs.insert(name.to_owned());
    }

    /// Notes a memory space of a program that was asked for.
    pub fn space(&mut self, scene: Scene<'_>, options: &Options) {
        self.spaces.insert(scene.space.name.clone());
        if options.step.is_some() || options.range.is_some() {
            self.last_step = self.last_step.max(scene.map().points.checked_sub(1));
        }
    }

    /// Notes what stands in the report of a program.
    pub fn shown(&mut self, program: &ProgramReport) {
        self.is_space_found |= !program.spaces.is_empty();
        for space in &program.spaces {
            self.is_change_found |= space.what_if.is_some();
            if let Some(what_if) = &space.what_if {
                let is_left_out = |edit: &&String| what_if.left_out.iter().any(|left| left.0 == **edit);
                self.known_changes.extend(what_if.edits.iter().filter(|edit| !is_left_out(edit)).cloned());
                self.left_out.extend(what_if.left_out.iter().cloned());
            }
            match &space.what_if_undecided {
                Some(why) if space.what_if_names_nothing => self.unknown_change = Some(why.clone()),
                undecided => self.is_change_found |= undecided.is_some(),
            }
        }
        let found = program.instructions.iter().filter(|instruction| instruction.text.is_some());
        self.instructions.extend(found.map(|instruction| instruction.name.clone()));
    }

    /// What was asked for and is nowhere, in sentences.
    pub fn unmet(&self, options: &Options) -> Vec<String> {
        let mut unmet = Vec::new();
        if let Some(name) = options.program.as_ref().filter(|_| !self.is_program_found) {
            unmet.push(format!("no program '{name}'; {}", there_are(&self.programs)));
            return unmet;
        }
        if let Some(name) = options.space.as_ref().filter(|_| !self.is_space_found) {
            unmet.push(format!("no memory space '{name}'; {}", there_are(&self.spaces)));
            return unmet;
        }
        unmet.extend(self.unknown_change.clone().filter(|_| !self.is_change_found));
        let nowhere = self.left_out.iter().filter(|(edit, _)| !self.known_changes.contains(*edit));
        unmet.extend(nowhere.map(|(_, why)| why.clone()));
        let unknown = options.instructions.iter().filter(|&name| !self.instructions.contains(name));
        unmet.extend(unknown.map(|name| format!("no instruction '{name}'")));
        let Some(last) = self.last_step else { return unmet };
        let first = options.range.map(|range| range.0);
        let asked = [options.step, first].into_iter().flatten().find(|&step| step > last);
        if let Some(step) = asked {
            unmet.push(format!("no step {}; steps are 0 to {}", thousands(step.into()), thousands(last.into())));
        }
        unmet
    }
}

fn there_are(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return "there is none in what was read".to_owned();
    }
    let listed: Vec<&str> = names.iter().map(String::as_str).take(MOST_NAMES).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("there {} {}{rest}", if names.len() == 1 { "is" } else { "are" }, listed.join(", "))
}
