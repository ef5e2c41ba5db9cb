//! The range of a byte axis: fits all values and the limit, or the visible values only.

use egui::{Context, Id};

use super::span::Span;

/// Headroom above the highest value, as a factor.
const AIR: f64 = 1.08;

/// A limit more than so many times above the values would make them a line at the bottom: it is a flag at the edge.
const FAR: u64 = 4;

/// What byte axes are fitted to; kept until the program exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fit {
    /// All values, and the limit unless it is far above them.
    #[default]
    All,
    /// The visible values.
    Visible,
}

impl Fit {
    /// The fit of a context.
    #[must_use]
    pub fn of(ctx: &Context) -> Self {
        ctx.data(|data| data.get_temp(Self::id())).unwrap_or_default()
    }

    /// Sets the fit of a context.
    pub fn set(self, ctx: &Context) {
        ctx.data_mut(|data| data.insert_temp(Self::id(), self));
    }

    /// The byte axis given the highest of all values, the highest visible one, and the limit.
    #[must_use]
    pub fn bytes(self, all: u64, visible: impl FnOnce() -> u64, limit: Option<u64>) -> Span {
        let highest = match self {
            Self::All => all.max(limit.filter(|&limit| limit <= all.saturating_mul(FAR)).unwrap_or(0)),
            Self::Visible => visible(),
        };
        Span::new(0.0, highest.max(1) as f64 * AIR)
    }

    fn id() -> Id {
        Id::unique("fit of byte axes")
    }
}
