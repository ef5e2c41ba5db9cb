//! How far up a byte axis reaches: to everything with the limit, or to what is visible.

use egui::{Context, Id};

use super::span::Span;

/// Air above the highest value.
const AIR: f64 = 1.08;

/// What a byte axis is fitted to; kept as long as the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Fit {
    /// All values, and the limit.
    #[default]
    All,
    /// The values of the visible part.
    Visible,
}

impl Fit {
    /// The fit that a context draws with.
    #[must_use]
    pub fn of(ctx: &Context) -> Self {
        ctx.data(|data| data.get_temp(Self::id())).unwrap_or_default()
    }

    /// Makes it the fit of a context.
    pub fn set(self, ctx: &Context) {
        ctx.data_mut(|data| data.insert_temp(Self::id(), self));
    }

    /// The byte axis for the highest of all values, the highest visible one, and the limit.
    #[must_use]
    pub fn bytes(self, all: u64, visible: impl FnOnce() -> u64, limit: Option<u64>) -> Span {
        let highest = match self {
            Self::All => all.max(limit.unwrap_or(0)),
            Self::Visible => visible(),
        };
        Span::new(0.0, highest.max(1) as f64 * AIR)
    }

    fn id() -> Id {
        Id::unique("fit of byte axes")
    }
}
