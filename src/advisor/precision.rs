//! Rule `precision`: 32-bit floats where 16 bits might do.

use super::finding::{ChangesResults, Finding, Severity};
use super::library::{Library, has_narrow_moments, wide_moments};
use super::program_context::{AtPeak, ProgramContext, Total};
use super::simulation::is_simulation;
use crate::analysis::class::Class;
use crate::analysis::flow::product::may_have_weights;
use crate::analysis::what_if::{Arguments, Edit};
use crate::model::{BufferId, Bytes, ElementType, FastSet, capitalised, percent};

/// Name of the rule.
pub const NAME: &str = "precision";

/// Least share of allocated bytes at which wide floats are reported.
const SHARE: f64 = 0.30;

/// Whether most of the floats that the program computes at the peak have 16 bits or less, or those that its scans save,
/// whatever there is at the peak, such as sums of gradients.
pub(super) fn computes_in_16_bits(case: &ProgramContext<'_>) -> bool {
    let (narrow, all) = narrow_of(case, case.peak.iter().map(|t| (t.family, t.buffer, t.size)));
    if case.is_worth(all) && narrow > all / 2 {
        return true;
    }
    let families = &case.memory.families.list;
    let stacks = case.memory.kept.stacks.iter().filter_map(|stack| {
        let row = stack.family as usize;
        families.get(row).map(|family| (row, family.root, family.size))
    });
    let (narrow, all) = narrow_of(case, stacks);
    narrow > all / 2
}

/// Bytes of the floats of 16 bits or less among some arrays, and of all floats, apart from attention scores and logits, which
/// a program may want in 32 bits for their softmax. Each array with its family, a buffer and its bytes.
fn narrow_of(case: &ProgramContext<'_>, arrays: impl Iterator<Item = (usize, BufferId, u64)>) -> (u64, u64) {
    let (mut narrow, mut all) = (0u64, 0u64);
    for (_, buffer, size) in arrays.filter(|array| !case.memory.kept.has_own_remedy(array.0)) {
        let Some(node) = case.node(buffer).filter(|node| node.element_type.is_float()) else { continue };
        all = all.saturating_add(size);
        if !node.element_type.is_wide_float() {
            narrow = narrow.saturating_add(size);
        }
    }
    (narrow, all)
}

/// Reports 32-bit weights and optimizer state of a program that computes in 16 bits.
fn arguments(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let classes = case.analysis.classes(case.program);
    let is_meant = |row: usize| {
        let base = &case.memory.base[row];
        !base.is_average_of_weights()
            && matches!(classes.of(base.buffer), Class::Weight | Class::Optimizer)
            && case.node(base.buffer).is_some_and(|node| node.element_type.is_wide_float())
    };
    let rows: Vec<usize> = case.arguments().map(|argument| argument.0).filter(|&row| is_meant(row)).collect();
    let bytes: u64 = rows.iter().map(|&row| case.memory.base[row].size).total();
    if case.severity() == Severity::Hint || !case.is_share(bytes, SHARE) {
        return;
    }
    let names = case.names_of_wide(&rows);
    let mut finding = case.remedy(NAME);
    let saved = case.fill(&mut finding, vec![Edit::Dtype(Arguments(names), ElementType::BF16)]);
    if !case.is_worth(saved) {
        return;
    }
    finding.title = format!(
        "{} of weights and optimizer state are 32-bit floats: {}",
        Bytes(bytes).short(),
        finding.less(" in bfloat16")
    );
    "The program computes in 16 bits already; these arguments keep 32 bits, so that small updates are not lost."
        .clone_into(&mut finding.why);
    let results = case.counted_twice(&finding, &rows, (bytes, bytes / 2));
    if !results.is_empty() {
        finding.why.push_str(&results);
    } else if finding.is_told() && saved > bytes / 2 + bytes / 50 {
        finding.why.push_str(" It saves more than half of them, as copies of them in bfloat16 are no longer made.");
    }
    let half = Bytes(wide_moments(case) / 2);
    let first = if half == Bytes::ZERO { String::new() } else { format!(", which saves {}", half.short()) };
    let rest = format!(
        "{first}; its second moment and the weights, which lose small updates unless they are rounded stochastically, are the rest of the saving{}",
        Library::of(case).narrow_weights()
    );
    finding.advice.push(match Library::of(case).narrow_moments(case) {
        Some(option) => format!("the optimizer's first moment in bfloat16 is the least risk ({option}){rest}"),
        None if has_narrow_moments(case) => "the optimizer's first moment has 16 bits already; what is left is its second moment and the weights, which lose small updates unless they are rounded stochastically".to_owned(),
        None => format!("the optimizer's first moment in bfloat16 is the least risk, where the optimizer has an option for it{rest}"),
    });
    finding.changes_results = ChangesResults::Yes;
    finding.buffers = rows.iter().map(|&row| case.memory.base[row].buffer).collect();
    findings.push(finding);
}

/// Looks at the wide floats at the peak.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let is_wide = |buffer| case.node(buffer).is_some_and(|node| node.element_type.is_wide_float());
    // 16 bits are known to suffice for neural networks only (not for, say, a physics solver).
    let (wide, weights) = case.wide_of_weights();
    let has_backward = case.memory.has_backward();
    if !has_backward && !case.is_worth(weights) {
        return;
    }
    // Where weights have 16 bits, losses and softmaxes have 32 on purpose; copies of arguments have the type of these.
    let has_narrow_weights = weights > 0 && wide.saturating_mul(2) < weights;
    let classes = case.analysis.classes(case.program);
    let size_of = |buffer| case.node(buffer).map(|node| (node.element_type, node.element_count()));
    let is_given = |row: &usize| {
        let base = &case.memory.base[*row];
        case.is_worth(base.size) && matches!(classes.of(base.buffer), Class::Input | Class::Cache)
    };
    let given: Vec<_> = case.arguments().map(|argument| argument.0).filter(is_given).collect();
    let given: FastSet<_> = given.into_iter().filter_map(|row| size_of(case.memory.base[row].buffer)).collect();
    let may_be_narrow = |t: &&AtPeak| {
        let is_on_purpose = has_narrow_weights && case.memory.kept.has_own_remedy(t.family);
        let is_given = matches!(classes.of(t.buffer), Class::Input | Class::Cache);
        let made = case.program.buffers.instruction_of(t.buffer);
        let is_made_by_copy = made.is_some_and(|at| case.program.opcode_name(at).starts_with("copy"));
        let is_copy = || is_made_by_copy && size_of(t.buffer).is_some_and(|size| given.contains(&size));
        is_wide(t.buffer) && !is_on_purpose && !is_given && !is_copy()
    };
    let temporaries: u64 = case.peak.iter().filter(may_be_narrow).map(|t| t.size).total();
    let kept: u64 = case.memory.base.iter().filter(|base| is_wide(base.buffer)).map(|base| base.size).total();
    if !case.is_share(temporaries.saturating_add(kept), SHARE) {
        return;
    }
    // With room to spare, 32-bit arguments do not matter.
    if case.severity() == Severity::Hint && !case.is_share(temporaries, SHARE) {
        return;
    }
    if !may_have_weights(case.program) {
        return;
    }
    let bf16 = ElementType::BF16;
    // The 32-bit temporaries of a program that computes in 16 bits are those that it wants so.
    if computes_in_16_bits(case) || case.memory.casts_to_16_bits(case.program) {
        arguments(case, findings);
        return;
    }
    let everything = case.try_out(&[Edit::Dtype(Arguments::all(), bf16)]);
    let compute = case.try_out(&[Edit::Compute(bf16)]);
    let (all, some) = (case.saved(&everything), case.saved(&compute));
    if !case.is_worth(all) || is_simulation(case) {
        return;
    }
    let mut finding = case.remedy(NAME);
    let only_compute = case.is_worth(some) && some.saturating_mul(2) >= all;
    let edit = if only_compute { Edit::Compute(bf16) } else { Edit::Dtype(Arguments::all(), bf16) };
    case.fill(&mut finding, vec![edit]);
    let less = finding.less(" in bfloat16");
    // Where nothing less is expected, the compiler may keep arrays in both types all the same.
    let is_most = finding.effect.as_ref().is_some_and(|effect| effect.range().0 >= effect.allocated());
    let about = if is_most { "up to " } else { "about " };
    finding.title = format!(
        "{} of the peak is 32-bit floats: {}{less}",
        capitalised(&percent(temporaries.saturating_add(kept), case.at_peak())),
        if less.starts_with(|c: char| c.is_ascii_digit()) { about } else { "" },
    );
    finding.why = if kept == 0 {
        format!("{} of temporaries are f32, but no arguments and no results.", Bytes(temporaries).short())
    } else {
        format!(
            "{} of temporaries and {} of arguments and results are f32.{}",
            Bytes(temporaries).short(),
            Bytes(kept).short(),
            if everything.is_told() && compute.is_told() {
                let alone = if case.is_worth(some) {
                    format!("{} lower", Bytes(some).short())
                } else {
                    "hardly lower".to_owned()
                };
                let scores = case.held(&case.memory.wide_scores(case.program)).iter().map(|t| t.size).total();
                let but = if case.is_worth(scores) { " except attention scores (taken to stay f32)" } else { "" };
                format!(
                    " With all of them in bfloat16{but} the peak would be {about}{} lower, with temporaries alone {alone}.",
                    Bytes(all).short(),
                )
            } else {
                String::new()
            }
        )
    };
    let cast = Library::of(case).compute_in_bfloat16();
    // Weights may be narrower already, such as integers with scales.
    let keep = if wide.saturating_mul(2) > weights {
        "keep the parameters in f32"
    } else {
        "leave the parameters as they are"
    };
    let kept_wide = format!("compute in bfloat16 and {keep}: {cast}");
    // The first piece of advice is the change whose saving the title gives.
    if only_compute {
        finding.advice.push(kept_wide);
        if wide > 0 {
            finding
                .advice
                .push("parameters or optimizer state in bfloat16 take half as much too, at more risk".to_owned());
        }
    } else {
        finding.advice.push(format!("{}; small updates may be lost", Library::of(case).all_in_bfloat16()));
        let less = if compute.is_told() && case.is_worth(some) {
            format!(": about {} less", Bytes(some).short())
        } else {
            String::new()
        };
        if !compute.is_told() || case.is_worth(some) {
            finding.advice.push(format!("at less risk, {kept_wide}{less}"));
        }
    }
    if finding.is_told() {
        finding
            .warnings
            .push("softmax, losses and norms that the program computes in f32 on purpose stay f32".to_owned());
    }
    let of_transforms = |t: &&AtPeak| is_wide(t.buffer) && case.memory.is_transform(t.family);
    let transforms: u64 = case.peak.iter().filter(of_transforms).map(|t| t.size).total();
    if case.is_worth(transforms) {
        finding.warnings.push(format!(
            "{} are parts of Fourier transforms, which have no 16-bit form in JAX, as complex numbers take 64 bits at least: they are not counted, and what they read has to be cast to 32 bits",
            Bytes(transforms).short()
        ));
    }
    finding.changes_results = ChangesResults::Yes;
    let mut evidence: Vec<_> = case
        .peak
        .iter()
        .map(|t| (t.size, t.buffer))
        .chain(case.memory.base.iter().map(|base| (base.size, base.buffer)))
        .filter(|row| is_wide(row.1))
        .collect();
    evidence.sort_by_key(|&(size, buffer)| (std::cmp::Reverse(size), buffer));
    finding.buffers = evidence.into_iter().map(|row| row.1).collect();
    findings.push(finding);
}
