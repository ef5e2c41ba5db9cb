//! Rule `logits`: logits over a large vocabulary, and their gradient, held for all positions at once.

use std::fmt::Write as _;

use super::finding::{ChangesResults, Finding, Severity};
use super::library::Library;
use super::metrics;
use super::program_context::{AtPeak, ProgramContext, Total, counted};
use crate::analysis::class::Class;
use crate::analysis::names::pass::Pass;
use crate::analysis::what_if::batch::DataArgument;
use crate::analysis::what_if::{Edit, LOGITS};
use crate::model::{Bytes, FastSet, Opcode, percent, thousands};

/// Name of the rule.
pub const NAME: &str = "logits";

/// Share of allocated bytes from which logits are reported even if chunking them alone hardly lowers the peak.
const CAUSE: f64 = 0.10;

/// How a title begins where only the gradient is there.
const OF_GRADIENT: &str = "The gradient of logits";

/// Share of the bytes of copies from which on they are what the peak has too much.
const NEARLY_ALL: f64 = 0.9;

/// Number of chunks in which the loss is computed.
const PARTS: u32 = 8;

/// Looks for buffers at the peak that have the vocabulary as a dimension.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let Some(vocabulary) = case.memory.kept.vocabulary else { return };
    let held = case.held(&case.memory.kept.logits);
    let bytes: u64 = held.iter().map(|t| t.size).total();
    if !case.is_worth(bytes) {
        return;
    }
    let mut finding = case.finding(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Chunk(LOGITS.to_owned(), PARTS)]);
    let is_remedied = case.is_worth(saved);
    if !is_remedied {
        if !case.is_share(bytes, CAUSE) {
            return;
        }
        // Where the compiler recomputes less again, it may come to much less all the same.
        if finding
            .effect
            .as_ref()
            .is_none_or(|effect| !case.is_worth(effect.before().0.saturating_sub(effect.range().0.0)))
        {
            finding = case.finding(NAME);
        }
    }
    finding.at_stake_bytes = Some(Bytes(bytes));
    finding.title = format!(
        "{} {} of the peak{}",
        named(case, &held, vocabulary),
        Bytes(bytes).short(),
        if is_remedied {
            format!(": {}", finding.less(&in_chunks(case)))
        } else {
            format!(", {}", percent(bytes, case.memory.peak.max(1)))
        }
    );
    let positions = if case.memory.kept.are_in_parts {
        "for one part of the positions, as a loop computes the loss in parts already"
    } else {
        "for all positions at once"
    };
    let is_of_metrics = metrics::alone_keep(case, &held);
    finding.why = format!(
        "At the peak, {} {}, {positions}; the largest is {}.{} {}",
        counted(held.len(), "temporary holds", "temporaries hold"),
        if finding.title.starts_with(OF_GRADIENT) { "it" } else { "them" },
        case.describe_first(&held),
        copied(case, &held),
        if is_of_metrics {
            "From then on, only metrics read them, such as an accuracy: loss and gradients have been computed."
                .to_owned()
        } else {
            format!("{}; logits and their gradient are intermediate values.", needed(case, &held, vocabulary))
        }
    );
    if is_remedied {
        let all_but_one = bytes - bytes / u64::from(PARTS);
        if !(all_but_one..=bytes).contains(&saved) {
            finding.why.push_str(&case.unlike(&finding, all_but_one));
        }
    } else {
        // Alone it is no way out.
        finding.severity = Severity::Hint;
        // The bytes that it is said to save are those up to what the compiler fills, whatever is changed.
        let effect = finding.effect.take();
        match effect.as_ref().map(|effect| (effect.range(), effect.allocated())) {
            Some(((low, high), expected)) if case.memory.rematerialised == 0 => {
                let _ = write!(
                    finding.why,
                    " In chunks alone the program needs about {} ({} to {}): hardly less, as other values then take as much.",
                    expected.short(),
                    low.short(),
                    high.short()
                );
            }
            Some(((low, high), _)) => {
                let _ = write!(
                    finding.why,
                    " In chunks alone the program needs {} to {}, depending on what the compiler then recomputes.",
                    low.short(),
                    high.short()
                );
            }
            None => {
                finding.why.push_str(" In chunks alone they hardly lower the peak: other values then take as much.");
            }
        }
    }
    if is_of_metrics {
        finding.advice.push("leave out the metrics that read the model's output, or compute them where the loss is computed: `weighted_metrics=[]` in `compile`, as KerasHub's default is an accuracy".to_owned());
    }
    finding.advice.push(Library::of(case).chunked_loss(PARTS, &case.memory, divided(case)));
    finding.advice.extend(without_gradient(case, &held));
    let nodes = || held.iter().filter_map(|t| case.node(t.buffer));
    // On a TPU the sum in 32 bits may keep all logits in both types.
    if case.memory.is_gpu && nodes().any(|node| node.element_type.is_wide_float()) {
        finding
            .advice
            .push("keep the logits in bfloat16, and reduce in f32 (`logsumexp` of the upcast logits fuses)".to_owned());
    }
    // What is a part of the vocabulary is sharded along it already.
    if nodes().any(|node| node.dimensions.contains(&vocabulary)) && has_axis_of_vocabulary(case, vocabulary) {
        finding.advice.push("shard them along the vocabulary too: `with_sharding_constraint` on the logits with the mesh axis that the embedding is divided over".to_owned());
    }
    finding.changes_results = ChangesResults::No;
    finding.buffers = held.iter().map(|t| t.buffer).collect();
    findings.push(finding);
}

/// What to do about logits that are there beside those of the model that is trained, as of a reference: nothing is
/// differentiated through them.
fn without_gradient(case: &ProgramContext<'_>, held: &[&AtPeak]) -> Option<String> {
    let pass = |t: &&&AtPeak| case.memory.kept.passes.get(t.family).copied().unwrap_or(Pass::Unknown);
    let is_other = |t: &&&AtPeak| pass(t) == Pass::Unknown && !case.name(t.family).is_empty();
    let is_differentiated = held.iter().any(|t| pass(&t) == Pass::Forward);
    let bytes = held.iter().filter(is_other).map(|t| t.size).total();
    (is_differentiated && case.is_worth(bytes)).then(|| {
        format!(
            "{} of them are of a model that has no gradient here, such as a reference: compute what the loss needs of it, one number per token, in a call of its own before the step, and pass that in",
            Bytes(bytes).short()
        )
    })
}

/// What the change is, in a title.
fn in_chunks(case: &ProgramContext<'_>) -> String {
    if case.memory.kept.are_in_parts {
        format!(" in {PARTS} times as many chunks")
    } else {
        format!(" in {PARTS} chunks")
    }
}

/// What the loss needs of logits: of those that come with the data, as of a teacher, one part at a time as well.
fn needed(case: &ProgramContext<'_>, held: &[&AtPeak], vocabulary: i64) -> String {
    let classes = case.analysis.classes(case.program);
    // The words that a device has: all of them, or its part.
    let words = held.iter().filter_map(|t| {
        let sizes = case.node(t.buffer)?.dimensions.iter().copied();
        sizes.filter(|&size| size > 1 && vocabulary % size == 0).max()
    });
    let words: FastSet<i64> = words.collect();
    let is_given = |row: usize| {
        let buffer = case.memory.base[row].buffer;
        let node = case.node(buffer).filter(|node| node.element_type.is_float() && node.dimensions.len() > 1);
        classes.of(buffer) == Class::Input
            && node.is_some_and(|node| node.dimensions.last().is_some_and(|size| words.contains(size)))
    };
    let mut given: Vec<_> = case.arguments().filter(|argument| is_given(argument.0)).collect();
    given.sort_by_key(|argument| std::cmp::Reverse(case.memory.base[argument.0].size));
    match given.first().filter(|argument| case.is_worth(case.memory.base[argument.0].size)) {
        Some((row, path, ..)) => format!(
            "The loss compares them with `{path}`, which is given with as many words ({}), and needs both for one part of the positions at a time: give it the most likely words of each position alone, or run what makes it in the step, part by part",
            Bytes(case.memory.base[*row].size).short()
        ),
        None if are_of_pairs(case) => "The loss needs only a few numbers per pair of positions".to_owned(),
        None => "The loss needs only one number per position".to_owned(),
    }
}

/// Fewest positions that tell a sequence from heads that say several words at once.
const LEAST_POSITIONS: i64 = 16;

/// What the loss is computed in parts of.
pub fn divided(case: &ProgramContext<'_>) -> &'static str {
    // A loss over all ways through two sequences needs the whole of both.
    if are_of_pairs(case) { "the batch" } else { "the sequence" }
}

/// Whether there are logits for each position of one sequence with each of another, as a transducer has.
fn are_of_pairs(case: &ProgramContext<'_>) -> bool {
    let Some(vocabulary) = case.memory.kept.vocabulary else { return false };
    let batch = case.memory.data.first().map_or(1, DataArgument::batch);
    let logits = case.memory.kept.logits.iter().filter_map(|&row| case.memory.families.list.get(row as usize));
    logits.filter_map(|family| case.node(family.root)).any(|node| {
        let mut sizes: Vec<i64> = node.dimensions.iter().copied().filter(|&size| size > 1).collect();
        for known in [vocabulary, batch] {
            let Some(place) = sizes.iter().position(|&size| size == known) else { return false };
            sizes.swap_remove(place);
        }
        sizes.iter().filter(|&&size| size >= LEAST_POSITIONS).count() > 1
    })
}

/// What has the vocabulary as a dimension, with its verb: `Logits over a vocabulary of 32,000 take`.
fn named(case: &ProgramContext<'_>, held: &[&AtPeak], vocabulary: i64) -> String {
    let classes = case.analysis.classes(case.program);
    let gradients = held.iter().filter(|t| classes.of(t.buffer) == Class::Gradient).count();
    let over = format!("over a vocabulary of {}", thousands(vocabulary.unsigned_abs()));
    match held.len() - gradients {
        0 => format!("{OF_GRADIENT} {over} takes"),
        others if others < held.len() => format!("Logits {over} and their gradient take"),
        _ => format!("Logits {over} take"),
    }
}

/// How much of it is copies in another layout, and how much less it is without them where that is not as much, in a sentence;
/// empty if none is.
fn copied(case: &ProgramContext<'_>, held: &[&AtPeak]) -> String {
    let is_copy = |t: &&&AtPeak| {
        let made = case.program.buffers.instruction_of(t.buffer);
        made.is_some_and(|made| case.program.instructions.opcode.get(made.index()) == Some(&Opcode::COPY))
    };
    let copies: Vec<&AtPeak> = held.iter().copied().filter(|t| is_copy(&t)).collect();
    let bytes = copies.iter().map(|t| t.size).total();
    if copies.is_empty() {
        return String::new();
    }
    let live = case.analysis.live.as_ref();
    let spans = copies.iter().filter_map(|t| live?.of(t.buffer).map(|(first, last)| (first, last, t.size)));
    let spans: Vec<(u32, u32, u64)> = spans.collect();
    let saved = case.space.occupancy.as_ref().map(|curve| case.at_peak().saturating_sub(curve.peak_without(&spans).0));
    let (are, them) = if copies.len() == 1 { ("is a copy", "it") } else { ("are copies", "them") };
    // Another step may be nearly as high.
    let but = match saved {
        Some(less) if !case.is_worth(less) => {
            format!("; without {them} the peak is hardly lower, at another step")
        }
        Some(less) if (less as f64) < bytes as f64 * NEARLY_ALL => {
            format!("; without {them} the peak is only {} less, at another step", Bytes(less).short())
        }
        _ => String::new(),
    };
    format!(" {} of it {are} in another layout{but}.", Bytes(bytes).short())
}

/// Whether the mesh has an axis that divides the vocabulary of an embedding besides those that divide the batch: only that
/// one can divide logits along the vocabulary, too.
fn has_axis_of_vocabulary(case: &ProgramContext<'_>, vocabulary: i64) -> bool {
    let devices = i64::from(case.program.devices());
    // Numbers of parts along the dimensions of an argument, with the sizes of the parts.
    let divided = |row: usize, number: i64| -> Vec<(i64, i64)> {
        let node = case.node(case.memory.base[row].buffer);
        let Some((node, sharding)) = node.zip(case.program.sharding_of_parameter(number)) else { return Vec::new() };
        let pairs = node.dimensions.iter().copied().zip(sharding.tiles.iter().copied());
        pairs.filter(|pair| pair.1 > 1).collect()
    };
    let parts_of = |is_data: bool, is_meant: &dyn Fn(&(i64, i64)) -> bool| {
        let own = case.arguments().filter(|argument| case.is_data(argument.0) == is_data);
        own.flat_map(|(row, _, number, _)| divided(row, number)).filter(is_meant).map(|pair| pair.1).max()
    };
    let batch = parts_of(true, &|_| true).unwrap_or(1);
    let of_vocabulary = parts_of(false, &|&(size, parts)| size.saturating_mul(parts) == vocabulary);
    of_vocabulary.is_some_and(|parts| parts.saturating_mul(batch) <= devices)
}
