//! Changes tried out: the outcome with everything its view draws, computed on a worker.

use std::sync::Arc;

use super::document::Document;
use crate::analysis::what_if::names::pass_of;
use crate::analysis::what_if::{Depth, Edit, Memory, Outcome, Role};
use crate::model::Bytes;

/// What a part of the memory is for; forward and backward are guesses from names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Arguments.
    Argument,
    /// Results with memory of their own.
    Result,
    /// Constants and the rest of what lives throughout.
    Constant,
    /// Temporaries of the forward pass.
    Forward,
    /// Temporaries of the backward pass.
    Backward,
    /// Other temporaries.
    Temporary,
}

impl Class {
    /// All of them, in the order in which they are stacked.
    pub const ALL: [Self; 6] =
        [Self::Argument, Self::Result, Self::Constant, Self::Forward, Self::Backward, Self::Temporary];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Argument => "Parameter",
            Self::Result => "Output",
            Self::Constant => "Constant",
            Self::Forward => "Forward",
            Self::Backward => "Backward",
            Self::Temporary => "Temporary",
        }
    }

    /// By the framework's name of a temporary.
    #[must_use]
    pub fn of(name: &str) -> Self {
        match pass_of(name) {
            Some(pass) if pass.is_backward => Self::Backward,
            Some(_) => Self::Forward,
            None => Self::Temporary,
        }
    }
}

/// The outcome of some changes.
pub struct Tried {
    /// The memory they were tried on.
    pub memory: Arc<Memory>,
    /// Without them.
    pub before: Outcome,
    /// With them.
    pub after: Outcome,
    /// Live bytes without them, by heap event.
    pub curve_before: Vec<u64>,
    /// Live bytes with them.
    pub curve_after: Vec<u64>,
    /// The same by class, in the order of [`Class::ALL`].
    pub classes: Vec<Vec<u64>>,
    /// Events above the capacity, without and with the changes.
    pub over: (usize, usize),
}

impl Tried {
    /// Tries changes out; `None` where the document has no such program.
    #[must_use]
    pub fn new(document: &Document, program: usize, memory: Arc<Memory>, edits: &[Edit]) -> Option<Self> {
        let (model, _) = document.program(program)?;
        let before = memory.evaluate(model, &[], Depth::Verdict);
        let after = memory.evaluate(model, edits, Depth::Packed);
        let curve_before = memory.curve(&before);
        let curve_after = memory.curve(&after);
        let base = |class: Class| {
            let rows = memory.base.iter().zip(&after.sizes.base);
            rows.filter(|(base, _)| match base.role {
                Role::Argument { .. } => class == Class::Argument,
                Role::Result(_) => class == Class::Result,
                Role::Other => class == Class::Constant,
            })
            .fold(0u64, |sum, (_, &size)| sum.saturating_add(size))
        };
        let class_of: Vec<Class> = memory.names.list.iter().map(|name| Class::of(name)).collect();
        let classes = Class::ALL
            .iter()
            .map(|&class| match class {
                Class::Argument | Class::Result | Class::Constant => vec![base(class); curve_after.len()],
                _ => memory.curve_of(&after, |family| class_of.get(family) == Some(&class)),
            })
            .collect();
        let count = |curve: &[u64]| {
            memory.capacity.map_or(0, |capacity| curve.iter().filter(|&&bytes| bytes > capacity).count())
        };
        let over = (count(&curve_before), count(&curve_after));
        Some(Self { memory, before, after, curve_before, curve_after, classes, over })
    }

    /// Bytes by which the peak changes.
    #[must_use]
    pub fn change(&self) -> i128 {
        i128::from(self.after.peak.0) - i128::from(self.before.peak.0)
    }

    /// What is left of the capacity, or how much is missing.
    #[must_use]
    pub fn spare(&self) -> Option<(bool, Bytes)> {
        let capacity = self.memory.capacity?;
        let needs = self.after.expected().0;
        Some(if needs > capacity { (false, Bytes(needs - capacity)) } else { (true, Bytes(capacity - needs)) })
    }

    /// Everything in words, for the clipboard.
    #[must_use]
    pub fn text(&self, name: &str) -> String {
        use std::fmt::Write as _;
        let mut out = String::new();
        let edits: Vec<String> = self.after.edits.iter().map(|edit| format!("--edit '{edit}'")).collect();
        let _ = writeln!(out, "{name}: {}", self.after.sentence(self.memory.capacity));
        for (label, before, after) in [
            ("peak", self.before.peak, self.after.peak),
            ("allocated", Bytes(self.memory.allocated), self.after.expected()),
            ("always live", self.before.base, self.after.base),
        ] {
            let _ = writeln!(out, "  {label}: {} -> {} ({})", before.short(), after.short(), after.exact());
        }
        if let Some(band) = &self.after.band {
            let _ = writeln!(out, "  prediction: {band}");
        }
        for warning in &self.after.warnings {
            let _ = writeln!(out, "  careful: {warning}");
        }
        let _ = writeln!(out, "  highwater report FILE {}", edits.join(" "));
        out
    }
}
