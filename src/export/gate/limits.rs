//! The limits, and what becomes of a program held against them.

use serde::Serialize;

use crate::advisor::{Finding, Severity, advise};
use crate::analysis::{Scene, Verdict};
use crate::export::diff::Side;
use crate::model::{Bytes, MemorySpace, UnitSystem, percent};

/// What a program must keep to. Without any, it must fit its device.
#[derive(Debug, Clone, Default)]
pub struct Limits {
    /// Highest use in bytes.
    pub max_peak: Option<Bytes>,
    /// Share of the capacity that may be allocated, 1 for all of it.
    pub max_of_capacity: Option<f64>,
    /// Growth of the allocated bytes over the program before, 0.02 for 2 %.
    pub max_growth: Option<f64>,
    /// No finding of this severity or a worse one that the program before did not have.
    pub no_new: Option<Severity>,
}

/// Whether a limit is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LimitOutcome {
    /// It is.
    Passed,
    /// It is not.
    Failed,
    /// It cannot be told: no capacity, no peak, no program to compare with.
    Unknown,
}

/// One limit of one program.
#[derive(Debug, Clone, Serialize)]
pub struct Check {
    /// The file.
    pub file: String,
    /// The program; empty where the file could not be read.
    pub program: String,
    /// `fits`, `max-peak`, `max-of-capacity`, `max-growth`, `no-new`, `read`.
    pub limit: &'static str,
    /// Whether it is kept.
    pub outcome: LimitOutcome,
    /// The numbers in a sentence.
    pub words: String,
}

impl Check {
    /// In one line.
    #[must_use]
    pub fn line(&self) -> String {
        let outcome = match self.outcome {
            LimitOutcome::Passed => "ok     ",
            LimitOutcome::Failed => "FAILED ",
            LimitOutcome::Unknown => "UNKNOWN",
        };
        let program = if self.program.is_empty() { String::new() } else { format!("{} ", self.program) };
        format!("{outcome} {program}({}): {}  [{}]", self.file, self.words, self.limit)
    }
}

/// Every limit of every program.
#[derive(Debug, Serialize)]
pub struct Gate {
    /// `highwater.check/1`.
    pub schema: &'static str,
    /// The limits, in the order of the files.
    pub checks: Vec<Check>,
}

impl Default for Gate {
    fn default() -> Self {
        Self { schema: "highwater.check/1", checks: Vec::new() }
    }
}

impl Gate {
    /// The worst that came out: failed before unknown before passed. [`LimitOutcome::Unknown`] where nothing was checked.
    #[must_use]
    pub fn outcome(&self) -> LimitOutcome {
        let has = |outcome| self.checks.iter().any(|check| check.outcome == outcome);
        if has(LimitOutcome::Failed) {
            LimitOutcome::Failed
        } else if has(LimitOutcome::Unknown) || self.checks.is_empty() {
            LimitOutcome::Unknown
        } else {
            LimitOutcome::Passed
        }
    }

    /// A file that could not be read.
    pub fn unread(&mut self, file: &str, why: &str) {
        self.add(file, "", "read", (LimitOutcome::Unknown, why.to_owned()));
    }

    /// Holds every program of a profile to the limits, against the one before where there is one; whether there was
    /// anything to check. An out-of-memory message without its program fails.
    pub fn profile(&mut self, file: &str, side: Side<'_>, before: Option<Side<'_>>, limits: &Limits) -> bool {
        let mut name = "";
        let failure = side.profile.failures.iter().find(|failure| failure.is_error);
        for row in 0..side.profile.programs.len() {
            if let Some(failure) = failure.filter(|_| side.profile.programs[row].is_listing) {
                name = &side.profile.programs[row].name;
                self.add(file, name, "fits", (LimitOutcome::Failed, failure.message.clone()));
                continue;
            }
            let Some(scene) = side.analysis.scene(side.profile, row, MemorySpace::HBM) else { continue };
            let earlier = before.and_then(|before| before.analysis.scene(before.profile, row, MemorySpace::HBM));
            self.program(file, scene, earlier, limits);
            name = &scene.program.name;
        }
        if name.is_empty() && !side.analysis.caching.is_empty() {
            self.devices(file, side, before, limits);
            if let Some(worst) = limits.no_new {
                self.add(file, "", "no-new", no_new(side, before, worst));
            }
            return true;
        }
        if name.is_empty() {
            if let Some(failure) = failure {
                self.add(file, "", "fits", (LimitOutcome::Failed, failure.message.clone()));
            }
            return failure.is_some();
        }
        if let Some(worst) = limits.no_new {
            self.add(file, name, "no-new", no_new(side, before, worst));
        }
        true
    }

    fn program(&mut self, file: &str, scene: Scene<'_>, before: Option<Scene<'_>>, limits: &Limits) {
        let name = &scene.program.name;
        if let Some(limit) = limits.max_peak {
            self.add(file, name, "max-peak", peak(scene, limit));
        }
        if let Some(share) = limits.max_of_capacity {
            self.add(file, name, "max-of-capacity", of_capacity(scene, share));
        }
        if let Some(share) = limits.max_growth {
            self.add(file, name, "max-growth", growth(scene, before, share));
        }
        let is_limited = limits.max_peak.is_some() || limits.max_of_capacity.is_some() || limits.max_growth.is_some();
        if !is_limited && limits.no_new.is_none() {
            self.add(file, name, "fits", fits(scene));
        }
    }

    pub(super) fn add(
        &mut self,
        file: &str,
        program: &str,
        limit: &'static str,
        (outcome, words): (LimitOutcome, String),
    ) {
        let (file, program) = (file.to_owned(), program.to_owned());
        self.checks.push(Check { file, program, limit, outcome, words });
    }
}

pub(super) fn outcome(is_kept: bool) -> LimitOutcome {
    if is_kept { LimitOutcome::Passed } else { LimitOutcome::Failed }
}

fn fits(scene: Scene<'_>) -> (LimitOutcome, String) {
    let needs = scene.space.xprof.allocated;
    match scene.space.verdict() {
        Verdict::Fits { .. } => (LimitOutcome::Passed, format!("fits, {}", of(scene))),
        Verdict::Over { by } => (LimitOutcome::Failed, format!("does not fit, {}, {} over", of(scene), by.short())),
        Verdict::Unknown => (LimitOutcome::Unknown, format!("{} allocated, capacity unknown", needs.short())),
    }
}

/// `12.1 GiB of 15.75 GiB`.
fn of(scene: Scene<'_>) -> String {
    let needs = scene.space.xprof.allocated;
    let units = UnitSystem::Binary;
    let Some(capacity) = scene.space.capacity.as_ref().map(|capacity| capacity.bytes) else { return needs.short() };
    format!("{} of {}", units.beside(needs, capacity), units.capacity(capacity))
}

fn peak(scene: Scene<'_>, limit: Bytes) -> (LimitOutcome, String) {
    let Some(peak) = scene.space.known_peak() else {
        return (LimitOutcome::Unknown, "the file has no peak".to_owned());
    };
    let units = UnitSystem::Binary;
    let words = format!("peak {}, at most {}", units.beside(peak, limit), units.capacity(limit));
    (outcome(peak <= limit), words)
}

fn of_capacity(scene: Scene<'_>, share: f64) -> (LimitOutcome, String) {
    let Some(capacity) = &scene.space.capacity else {
        return (LimitOutcome::Unknown, "capacity unknown; give it with --capacity".to_owned());
    };
    let needs = scene.space.xprof.allocated;
    let words = format!(
        "{} allocated, {} of the capacity, at most {}",
        of(scene),
        percent(needs.0, capacity.bytes.0),
        share_text(share)
    );
    (outcome(needs.0 as f64 <= capacity.bytes.0 as f64 * share), words)
}

fn growth(scene: Scene<'_>, before: Option<Scene<'_>>, share: f64) -> (LimitOutcome, String) {
    let Some(before) = before else {
        return (LimitOutcome::Unknown, "no program of this name to compare with".to_owned());
    };
    let [was, is] = [before.space.xprof.allocated, scene.space.xprof.allocated];
    let change = i128::from(is.0) - i128::from(was.0);
    let words = format!(
        "{} \u{2192} {} allocated ({}), at most {} more",
        was.short(),
        is.short(),
        UnitSystem::Binary.signed(change),
        share_text(share)
    );
    (outcome(change as f64 <= was.0 as f64 * share), words)
}

fn no_new(side: Side<'_>, before: Option<Side<'_>>, worst: Severity) -> (LimitOutcome, String) {
    let Some(before) = before else {
        return (LimitOutcome::Unknown, "no program of this name to compare with".to_owned());
    };
    let known = advise(before.profile, before.analysis).findings;
    let is_new = |finding: &Finding| finding.severity >= worst && !known.iter().any(|old| old.rule == finding.rule);
    let found = advise(side.profile, side.analysis).findings;
    let new: Vec<&str> = found.iter().filter(|finding| is_new(finding)).map(|finding| finding.title.as_str()).collect();
    match new.len() {
        0 => (LimitOutcome::Passed, format!("no new finding that is {}", at_least(worst))),
        _ => (LimitOutcome::Failed, format!("new: {}", new.join("; "))),
    }
}

const fn at_least(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Warning => "critical or a warning",
        Severity::Hint => "of any severity",
    }
}

pub(super) fn share_text(share: f64) -> String {
    let text = format!("{:.2}", share * 100.0);
    format!("{}\u{2009}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A share as people write it: `92%`, `92 %`, `0.92`.
///
/// # Errors
/// A sentence on what is no share.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let (number, scale) = match trimmed.strip_suffix('%') {
        Some(number) => (number.trim(), 100.0),
        None => (trimmed, 1.0),
    };
    match number.parse::<f64>() {
        // Somebody who writes 92 means 92 %, and a limit of 9,200 % would let everything pass.
        Ok(value) if scale == 1.0 && value > 2.0 && value.is_finite() => {
            Err(format!("'{text}' has no percent sign: write {text}% or {}", value / 100.0))
        }
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value / scale),
        _ => Err(format!("'{text}' is no share such as 92% or 0.92")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_as_people_write_them() {
        for (text, expected) in [("92%", 0.92), ("92 %", 0.92), ("0.92", 0.92), ("2.5%", 0.025), ("0", 0.0)] {
            let read = parse_share(text).expect(text);
            assert!((read - expected).abs() < 1e-12, "{text}: {read}");
        }
        for text in ["", "%", "92", "-1%", "abc", "nan", "inf"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
        assert_eq!(share_text(0.925), "92.5\u{2009}%");
        assert_eq!(share_text(1.0), "100\u{2009}%");
    }
}
