//! The advisor's findings in the report, and its plan.

use std::fmt::Write as _;

use serde::Serialize;

use crate::advisor::batch_size::{MOST_TIMES, WITH_MORE_RECOMPUTED, count, up_to};
use crate::advisor::plan::Step;
use crate::advisor::{Advice, Finding, Plan, wide_range};
use crate::analysis::what_if::{Edit, TryVerdict, UNTOLD};
use crate::export::document::{Document, Item, Line, Weight};
use crate::model::{Bytes, Profile, UnitSystem};

/// A finding.
#[derive(Debug, Serialize)]
pub struct FindingReport {
    /// Name of the rule.
    pub rule: &'static str,
    /// `critical`, `warning` or `hint`.
    pub severity: &'static str,
    /// Headline: what, and how much.
    pub title: String,
    /// The evidence, in a few sentences.
    pub why: String,
    /// Actions, most useful first.
    pub advice: Vec<String>,
    /// Bytes by which the peak drops.
    pub saves_bytes: Option<Bytes>,
    /// Peak after the change.
    pub peak_after_bytes: Option<Bytes>,
    /// Allocated bytes after the change.
    pub allocated_after_bytes: Option<Bytes>,
    /// Bytes at the peak that the finding is about; used for ranking.
    pub at_stake_bytes: Option<Bytes>,
    /// Whether the program fits after the change; `null` if unknown.
    pub fits_after: Option<bool>,
    /// Whether it may fit after the change, depending on the compiler.
    pub may_fit_after: bool,
    /// What the change does, in words, with what it comes to where it is the only one.
    pub effect: Option<String>,
    /// Whether results change: `no`, `maybe` or `yes`.
    pub changes_results: &'static str,
    /// Name of the program; `null` for the profile as a whole.
    pub program: Option<String>,
    /// Buffer ids that are the evidence.
    pub buffers: Vec<i64>,
    /// IPU tiles that are the evidence.
    pub tiles: Vec<u32>,
    /// Error of such predictions on real programs.
    pub band: Option<String>,
    /// Caveats of the prediction.
    pub warnings: Vec<String>,
    /// Whether the evidence is names alone.
    pub is_guess: bool,
    /// The change in the syntax of `--edit`.
    pub edits: Vec<String>,
    /// Title or URL of the page it is based on.
    pub reference: &'static str,
    /// Whether the text formats already print its advice with an out-of-memory message.
    #[serde(skip)]
    is_of_failure: bool,
}

impl FindingReport {
    /// The advice that the text formats have not printed yet.
    fn printed_advice(&self) -> &[String] {
        if self.is_of_failure { &[] } else { &self.advice }
    }
}

/// A plan.
#[derive(Debug, Serialize)]
pub struct PlanReport {
    /// Name of the program.
    pub program: String,
    /// The plan in one sentence.
    pub summary: String,
    /// The changes in the syntax of `--edit`.
    pub edits: Vec<String>,
    /// Rules that the changes come from.
    pub rules: Vec<&'static str>,
    /// Peak after all changes.
    pub peak_bytes: Bytes,
    /// Allocated bytes after all changes.
    pub allocated_bytes: Bytes,
    /// Whether the program then fits.
    pub fits: bool,
    /// Bytes still missing; 0 if it fits.
    pub over_by_bytes: Bytes,
    /// Whether results change: `no`, `maybe` or `yes`.
    pub changes_results: &'static str,
    /// The changes in order, with the memory needed after each.
    pub steps: Vec<StepReport>,
    /// Caveats of the prediction, which those of the findings that it takes its changes from need not have.
    #[serde(skip)]
    warnings: Vec<String>,
}

/// A step of a plan.
#[derive(Debug, Serialize)]
pub struct StepReport {
    /// The change in the syntax of `--edit`.
    pub edit: String,
    /// The change in words, with the API of the library that made the program.
    pub words: String,
    /// Allocated bytes after this change and the previous ones.
    pub allocated_bytes: Bytes,
    /// Bytes still missing after it; 0 if it fits.
    pub over_by_bytes: Bytes,
    /// Whether the program fits after it: `fits`, `may_fit`, `over` or `unknown`.
    pub verdict: &'static str,
    /// Range of allocated bytes after it.
    #[serde(skip)]
    range: (Bytes, Bytes),
    /// Whether the bytes may be shown.
    #[serde(skip)]
    is_told: bool,
}

/// The largest batch that fits.
#[derive(Debug, Serialize)]
pub struct BatchReport {
    /// Name of the program.
    pub program: String,
    /// Present batch per device.
    pub per_device: i64,
    /// Largest batch per device that fits.
    pub largest_that_fits: i64,
    /// Largest batch that may fit if the compiler recomputes what it can.
    pub largest_that_may_fit: i64,
    /// Whether the arguments that hold the batch are known by name alone.
    pub is_guess: bool,
    /// How many micro-batches the step runs it in, one after the other; left out if it runs it as one.
    #[serde(skip_serializing_if = "is_one")]
    pub micro_batches: i64,
    /// What it is counted for, in words.
    #[serde(skip)]
    unit: String,
    /// Why a larger one may fit, in words; empty where it is only that predictions are not exact.
    #[serde(skip)]
    why: &'static str,
}

/// The findings of a profile.
pub fn findings(profile: &Profile, advice: &Advice, top: usize) -> Vec<FindingReport> {
    advice.findings.iter().map(|finding| row(profile, finding, top)).collect()
}

fn row(profile: &Profile, finding: &Finding, top: usize) -> FindingReport {
    let program = finding.program.and_then(|row| profile.programs.get(row));
    let number = |buffer: &crate::model::BufferId| program?.buffers.number.get(buffer.index()).copied();
    FindingReport {
        rule: finding.rule,
        severity: finding.severity.name(),
        title: finding.title.clone(),
        why: finding.why.clone(),
        advice: finding.advice.clone(),
        saves_bytes: finding.saves_bytes(),
        peak_after_bytes: finding.peak_after_bytes(),
        allocated_after_bytes: finding.allocated_after_bytes(),
        at_stake_bytes: finding.at_stake_bytes,
        fits_after: finding.fits_after(),
        may_fit_after: finding.may_fit_after(),
        effect: finding.effect_in_words(),
        changes_results: finding.changes_results.name(),
        program: program.map(|program| program.name.clone()),
        buffers: finding.buffers.iter().filter_map(number).take(top).collect(),
        tiles: finding.tiles.clone(),
        band: finding.band().map(str::to_owned),
        warnings: finding.warnings.clone(),
        is_guess: finding.is_guess,
        edits: finding.edits().iter().map(ToString::to_string).collect(),
        reference: finding.reference,
        is_of_failure: finding.failure.is_some(),
    }
}

/// The plans of a profile.
pub fn plans(profile: &Profile, advice: &Advice) -> Vec<PlanReport> {
    let name = |plan: &Plan| profile.programs.get(plan.program).map(|p| p.name.clone()).unwrap_or_default();
    let row = |plan: &Plan| PlanReport {
        program: name(plan),
        summary: plan.summary.clone(),
        edits: plan.edits.iter().map(ToString::to_string).collect(),
        rules: plan.rules.clone(),
        peak_bytes: plan.peak,
        allocated_bytes: plan.allocated,
        fits: plan.fits,
        over_by_bytes: plan.over,
        changes_results: plan.changes_results.name(),
        steps: plan.steps.iter().map(step).collect(),
        warnings: plan.warnings.clone(),
    };
    advice.plans.iter().map(row).collect()
}

fn step(step: &Step) -> StepReport {
    StepReport {
        edit: step.edit.to_string(),
        words: step.words.clone(),
        allocated_bytes: step.allocated,
        over_by_bytes: step.over,
        verdict: step.verdict.name(),
        range: step.range,
        is_told: step.is_told,
    }
}

/// A plan in one sentence, with its changes as the window calls them.
fn in_words(plan: &PlanReport) -> String {
    plan.edits.iter().fold(plan.summary.clone(), |sentence, edit| match edit.parse::<Edit>() {
        Ok(known) => sentence.replace(&format!("`{edit}`"), &format!("\u{201c}{}\u{201d}", known.in_words())),
        Err(_) => sentence,
    })
}

/// Changes as options of the command, `--edit "remat layer_*" --edit "donate params"`; one that names hundreds of
/// arguments in words, and written out in JSON only.
fn tried(edits: &[String]) -> String {
    let option = |edit: &String| match edit.parse::<Edit>() {
        Ok(long) if edit.len() > WRITTEN_OUT => format!("{} (written out in the JSON report)", long.in_words()),
        _ => format!("`--edit \"{edit}\"`"),
    };
    let words = if edits.len() == 1 { "a change" } else { "changes" };
    format!("as {words} to try: {}", edits.iter().map(option).collect::<Vec<_>>().join(" "))
}

/// A step of a plan in words: what to do, and the memory needed after it.
fn step_text(step: &StepReport) -> String {
    let left = match step.verdict {
        _ if step.over_by_bytes.0 > 0 => format!("{} over", step.over_by_bytes.short()),
        _ => "fits".to_owned(),
    };
    let (low, high) = step.range;
    if !step.is_told {
        return match step.verdict {
            verdict if verdict == TryVerdict::Fits.name() => {
                format!("{}: then it needs at most {}: fits", step.words, high.short())
            }
            _ => format!("{}: then {UNTOLD}", step.words),
        };
    }
    if step.verdict == TryVerdict::MayFit.name() {
        return format!("{}: then it needs {} to {}: may fit", step.words, low.short(), high.short());
    }
    let range = wide_range(step.allocated_bytes, step.range, UnitSystem::Binary);
    format!("{}: then it needs {}{range}: {left}", step.words, step.allocated_bytes.short())
}

/// The largest batches of a profile's programs.
pub fn batches(profile: &Profile, advice: &Advice) -> Vec<BatchReport> {
    advice
        .batches
        .iter()
        .map(|fit| BatchReport {
            program: profile.programs.get(fit.program).map(|p| p.name.clone()).unwrap_or_default(),
            per_device: fit.now,
            largest_that_fits: fit.largest,
            largest_that_may_fit: fit.may_fit,
            is_guess: fit.is_guess,
            micro_batches: fit.micro_batches,
            unit: fit.unit(),
            why: if fit.may_recompute { WITH_MORE_RECOMPUTED } else { "" },
        })
        .collect()
}

/// Whether a plan changes results, in words.
fn results(plan: &PlanReport) -> &'static str {
    match plan.changes_results {
        "no" if plan.edits.iter().any(|edit| edit.starts_with("micro ")) => {
            "Results stay the same where the loss is a mean over samples"
        }
        "no" => "Results stay the same",
        "maybe" => "Results may change",
        _ => "Results change",
    }
}

/// How many times the largest batch that fits a number is that still tells something.
const MOST_APART: i64 = 2;

/// Whether a step runs its batch as one.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_one(micro_batches: &i64) -> bool {
    *micro_batches <= 1
}

/// A sentence about the largest batch.
fn sentence(batch: &BatchReport) -> String {
    let guess = if batch.is_guess { " (the arguments that hold it are guessed from their names)" } else { "" };
    let parts = if is_one(&batch.micro_batches) {
        String::new()
    } else {
        let each = count(batch.per_device / batch.micro_batches);
        // The sums of gradients are there whatever their number.
        format!(" ({} micro-batches of {each}; more of these take little but their data)", count(batch.micro_batches))
    };
    let (fits, may_fit, unit) = (batch.largest_that_fits, batch.largest_that_may_fit, &batch.unit);
    // So far beyond, the number says nothing.
    let maybe = if fits > 0 && may_fit > fits.saturating_mul(MOST_APART) {
        format!("; a larger one may still fit{}", batch.why)
    } else if may_fit > fits {
        format!("; {} cannot be ruled out{}", up_to(may_fit), batch.why)
    } else {
        String::new()
    };
    match fits {
        0 if may_fit > 0 => {
            format!("No batch is predicted to fit{maybe}; it is {} {unit} now{parts}{guess}", count(batch.per_device))
        }
        0 if batch.per_device == 1 => {
            format!("The batch cannot be smaller, divided over the devices as it is: it is 1 {unit} now{parts}{guess}")
        }
        0 => format!(
            "With the batch alone changed, not even 1 {unit} fits; it is {} now{parts}{guess}",
            count(batch.per_device)
        ),
        largest if largest >= batch.per_device.saturating_mul(MOST_TIMES) => {
            format!(
                "Batches of up to {} {unit} are predicted to fit, and larger ones were not tried; it is {} now{parts}{guess}",
                count(largest),
                count(batch.per_device)
            )
        }
        largest if largest == batch.per_device => {
            format!(
                "No batch larger than the present {} {unit}{parts} is predicted to fit{maybe}{guess}",
                count(largest)
            )
        }
        1 => format!(
            "A batch of 1 {unit} is predicted to fit{maybe}; it is {} now{parts}{guess}",
            count(batch.per_device)
        ),
        largest => format!(
            "Batches of up to about {} {unit} are predicted to fit{maybe}; it is {} now{parts}{guess}",
            count(largest),
            count(batch.per_device)
        ),
    }
}

/// The cautions of a report, each written out once: what many predictions share would hide what only one has.
#[derive(Default)]
struct Cautions<'a> {
    said: Vec<&'a str>,
}

/// Shorter cautions are repeated as they are.
const SHORT: usize = 60;

impl<'a> Cautions<'a> {
    /// A caution as it is written: in short where it has been written before.
    fn words(&mut self, warning: &'a str) -> String {
        if !self.said.contains(&warning) {
            self.said.push(warning);
        } else if let Some((head, _)) = warning.split_once([':', ';', '(']).filter(|_| warning.len() > SHORT) {
            return format!("caution: as above, {}", head.trim_end());
        }
        format!("caution: {warning}")
    }
}

/// Writes the findings as text.
pub fn write_text(out: &mut String, findings: &[FindingReport], plans: &[PlanReport], batches: &[BatchReport]) {
    let mut cautions = Cautions::default();
    let mut bands: Vec<&str> = Vec::new();
    for plan in plans {
        let _ = writeln!(out, "plan: {}. {}", in_words(plan), results(plan));
        for (i, step) in plan.steps.iter().enumerate() {
            let _ = writeln!(out, "    {}. {}", i + 1, step_text(step));
        }
        let _ = writeln!(out, "    {}", tried(&plan.edits));
        for warning in &plan.warnings {
            let _ = writeln!(out, "    {}", cautions.words(warning));
        }
    }
    for batch in batches {
        let _ = writeln!(out, "batch: {}", sentence(batch));
    }
    for finding in findings {
        let _ = writeln!(out, "{}: {}  [{}]", finding.severity, finding.title, finding.rule);
        let _ = writeln!(out, "    {}", finding.why);
        if let Some(effect) = &finding.effect {
            let _ = writeln!(out, "    {effect}");
        }
        if !finding.edits.is_empty() {
            let _ = writeln!(out, "    {}", tried(&finding.edits));
        }
        for advice in finding.printed_advice() {
            let _ = writeln!(out, "    - {advice}");
        }
        // How predictions of a kind turned out is said once.
        if let Some(band) = finding.band.as_deref().filter(|band| !bands.contains(band)) {
            bands.push(band);
            let _ = writeln!(out, "    prediction: {band}");
        }
        for warning in &finding.warnings {
            let _ = writeln!(out, "    {}", cautions.words(warning));
        }
    }
}

/// Adds the findings to a document.
pub fn document(out: &mut Document, findings: &[FindingReport], plans: &[PlanReport], batches: &[BatchReport]) {
    if findings.is_empty() && plans.is_empty() {
        return;
    }
    out.heading(3, "What to change");
    let mut cautions = Cautions::default();
    for plan in plans {
        let words = format!(" {}. {}.", in_words(plan), results(plan));
        out.paragraph(Line::strong("Plan:").then_marked(&words, Weight::Plain));
        let step = |(i, step): (usize, &StepReport)| Item {
            number: Some(i + 1),
            ..Item::new(0, Line::marked(&step_text(step)))
        };
        let caution = |warning| Item::new(1, Line::marked(&cautions.words(warning)));
        out.list(
            plan.steps
                .iter()
                .enumerate()
                .map(step)
                .chain(plan.warnings.iter().map(String::as_str).map(caution))
                .collect(),
        );
    }
    for batch in batches {
        out.paragraph(format!("{}.", sentence(batch)));
    }
    let mut items = Vec::new();
    for finding in findings {
        let title = Line::strong(&finding.title).then(format!(" ({}, ", finding.severity));
        let mut lines = vec![title.then_code(finding.rule).then(")"), Line::marked(&finding.why)];
        lines.extend(finding.effect.as_ref().map(|effect| Line::emphasis(effect)));
        items.push(Item { lines, ..Item::default() });
        items.extend(finding.printed_advice().iter().map(|advice| Item::new(1, Line::marked(advice))));
        let caution = |warning| Item::new(1, Line::marked(&cautions.words(warning)));
        items.extend(finding.warnings.iter().map(String::as_str).map(caution));
    }
    out.list(items);
}

/// Longest change that is written out.
const WRITTEN_OUT: usize = 200;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caution_of_many_predictions_is_written_out_once() {
        let long = "5 temporaries are named .remat: the compiler was already short of memory and will recompute less";
        let mut cautions = Cautions::default();
        assert_eq!(cautions.words(long), format!("caution: {long}"));
        assert_eq!(cautions.words(long), "caution: as above, 5 temporaries are named .remat");
        assert_eq!(cautions.words("short: as it is"), "caution: short: as it is");
        assert_eq!(cautions.words("short: as it is"), "caution: short: as it is");
    }

    #[test]
    fn the_largest_batch_is_said_as_a_number_of_samples() {
        let words = |now, fits| {
            sentence(&BatchReport {
                program: String::new(),
                per_device: now,
                largest_that_fits: fits,
                largest_that_may_fit: fits,
                is_guess: false,
                micro_batches: if now == 8 { 4 } else { 1 },
                unit: "per device".to_owned(),
                why: WITH_MORE_RECOMPUTED,
            })
        };
        assert_eq!(words(2, 1), "A batch of 1 per device is predicted to fit; it is 2 now");
        assert_eq!(
            words(8, 20),
            "Batches of up to about 20 per device are predicted to fit; it is 8 now (4 micro-batches of 2; more of these take little but their data)"
        );
        let most = words(4, 4 * MOST_TIMES);
        assert_eq!(
            most,
            "Batches of up to 256 per device are predicted to fit, and larger ones were not tried; it is 4 now"
        );
    }
}
