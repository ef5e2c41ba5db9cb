//! Classes of a program's arguments: by name if that is certain, else by their use in the program, else by their
//! neighbours in the argument tree.

use std::cell::LazyCell;

use super::from_gradient::from_gradient;
use super::keys_and_values;
use super::per_sample::{Row, beside_caches, of_samples};
use super::{Class, Reason};
use crate::analysis::flow::product::may_have_weights;
use crate::analysis::flow::results::Flow;
use crate::analysis::flow::steps::{LoopSteps, Steps};
use crate::analysis::names::argument::{Hint, first_word, is_nested, is_told_by_first_word};
use crate::analysis::names::pass::Pass;
use crate::model::{Allocation, BufferId, FastMap, FastSet, Opcode, Program, ShapeNode};

/// Share of a container's bytes that must be of one class for the rest to follow.
const MAJORITY: f64 = 0.8;

/// Samples never have elements of so few bits; a truth value takes a byte.
const FEW_BITS: u32 = 4;

/// An argument before its class is known.
struct Argument<'a> {
    /// Its number in the entry computation.
    number: i64,
    /// Its path in the tree of arguments; empty if it has none.
    path: &'a str,
    /// Bytes of its memory.
    bytes: u64,
    /// The array that it is.
    node: Option<&'a ShapeNode>,
}

impl<'a> Argument<'a> {
    /// The dimensions of the array that it is; none if it is none.
    fn dimensions(&self) -> &'a [i64] {
        self.node.map_or(&[], |node| node.dimensions.as_slice())
    }

    /// Whether its elements are integers.
    fn is_whole(&self) -> bool {
        self.node.is_some_and(|node| node.element_type.is_index())
    }

    /// The dimensions of an array of floats with at least two of them.
    fn matrix(&self) -> Option<&[i64]> {
        self.node.filter(|node| is_float(node) && node.dimensions.len() >= 2).map(|node| node.dimensions.as_slice())
    }
}

/// What is known of a program apart from its arguments' names.
struct Evidence<'a> {
    flow: Flow,
    steps: &'a LoopSteps,
    /// Whether it trains.
    is_training: bool,
    /// Whether op names show a backward pass.
    shows_backward: bool,
    /// Whether anything in the program may be a weight, looked for when it is first asked for.
    may_have_weights: LazyCell<bool, Box<dyn FnOnce() -> bool + 'a>>,
    /// Whether a tree of several arguments has the names of weights.
    has_tree_of_weights: bool,
    /// First words of paths that are typical of samples, but name something else here.
    untelling: FastSet<String>,
}

/// Classes of the entry's arguments, by number, with their paths; `passes` are those of the instructions.
pub fn classes(
    program: &Program,
    paths: &FastMap<i64, String>,
    passes: &[Pass],
    steps: &LoopSteps,
) -> FastMap<i64, (Class, Reason)> {
    let flow = Flow::new(program);
    let is_training = passes.contains(&Pass::Backward);
    let arguments: Vec<Argument<'_>> = program
        .allocations
        .iter()
        .filter(|allocation| allocation.is_parameter)
        .map(|allocation| Argument {
            number: allocation.parameter_number,
            path: paths.get(&allocation.parameter_number).map_or("", String::as_str),
            bytes: allocation.size.0,
            node: held(program, allocation),
        })
        .collect();
    let evidence = Evidence {
        untelling: untelling(&arguments, steps),
        steps,
        // What is updated without a backward pass may be trained, or state such as a cache.
        is_training: is_training || flow.has_updates(),
        shows_backward: is_training,
        may_have_weights: LazyCell::new(Box::new(|| may_have_weights(program))),
        has_tree_of_weights: has_tree_of_weights(&arguments),
        flow,
    };
    let mut classes: FastMap<i64, (Class, Reason)> =
        arguments.iter().map(|argument| (argument.number, class(argument, &evidence))).collect();
    follow_gradients(program, passes, &arguments, (&evidence.flow, &mut classes));
    follow_rows(&arguments, &mut classes, steps);
    if !evidence.is_training {
        follow_caches(&arguments, &mut classes);
    }
    follow_mirrors(&arguments, &mut classes);
    follow_samples(&arguments, &mut classes);
    follow_neighbours(&arguments, &mut classes, evidence.is_training);
    classes
}

/// State with new values that no gradient reaches, nor those of anything of its dimensions, such as of a simulation that the
/// step runs too, is no weight.
fn follow_gradients(
    program: &Program,
    passes: &[Pass],
    arguments: &[Argument<'_>],
    (flow, classes): (&Flow, &mut FastMap<i64, (Class, Reason)>),
) {
    if !classes.values().any(|found| found.1 == Reason::UpdatedFromGradient) {
        return;
    }
    let from_gradient = from_gradient(program, passes);
    let is_trained = |argument: &&Argument<'_>| {
        let result = flow.arguments.get(&argument.number).and_then(|own| own.own_result);
        result.is_some_and(|result| from_gradient.get(result as usize) != Some(&false))
    };
    let trained: FastSet<&[i64]> = arguments.iter().filter(is_trained).map(Argument::dimensions).collect();
    for argument in arguments.iter().filter(|argument| !trained.contains(argument.dimensions())) {
        if let Some(found) = classes.get_mut(&argument.number)
            && found.1 == Reason::UpdatedFromGradient
        {
            *found = (Class::Input, Reason::WithoutGradient);
        }
    }
}

/// The arguments as rows, with whether the reasons for their classes are names, and leave the class open.
fn rows<'a>(
    arguments: &[Argument<'a>],
    classes: &FastMap<i64, (Class, Reason)>,
    is_named: impl Fn(Reason) -> bool,
    is_open: impl Fn(Reason) -> bool,
) -> Vec<Row<'a>> {
    let row = |argument: &Argument<'a>| {
        let reason = classes.get(&argument.number).map(|found| found.1);
        Row {
            number: argument.number,
            path: argument.path,
            dimensions: argument.dimensions(),
            is_named: reason.is_some_and(&is_named),
            is_open: reason.is_some_and(&is_open),
        }
    };
    arguments.iter().map(row).collect()
}

/// State of many samples, such as of environments, is no weight.
fn follow_rows(arguments: &[Argument<'_>], classes: &mut FastMap<i64, (Class, Reason)>, steps: &LoopSteps) {
    let is_named = |reason| matches!(reason, Reason::WeightName | Reason::OptimizerName | Reason::CacheName);
    let is_open = |reason| {
        matches!(
            reason,
            Reason::UpdatedFromGradient | Reason::ServesUpdate | Reason::WrittenInPlace | Reason::NotReturned
        )
    };
    let rows = rows(arguments, classes, is_named, is_open);
    let mut found = of_samples(&rows, steps);
    // An array by itself, such as what environments were last seen in, beside state of as many rows.
    let is_state = |argument: &&Argument<'_>| {
        classes.get(&argument.number).is_some_and(|own| own.1 == Reason::StateName) && is_nested(argument.path)
    };
    let mut of_state: FastMap<i64, usize> = FastMap::default();
    for &size in arguments.iter().filter(is_state).filter_map(|argument| argument.dimensions().first()) {
        *of_state.entry(size).or_default() += 1;
    }
    let is_beside = |row: &&Row<'_>| {
        let size = row.dimensions.first().filter(|&&size| size > 1);
        row.is_open && !is_nested(row.path) && size.is_some_and(|size| of_state.get(size) >= Some(&FEWEST_OF_STATE))
    };
    found.extend(rows.iter().filter(is_beside).map(|row| row.number));
    if found.is_empty() {
        return;
    }
    let paged = paged(arguments);
    let pairs = keys_and_values::pairs(arguments.iter().map(|own| (own.number, own.path, own.dimensions())));
    let is_cache = |number: &i64| {
        classes.get(number).is_some_and(|own| own.1 == Reason::WrittenInPlace)
            && (paged.contains(number) || pairs.contains(number))
    };
    found.retain(|number| !is_cache(number));
    classes.extend(found.into_iter().map(|number| (number, (Class::Input, Reason::RowForEachSample))));
}

/// Arrays that have as many rows as a table has entries, or one more: the pages that the table gives to samples.
fn paged(arguments: &[Argument<'_>]) -> FastSet<i64> {
    let is_table = |node: &&ShapeNode| node.element_type.is_index() && node.dimensions.len() == 2;
    let tables = arguments.iter().filter_map(|argument| argument.node).filter(is_table);
    let entries: FastSet<i64> = tables.filter_map(|node| i64::try_from(node.element_count()).ok()).collect();
    let has_pages = |argument: &&Argument<'_>| {
        argument.dimensions().iter().any(|&size| entries.contains(&size) || entries.contains(&size.saturating_sub(1)))
    };
    arguments.iter().filter(has_pages).map(|argument| argument.number).collect()
}

/// Fewest arrays of state that tell how many rows it has.
const FEWEST_OF_STATE: usize = 3;

/// Keys and values that are only read, beside a cache that is written.
fn follow_caches(arguments: &[Argument<'_>], classes: &mut FastMap<i64, (Class, Reason)>) {
    let of = |argument: &Argument<'_>| classes.get(&argument.number).copied();
    let are = |wanted: Class, is_whole: bool| -> Vec<&[i64]> {
        let of_class = |argument: &&Argument<'_>| of(argument).is_some_and(|found| found.0 == wanted);
        let meant = arguments.iter().filter(of_class).filter(|argument| !is_whole || argument.is_whole());
        meant.map(Argument::dimensions).collect()
    };
    let is_named = |reason| matches!(reason, Reason::WeightName | Reason::CacheName);
    let is_open = |reason| matches!(reason, Reason::Argument | Reason::NotReturned);
    let rows = rows(arguments, classes, is_named, is_open);
    let found = beside_caches(&rows, &are(Class::Cache, false), &are(Class::Input, true));
    classes.extend(found.into_iter().map(|number| (number, (Class::Cache, Reason::RowForEachSample))));
}

/// The array that an argument is: a donated one's memory holds others too.
fn held<'a>(program: &'a Program, allocation: &Allocation) -> Option<&'a ShapeNode> {
    let assigned = program.assigned_to(allocation);
    let is_argument = |buffer: BufferId| {
        let at = program.buffers.instruction_of(buffer);
        at.is_some_and(|at| {
            program.instructions.opcode.get(at.index()) == Some(&Opcode::PARAMETER) && program.is_in_entry(at)
        })
    };
    let own = assigned.iter().find(|assigned| is_argument(assigned.buffer)).or_else(|| assigned.first())?;
    program.buffer_node(own.buffer)
}

/// Fewest matrices that show whether a container holds samples.
const FEWEST_MATRICES: usize = 3;

/// Whether arguments below one another have the names of weights, as a tree of them has.
fn has_tree_of_weights(arguments: &[Argument<'_>]) -> bool {
    let is_weight = |argument: &&Argument<'_>| is_nested(argument.path) && Hint::of(argument.path) == Hint::Weight;
    arguments.iter().filter(is_weight).take(FEWEST_MATRICES).count() == FEWEST_MATRICES
}

/// First words of paths that name no samples here, whatever they say: layers take slices of the arrays below them, these
/// have no leading dimension in common, as samples have, or they are those of numbered modules.
fn untelling(arguments: &[Argument<'_>], steps: &LoopSteps) -> FastSet<String> {
    let mut containers: FastMap<&str, Vec<&Argument<'_>>> = FastMap::default();
    for argument in arguments.iter().filter(|argument| argument.matrix().is_some() && is_nested(argument.path)) {
        containers.entry(first_word(argument.path)).or_default().push(argument);
    }
    let are_others = |matrices: &[&Argument<'_>]| {
        let is_taken = |argument: &&Argument<'_>| steps.of_argument(argument.number).is_some_and(Steps::are_layers);
        let mut leading: FastMap<i64, usize> = FastMap::default();
        for &size in matrices.iter().filter_map(|argument| argument.matrix()?.first()) {
            *leading.entry(size).or_default() += 1;
        }
        let most = leading.values().copied().max().unwrap_or(0);
        matrices.iter().any(is_taken)
            || are_of_modules(
                matrices.iter().filter_map(|argument| Some((argument.path, *argument.matrix()?.first()?))),
            )
            || (matrices.len() >= FEWEST_MATRICES && most * 2 < matrices.len())
    };
    containers.into_iter().filter(|found| are_others(&found.1)).map(|found| found.0.to_owned()).collect()
}

/// Whether arrays, with their paths and leading dimensions, are those of several modules that are told apart by a number:
/// each has arrays of several leading dimensions, as in `target['layers'][0]['up']`.
fn are_of_modules<'a>(arrays: impl Iterator<Item = (&'a str, i64)>) -> bool {
    let mut modules: FastMap<&str, FastSet<i64>> = FastMap::default();
    for (path, leading) in arrays {
        if let Some(module) = numbered_module(path) {
            modules.entry(module).or_default().insert(leading);
        }
    }
    modules.len() > 1 && modules.values().filter(|leading| leading.len() > 1).count() > 1
}

/// The part of a path up to the last number that more follows, if it is not the first step.
fn numbered_module(path: &str) -> Option<&str> {
    let (mut end, mut step, mut steps) = (None, 0, 0usize);
    for (at, _) in path.match_indices(['[', '.']) {
        let name = path.get(step..at)?.trim_matches(['[', ']', '.']);
        if steps > 1 && !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
            end = Some(at);
        }
        steps += 1;
        step = at;
    }
    path.get(..end?)
}

/// What programs call their model: what is in it is trained, as the `velocity` of waves.
const MODELS: [&str; 6] = ["model", "params", "net", "network", "module", "weights"];

fn class(argument: &Argument<'_>, evidence: &Evidence<'_>) -> (Class, Reason) {
    let Evidence { flow, .. } = evidence;
    let Some(own) = flow.arguments.get(&argument.number).filter(|_| flow.results > 0) else {
        return by_name(argument.path, argument.is_whole());
    };
    let is_returned = own.own_result.is_some();
    match Hint::of(argument.path) {
        Hint::Optimizer => (Class::Optimizer, Reason::OptimizerName),
        Hint::Cache => (Class::Cache, Reason::CacheName),
        // An ambiguous word counts only if the argument is updated like optimizer state. Alone, `velocity` or `mu` may be
        // what is trained.
        Hint::MaybeOptimizer
            if evidence.is_training
                && is_returned
                && is_nested(argument.path)
                && !MODELS.contains(&first_word(argument.path)) =>
        {
            (Class::Optimizer, Reason::OptimizerName)
        }
        Hint::Weight => (Class::Weight, Reason::WeightName),
        Hint::Samples | Hint::State
            if is_told_by_first_word(argument.path) && evidence.untelling.contains(first_word(argument.path)) =>
        {
            by_flow(argument, evidence)
        }
        Hint::Samples => (Class::Input, Reason::DataName),
        Hint::State => (Class::Input, Reason::StateName),
        Hint::MaybeOptimizer | Hint::Place | Hint::Nothing => by_flow(argument, evidence),
    }
}

fn is_float(node: &ShapeNode) -> bool {
    let name = node.element_type.name();
    name.starts_with(['f', 'c']) || name == "bf16"
}

/// The class indicated by an argument's use.
fn by_flow(argument: &Argument<'_>, evidence: &Evidence<'_>) -> (Class, Reason) {
    let Evidence { flow, is_training, shows_backward, .. } = evidence;
    let (is_training, shows_backward) = (*is_training, *shows_backward);
    let own = flow.arguments.get(&argument.number).cloned().unwrap_or_default();
    let rank = argument.node.map_or(0, |node| node.dimensions.iter().filter(|&&d| d > 1).count());
    if own.own_result.is_some() {
        // Nothing that is trained has elements of integers: replay buffers, counters, states of a simulation.
        // A single one counts for what it lies beside.
        let is_count = is_training && argument.node.is_some_and(|node| node.element_count() <= 1);
        if is_count && argument.is_whole() {
            return (Class::Input, Reason::NumberReturned);
        }
        if argument.is_whole() || (is_training && argument.node.is_some_and(|node| !is_float(node))) {
            return (Class::Input, Reason::IntegersReturned);
        }
        return match (is_training, own.is_updated_in_place) {
            (_, true) if rank >= 3 && !shows_backward => (Class::Cache, Reason::WrittenInPlace),
            // A single number may be a sum of losses; what it lies beside tells.
            (true, _) if rank > 0 && flow.serves_an_update(argument.number) => (Class::Optimizer, Reason::ServesUpdate),
            (true, _) if rank > 0 => (Class::Weight, Reason::UpdatedFromGradient),
            (true, _) => (Class::Input, Reason::NumberReturned),
            _ => (Class::Input, Reason::StateReturned),
        };
    }
    if argument.node.is_some_and(|node| node.element_type.is_array() && node.element_type.storage_bits() <= FEW_BITS) {
        return (Class::Weight, Reason::FewBits);
    }
    if argument.is_whole() || argument.node.is_some_and(|node| node.element_type.name() == "pred") {
        return (Class::Input, Reason::Integers);
    }
    if evidence.steps.of_argument(argument.number).is_some_and(Steps::are_layers) {
        return (Class::Weight, Reason::TakenByLayers);
    }
    if is_training {
        return (Class::Input, Reason::NotReturned);
    }
    if !*evidence.may_have_weights {
        return (Class::Input, Reason::NoProducts);
    }
    // What a network is applied to, as in `decode(params, latents)`.
    if evidence.has_tree_of_weights && !argument.path.is_empty() && !is_nested(argument.path) {
        return (Class::Input, Reason::BesideWeights);
    }
    (Class::Weight, Reason::Argument)
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

/// Where an argument is below the first word of its path, and its dimensions.
fn place<'a>(argument: &'a Argument<'a>) -> Option<(&'a str, &'a [i64])> {
    let at = argument.path.find(['[', '.'])?;
    Some((argument.path.get(at..)?, argument.node?.dimensions.as_slice()))
}

/// First words of the paths below which most bytes are weights by their names, and none is optimizer state by its name.
fn containers_of_weights<'a>(
    arguments: &'a [Argument<'a>],
    classes: &FastMap<i64, (Class, Reason)>,
) -> FastSet<&'a str> {
    let mut containers: FastMap<&str, (u64, u64, bool)> = FastMap::default();
    for argument in arguments.iter().filter(|argument| is_nested(argument.path)) {
        let Some(&(_, reason)) = classes.get(&argument.number) else { continue };
        let (all, weights, has_state) = containers.entry(first_word(argument.path)).or_default();
        *all = all.saturating_add(argument.bytes);
        if reason == Reason::WeightName {
            *weights = weights.saturating_add(argument.bytes);
        }
        *has_state |= reason == Reason::OptimizerName;
    }
    let is_of_weights = |found: &(u64, u64, bool)| !found.2 && found.1 as f64 >= found.0 as f64 * MAJORITY;
    containers.into_iter().filter(|row| is_of_weights(&row.1)).map(|row| row.0).collect()
}

/// Copies of the weights, such as a target network's or a moving average's, have the same tree and shapes: whatever the
/// first word of their paths, they are weights.
fn follow_mirrors<'a>(arguments: &'a [Argument<'a>], classes: &mut FastMap<i64, (Class, Reason)>) {
    let is = |argument: &&Argument<'_>, class: Class| classes.get(&argument.number).is_some_and(|own| own.0 == class);
    // A moving average is read by its own update alone, as optimizer state is; what lies beside it tells.
    let of_weights = containers_of_weights(arguments, classes);
    let is_average = |argument: &&Argument<'_>| {
        classes.get(&argument.number).is_some_and(|own| own.1 == Reason::ServesUpdate)
            && of_weights.contains(first_word(argument.path))
    };
    let data: Vec<_> = arguments
        .iter()
        .filter(|argument| is(argument, Class::Input) || is_average(argument))
        .filter_map(|argument| Some((argument.number, place(argument).filter(|place| !place.1.is_empty())?)))
        .collect();
    let wanted: FastSet<_> = data.iter().map(|row| row.1).collect();
    if wanted.is_empty() {
        return;
    }
    let weights = arguments.iter().filter(|argument| is(argument, Class::Weight)).filter_map(place);
    let weights: FastSet<_> = weights.filter(|place| wanted.contains(place)).collect();
    for (number, place) in data {
        if weights.contains(&place) {
            classes.insert(number, (Class::Weight, Reason::MirrorsWeights));
        }
    }
}

/// Fewest arrays of a container that tell frozen weights from data.
const FEWEST_FROZEN: usize = 4;

/// Many arrays in one container that are not returned are weights that are not trained, if they are those of numbered
/// modules, or have no dimension of the samples in a program whose samples are sequences of integers.
fn follow_samples(arguments: &[Argument<'_>], classes: &mut FastMap<i64, (Class, Reason)>) {
    let of = |argument: &Argument<'_>| classes.get(&argument.number).copied();
    let is_sequence =
        |argument: &&Argument<'_>| argument.is_whole() && of(argument).is_some_and(|found| found.0 == Class::Input);
    let samples: FastSet<i64> = arguments
        .iter()
        .filter(is_sequence)
        .filter_map(|argument| argument.node.filter(|node| node.dimensions.len() >= 2))
        .flat_map(|node| node.dimensions.iter().copied().filter(|&size| size > 1))
        .collect();
    let mut containers: FastMap<&str, Vec<(&Argument<'_>, &[i64])>> = FastMap::default();
    for argument in arguments.iter().filter(|argument| is_nested(argument.path)) {
        let is_open = of(argument).is_some_and(|found| found.1 == Reason::NotReturned);
        let Some(dimensions) = argument.matrix().filter(|_| is_open) else { continue };
        containers.entry(first_word(argument.path)).or_default().push((argument, dimensions));
    }
    for held in containers.into_values().filter(|held| held.len() >= FEWEST_FROZEN) {
        let leading = held.iter().filter_map(|row| Some((row.0.path, *row.1.first()?)));
        let is_of_samples = |row: &(&Argument<'_>, &[i64])| row.1.iter().any(|size| samples.contains(size));
        let reason = if !samples.is_empty() && !held.iter().any(is_of_samples) {
            Reason::NotOfSamples
        } else if are_of_modules(leading) {
            Reason::OfModules
        } else {
            continue;
        };
        classes.extend(held.into_iter().map(|row| (row.0.number, (Class::Weight, reason))));
    }
}

/// Arguments with little evidence take the class of the others in their container: a counter `state[2][0]` that of
/// `state[2]`, a frozen weight that of the weights next to it.
fn follow_neighbours(arguments: &[Argument<'_>], classes: &mut FastMap<i64, (Class, Reason)>, is_training: bool) {
    let weak = |reason: Reason| {
        matches!(
            reason,
            Reason::Argument
                | Reason::NotReturned
                | Reason::StateReturned
                | Reason::NumberReturned
                | Reason::Integers
                | Reason::NoProducts
        )
    };
    // Integer arrays of several dimensions that a training step does not return are data, whatever is
    // next to them.
    let is_data = |argument: &Argument<'_>, reason: Reason| {
        let is_array = argument.node.is_some_and(|node| node.dimensions.iter().filter(|&&d| d > 1).count() > 1);
        is_training && is_array && reason == Reason::Integers
    };
    let may_follow: Vec<&Argument<'_>> = arguments
        .iter()
        .filter(|argument| {
            classes.get(&argument.number).is_some_and(|found| weak(found.1) && !is_data(argument, found.1))
        })
        .collect();
    // Bytes by class in the containers that are asked for.
    let mut containers: FastMap<&str, FastMap<Class, u64>> = FastMap::default();
    containers.extend(
        may_follow.iter().flat_map(|own| containers_of(own.path)).map(|container| (container, FastMap::default())),
    );
    let others = if containers.is_empty() { &[][..] } else { arguments };
    for argument in others {
        let Some(&(class, reason)) = classes.get(&argument.number) else { continue };
        if weak(reason) {
            continue;
        }
        for container in containers_of(argument.path) {
            if let Some(sums) = containers.get_mut(container) {
                let sum = sums.entry(class).or_default();
                *sum = sum.saturating_add(argument.bytes.max(1));
            }
        }
    }
    for argument in may_follow {
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
    use crate::model::ElementType;

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
    fn a_moving_average_of_weights_is_one_whatever_its_leaf_is_called() {
        let node = ShapeNode::array(ElementType::F32, vec![64, 64]);
        let of = |number, path, bytes| Argument { number, path, bytes, node: Some(&node) };
        let arguments = [
            of(0, "params['pos']", 1),
            of(1, "ema['pos']", 1),
            of(2, "ema['mlp']['kernel']", 50),
            of(3, "m['pos']", 1),
        ];
        let mut classes: FastMap<i64, (Class, Reason)> = FastMap::default();
        classes.insert(0, (Class::Weight, Reason::UpdatedFromGradient));
        classes.insert(2, (Class::Weight, Reason::WeightName));
        classes.extend([1, 3].map(|number| (number, (Class::Optimizer, Reason::ServesUpdate))));
        follow_mirrors(&arguments, &mut classes);
        assert_eq!(classes[&1], (Class::Weight, Reason::MirrorsWeights));
        assert_eq!(classes[&3].0, Class::Optimizer, "a moment has no weights beside it");
    }

    #[test]
    fn numbered_modules_are_no_samples() {
        assert_eq!(numbered_module("target['layers'][3]['up']"), Some("target['layers'][3]"));
        assert_eq!(numbered_module("target[0]['up']"), None, "the first step may number batches");
        assert_eq!(numbered_module("batch['images'][0]"), None);
        let layer = |i: usize| [(format!("target.layers[{i}].up"), 512), (format!("target.layers[{i}].down"), 2048)];
        let modules: Vec<(String, i64)> = (0..2).flat_map(layer).collect();
        let borrowed = |arrays: &[(String, i64)]| are_of_modules(arrays.iter().map(|row| (row.0.as_str(), row.1)));
        assert!(borrowed(&modules));
        let samples: Vec<(String, i64)> = modules.iter().map(|row| (row.0.clone(), 32)).collect();
        assert!(!borrowed(&samples), "samples have their batch in common");
    }

    #[test]
    fn frozen_layers_are_weights_though_they_are_as_wide_as_a_sequence_is_long() {
        let array = |ty, dimensions: &[i64]| ShapeNode::array(ty, dimensions.to_vec());
        let tokens = array(ElementType::S32, &[8, 2048]);
        let (up, down) = (array(ElementType::BF16, &[2048, 5632]), array(ElementType::BF16, &[5632, 2048]));
        let paths: Vec<String> = (0..2)
            .flat_map(|i| [format!("base['layers'][{i}]['up']"), format!("base['layers'][{i}]['down']")])
            .collect();
        let mut arguments = vec![Argument { number: 0, path: "batch[0]", bytes: 65536, node: Some(&tokens) }];
        for (number, path) in (1..).zip(&paths) {
            let node = if path.ends_with("['up']") { &up } else { &down };
            arguments.push(Argument { number, path, bytes: 1 << 24, node: Some(node) });
        }
        let mut classes: FastMap<i64, (Class, Reason)> =
            arguments.iter().map(|own| (own.number, (Class::Input, Reason::NotReturned))).collect();
        classes.insert(0, (Class::Input, Reason::Integers));
        follow_samples(&arguments, &mut classes);
        assert_eq!(classes[&0].0, Class::Input);
        assert!((1..=4).all(|number| classes[&number] == (Class::Weight, Reason::OfModules)));
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
