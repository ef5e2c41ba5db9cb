//! Layers of a program whose op names show none, inferred from its use of arguments: the arguments of a layer are in a
//! numbered container (`model.blocks[3].mlp.weight`), or operations that read arguments repeat in a period.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use super::flow::argument::moved_by;
use super::flow::collective::{gathered_from, is_begin_alone, is_carried};
use super::flow::label::Labels;
use super::flow::loops::Role;
use super::flow::steps::Steps;
use super::flow::{Value, handed_on};
use super::names::layer::{Layer, Layers};
use super::names::lookup::op_name;
use super::names::pass::{Pass, pass_of};
use crate::model::{FastMap, InstructionId, NO_ROW, Opcode, Program, ShapeNode};

/// Most operations in one layer.
const LONGEST_PERIOD: usize = 96;

/// Fewest layers that a period must show.
const LEAST_LAYERS: usize = 3;

/// Share of what the operations of the forward pass make that the layers found by position must make.
const LEAST_SHARE: f64 = 0.5;

/// Share of what the largest run of layers makes that any other run of several layers must make.
const LEAST_OF_MOST: f64 = 0.1;

/// An operation that reads an argument: of several the largest that is a layer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// The operation.
    pub at: InstructionId,
    /// Row of the layer it belongs to; `None` if the argument is no layer's.
    pub layer: Option<u32>,
    /// Whether it reads arguments of another layer as well.
    pub is_of_several: bool,
    /// Its pass.
    pub pass: Pass,
    /// Elements of its result, of all arrays in it.
    pub elements: u64,
}

/// Layers, and the operations that show where they run, in program order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LayerUse {
    /// The layers.
    pub layers: Vec<Layer>,
    /// Operations that read arguments.
    pub marks: Vec<Mark>,
}

/// An operation that reads arguments, the largest first.
struct Reader {
    at: InstructionId,
    arguments: Vec<InstructionId>,
    pass: Pass,
}

/// The scope that tells the layers of several towers apart, such as the two encoders of CLIP
/// (`text_model/encoder/layers_0`, `vision_model/encoder/layers_0`), for each of some paths, which are in order of their
/// arguments; `None` where layers of equal names are one layer.
fn towers<'p>(paths: &'p [(InstructionId, String)], layers: &[Option<Layer>]) -> Vec<Option<&'p str>> {
    // What is before the layer.
    let before = |path: &'p str, layer: &Layer| path.find(&format!("{}/", layer.name)).map(|at| &path[..at]);
    let rows = || paths.iter().zip(layers).map(|(row, layer)| Some((row.1.as_str(), layer.as_ref()?)));
    let prefixes: Vec<Option<&str>> = rows().map(|row| row.and_then(|(path, layer)| before(path, layer))).collect();
    let mut by_prefix: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (prefix, layer) in prefixes.iter().zip(layers) {
        if let (Some(prefix), Some(layer)) = (prefix, layer) {
            by_prefix.entry(prefix).or_default().insert(&layer.name);
        }
    }
    by_prefix.retain(|_, names| names.len() >= LEAST_LAYERS);
    let none = || vec![None; paths.len()];
    let Some((first, of_first)) = by_prefix.first_key_value() else { return none() };
    let is_alike = by_prefix.values().skip(1).any(|names| names.intersection(of_first).count() > 1);
    if by_prefix.len() < 2 || !is_alike {
        return none();
    }
    let scopes = |prefix: &&'p str| prefix.split('/').collect::<Vec<_>>();
    let own = scopes(first);
    let same = |place: usize| by_prefix.keys().all(|prefix| scopes(prefix).get(place) == own.get(place));
    let place = (0..own.len()).find(|&place| !same(place));
    let tower = |prefix: Option<&'p str>| {
        let prefix = prefix.filter(|prefix| by_prefix.contains_key(prefix))?;
        scopes(&prefix).get(place?).copied().filter(|scope| !scope.is_empty())
    };
    prefixes.into_iter().map(tower).collect()
}

impl LayerUse {
    /// Looks for layers; `sequence` are the rows of the instructions in program order. Empty if there are none.
    #[must_use]
    pub fn new(program: &Program, labels: &Labels, sequence: &[u32]) -> Self {
        let readers = readers(program, labels, sequence);
        let by_argument = Self::by_argument(program, &readers);
        if by_argument.layers.is_empty() { Self::by_position(program, &readers) } else { by_argument }
    }

    /// As [`Self::new`], by the containers of arguments alone, where these show clearly more layers than `named` ones.
    #[must_use]
    pub fn of_more_than(named: usize, program: &Program, labels: &Labels, sequence: &[u32]) -> Option<Self> {
        let found = Self::by_argument(program, &readers(program, labels, sequence));
        (found.layers.len() >= LEAST_LAYERS.max(named * 2)).then_some(found)
    }

    /// As [`Self::new`], by the containers of arguments alone, also of a program that has no backward pass; empty where
    /// these show fewer than three layers.
    #[must_use]
    pub fn of_arguments(program: &Program, labels: &Labels, sequence: &[u32]) -> Self {
        let mut readers = readers(program, labels, sequence);
        let is_trained = readers.iter().any(|reader| matches!(reader.pass, Pass::Forward | Pass::Backward));
        if !is_trained {
            for reader in &mut readers {
                reader.pass = Pass::Forward;
            }
        }
        let found = Self::by_argument(program, &readers);
        if found.layers.len() >= LEAST_LAYERS { found } else { Self::default() }
    }

    fn by_argument(program: &Program, readers: &[Reader]) -> Self {
        let forward = readers.iter().filter(|reader| reader.pass == Pass::Forward);
        let arguments: HashSet<InstructionId> = forward.flat_map(|reader| reader.arguments.iter().copied()).collect();
        let path = |argument: InstructionId| as_scopes(&program.text.op_name(argument));
        let mut paths: Vec<(InstructionId, String)> = arguments.iter().map(|&row| (row, path(row))).collect();
        paths.sort_unstable();
        let known = Layers::new(paths.iter().map(|row| row.1.as_str()));
        if known.is_empty() {
            return Self::default();
        }
        let mut found = Self::default();
        let mut rows: FastMap<Layer, u32> = FastMap::default();
        let named: Vec<Option<Layer>> = paths.iter().map(|row| known.of(&row.1)).collect();
        let towers = towers(&paths, &named);
        let mut layer_of: Vec<Option<u32>> = named
            .into_iter()
            .zip(towers)
            .map(|(layer, tower)| {
                let layer = layer?;
                let layer = match tower {
                    Some(tower) => {
                        Layer { name: format!("{tower}/{}", layer.name), pattern: format!("*/{}", layer.pattern) }
                    }
                    None => layer,
                };
                let layer = Layer { name: as_path(&layer.name), pattern: as_path(&layer.pattern) };
                Some(*rows.entry(layer).or_insert_with_key(|layer| {
                    found.layers.push(layer.clone());
                    found.layers.len() as u32 - 1
                }))
            })
            .collect();
        let row_of = |argument: &InstructionId| paths.binary_search_by_key(argument, |row| row.0).ok();
        let mut spans: Vec<Option<(usize, usize)>> = vec![None; found.layers.len()];
        for (time, reader) in readers.iter().enumerate().filter(|row| row.1.pass == Pass::Forward) {
            for layer in reader.arguments.iter().filter_map(|argument| layer_of[row_of(argument)?]) {
                let span = spans[layer as usize].get_or_insert((time, time));
                span.1 = time;
            }
        }
        if let Some((layers, row_of_layer)) = joined(&found.layers, &spans) {
            found.layers = layers;
            for layer in layer_of.iter_mut().flatten() {
                *layer = row_of_layer[*layer as usize];
            }
        }
        found.marks = readers
            .iter()
            .map(|reader| {
                let mut layers = reader.arguments.iter().filter_map(|argument| layer_of[row_of(argument)?]);
                let layer = layers.next();
                let is_of_several = layers.any(|other| Some(other) != layer);
                let elements = elements(program, reader.at);
                Mark { at: reader.at, layer, is_of_several, pass: reader.pass, elements }
            })
            .collect();
        found
    }

    fn by_position(program: &Program, readers: &[Reader]) -> Self {
        // What repeats in a loop over parts of the batch is not looked at.
        let is_meant = |reader: &&Reader| reader.pass == Pass::Forward && program.is_in_entry(reader.at);
        let forward: Vec<&Reader> = readers.iter().filter(is_meant).collect();
        let kinds: Vec<Kind> = forward.iter().map(|reader| Kind::of(program, reader.at)).collect();
        let mut runs = Vec::new();
        periods(&kinds, 0, &mut runs);
        let whole: u64 = kinds.iter().map(|kind| kind.elements).fold(0, u64::saturating_add);
        let inside = runs.iter().flat_map(|run| &kinds[run.first..run.first + run.layers * run.period]);
        let covered = inside.map(|kind| kind.elements).fold(0, u64::saturating_add);
        if (covered as f64) < whole as f64 * LEAST_SHARE || runs.is_empty() {
            return Self::default();
        }
        // A few equal operations beside the layers, such as three projections, are what is left of one more of them.
        let made = |run: &Run| {
            kinds[run.first..run.first + run.layers * run.period]
                .iter()
                .fold(0u64, |sum, kind| sum.saturating_add(kind.elements))
        };
        let most = runs.iter().map(made).max().unwrap_or(0);
        for run in &mut runs {
            if (made(run) as f64) < most as f64 * LEAST_OF_MOST {
                *run = Run { first: run.first, period: run.period * run.layers, layers: 1 };
            }
        }
        runs.sort_unstable_by_key(|run| run.first);
        let count: usize = runs.iter().map(|run| run.layers).sum();
        let layer =
            |number: usize| Layer { name: format!("layer {} (by position)", number + 1), pattern: "*".to_owned() };
        let mark = |(reader, kind): (&&Reader, &Kind)| Mark {
            at: reader.at,
            layer: None,
            is_of_several: false,
            pass: Pass::Forward,
            elements: kind.elements,
        };
        let mut marks: Vec<Mark> = forward.iter().zip(&kinds).map(mark).collect();
        let mut before = 0;
        for run in &runs {
            for place in 0..run.layers * run.period {
                marks[run.first + place].layer = Some((before + place / run.period) as u32);
            }
            before += run.layers;
        }
        Self { layers: (0..count).map(layer).collect(), marks }
    }
}

/// Layers that two modules number alike and that run at the same time are the same layers: the frozen weights of a model
/// and the adapters of each of its layers, but not an encoder and a decoder. `spans` are the first and last reader of each
/// layer's arguments. Returns the layers without their modules, and the row among them of each layer; `None` if there are
/// no such.
fn joined(layers: &[Layer], spans: &[Option<(usize, usize)>]) -> Option<(Vec<Layer>, Vec<u32>)> {
    let inner = |layer: &Layer| {
        let (_, name) = layer.name.split_once('/')?;
        // Blocks of a stage are numbered within it: that is no module.
        let pattern = layer.pattern.strip_prefix("*/")?;
        Some(Layer { name: name.to_owned(), pattern: pattern.to_owned() })
    };
    let inside: Vec<Layer> = layers.iter().map(|layer| inner(layer).unwrap_or_else(|| layer.clone())).collect();
    let mut rows: FastMap<&Layer, Vec<usize>> = FastMap::default();
    for (row, layer) in inside.iter().enumerate() {
        rows.entry(layer).or_default().push(row);
    }
    let (mut together, mut apart) = (0usize, 0usize);
    for pair in rows.values().filter(|rows| rows.len() > 1).flat_map(|rows| rows.windows(2)) {
        match (spans[pair[0]], spans[pair[1]]) {
            (Some(one), Some(other)) if one.0 <= other.1 && other.0 <= one.1 => together += 1,
            _ => apart += 1,
        }
    }
    if together <= apart {
        return None;
    }
    let mut found: Vec<Layer> = Vec::new();
    let mut known: FastMap<&Layer, u32> = FastMap::default();
    let row_of_layer = inside.iter().map(|layer| {
        *known.entry(layer).or_insert_with(|| {
            found.push(layer.clone());
            found.len() as u32 - 1
        })
    });
    let row_of_layer = row_of_layer.collect();
    Some((found, row_of_layer))
}

/// What operations of the same place in two layers have in common.
#[derive(Debug, PartialEq, Eq)]
struct Kind {
    /// The instruction's name without its number.
    stem: String,
    dimensions: Vec<i64>,
    elements: u64,
}

impl Kind {
    fn of(program: &Program, at: InstructionId) -> Self {
        let name = program.text.instruction_name(at);
        let stem = name.split('.').next().unwrap_or_default().to_owned();
        let dimensions = first_array(program, at).map(|node| node.dimensions.clone()).unwrap_or_default();
        Self { stem, dimensions, elements: elements(program, at) }
    }
}

/// The result of an operation, or its first one.
fn first_array(program: &Program, at: InstructionId) -> Option<&ShapeNode> {
    program.shape_of(at)?.nodes.iter().find(|node| !node.is_tuple())
}

/// Elements of all arrays of an operation's result: what is fused may return a sum beside what it is summed from. Arrays
/// of a collective that runs beside it are not its own.
fn elements(program: &Program, at: InstructionId) -> u64 {
    let Some(shape) = program.shape_of(at) else { return 0 };
    let arrays = (0u32..).zip(&shape.nodes).filter(|(_, node)| !node.is_tuple());
    let own = arrays.filter(|&(row, _)| row == 0 || !is_carried(program, &Value { at, index: shape.index_of(row) }));
    own.fold(0, |sum, (_, node)| node.element_count().saturating_add(sum))
}

/// Operations that repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    first: usize,
    /// Operations in a layer.
    period: usize,
    layers: usize,
}

/// Finds the runs that cover most, one after the other; of several that cover the same, the one with the shortest period.
fn periods(kinds: &[Kind], offset: usize, runs: &mut Vec<Run>) {
    let mut best: Option<(u64, Run)> = None;
    for period in 1..=LONGEST_PERIOD.min(kinds.len() / LEAST_LAYERS) {
        let mut first = 0;
        while first + period < kinds.len() {
            let same = (first..kinds.len() - period).take_while(|&i| kinds[i] == kinds[i + period]).count();
            let layers = same / period + 1;
            if layers >= LEAST_LAYERS {
                let covered = kinds[first..first + layers * period].iter().map(|kind| kind.elements);
                let covered = covered.fold(0, u64::saturating_add);
                if best.is_none_or(|best| covered > best.0) {
                    best = Some((covered, Run { first, period, layers }));
                }
            }
            first += same + 1;
        }
    }
    let Some((_, run)) = best else { return };
    let end = run.first + run.layers * run.period;
    runs.push(Run { first: run.first + offset, ..run });
    periods(&kinds[..run.first], offset, runs);
    periods(&kinds[end..], offset + end, runs);
}

/// What a loop over parts of the batch is given as an element of its state, and hands on as it is: the value outside of it.
fn given_to_parts(program: &Program, labels: &Labels, at: InstructionId) -> Option<InstructionId> {
    let from = handed_on(program, &Value::whole(at))?;
    if program.instructions.opcode.get(from.at.index()) != Some(&Opcode::PARAMETER) {
        return None;
    }
    let of_loop = labels.loops.caller(program.computation_of(from.at)?)?;
    let part = labels.loops.part(of_loop, &from.index)?;
    if labels.steps.of(of_loop) != Steps::MicroBatches || part.role != Role::Unchanged {
        return None;
    }
    let state = *program.instructions.operands_of(of_loop).first().filter(|&&row| row != NO_ROW)?;
    handed_on(program, &Value { at: InstructionId(state), index: from.index }).map(|value| value.at)
}

/// Whether an instruction runs once in each step, or once for each part of the batch.
fn is_in_step(program: &Program, labels: &Labels, at: InstructionId) -> bool {
    if program.is_in_entry(at) || labels.steps.micro_batches.is_none() {
        return program.is_in_entry(at);
    }
    let of_loop = program.computation_of(at).and_then(|computation| labels.loops.caller(computation));
    of_loop.is_some_and(|at| program.is_in_entry(at) && labels.steps.of(at) == Steps::MicroBatches)
}

/// The operations of a step that read an argument, those of a loop over parts of the batch, too. Casts, copies and
/// prefetches do not, but what reads their result.
fn readers(program: &Program, labels: &Labels, sequence: &[u32]) -> Vec<Reader> {
    let mut origin = vec![NO_ROW; program.instructions.opcode.len()];
    let mut readers = Vec::new();
    let size = |row: u32| program.shape_of(InstructionId(row)).map_or(0, |shape| shape.root().element_count());
    for &row in sequence {
        let at = InstructionId(row);
        if !is_in_step(program, labels, at) {
            continue;
        }
        let known = |from: InstructionId| origin.get(from.index()).copied().unwrap_or(NO_ROW);
        let from = match program.instructions.opcode.get(at.index()) {
            Some(&Opcode::PARAMETER) if !program.is_in_entry(at) => NO_ROW,
            Some(&Opcode::PARAMETER) => row,
            Some(&Opcode::GET_TUPLE_ELEMENT) if !program.is_in_entry(at) => {
                let own = handed_on(program, &Value::whole(at)).map_or(NO_ROW, |value| known(value.at));
                given_to_parts(program, labels, at).map_or(own, known)
            }
            // What begins a collective alone reads for a later layer.
            Some(&Opcode::FUSION) if is_begin_alone(program, at) => continue,
            Some(&Opcode::FUSION) => match gathered_from(program, Value::whole(at)) {
                Some(part) => known(part.at),
                None => moved_by(program, at, true).map_or(NO_ROW, known),
            },
            _ => match handed_on(program, &Value::whole(at)) {
                Some(value) => known(value.at),
                None if passes_on(program, at) => {
                    program.instructions.operands_of(at).first().map_or(NO_ROW, |&row| known(InstructionId(row)))
                }
                None => NO_ROW,
            },
        };
        if from != NO_ROW {
            origin[at.index()] = from;
            continue;
        }
        let operands = program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW);
        let arguments = operands.map(|&row| known(InstructionId(row))).filter(|&row| row != NO_ROW && size(row) > 1);
        let mut arguments: Vec<InstructionId> = arguments.map(InstructionId).collect();
        if !arguments.is_empty() {
            arguments.sort_unstable_by_key(|&row| (std::cmp::Reverse(size(row.0)), row));
            arguments.dedup();
            readers.push(Reader { at, arguments, pass: pass_of(&op_name(program, at)) });
        }
    }
    readers
}

/// Whether an instruction hands on a part of its operand, or gathers the whole from other devices.
fn passes_on(program: &Program, at: InstructionId) -> bool {
    matches!(
        program.instructions.opcode.get(at.index()),
        Some(
            &(Opcode::ALL_GATHER_START
                | Opcode::ALL_GATHER_DONE
                | Opcode::ASYNC_START
                | Opcode::ASYNC_DONE
                | Opcode::COPY_START)
        )
    ) || matches!(program.opcode_name(at), "slice" | "dynamic-slice" | "all-gather")
        || program.joins_slices(at)
}

/// An argument's path in the form of an op name: `model/blocks.3/mlp/weight` for `model.blocks[3].mlp.weight`.
fn as_scopes(path: &str) -> String {
    let mut scopes = String::new();
    let mut is_numbered = false;
    for word in path.split(['[', '.']).map(|word| word.trim_end_matches(']')) {
        let name = word.trim_matches(['\'', '"']);
        let is_number = !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        if !scopes.is_empty() {
            // A number is part of the name before it, unless that has one.
            scopes.push(if is_number && !is_numbered { '.' } else { '/' });
        }
        scopes.push_str(name);
        is_numbered = is_number;
    }
    scopes
}

/// The name of a container as it is in an argument's path: `blocks[3]` for `blocks.3`, `stages[2][5]` for `stages.2/5`.
fn as_path(scopes: &str) -> String {
    let mut path = String::new();
    for part in scopes.split('/') {
        let (name, number) = match part.rsplit_once('.') {
            Some((name, number)) => (name, Some(number)),
            // A place in a container; what comes first is a module, whichever it is.
            None if is_place(part) && !path.is_empty() => ("", Some(part)),
            None => (part, None),
        };
        if !path.is_empty() && !name.is_empty() {
            path.push('/');
        }
        path.push_str(name);
        if let Some(number) = number {
            path.push('[');
            path.push_str(number);
            path.push(']');
        }
    }
    path
}

/// Whether a part of a name is nothing but a number, or the pattern of one.
fn is_place(part: &str) -> bool {
    part == "*" || (!part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_two_towers_are_told_apart() {
        let path = |tower: &str, layer: u32| format!("{tower}/encoder/layers.{layer}/mlp/weight");
        let of = |towers: [&str; 2]| {
            let paths = towers.iter().flat_map(|tower| (0..3).map(|layer| path(tower, layer)));
            let paths: Vec<(InstructionId, String)> = (0..).map(InstructionId).zip(paths).collect();
            let known = Layers::new(paths.iter().map(|row| row.1.as_str()));
            let layers: Vec<Option<Layer>> = paths.iter().map(|row| known.of(&row.1)).collect();
            let found = super::towers(&paths, &layers);
            found.into_iter().map(|tower| tower.map(str::to_owned)).collect::<Vec<_>>()
        };
        let [text, vision] = ["text_model", "vision_model"].map(|tower| Some(tower.to_owned()));
        let told = of(["clip/text_model", "clip/vision_model"]);
        assert_eq!((&told[..3], &told[3..]), (&vec![text; 3][..], &vec![vision; 3][..]));
        assert!(of(["clip/text_model", "clip/text_model"]).iter().all(Option::is_none));
    }

    #[test]
    fn containers_of_arguments_are_read_as_scopes() {
        for (path, scopes) in [
            ("model.blocks[3].mlp.weight", "model/blocks.3/mlp/weight"),
            ("params['stages'][2][5]['dw']['kernel'].value", "params/stages.2/5/dw/kernel/value"),
            ("ws[3][1]", "ws.3/1"),
            ("params['layer_3']['w']", "params/layer_3/w"),
        ] {
            assert_eq!(as_scopes(path), scopes, "{path}");
        }
        for (scopes, path) in [
            ("blocks.3", "blocks[3]"),
            ("stages.2/5", "stages[2][5]"),
            ("stages.*/*", "stages[*][*]"),
            ("text/blocks.3", "text/blocks[3]"),
            ("*/layers.*", "*/layers[*]"),
            ("layer_3", "layer_3"),
        ] {
            assert_eq!(as_path(scopes), path, "{scopes}");
        }
    }

    #[test]
    fn layers_of_two_modules_that_run_together_are_one() {
        let layer = |name: &str| Layer { name: name.to_owned(), pattern: "layers[*]".to_owned() };
        let named = |module: &str, i: usize| Layer {
            pattern: "*/layers[*]".to_owned(),
            ..layer(&format!("{module}/layers[{i}]"))
        };
        let layers = [named("base", 0), named("base", 1), named("lora", 0), named("lora", 1)];
        let together = [Some((0, 9)), Some((10, 19)), Some((2, 8)), Some((12, 18))];
        let (found, rows) = joined(&layers, &together).expect("one");
        assert_eq!(found, [layer("layers[0]"), layer("layers[1]")]);
        assert_eq!(rows, [0, 1, 0, 1]);
        let one_after_the_other = [Some((0, 9)), Some((10, 19)), Some((20, 29)), Some((30, 39))];
        assert_eq!(joined(&layers, &one_after_the_other), None, "an encoder and a decoder");
        let stages = layers.map(|layer| Layer { pattern: "stages[*]/layers[*]".to_owned(), ..layer });
        assert_eq!(joined(&stages, &together), None, "stages");
    }

    fn kinds(names: &str) -> Vec<Kind> {
        let kind = |name: char| Kind { stem: name.to_string(), dimensions: vec![8], elements: 8 };
        names.chars().map(kind).collect()
    }

    #[test]
    fn periods_are_the_shortest_that_cover_most() {
        for (names, expected) in [
            ("efmfmfmfmt", vec![(1, 2, 4)]),
            ("eqqqoudqqqoudqqqoudt", vec![(1, 6, 3)]),
            ("aaaaaa", vec![(0, 1, 6)]),
            ("xabababycdcdcdcdz", vec![(1, 2, 3), (8, 2, 4)]),
            ("abcdefgh", vec![]),
        ] {
            let mut runs = Vec::new();
            periods(&kinds(names), 0, &mut runs);
            runs.sort_unstable_by_key(|run| run.first);
            let found: Vec<_> = runs.iter().map(|run| (run.first, run.period, run.layers)).collect();
            assert_eq!(found, expected, "{names}");
        }
    }
}
