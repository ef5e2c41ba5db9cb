//! Rule `duplicate`: many equal temporaries at once, and temporaries with the shape of a parameter.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::finding::{ChangesResults, Finding};
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use crate::analysis::class::Class;
use crate::analysis::flow::norm_of_all::takes_norm_of_all;
use crate::analysis::flow::product::is_product;
use crate::analysis::flow::{Value, computed, is_blank};
use crate::analysis::names::pass::Pass;
use crate::analysis::names::scope::numbered;
use crate::analysis::what_if::saved_for_backward::is_among;
use crate::model::{Bytes, InstructionId, NO_ROW, outline};

/// Name of the rule.
pub const NAME: &str = "duplicate";

/// Least share of allocated bytes at which copies are reported.
const SHARE: f64 = 0.10;

/// Equal buffers that make a series, at least.
const SERIES: usize = 4;

/// Looks for series of equal temporaries and for temporaries shaped like parameters.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    twins(case, findings);
    series(case, findings);
}

/// An op name with `*` for each number of one of several equal parts, the same for one operation in every layer, and those
/// numbers. Digits within a word, as in `mamba2_mixer` or `conv1d`, are part of it.
fn without_numbers(name: &str) -> (String, Vec<&str>) {
    let (mut out, mut numbers, mut rest) = (String::with_capacity(name.len()), Vec::new(), name);
    while !rest.is_empty() {
        let end = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(end);
        match numbered(word) {
            Some((head, number)) => {
                out.push_str(head);
                out.push('*');
                numbers.push(number);
            }
            None => out.push_str(word),
        }
        let next = after.find(is_of_word).unwrap_or(after.len());
        out.push_str(&after[..next]);
        rest = &after[next..];
    }
    (out, numbers)
}

const fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.')
}

/// Whether a single number tells all of some names apart, as that of a layer does.
fn is_one_for_each(names: &[&str]) -> bool {
    let numbers: Vec<Vec<&str>> = names.iter().map(|name| without_numbers(name).1).collect();
    let places = numbers.iter().map(Vec::len).max().unwrap_or(0);
    let different = |place: usize| {
        let at_place = numbers.iter().filter_map(|numbers| numbers.get(place));
        at_place.collect::<BTreeSet<_>>().len()
    };
    let varying: Vec<usize> = (0..places).map(different).filter(|&different| different > 1).collect();
    varying == [names.len()]
}

fn series(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let mut groups: BTreeMap<(String, String), Vec<&AtPeak>> = BTreeMap::new();
    let kept = &case.memory.kept;
    // Activations kept for the backward pass have a rule of their own.
    let is_told =
        |t: &AtPeak| kept.has_own_remedy(t.family) || kept.is_stack(t.family) || case.memory.is_kept(t.family);
    // Memory that a loop fills, such as with the gradients of its layers, has no name of its own.
    let is_filled =
        |t: &AtPeak| Value::of_buffer(case.program, case.root(t)).is_some_and(|value| is_blank(case.program, &value));
    let is_fetched = |t: &AtPeak| super::fetched::is_fetched(case, t.buffer);
    for t in case.peak.iter().filter(|t| !is_told(t) && !is_filled(t) && !is_fetched(t)) {
        let name = case.name(t.family);
        let Some((shape, node)) = case.program.buffer_shape(t.buffer) else { continue };
        // Many buffers of one name are not a series of layers; their numbers must differ.
        let (folded, numbers) = without_numbers(name);
        if !numbers.is_empty() {
            groups.entry((shape.short_text_of(node), folded)).or_default().push(t);
        }
    }
    let largest = groups.into_iter().map(|(key, rows)| (rows.iter().map(|t| t.size).total(), key, rows));
    let Some((bytes, (shape, name), rows)) = largest.filter(|g| g.2.len() >= SERIES).max_by_key(|g| g.0) else {
        return;
    };
    if !case.is_share(bytes, SHARE) {
        return;
    }
    let mut finding = case.remedy(NAME);
    case.stake(&mut finding, bytes);
    let names: Vec<&str> = rows.iter().map(|t| case.name(t.family)).collect();
    let is_one_for_each = is_one_for_each(&names);
    let each = if is_one_for_each { ", one for each layer" } else { "" };
    finding.title = format!("{} equal buffers at once{each}: {}", rows.len(), Bytes(bytes).short());
    finding.why = format!(
        "{shape} `{name}` (`*` for the numbers) is live {} times at the peak{}.",
        rows.len(),
        if is_one_for_each { ": each layer keeps its own" } else { "" }
    );
    // What products with a layer's own weights make is another in each layer.
    let are_products = rows.iter().any(|t| is_of_product(case, t));
    // What the backward pass makes itself, it has not kept from before.
    let are_of_backward = rows.iter().all(|t| case.memory.kept.passes.get(t.family) == Some(&Pass::Backward));
    if are_products && (are_of_backward || !case.memory.has_backward()) {
        return;
    }
    // What is recomputed already is said by the finding about that.
    if rows.iter().all(|t| case.memory.kept.passes.get(t.family) == Some(&Pass::Recomputed)) {
        return;
    }
    if case.memory.has_backward() && !are_of_backward {
        finding.advice.push(
            "recompute it in the backward pass: `jax.checkpoint` around what makes it, or a policy that does not save it"
                .to_owned(),
        );
    }
    if !are_products {
        let once = "if it is the same in every layer (a mask, positions), make it once outside and pass it in";
        finding.advice.push(once.to_owned());
    }
    finding.changes_results = ChangesResults::No;
    finding.is_guess = true;
    finding.buffers = rows.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// Most operations looked at on the way to a product.
const MOST_OPERATIONS: usize = 48;

/// Whether a temporary is made of what a matrix product or convolution makes, such as keys that are turned by their
/// positions.
fn is_of_product(case: &ProgramContext<'_>, t: &AtPeak) -> bool {
    let program = case.program;
    let Some(at) = program.buffers.instruction_of(t.buffer) else { return false };
    let first = computed(program, Value { at, index: program.buffer_index(t.buffer) }).at;
    let mut waiting = VecDeque::from([first]);
    let mut seen = BTreeSet::new();
    while let Some(at) = waiting.pop_front().filter(|_| seen.len() < MOST_OPERATIONS) {
        if !seen.insert(at) {
            continue;
        }
        if is_product(program, at) {
            return true;
        }
        let operands = program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW);
        waiting.extend(operands.map(|&row| computed(program, Value::whole(InstructionId(row))).at));
    }
    false
}

/// Outlines of the weights' global shapes (over all devices).
fn whole_weights(case: &ProgramContext<'_>) -> Vec<Vec<i64>> {
    case.arguments()
        .filter(|argument| !case.is_data(argument.0))
        .filter_map(|(row, _, number, _)| {
            let node = case.node(case.memory.base[row].buffer)?;
            let sharding = case.program.sharding_of_parameter(number)?;
            let parts = |d: usize| sharding.tiles.get(d).copied().unwrap_or(1).max(1);
            let whole = node.dimensions.iter().enumerate().map(|(d, &size)| size.saturating_mul(parts(d)));
            Some(outline(&whole.collect::<Vec<i64>>()))
        })
        .collect()
}

fn twins(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    // Only training has gradients and casts of weights; temporaries shaped like a cache have other causes.
    if !case.memory.has_backward() {
        return;
    }
    let mut weights = case.memory.weights(case.program).clone();
    weights.extend(whole_weights(case));
    let classes = case.analysis.classes(case.program);
    let entry = case.program.entry_computation();
    let entry = entry.map_or(0..0, |entry| entry.start..entry.end);
    let rows: Vec<&AtPeak> = case
        .peak
        .iter()
        .filter(|t| classes.of(t.buffer) == Class::Gradient)
        // Gradients of a scan have a rule of their own.
        .filter(|t| !is_among(&case.memory.kept.gradients, t.family))
        // What the body of a loop makes in each step, such as the gradient of a block of logits, is not kept.
        .filter(|t| case.program.buffers.instruction_of(t.buffer).is_some_and(|made| entry.contains(&made.0)))
        .filter(|t| {
            case.node(t.buffer).is_some_and(|n| n.dimensions.len() > 1 && weights.contains(&outline(&n.dimensions)))
        })
        .collect();
    let bytes: u64 = rows.iter().map(|t| t.size).total();
    if !case.is_share(bytes, SHARE) {
        return;
    }
    let mut finding = case.remedy(NAME);
    case.stake(&mut finding, bytes);
    finding.title = format!("Gradients of weights at the peak: {}", Bytes(bytes).short());
    finding.why = format!(
        "{} of the backward pass with the shape of a weight; the largest is {}.",
        counted(rows.len(), "temporary at the peak is", "temporaries at the peak are"),
        case.describe_first(&rows)
    );
    let distinct = each_once(case, &rows);
    if let [one] = distinct[..] {
        if rows.len() > 1 {
            finding.why.push_str(" They are one gradient, before and after it is summed over the devices.");
        }
        finding.advice.extend(case.name(one.family).contains("scatter").then(|| DENSE.to_owned()));
    }
    finding.advice.extend(of_one_weight(case, &distinct));
    let weights = case.memory.trained.iter().map(|&row| case.memory.base[row].size).total();
    // The compiler updates each weight as soon as it can where few of them wait.
    if bytes.saturating_mul(2) >= weights && distinct.len() > 1 {
        let loops = &case.analysis.labels(case.program).loops;
        let waits = takes_norm_of_all(case.program, loops);
        let are_wide = rows.iter().any(|t| case.node(t.buffer).is_some_and(|node| node.element_type.is_wide_float()));
        finding.advice.push(match (waits, are_wide) {
            (false, _) => AT_ONCE.to_owned(),
            (true, false) => FOR_THE_NORM.to_owned(),
            (true, true) => format!("{FOR_THE_NORM}; in bfloat16 they take half"),
        });
    }
    if case.memory.summed_parts(case.program) > 1 {
        finding.advice.push("keep one accumulator of gradients and donate it".to_owned());
    }
    finding.changes_results = ChangesResults::No;
    finding.buffers = rows.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// What to do about gradients that are live all at once.
const AT_ONCE: &str = "update each parameter as soon as its gradient is available, instead of keeping all gradients (a fused optimizer step, or gradients reduced in the backward pass)";

/// The same where the norm over all of them is taken first.
const FOR_THE_NORM: &str = "each of them waits for the norm over all gradients, by which they are clipped: where each is clipped by itself (such as by `optax.clip_by_block_rms`), it can be applied as soon as it is there";

/// What to do about the gradient of a table, which has all its rows.
const DENSE: &str = "the gradient has all rows of the table, though a step changes only those that it looks up: update only these (scatter into the table and its optimizer state), or divide the rows over the devices, and their gradient with them";

/// Some gradients, each once: of one and what is made of it, such as its sum over all devices, the first.
fn each_once<'t>(case: &ProgramContext<'_>, rows: &[&'t AtPeak]) -> Vec<&'t AtPeak> {
    let program = case.program;
    let made = |t: &AtPeak| Value::of_buffer(program, t.buffer).map(|value| computed(program, value).at);
    let all: BTreeSet<InstructionId> = rows.iter().filter_map(|&t| made(t)).collect();
    let is_made_of_one = |at: InstructionId| {
        let operands = program.instructions.operands_of(at).iter().filter(|&&row| row != NO_ROW);
        operands.map(|&row| computed(program, Value::whole(InstructionId(row))).at).any(|of| all.contains(&of))
    };
    rows.iter().copied().filter(|t| made(t).is_some_and(|at| !is_made_of_one(at))).collect()
}

/// What to do where one weight has several gradients of its size at once, as a table has that is looked up in several
/// places: the largest such.
fn of_one_weight(case: &ProgramContext<'_>, rows: &[&AtPeak]) -> Option<String> {
    let outline_of = |buffer| case.node(buffer).map(|node| outline(&node.dimensions));
    let mut alike: BTreeMap<Vec<i64>, Vec<&AtPeak>> = BTreeMap::new();
    for &t in rows {
        alike.entry(outline_of(t.buffer)?).or_default().push(t);
    }
    let weight = |outline: &Vec<i64>| {
        let mut own = case
            .memory
            .trained
            .iter()
            .filter(|&&row| outline_of(case.memory.base[row].buffer).as_ref() == Some(outline));
        own.next().filter(|_| own.next().is_none()).copied()
    };
    let several = alike.iter().filter(|(_, held)| held.len() > 1);
    let (row, held) = several
        .filter_map(|(outline, held)| Some((weight(outline)?, held)))
        .max_by_key(|(_, held)| held.iter().map(|t| t.size).total())?;
    let bytes = held.iter().map(|t| t.size).total();
    let path = case.arguments().find(|argument| argument.0 == row).map(|argument| argument.1.to_owned())?;
    case.is_worth(bytes).then(|| {
        format!(
            "{} of them ({}) have the shape of one weight, `{path}`, which is used in several places: if these are lookups in a table, look all indices up at once (concatenated), for one gradient",
            held.len(),
            Bytes(bytes).short()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::Opcode;

    #[test]
    fn numbers_do_not_tell_layers_apart() {
        let folded = |name| without_numbers(name).0;
        assert_eq!(folded("jvp(layer_12)/attn/dot"), folded("jvp(layer_3)/attn/dot"));
        assert_ne!(folded("jvp(layer_1)/mlp"), folded("jvp(layer_1)/attn"));
        let own = "jvp(mamba2_causal_lm)/mamba2_mixer/depthwise_conv1d/conv";
        assert_eq!(without_numbers(own), (own.to_owned(), Vec::new()), "digits within words");
    }

    fn series_of(is_filled_later: bool) -> Vec<Finding> {
        let mut sketch = Sketch::default();
        let x = sketch.argument(array(&[1024], &[0]), "x");
        let made: Vec<u32> = (0..4)
            .map(|number| {
                let opcode = if is_filled_later { Opcode::CUSTOM_CALL } else { Opcode::FUSION };
                let name = format!("jit(f)/layer_{number}/mul");
                let operands: &[u32] = if is_filled_later { &[] } else { &[x] };
                let row = sketch.instruction(opcode, array(&[1024, 1024], &[1, 0]), operands, &name);
                if is_filled_later {
                    sketch.target(row, "AllocateBuffer");
                }
                sketch.alloc(row);
                row
            })
            .collect();
        let all = sketch.instruction(Opcode::FUSION, array(&[1024], &[0]), &made, "jit(f)/sum");
        sketch.alloc(all);
        for row in made.into_iter().chain([all]) {
            sketch.free(row);
        }
        sketch.findings(1 << 30, series)
    }

    #[test]
    fn the_root_of_sums_over_several_arrays_is_a_norm_of_all() {
        let is_one = |arrays: usize| {
            let mut sketch = Sketch::default();
            let number = || array(&[], &[]);
            let mut sum = None;
            for weight in 0..arrays {
                let weight = sketch.argument(array(&[64, 64], &[1, 0]), &format!("w{weight}"));
                let own = sketch.instruction(Opcode::FUSION, number(), &[weight], "jit(f)/reduce_sum");
                let operands: Vec<u32> = sum.into_iter().chain([own]).collect();
                sum = Some(sketch.instruction(Opcode::FUSION, number(), &operands, "jit(f)/add"));
            }
            let sqrt = sketch.opcode("sqrt");
            let root = sketch.instruction(sqrt, number(), sum.as_slice(), "jit(f)/sqrt");
            sketch.alloc(root);
            sketch.free(root);
            let found = sketch.findings(1 << 30, |case, findings| {
                let loops = &case.analysis.labels(case.program).loops;
                findings.extend(takes_norm_of_all(case.program, loops).then(|| case.finding(NAME)));
            });
            !found.is_empty()
        };
        assert!(is_one(2) && is_one(9));
        assert!(!is_one(1), "the norm of one array");
    }

    #[test]
    fn memory_that_is_filled_later_is_no_series() {
        assert_eq!(series_of(false).len(), 1);
        assert!(series_of(true).is_empty());
    }

    #[test]
    fn one_for_each_layer_where_one_number_tells_all_apart() {
        assert!(is_one_for_each(&["layer_0/attn_1/mul", "layer_1/attn_1/mul", "layer_2/attn_1/mul"]));
        assert!(!is_one_for_each(&["layer_0/mul", "layer_0/mul", "layer_1/mul"]), "two of one layer");
        assert!(!is_one_for_each(&["layer_0/attn_0", "layer_0/attn_1", "layer_1/attn_0", "layer_1/attn_1"]));
    }
}
