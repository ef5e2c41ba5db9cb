//! Rule `layout_copy`: whole arguments copied because the program needs them in another layout.

use super::finding::{ChangesResults, Finding};
use super::program_context::{AtPeak, ProgramContext, Total, in_a_row};
use crate::analysis::class::Class;
use crate::analysis::what_if::Role;
use crate::model::{BufferId, Bytes, FastSet, ShapeNode, capitalised, percent};

/// Name of the rule.
pub const NAME: &str = "layout_copy";

/// The argument (row of the base) that a buffer at the peak is a copy of in another layout.
pub(super) fn copied_argument(case: &ProgramContext<'_>, buffer: BufferId) -> Option<usize> {
    let program = case.program;
    let parameter = case.analysis.labels(program).copied_by(program, buffer)?;
    let number = i64::from(*program.instructions.argument.get(parameter.index())?);
    let (row, ..) = case.arguments().find(|argument| argument.2 == number)?;
    let (copy, argument) = (case.node(buffer)?, case.node(case.memory.base[row].buffer)?);
    (copy.element_type == argument.element_type && are_laid_out_differently(copy, argument)).then_some(row)
}

/// The dimensions of an array as they lie in memory, the most major first.
pub(super) fn sizes_in_memory(node: &ShapeNode) -> Option<Vec<i64>> {
    let order = &node.layout.as_ref()?.minor_to_major;
    order.iter().rev().map(|&dimension| node.dimensions.get(dimension as usize).copied()).collect()
}

/// As [`sizes_in_memory`], without those of one element.
fn in_memory(node: &ShapeNode) -> Option<Vec<i64>> {
    Some(sizes_in_memory(node)?.into_iter().filter(|&size| size != 1).collect())
}

/// Whether two arrays of the same elements have their dimensions in another order. Arrays of which one has dimensions of
/// the other merged may lie alike.
fn are_laid_out_differently(a: &ShapeNode, b: &ShapeNode) -> bool {
    let (Some(first), Some(second)) = (in_memory(a), in_memory(b)) else { return false };
    if first != second {
        let sorted = |mut sizes: Vec<i64>| {
            sizes.sort_unstable();
            sizes
        };
        return sorted(first) == sorted(second);
    }
    // Sides of equal length do not tell.
    a.dimensions == b.dimensions && a.order_in_memory() != b.order_in_memory()
}

/// The classes of some arguments in words, those of most bytes first: `optimizer state and weights`.
fn classes_in_words(case: &ProgramContext<'_>, found: &[(&AtPeak, usize)]) -> String {
    let classes = case.analysis.classes(case.program);
    let rows = found.iter().map(|&(t, row)| (case.memory.base[row].buffer, Bytes(t.size)));
    let names = classes.sums(rows).into_iter().map(|sum| match sum.0 {
        Class::Weight => "weights".to_owned(),
        Class::Input => "inputs".to_owned(),
        Class::Cache => "the cache".to_owned(),
        other => other.name().to_lowercase(),
    });
    in_a_row(names.collect())
}

/// As [`copied_argument`], also of what was a copy before a loop wrote to it. Those of caches have a rule of their own.
fn copied_or_written(case: &ProgramContext<'_>, t: &AtPeak) -> Option<usize> {
    let classes = case.analysis.classes(case.program);
    let is_meant = |&row: &usize| classes.of(case.memory.base[row].buffer) != Class::Cache;
    copied_argument(case, t.buffer).or_else(|| copied_argument(case, case.root(t)).filter(is_meant))
}

/// The copies whose argument's own memory is not in use for another value at the peak, as it may be where the argument is
/// donated: without the copy, that value would need memory of its own.
fn without_borrowed<'a>(case: &ProgramContext<'_>, found: Vec<(&'a AtPeak, usize)>) -> Vec<(&'a AtPeak, usize)> {
    let own: FastSet<BufferId> = found.iter().map(|&(_, row)| case.memory.base[row].buffer).collect();
    let others = case.space.at_peak.buffers().filter(|buffer| !own.contains(buffer));
    let in_use: FastSet<_> = others.filter_map(|buffer| case.program.buffers.allocation_of(buffer)).collect();
    let is_free = |&(_, row): &(&AtPeak, usize)| {
        let allocation = case.program.buffers.allocation_of(case.memory.base[row].buffer);
        allocation.is_none_or(|allocation| !in_use.contains(&allocation))
    };
    found.into_iter().filter(is_free).collect()
}

/// Looks for copies of whole arguments in another layout.
pub fn run(case: &ProgramContext<'_>, findings: &mut Vec<Finding>) {
    let copies: Vec<(&AtPeak, usize)> =
        case.peak.iter().filter_map(|t| Some((t, copied_or_written(case, t)?))).collect();
    if copies.is_empty() {
        return;
    }
    let found = without_borrowed(case, copies);
    let bytes: u64 = found.iter().map(|f| f.0.size).total();
    if !case.is_worth(bytes) {
        return;
    }
    let mut finding = case.remedy(NAME);
    let families: Vec<usize> = found.iter().map(|f| f.0.family).collect();
    case.at_stake_without(&mut finding, &families, ", if none of the copies is made");
    let written = found.iter().filter(|&&(t, _)| copied_argument(case, t.buffer).is_none()).map(|f| f.0.size).total();
    let of = classes_in_words(case, &found);
    finding.title = format!(
        "{} take {} of the peak: {}",
        if written.saturating_mul(2) > bytes {
            format!("{} that loops carry on in another layout", capitalised(&of))
        } else {
            format!("Copies of {of} in another layout")
        },
        percent(bytes, case.at_peak()),
        Bytes(bytes).short()
    );
    let text = |buffer| case.program.buffer_shape(buffer).map(|(shape, node)| shape.text_of(node)).unwrap_or_default();
    finding.why = found
        .first()
        .map(|&(t, row)| {
            let base = &case.memory.base[row];
            let path = match &base.role {
                Role::Argument { path, .. } => path.as_str(),
                _ => "",
            };
            // What a loop has written since is no copy any more, but for its layout it would be in the argument's memory.
            let is_copy = copied_argument(case, t.buffer).is_some();
            let how = if is_copy { "is copied to" } else { "a loop carries it on as" };
            let twice = if is_copy {
                "While both are live, it is in memory twice."
            } else {
                "The memory of the argument itself is kept beside it, though it may be read no more."
            };
            format!(
                "`{path}` arrives as {}, and {how} {}{}. {twice}",
                text(base.buffer),
                text(t.buffer),
                match found.len() {
                    0 | 1 => String::new(),
                    2 => "; so is one other".to_owned(),
                    count => format!("; so are {} others", count - 1),
                }
            )
        })
        .unwrap_or_default();
    finding.advice.push("let the compiler choose the layout of these arguments, and of the results that take their place: `Format(Layout.AUTO, sharding)` (`jax.experimental.layout`) in `in_shardings` and `out_shardings` of `jax.jit`, compiled ahead of time from shapes (`.lower(…).compile()`, as arrays have a layout already), and put the arrays once into the formats that the compiled function has (`input_formats`)".to_owned());
    finding.advice.push("or store the array transposed, so that its default layout is the one needed".to_owned());
    finding.changes_results = ChangesResults::No;
    finding.reference = "tpu-inference issue 1882 of vLLM (whole-weight copies); JAX, layouts of arguments";
    finding.buffers = found.iter().flat_map(|&(t, row)| [t.buffer, case.memory.base[row].buffer]).collect();
    findings.push(finding);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advisor::sketch::{Sketch, array};
    use crate::model::Opcode;

    fn copied(order: &[u32]) -> Vec<Finding> {
        let mut sketch = Sketch::default();
        let w = sketch.argument(array(&[1024, 2048], &[1, 0]), "params['w']");
        let copy = sketch.instruction(Opcode::COPY, array(&[1024, 2048], order), &[w], "");
        sketch.alloc(copy);
        let dot = sketch.instruction(Opcode::FUSION, array(&[16, 16], &[1, 0]), &[copy], "jit(f)/dot_general");
        sketch.alloc(dot);
        sketch.free(copy);
        sketch.free(dot);
        sketch.findings(1 << 30, run)
    }

    #[test]
    fn a_copy_into_another_layout_is_named() {
        let findings = copied(&[0, 1]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].why.contains("params['w']"), "{}", findings[0].why);
        assert_eq!(findings[0].buffers, [BufferId(1), BufferId(0)]);
        assert!(findings[0].weight() > 8_000_000);
    }

    #[test]
    fn a_copy_in_the_same_layout_is_not() {
        assert!(copied(&[1, 0]).is_empty());
    }
}
