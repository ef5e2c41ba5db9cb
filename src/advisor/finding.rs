//! A rule's finding: what to change, what that saves at the peak, and the evidence.

use std::fmt;

use super::effect::Effect;
use crate::analysis::what_if::{Edit, Outcome, TryVerdict, WIDEST};
use crate::model::{BufferId, Bytes, MemorySpace, UnitSystem};

/// Something to change, or to know.
#[derive(Debug, Clone, Default)]
pub struct Finding {
    /// Name of the rule, as the report writes it: `donation`.
    pub rule: &'static str,
    /// How serious it is.
    pub severity: Severity,
    /// One line: what, and how much.
    pub title: String,
    /// The evidence, in a few sentences.
    pub why: String,
    /// What to do, most useful first; code in backquotes.
    pub advice: Vec<String>,
    /// Its changes and their predicted effect; `None` if no edit does exactly this.
    pub effect: Option<Effect>,
    /// How much of what is saved is something else than the finding names, and what.
    pub includes: Vec<(Bytes, &'static str)>,
    /// What a replay without its allocations finds, where no edit describes the change: the bytes saved, and the peak after.
    pub replayed: Option<(Bytes, Bytes)>,
    /// Bytes at the peak that it is about, used for ranking; if `None`, the bytes saved are.
    pub at_stake_bytes: Option<Bytes>,
    /// Whether the results of the program may change.
    pub changes_results: ChangesResults,
    /// Program of the profile it is about; `None` for the profile as a whole.
    pub program: Option<usize>,
    /// Out-of-memory message of the profile it is about; its remedies are [`Self::advice`].
    pub failure: Option<usize>,
    /// Memory space it is about (colour).
    pub color: MemorySpace,
    /// The evidence: buffers of that program, largest first.
    pub buffers: Vec<BufferId>,
    /// The evidence on an IPU: tiles.
    pub tiles: Vec<u32>,
    /// Reference: title or URL of a page.
    pub reference: &'static str,
    /// If its bytes are only an upper bound: in which sense (`at most: …`).
    pub at_most: Option<String>,
    /// What to know before trusting the prediction.
    pub warnings: Vec<String>,
    /// Whether it rests on names alone.
    pub is_guess: bool,
    /// Whether it is a way to save rather than the cause of anything.
    pub is_remedy: bool,
}

/// How serious a [`Finding`] is. Nothing is critical in a program that uses less than 83 % of the available memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Severity {
    /// A way to save.
    #[default]
    Hint,
    /// The program is tight, or something is wrong with it.
    Warning,
    /// A cause of the program not fitting.
    Critical,
}

impl Severity {
    /// The word in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hint => "hint",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }
}

/// Whether a change alters what the program computes. The order is the order of preference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ChangesResults {
    /// Never.
    #[default]
    No,
    /// It may: rounding, the shape of the model.
    Maybe,
    /// It does.
    Yes,
}

/// Whether some changes run the step on parts of the batch, which keeps results where the loss is a mean over samples.
#[must_use]
pub fn has_micro_batches(edits: &[Edit]) -> bool {
    edits.iter().any(|edit| matches!(edit, Edit::Micro(_)))
}

impl ChangesResults {
    /// In words, as shown with a remedy.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::No => "results stay the same",
            Self::Maybe => "may change results",
            Self::Yes => "changes results",
        }
    }

    /// In words, as said of a plan or of what is switched on, which are such changes.
    #[must_use]
    pub fn of_results(self, edits: &[Edit]) -> &'static str {
        match self {
            Self::No if has_micro_batches(edits) => "results unchanged if the loss is a mean over samples",
            Self::No => "results unchanged",
            Self::Maybe => "results may change",
            Self::Yes => "results change",
        }
    }

    /// In a few words, as said beside changes.
    #[must_use]
    pub fn in_short(self, edits: &[Edit]) -> &'static str {
        match self {
            Self::No if has_micro_batches(edits) => "same for a mean loss",
            Self::No => "same results",
            Self::Maybe => "results may change",
            Self::Yes => "results change",
        }
    }

    /// The word in the report.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::Maybe => "maybe",
            Self::Yes => "yes",
        }
    }
}

impl Finding {
    /// An empty finding of a rule.
    #[must_use]
    pub fn new(rule: &'static str) -> Self {
        Self { rule, ..Self::default() }
    }

    /// Bytes used for ranking: those at stake, or else those saved.
    #[must_use]
    pub fn weight(&self) -> u64 {
        self.at_stake_bytes.or(self.saves_bytes()).map_or(0, |bytes| bytes.0)
    }

    /// The changes to try; empty if there are none.
    #[must_use]
    pub fn edits(&self) -> &[Edit] {
        self.effect.as_ref().map_or(&[], Effect::edits)
    }

    /// Bytes by which the peak falls with its changes.
    #[must_use]
    pub fn saves_bytes(&self) -> Option<Bytes> {
        self.effect.as_ref().map(Effect::saves).or(self.replayed.map(|replayed| replayed.0))
    }

    /// Whether that is an upper bound.
    #[must_use]
    pub fn saves_at_most(&self) -> bool {
        self.band().is_some_and(|band| band.starts_with("at most"))
    }

    /// How its saving is meant where the program may need as much with its changes as without: `up to ` if no more than
    /// predicted is saved, else `about `; elsewhere empty.
    fn caveat(&self) -> &'static str {
        let is_wide = |effect: &&Effect| {
            let before = effect.before().0;
            effect.outcome() == Some(Outcome::MayFit) && effect.range().1.0 >= before - before / HARDLY
        };
        // In another type a program may come to less than is expected.
        let is_bound = |effect: &Effect| {
            effect.range().0 >= effect.allocated()
                && !effect.edits().iter().any(|edit| matches!(edit, Edit::Compute(..)))
        };
        match self.effect.as_ref().filter(is_wide) {
            Some(effect) if is_bound(effect) => "up to ",
            Some(_) => "about ",
            None => "",
        }
    }

    /// Whether the bytes of its effect say anything; true where it has none.
    #[must_use]
    pub fn is_told(&self) -> bool {
        self.effect.as_ref().is_none_or(Effect::is_told)
    }

    /// The most that its changes can save where how much cannot be told: what is at stake, or more where that much is
    /// predicted.
    fn at_most_saved(&self) -> Option<Bytes> {
        self.at_stake_bytes.max(self.saves_bytes()).filter(|bytes| bytes.0 > 0)
    }

    /// What its changes save, for a title: `4.17 GiB less in 8 chunks`, or `up to 4.17 GiB less in 8 chunks` where how much
    /// cannot be told.
    #[must_use]
    pub fn less(&self, how: &str) -> String {
        match self.saves_bytes() {
            Some(_) if !self.is_told() => match self.at_most_saved() {
                Some(most) => format!("up to {} less{how}", most.short()),
                None => format!("less{how}, but how much cannot be told"),
            },
            saves => format!("{}{} less{how}", self.caveat(), saves.unwrap_or_default().short()),
        }
    }

    /// The same where something of it is always needed again: `up to 1.34 GiB less`.
    #[must_use]
    pub fn less_at_most(&self) -> String {
        let less = self.less("");
        if less.starts_with(|first: char| first.is_ascii_digit()) { format!("up to {less}") } else { less }
    }

    /// By how much the peak falls, in words: `\u{2212}13.9 GiB`, `up to \u{2212}957 MiB`; empty if it does not.
    #[must_use]
    pub fn saving_in_words(&self, units: UnitSystem) -> String {
        let saves = self.saves_bytes().filter(|bytes| bytes.0 > 0 && self.is_told());
        let bound = if self.saves_at_most() { "up to " } else { "" };
        saves.map(|bytes| format!("{bound}{}", units.signed(-i128::from(bytes.0)))).unwrap_or_default()
    }

    /// What of the saving is something else than the finding names: `11.2 GiB of it attention scores, 2.00 GiB logits`, or
    /// `attention scores fall by 17.2 GiB, others rise` where other values take some of that.
    #[must_use]
    pub fn includes_in_words(&self, units: UnitSystem) -> Option<String> {
        let ((bytes, what), others) = self.includes.split_first().filter(|_| self.is_told())?;
        let all = self.includes.iter().fold(0u64, |sum, part| sum.saturating_add(part.0.0));
        let amount = units.short(*bytes);
        if self.saves_bytes().is_some_and(|saves| all > saves.0) {
            let others = others.iter().map(|(bytes, what)| format!(", {what} by {}", units.short(*bytes)));
            return Some(format!("{what} fall by {amount}{}, others rise", others.collect::<String>()));
        }
        let others = others.iter().map(|(bytes, what)| format!(", {} {what}", units.short(*bytes)));
        Some(format!("{amount} of it {what}{}", others.collect::<String>()))
    }

    /// The peak after its changes.
    #[must_use]
    pub fn peak_after_bytes(&self) -> Option<Bytes> {
        self.effect.as_ref().map(Effect::peak).or(self.replayed.map(|replayed| replayed.1))
    }

    /// Allocated bytes after its changes, packed as the compiler does.
    #[must_use]
    pub fn allocated_after_bytes(&self) -> Option<Bytes> {
        self.effect.as_ref().map(Effect::allocated)
    }

    /// The range of allocated bytes after its changes in words, where that is wide: ` (10.1 GiB to 14.8 GiB)`, else nothing; nor
    /// where it is what is said instead of a number.
    #[must_use]
    pub fn range_in_words(&self, units: UnitSystem) -> String {
        let effect = self.effect.as_ref().filter(|_| self.at_most.is_none() && !self.may_fit_after());
        effect.map_or_else(String::new, |effect| range_beside(effect, units))
    }

    /// Whether the program fits after its changes; `None` if the capacity is unknown or it depends on the compiler.
    /// Never `Some(true)` for an upper bound ([`Self::at_most`]).
    #[must_use]
    pub fn fits_after(&self) -> Option<bool> {
        let fits = self.effect.as_ref().and_then(Effect::fits);
        fits.filter(|fits| !self.may_fit_after() && (!fits || self.at_most.is_none()))
    }

    /// Whether the program may fit after its changes, depending on the compiler.
    #[must_use]
    pub fn may_fit_after(&self) -> bool {
        self.effect.as_ref().is_some_and(|effect| effect.verdict() == TryVerdict::MayFit)
    }

    /// What its changes come to; `None` if the capacity is unknown. For an upper bound ([`Self::at_most`]) never a plain
    /// fit, and nothing where the program fits as it is.
    #[must_use]
    pub fn outcome(&self) -> Option<Outcome> {
        let effect = self.effect.as_ref().filter(|effect| effect.is_told())?;
        let outcome = effect.outcome()?;
        match &self.at_most {
            None => Some(outcome),
            Some(_) => (!effect.fits_already()).then(|| outcome.at_most()),
        }
    }

    /// What its changes do, in words: `saves 37.0 GiB at the peak, which is 19.2 GiB then; with this alone it needs 19.4
    /// GiB: 3.65 GiB over`, or `15.2 to 23.8 GiB: may fit`.
    #[must_use]
    pub fn effect_in_words(&self) -> Option<String> {
        let (saves, after) = (self.saves_bytes()?, self.peak_after_bytes()?);
        let this = if self.edits().len() > 1 { "with these changes alone" } else { "with this alone" };
        if let Some(effect) = self.effect.as_ref().filter(|effect| !effect.is_told()) {
            // What fits as it is fits with less.
            let is_news = !effect.fits_already() || effect.verdict() == TryVerdict::Fits;
            let alone = effect.certainly().filter(|_| is_news && self.at_most.is_none());
            let alone = alone.map(|words| format!("; {this} it {words}")).unwrap_or_default();
            // What is left may be little beside what is saved, which is told well then.
            let saved = [effect.range().1, effect.range().0].map(|left| effect.before().0.saturating_sub(left.0));
            if saved[0] > 0 && saved[1] as f64 <= saved[0] as f64 * WIDEST {
                let [least, most] = saved.map(|bytes| Bytes(bytes).short());
                return Some(format!("saves {least} to {most} of what is allocated{alone}"));
            }
            let most = self.at_most_saved().map(|most| format!(", at most {}", most.short())).unwrap_or_default();
            return Some(format!("how much it saves cannot be told{most}{alone}"));
        }
        // What may come to more is no bound.
        let is_bound =
            self.effect.as_ref().is_some_and(|effect| effect.is_bound() && effect.range().1 <= effect.allocated());
        let (bound, most) = match (is_bound, self.saves_at_most()) {
            (true, _) => ("at least ", "at most "),
            (false, true) => ("up to ", "at least "),
            (false, false) => match self.caveat() {
                "up to " => ("up to ", "at least "),
                about => (about, about),
            },
        };
        let outcome = self.outcome().map(|outcome| outcome.words(UnitSystem::Binary));
        let needs = self.effect.as_ref().filter(|_| self.at_most.is_none()).map(|effect| match effect.outcome() {
            Some(Outcome::MayFit) => format!(" it needs {} to {}", effect.range().0.short(), effect.range().1.short()),
            _ if is_bound => format!(" it needs {most}{}", effect.allocated().short()),
            _ => format!(
                " it needs {}{}{}",
                effect.allocated().short(),
                range_beside(effect, UnitSystem::Binary),
                less_beside(effect)
            ),
        });
        let needs = needs.unwrap_or_default();
        let outcome = outcome.map(|words| format!("; {this}{needs}: {words}")).unwrap_or_default();
        let includes =
            self.includes_in_words(UnitSystem::Binary).map(|words| format!(" ({words})")).unwrap_or_default();
        Some(format!(
            "saves {bound}{} at the peak{includes}, which is {most}{} then{outcome}",
            saves.short(),
            after.short()
        ))
    }

    /// Error of such predictions on real pairs of programs (`within 3 % on 15 of 17 pairs`), or [`Self::at_most`]; `None` where
    /// no number is given.
    #[must_use]
    pub fn band(&self) -> Option<&str> {
        self.at_most
            .as_deref()
            .or_else(|| self.effect.as_ref().filter(|effect| effect.is_told()).and_then(Effect::band))
    }
}

/// How many times the lower end of what a change may come to the upper one is, from which on a number alone says too much.
const WIDE: f64 = 1.3;

/// The same of the upper end and the number.
const ABOVE: f64 = 1.15;

/// The range of what a change may come to, where that is wide, or its upper end leaves less than half of what is said to be
/// to spare: ` (10.1 GiB to 14.8 GiB)`.
fn range_beside(effect: &Effect, units: UnitSystem) -> String {
    let (expected, range) = (effect.allocated(), effect.range());
    let above = range.1.0.saturating_sub(expected.0);
    match effect.outcome() {
        Some(Outcome::Fits(spare) | Outcome::Tight { spare, .. }) if above.saturating_mul(2) > spare.0 => {
            in_range(range, units)
        }
        _ => wide_range(expected, range, units),
    }
}

fn in_range((low, high): (Bytes, Bytes), units: UnitSystem) -> String {
    format!(" ({} to {})", units.short(low), units.short(high))
}

/// A range of bytes in words beside the bytes that are expected, where it is wide, else nothing.
#[must_use]
pub fn wide_range(expected: Bytes, (low, high): (Bytes, Bytes), units: UnitSystem) -> String {
    let is_wide = high.0 as f64 > low.0 as f64 * WIDE || high.0 as f64 > expected.0 as f64 * ABOVE;
    if is_wide { in_range((low, high), units) } else { String::new() }
}

/// Part of what a program needs that is hardly less.
const HARDLY: u64 = 100;

/// Share of what a change saves at the peak by which what it saves of all that is needed is something else.
const ELSE: f64 = 0.25;

/// How much less is needed, where that is clearly something else than what is saved at the peak, as gaps between buffers
/// come and go: `, 7.50 GiB less`.
fn less_beside(effect: &Effect) -> String {
    let less = effect.before().0.saturating_sub(effect.allocated().0);
    let differs = less.abs_diff(effect.saves().0) as f64 > effect.saves().0 as f64 * ELSE;
    if differs && less > 0 { format!(", {} less than now", Bytes(less).short()) } else { String::new() }
}

/// The finding as plain text, for the clipboard.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "[{}] {}", self.severity.name(), self.title)?;
        writeln!(f, "  {}", self.why)?;
        for advice in &self.advice {
            writeln!(f, "  - {advice}")?;
        }
        if let Some(effect) = self.effect_in_words() {
            writeln!(f, "  {effect}")?;
        }
        if let Some(band) = self.band() {
            writeln!(f, "  prediction: {band}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "  caution: {warning}")?;
        }
        if self.changes_results != ChangesResults::No {
            writeln!(f, "  changes results: {}", self.changes_results.name())?;
        }
        if !self.reference.is_empty() {
            writeln!(f, "  see {}", self.reference)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_saving_includes_adds_up_or_others_rise() {
        let gib = |bytes: u64| Bytes(bytes << 30);
        let finding = Finding {
            includes: vec![(gib(4), "attention scores"), (gib(2), "logits")],
            replayed: Some((gib(8), gib(6))),
            ..Finding::new("activations")
        };
        let words = |finding: &Finding| finding.includes_in_words(UnitSystem::Binary);
        assert_eq!(words(&finding).as_deref(), Some("4.00 GiB of it attention scores, 2.00 GiB logits"));
        let less = Finding { replayed: Some((gib(5), gib(9))), ..finding };
        assert_eq!(words(&less).as_deref(), Some("attention scores fall by 4.00 GiB, logits by 2.00 GiB, others rise"));
        assert_eq!(words(&Finding::new("activations")), None);
    }
}
