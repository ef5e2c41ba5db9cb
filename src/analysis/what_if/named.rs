//! The arguments that a change names: by the beginnings of their paths, by a key inside these, or by their class.

use std::sync::Arc;

use super::base::Role;
use super::edit::Arguments;
use super::state::State;
use crate::analysis::class::Class;

/// How names were understood.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum NamedBy {
    /// They begin the arguments' paths.
    #[default]
    Path,
    /// They are keys inside the paths.
    Key,
    /// They are classes.
    Class,
}

/// The arguments that some names mean.
#[derive(Debug, Default)]
pub(super) struct ArgumentRows {
    /// Rows of the memory's base, ascending.
    pub rows: Vec<u32>,
    /// The first name that no argument has.
    pub unknown: Option<String>,
    /// How they were found.
    pub by: NamedBy,
}

/// The class that a word names.
fn class_named(word: &str) -> Option<Class> {
    Some(match word.to_ascii_lowercase().as_str() {
        "weight" | "weights" => Class::Weight,
        "opt" | "optimizer" | "optimizer state" | "optimizer_state" => Class::Optimizer,
        "cache" | "caches" => Class::Cache,
        _ => return None,
    })
}

impl State<'_> {
    /// Rows of the arguments named; gives no prediction if a name matches none.
    pub(super) fn arguments(&mut self, arguments: &Arguments) -> Arc<ArgumentRows> {
        let memory = self.memory;
        let named = memory.named_arguments.value(arguments, || {
            let rows = |accept: &dyn Fn(&str) -> bool| -> Vec<u32> {
                memory.arguments(accept).map(|row| row as u32).collect()
            };
            let is_known = |start: &str| memory.arguments(|path| path.starts_with(start)).next().is_some();
            let unknown = arguments.0.iter().find(|start| start.as_str() != "*" && !is_known(start)).cloned();
            let by_path = rows(&|path| arguments.include(path));
            if !by_path.is_empty() {
                return ArgumentRows { rows: by_path, unknown, by: NamedBy::Path };
            }
            let by_key = rows(&|path| arguments.name_by_key(path));
            if !by_key.is_empty() {
                return ArgumentRows { rows: by_key, unknown, by: NamedBy::Key };
            }
            let classes: Vec<Class> = arguments.0.iter().filter_map(|word| class_named(word)).collect();
            let is_of = |row: &u32| {
                let role = memory.roles.get(*row as usize);
                role.is_some_and(|role| role.is_argument && classes.contains(&role.class))
            };
            let by_class = (0..memory.base.len() as u32).filter(is_of).collect();
            ArgumentRows { rows: by_class, unknown, by: NamedBy::Class }
        });
        let rows = &named.rows;
        let path = |row: &u32| match &memory.base[*row as usize].role {
            Role::Argument { path, .. } => path.as_str(),
            _ => "",
        };
        let first = rows.first().map(path).unwrap_or_default();
        let more = if rows.len() > 1 { format!(" and {} more", rows.len() - 1) } else { String::new() };
        match (named.by, named.unknown.as_ref()) {
            (NamedBy::Key, _) => {
                self.warn(format!("no argument begins with {arguments}, which is taken for a key: {first}{more}"));
            }
            (NamedBy::Class, _) if !rows.is_empty() => {
                self.warn(format!("no argument begins with {arguments}, which is taken for a class: {first}{more}"));
            }
            (NamedBy::Path, Some(start)) => self.warn(format!("no argument begins with {start}")),
            _ if !rows.is_empty() => {}
            _ if arguments.is_all() => self.warn("the program has no arguments".to_owned()),
            _ => {
                let all = self.memory.base.iter().filter_map(|base| match &base.role {
                    Role::Argument { path, .. } => Some(path.split(['[', '.']).next().unwrap_or_default().to_owned()),
                    _ => None,
                });
                self.find_nothing(&format!("no argument begins with {arguments}"), all);
            }
        }
        named
    }
}
