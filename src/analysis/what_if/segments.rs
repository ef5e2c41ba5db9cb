//! What is checkpointed as one: layers, or scopes that a pattern names, with what they make and what they read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::fast::RandomState;

use super::turn::Turn;
use crate::analysis::flow::label::Labels;
use crate::analysis::names::layer::Layers;
use crate::analysis::names::lookup::op_name;
use crate::analysis::names::pass::Pass;
use crate::analysis::names::pattern::matches;
use crate::analysis::names::scope;
use crate::analysis::packing::{Families, Family};
use crate::model::{InstructionId, Program};

/// The pattern for every layer.
pub const EVERY: &str = "*";

/// A unit of checkpointing: a layer, or a scope matched by a pattern.
#[derive(Debug, Clone, Default)]
pub struct Segment {
    /// Families of its forward pass.
    pub forward: Vec<u32>,
    /// Families of its forward pass that the compiler recomputes after the turn.
    pub recomputed: Vec<u32>,
    /// First time of its backward pass.
    pub backward: u32,
}

/// What is divided into segments: the families, with the framework's names of their operations and their passes.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The families.
    pub families: &'a Families,
    /// Name of the operation, by family.
    pub names: &'a [String],
    /// The pass, by family.
    pub passes: &'a [Pass],
}

/// The segments that a pattern names.
#[derive(Debug, Default)]
pub struct Segments {
    /// The segments.
    pub list: Vec<Segment>,
    /// Row of the segment by family; `None` if it is in no segment or not in the forward pass.
    pub of_family: Vec<Option<u32>>,
    /// Row of the segment that reads, by row of [`Turn::reads`].
    pub of_read: Vec<Option<u32>>,
}

/// Segments by their names.
struct SegmentNames<'a> {
    turn: &'a Turn,
    pattern: &'a str,
    /// Whether the name of a layer matches, by layer.
    layers: Vec<bool>,
    rows: HashMap<String, u32, RandomState>,
}

impl<'a> SegmentNames<'a> {
    fn new(turn: &'a Turn, pattern: &'a str) -> Self {
        let is_meant = |name: &str| {
            matches(pattern, name) || name.rsplit_once('/').is_some_and(|(_, last)| matches(pattern, last))
        };
        let layers = turn.layers.iter().map(|layer| is_meant(&layer.name)).collect();
        Self { turn, pattern, layers, rows: HashMap::default() }
    }

    /// The segment of a layer and of the name of an operation, a new one where one may be added.
    fn place(&mut self, layer: Option<u32>, operation: impl FnOnce() -> String, may_add: bool) -> Option<u32> {
        let layer = layer.map(|row| row as usize).filter(|&row| self.layers.get(row) == Some(&true));
        let scopes;
        let name = match layer {
            Some(layer) => self.turn.layers[layer].name.as_str(),
            // The pattern for every layer does not include what is outside the layers.
            None if self.pattern == EVERY => return None,
            None => {
                scopes = self.scopes(&operation())?;
                &scopes
            }
        };
        if let Some(&row) = self.rows.get(name) {
            return Some(row);
        }
        let row = self.rows.len() as u32;
        may_add.then(|| {
            self.rows.insert(name.to_owned(), row);
            row
        })
    }

    /// The scopes of an operation up to the one that the pattern names.
    fn scopes(&self, operation: &str) -> Option<String> {
        let path = scope::path(operation);
        let (_, scopes) = path.split_last()?;
        let at = scopes.iter().position(|part| matches(self.pattern, part))?;
        Some(scopes[..=at].join("/"))
    }
}

impl Segments {
    /// Looks for what a pattern names.
    fn new(program: &Program, named: Named<'_>, turn: &Turn, pattern: &str) -> Self {
        let Named { families, names: operations, passes } = named;
        let mut names = SegmentNames::new(turn, pattern);
        let mut segments: Vec<Segment> = Vec::new();
        let mut backward: Vec<Option<u32>> = Vec::new();
        let mut of_family = vec![None; families.list.len()];
        for (i, family) in families.list.iter().enumerate() {
            let layer = turn.layer_of.get(i).copied().flatten();
            let Some(row) = names.place(layer, || operations.get(i).cloned().unwrap_or_default(), true) else {
                continue;
            };
            if row as usize >= segments.len() {
                segments.push(Segment::default());
                backward.push(None);
            }
            let time = 2 * family.first;
            match passes.get(i) {
                Some(&pass) if turn.is_forward(pass) && time < turn.at => {
                    segments[row as usize].forward.push(i as u32);
                    of_family[i] = Some(row);
                }
                Some(Pass::Forward) if time >= turn.at => segments[row as usize].recomputed.push(i as u32),
                Some(Pass::Backward | Pass::Recomputed) if time >= turn.at => {
                    let first = &mut backward[row as usize];
                    *first = Some(first.map_or(time, |at| at.min(time)));
                }
                _ => {}
            }
        }
        for (segment, backward) in segments.iter_mut().zip(backward) {
            let from = backward.or_else(|| {
                let is_own = |&&row: &&u32| !turn.is_read_elsewhere(row);
                let own: Vec<u32> = segment.forward.iter().filter(is_own).copied().collect();
                turn.needed_from(families, &own)
            });
            segment.backward = from.unwrap_or(turn.at).max(turn.at);
        }
        let mut of_reader: HashMap<(Option<u32>, u32), Option<u32>, RandomState> = HashMap::default();
        let of_read = turn.reads().iter().map(|read| {
            let operation = || op_name(program, InstructionId(read.reader));
            *of_reader.entry((read.layer, read.reader)).or_insert_with(|| names.place(read.layer, operation, false))
        });
        let of_read = of_read.collect();
        Self { list: segments, of_family, of_read }
    }
}

/// Framework op name of the instruction that makes each family's root, by family; empty where there is none. The stacks of
/// a loop that runs inside a layer have the loop's: the zeros that they begin as have no scope of their own, or that of
/// another layer, as equal constants are made once.
#[must_use]
pub fn family_names(program: &Program, labels: &Labels, families: &Families) -> Vec<String> {
    let roots = families.list.iter().map(|family| program.buffers.instruction_of(family.root));
    let mut names: Vec<String> =
        roots.map(|root| root.map_or_else(String::new, |at| labels.loops.op_name(program, at))).collect();
    if !labels.loops.has_stacks() {
        return names;
    }
    let layers = Layers::new(names.iter().map(String::as_str));
    let of_loop = |family: &Family| {
        let part = labels.role(program, family.root).filter(|part| part.layers > 0)?;
        Some(program.text.op_name(part.at)).filter(|name| layers.of(name).is_some())
    };
    let found: Vec<Option<String>> = families.list.iter().map(of_loop).collect();
    for (name, found) in names.iter_mut().zip(found) {
        if let Some(found) = found {
            *name = found;
        }
    }
    names
}

/// Patterns whose segments are kept at the same time.
const MOST_KEPT: usize = 8;

/// The segments of the patterns that were asked for last.
#[derive(Debug, Clone, Default)]
pub struct Patterns(Arc<Mutex<Vec<Pattern>>>);

/// A pattern and what it names.
type Pattern = (String, Arc<Segments>);

impl Patterns {
    /// What a pattern names, worked out once.
    pub fn segments(&self, program: &Program, named: Named<'_>, turn: &Turn, pattern: &str) -> Arc<Segments> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, segments)) = known().iter().find(|known| known.0 == pattern) {
            return Arc::clone(segments);
        }
        let segments = Arc::new(Segments::new(program, named, turn, pattern));
        let mut known = known();
        if known.len() >= MOST_KEPT {
            known.remove(0);
        }
        known.push((pattern.to_owned(), Arc::clone(&segments)));
        segments
    }
}
