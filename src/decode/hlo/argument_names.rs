//! Names of arguments that the compiler lost: what moves a weight into a loop may leave it the loop's name
//! (`jit(step)/jvp()/while`). Another tree of the same leaves, such as an average or the optimizer's moments of the same
//! weights, still has them: JAX numbers the leaves of a tree one after the other, in one order.

use crate::model::{FastMap, InstructionId, Opcode, Program};

/// Most keys of a path that are looked at.
const MOST_KEYS: usize = 24;

/// Most trees that have a leaf: there are weights, gradients, moments and averages of them.
const MOST_TREES: usize = 16;

/// An argument of the entry, by its number.
struct Argument {
    row: u32,
    name: String,
    rank: usize,
}

/// The names of arguments that lost theirs, by instruction, as other trees tell them; `is_lost` of an argument, and its name.
pub(super) fn restored(
    program: &Program,
    is_lost: impl Fn(InstructionId) -> bool,
    name: impl Fn(InstructionId) -> String,
) -> FastMap<u32, String> {
    let Some(entry) = program.entry_computation() else { return FastMap::default() };
    let opcode = |row: u32| program.instructions.opcode.get(row as usize).copied();
    let rows = || (entry.start..entry.end).filter(|&row| opcode(row) == Some(Opcode::PARAMETER));
    let lost: Vec<u32> = rows().filter(|&row| is_lost(InstructionId(row))).collect();
    if lost.is_empty() {
        return FastMap::default();
    }
    let argument = |row: u32| {
        let number = usize::try_from(*program.instructions.argument.get(row as usize)?).ok()?;
        let rank = program.shape_of(InstructionId(row))?.root().dimensions.len();
        let name = if lost.binary_search(&row).is_ok() { String::new() } else { name(InstructionId(row)) };
        Some((number, Argument { row, name, rank }))
    };
    let mut arguments: Vec<(usize, Argument)> = rows().filter_map(argument).collect();
    arguments.sort_by_key(|row| row.0);
    // Without a gap, so that neighbours in this list are neighbours in their tree.
    if arguments.iter().enumerate().any(|(place, row)| place != row.0) {
        return FastMap::default();
    }
    let arguments: Vec<Argument> = arguments.into_iter().map(|row| row.1).collect();
    let mut by_leaf: FastMap<&str, Vec<usize>> = FastMap::default();
    for (place, argument) in arguments.iter().enumerate() {
        for leaf in ends(&argument.name) {
            by_leaf.entry(leaf).or_default().push(place);
        }
    }
    let mut found = FastMap::default();
    let mut place = 0;
    while place < arguments.len() {
        let end = place + arguments[place..].iter().take_while(|argument| argument.name.is_empty()).count();
        if end > place {
            for (argument, name) in arguments[place..end].iter().zip(run(&arguments, (place, end), &by_leaf)) {
                found.insert(argument.row, name);
            }
        }
        place = end + 1;
    }
    found
}

/// The ends of a path behind the name of its tree, the longest first: `['a']['w']` and `['w']` of `params['a']['w']`.
fn ends(path: &str) -> impl Iterator<Item = &str> {
    let starts = path.bytes().enumerate().skip(1).filter(|(_, byte)| matches!(byte, b'[' | b'.')).map(|row| row.0);
    starts.filter_map(|at| path.get(at..)).take(MOST_KEYS)
}

/// The names of the arguments from one place to another, none of which has one; empty where nothing tells them.
fn run(arguments: &[Argument], (begin, end): (usize, usize), by_leaf: &FastMap<&str, Vec<usize>>) -> Vec<String> {
    let neighbours = [begin.checked_sub(1), (end < arguments.len()).then_some(end)];
    for neighbour in neighbours.into_iter().flatten() {
        for leaf in ends(&arguments[neighbour].name) {
            let tree = &arguments[neighbour].name[..arguments[neighbour].name.len() - leaf.len()];
            for &twin in by_leaf.get(leaf).into_iter().flatten().filter(|&&twin| twin != neighbour).take(MOST_TREES) {
                let names = along(arguments, (begin, end), (neighbour, tree), (twin, leaf));
                if !names.is_empty() {
                    return names;
                }
            }
        }
    }
    Vec::new()
}

/// The names of a run from those of another tree, in which a leaf has the place of the run's neighbour; empty where the
/// two trees differ.
fn along(
    arguments: &[Argument],
    (begin, end): (usize, usize),
    (neighbour, tree): (usize, &str),
    (twin, leaf): (usize, &str),
) -> Vec<String> {
    let twins = &arguments[twin].name;
    let of_twin = &twins[..twins.len() - leaf.len()];
    let other = |place: usize| arguments.get((place + twin).checked_sub(neighbour)?);
    let name = |place: usize| {
        let other = other(place)?;
        let leaf = other.name.strip_prefix(of_twin).filter(|leaf| leaf.starts_with(['[', '.']))?;
        (other.rank == arguments[place].rank).then(|| format!("{tree}{leaf}"))
    };
    // What is beside the run on either side is the same leaf of both trees, or the end of both.
    let is_alike = |place: Option<usize>| {
        let Some(place) = place.filter(|&place| place < arguments.len()) else { return true };
        match arguments[place].name.strip_prefix(tree).filter(|leaf| leaf.starts_with(['[', '.'])) {
            Some(_) => name(place).as_ref() == Some(&arguments[place].name),
            None => other(place).is_none_or(|other| !other.name.starts_with(of_twin)),
        }
    };
    if !is_alike(begin.checked_sub(1)) || !is_alike(Some(end)) {
        return Vec::new();
    }
    (begin..end).map(name).collect::<Option<Vec<_>>>().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of(names: &[(&str, usize)]) -> Vec<Option<String>> {
        let argument =
            |(row, &(name, rank)): (usize, &(&str, usize))| Argument { row: row as u32, name: name.to_owned(), rank };
        let arguments: Vec<Argument> = names.iter().enumerate().map(argument).collect();
        let mut by_leaf: FastMap<&str, Vec<usize>> = FastMap::default();
        for (place, argument) in arguments.iter().enumerate() {
            for leaf in ends(&argument.name) {
                by_leaf.entry(leaf).or_default().push(place);
            }
        }
        let begin = names.iter().position(|row| row.0.is_empty()).unwrap();
        let end = begin + names[begin..].iter().take_while(|row| row.0.is_empty()).count();
        let found = run(&arguments, (begin, end), &by_leaf);
        (0..end - begin).map(|place| found.get(place).cloned()).collect()
    }

    #[test]
    fn a_lost_name_is_that_of_the_same_leaf_in_another_tree() {
        let model = [("model['ada'].value", 1), ("", 3), ("", 2), ("model['out'].value", 1)];
        let of_tree = |tree: &str| {
            [("ada", 1), ("blocks']['a", 3), ("blocks']['b", 2), ("out", 1)]
                .map(|(leaf, rank)| (format!("{tree}['{leaf}'].value"), rank))
        };
        let moments = of_tree("opt[0].mu");
        let all: Vec<(&str, usize)> =
            model.into_iter().chain(moments.iter().map(|row| (row.0.as_str(), row.1))).collect();
        let expected = ["model['blocks']['a'].value", "model['blocks']['b'].value"].map(|name| Some(name.to_owned()));
        assert_eq!(names_of(&all), expected);
        // Without the neighbour before, and without the one behind.
        assert_eq!(names_of(&[&[("step", 0)], &all[1..]].concat()), [None, None], "the tree begins elsewhere");
        assert_eq!(names_of(&[&all[1..4], &all[5..]].concat()), expected);
        // Leaves of other ranks, or in another order, are another tree's.
        let mut other = all.clone();
        other[5].1 = 4;
        assert_eq!(names_of(&other), [None, None]);
        let mut other = all;
        other[7].0 = "opt[0].mu['place'].value";
        assert_eq!(names_of(&other), [None, None]);
    }
}
