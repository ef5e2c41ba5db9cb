//! The advisor: what to change, what that saves at the peak, and the evidence. One file per rule.

mod activations;
mod allocator_limit;
mod arguments;
mod attention;
pub mod batch_size;
pub mod chips;
mod collected_cache;
mod debug_callback;
mod donation;
mod duplicate;
mod effect;
mod failure_text;
mod fetched;
mod finding;
mod fragmentation;
mod frozen;
mod gathered;
mod gradients;
mod heads;
mod idle_checkpoint;
mod in_the_way;
mod included;
pub mod ipu;
mod layout_copy;
mod libraries;
mod library;
mod logits;
mod made_of;
mod metrics;
mod micro_batches;
mod offload;
mod oversized;
mod padding;
pub mod plan;
mod policy;
mod precision;
mod program_context;
pub mod remedies;
mod replicated;
mod residents;
mod results;
mod scan_parts;
mod scoped_vmem;
mod scopes;
mod search;
mod simulation;
#[cfg(test)]
mod sketch;
mod stages;
mod state_in_place;
mod subject;
mod temporaries;
mod torch;
mod tried;
mod unsharded_activations;
mod zero;

pub use effect::Effect;
pub use finding::{ChangesResults, Finding, Severity, has_micro_batches, wide_range};
pub use plan::Plan;
pub use program_context::{AtPeak, ProgramContext};
pub use subject::{ProgramRule, Rule, Subject};

use crate::analysis::{ProfileAnalysis, Stop, Stopped};
use crate::model::{Bytes, MemorySpace, Profile};

/// Rules about whole profiles.
const RULES: &[&[Rule]] = &[ipu::RULES, failure_text::RULES, torch::RULES];

/// Rules about XLA programs.
pub const PROGRAM_RULES: &[ProgramRule] = &[
    ProgramRule { name: allocator_limit::NAME, run: allocator_limit::run },
    ProgramRule { name: replicated::NAME, run: replicated::run },
    ProgramRule { name: unsharded_activations::NAME, run: unsharded_activations::run },
    ProgramRule { name: oversized::NAME, run: oversized::run },
    ProgramRule { name: logits::NAME, run: logits::run },
    ProgramRule { name: attention::NAME, run: attention::run },
    ProgramRule { name: gradients::NAME, run: gradients::run },
    ProgramRule { name: gathered::NAME, run: gathered::run },
    ProgramRule { name: zero::NAME, run: zero::run },
    ProgramRule { name: fetched::NAME, run: fetched::run },
    ProgramRule { name: duplicate::NAME, run: duplicate::run },
    ProgramRule { name: padding::NAME, run: padding::run },
    ProgramRule { name: donation::NAME, run: donation::run },
    ProgramRule { name: micro_batches::NAME, run: micro_batches::run },
    ProgramRule { name: idle_checkpoint::NAME, run: idle_checkpoint::run },
    ProgramRule { name: activations::NAME, run: activations::run },
    ProgramRule { name: precision::NAME, run: precision::run },
    ProgramRule { name: frozen::NAME, run: frozen::run },
    ProgramRule { name: collected_cache::NAME, run: collected_cache::run },
    ProgramRule { name: state_in_place::NAME, run: state_in_place::run },
    ProgramRule { name: arguments::NAME, run: arguments::run },
    ProgramRule { name: fragmentation::NAME, run: fragmentation::run },
    ProgramRule { name: layout_copy::NAME, run: layout_copy::run },
    ProgramRule { name: debug_callback::NAME, run: debug_callback::run },
    ProgramRule { name: offload::NAME, run: offload::run },
    ProgramRule { name: scoped_vmem::NAME, run: scoped_vmem::run },
    ProgramRule { name: batch_size::NAME, run: batch_size::run },
];

/// Everything the advisor found.
#[derive(Debug, Default)]
pub struct Advice {
    /// Findings, sorted by severity, then bytes.
    pub findings: Vec<Finding>,
    /// A plan for each program that does not fit, where there is one.
    pub plans: Vec<Plan>,
    /// The largest batch that fits, for each program with a batch.
    pub batches: Vec<BatchFit>,
}

/// The largest batch that fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchFit {
    /// Program of the profile.
    pub program: usize,
    /// The batch on each device.
    pub now: i64,
    /// The largest per device that fits, to within 1/64; 0 if not even one sample does.
    pub largest: i64,
    /// The largest that may fit if the compiler recomputes all it can; at least [`Self::largest`].
    pub may_fit: i64,
    /// Whether the arguments that hold the batch are known from their names alone.
    pub is_guess: bool,
    /// How many devices share a part of the batch, such as those of tensor parallelism.
    pub sharing: i64,
    /// How many micro-batches the step runs it in; 1 if it runs it as one.
    pub micro_batches: i64,
    /// Whether the program trains, so that the compiler can recompute what it keeps for the backward pass.
    pub may_recompute: bool,
    /// Whether the step may run on parts of it, one after the other, and add up their gradients: not where it has none, or
    /// collects its samples itself.
    pub may_be_divided: bool,
}

impl BatchFit {
    /// What the batch is counted for: `per device`, `per group of 2 devices`.
    #[must_use]
    pub fn unit(&self) -> String {
        batch_size::unit(self.sharing)
    }
}

/// Runs every rule. Pure but slow: keep it off the window's thread.
#[must_use]
pub fn advise(profile: &Profile, analysis: &ProfileAnalysis) -> Advice {
    advise_against(profile, analysis, None)
}

/// As [`advise`], with another HBM capacity than the device's.
#[must_use]
pub fn advise_against(profile: &Profile, analysis: &ProfileAnalysis, capacity: Option<Bytes>) -> Advice {
    advise_unless(profile, analysis, capacity, Stop::NEVER).unwrap_or_default()
}

/// As [`advise_against`], unless it is stopped: rules and plans then try nothing more, and end soon.
///
/// # Errors
/// If it was.
pub fn advise_unless(
    profile: &Profile,
    analysis: &ProfileAnalysis,
    capacity: Option<Bytes>,
    stop: Stop<'_>,
) -> Result<Advice, Stopped> {
    let cases = contexts(profile, analysis, capacity, stop)?;
    let findings = run_rules(&Subject { profile, analysis }, &cases, stop)?;
    let (plans, batches) = rayon::join(
        || cases.iter().filter_map(|case| plan::plan(case, &findings)).collect(),
        || cases.iter().filter_map(batch_fit).collect(),
    );
    // What was tried since then may have come to nothing.
    stop.check()?;
    Ok(Advice { findings, plans, batches })
}

/// Only the findings of [`advise`], without plans and the largest batch.
#[must_use]
pub fn findings(profile: &Profile, analysis: &ProfileAnalysis) -> Vec<Finding> {
    let cases = contexts(profile, analysis, None, Stop::NEVER).unwrap_or_default();
    run_rules(&Subject { profile, analysis }, &cases, Stop::NEVER).unwrap_or_default()
}

/// The HBM of each program.
fn contexts<'a>(
    profile: &'a Profile,
    analysis: &'a ProfileAnalysis,
    capacity: Option<Bytes>,
    stop: Stop<'a>,
) -> Result<Vec<ProgramContext<'a>>, Stopped> {
    let scenes =
        (0..profile.programs.len()).filter_map(|row| Some((row, analysis.scene(profile, row, MemorySpace::HBM)?)));
    scenes.map(|(row, scene)| stop.check().map(|()| ProgramContext::new(row, scene, capacity, stop))).collect()
}

/// What every rule finds, ranked.
fn run_rules(subject: &Subject<'_>, cases: &[ProgramContext<'_>], stop: Stop<'_>) -> Result<Vec<Finding>, Stopped> {
    use rayon::prelude::*;
    let mut findings = Vec::new();
    for rule in RULES.iter().copied().flatten() {
        (rule.run)(subject, &mut findings);
    }
    for case in cases {
        let found: Vec<Vec<Finding>> = PROGRAM_RULES
            .par_iter()
            .map(|rule| {
                stop.check()?;
                let mut found = Vec::new();
                (rule.run)(case, &mut found);
                Ok(found)
            })
            .collect::<Result<_, Stopped>>()?;
        findings.extend(found.into_iter().flatten());
        temporaries::run(case, &mut findings);
        residents::run(case, &mut findings);
        results::run(case, &mut findings);
    }
    rank(&mut findings);
    say_once(cases, &mut findings);
    Ok(findings)
}

fn batch_fit(case: &ProgramContext<'_>) -> Option<BatchFit> {
    if batch_size::is_of_graphs(case) {
        return None;
    }
    let (largest, now) = batch_size::largest(case)?;
    let is_guess = case.memory.data.first().is_some_and(|data| data.by_name);
    let may_fit = batch_size::largest_maybe(case)?.max(largest);
    let may_be_divided = case.memory.has_backward() && batch_size::micro_batches(case).next().is_some();
    let sharing = batch_size::sharing(case);
    let is_part = case.memory.leaves_samples_out(case.program);
    let micro_batches = if is_part { 1 } else { case.memory.micro_batches(case.program) };
    let may_recompute = case.memory.has_backward();
    Some(BatchFit {
        program: case.row,
        now,
        largest,
        may_fit,
        is_guess,
        sharing,
        micro_batches,
        may_recompute,
        may_be_divided,
    })
}

/// Sorts findings: most severe first, causes before remedies, then by bytes; of two within 10 % of each other, the one
/// that is safer for results comes first, what costs no time before what does, and donation, which changes nothing in the
/// computation.
pub fn rank(findings: &mut [Finding]) {
    use std::cmp::Reverse;
    findings.sort_by_key(|finding| (Reverse(finding.severity), finding.is_remedy, Reverse(finding.weight())));
    // "Within 10 %" is not transitive, hence not an order: safer findings move up past their neighbours one by one.
    for i in 1..findings.len() {
        let mut at = i;
        while at > 0 {
            let (before, here) = (&findings[at - 1], &findings[at]);
            let close = before.weight() as f64 <= here.weight() as f64 * 1.1 && here.weight() > 0;
            let is_other = (before.severity, before.is_remedy) != (here.severity, here.is_remedy);
            let effort = |finding: &Finding| {
                (finding.changes_results, finding.rule == torch::CHECKPOINT, finding.rule != donation::NAME)
            };
            // A mistake comes before what it makes as large as it is.
            let is_made_so = here.rule == unsharded_activations::NAME && before.rule == activations::NAME;
            // So does a second cache, which nothing needs, before weights and caches that are needed.
            let is_second = here.rule == collected_cache::NAME && before.changes_results != ChangesResults::No;
            let is_mistake = (is_made_so || is_second) && before.weight() / 2 < here.weight();
            if is_other || !is_mistake && (!close || effort(before) <= effort(here)) {
                break;
            }
            findings.swap(at - 1, at);
            at -= 1;
        }
    }
}

/// How many times what each of two changes saves both together save at least, if they do not take away the same bytes.
const TOGETHER: f64 = 1.1;

/// Marks savings that another finding of the program, before it, has too: two changes that take away the same bytes.
fn say_once(cases: &[ProgramContext<'_>], findings: &mut [Finding]) {
    for i in 1..findings.len() {
        let (before, rest) = findings.split_at_mut(i);
        let Some(finding) = rest.first_mut() else { continue };
        let Some(saves) = finding.saves_bytes().filter(|&saves| saves > Bytes::ZERO) else { continue };
        let is_same = |other: &&Finding| other.program == finding.program && other.saves_bytes() == Some(saves);
        let adds_up = |other: &&Finding| {
            let edits = search::joined(other.edits().iter().chain(finding.edits()));
            let case = cases.iter().find(|case| Some(case.row) == finding.program);
            case.is_some_and(|case| case.saved(&case.try_out(&edits)) as f64 >= saves.0 as f64 * TOGETHER)
        };
        if let Some(other) = before.iter().find(is_same).filter(|other| !adds_up(other)) {
            finding
                .warnings
                .push(format!("saves the same bytes as \u{201c}{}\u{201d}: do not add the two", other.title));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &'static str, saves: u64, changes: ChangesResults, severity: Severity) -> Finding {
        Finding { at_stake_bytes: Some(Bytes(saves)), changes_results: changes, severity, ..Finding::new(rule) }
    }

    #[test]
    fn safe_findings_pass_those_that_save_hardly_more() {
        let mut findings = vec![
            finding("hint", 900, ChangesResults::No, Severity::Hint),
            finding("batch", 105, ChangesResults::Yes, Severity::Critical),
            finding("donation", 100, ChangesResults::No, Severity::Critical),
            finding("small", 10, ChangesResults::No, Severity::Critical),
            finding("large", 200, ChangesResults::Yes, Severity::Critical),
        ];
        rank(&mut findings);
        let order: Vec<_> = findings.iter().map(|f| f.rule).collect();
        assert_eq!(order, ["large", "donation", "batch", "small", "hint"]);
        findings[0].is_remedy = true;
        rank(&mut findings);
        let order: Vec<_> = findings.iter().map(|f| f.rule).collect();
        assert_eq!(order, ["donation", "batch", "small", "large", "hint"]);
    }
}
