//! Which results of a program each argument reaches, and which of them is its own next value: tells weights, optimizer
//! state, caches and data apart if names do not.

use std::collections::VecDeque;

use super::{Beginning, Value, beginning, handed_on, opcode, operand, root};
use crate::model::{ElementType, FastMap, FastSet, InstructionId, NO_ROW, Opcode, Program};

/// Most words of bit sets that are passed on, one set for each instruction; the flow of larger programs is not analysed.
const MAX_WORDS: usize = 64 << 20;

/// Data flow of the entry's arguments.
#[derive(Debug, Default)]
pub struct Flow {
    /// By argument number.
    pub arguments: FastMap<i64, ArgumentFlow>,
    /// Results of the program.
    pub results: u32,
    /// The argument whose next value a result is, by result.
    owners: Vec<Option<i64>>,
    /// Most results that an argument reaches.
    most_reached: u32,
}

/// Data flow of one argument.
#[derive(Debug, Clone, Default)]
pub struct ArgumentFlow {
    /// Results that depend on it, as a bit set.
    reaches: Vec<u64>,
    /// Number of those results.
    pub reached: u32,
    /// The result that is its next value: the one that reuses its memory, else one of its shape and type that depends
    /// on it.
    pub own_result: Option<u32>,
    /// Whether that result is the argument itself, partly overwritten.
    pub is_updated_in_place: bool,
}

impl ArgumentFlow {
    /// The results that it reaches, ascending.
    fn results(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.reaches).flat_map(|(place, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(place * 64 + bit)
            })
        })
    }

    fn has(&self, result: u32) -> bool {
        self.reaches.get(result as usize / 64).is_some_and(|word| word >> (result % 64) & 1 == 1)
    }
}

/// The results that depend on instructions, as bit sets. An instruction has one from its first user, in the order of the
/// schedule the last, until it is looked at itself; only arguments keep theirs.
struct Reached {
    /// Words of a set.
    words: usize,
    of: Vec<Option<Vec<u64>>>,
    /// Empty sets to use again.
    unused: Vec<Vec<u64>>,
}

impl Reached {
    fn new(instructions: usize, words: usize) -> Self {
        Self { words, of: vec![None; instructions], unused: Vec::new() }
    }

    /// The set of an instruction, which begins empty.
    fn set(&mut self, row: usize) -> Option<&mut Vec<u64>> {
        let (words, unused) = (self.words, &mut self.unused);
        let of = self.of.get_mut(row)?;
        Some(of.get_or_insert_with(|| unused.pop().unwrap_or_else(|| vec![0; words])))
    }

    fn insert(&mut self, row: usize, result: usize) {
        if let Some(word) = self.set(row).and_then(|set| set.get_mut(result / 64)) {
            *word |= 1 << (result % 64);
        }
    }

    fn add(&mut self, row: usize, others: &[u64]) {
        if let Some(set) = self.set(row) {
            set.iter_mut().zip(others).for_each(|(word, other)| *word |= other);
        }
    }

    /// Takes the set of an instruction; `None` where no result depends on it.
    fn take(&mut self, row: usize) -> Option<Vec<u64>> {
        self.of.get_mut(row)?.take()
    }

    /// Takes back a set that is not needed any more.
    fn give_back(&mut self, mut set: Vec<u64>) {
        set.fill(0);
        self.unused.push(set);
    }
}

impl Flow {
    /// Analyses the entry computation; empty for a program without instructions or one too large.
    #[must_use]
    pub fn new(program: &Program) -> Self {
        Self::follow(program).unwrap_or_default()
    }

    fn follow(program: &Program) -> Option<Self> {
        let entry = program.entry_computation()?;
        let root = root(program, program.entry?)?;
        let is_tuple = opcode(program, root) == Opcode::TUPLE;
        let results: Vec<InstructionId> = if is_tuple {
            program.instructions.operands_of(root).iter().map(|&row| InstructionId(row)).collect()
        } else {
            vec![root]
        };
        let count = (entry.end - entry.start) as usize;
        let words = results.len().div_ceil(64);
        if words == 0 || count.checked_mul(words)? > MAX_WORDS {
            return None;
        }
        let mut reached = Reached::new(count, words);
        let place = |row: u32| (entry.start..entry.end).contains(&row).then(|| (row - entry.start) as usize);
        for (i, result) in results.iter().enumerate() {
            let value = exact(program, Value::whole(*result));
            if let Some(at) = place(value.at.0) {
                reached.insert(at, i);
            }
        }
        // Users before what they use: backwards in the order of the schedule, or of the file.
        let order: Vec<u32> =
            if entry.is_scheduled { entry.schedule.clone() } else { (entry.start..entry.end).collect() };
        for &row in order.iter().rev() {
            // The tuple itself depends on everything; a single result is what it depends on.
            let (Some(from), true) = (place(row), row != root.0 || !is_tuple) else { continue };
            let at = InstructionId(row);
            if opcode(program, at) == Opcode::PARAMETER {
                continue;
            }
            let Some(own) = reached.take(from) else { continue };
            for &used in program.instructions.operands_of(at) {
                if used == NO_ROW {
                    continue;
                }
                // A part of a tuple comes from one of its elements alone.
                let value = if opcode(program, at) == Opcode::GET_TUPLE_ELEMENT {
                    exact(program, Value::whole(at))
                } else {
                    Value::whole(InstructionId(used))
                };
                if let Some(to) = place(value.at.0).filter(|&to| to != from) {
                    reached.add(to, &own);
                }
            }
            reached.give_back(own);
        }
        let mut flow = Self { results: u32::try_from(results.len()).ok()?, ..Self::default() };
        for row in entry.start..entry.end {
            let at = InstructionId(row);
            if opcode(program, at) != Opcode::PARAMETER {
                continue;
            }
            let reaches = place(row).and_then(|from| reached.take(from)).unwrap_or_else(|| vec![0; words]);
            let reached = reaches.iter().map(|word| word.count_ones()).sum();
            let number = i64::from(*program.instructions.argument.get(at.index())?);
            flow.arguments.insert(number, ArgumentFlow { reaches, reached, ..ArgumentFlow::default() });
        }
        flow.find_own_results(program, &results);
        Some(flow)
    }

    /// Pairs arguments with results: first those whose memory is reused, then those of equal shape and type, in order.
    fn find_own_results(&mut self, program: &Program, results: &[InstructionId]) {
        let Some(entry) = program.entry_computation() else { return };
        let mut is_taken = vec![false; results.len()];
        let mut pairs: Vec<(i64, usize)> = Vec::new();
        let mut paired: FastSet<i64> = FastSet::default();
        for alias in &program.aliases {
            let Some(argument) = program.argument_of(alias) else { continue };
            let place = match alias.output_index.as_slice() {
                [] => Some(0),
                [place] => usize::try_from(*place).ok(),
                _ => None,
            };
            if let Some(taken) = place.and_then(|place| is_taken.get_mut(place)) {
                *taken = true;
                paired.insert(argument);
                pairs.extend(place.map(|place| (argument, place)));
            }
        }
        let shape = |at: InstructionId| program.shape_of(at).map(|shape| shape.root()).filter(|node| !node.is_tuple());
        let begun: Vec<Option<Beginning>> =
            results.iter().map(|&result| beginning(program, Value::whole(result), 0)).collect();
        let number_of =
            |begun: &Beginning| program.instructions.argument.get(begun.parameter.index()).copied().map(i64::from);
        // An argument that is partly overwritten is its own next value, whatever else it reaches.
        for (place, begun) in begun.iter().enumerate() {
            let number = begun.as_ref().filter(|begun| begun.is_updated && begun.index.is_empty()).and_then(number_of);
            if let Some(number) = number.filter(|number| !is_taken[place] && !paired.contains(number)) {
                is_taken[place] = true;
                paired.insert(number);
                pairs.push((number, place));
            }
        }
        // Results that are free, by their arrays, in order.
        let mut free: FastMap<(ElementType, &[i64]), VecDeque<usize>> = FastMap::default();
        for (place, &result) in results.iter().enumerate().filter(|row| !is_taken[row.0]) {
            if let Some(node) = shape(result) {
                free.entry((node.element_type, &node.dimensions)).or_default().push_back(place);
            }
        }
        for row in entry.start..entry.end {
            let at = InstructionId(row);
            let number = program.instructions.argument.get(at.index()).copied().map(i64::from).unwrap_or_default();
            if opcode(program, at) != Opcode::PARAMETER || paired.contains(&number) {
                continue;
            }
            let (Some(own), Some(flow)) = (shape(at), self.arguments.get(&number)) else { continue };
            let Some(free) = free.get_mut(&(own.element_type, own.dimensions.as_slice())) else { continue };
            let found = free.iter().position(|&place| flow.has(place as u32));
            if let Some(place) = found.and_then(|at| free.remove(at)) {
                paired.insert(number);
                pairs.push((number, place));
            }
        }
        self.owners = vec![None; results.len()];
        self.most_reached = self.arguments.values().map(|flow| flow.reached).max().unwrap_or(0);
        for (number, place) in pairs {
            let Some(flow) = self.arguments.get_mut(&number) else { continue };
            flow.own_result = u32::try_from(place).ok();
            self.owners[place] = Some(number);
            flow.is_updated_in_place =
                begun[place].as_ref().is_some_and(|begun| begun.is_updated && number_of(begun) == Some(number));
        }
    }

    /// Whether an argument serves the update of another: it reaches the other's next value and hardly anything else,
    /// while the other reaches most results. True for momentum, Adam's moments and the like, false for weights.
    #[must_use]
    pub fn serves_an_update(&self, number: i64) -> bool {
        self.served(number).is_some()
    }

    /// The argument whose update another serves, as in [`Self::serves_an_update`].
    #[must_use]
    pub fn served(&self, number: i64) -> Option<i64> {
        let own = self.arguments.get(&number)?;
        let next = own.own_result?;
        let is_small = |reached: u32| {
            own.reached.saturating_mul(2) <= reached || (own.reached < reached && reached <= SMALL_PROGRAM)
        };
        // What reaches nearly as much as anything else serves nothing.
        let is_most = own.reached.saturating_mul(2) > self.most_reached;
        if is_most && own.reached >= self.most_reached.min(SMALL_PROGRAM) {
            return None;
        }
        own.results().find_map(|result| {
            let other = self.owners.get(result as usize).copied().flatten().filter(|&other| other != number)?;
            let weight = self.arguments.get(&other)?;
            let is_served = weight.own_result == Some(result) && is_small(weight.reached) && weight.has(next);
            is_served.then_some(other)
        })
    }

    /// Whether the program updates arguments as training does: some of them serve the update of others.
    #[must_use]
    pub fn has_updates(&self) -> bool {
        // What is written a part at a time is a cache, and reaches what the layers after it write to theirs.
        let is_whole = |flow: &ArgumentFlow| !flow.is_updated_in_place;
        self.arguments.iter().any(|(&number, flow)| is_whole(flow) && self.serves_an_update(number))
    }
}

/// Number of results below which optimizer state may reach more than half of the results that its weight reaches.
const SMALL_PROGRAM: u32 = 16;

/// The instruction of the same computation that a tuple element comes from, traced through tuples, barriers and
/// unchanged loop state, but not through copies.
fn exact(program: &Program, value: Value) -> Value {
    let mut value = value;
    for _ in 0..super::MAX_STEPS {
        let passes = matches!(
            opcode(program, value.at),
            Opcode::GET_TUPLE_ELEMENT | Opcode::TUPLE | Opcode::OPTIMIZATION_BARRIER | Opcode::OPT_BARRIER
        );
        let next = if passes {
            handed_on(program, &value)
        } else if opcode(program, value.at) == Opcode::WHILE && !value.index.is_empty() {
            super::loops::unchanged(program, value.at, &value.index)
                .then(|| operand(program, value.at, 0))
                .flatten()
                .map(|at| Value { at, index: value.index.clone() })
        } else {
            None
        };
        match next {
            Some(next) => value = next,
            None => break,
        }
    }
    value
}
