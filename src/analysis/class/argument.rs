//! Classes of a program's arguments: by name if that is certain, else by their use in the program, else by their
//! neighbours in the argument tree.

use std::collections::{HashMap, HashSet};

use super::{Class, Reason};
use crate::analysis::flow::results::Flow;
use crate::analysis::names::argument::Hint;
use crate::analysis::names::lookup::argument_paths;
use crate::model::{Program, ShapeNode};

/// Share of a container's bytes that must be of one class for the rest to follow.
const MAJORITY: f64 = 0.8;

/// An argument before its class is known.
struct Argument<'a> {
    number: i64,
    path: &'a str,
    bytes: u64,
    node: Option<&'a ShapeNode>,
}

impl Argument<'_> {
    /// Whether its elements are integers.
    fn is_whole(&self) -> bool {
        self.node.is_some_and(|node| node.element_type.is_index())
    }
}

/// Classes of the entry's arguments, by number. `is_training`: op names show a backward pass.
pub fn classes(program: &Program, is_training: bool) -> HashMap<i64, (Class, Reason)> {
    let paths = argument_paths(program);
    let flow = Flow::new(program);
    // What is updated without a backward pass may be trained, or state such as a cache.
    let shows_backward = is_training;
    let is_training = is_training || flow.has_updates();
    let arguments: Vec<Argument<'_>> = program
        .allocations
        .iter()
        .filter(|allocation| allocation.is_parameter)
        .map(|allocation| Argument {
            number: allocation.parameter_number,
            path: paths.get(&allocation.parameter_number).map_or("", String::as_str),
            bytes: allocation.size.0,
            node: program.assigned_to(allocation).first().and_then(|assigned| program.buffer_node(assigned.buffer)),
        })
        .collect();
    let mut classes: HashMap<i64, (Class, Reason)> = arguments
        .iter()
        .map(|argument| (argument.number, class(argument, &flow, (is_training, shows_backward))))
        .collect();
    follow_mirrors(&arguments, &mut classes);
    follow_neighbours(&arguments, &mut classes, is_training);
    classes
}

fn class(argument: &Argument<'_>, flow: &Flow, (is_training, shows_backward): (bool, bool)) -> (Class, Reason) {
    let Some(own) = flow.arguments.get(&argument.number).filter(|_| flow.results > 0) else {
        return by_name(argument.path, argument.is_whole());
    };
    let is_returned = own.own_result.is_some();
    match Hint::of(argument.path) {
        Hint::Optimizer => (Class::Optimizer, Reason::OptimizerName),
        Hint::Cache => (Class::Cache, Reason::CacheName),
        // An ambiguous word counts only if the argument is updated like optimizer state. Alone, `velocity` or `mu` may be
        // what is trained.
        Hint::MaybeOptimizer if is_training && is_returned && is_nested(argument.path) => {
            (Class::Optimizer, Reason::OptimizerName)
        }
        Hint::Weight => (Class::Weight, Reason::WeightName),
        Hint::Samples => (Class::Input, Reason::DataName),
        Hint::State => (Class::Input, Reason::StateName),
        Hint::MaybeOptimizer | Hint::Place | Hint::Nothing => by_flow(argument, flow, (is_training, shows_backward)),
    }
}

fn is_float(node: &ShapeNode) -> bool {
    let name = node.element_type.name();
    name.starts_with(['f', 'c']) || name == "bf16"
}

/// Whether a path has more than one word.
fn is_nested(path: &str) -> bool {
    path.contains(['[', '.'])
}

/// The class indicated by an argument's use.
fn by_flow(argument: &Argument<'_>, flow: &Flow, (is_training, shows_backward): (bool, bool)) -> (Class, Reason) {
    let own = flow.arguments.get(&argument.number).cloned().unwrap_or_default();
    let rank = argument.node.map_or(0, |node| node.dimensions.iter().filter(|&&d| d > 1).count());
    if own.own_result.is_some() {
        // Nothing that is trained has elements of integers: replay buffers, counters, states of a simulation.
        if is_training && argument.node.is_some_and(|node| !is_float(node)) {
            return (Class::Input, Reason::IntegersReturned);
        }
        return match (is_training, own.is_updated_in_place) {
            (_, true) if rank >= 3 && !shows_backward => (Class::Cache, Reason::WrittenInPlace),
            (true, _) if flow.serves_an_update(argument.number) => (Class::Optimizer, Reason::ServesUpdate),
            (true, _) if rank > 0 => (Class::Weight, Reason::UpdatedFromGradient),
            _ => (Class::Input, Reason::StateReturned),
        };
    }
    if argument.is_whole() || argument.node.is_some_and(|node| node.element_type.name() == "pred") {
        return (Class::Input, Reason::Integers);
    }
    if is_training { (Class::Input, Reason::NotReturned) } else { (Class::Weight, Reason::Argument) }
}

/// The class indicated by the path alone, for programs whose data flow is unknown.
fn by_name(path: &str, is_whole: bool) -> (Class, Reason) {
    match Hint::of(path) {
        Hint::Optimizer | Hint::MaybeOptimizer => (Class::Optimizer, Reason::OptimizerName),
        Hint::Cache => (Class::Cache, Reason::CacheName),
        Hint::State => (Class::Input, Reason::StateName),
        Hint::Samples => (Class::Input, Reason::DataName),
        Hint::Nothing if is_whole => (Class::Input, Reason::Integers),
        Hint::Weight => (Class::Weight, Reason::WeightName),
        Hint::Place | Hint::Nothing => (Class::Weight, Reason::Argument),
    }
}

/// Copies of the weights, such as a target network's or a moving average's, have the same tree and shapes: whatever the
/// first word of their paths, they are weights.
fn follow_mirrors(arguments: &[Argument<'_>], classes: &mut HashMap<i64, (Class, Reason)>) {
    let rest = |path: &'_ str| path.find(['[', '.']).map(|at| path.split_at(at).1.to_owned());
    let dimensions = |argument: &Argument<'_>| argument.node.map(|node| node.dimensions.clone());
    let mut weights: HashSet<(String, Vec<i64>)> = HashSet::new();
    for argument in arguments {
        if classes.get(&argument.number).is_some_and(|found| found.0 == Class::Weight)
            && let (Some(rest), Some(dimensions)) = (rest(argument.path), dimensions(argument))
        {
            weights.insert((rest, dimensions));
        }
    }
    for argument in arguments {
        let is_data = classes.get(&argument.number).is_some_and(|found| found.0 == Class::Input);
        if is_data
            && let (Some(rest), Some(dimensions)) = (rest(argument.path), dimensions(argument))
            && !dimensions.is_empty()
            && weights.contains(&(rest, dimensions))
        {
            classes.insert(argument.number, (Class::Weight, Reason::MirrorsWeights));
        }
    }
}

/// Arguments with little evidence take the class of the others in their container: a counter `state[2][0]` that of
/// `state[2]`, a frozen weight that of the weights next to it.
fn follow_neighbours(arguments: &[Argument<'_>], classes: &mut HashMap<i64, (Class, Reason)>, is_training: bool) {
    let weak = |reason: Reason| {
        matches!(reason, Reason::Argument | Reason::NotReturned | Reason::StateReturned | Reason::Integers)
    };
    // Integer arrays of several dimensions that a training step does not return are data, whatever is
    // next to them.
    let is_data = |argument: &Argument<'_>, reason: Reason| {
        let is_array = argument.node.is_some_and(|node| node.dimensions.iter().filter(|&&d| d > 1).count() > 1);
        is_training && is_array && reason == Reason::Integers
    };
    let mut containers: HashMap<&str, HashMap<Class, u64>> = HashMap::new();
    for argument in arguments {
        let Some(&(class, reason)) = classes.get(&argument.number) else { continue };
        if weak(reason) {
            continue;
        }
        for container in containers_of(argument.path) {
            let sum = containers.entry(container).or_default().entry(class).or_default();
            *sum = sum.saturating_add(argument.bytes.max(1));
        }
    }
    for argument in arguments {
        if !classes.get(&argument.number).is_some_and(|found| weak(found.1) && !is_data(argument, found.1)) {
            continue;
        }
        let found = containers_of(argument.path).find_map(|container| {
            let sums = containers.get(container)?;
            let whole = sums.values().fold(0u64, |sum, &bytes| sum.saturating_add(bytes));
            sums.iter().find(|row| *row.1 as f64 >= whole as f64 * MAJORITY).map(|row| *row.0)
        });
        if let Some(class) = found {
            classes.insert(argument.number, (class, Reason::Neighbours));
        }
    }
}

/// The containers of a path, the nearest first: `state[2]` and `state` of `state[2][0]`.
fn containers_of(path: &str) -> impl Iterator<Item = &str> {
    let mut end = path.len();
    std::iter::from_fn(move || {
        end = path.get(..end)?.rfind(['[', '.'])?;
        path.get(..end).filter(|container| !container.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_come_nearest_first() {
        assert_eq!(containers_of("state[2][0]").collect::<Vec<_>>(), ["state[2]", "state"]);
        assert_eq!(
            containers_of("state.params['a'].value").collect::<Vec<_>>(),
            ["state.params['a']", "state.params", "state"]
        );
        assert_eq!(containers_of("x").count(), 0);
    }

    #[test]
    fn paths_alone_tell_a_class_where_nothing_can_be_followed() {
        for (path, is_whole, expected) in [
            ("params['layers'][0]['w1']", false, Class::Weight),
            ("opt_state[0]['embed']", false, Class::Optimizer),
            ("state.opt_state[0].mu['w']", false, Class::Optimizer),
            ("state.params['opt_in']", false, Class::Weight),
            ("batch['tokens']", true, Class::Input),
            ("x", false, Class::Input),
            ("cache['k']", false, Class::Cache),
            ("rng", true, Class::Input),
            ("", true, Class::Input),
            ("", false, Class::Weight),
            ("params['table']", true, Class::Weight),
        ] {
            assert_eq!(by_name(path, is_whole).0, expected, "{path}");
        }
    }
}
