//! The number that two programs differ in, found from their arguments' shapes.

use std::collections::{BTreeMap, HashMap};
use std::str::FromStr;

use crate::analysis::class::Class;
use crate::analysis::scene::Scene;
use crate::analysis::what_if::{Memory, Role};
use crate::model::BufferId;

/// The number, and what it is in the two programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Varying {
    /// What it is called: `batch`, `length`, `layers`, `devices`.
    pub name: String,
    /// Its value in the first program and in the second; both are positive, and they differ.
    pub values: [i64; 2],
    /// How that is known, in words.
    pub evidence: String,
}

/// Name of the number of devices.
const DEVICES: &str = "devices";

/// Why a text does not name two values, or two programs do not tell them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VaryingError {
    /// The text has another form.
    #[error("write it as batch=32,64")]
    Form,
    /// Nothing differs.
    #[error(
        "the arguments of both programs have the same shapes, and as many devices; say what differs with --varies NAME=A,B"
    )]
    NothingDiffers,
}

impl FromStr for Varying {
    type Err = VaryingError;

    fn from_str(text: &str) -> Result<Self, VaryingError> {
        let (name, values) = text.split_once('=').ok_or(VaryingError::Form)?;
        let (one, other) = values.split_once(',').ok_or(VaryingError::Form)?;
        let value = |text: &str| text.trim().parse().ok().filter(|&value: &i64| value > 0);
        match (value(one), value(other)) {
            (Some(one), Some(other)) if one != other && !name.trim().is_empty() => {
                let evidence = "given with --varies".to_owned();
                Ok(Self { name: name.trim().to_owned(), values: [one, other], evidence })
            }
            _ => Err(VaryingError::Form),
        }
    }
}

impl Varying {
    /// Whether the work is divided by the number: devices.
    #[must_use]
    pub fn is_divisor(&self) -> bool {
        self.name == DEVICES
    }

    /// Finds it: the number of devices if that differs, else the dimension that differs in most arguments, those that
    /// hold data first, else the number of layers that the arguments' names tell.
    ///
    /// # Errors
    /// If nothing differs.
    pub fn find(
        scenes: [Scene<'_>; 2],
        memories: [&Memory; 2],
        pairs: &[(BufferId, BufferId)],
    ) -> Result<Self, VaryingError> {
        let devices = scenes.map(|scene| i64::from(scene.program.devices()));
        if devices[0] != devices[1] {
            let evidence = "the programs are compiled for different numbers of devices".to_owned();
            return Ok(Self { name: DEVICES.to_owned(), values: devices, evidence });
        }
        dimension(scenes, memories, pairs).or_else(|| layers(memories)).ok_or(VaryingError::NothingDiffers)
    }
}

/// Votes for a pair of sizes.
#[derive(Default)]
struct Votes {
    /// Arguments, those that hold data and all.
    data: usize,
    all: usize,
    /// Those of each in which it is the first dimension.
    first_of_data: usize,
    first: usize,
    example: String,
}

fn dimension(scenes: [Scene<'_>; 2], memories: [&Memory; 2], pairs: &[(BufferId, BufferId)]) -> Option<Varying> {
    let other_of: HashMap<BufferId, BufferId> = pairs.iter().copied().collect();
    let classes = scenes[0].analysis.classes(scenes[0].program);
    let mut votes: BTreeMap<(i64, i64), Votes> = BTreeMap::new();
    for (row, base) in memories[0].base.iter().enumerate() {
        let Role::Argument { path, .. } = &base.role else { continue };
        let Some(&other) = other_of.get(&base.buffer) else { continue };
        let nodes = (scenes[0].program.buffer_node(base.buffer), scenes[1].program.buffer_node(other));
        let (Some(one), Some(other)) = nodes else { continue };
        if one.dimensions.len() != other.dimensions.len() {
            continue;
        }
        let is_data = memories[0].is_data(row) || classes.of(base.buffer) == Class::Input;
        for (place, (&p, &q)) in one.dimensions.iter().zip(&other.dimensions).enumerate() {
            if p == q || p <= 0 || q <= 0 {
                continue;
            }
            let vote = votes.entry((p, q)).or_default();
            vote.all += 1;
            vote.data += usize::from(is_data);
            vote.first += usize::from(place == 0);
            vote.first_of_data += usize::from(place == 0 && is_data);
            if vote.example.is_empty() {
                vote.example = if path.is_empty() { format!("argument {row}") } else { path.clone() };
            }
        }
    }
    let ((p, q), vote) = votes.into_iter().max_by_key(|(_, vote)| (vote.data, vote.all, vote.first))?;
    // A cache has the batch behind its layers, but what is fed in has it in front.
    let is_first = if vote.data > 0 { vote.first_of_data > 0 } else { 2 * vote.first > vote.all };
    let name = match (vote.data > 0, is_first) {
        (true, true) => "batch",
        (false, true) => "layers",
        (_, false) => "length",
    };
    let evidence = format!("a dimension of {} arguments, {} among them", vote.all, vote.example);
    Some(Varying { name: name.to_owned(), values: [p, q], evidence })
}

/// The numbers of layers, from the arguments' names: `params['layer_3']`.
fn layers(memories: [&Memory; 2]) -> Option<Varying> {
    let counts = memories.map(|memory| {
        let mut counts: BTreeMap<String, (i64, usize)> = BTreeMap::new();
        for base in &memory.base {
            let Role::Argument { path, .. } = &base.role else { continue };
            for (stem, number) in numbered(path) {
                let count = counts.entry(stem).or_default();
                *count = (count.0.max(number.saturating_add(1)), count.1 + 1);
            }
        }
        counts
    });
    let differing = counts[1].iter().filter_map(|(stem, &(after, arguments))| {
        let &(before, _) = counts[0].get(stem)?;
        (before != after).then_some((arguments, stem, before, after))
    });
    let (_, stem, before, after) = differing.max_by_key(|found| (found.0, std::cmp::Reverse(found.1)))?;
    let evidence = format!("the numbers in the names of arguments: {stem}*");
    Some(Varying { name: "layers".to_owned(), values: [before, after], evidence })
}

/// The numbers in a path, each with what comes before it: `params['layer_`, 3.
fn numbered(path: &str) -> Vec<(String, i64)> {
    let mut found = Vec::new();
    let bytes = path.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let end = at + bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if end == at {
            at += 1;
            continue;
        }
        let is_separate = at > 0 && matches!(bytes[at - 1], b'_' | b'.' | b'[' | b'-' | b'/');
        if let (true, Some(stem), Ok(number)) = (is_separate, path.get(..at), path[at..end].parse()) {
            found.push((stem.to_owned(), number));
        }
        at = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_values_are_read() {
        let read: Result<Varying, _> = "batch=32, 64".parse();
        assert_eq!(read.map(|varying| (varying.name, varying.values)), Ok(("batch".to_owned(), [32, 64])));
        for wrong in ["batch", "batch=3", "batch=3,3", "=1,2", "batch=0,2", "batch=a,b"] {
            assert_eq!(wrong.parse::<Varying>(), Err(VaryingError::Form), "{wrong}");
        }
    }

    #[test]
    fn numbers_in_paths_are_found() {
        let found = numbered("state.params['layer_12']['w2'][0]");
        let expected = [("state.params['layer_", 12), ("state.params['layer_12']['w2'][", 0)];
        assert_eq!(found, expected.map(|(stem, number)| (stem.to_owned(), number)));
    }
}
